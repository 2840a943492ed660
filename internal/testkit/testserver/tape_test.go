//go:build linux

package testserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// greeter starts a server that greets its clients, answers each line, and closes the connection after the line "bye".
func greeter(t *testing.T) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintln(c, "welcome")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, "you said "+lines.Text())
					if lines.Text() == "bye" {
						return
					}
				}
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// talk sends lines to a server and returns the answers.
func talk(t *testing.T, port string, lines ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from := bufio.NewReader(c)
	said, err := from.ReadString('\n')
	for _, line := range lines {
		var one string
		if err == nil {
			fmt.Fprintln(c, line)
			one, err = from.ReadString('\n')
		}
		said += one
	}
	if slices.Contains(lines, "bye") && err == nil {
		if _, err = from.ReadByte(); err != io.EOF {
			t.Errorf("the server did not hang up: %v", err)
		}
	}
	return said
}

// TestTape: a recorded conversation is replayed without the server, and a client that sends other data is detected.
func TestTape(t *testing.T) {
	record := &Servers{T: t}
	record.tapes = map[string]*tape{"@REDIS@": newTape(t, "tcp", greeter(t))}
	port := record.tapes["@REDIS@"].address
	talk(t, port, "before")
	record.Rewind()
	talk(t, port, "a", "b")
	talk(t, port, "bye")
	Until(t, "the end of both", func(context.Context) error {
		if said := record.Conversations(); len(said) != 2 || !said[1].Ends {
			return fmt.Errorf("%v", said)
		}
		return nil
	})
	said := record.Conversations()
	want := []Conversation{
		{Server: "@REDIS@", Parts: []Part{{Server: "welcome\n"}, {Client: "a\n"}, {Server: "you said a\n"},
			{Client: "b\n"}, {Server: "you said b\n"}}},
		{Server: "@REDIS@", Parts: []Part{{Server: "welcome\n"}, {Client: "bye\n"}, {Server: "you said bye\n"}}, Ends: true},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}

	play := &Servers{T: t, Replay: true}
	port = play.Text("@REDIS@")
	play.Give(t, said)
	for _, lines := range [][]string{{"a", "b"}, {"bye"}} {
		want := "welcome\n"
		for _, line := range lines {
			want += "you said " + line + "\n"
		}
		if got := talk(t, port, lines...); got != want {
			t.Errorf("%q was answered %q", lines, got)
		}
	}
	play.Rewind()
	play.Give(t, said[:1])
	p := play.tapes["@REDIS@"]
	if got := talk(t, port, "a", "c"); got != "welcome\nyou said a\n" {
		t.Errorf("another client was answered %q", got)
	}
	Until(t, "what was lacking", func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.lacks) != 1 || !strings.Contains(p.lacks[0], "c\n") {
			return fmt.Errorf("%q", p.lacks)
		}
		p.lacks = nil
		return nil
	})
}

// TestWithoutAttributes: only the flag for attributes changes in the greeting of a MySQL server.
func TestWithoutAttributes(t *testing.T) {
	greeting := []byte("\x4a\x00\x00\x00\x0a8.0\x00\x01\x02\x03\x04saltsalt\x00\xff\xff\x2d\x02\x00\xff\xc7\x15more")
	want := []byte("\x4a\x00\x00\x00\x0a8.0\x00\x01\x02\x03\x04saltsalt\x00\xff\xff\x2d\x02\x00\xef\xc7\x15more")
	withoutAttributes(greeting)
	if diff := cmp.Diff(want, greeting); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "+OK\r\n", "\x0a\x00\x00\x00\x0a8.0\x00\x01"} {
		b := []byte(text)
		if withoutAttributes(b); string(b) != text {
			t.Errorf("%q is %q now", text, b)
		}
	}
}
