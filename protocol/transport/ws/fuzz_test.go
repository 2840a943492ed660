package ws

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// FuzzConn feeds a server connection arbitrary requests and frames: no panic, no message beyond the limit, the
// connection ends, and the frames that are counted are those that the library reads.
func FuzzConn(f *testing.F) {
	f.Add([]byte(upgradeRequest+"User-Agent: brine\r\n\r\n"), []byte("\x82\x82\x00\x00\x00\x00hi"))
	f.Add([]byte(upgradeRequest+"\r\n"), []byte("\x02\x81\x00\x00\x00\x00h\x80\x81\x01\x02\x03\x04h"))
	f.Add([]byte(upgradeRequest+"\r\n"), []byte("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Add([]byte(upgradeRequest+"\r\n"), []byte("\x89\x80\x00\x00\x00\x00\x88\x82\x00\x00\x00\x00\x03\xe8"))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), []byte("ffffffffffffffff\r\n"))
	f.Fuzz(func(t *testing.T, head, frames []byte) {
		const limit = 1 << 16
		c, err := upgradeConn(&recorded{r: io.MultiReader(bytes.NewReader(head), bytes.NewReader(frames))}, time.Second, time.Second, free)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			b, err := c.receive(limit, nil)
			if len(b) > limit {
				t.Fatalf("%d bytes", len(b))
			}
			if err != nil {
				return
			}
			if f := c.stream.frames; c.r.Buffered() == 0 && (f.inside || f.have != 0 || f.rest != 0) {
				t.Fatalf("after a message: %+v", f)
			}
		}
	})
}

// recorded is a connection whose peer sends the content of r.
type recorded struct {
	net.Conn
	r io.Reader
}

func (c *recorded) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c *recorded) Write(p []byte) (int, error)      { return len(p), nil }
func (c *recorded) Close() error                     { return nil }
func (c *recorded) SetDeadline(time.Time) error      { return nil }
func (c *recorded) SetReadDeadline(time.Time) error  { return nil }
func (c *recorded) SetWriteDeadline(time.Time) error { return nil }
