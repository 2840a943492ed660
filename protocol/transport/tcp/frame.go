// Package tcp implements Salt's tcp transport: a stream of msgpack maps without length prefixes.
//
//	request    {head: {mid: uuid}, body: envelope}        body is a map, many requests per connection
//	reply      {head: {mid: uuid}, body: packed value}    in any order
//	presence   {head: {}, body: envelope}                 a minion names itself on the publish channel
//	publish    {head: {}, body: bin}                      bin holds the packed envelope; 3006 sends a map
//
// Envelopes are not decoded here. A reader cuts frames at the boundaries of their values, so a Handler or a
// Subscriber gets exactly the bytes that were sent. Without length prefixes it must walk through each value to find
// its end. It does so within limits for size and depth, and allocates memory only as bytes arrive.
//
// Salt's sources: salt/transport/tcp.py, salt/transport/frame.py.
package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

const (
	// maxHead is how many bytes a frame may have besides its body, in its head, names and unknown fields. Salt's head
	// holds one UUID.
	maxHead = 4 << 10
	// maxDepth is the nesting limit of values. Python packs at most 511 levels.
	maxDepth = 512
	// maxFields is how many entries a frame may have; Salt's have two.
	maxFields = 8
	// readBuffer is small because ten thousand connections have one; bodies bypass it. Subscribers send almost
	// nothing.
	readBuffer, subscriberBuffer = 256, 64
)

// frame is one {head, body}, both still packed.
type frame struct{ head, body []byte }

// A reader cuts a stream into frames. It allocates no more than what arrives.
type reader struct {
	r     *bufio.Reader           // nil while a request connection waits in a poller
	max   int64                   // bytes of a body
	grant func(total int64) error // called before a body grows beyond transport.FreeMessage; may be nil

	conn    net.Conn // nil means no deadlines
	timeout time.Duration
	inside  bool // within a frame
	set     bool // a deadline is set
	stack   []uint64
}

// newReader reads frames from c through a buffer of the given size. A frame that has begun may pause for timeout.
func newReader(c net.Conn, buffer int, max int64, timeout time.Duration, grant func(total int64) error) *reader {
	r := &reader{conn: c, max: max, timeout: timeout, grant: grant}
	r.r = bufio.NewReaderSize(deadlines{r}, buffer)
	return r
}

// deadlines reads from the connection, with a deadline inside frames and without one between them.
type deadlines struct{ *reader }

func (d deadlines) Read(p []byte) (int, error) {
	if d.inside || d.set {
		var t time.Time
		if d.inside {
			t = time.Now().Add(d.timeout)
		}
		d.set = d.inside
		if err := d.conn.SetReadDeadline(t); err != nil {
			return 0, err
		}
	}
	return d.conn.Read(p)
}

// wait returns when a frame begins. io.EOF means that the stream ended between two frames.
func (r *reader) wait() error {
	_, err := r.r.Peek(1)
	return err
}

// next reads one frame. io.EOF means that the stream ended between two frames.
func (r *reader) next() (f frame, err error) {
	if f, err = r.readFrame(); err != nil {
		return f, err
	}
	if r.inside = false; r.set && r.r.Buffered() == 0 { // the next frame may come at any time
		r.set = false
		err = r.conn.SetReadDeadline(time.Time{})
	}
	return f, err
}

// readFrame reads the map of one frame. Unknown fields are skipped. All but the body is within maxHead, and there is one
// body, because an unapproved peer pays for a frame and for a large body, not for more.
func (r *reader) readFrame() (f frame, err error) {
	c, err := r.r.ReadByte()
	if err != nil {
		return f, err
	}
	r.inside = true
	defer func() {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}()
	kind, n, err := r.token(c)
	if err != nil {
		return f, err
	}
	if kind != kindMap || n > maxFields {
		return f, fmt.Errorf("tcp: frame is not a small map: %w", transport.ErrProtocol)
	}
	left := int64(maxHead)
	// small reads a value besides the body.
	small := func() ([]byte, error) {
		b, err := r.value(left, false)
		// guard: repeated-bodies TestFramesAreSmall
		left -= int64(len(b))
		return b, err
	}
	for range n {
		key, err := small()
		if err != nil {
			return f, err
		}
		name, ok := content(key)
		if !ok {
			return f, fmt.Errorf("tcp: frame with a key that is not text: %w", transport.ErrProtocol)
		}
		switch string(name) {
		case "head":
			f.head, err = small()
		case "body":
			// guard: repeated-bodies TestFramesAreSmall
			if f.body != nil {
				return f, fmt.Errorf("tcp: frame with two bodies: %w", transport.ErrProtocol)
			}
			f.body, err = r.value(r.max, true)
		default:
			_, err = small()
		}
		if err != nil {
			return f, err
		}
	}
	if f.body == nil {
		return f, fmt.Errorf("tcp: frame without a body: %w", transport.ErrProtocol)
	}
	return f, nil
}

