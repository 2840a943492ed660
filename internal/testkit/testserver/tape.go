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
	Ends   bool   `json:"ends,omitempty"` // the server closed the connection first
}

// Part is the data that one side sent before the other side sent any.
type Part struct {
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
}

// A tape in front of a server records the data on its connections. A tape without a server replays the server's data.
//
//	client ──▶ tape ──▶ server       recording: the tape records the parts
//	client ──▶ tape                  replay: the client must send the recorded data
type tape struct {
	t       testing.TB
	address string // address for clients: a port of 127.0.0.1, or the path of a socket
	server  string // address of the server, or "" in a replay

	mu    sync.Mutex
	said  []*Conversation // in the order of the connections
	lacks []string        // differences in a replay
}

// newTape listens in front of a server, or in place of it if server is "".
func newTape(t testing.TB, network, server string) *tape {
	t.Helper()
	p := &tape{t: t, server: server}
	at := "127.0.0.1:0"
	if network == "unix" {
		dir, err := os.MkdirTemp("/tmp", "tape") // the path of a socket must be short
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
		_ = half.CloseWrite() // the other side may have closed the connection
	}
}

// withoutAttributes removes CLIENT_CONNECT_ATTRS, bit 20 of the capabilities, from the greeting of a MySQL server:
// such attributes include the client's process id. brine's client then sends none; other clients send them
// nevertheless.
func withoutAttributes(greeting []byte) {
	if len(greeting) < 5 || greeting[4] != 10 {
		return
	}
	version := bytes.IndexByte(greeting[5:], 0)
	if at := 5 + version + 1 + 4 + 8 + 1 + 2 + 1 + 2; version >= 0 && at < len(greeting) {
		greeting[at] &^= 0x10
	}
}

// play replaces the server: it plays the first conversation that begins like the client's.
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
			if n+m > 0 { // it may have closed the connection instead
				p.lack("a client said " + string(got[:n+m]) + " and not " + part.Client)
			}
			return
		}
	}
	if !c.Ends {
		_, _ = io.Copy(io.Discard, client) // until it closes the connection
	}
}

// randomName matches the random names that the state docker_network gives to temporary networks.
var randomName = regexp.MustCompile(`("|/networks/)[a-z]{20}\b`)

// masked returns the client's data with equal text for all random names.
func masked(said string) string { return randomName.ReplaceAllString(said, "$1 random") }

// choose removes and returns one of the remaining conversations. If the client sends first, begin is what it has
// sent.
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
