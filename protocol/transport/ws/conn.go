// Package ws implements Salt's ws transport (3007 and later): WebSocket over HTTP/1.1 with any path.
//
//	request    one binary message on a connection of its own; so is the reply
//	publish    one binary message that holds a bin value that holds the packed envelope
//
// It is a separate package because it needs net/http. Python's aiohttp accepts no message of 4 MiB or more, so none
// is sent to Python peers; brine's peers are recognised by their User-Agent and Server headers.
//
// Salt's source: salt/transport/ws.py.
package ws

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
)

const (
	// maxPython is the largest message in bytes that aiohttp accepts by default.
	maxPython = 4<<20 - 1
	// maxUpgrade is the largest head of an HTTP request in bytes.
	maxUpgrade = 16 << 10
	// maxOverhead is how many bytes a peer may send within overheadWindow besides messages, and besides a byte for
	// each overheadPart bytes of messages. It bounds approved peers and masters too, which do not pay for frames.
	maxOverhead, overheadPart = 16 << 10, 16
	overheadWindow            = 10 * time.Second
	// agent identifies brine's peers, which accept larger messages than Python.
	agent = "brine"
)

// conn is a WebSocket on a stream with our deadlines.
type conn struct {
	*websocket.Conn
	stream *stream
	r      *bufio.Reader // what the WebSocket reads from
	early  bool          // bytes that came with the request may not be in r yet
	python bool          // the peer is Python: messages to it are limited to maxPython
}

// wait waits until a frame begins to arrive.
func (c *conn) wait() error {
	_, err := c.r.Peek(1)
	c.early = false
	return err
}

// empty reports whether all that was read from the network belongs to former frames.
func (c *conn) empty() bool { return !c.early && c.r.Buffered() == 0 }

// A stream is a connection with limits on how long a write, or a read within a message, may make no progress.
type stream struct {
	net.Conn
	readTimeout, writeTimeout time.Duration
	idleTimeout               time.Duration // between messages; 0 means none
	inside                    atomic.Bool

	// Only the reading goroutine uses the following fields.
	set       bool      // a read deadline is set
	window    time.Time // when the window of left began
	left      int64     // how many bytes besides messages may still come
	awaiting  int64     // how many bytes of a message receive waits for
	uncounted int64     // how many bytes came while receive waits
	frames    frames    // of a server's connection
	serving   bool      // within Session.Serve, where frames are paid as they are read

	// pay charges the peer for n frames and waits for earlier ones. If it returns false the connection has ended. nil on
	// the client side.
	pay func(n int) bool
}

// frames counts the frames in a stream of bytes that are to be paid for: all but the first one of each Session.Serve,
// for which the group charges a message.
type frames struct {
	due    int      // how many are not paid
	inside bool     // a Serve has its first frame and not its last one, which ends a message
	head   [10]byte // of the current frame, without its mask
	have   int      // how many bytes of head have come; 0 within the rest of a frame
	rest   uint64   // how many bytes of the mask and of the content are missing
}

// scan counts the frames that begin in p, the next bytes of the stream.
func (f *frames) scan(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			k := min(f.rest, uint64(len(p)))
			f.rest -= k
			p = p[k:]
			continue
		}
		if f.have == 0 {
			if f.inside {
				f.due++
			}
			f.inside = p[0]&0x80 == 0 || p[0]&0x0f >= 8 // not the end of a message
		}
		f.head[f.have] = p[0]
		f.have++
		p = p[1:]
		if f.have >= 2 {
			f.endHead()
		}
	}
}

// endHead ends the head of a frame if all of it has come.
func (f *frames) endHead() {
	size, length := 2, uint64(f.head[1]&0x7f)
	switch length {
	case 126:
		size, length = 4, uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		size, length = 10, binary.BigEndian.Uint64(f.head[2:])
	}
	if f.have < size {
		return
	}
	f.have, f.rest = 0, length
	if f.head[1]&0x80 != 0 {
		f.rest += 4
	}
}

// beginServe pays for frames that were read already, and has those that follow paid as they are read. Call it at the
// start of Session.Serve.
func (s *stream) beginServe() error {
	s.serving = true
	return s.payFrames()
}

// payFrames pays for the frames that were read. The library handles pings, pongs and fragments itself, each of which
// takes as much time as a message that is refused.
func (s *stream) payFrames() error {
	// One after the other: a charge for all would be cut at the longest wait.
	for ; s.frames.due > 0; s.frames.due-- {
		if !s.pay(1) {
			return net.ErrClosed
		}
	}
	return nil
}

// countMessage counts n bytes of a message, and the bytes that may come besides.
func (s *stream) countMessage(n int) { s.left += int64(n + n/overheadPart) }

