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
	// maxKnown and maxKnownReady bound what is remembered of handshakes: how many, and bytes of a READY.
	maxKnown, maxKnownReady = 64, 256

	greetingSize = 64
)

// known are handshakes that the library has accepted. The peers of one implementation say the same to the byte, so a master judges
// theirs once and not for each of ten thousand connections.
var known struct {
	mu  sync.Mutex
	all map[string]struct{}
}

// shake exchanges greetings and READYs as typ. Those of a client go out together. A server says READY when it has heard the client, which
// may send a request as soon as it has that. The library judges what the peer said.
func (k *conn) shake(typ zmq4.SocketType, server bool) error {
	hello, ready := greeting(), readyFrame(typ)
	if !server {
		hello, ready = append(hello, ready...), nil
	}
	if err := k.write(hello); err != nil {
		return fmt.Errorf("zeromq: handshake failed: %w", err)
	}
	said := make([]byte, greetingSize, shakeBuffer)
	if err := k.full(said); err != nil {
		return k.failed(err)
	}
	if said[0] != 0xff || said[9] != 0x7f || said[10] < 3 || string(said[12:17]) != "NULL\x00" {
		return k.judge(typ, server, said) // it says what is wrong, and the peer is not waited for any longer
	}
	if len(ready) > 0 {
		if err := k.write(ready); err != nil {
			return fmt.Errorf("zeromq: handshake failed: %w", err)
		}
	}
	flags, body, err := k.frame()
	if err != nil {
		return k.failed(err)
	}
	said = appendFrame(said, flags&^flagLong, body)
	key := string(typ) + string(said)
	known.mu.Lock()
	_, ok := known.all[key]
	known.mu.Unlock()
	if ok {
		return nil
	}
	if err := k.judge(typ, server, said); err != nil || len(body) > maxKnownReady {
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

// failed is why nothing came from the peer: the limits, when they were exceeded.
func (k *conn) failed(err error) error {
	if k.follow.err != nil {
		err = k.follow.err
	}
	return fmt.Errorf("zeromq: handshake failed: %w", err)
}

// judge has the library read what the peer said. It panics on several malformed handshakes, here in a goroutine where that can be caught.
func (k *conn) judge(typ zmq4.SocketType, server bool, said []byte) (err error) {
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

// record is what the library sees of a peer: what it said, and its end.
type record struct {
	net.Conn
	said []byte
}

// Read gives what was said.
func (r *record) Read(p []byte) (int, error) {
	if len(r.said) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, r.said)
	r.said = r.said[n:]
	return n, nil
}

// Write drops our side: the peer has it.
func (r *record) Write(p []byte) (int, error) { return len(p), nil }

// greeting is ours: a signature, ZMTP 3.0, NULL.
func greeting() []byte {
	b := make([]byte, greetingSize)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], "NULL")
	return b
}

// readyFrame is our READY: a socket type and no identity.
func readyFrame(typ zmq4.SocketType) []byte {
	body := appendProperty([]byte("\x05READY"), "Socket-Type", string(typ))
	return appendFrame(nil, flagCommand, appendProperty(body, "Identity", ""))
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}
