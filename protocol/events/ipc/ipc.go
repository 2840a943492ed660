// Package ipc opens Salt's event sockets on the host of a master or a minion, and is the client of both.
//
//	Bus ──▶ Server ──▶ master_event_pub.ipc  ──▶ every client receives every event
//	            ◀── master_event_pull.ipc ◀── clients send events
//
// Salt's command line tools (salt, salt-key, salt-run, salt-call), engines, and scripts that import Salt talk
// through these sockets. A master or minion that is embedded in another program does not need them. Salt's sources:
// salt/transport/ipc.py, salt/transport/tcp.py (PublishServer), salt/utils/event.py, salt/transport/frame.py.
package ipc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

const (
	maxClients   = 256
	maxEvent     = 128 << 20 // a return may be as large as the transport allows
	writeTimeout = 30 * time.Second
	// maxWaitingEvents is how many events may wait for a client, if they have fewer bytes than Options.Buffer.
	maxWaitingEvents = 100_000
)

// Options configure a Server.
type Options struct {
	// Sockets are the addresses to listen on, see [Master] and [Minion].
	Sockets Sockets
	// DirMode is the mode of a socket directory that is created; 0 means 0750.
	DirMode fs.FileMode
	// PubMode is the mode of the socket that sends events; 0 means 0660, as Salt 3007 sets on a master. The other
	// sockets are 0600.
	PubMode fs.FileMode
	// Framing is how events are separated.
	Framing Framing
	// Buffer is how many bytes of events may wait for a client before it is disconnected; 0 means events.DefaultBytes.
	Buffer int
	// Received is called with the events that clients send; nil publishes them. One goroutine per client calls it.
	Received func(tag string, data map[string]any)
	// Log receives messages about dropped clients; nil means no log.
	Log *slog.Logger
}

// A Server serves the event sockets. Close it after use.
type Server struct {
	bus    *events.Bus
	o      Options
	log    *slog.Logger
	paths  []string
	pub    net.Listener
	pull   net.Listener
	ctx    context.Context // life of the server
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[net.Conn]struct{}
}

// Listen opens the sockets and serves them until Close. It replaces the socket file of a dead process. It returns an
// error if another process serves the socket.
func Listen(bus *events.Bus, o Options) (*Server, error) {
	if o.PubMode == 0 {
		o.PubMode = 0o660
	}
	if o.DirMode == 0 {
		o.DirMode = 0o750
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Received == nil {
		o.Received = bus.Publish
	}
	s := &Server{bus: bus, o: o, log: o.Log, conns: make(map[net.Conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.openSockets(); err != nil {
		s.Close()
		return nil, err
	}
	s.wg.Go(func() { s.acceptLoop(s.pub, s.subscribe) })
	s.wg.Go(func() { s.acceptLoop(s.pull, func(c net.Conn) func() { return func() { s.receiveFrom(c) } }) })
	return s, nil
}

// openSockets opens both sockets, either as files or as ports.
func (s *Server) openSockets() error {
	a := s.o.Sockets
	var err error
	if a.tcp {
		if s.pub, err = listenPort(a.Pub); err == nil {
			s.pull, err = listenPort(a.Pull)
		}
		return err
	}
	if err := os.MkdirAll(a.dir, s.o.DirMode); err != nil {
		return fmt.Errorf("cannot create socket directory %q: %w", a.dir, err)
	}
	if s.pub, err = s.listenUnix(a.Pub, s.o.PubMode); err == nil {
		s.pull, err = s.listenUnix(a.Pull, 0o600)
	}
	for _, path := range []string{a.Marker, a.workers} {
		if err == nil && path != "" {
			err = s.createMarker(path)
		}
	}
	return err
}

func listenPort(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, err)
	}
	return l, nil
}

// listenUnix binds to a temporary name and renames the socket, so that it never exists with a wrong mode.
func (s *Server) listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("cannot listen on %q: another process serves it", path)
	}
	temp := path + ".new"
	os.Remove(temp)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(temp, mode)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		l.Close()
		os.Remove(temp)
		return nil, fmt.Errorf("cannot listen on %q: %w", path, err)
	}
	s.paths = append(s.paths, path)
	return l, nil
}

