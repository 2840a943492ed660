package tcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

var impl = transporttest.Impl{Listen: Listen, Dialer: New(), Topics: true, Presence: true}

func TestSuite(t *testing.T) { transporttest.Run(t, impl) }

// hostile are byte streams that no peer should send.
var hostile = map[string][]byte{
	"not a map":               []byte("\x91\x01"),
	"text":                    []byte("\xa5hello"),
	"never msgpack":           []byte("\xc1"),
	"map of 4 G":              []byte("\xdf\xff\xff\xff\xff"),
	"map of 8 M":              []byte("\xdf\x00\x80\x00\x00"),
	"empty map":               []byte("\x80"),
	"no body":                 []byte("\x81\xa4head\x80"),
	"no head":                 []byte("\x81\xa4body\x80"),
	"odd key":                 []byte("\x82\x01\x80\xa4body\x80"),
	"key is a map":            []byte("\x82\x80\x80\xa4body\x80"),
	"long key":                append([]byte("\x82\xda\xff\xff"), bytes.Repeat([]byte("k"), 1<<16)...),
	"key of 4 G":              []byte("\x82\xdb\xff\xff\xff\xff"),
	"head of 4 G":             []byte("\x82\xa4head\xdb\xff\xff\xff\xff"),
	"head too big":            append([]byte("\x82\xa4head\xda\x20\x00"), make([]byte, 0x2000)...),
	"other field too big":     append([]byte("\x82\xa4else\xda\x20\x00"), make([]byte, 0x2000)...),
	"body of 4 G":             []byte("\x82\xa4head\x80\xa4body\xc6\xff\xff\xff\xff"),
	"body: array of 4 G":      []byte("\x82\xa4head\x80\xa4body\xdd\xff\xff\xff\xff"),
	"body: map of 2 G":        []byte("\x82\xa4head\x80\xa4body\xdf\x7f\xff\xff\xff"),
	"body: ext of 4 G":        []byte("\x82\xa4head\x80\xa4body\xc9\xff\xff\xff\xff\x01"),
	"body nested 5 million":   append([]byte("\x82\xa4head\x80\xa4body"), bytes.Repeat([]byte{0x91}, 5_000_000)...),
	"head nested":             append([]byte("\x82\xa4head"), bytes.Repeat([]byte{0x91}, 10_000)...),
	"arrays of arrays of 64k": append([]byte("\x82\xa4head\x80\xa4body"), bytes.Repeat([]byte{0xdc, 0xff, 0xff}, 600)...),
	"half a frame":            []byte("\x82\xa4head\x81\xa3mid\xa1x\xa4bo"),
	"half a length":           []byte("\x82\xa4head\x80\xa4body\xc6\x00"),
	"body is nil":             []byte("\x82\xa4head\x80\xa4body\xc0"),
	"head without mid":        []byte("\x82\xa4head\x80\xa4body\xa1x"),
	"mid is a number":         []byte("\x82\xa4head\x81\xa3mid\x07\xa4body\xa1x"),
	"mid unknown":             []byte("\x82\xa4head\x81\xa3mid\xa1x\xa4body\xa1x"),
	"many bodies":             []byte("\x88\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x\xa4body\xa1x"),
	"a thousand frames":       bytes.Repeat([]byte("\x82\xa4head\x80\xa4body\xa1x"), 1000),
}

func TestRecovery(t *testing.T) { transporttest.Recovery(t, impl, hostile) }

func TestAttack(t *testing.T) {
	streams := map[string][]byte{
		"silence":              nil,
		"http":                 []byte("GET / HTTP/1.1\r\n\r\n"),
		"a thousand presences": bytes.Repeat([]byte("\x82\xa4head\x80\xa4body\x80"), 1000),
		"requests in one go":   bytes.Repeat([]byte("\x82\xa4head\x81\xa3mid\xa1x\xa4body\xa1x"), 10_000),
	}
	for name, b := range hostile {
		streams[name] = b
	}
	transporttest.Attack(t, impl, streams)
}

func TestUnread(t *testing.T) {
	transporttest.Unread(t, impl, append([]byte("\x82\xa4head\x80\xa4body"), transporttest.Pack("big")...))
}

