package ws

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/internal/serve"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

var impl = transporttest.Impl{Listen: Listen, Dialer: New()}

func TestSuite(t *testing.T) { transporttest.Run(t, impl) }

const upgrade101 = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

// hostile are responses that no server should send.
var hostile = map[string][]byte{
	"status 200":       []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
	"status 500":       []byte("HTTP/1.1 500 Oh\r\n\r\n"),
	"redirect":         []byte("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
	"wrong accept key": []byte(upgrade101 + "Sec-WebSocket-Accept: x\r\n\r\n\x82\x01x"),
	"endless head":     []byte(upgrade101 + "X: " + strings.Repeat("x", 1<<20)),
	"endless body":     []byte("HTTP/1.1 404 Not Found\r\n\r\n" + strings.Repeat("x", 1<<20)),
}

func TestRecovery(t *testing.T) { transporttest.Recovery(t, impl, hostile) }

const upgradeGet = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// masked returns a client's frame with a mask of zeros.
func masked(first byte, body []byte) []byte {
	b := []byte{first, 0x80 | 127}
	b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	return append(append(b, 0, 0, 0, 0), body...)
}

func TestAttack(t *testing.T) {
	streams := map[string][]byte{
		"silence":             nil,
		"half a request":      []byte("GET / HT"),
		"not http":            []byte("\x82\xa4head\x80\xa4body\xa1x"),
		"http without socket": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"http/1.0":            []byte("GET / HTTP/1.0\r\n\r\n"),
		"http/2":              []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		"post":                []byte("POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 9999999999\r\n\r\n"),
		"endless head":        []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20)),
		"endless headers":     []byte("GET / HTTP/1.1\r\n" + strings.Repeat("X: x\r\n", 1<<18)),
		"other site":          []byte(upgradeGet + "Origin: http://elsewhere.example.com\r\n\r\n"),
		"bad key":             []byte(strings.Replace(upgradeGet, "AAAA==", "A", 1) + "\r\n"),
	}
	for name, frames := range map[string][]byte{
		"not masked":                  []byte("\x82\x01x"),
		"length 2^63":                 []byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"),
		"length 2^62":                 []byte("\x82\xff\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		"length 8 GiB":                []byte("\x82\xff\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"),
		"text":                        masked(0x81, []byte("close")),
		"reserved bits":               masked(0xf2, []byte("x")),
		"reserved opcode":             masked(0x8f, []byte("x")),
		"long ping":                   masked(0x89, make([]byte, 200)),
		"ping in fragments":           masked(0x09, []byte("x")),
		"pings":                       bytes.Repeat([]byte("\x89\x80\x00\x00\x00\x00"), 10_000),
		"continuation of nothing":     masked(0x80, []byte("x")),
		"message inside of a message": append(masked(0x02, []byte("x")), masked(0x82, []byte("y"))...),
		"fragments without end":       append(masked(0x02, nil), bytes.Repeat(masked(0x00, make([]byte, 1000)), 20_000)...),
		"empty fragments":             append(masked(0x02, nil), bytes.Repeat(masked(0x00, nil), 20_000)...),
		"empty message":               masked(0x82, nil),
		"too big":                     masked(0x82, make([]byte, 5<<20)),
		"half a message":              masked(0x82, make([]byte, 1000))[:500],
		"close":                       masked(0x88, []byte("\x03\xe8bye")),
		"close with one byte":         masked(0x88, []byte("\x03")),
	} {
		streams["upgraded: "+name] = append([]byte(upgradeGet+"\r\n"), frames...)
	}
	transporttest.Attack(t, impl, streams)
}

func TestUnread(t *testing.T) {
	transporttest.Unread(t, impl, append([]byte(upgradeGet+"User-Agent: brine\r\n\r\n"), masked(0x82, transporttest.Pack("big"))...))
}

// TestIdleMemory checks the memory budget of the server per idle connection, in bytes.
func TestIdleMemory(t *testing.T) {
	const budget = 16 << 10
	n := 2000
	if testing.Short() || raceEnabled {
		n = 200
	}
	got := transporttest.IdleMemory(t, impl, n, []byte(upgradeGet+"\r\n"), []byte(upgradeGet+"\r\n"))
	t.Logf("%d bytes per idle connection, both ends in this process", got)
	if got > budget && !raceEnabled {
		t.Errorf("%d bytes per idle connection, want at most %d", got, budget)
	}
}

