package zeromq

import (
	"net"
	"testing"
	"time"
)

func TestEnded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if peerClosed(c) {
		t.Error("a connection that says nothing has ended")
	}
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if peerClosed(c) {
		t.Error("a connection has ended whose bytes wait to be read")
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	for end := time.Now().Add(time.Minute); !peerClosed(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the peer has closed it, and nobody notices")
		}
	}
	c.Close()
	if !peerClosed(c) {
		t.Error("closed here, and not ended")
	}
}
