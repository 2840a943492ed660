// Package zeromq implements ZMTP 3.0 (NULL mechanism) as Salt's ROUTER, REQ, PUB and SUB sockets use it. It is the
// only importer of go-zeromq/zmq4, which checks handshakes. The library's sockets are not used: they trust any frame
// length, panic on malformed handshakes, block on slow peers and stop reconnecting.
//
//	greeting   64 bytes: 0xff … 0x7f, version, "NULL"
//	READY      command frame: socket type
//	frame      flags (more, long, command) │ size (1 or 8 bytes) │ body
//	request    [routing ids …] [] [envelope]        several frames, one message
//	publish    [envelope], or with Filter [topic] [envelope]
//
// The connection between the library and the peer follows the byte stream and refuses what is too large before memory
// is allocated for it. Frames are read here too, so that a waiting connection has neither the library's state nor a
// deep stack.
//
// We announce ZMTP 3.0, so peers of 3.1 subscribe by messages instead of commands. Both are supported.
//
// Salt's source: salt/transport/zeromq.py. The protocol: https://rfc.zeromq.org/spec/23/.
package zeromq

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxHandshake and maxCommand are the largest READY and other commands, in bytes; libzmq's are below 400.
	maxHandshake = 8 << 10
	maxCommand   = 4 << 10
	// maxFrames is how many frames a message may have. A request has two, and a few more behind proxies.
	maxFrames = 8
	// frameSlack is the size of the frames besides the envelope: routing ids, the delimiter, a topic.
	frameSlack = 4 << 10
	// maxPings is how many PINGs a peer may send within pingWindow, because each costs a reply. A libzmq peer sends at
	// most one heartbeat per second.
	maxPings, pingWindow = 100, 10 * time.Second
	// readBuffer is small because ten thousand connections have one; bodies bypass it. The handshake uses a larger one
	// briefly. Requests have the largest, because most fit into it.
	readBuffer, shakeBuffer, requestBuffer = 64, 512, 1024
)

// conn is the guarded connection. One goroutine reads; writes are serialised.
type conn struct {
	net.Conn
	buf          []byte // buf[at:end] was read from the network and is not used yet
	at, end      int
	follow       follower
	readTimeout  time.Duration
	writeTimeout time.Duration
	deadline     bool // a read deadline is set

	open bool // the handshake is over

	pings     int // PINGs since pingsFrom
	pingsFrom time.Time

	wmu sync.Mutex // guards the write side
}

// newConn performs the handshake as typ. The caller has set deadlines and closes c after an error. limit is the
// largest message afterwards. grant, if not nil, is called before a message grows beyond transport.FreeMessage,
// with its size so far.
func newConn(c net.Conn, typ zmq4.SocketType, server bool, limit int64, readTimeout, writeTimeout time.Duration, grant func(total int64) error) (*conn, error) {
	size := shakeBuffer
	if typ == zmq4.Router {
		size = requestBuffer
	}
	k := &conn{Conn: c, buf: make([]byte, size), readTimeout: readTimeout, writeTimeout: writeTimeout}
	k.follow = follower{skip: greetingSize, limit: maxHandshake, cmdLimit: maxHandshake}
	if err := k.shake(typ, server); err != nil {
		return nil, err
	}
	if typ != zmq4.Router {
		rest := k.buf[k.at:k.end]
		k.buf = make([]byte, max(readBuffer, len(rest)))
		k.at, k.end = 0, copy(k.buf, rest)
	}
	k.open = true
	k.follow.limit, k.follow.cmdLimit, k.follow.grant = limit, maxCommand, grant
	return k, nil
}

// await returns when bytes can be received. It waits between two messages, with as small a stack as possible.
func (k *conn) await() (err error) {
	if k.at < k.end {
		return nil
	}
	k.at = 0
	if k.end, err = k.Conn.Read(k.buf); k.end > 0 {
		return nil // an error is returned by the next call
	}
	return err
}

// recv returns the next message, or a command with its name and body.
func (k *conn) recv() (frames [][]byte, cmd string, err error) {
	if frames, cmd, err = k.readMessage(); err == nil && k.at == k.end {
		err = k.setDeadline()
	}
	return frames, cmd, err
}