// TestIdleMemory checks the memory budget of the server per idle connection, in bytes.
func TestIdleMemory(t *testing.T) {
	const budget = 8 << 10
	n := 2000
	if testing.Short() || raceEnabled {
		n = 200
	}
	got := transporttest.IdleMemory(t, impl, n, nil, nil)
	t.Logf("%d bytes per idle connection, both ends in this process", got)
	if got > budget && !raceEnabled {
		t.Errorf("%d bytes per idle connection, want at most %d", got, budget)
	}
}

// TestPublishForms: 3006 sends the envelope as a map, later lines as bytes in a bin.
func TestPublishForms(t *testing.T) {
	transporttest.NoLeaks(t)
	ln := transporttest.Listener(t)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("\x82\xa4head\x80\xa4body\x81\xa3enc\xa3aes" + "\x82\xa4body\xc4\x09\x81\xa3enc\xa3aes\xa4head\x80" + "\x82\xa4head\x80\xa4body\xa9\x81\xa3enc\xa3aes"))
		_, _ = io.Copy(io.Discard, c)
	}()
	sub := impl.NewSubscriber(t, nil, func(o *transport.ClientOptions) { o.PublishAddr = ln.Addr().String() })
	for range 3 {
		if got := transporttest.Receive(t, sub); string(got) != "\x81\xa3enc\xa3aes" {
			t.Errorf("got %q", got)
		}
	}
}

// TestFrames checks the bytes: the header is returned unchanged, the body is not decoded, and publishes are bin.
func TestFrames(t *testing.T) {
	transporttest.NoLeaks(t)
	s := impl.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(_ context.Context, _ string, body []byte) []byte { return append([]byte{0x92, 0x01}, body...) }
	})
	for _, c := range []struct {
		addr       net.Addr
		send, want string
	}{
		{s.RequestAddr(), "\x82\xc4\x04body\x81\xa1a\xc0\xa4head\x82\xc4\x03mid\xc4\x02id\xa1z\x93\x01\x02\x03",
			"\x82\xa4head\x82\xc4\x03mid\xc4\x02id\xa1z\x93\x01\x02\x03\xa4body\x92\x01\x81\xa1a\xc0"},
		{s.PublishAddr(), "", "\x82\xa4head\x80\xa4body\xc4\x03\xa2hi"},
	} {
		conn, err := net.Dial("tcp", c.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(c.send)); err != nil {
			t.Fatal(err)
		}
		if c.send == "" {
			transporttest.WaitSubscribers(t, s, 1)
			if err := s.Publish([]byte("\xa2hi"), nil); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len(c.want))
		_ = conn.SetReadDeadline(time.Now().Add(transporttest.Patience))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
			t.Errorf("got %q, %v; want %q", got, err, c.want)
		}
	}
}

// TestDeadPath: after a request without a reply, the next request uses a new connection.
func TestDeadPath(t *testing.T) {
	transporttest.NoLeaks(t)
	ln := transporttest.Listener(t)
	conns := make(chan net.Conn, 10)
	go func() {
		defer close(conns)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	r := impl.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = ln.Addr().String() })
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := r.Request(ctx, transporttest.Pack("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		cancel()
		c := <-conns
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Error(err) // the client has closed it
		}
		c.Close()
	}
	ln.Close()
}

func FuzzFrames(f *testing.F) {
	for _, b := range hostile {
		if len(b) < 1<<16 {
			f.Add(b)
		}
	}
	f.Add([]byte("\x82\xa4head\x81\xa3mid\xd9\x24aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\xa4body\x83\xa3enc\xa3aes\xa4load\xc4\x02hi\xa7version\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		r := &reader{r: bufio.NewReaderSize(bytes.NewReader(b), 16), max: limit}
		for {
			fr, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, transport.ErrTooBig) && !errors.Is(err, transport.ErrProtocol) {
					t.Fatalf("unexpected error %v", err)
				}
				return
			}
			if len(fr.head) > maxHead || len(fr.body) > limit {
				t.Fatalf("head of %d and body of %d bytes", len(fr.head), len(fr.body))
			}
			// A part of a frame is one whole value, and survives being framed again.
			if fr.head == nil {
				continue
			}
			messageID(fr.head)
			two := &reader{r: bufio.NewReaderSize(bytes.NewReader(append(frameHead(fr.head), fr.body...)), 16), max: limit}
			back, err := two.next()
			if err != nil || !bytes.Equal(back.head, fr.head) || !bytes.Equal(back.body, fr.body) {
				t.Fatalf("%q / %q came back as %q / %q, %v", fr.head, fr.body, back.head, back.body, err)
			}
			if v, err := payload.Unmarshal(fr.body); err == nil && v != nil {
				if _, isMapValue := v.(map[string]any); isMapValue != isMap(fr.body) {
					if _, anyMap := v.(map[any]any); !anyMap {
						t.Fatalf("%q is %T, and isMap says %v", fr.body, v, isMap(fr.body))
					}
				}
				ext := fr.body[0] >= 0xc7 && fr.body[0] <= 0xc9 || fr.body[0] >= 0xd4 && fr.body[0] <= 0xd8
				if want, ok := payload.Bytes(v); ok && !ext {
					if got, ok := content(fr.body); !ok || !bytes.Equal(got, want) {
						t.Fatalf("content of %q is %q, want %q", fr.body, got, want)
					}
				}
			}
		}
	})
}