func (s *stream) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(s.window) >= overheadWindow {
		// countMessage adds the bytes that came in the last window to left in this one.
		// guard: ping-flood TestOverheadOfLongReads instead: s.window, s.left = now, maxOverhead
		s.window, s.left = now, maxOverhead-s.uncounted
	}
	// guard: ping-flood TestOverhead
	if s.left+s.awaiting <= 0 {
		return 0, fmt.Errorf("ws: more than %d bytes besides messages in %v: %w", maxOverhead, overheadWindow,
			transport.ErrProtocol)
	}
	timeout := s.idleTimeout
	if s.inside.Load() {
		timeout = s.readTimeout
	}
	if timeout > 0 || s.set {
		var t time.Time
		if timeout > 0 {
			t = time.Now().Add(timeout)
		}
		s.set = timeout > 0
		if err := s.SetReadDeadline(t); err != nil {
			return 0, err
		}
	}
	n, err := s.Conn.Read(p)
	if s.inside.Load() && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the library takes io.EOF within a message for the end of the message
	}
	s.left -= int64(n)
	if s.awaiting > 0 {
		s.uncounted += int64(n)
	}
	if s.pay == nil {
		return n, err
	}
	s.frames.scan(p[:n])
	if s.serving {
		if unpaid := s.payFrames(); unpaid != nil {
			return n, unpaid
		}
	}
	return n, err
}

func (s *stream) Write(p []byte) (int, error) {
	if err := serve.Write(s.Conn, s.writeTimeout, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// receive reads one binary message of at most limit bytes and grows its buffer as bytes arrive. grant, if not nil, is
// called before the message exceeds transport.FreeMessage.
func (c *conn) receive(limit int64, grant func(total int64) error) ([]byte, error) {
	typ, r, err := c.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	c.stream.inside.Store(true)
	defer c.stream.inside.Store(false)
	if typ != websocket.MessageBinary {
		return nil, fmt.Errorf("ws: message is not binary: %w", transport.ErrProtocol)
	}
	buf := make([]byte, 0, transport.FreeMessage)
	for {
		c.stream.awaiting = int64(cap(buf) - len(buf))
		n, err := r.Read(buf[len(buf):cap(buf)])
		c.stream.awaiting, c.stream.uncounted = 0, 0
		c.stream.countMessage(n)
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, fmt.Errorf("ws: message of more than %d bytes: %w", limit, transport.ErrTooBig)
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) < cap(buf) {
			continue
		}
		size := min(int64(2*cap(buf)), limit+1)
		if grant != nil && size > transport.FreeMessage {
			if err := grant(size); err != nil {
				return nil, err
			}
		}
		buf = append(make([]byte, 0, size), buf...)
	}
}

// send writes one binary message.
func (c *conn) send(b []byte) error {
	if c.python && len(b) > maxPython {
		return fmt.Errorf("ws: message of %d bytes, and Python peers take no more than %d: %w", len(b), maxPython, transport.ErrTooBig)
	}
	if err := c.Conn.Write(context.Background(), websocket.MessageBinary, b); err != nil {
		return fmt.Errorf("ws: cannot send: %w", err)
	}
	return nil
}

// Close closes the connection without a closing handshake, in which a silent peer could keep it open.
func (c *conn) Close() error {
	c.stream.Conn.Close()
	return c.CloseNow()
}

// upgradeConn upgrades a new server connection to WebSocket. The caller has set a deadline. pay is called with a number
// of frames, before they are handled; if it returns false the connection fails.
func upgradeConn(c net.Conn, readTimeout, writeTimeout time.Duration, pay func(n int) bool) (*conn, error) {
	br := bufio.NewReaderSize(io.LimitReader(c, maxUpgrade), 1024)
	r, err := http.ReadRequest(br)
	if err != nil {
		return nil, fmt.Errorf("ws: cannot read request: %w", err)
	}
	s := &stream{Conn: c, readTimeout: readTimeout, writeTimeout: writeTimeout, pay: pay}
	w := &response{stream: s, r: br, header: make(http.Header)}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("ws: %w: %w", err, transport.ErrProtocol)
	}
	ws.SetReadLimit(-1) // receive has its own limit
	return &conn{Conn: ws, stream: s, r: br, early: w.early, python: !strings.HasPrefix(r.UserAgent(), agent)}, nil
}

// response is the http.ResponseWriter of one upgrade. It avoids the server of net/http, which has its own accept loop
// and limits.
type response struct {
	stream  *stream
	r       *bufio.Reader
	header  http.Header
	started bool
	early   bool // bytes of frames came with the request
	err     error
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.started {
		return
	}
	w.started = true
	w.header.Set("Server", agent)
	if status != http.StatusSwitchingProtocols {
		w.header.Set("Connection", "close")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = w.header.Write(&b) // a Builder never fails
	b.WriteString("\r\n")
	_, w.err = w.stream.Write([]byte(b.String()))
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.err != nil {
		return 0, w.err
	}
	return w.stream.Write(p)
}

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.err != nil {
		return nil, nil, w.err
	}
	early, _ := w.r.Peek(w.r.Buffered()) // what is buffered cannot fail
	w.early = len(early) > 0
	w.stream.frames.scan(early)
	return w.stream, bufio.NewReadWriter(w.r, bufio.NewWriterSize(w.stream, 1024)), nil
}
