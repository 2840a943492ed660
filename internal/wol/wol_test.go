package wol

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net"
	"testing"
)

func TestSend(t *testing.T) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	port := int64(c.LocalAddr().(*net.UDPAddr).Port)
	addr, _ := hex.DecodeString("080027136977")
	want := append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(addr, 16)...)
	for _, mac := range []string{"08-00-27-13-69-77", "08:00:27:13:69:77", "080027136977"} {
		if err := Send(t.Context(), mac, "127.0.0.1", port); err != nil {
			t.Fatal(mac, err)
		}
		buf := make([]byte, 1024)
		n, err := c.Read(buf)
		if err != nil || !bytes.Equal(buf[:n], want) {
			t.Errorf("%s: %x, %v", mac, buf[:n], err)
		}
	}
}

func TestSendErrors(t *testing.T) {
	for _, c := range []struct {
		mac, bcast string
		port       int64
		typ, text  string
	}{
		{"08002713697", "127.0.0.1", 9, "ValueError", "Invalid MAC address"},
		{"08-00-27-13-69-7x", "127.0.0.1", 9, "ValueError", "invalid literal for int() with base 16: '7x'"},
		{"080027136977", "127.0.0.1", 65536, "OverflowError", "sendto(): port must be 0-65535."},
	} {
		var python *Error
		if err := Send(t.Context(), c.mac, c.bcast, c.port); !errors.As(err, &python) || python.Type != c.typ || python.Msg != c.text {
			t.Errorf("%s to %s:%d: %v", c.mac, c.bcast, c.port, err)
		}
	}
}
