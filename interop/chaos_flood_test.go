//go:build chaos && linux

package interop

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// strangerRole is the environment variable that makes this test program run as the generator of floods or as the
// sink.
const strangerRole = "BRINE_STRANGER"

// init runs the generator or the sink instead of the tests. It runs before TestMain, which would build the programs.
func init() {
	var err error
	switch role := os.Getenv(strangerRole); role {
	case "":
		return
	case "generator":
		err = generate(os.Stdin, os.Stdout)
	case "sink":
		err = sink(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("%s=%q is unknown", strangerRole, role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// flood is one way to attack a master without a key: connections that each send their bytes.
type flood struct {
	name      string
	transport string // "zeromq", "tcp", "ws", or "http", which the master of zeromq serves
	port      string // "request" or "publish", unless http
	local     bool   // the flood comes from a user of the master's host, not over a network
	// bytes returns what connection n sends. It is always the same for one n, so that a master and the sink receive
	// the same bytes.
	bytes  func(s *stranger, n int) []byte
	drip   time.Duration // after its bytes a connection sends one more this often; 0 for never
	held   bool          // a connection stays open until the peer closes it or the slice ends
	rate   int           // new connections per second at most; 0 for as many as half a core can open
	atOnce int           // open connections at most
	short  bool          // part of the short form
	budget budget
}

// order is an instruction to the generator for the next slice.
type order struct {
	Flood   string
	First   int     // number of the first connection
	Addr    string  // address of the master or the sink
	Source  string  // source address, or "" for any
	Sink    bool    // the peer is the sink: it sends nothing, and closes when it has read everything
	Seconds float64 // duration
	Rate    float64 // connections per second; 0 for the flood's own rate
}

// done is the generator's report about a slice.
type done struct {
	Conns   int     // opened connections
	Bytes   int64   // bytes that the peer's kernel accepted
	Refused int     // connections that could not be opened
	Parts   float64 // connections, each counted by the part of its bytes that was sent
	Seconds float64
	CPU     float64 // processor time of the generator in seconds
}

// stranger is the load generator, an unauthenticated peer.
type stranger struct {
	pub string // the key of its sign-ins
}

// generate runs the orders that it reads from in, one JSON value each, until in ends, and writes a report about each
// to out.
func generate(in io.Reader, out io.Writer) error {
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		return err
	}
	s := &stranger{pub: key.Public().Text()}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		f, ok := floodNamed(o.Flood)
		if !ok {
			return fmt.Errorf("no flood %q", o.Flood)
		}
		if err := answers.Encode(s.run(f, o)); err != nil {
			return err
		}
	}
}

// run runs one slice of a flood.
func (s *stranger) run(f flood, o order) done {
	rate := o.Rate
	if rate == 0 {
		rate = float64(f.rate)
	}
	begin, used := time.Now(), ownCPU()
	end := begin.Add(time.Duration(o.Seconds * float64(time.Second)))
	places := make(chan struct{}, f.atOnce)
	slice := &slice{s: s, f: f, o: o, end: end}
	var wg sync.WaitGroup
	n := 0
	for ; ; n++ {
		if rate > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		}
		select {
		case places <- struct{}{}:
		case <-time.After(time.Until(end)):
		}
		if !time.Now().Before(end) {
			break
		}
		number := o.First + n // n changes before the goroutine begins
		wg.Go(func() {
			slice.connection(number)
			<-places
		})
	}
	took := time.Since(begin)
	wg.Wait()
	return done{Conns: n, Bytes: slice.sent.Load(), Refused: int(slice.refused.Load()), Parts: float64(slice.parts.Load()) / whole, Seconds: took.Seconds(),
		CPU: (ownCPU() - used).Seconds()}
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are constant
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// slice is a running slice of a flood.
type slice struct {
	s   *stranger
	f   flood
	o   order
	end time.Time

	sent, parts atomic.Int64
	refused     atomic.Int32
}

// afterSlice is how long a connection that was opened in a slice may last after the slice's end.
const afterSlice = 500 * time.Millisecond

// connection runs one connection of a flood, from its opening to its end.
func (x *slice) connection(n int) {
	dialer := net.Dialer{Deadline: x.end.Add(afterSlice)}
	if x.o.Source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(x.o.Source)}
	}
	conn, err := dialer.Dial("tcp", x.o.Addr)
	if err != nil {
		x.refused.Add(1)
		return
	}
	defer conn.Close()
	c := conn.(*net.TCPConn)
	deadline := x.end.Add(afterSlice)
	if x.f.held {
		deadline = x.end
		_ = c.SetLinger(0) // without TIME_WAIT, so that no ports run out
	}
	_ = c.SetDeadline(deadline)
	b := x.f.bytes(x.s, n)
	sent := x.write(c, b)
	if x.parts.Add(int64(whole * (float64(sent) + 1) / (float64(len(b)) + 1))); sent < len(b) {
		return
	}
	if x.f.drip > 0 {
		go x.trickle(c)
	}
	// The sink sends nothing. A master closes a connection when it has answered what it read before the end of the
	// stream. For HTTP, the end of the stream would cancel the request.
	if !x.f.held && (x.o.Sink || x.f.transport != "http") {
		_ = c.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, c)
}