// TestFramesAreSmall: a frame has one body and, besides it, at most maxHead bytes in all fields together. An unapproved peer pays for one
// frame, so it may not have the master read more of them in one.
func TestFramesAreSmall(t *testing.T) {
	text := func(n int) string { return "\xda" + string([]byte{byte(n >> 8), byte(n)}) + strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		frame string
		ok    bool
	}{
		"a small head":             {"\x82\xa4head" + text(2000) + "\xa4body" + text(60_000), true},
		"unknown fields":           {"\x84\xa4head\x80\xa1a" + text(1500) + "\xa1b" + text(1500) + "\xa4body" + text(60_000), true},
		"two bodies":               {"\x83\xa4head\x80\xa4body\xa1x\xa4body\xa1x", false},
		"two large bodies":         {"\x83\xa4head\x80\xa4body" + text(60_000) + "\xa4body" + text(60_000), false},
		"two heads":                {"\x83\xa4head" + text(2000) + "\xa4head" + text(2000) + "\xa4body\xa1x", true},
		"three heads":              {"\x84\xa4head" + text(2000) + "\xa4head" + text(2000) + "\xa4head" + text(2000) + "\xa4body\xa1x", false},
		"many unknown fields":      {"\x85\xa4head\x80\xa1a" + text(1500) + "\xa1b" + text(1500) + "\xa1c" + text(1500) + "\xa4body\xa1x", false},
		"long names":               {"\x83" + text(3000) + "\xc0" + text(3000) + "\xc0\xa4body\xa1x", false},
		"a body that is a name":    {"\x82\xa4head\x80" + text(5000) + "\xc0", false},
		"unknown fields of arrays": {"\x83\xa1a\xdc\x08\x00" + strings.Repeat("\x01", 2048) + "\xa1b\xdc\x08\x00" + strings.Repeat("\x01", 2048) + "\xa4body\xa1x", false},
	} {
		in := strings.NewReader(c.frame)
		r := &reader{r: bufio.NewReaderSize(in, 256), max: 1 << 20}
		if _, err := r.next(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		} else if read := len(c.frame) - in.Len(); !c.ok && read > 66<<10 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// TestFrameMemory: a request with one long text, like a return, is in memory only once while it is read.
func TestFrameMemory(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	body, err := payload.Marshal(payload.OrderedMap{{Key: "enc", Value: "aes"}, {Key: "load", Value: long}, {Key: "version", Value: 3}, {Key: "id", Value: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	in := append(frameHead(midHead("0123456789")), body...)
	r := &reader{r: bufio.NewReaderSize(bytes.NewReader(in), 256), max: 1 << 20}
	f, err := r.next()
	if err != nil || !bytes.Equal(f.body, body) {
		t.Fatalf("%d bytes of %d, %v", len(f.body), len(body), err)
	}
	if most := len(body) + 2*slack; cap(f.body) > most {
		t.Errorf("room for %d bytes, more than %d", cap(f.body), most)
	}
	var before, after runtime.MemStats
	const rounds = 100
	runtime.ReadMemStats(&before)
	for range rounds {
		r.r.Reset(bytes.NewReader(in))
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / rounds; each > uint64(len(in))+2<<10 {
		t.Errorf("%d bytes of memory for a frame of %d", each, len(in))
	}
}

func TestCrowd(t *testing.T) { transporttest.Crowd(t, impl, nil, nil) }
