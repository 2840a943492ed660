// Package wol wakes hosts by packets to their hardware addresses, for the execution module and the runner network
// (salt/modules/network.py, salt/runners/network.py).
package wol

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Send sends a packet to a broadcast address that wakes the host with a hardware address, which may have separators.
// If Python's code would raise an exception, the error is an [Error]; otherwise it is the operating system's.
func Send(ctx context.Context, mac, bcast string, port int64) error {
	packet, err := magic(mac)
	if err != nil {
		return err
	}
	if port < 0 || port > 65535 {
		return &Error{Type: "OverflowError", Msg: "sendto(): port must be 0-65535."}
	}
	var d net.Dialer // net.Dialer enables broadcasts
	conn, err := d.DialContext(ctx, "udp4", net.JoinHostPort(bcast, strconv.FormatInt(port, 10)))
	if err == nil {
		_, err = conn.Write(packet)
		conn.Close()
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return &Error{Type: "gaierror", Msg: "[Errno -2] Name or service not known"}
	}
	return err
}

// Error is a Python exception.
type Error struct{ Type, Msg string }

func (e *Error) Error() string { return e.Type + ": " + e.Msg }

// magic returns the magic packet: six bytes 0xff, then the address sixteen times.
func magic(mac string) ([]byte, error) {
	if len(mac) == 17 {
		mac = strings.ReplaceAll(mac, mac[2:3], "")
	}
	if len(mac) != 12 {
		return nil, &Error{Type: "ValueError", Msg: "Invalid MAC address"}
	}
	var addr []byte
	for i := 0; i < 12; i += 2 {
		b, err := hex.DecodeString(mac[i : i+2])
		if err != nil {
			return nil, &Error{Type: "ValueError", Msg: "invalid literal for int() with base 16: " + pytext.Repr(mac[i:i+2])}
		}
		addr = append(addr, b...)
	}
	return append(slices.Repeat([]byte{0xff}, 6), slices.Repeat(addr, 16)...), nil
}