// whole is the value that a connection that sent all its bytes adds to parts.
const whole = 1e6

// write sends bytes and returns how many of them the peer's kernel accepted.
func (x *slice) write(c net.Conn, b []byte) int {
	n, _ := c.Write(b)
	x.sent.Add(int64(n))
	return n
}

// trickle sends a byte at intervals until the connection ends.
func (x *slice) trickle(c net.Conn) {
	for {
		time.Sleep(x.f.drip)
		if x.write(c, []byte{'x'}) == 0 {
			return
		}
	}
}

// sink listens on a port, prints it, and reads and discards everything that its peers send until in ends.
func sink(in io.Reader, out io.Writer) error {
	ln, err := net.Listen("tcp4", ":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	if _, err := fmt.Fprintln(out, ln.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// The bytes that connections send.

// greeting returns what a ZeroMQ peer sends before its first message.
func greeting(socket string) []byte {
	b := make([]byte, 64)
	b[0], b[9], b[10], b[11] = 0xff, 0x7f, 3, 1
	copy(b[12:], "NULL")
	body := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(byte(len(socket))) + socket + "\x08Identity\x00\x00\x00\x00"
	return zmtp(b, 4, []byte(body))
}

// zmtp appends a frame of ZeroMQ.
func zmtp(b []byte, flags byte, body []byte) []byte {
	if len(body) < 256 {
		b = append(b, flags, byte(len(body)))
	} else {
		b = binary.BigEndian.AppendUint64(append(b, flags|2), uint64(len(body)))
	}
	return append(b, body...)
}

// upgrade is what a WebSocket client sends before its first message.
const upgrade = "GET /ws HTTP/1.1\r\nHost: master\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"

// opening returns what a peer of a transport sends before its first message.
func opening(transport, port string) []byte {
	switch transport {
	case "zeromq":
		if port == "publish" {
			return zmtp(greeting("SUB"), 0, []byte{1})
		}
		return greeting("REQ")
	case "ws":
		return []byte(upgrade)
	}
	return nil
}

// framed wraps a request for a transport.
func framed(transport string, body []byte) []byte {
	switch transport {
	case "zeromq":
		return zmtp([]byte{1, 0}, 0, body)
	case "tcp":
		return append([]byte("\x82\xa4head\x81\xa3mid\x01\xa4body"), body...)
	}
	// A binary message. Its mask of zeros leaves the bytes unchanged.
	b := []byte{0x82}
	switch n := len(body); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), body...)
}

