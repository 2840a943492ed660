package handshakes

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// arriving is a listener whose connections a test provides.
type arriving chan net.Conn

func (a arriving) Accept() (net.Conn, error) {
	c, ok := <-a
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (a arriving) Close() error { close(a); return nil }
func (arriving) Addr() net.Addr { return &net.TCPAddr{} }

// client is a connection that has bytes to read.
type client struct {
	net.Conn
	ip     string
	closed atomic.Bool
}

func (c *client) RemoteAddr() net.Addr       { return &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 1} }
func (c *client) Read(b []byte) (int, error) { return len(b), nil }
func (*client) Write(b []byte) (int, error)  { return len(b), nil }
func (c *client) Close() error               { c.closed.Store(true); return nil }

// TestSpace: an address begins as many handshakes at once as the burst allows, then as many per second as the rate; more wait, and those that
// would wait for long are closed. Other addresses do not wait. A client that proves who it is costs nothing.
func TestSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst = 10, 100
		const queued = rate * int(Queue/time.Second)
		in := make(arriving)
		ln := Space(in, rate, burst)
		var proves atomic.Bool
		var begun, others atomic.Int32
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go func() {
					if _, err := c.Read(make([]byte, 1)); err != nil {
						return
					}
					_, _ = c.Write(nil)
					if c.(*conn).Conn.(*client).ip == "10.0.0.2" {
						others.Add(1)
						return
					}
					begun.Add(1)
					if proves.Load() {
						ctx := WithConn(t.Context(), struct{ wrapped }{wrapped{c}})
						Proven(ctx)
						Proven(ctx) // counts once
						Proven(context.Background())
					}
				}()
			}
		}()
		open := func(ip string, n int) (closed int) {
			for range n {
				c := &client{ip: ip}
				in <- c
				if synctest.Wait(); c.closed.Load() {
					closed++
				}
			}
			return closed
		}
		if closed := open("10.0.0.1", 1000); closed != 1000-burst-queued || begun.Load() != burst {
			t.Errorf("%d begun and %d closed of 1,000 connections", begun.Load(), closed)
		}
		if closed := open("10.0.0.2", burst); closed != 0 || others.Load() != burst {
			t.Errorf("%d begun and %d closed of another address", others.Load(), closed)
		}
		time.Sleep(Queue/2 + time.Millisecond) // the last one begins just then
		if n := begun.Load(); n != burst+int32(queued)/2 {
			t.Errorf("%d begun after %v", n, Queue/2)
		}
		time.Sleep(Queue)
		if n := begun.Load(); n != burst+int32(queued) {
			t.Errorf("%d begun in the end", n)
		}
		proves.Store(true)
		begun.Store(0)
		time.Sleep(time.Second)
		if closed := open("10.0.0.1", 1000); closed != 0 || begun.Load() != 1000 {
			t.Errorf("%d begun and %d closed of clients that prove who they are", begun.Load(), closed)
		}
		in.Close()
	})
}

// wrapped is a connection of TLS.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// TestLeavers: clients that leave before this side has answered cost their address nothing: those that send nothing, and those that have
// sent too little.
func TestLeavers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(arriving, 1)
		ln := Space(in, 1e-9, 1)
		come := func(c net.Conn) net.Conn {
			in <- c
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for range 10 {
			c := come(&leaver{client: client{ip: "10.0.0.1"}})
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Fatal(n, err)
			}
			c.Close()
		}
		for range 10 {
			c := come(&leaver{client: client{ip: "10.0.0.1"}, sends: 1})
			for want := 1; want >= 0; want-- {
				if n, _ := c.Read(make([]byte, 1)); n != want {
					t.Fatalf("%d bytes, not %d", n, want)
				}
			}
			c.Close()
			c.Close()
		}
		c := come(&client{ip: "10.0.0.1"})
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("after those that left: %v", err)
		}
		_, _ = c.Write(nil)
		c.Close()
		if _, err := come(&client{ip: "10.0.0.1"}).Read(make([]byte, 1)); err != errBusy {
			t.Errorf("after one with an answer: %v", err)
		}
	})
}

// leaver is a client that leaves after some bytes.
type leaver struct {
	client
	sends int
}

func (c *leaver) Read([]byte) (int, error) {
	if c.sends == 0 {
		return 0, io.EOF
	}
	c.sends--
	return 1, nil
}

// TestCloseWhileWaiting: closing a connection ends its wait.
func TestCloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(arriving, 2)
		ln := Space(in, 1, 1)
		for range 2 {
			in <- &client{ip: "10.0.0.1"}
		}
		first, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = first.Read(make([]byte, 1))
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ended := make(chan struct{})
		go func() {
			_, _ = c.Read(make([]byte, 1))
			close(ended)
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		if <-ended; time.Since(begin) > 0 {
			t.Errorf("the read ended after %v", time.Since(begin))
		}
		if ctx := t.Context(); WithConn(ctx, &client{}) != ctx {
			t.Error("a connection that is not spaced has an account")
		}
	})
}
