package testserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Conversation is the data exchanged on a connection to a server.
type Conversation struct {
	Server string `json:"server"` // its name in cases
	Parts  []Part `json:"parts"`
	Ends   bool   `json:"ends,omitempty"` // the server hung up first
}

// Part is the data that one side sent before the other side sent any.
type Part struct {
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
}

// tape is in front of a server and notes what is said on its connections; without a server it says what the server said.
//
//	client ──▶ tape ──▶ server       a recording: the parts are noted
//	client ──▶ tape                  a replay: the client must say what it said then
type tape struct {
	t       testing.TB
	address string // where clients connect: a port of 127.0.0.1, or the path of a socket
	server  string // the server's, "" in a replay

	mu    sync.Mutex
	said  []*Conversation // in the order of the connections
	lacks []string        // what went wrong in a replay
}

// newTape listens in front of a server, or alone.
func newTape(t testing.TB, network, server string) *tape {
	t.Helper()
	p := &tape{t: t, server: server}
	at := "127.0.0.1:0"
	if network == "unix" {
		dir, err := os.MkdirTemp("/tmp", "tape") // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		at = filepath.Join(dir, "socket")
	}
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	p.address = at
	if network != "unix" {
		_, p.address, _ = net.SplitHostPort(l.Addr().String())
	} else if err := os.Chmod(at, 0o666); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.serve(l, network)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return p
}

func (p *tape) serve(l net.Listener, network string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		if p.server == "" {
			go p.play(client)
			continue
		}
		at := p.server
		if network != "unix" {
			at = net.JoinHostPort("127.0.0.1", at)
		}
		server, err := net.Dial(network, at)
		if err != nil {
			client.Close()
			continue
		}
		go p.record(client, server)
	}
}

// record forwards data in both directions, and records it if the client is this process.
func (p *tape) record(client, server net.Conn) {
	c := &Conversation{}
	ours := isOurs(client)
	p.mu.Lock()
	if ours {
		p.said = append(p.said, c)
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	ended := false
	pass := func(from, to net.Conn, isServer bool) {
		defer closeWrite(to)
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			b := buf[:n]
			p.mu.Lock()
			if ours && isServer && len(c.Parts) == 0 {
				withoutAttributes(b)
			}
			c.add(isServer, string(b))
			if err != nil && !ended {
				ended, c.Ends = true, isServer
			}
			p.mu.Unlock()
			if _, werr := to.Write(b); werr != nil || err != nil {
				return
			}
		}
	}
	both.Go(func() { pass(client, server, false) })
	both.Go(func() { pass(server, client, true) })
	both.Wait()
	client.Close()
	server.Close()
}

// add appends data that one side sent.
func (c *Conversation) add(server bool, text string) {
	last := len(c.Parts) - 1
	switch {
	case text == "":
	case server && last >= 0 && c.Parts[last].Server != "":
		c.Parts[last].Server += text
	case server:
		c.Parts = append(c.Parts, Part{Server: text})
	case last >= 0 && c.Parts[last].Client != "":
		c.Parts[last].Client += text
	default:
		c.Parts = append(c.Parts, Part{Client: text})
	}
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may have closed
	}
}

// withoutAttributes takes out of the greeting of a MySQL server that it wants attributes of its client, among which is the
// number of the process: CLIENT_CONNECT_ATTRS, bit 20 of the capabilities. Ours sends none then; other clients send them even so.
func withoutAttributes(greeting []byte) {
	if len(greeting) < 5 || greeting[4] != 10 {
		return
	}
	version := bytes.IndexByte(greeting[5:], 0)
	if at := 5 + version + 1 + 4 + 8 + 1 + 2 + 1 + 2; version >= 0 && at < len(greeting) {
		greeting[at] &^= 0x10
	}
}

// play stands in for the server, with the first conversation that begins like the client's.
func (p *tape) play(client net.Conn) {
	defer client.Close()
	c, begin, err := p.choose(client)
	if err != nil {
		p.lack(err.Error())
		return
	}
	for _, part := range c.Parts {
		if part.Server != "" {
			if _, err := io.WriteString(client, part.Server); err != nil {
				return
			}
			continue
		}
		got := make([]byte, len(part.Client))
		n := copy(got, begin)
		begin = begin[n:]
		if m, err := io.ReadFull(client, got[n:]); err != nil || masked(string(got)) != masked(part.Client) {
			if n+m > 0 { // or it hung up before
				p.lack("a client said " + string(got[:n+m]) + " and not " + part.Client)
			}
			return
		}
	}
	if !c.Ends {
		_, _ = io.Copy(io.Discard, client) // until it hangs up
	}
}

// randomName is how the state docker_network names temporary networks, which is another name each time.
var randomName = regexp.MustCompile(`("|/networks/)[a-z]{20}\b`)

// masked returns what a client says with all random names equal.
func masked(said string) string { return randomName.ReplaceAllString(said, "$1 random") }

// choose takes one of the remaining conversations. If the client sends first, begin is what it has sent.
func (p *tape) choose(client net.Conn) (c *Conversation, begin []byte, err error) {
	p.mu.Lock()
	waits := len(p.said) > 0 && len(p.said[0].Parts) > 0 && p.said[0].Parts[0].Server != ""
	p.mu.Unlock()
	if !waits {
		begin = make([]byte, 32<<10)
		n, err := client.Read(begin)
		if begin = begin[:n]; err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.said, func(c *Conversation) bool {
		switch {
		case waits:
			return true
		case len(c.Parts) == 0:
			return len(begin) == 0
		}
		kept, now := masked(c.Parts[0].Client), masked(string(begin))
		return strings.HasPrefix(kept, now) || strings.HasPrefix(now, kept)
	})
	if i < 0 {
		return nil, nil, errors.New("no conversation began with " + string(begin))
	}
	c = p.said[i]
	p.said = slices.Delete(p.said, i, i+1)
	return c, begin, nil
}

func (p *tape) lack(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lacks = append(p.lacks, what)
}