// value reads one whole value of at most limit bytes and returns its bytes. It keeps a stack instead of recursing, so
// that nested values do not grow the goroutine's stack.
func (r *reader) value(limit int64, body bool) ([]byte, error) {
	buf := make([]byte, 0, 64)
	r.stack = append(r.stack[:0], 1) // values still to come on each level
	for len(r.stack) > 0 {
		top := len(r.stack) - 1
		if r.stack[top] == 0 {
			r.stack = r.stack[:top]
			continue
		}
		r.stack[top]--
		c, err := r.r.ReadByte()
		if err != nil {
			return nil, err
		}
		start := len(buf)
		buf = append(buf, c)
		kind, n, err := r.tokenInto(&buf, c)
		if err != nil {
			return nil, err
		}
		least := n // how many bytes must follow at least
		if kind == kindMap {
			least, n = 2*n, 2*n
		}
		if int64(len(buf)) > limit || least > uint64(limit)-uint64(len(buf)) {
			return nil, fmt.Errorf("tcp: value of more than %d bytes: %w", limit, transport.ErrTooBig)
		}
		if body && r.grant != nil && int64(len(buf))+int64(least) > transport.FreeMessage {
			if err := r.grant(int64(len(buf)) + int64(least)); err != nil {
				return nil, err
			}
		}
		switch kind {
		case kindArray, kindMap:
			if len(r.stack) >= maxDepth {
				return nil, fmt.Errorf("tcp: value nested deeper than %d: %w", maxDepth, transport.ErrTooBig)
			}
			r.stack = append(r.stack, n)
		default:
			if start == 0 { // the whole value, so no spare capacity is needed
				buf, err = r.copyExact(buf, n)
			} else {
				buf, err = r.copyBytes(buf, n)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if cap(r.stack) > 32 {
		r.stack = nil
	}
	return buf, nil
}

// slack is the capacity reserved after a long string for the small values that follow it, so that they do not cause a
// copy of everything.
const slack = 512

// copyBytes appends the next n bytes and grows buf as they arrive. Up to transport.SmallMessage, the memory that any
// unauthenticated peer may use anyway, it grows buf at once.
func (r *reader) copyBytes(buf []byte, n uint64) ([]byte, error) {
	if n >= slack && n <= transport.SmallMessage-uint64(min(len(buf), transport.SmallMessage)) && int(n) > cap(buf)-len(buf) {
		buf = append(make([]byte, 0, len(buf)+int(n)+slack), buf...)
	}
	for n > 0 {
		k := int(min(n, uint64(max(4096, len(buf), cap(buf)-len(buf)))))
		buf = slices.Grow(buf, k)[:len(buf)+k]
		if _, err := io.ReadFull(r.r, buf[len(buf)-k:]); err != nil {
			return nil, err
		}
		n -= uint64(k)
	}
	return buf, nil
}

// copyExact is like copyBytes for the last bytes of a value of known size. Up to transport.SmallMessage it allocates
// only once.
func (r *reader) copyExact(buf []byte, n uint64) ([]byte, error) {
	if n <= transport.SmallMessage {
		buf = append(make([]byte, 0, len(buf)+int(n)), buf...)
	}
	return r.copyBytes(buf, n)
}

// Kinds of tokens: what follows the code and length of a value.
const (
	kindBytes = iota // n bytes
	kindArray        // n values
	kindMap          // n pairs
)

// token reads the length of a value with the code c.
func (r *reader) token(c byte) (kind int, n uint64, err error) {
	var buf []byte
	return r.tokenInto(&buf, c)
}

// tokenInto reads the length that follows the code c, appends its bytes to buf, and returns what comes next.
func (r *reader) tokenInto(buf *[]byte, c byte) (kind int, n uint64, err error) {
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		return kindBytes, 0, nil
	case c <= 0x8f:
		return kindMap, uint64(c & 0x0f), nil
	case c <= 0x9f:
		return kindArray, uint64(c & 0x0f), nil
	case c <= 0xbf:
		return kindBytes, uint64(c & 0x1f), nil
	case c == 0xc1:
		return 0, 0, fmt.Errorf("tcp: byte 0xc1 is not msgpack: %w", transport.ErrProtocol)
	case c >= 0xca && c <= 0xd3: // float32 float64 uint8… int8…
		return kindBytes, uint64([...]uint8{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[c-0xca]), nil
	case c >= 0xd4 && c <= 0xd8: // fixext: a type and the data
		return kindBytes, 1 + 1<<(c-0xd4), nil
	}
	size, kind, extra := 0, kindBytes, uint64(0)
	switch c {
	case 0xc4, 0xd9: // bin, str
		size = 1
	case 0xc5, 0xda:
		size = 2
	case 0xc6, 0xdb:
		size = 4
	case 0xc7, 0xc8, 0xc9: // ext: length, type, data
		size, extra = 1<<(c-0xc7), 1
	case 0xdc, 0xdd:
		size, kind = 2<<(c-0xdc), kindArray
	case 0xde, 0xdf:
		size, kind = 2<<(c-0xde), kindMap
	}
	var b [4]byte
	if _, err := io.ReadFull(r.r, b[4-size:]); err != nil {
		return 0, 0, err
	}
	*buf = append(*buf, b[4-size:]...)
	return kind, uint64(binary.BigEndian.Uint32(b[:])) + extra, nil
}

// content returns the content of a packed str or bin; b is one whole value.
func content(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	n := 0
	switch c := b[0]; {
	case c >= 0xa0 && c <= 0xbf:
		n = 1
	case c == 0xc4 || c == 0xd9:
		n = 2
	case c == 0xc5 || c == 0xda:
		n = 3
	case c == 0xc6 || c == 0xdb:
		n = 5
	default:
		return nil, false
	}
	return b[n:], true
}

// isMap reports whether the packed value b is a map.
func isMap(b []byte) bool {
	return len(b) > 0 && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf)
}

// frameHead returns the start of a frame with the packed header h; the packed body follows.
func frameHead(h []byte) []byte {
	b := make([]byte, 0, 16+len(h))
	b = append(b, "\x82\xa4head"...)
	b = append(b, h...)
	return append(b, "\xa4body"...)
}

// appendBin appends the code and the length of a bin of n bytes.
func appendBin(b []byte, n int) []byte {
	switch {
	case n < 1<<8:
		return append(b, 0xc4, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xc5), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
}

// emptyHead is a packed empty map, the header of publishes and presence frames.
var emptyHead = []byte{0x80}

// midHead returns the packed {mid: id}.
func midHead(id string) []byte {
	b := append([]byte("\x81\xa3mid\xd9"), byte(len(id)))
	return append(b, id...)
}

// messageID returns the message id in a packed header: the string under "mid".
func messageID(h []byte) (string, bool) {
	r := &reader{r: bufio.NewReaderSize(&sliceReader{h}, 16)}
	c, err := r.r.ReadByte()
	if err != nil {
		return "", false
	}
	kind, n, err := r.token(c)
	if err != nil || kind != kindMap {
		return "", false
	}
	for range n {
		k, err := r.value(maxHead, false)
		if err != nil {
			return "", false
		}
		v, err := r.value(maxHead, false)
		if err != nil {
			return "", false
		}
		if name, ok := content(k); ok && string(name) == "mid" {
			id, ok := content(v)
			return string(id), ok
		}
	}
	return "", false
}

// sliceReader reads from a slice.
type sliceReader struct{ b []byte }

func (s *sliceReader) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}