// createMarker creates an empty file that Salt's tools look for.
func (s *Server) createMarker(path string) error {
	os.Remove(path)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("cannot create %q: %w", path, err)
	}
	s.paths = append(s.paths, path)
	return nil
}

// Close closes and removes the sockets. It returns when all clients are disconnected.
func (s *Server) Close() error {
	s.cancel()
	for _, l := range []net.Listener{s.pub, s.pull} {
		if l != nil {
			l.Close()
		}
	}
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	var err error
	for _, p := range s.paths {
		if e := os.Remove(p); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	s.paths = nil
	return err
}

// acceptLoop accepts clients one after another. begin returns a function, which serves the client in the background.
func (s *Server) acceptLoop(l net.Listener, begin func(net.Conn) (serve func())) {
	pause := time.Millisecond
	for {
		c, err := l.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return
		}
		if err != nil {
			s.log.Warn("Cannot accept on event socket", "err", err)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				return
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		if !s.addConn(c) {
			c.Close()
			continue
		}
		serve := begin(c)
		s.wg.Go(func() {
			defer s.drop(c)
			defer func() {
				if r := recover(); r != nil {
					s.log.Error("Event client ended in a panic", "err", r)
				}
			}()
			serve()
		})
	}
}

// addConn registers a client, unless there are too many.
func (s *Server) addConn(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxClients || s.ctx.Err() != nil {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) drop(c net.Conn) {
	c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// subscribe subscribes a new client, which receives all events from now on.
func (s *Server) subscribe(c net.Conn) func() {
	// The limit is one of bytes: 1000 events would be too few when ten thousand minions return at the same moment.
	sub := s.bus.Subscribe(events.SubscribeOptions{Bytes: s.o.Buffer, Buffer: maxWaitingEvents})
	return func() {
		defer sub.Close()
		s.publishTo(c, sub)
	}
}

// publishTo sends every event to one client. A client that falls behind is disconnected: Salt's clients reconnect
// then, but would not notice a gap.
func (s *Server) publishTo(c net.Conn, sub *events.Subscription) {
	prefixed := s.o.Framing == Prefixed || s.o.Framing == Auto && wantsPrefix(c)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.wg.Go(func() {
		// Clients send nothing on this socket except Admit's probe. The read ends when they disconnect.
		defer cancel()
		var b [64]byte
		for {
			if _, err := c.Read(b[:]); err != nil {
				return
			}
			c.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := c.Write(b[:1]); err != nil {
				return
			}
		}
	})
	news := pacer{on: overlooks(c)}
	for e := range sub.All(ctx) {
		if e.Missed > 0 {
			s.log.Warn("Event client is too slow and was cut off", "missed", e.Missed)
			return
		}
		body, err := frameEvent(e.Tag, e.Ordered(), prefixed)
		if err != nil {
			s.log.Warn("Cannot pack event", "tag", e.Tag, "err", err)
			continue
		}
		news.delayReturn(ctx, e.Tag, sub)
		c.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := c.Write(body); err != nil {
			return
		}
	}
}

// Admit returns when every client that connected before the call receives events, or after a second. To the kernel, a
// program that connects and then sends a request is connected at once. Without Admit the answer could be fired before
// the server accepted the connection. Connections are accepted in order, so Admit connects itself and waits for an
// answer.
func (s *Server) Admit() {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	c, err := s.o.Sockets.dial(ctx, s.o.Sockets.Pub)
	if err != nil {
		return
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var knock [1]byte
	if _, err := c.Write(knock[:]); err == nil {
		c.Read(knock[:]) // an echo, an event or the end: each means that the connection was accepted
	}
}

// receiveFrom reads the events that one client sends.
func (s *Server) receiveFrom(c net.Conn) {
	r := newReader(c)
	for {
		tag, data, err := r.next()
		if err != nil {
			if s.ctx.Err() == nil && !isEOF(err) {
				s.log.Warn("Bad event on pull socket", "err", err)
			}
			return
		}
		s.Admit()
		s.o.Received(tag, data)
	}
}