// TestPythonLimit: no message of 4 MiB or more is sent to a peer that is not brine, in either direction.
func TestPythonLimit(t *testing.T) {
	transporttest.NoLeaks(t)
	big := transporttest.Pack(strings.Repeat("x", 4<<20))
	log, logged := transporttest.Logs()
	s := impl.StartServer(t, func(o *transport.ServerOptions) {
		o.Log = log
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			if transporttest.Unpack(body) == "big" {
				return big
			}
			return transporttest.Echo(ctx, peer, body)
		}
	})
	dial := func(addr net.Addr) *websocket.Conn {
		c, _, err := websocket.Dial(t.Context(), "http://"+addr.String(), &websocket.DialOptions{HTTPHeader: http.Header{"User-Agent": {"Python/3.11 aiohttp/3.9"}}})
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadLimit(-1)
		t.Cleanup(func() { c.CloseNow() })
		return c
	}
	c := dial(s.RequestAddr())
	if err := c.Write(t.Context(), websocket.MessageBinary, transporttest.Pack("big")); err != nil {
		t.Fatal(err)
	}
	if _, b, err := c.Read(t.Context()); err == nil {
		t.Errorf("got a reply of %d bytes", len(b))
	}
	transporttest.Eventually(t, "reason in the log", func() bool { return strings.Contains(logged(), "Python peers") })

	sub := dial(s.PublishAddr())
	transporttest.WaitSubscribers(t, s, 1)
	if err := s.Publish(big, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish([]byte("\xa2hi"), nil); err != nil {
		t.Fatal(err)
	}
	if _, b, err := sub.Read(t.Context()); err != nil || string(b) != "\xc6\x00\x00\x00\x03\xa2hi" {
		t.Errorf("got %.20q, %v", b, err)
	}

	// A Python server is recognised by its Server header.
	ln := transporttest.Listener(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(c, "%sServer: Python/3.11 aiohttp/3.9\r\nSec-WebSocket-Accept: %s\r\n\r\n", upgrade101, base64.StdEncoding.EncodeToString(sum[:]))
		if n, _ := io.Copy(io.Discard, c); n > 1000 {
			t.Errorf("a Python server was sent %d bytes", n)
		}
	}()
	r := impl.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = ln.Addr().String() })
	if _, err := r.Request(t.Context(), big); !errors.Is(err, transport.ErrTooBig) {
		t.Errorf("error %v, want ErrTooBig", err)
	}
	<-done
}

// TestPublishForm: a publish that is not packed bytes ends the connection; a str is accepted like a bin.
func TestPublishForm(t *testing.T) {
	for in, want := range map[string]string{
		"\xc4\x02\xa1x": "\xa1x", "\xc5\x00\x02\xa1x": "\xa1x", "\xc6\x00\x00\x00\x02\xa1x": "\xa1x", "\xa2\xa1x": "\xa1x", "\xd9\x02\xa1x": "\xa1x",
		"": "", "\xc4": "", "\xc6\x00": "", "\xc4\x03\xa1x": "", "\xc4\x01\xa1x": "", "\x80": "", "\x93\x01\x02\x03": "",
	} {
		b, err := unpackBin([]byte(in))
		if string(b) != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", in, b, err, want)
		}
	}
}

func TestCrowd(t *testing.T) {
	transporttest.Crowd(t, impl, []byte(upgradeGet+"\r\n"), []byte(upgradeGet+"\r\n"))
}

// endless repeats a frame, and counts how many bytes of them were read.
type endless struct {
	frame []byte
	read  int
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.read > 10<<20 {
		return 0, io.EOF
	}
	for n < len(p) {
		k := copy(p[n:], e.frame[e.read%len(e.frame):])
		n += k
		e.read += k
	}
	return n, nil
}

