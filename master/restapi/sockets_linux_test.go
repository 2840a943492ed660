package restapi_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/restapi"
)

// TestSocketsAreShared: a user of a unix socket who leaves connections open can hold half of them; further ones are
// closed.
func TestSocketsAreShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	inner, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln := restapi.Limit(inner, 8, 1)
	defer ln.Close()
	accepted := make(chan net.Conn, 20)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	open := 0
	for range 8 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ended := make(chan struct{})
		go func() {
			_, _ = c.Read(make([]byte, 1))
			close(ended)
		}()
		select {
		case <-accepted:
			open++
		case <-ended:
		case <-time.After(patience):
			t.Fatal("neither accepted nor closed")
		}
	}
	if open != 4 {
		t.Errorf("%d of 8 connections of one user stay open", open)
	}
}
