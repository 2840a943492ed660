package redial

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// Session is one subscribed connection.
type Session interface {
	// Receive returns the next packed envelope. A nil one is skipped.
	Receive() ([]byte, error)
	RemoteAddr() net.Addr
	Close() error
}

// Subscriber keeps one Session alive for ever.
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
	drop  context.CancelFunc // ends the present session; nil between sessions
}

var _ transport.Subscriber = (*Subscriber)(nil)

// queued is how many messages wait for the receiver in this process; more wait in the kernel and at the master.
const queued = 16

// Subscribe starts the loop; open makes one session to addr and stops when its context does.
func Subscribe(ctx context.Context, o transport.ClientOptions, addr string, open func(context.Context) (Session, error)) *Subscriber {
	ctx, cancel := context.WithCancel(ctx)
	s := &Subscriber{o: o, addr: addr, open: open, cancel: cancel, msgs: make(chan []byte, queued),
		done: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.state.Addr = addr
	go s.run(ctx)
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

func (s *Subscriber) run(ctx context.Context) {
	defer close(s.done)
	defer close(s.msgs)
	defer s.cancel()
	b := NewBackoff(s.o)
	connected := 0
	for ctx.Err() == nil {
		err := s.once(ctx, b, &connected)
		if ctx.Err() != nil {
			break
		}
		s.mu.Lock()
		was := s.state
		s.mu.Unlock()
		if was.Connected || was.Err == nil || was.Err.Error() != err.Error() {
			s.o.Log.Warn("Not connected to publisher", "addr", s.addr, "err", err)
		}
		s.report(func(st *transport.State) { st.Connected, st.Err, st.Addr = false, err, s.addr })
		sleep(ctx, b.Next(), s.wake)
	}
	if s.State().Connected {
		s.report(func(st *transport.State) { st.Connected, st.Err, st.Addr = false, nil, s.addr })
	} else {
		s.mu.Lock()
		s.state.Err = nil
		s.mu.Unlock()
	}
}

// once makes a session and receives until it ends.
func (s *Subscriber) once(ctx context.Context, b *Backoff, connected *int) error {
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
	select { // a Reset before this connection does not concern it
	case <-s.wake:
	default:
	}
	*connected++
	addr := sess.RemoteAddr().String()
	s.report(func(st *transport.State) {
		*st = transport.State{Connected: true, Addr: addr, Reconnects: *connected - 1}
	})
	s.o.Log.Info("Connected to publisher", "addr", addr, "reconnects", *connected-1)
	since := time.Now()
	for {
		msg, err := sess.Receive()
		if err != nil {
			if time.Since(since) >= s.o.ReconMax {
				b.Reset()
			}
			return err
		}
		b.Reset()
		if msg == nil {
			continue
		}
		select {
		case s.msgs <- msg:
		case <-sctx.Done():
			return sctx.Err()
		}
	}
}

// report changes the state and tells OnState. Only run's goroutine calls it.
func (s *Subscriber) report(change func(*transport.State)) {
	s.mu.Lock()
	change(&s.state)
	st := s.state
	s.mu.Unlock()
	if s.o.OnState != nil {
		s.o.OnState(st)
	}
}