// TestOverhead: a peer that sends frames without contents is not served for long, on either side. Messages may have as many fragments as
// they like.
func TestOverhead(t *testing.T) {
	request := strings.NewReader(upgradeGet + "\r\n")
	for name, frame := range map[string]string{"pings": "\x89\x80\x00\x00\x00\x00", "pongs": "\x8a\x80\x00\x00\x00\x00", "empty fragments": "\x00\x80\x00\x00\x00\x00"} {
		flood := &endless{frame: []byte(frame)}
		first := ""
		if name == "empty fragments" {
			first = "\x02\x85\x00\x00\x00\x00hello"
		}
		_, _ = request.Seek(0, io.SeekStart)
		c, err := upgradeConn(&recorded{r: io.MultiReader(request, strings.NewReader(first), flood)}, time.Minute, time.Minute, free)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.receive(1<<20, nil)
		if !errors.Is(err, transport.ErrProtocol) || flood.read > 2*maxOverhead {
			t.Errorf("%s: %d bytes were read, then %v", name, flood.read, err)
		}
		c.Close()
	}
	for _, size := range []int{100, 1000, 100_000} {
		var frames []byte
		whole := bytes.Repeat([]byte("x"), 4<<20)
		for part := range slices.Chunk(whole, size) {
			first := byte(0)
			if len(frames) == 0 {
				first = 2
			}
			frames = append(frames, small(first, part)...)
		}
		frames = append(frames, small(0x80, nil)...)
		_, _ = request.Seek(0, io.SeekStart)
		c, err := upgradeConn(&recorded{r: io.MultiReader(request, bytes.NewReader(frames))}, time.Minute, time.Minute, free)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.receive(8<<20, nil); err != nil || !bytes.Equal(b, whole) {
			t.Errorf("fragments of %d bytes: %d bytes, %v", size, len(b), err)
		}
		c.Close()
	}
}

// TestHalfMessages: a message whose end is missing is an error, wherever the connection ended.
func TestHalfMessages(t *testing.T) {
	whole := append(small(2, bytes.Repeat([]byte("x"), 3*transport.FreeMessage)), small(0x80, []byte("hello"))...)
	for n := range len(whole) + 1 {
		c, err := upgradeConn(&recorded{r: io.MultiReader(strings.NewReader(upgradeGet+"\r\n"), bytes.NewReader(whole[:n]))}, time.Minute, time.Minute, free)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.receive(1<<20, nil); (err == nil) != (n == len(whole)) {
			t.Errorf("after %d of %d bytes: %d bytes, %v", n, len(whole), len(b), err)
		}
		c.Close()
	}
}

// small is like masked, with as short a head as clients send.
func small(first byte, body []byte) []byte {
	var b []byte
	switch n := len(body); {
	case n < 126:
		b = []byte{first, 0x80 | byte(n)}
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(n))
	default:
		b = binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), body...)
}

// free is for connections whose frames cost nothing.
func free(int) bool { return true }

// piped is one end of a net.Pipe that has an address.
type piped struct{ net.Conn }

func (piped) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

// single is a listener with one connection.
type single struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *single) Close() error { close(l.closed); return nil }
func (*single) Addr() net.Addr { return &net.TCPAddr{} }

// TestFramesArePaid: each frame of an unapproved connection is charged to its address once, whether it carries a request, a part of one, or
// nothing. Frames of an approved connection cost nothing.
func TestFramesArePaid(t *testing.T) {
	const ping, pong, empty = "\x89\x80\x00\x00\x00\x00", "\x8a\x80\x00\x00\x00\x00", "\x00\x80\x00\x00\x00\x00"
	const price = 400 * time.Microsecond // 10 times the processor time for a message
	hello := "\x82\x85\x00\x00\x00\x00hello"
	repeat := func(frame string, n int) []string { return slices.Repeat([]string{frame}, n) }
	for name, c := range map[string]struct {
		frames []string
		reply  string // what the server sends
		paid   int    // how many frames are paid before its last byte
	}{
		"one request":                   {[]string{hello}, "\x82\x05hello", 0},
		"two requests":                  {[]string{hello, hello}, "\x82\x05hello\x82\x05hello", 1},
		"one ping":                      {[]string{ping}, "\x8a\x00", 0},
		"pings":                         {repeat(ping, 500), strings.Repeat("\x8a\x00", 500), 499},
		"a ping, then a request":        {[]string{ping, hello}, "\x8a\x00\x82\x05hello", 1},
		"pongs, then a request":         {append(repeat(pong, 500), hello), "\x82\x05hello", 500},
		"a request of empty fragments":  {append(append([]string{"\x02\x80\x00\x00\x00\x00"}, repeat(empty, 500)...), "\x80\x85\x00\x00\x00\x00hello"), "\x82\x05hello", 501},
		"a request of short fragments":  {append(append([]string{"\x02\x81\x00\x00\x00\x00x"}, repeat("\x00\x81\x00\x00\x00\x00x", 500)...), "\x80\x80\x00\x00\x00\x00"), "\x82\x7e\x01\xf5" + strings.Repeat("x", 501), 501},
		"pongs within a request":        {append(append([]string{"\x02\x81\x00\x00\x00\x00x"}, repeat(pong, 500)...), "\x80\x80\x00\x00\x00\x00"), "\x82\x01x", 501},
		"a pong within a large request": {[]string{string(small(2, bytes.Repeat([]byte("x"), 4000))), pong, "\x80\x80\x00\x00\x00\x00"}, "\x82\x7e\x0f\xa0" + strings.Repeat("x", 4000), 2},
	} {
		for _, how := range []string{"one after another", "at once", "with the upgrade", "subscriber", "approved"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				if how == "subscriber" && strings.Contains(name, "request") {
					t.Skip("a subscriber sends no requests")
				}
				want := time.Duration(c.paid) * price
				switch all := strings.Join(c.frames, ""); {
				case how == "approved":
					want = 0
				case how != "one after another" && how != "subscriber" && len(all) > 1000:
					want = -want // what is read together is paid together, before the next read
				}
				frames := c.frames
				if how == "at once" || how == "with the upgrade" {
					frames = []string{strings.Join(frames, "")}
				}
				synctest.Test(t, func(t *testing.T) {
					checkPaid(t, how, frames, c.reply, want)
				})
			})
		}
	}
}

