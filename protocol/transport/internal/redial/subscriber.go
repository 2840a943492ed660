package redial

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// A Session is one subscribed connection.
type Session interface {
	// Receive returns the next packed envelope. Callers skip a nil one.
	Receive() ([]byte, error)
	RemoteAddr() net.Addr
	Close() error
}

// A Prober is a Session that can probe its peer. TCP keepalive reaches only the next device that terminates TCP, such
// as a proxy; a probe travels to the master and back on the publish path.
type Prober interface {
	// Probe sends a probe. The answer makes Receive return.
	Probe() error
	// Answers returns how many probes were answered. Zero means that the peer may not support probes.
	Answers() uint64
}

// A Subscriber keeps one Session open until it is closed.
type Subscriber struct {
	o      transport.ClientOptions
	addr   string
	open   func(context.Context) (Session, error)
	cancel context.CancelFunc
	msgs   chan []byte
	done   chan struct{}
	wake   chan struct{}

	mu    sync.Mutex // guards the fields below
	state transport.State
	drop  context.CancelFunc // ends the current session; nil between sessions
}

var _ transport.Subscriber = (*Subscriber)(nil)

// queued is how many messages wait in this process for the receiver. More wait in the kernel and at the master, which
// disconnects a subscriber that does not keep up.
const queued = 16

// Subscribe starts the loop. open opens a session to addr and must return when its context ends.
func Subscribe(ctx context.Context, o transport.ClientOptions, addr string, open func(context.Context) (Session, error)) *Subscriber {
	ctx, cancel := context.WithCancel(ctx)
	s := &Subscriber{o: o, addr: addr, open: open, cancel: cancel, msgs: make(chan []byte, queued),
		done: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.state.Addr = addr
	go s.runLoop(ctx)
	return s
}

// Messages implements transport.Subscriber.
func (s *Subscriber) Messages() <-chan []byte { return s.msgs }

// State implements transport.Subscriber.
func (s *Subscriber) State() transport.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Reset implements transport.Subscriber.
func (s *Subscriber) Reset() {
	s.mu.Lock()
	drop := s.drop
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if drop != nil {
		drop()
	}
}

// Close implements transport.Subscriber.
func (s *Subscriber) Close() error {
	s.cancel()
	<-s.done
	return nil
}

// runLoop connects, receives, and waits before it reconnects, until ctx ends. It logs a failure only if it differs
// from the previous one, so that an unreachable master does not fill the log.
func (s *Subscriber) runLoop(ctx context.Context) {
	defer close(s.done)
	defer close(s.msgs)
	defer s.cancel()
	b := NewBackoff(s.o)
	connected := 0
	for ctx.Err() == nil {
		begun, before := time.Now(), connected
		err := s.runSession(ctx, b, &connected)
		if ctx.Err() != nil {
			break
		}
		s.mu.Lock()
		was := s.state
		s.mu.Unlock()
		if was.Connected || was.Err == nil || was.Err.Error() != err.Error() {
			s.o.Log.Warn("Not connected to publisher", "addr", s.addr, "err", err)
		}
		s.reportState(func(st *transport.State) { st.Connected, st.Err, st.Addr = false, err, s.addr })
		took := time.Duration(0) // after a lost connection the delay counts from its end
		if connected == before {
			took = time.Since(begun)
		}
		sleep(ctx, b.After(took), s.wake)
	}
	if s.State().Connected {
		s.reportState(func(st *transport.State) { st.Connected, st.Err, st.Addr = false, nil, s.addr })
	} else {
		s.mu.Lock()
		s.state.Err = nil
		s.mu.Unlock()
	}
}

// runSession opens a session and receives until it ends. The backoff is reset if the session lasted: a server that
// accepts and soon closes, perhaps after a message, must not be tried in a tight loop.
func (s *Subscriber) runSession(ctx context.Context, b *Backoff, connected *int) error {
	sctx, drop := context.WithCancel(ctx)
	defer drop()
	s.mu.Lock()
	s.drop = drop
	s.mu.Unlock()
	sess, err := s.open(sctx)
	if err != nil {
		return err
	}
	defer sess.Close()
	defer Guard(sctx, sess)()
	select { // a Reset from before this connection does not apply to it
	case <-s.wake:
	default:
	}
	*connected++
	addr := sess.RemoteAddr().String()
	s.reportState(func(st *transport.State) {
		*st = transport.State{Connected: true, Addr: addr, Reconnects: *connected - 1}
	})
	s.o.Log.Info("Connected to publisher", "addr", addr, "reconnects", *connected-1)
	since := time.Now()
	var heard atomic.Uint64
	var handing atomic.Bool // the receiver is busy, so nothing is read meanwhile
	deaf := s.probePeer(sctx, sess, &heard, &handing, drop)
	for {
		msg, err := sess.Receive()
		heard.Add(1)
		if err != nil {
			if deaf.Load() {
				err = errDeaf
			}
			b.NoteSession(time.Since(since))
			return err
		}
		if msg == nil {
			s.o.OnWork()
			continue
		}
		handing.Store(true)
		select {
		case s.msgs <- msg:
		case <-sctx.Done():
			return sctx.Err()
		}
		handing.Store(false)
	}
}

// errDeaf is the reason for dropping a connection whose peer stopped answering probes.
var errDeaf = errors.New("transport: the peer no longer answers")

// probePeer probes the peer every o.Probe until ctx ends. It drops the session if nothing is received within a
// quarter of that; the result reports whether it did. A peer that never answered a probe is not dropped, because it
// may not support probes.
func (s *Subscriber) probePeer(ctx context.Context, sess Session, heard *atomic.Uint64, busy *atomic.Bool, drop func()) *atomic.Bool {
	deaf := &atomic.Bool{}
	p, can := sess.(Prober)
	if !can || s.o.Probe <= 0 {
		return deaf
	}
	var (
		timer  *time.Timer
		armed  = make(chan struct{}) // closed when timer is set
		asked  bool
		before uint64
	)
	timer = time.AfterFunc(s.o.Probe, func() {
		<-armed
		defer s.o.OnWork()
		switch {
		case ctx.Err() != nil:
		case !asked:
			asked, before = true, heard.Load()
			if p.Probe() == nil {
				timer.Reset(s.o.Probe / 4)
			}
		case heard.Load() != before || busy.Load():
			asked = false
			timer.Reset(s.o.Probe - s.o.Probe/4)
		case p.Answers() > 0:
			deaf.Store(true)
			drop()
		}
	})
	close(armed)
	context.AfterFunc(ctx, func() { timer.Stop() })
	return deaf
}

// reportState changes the state and calls OnState. Only the goroutine of runLoop calls it, so calls do not overlap.
func (s *Subscriber) reportState(change func(*transport.State)) {
	s.mu.Lock()
	change(&s.state)
	st := s.state
	s.mu.Unlock()
	if s.o.OnState != nil {
		s.o.OnState(st)
	}
}
