package zeromq

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// maxKnown and maxKnownReady limit the cached handshakes: how many, and the bytes of a READY.
	maxKnown, maxKnownReady = 64, 256

	greetingSize = 64
)

// known are handshakes that the library has accepted. All peers of one implementation send the same bytes, so a
// master checks them once, not for each of ten thousand connections.
var known struct {
	mu  sync.Mutex
	all map[string]struct{}
}

// shake exchanges greetings and READYs as typ. A client sends both together. A server sends READY after it has
// received the client's greeting, since the client may send a request as soon as it has the READY. The library checks
// the peer's bytes.
func (k *conn) shake(typ zmq4.SocketType, server bool) error {
	hello, ready := greeting(), readyFrame(typ)
	if !server {
		hello, ready = append(hello, ready...), nil
	}
	if err := k.write(hello); err != nil {
		return fmt.Errorf("zeromq: handshake failed: %w", err)
	}
	said := make([]byte, greetingSize, shakeBuffer)
	if err := k.readFull(said); err != nil {
		return k.handshakeError(err)
	}
	if said[0] != 0xff || said[9] != 0x7f || said[10] < 3 || string(said[12:17]) != "NULL\x00" {
		return k.checkHandshake(typ, server, said) // returns the error without waiting for more bytes
	}
	if len(ready) > 0 {
		if err := k.write(ready); err != nil {
			return fmt.Errorf("zeromq: handshake failed: %w", err)
		}
	}
	flags, body, err := k.readFrame()
	if err != nil {
		return k.handshakeError(err)
	}
	said = appendFrame(said, flags&^flagLong, body)
	key := string(typ) + string(said)
	known.mu.Lock()
	_, ok := known.all[key]
	known.mu.Unlock()
	if ok {
		return nil
	}
	if err := k.checkHandshake(typ, server, said); err != nil || len(body) > maxKnownReady {
		return err
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.all == nil {
		known.all = make(map[string]struct{})
	}
	if len(known.all) < maxKnown {
		known.all[key] = struct{}{}
	}
	return nil
}

// handshakeError returns why reading failed: the follower's error if a limit was exceeded.
func (k *conn) handshakeError(err error) error {
	if k.follow.err != nil {
		err = k.follow.err
	}
	return fmt.Errorf("zeromq: handshake failed: %w", err)
}

// checkHandshake lets the library parse the peer's bytes. The library panics on several malformed handshakes;
// checkHandshake returns these as errors.
func (k *conn) checkHandshake(typ zmq4.SocketType, server bool, said []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("zeromq: malformed handshake: %v: %w", p, transport.ErrProtocol)
		}
	}()
	if _, err = zmq4.Open(&record{Conn: k.Conn, said: said}, null.Security(), typ, nil, server, nil); err != nil {
		return fmt.Errorf("zeromq: handshake failed: %w", err)
	}
	return nil
}

// record is the connection that the library gets: it plays the peer's bytes and then ends.
type record struct {
	net.Conn
	said []byte
}

// Read returns the recorded bytes.
func (r *record) Read(p []byte) (int, error) {
	if len(r.said) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, r.said)
	r.said = r.said[n:]
	return n, nil
}

// Write discards our side of the handshake, which was sent already.
func (r *record) Write(p []byte) (int, error) { return len(p), nil }

// greeting returns our greeting: a signature, ZMTP 3.0, NULL.
func greeting() []byte {
	b := make([]byte, greetingSize)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], "NULL")
	return b
}

// readyFrame returns our READY: a socket type and no identity.
func readyFrame(typ zmq4.SocketType) []byte {
	body := appendProperty([]byte("\x05READY"), "Socket-Type", string(typ))
	return appendFrame(nil, flagCommand, appendProperty(body, "Identity", ""))
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}