// requests returns the bytes of a connection with count requests, one after the other.
func requests(transport string, count int, body func(i int) []byte) []byte {
	b := opening(transport, "request")
	for i := range count {
		b = append(b, framed(transport, body(i))...)
	}
	return b
}

// inClear returns an unencrypted request.
func inClear(load map[string]any) []byte {
	b, err := payload.Marshal(map[string]any{"enc": "clear", "version": protocol.Version, "load": load})
	if err != nil {
		panic(err) // the loads are constant
	}
	return b
}

// random returns the random source of connection n.
func random(n int) *rand.Rand { return rand.New(rand.NewPCG(15, uint64(n))) }

// mutated changes bytes in up to four places: one byte is replaced, some bytes are left out, or some are repeated.
func mutated(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b))
		till := min(len(b), at+1+r.IntN(8))
		switch r.IntN(4) {
		case 0, 1:
			b[at] = byte(r.Uint32())
		case 2:
			b = append(b[:at:at], b[till:]...)
		case 3:
			b = append(b[:till:till], b[at:]...)
		}
		if len(b) == 0 {
			return []byte{0}
		}
	}
	return b
}

// wrongKey returns four publish requests of 60 KB with a wrong key. Each control character becomes six bytes in JSON.
func wrongKey(transport string) func(*stranger, int) []byte {
	body := inClear(map[string]any{"cmd": "publish", "fun": strings.Repeat("\x01", 50000), "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "jid": "",
		"user": strings.Repeat("\x02", 9000), "key": "wrong", "kwargs": map[string]any{}})
	all := requests(transport, 4, func(int) []byte { return body })
	return func(*stranger, int) []byte { return all }
}

// wrongPassword returns four requests of tools for a token, with wrong passwords and changing user names.
func wrongPassword(_ *stranger, n int) []byte {
	return requests("zeromq", 4, func(i int) []byte {
		return inClear(map[string]any{"cmd": "mk_token", "eauth": "file", "username": fmt.Sprint("user", 4*n+i), "password": "wrong"})
	})
}

// signIn returns a sign-in request.
func (s *stranger) signIn(id string, r *rand.Rand) []byte {
	nonce := make([]byte, 16)
	binary.BigEndian.PutUint64(nonce, r.Uint64())
	return inClear(map[string]any{"cmd": "_auth", "id": id, "nonce": fmt.Sprintf("%x", nonce), "enc_algo": crypt.OAEPSHA1, "sig_algo": crypt.PKCS1v15SHA1, "pub": s.pub})
}

// newIDs signs in with unknown ids.
func newIDs(transport string) func(*stranger, int) []byte {
	return func(s *stranger, n int) []byte {
		return requests(transport, 1, func(int) []byte { return s.signIn(fmt.Sprintf("stranger-%d", n), random(n)) })
	}
}

// othersID signs in with the id of an accepted minion and another key.
func othersID(s *stranger, n int) []byte {
	return requests("zeromq", 1, func(int) []byte { return s.signIn(honestID, random(n)) })
}

// mutatedSignIns returns damaged sign-ins.
func mutatedSignIns(transport string) func(*stranger, int) []byte {
	return func(s *stranger, n int) []byte {
		r := random(n)
		return requests(transport, 4, func(i int) []byte { return mutated(r, s.signIn(fmt.Sprintf("mutant-%d-%d", n, i), r)) })
	}
}

// mutatedOpenings returns damaged openings, each followed by a first request.
func mutatedOpenings(transport string) func(*stranger, int) []byte {
	sockets := []string{"REQ", "SUB", "DEALER", "ROUTER", "PUB", "PUSH", "PAIR"}
	request := inClear(map[string]any{"cmd": "ping"})
	return func(_ *stranger, n int) []byte {
		var b []byte
		switch transport {
		case "zeromq":
			b = greeting(sockets[n%len(sockets)])
		case "ws":
			b = []byte(upgrade)
		}
		return mutated(random(n), append(b, framed(transport, request)...))
	}
}