// readMessage reads the frames of one message, or a command.
func (k *conn) readMessage() (frames [][]byte, cmd string, err error) {
	for {
		flags, body, err := k.readFrame()
		switch {
		case err == nil:
		case k.follow.err != nil:
			return nil, "", k.follow.err
		default:
			return nil, "", fmt.Errorf("zeromq: cannot receive: %w", err)
		}
		if flags&flagCommand != 0 {
			if len(body) == 0 || int(body[0]) >= len(body) {
				return nil, "", fmt.Errorf("zeromq: malformed command: %w", transport.ErrProtocol)
			}
			cmd, body = string(body[1:1+body[0]]), body[1+body[0]:]
			if len(body) > 0 {
				frames = [][]byte{body}
			}
			return frames, cmd, nil
		}
		if frames = append(frames, body); flags&flagMore == 0 {
			return frames, "", nil
		}
	}
}

// readFrame reads one frame. The follower checks its header before memory is allocated for its body.
func (k *conn) readFrame() (flags byte, body []byte, err error) {
	var hdr [9]byte
	if err := k.readFull(hdr[:2]); err != nil {
		return 0, nil, err
	}
	size := uint64(hdr[1])
	if hdr[0]&flagLong != 0 {
		if err := k.readFull(hdr[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(hdr[1:])
	}
	body, err = k.readBody(size)
	return hdr[0], body, err
}

// firstBody is how many bytes are allocated for a frame at first. A larger frame gets more as its bytes arrive: its
// length is only what the peer claims, and a client has no budget for a peer that it has not authenticated.
// guard: announced-memory TestAnnouncedMemory instead: const firstBody = 1 << 40
const firstBody = 1 << 20

// readBody reads the size bytes of a frame.
func (k *conn) readBody(size uint64) ([]byte, error) {
	body := make([]byte, min(size, firstBody))
	for at := 0; ; {
		if err := k.readFull(body[at:]); err != nil || uint64(len(body)) == size {
			return body, err
		}
		at = len(body)
		body = append(make([]byte, 0, min(size, 2*uint64(at))), body...)
		body = body[:cap(body)]
	}
}

// readFull fills p.
func (k *conn) readFull(p []byte) error {
	for begun := false; len(p) > 0; begun = true {
		n, err := k.Read(p)
		if err == io.EOF && begun {
			err = io.ErrUnexpectedEOF
		}
		if p = p[n:]; err != nil && len(p) > 0 {
			return err
		}
	}
	return nil
}

// write sends bufs in one piece.
func (k *conn) write(bufs ...[]byte) error {
	k.wmu.Lock()
	defer k.wmu.Unlock()
	if err := serve.Write(k.Conn, k.writeTimeout, bufs...); err != nil {
		return fmt.Errorf("zeromq: cannot send: %w", err)
	}
	return nil
}

// countPong returns the reply to a PING, or an error if the peer sent too many.
func (k *conn) countPong(ping [][]byte) ([]byte, error) {
	if now := time.Now(); now.Sub(k.pingsFrom) > pingWindow {
		k.pings, k.pingsFrom = 0, now
	}
	// guard: ping-flood TestPingFlood
	if k.pings++; k.pings > maxPings {
		return nil, fmt.Errorf("zeromq: more than %d PINGs in %v: %w", maxPings, pingWindow, transport.ErrProtocol)
	}
	return pong(ping), nil
}

// pong returns the reply to a PING, whose body is a time to live of two bytes and a context to send back.
func pong(ping [][]byte) []byte {
	body := []byte("\x04PONG")
	if len(ping) == 1 && len(ping[0]) > 2 {
		body = append(body, ping[0][2:min(len(ping[0]), 2+16)]...)
	}
	return append([]byte{flagCommand, byte(len(body))}, body...)
}

// Read reads within the limits. Callers request exactly the bytes they need, so a Read never crosses a frame
// boundary.
func (k *conn) Read(p []byte) (n int, err error) {
	if k.at == k.end {
		if k.open {
			if err := k.setDeadline(); err != nil {
				return 0, err
			}
		}
		if len(p) >= len(k.buf) {
			n, err = k.Conn.Read(p)
			return k.followed(p[:n], err)
		}
		k.at = 0
		if k.end, err = k.Conn.Read(k.buf); k.end == 0 {
			return 0, err
		}
	}
	n = copy(p, k.buf[k.at:k.end])
	k.at += n
	return k.followed(p[:n], nil)
}

// followed lets the follower check bytes before the caller sees them.
func (k *conn) followed(b []byte, err error) (int, error) {
	if ferr := k.follow.feed(b); ferr != nil {
		return 0, ferr
	}
	return len(b), err
}

// setDeadline removes the deadline of an idle connection. A message that has begun may pause for readTimeout.
func (k *conn) setDeadline() error {
	if k.follow.idle() {
		if !k.deadline {
			return nil
		}
		k.deadline = false
		return k.SetReadDeadline(time.Time{})
	}
	k.deadline = true
	return k.SetReadDeadline(time.Now().Add(k.readTimeout))
}

// Frame flags of ZMTP 3.0.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// appendHeader appends the header of a frame of n bytes.
func appendHeader(b []byte, flags byte, n int) []byte {
	if n <= 255 {
		return append(b, flags, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(n))
}

// appendFrame appends a whole frame.
func appendFrame(b []byte, flags byte, body []byte) []byte {
	return append(appendHeader(b, flags, len(body)), body...)
}

// A follower follows a ZMTP stream and refuses a frame before the reader allocates memory for it.
type follower struct {
	limit    int64                   // bytes of all frames of one message
	cmdLimit int64                   // bytes of a command
	grant    func(total int64) error // called if a message exceeds transport.FreeMessage

	skip   uint64 // bytes of the greeting or a body that are still to come
	hdr    [9]byte
	n      int // how many bytes of hdr are set
	more   bool
	frames int // of the current message
	total  int64
	err    error
}

// idle reports whether the stream is between two messages.
func (f *follower) idle() bool { return f.skip == 0 && f.n == 0 && !f.more }

// feed checks the next bytes of the stream. After an error it always returns that error.
func (f *follower) feed(b []byte) error {
	for len(b) > 0 && f.err == nil {
		if f.skip > 0 {
			k := min(uint64(len(b)), f.skip)
			f.skip -= k
			b = b[k:]
			continue
		}
		f.hdr[f.n] = b[0]
		f.n++
		b = b[1:]
		if f.n == 2 && f.hdr[0]&flagLong == 0 || f.n == len(f.hdr) {
			f.err = f.checkFrame()
			f.n = 0
		}
	}
	return f.err
}

// checkFrame checks a complete header.
func (f *follower) checkFrame() error {
	flags := f.hdr[0]
	if flags&^(flagMore|flagLong|flagCommand) != 0 {
		return fmt.Errorf("zeromq: frame flags %#x: %w", flags, transport.ErrProtocol)
	}
	size := uint64(f.hdr[1])
	if flags&flagLong != 0 {
		size = binary.BigEndian.Uint64(f.hdr[1:])
	}
	first := !f.more
	if first {
		f.frames, f.total = 0, 0
	}
	f.more = flags&flagMore != 0
	limit := f.limit
	if flags&flagCommand != 0 {
		if !first || f.more {
			return fmt.Errorf("zeromq: command inside of a message: %w", transport.ErrProtocol)
		}
		limit = f.cmdLimit
	}
	if f.frames++; f.frames > maxFrames {
		return fmt.Errorf("zeromq: message of more than %d frames: %w", maxFrames, transport.ErrTooBig)
	}
	if size > uint64(limit) || f.total+int64(size) > limit {
		return fmt.Errorf("zeromq: message of %d bytes or more exceeds %d: %w", size, limit, transport.ErrTooBig)
	}
	f.total += int64(size)
	// guard: half-messages TestHalfMessagesMemory
	if f.grant != nil && f.total > transport.FreeMessage {
		if err := f.grant(f.total); err != nil {
			return err
		}
	}
	f.skip = size
	return nil
}
