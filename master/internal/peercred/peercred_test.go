//go:build linux || darwin || freebsd

package peercred

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wrapped is a connection around another one.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// TestOf: this process is its own peer, also through wrappers; a TCP connection has no peer credentials.
func TestOf(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		addr := "127.0.0.1:0"
		if network == "unix" {
			addr = filepath.Join(t.TempDir(), "s")
		}
		ln, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		c, err := net.Dial(network, ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		cred, err := Of(wrapped{wrapped{s}})
		if network == "tcp" {
			if !errors.Is(err, ErrUnsupported) {
				t.Error(err)
			}
			continue
		}
		if err != nil || cred.UID != uint32(os.Geteuid()) || len(cred.GIDs) == 0 ||
			cred.GIDs[0] != uint32(os.Getegid()) {
			t.Errorf("%+v %v", cred, err)
		}
	}
}

// TestNames: names of digits do not count, and what was found is remembered.
func TestNames(t *testing.T) {
	asked := 0
	n := &Names{Find: func(_ context.Context, database string, id uint32) string {
		asked++
		return map[uint32]string{1: database + "-one", 2: "1"}[id]
	}}
	for range 2 {
		got := []any{n.User(t.Context(), 1), n.User(t.Context(), 2), n.User(t.Context(), 3),
			n.Groups(t.Context(), []uint32{1, 2, 7})}
		if d := cmp.Diff([]any{"passwd-one", "2", "3", []string{"1", "group-one", "2", "7"}},
			got); d != "" {
			t.Error(d)
		}
	}
	if asked != 6 {
		t.Error("asked", asked)
	}
}