// sealed returns requests of 60 KB with the id of an accepted minion that are not encrypted with any key.
func sealed(transport string) func(*stranger, int) []byte {
	return func(_ *stranger, n int) []byte {
		load := make([]byte, 60000)
		binary.BigEndian.PutUint64(load, random(n).Uint64())
		b, err := payload.Marshal(map[string]any{"enc": "aes", "version": protocol.Version, "id": honestID, "load": load})
		if err != nil {
			panic(err) // the envelope is constant
		}
		return requests(transport, 4, func(int) []byte { return b })
	}
}

// bombs returns values that claim to be large, or are deeply nested.
func bombs(transport string) func(*stranger, int) []byte {
	deep := bytes.Repeat([]byte{0x91}, 1<<20)
	loads := [][]byte{
		[]byte("\xdd\xff\xff\xff\xff"), []byte("\xdf\xff\xff\xff\xff"), []byte("\xdb\xff\xff\xff\xff"), []byte("\xc6\xff\xff\xff\xff"), []byte("\xc9\xff\xff\xff\xff\x01"),
		[]byte("\xc1"), []byte("\x81\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01\x01"), deep, append([]byte("\x82\xa3enc\xa5clear\xa4load"), deep...),
		bytes.Repeat([]byte("\xdd\x00\x00\xff\xff"), 10_000), bytes.Repeat([]byte("\x81\xa1a"), 20_000), bytes.Repeat([]byte("\xc8\x00\x10\x4f"), 10_000),
	}
	return func(_ *stranger, n int) []byte {
		return requests(transport, 1, func(int) []byte { return loads[n%len(loads)] })
	}
}

// started returns a request of size bytes of which only the first come bytes are sent.
func started(transport string, size, come int) func(*stranger, int) []byte {
	b := opening(transport, "request")
	body := bytes.Repeat([]byte{'x'}, come)
	switch transport {
	case "zeromq":
		b = append(binary.BigEndian.AppendUint64(append(b, 1, 0, 2), uint64(size)), body...)
	case "tcp":
		b = append(binary.BigEndian.AppendUint32([]byte("\x82\xa4head\x81\xa3mid\x01\xa4body\x81\xa4load\xc6"), uint32(size)), body...)
	case "ws":
		b = append(append(binary.BigEndian.AppendUint64(append(b, 0x82, 0x80|127), uint64(size)), 0, 0, 0, 0), body...)
	}
	return func(*stranger, int) []byte { return b }
}

// pings returns more ZeroMQ PINGs than a peer may send.
func pings(*stranger, int) []byte {
	return append(greeting("REQ"), bytes.Repeat(zmtp(nil, 4, []byte("\x04PING\x00\x00abc")), 400)...)
}

// post returns an HTTP request that ends the connection after the answer.
func post(path string, body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are constant
	}
	return append(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: master\r\nAccept: application/json\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", path, len(b)), b...)
}

// wrongRuns returns calls of nearly a megabyte with a wrong password.
func wrongRuns(*stranger, int) []byte { return runOfMegabyte }

var runOfMegabyte = post("/run", []any{map[string]any{"client": "local", "tgt": "*", "fun": strings.Repeat("x", 970_000), "username": "alice", "password": "wrong", "eauth": "file"}})

// wrongLogins returns logins with wrong passwords, for changing user names and for an existing one.
func wrongLogins(_ *stranger, n int) []byte {
	name := "alice"
	if n%2 == 0 {
		name = fmt.Sprint("user", n)
	}
	return post("/login", map[string]any{"username": name, "password": "wrong", "eauth": "file"})
}

// slowHead returns the beginning of an HTTP head.
func slowHead(*stranger, int) []byte {
	return []byte("POST /login HTTP/1.1\r\nHost: master\r\nX-Long: ")
}

// constant returns a flood whose connections all send the same bytes.
func constant(b []byte) func(*stranger, int) []byte { return func(*stranger, int) []byte { return b } }