// checkPaid checks how long a server takes to send a reply to frames, each of which is one write. A negative time is the most that frames
// which are read together may take; then one more ping is answered after all of them are paid.
func checkPaid(t *testing.T, how string, frames []string, reply string, want time.Duration) {
	o, err := transport.ServerOptions{Handler: func(_ context.Context, _ string, body []byte) []byte { return body }}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	o.Subscriber = func(string, bool) {}
	s := &server{&serve.Base{Options: o, Group: serve.NewGroup(o), Roster: serve.NewRoster(nil)}}
	defer s.Group.Close()
	l := &single{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	accept := s.acceptRequests
	if how == "subscriber" {
		accept = s.acceptSubscriber
	}
	s.Group.Accept(l, true, func(c net.Conn) (serve.Session, error) {
		if how == "approved" {
			s.Group.Vouch(c)
		}
		return accept(c)
	}, 0)
	client, far := net.Pipe()
	defer client.Close()
	l.conns <- piped{far}
	head := upgradeGet + "User-Agent: brine\r\n\r\n"
	if how == "with the upgrade" {
		head += frames[0]
		frames = nil
	}
	begin := time.Now()
	go func() {
		for _, f := range append([]string{head}, frames...) {
			_, _ = io.WriteString(client, f)
		}
	}()
	r := bufio.NewReader(client)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	got := make([]byte, len(reply))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != reply {
		t.Fatalf("%.40q, %v", got, err)
	}
	took := time.Since(begin)
	if want >= 0 && took != want || want < 0 && took > -want {
		t.Errorf("took %v, want %v", took, want)
	}
	if want >= 0 {
		return
	}
	go func() { _, _ = io.WriteString(client, "\x89\x80\x00\x00\x00\x00") }()
	if _, err := io.ReadFull(r, got[:2]); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took != -want+400*time.Microsecond {
		t.Errorf("the next ping took %v, want %v", took, -want+400*time.Microsecond)
	}
}

// paced is a reader that waits before each part.
type paced struct{ parts [][]byte }

func (p *paced) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	if len(p.parts[0]) == 0 {
		time.Sleep(overheadWindow)
		p.parts = p.parts[1:]
		return p.Read(b)
	}
	n := copy(b, p.parts[0])
	if p.parts[0] = p.parts[0][n:]; len(p.parts[0]) == 0 {
		if p.parts = p.parts[1:]; len(p.parts) > 0 && len(p.parts[0]) == 0 {
			p.parts = p.parts[1:]
			time.Sleep(overheadWindow)
		}
	}
	return n, nil
}

// TestOverheadOfLongReads: bytes of a message that came before the window of the overhead began add nothing to what may come in it.
func TestOverheadOfLongReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 << 20
		whole := small(0x82, bytes.Repeat([]byte("x"), size))
		begun := whole[:len(whole)-1] // the window ends before the last byte
		flood := &endless{frame: []byte("\x89\x80\x00\x00\x00\x00")}
		c, err := upgradeConn(&recorded{r: io.MultiReader(strings.NewReader(upgradeGet+"\r\n"), &paced{[][]byte{begun, nil, whole[len(begun):]}}, flood)},
			time.Minute, time.Minute, free)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if b, err := c.receive(size, nil); err != nil || len(b) != size {
			t.Fatal(len(b), err)
		}
		_, err = c.receive(size, nil)
		if most := 2*maxOverhead + size/overheadPart; !errors.Is(err, transport.ErrProtocol) || flood.read > most {
			t.Errorf("%d bytes were read after the message, want at most %d, then %v", flood.read, most, err)
		}
	})
}
