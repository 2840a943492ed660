package serve

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// TestRoomSpoken: a peer that has sent bytes keeps its place until they are read.
func TestRoomSpoken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := peer.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !hasUnread(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing arrives")
		}
	}
	p := &pending{max: 1, freed: make(chan struct{}, 1)}
	p.l.PushBack(shaking{c, time.Now().Add(-time.Hour)})
	ended, end := context.WithCancel(t.Context())
	end()
	if got := p.awaitRoom(ended); got != nil || p.l.Len() != 1 {
		t.Error("put out of the line before it was heard:", got)
	}
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if got := p.awaitRoom(t.Context()); got != c {
		t.Error("silent, but not put out of the line:", got)
	}
}
