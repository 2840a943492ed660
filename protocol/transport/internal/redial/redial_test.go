package redial

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

func TestBackoff(t *testing.T) {
	for _, full := range []bool{true, false} {
		b := NewBackoff(transport.ClientOptions{ReconDefault: 100 * time.Millisecond, ReconMax: time.Second, ReconRandomize: full})
		for round := range 3 {
			for _, window := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
				window *= time.Millisecond
				low := window / 2
				if full {
					low = 0
				}
				if d := b.Next(); d < low || d > window {
					t.Errorf("round %d, full %v: %v is not in %v..%v", round, full, d, low, window)
				}
			}
			b.Reset()
		}
	}
	// The jitter is large: few of a thousand clients wait equally long.
	seen := map[time.Duration]bool{}
	for range 1000 {
		seen[NewBackoff(transport.ClientOptions{ReconDefault: time.Second, ReconMax: time.Second, ReconRandomize: true}).Next().Truncate(time.Millisecond)] = true
	}
	if len(seen) < 500 {
		t.Errorf("%d different delays of 1000", len(seen))
	}
}

func TestRetry(t *testing.T) {
	o := transport.ClientOptions{ReconDefault: time.Millisecond, ReconMax: time.Millisecond}
	n := 0
	v, err := Retry(t.Context(), o, func(context.Context) (int, error) {
		if n++; n < 20 {
			return 0, io.ErrUnexpectedEOF
		}
		return n, nil
	})
	if v != 20 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	if _, err := Retry(t.Context(), o, func(context.Context) (int, error) { return 0, transport.ErrClosed }); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// The reason is the last error that is not the end of the context itself.
	_, err = Retry(ctx, o, func(ctx context.Context) (int, error) {
		if n++; n < 23 {
			return 0, io.ErrUnexpectedEOF
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	// A socket that reached the context's deadline returns only a timeout, perhaps before the context ends.
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Retry(ctx, o, func(ctx context.Context) (int, error) {
		end, _ := ctx.Deadline()
		for time.Now().Before(end) {
		}
		return 0, os.ErrDeadlineExceeded
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestDial(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	o := transport.ClientOptions{
		Dial: func(context.Context, string, string) (net.Conn, error) { return a, nil },
		Wrap: func(_ context.Context, _ net.Conn, host string) (net.Conn, error) {
			return nil, errors.New("no trust in " + host)
		},
	}.WithDefaults()
	if _, err := Dial(t.Context(), o, "[2001:db8::1]:4506", "", true); err == nil || !strings.Contains(err.Error(), "no trust in 2001:db8::1") {
		t.Errorf("error %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("connection left open: %v", err)
	}
	if c, err := Dial(t.Context(), o, "x:1", "", false); err != nil || c != a {
		t.Errorf("without TLS: %v, %v", c, err)
	}
}

// session is a connection that lasts for a while.
type session struct{ lasts time.Duration }

func (s session) Receive() ([]byte, error) {
	time.Sleep(s.lasts)
	return nil, io.EOF
}
func (s session) Close() error         { return nil }
func (s session) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// talking is a connection that receives one message and ends after a while.
type talking struct {
	session
	said bool
}

func (s *talking) Receive() ([]byte, error) {
	if !s.said {
		s.said = true
		return []byte("a publish"), nil
	}
	return s.session.Receive()
}

// TestPaceOfShortSessions: connections that are lost soon, whatever they received, are followed by growing pauses.
// After one that lasted, the pause is the shortest again.
func TestPaceOfShortSessions(t *testing.T) {
	const watched = 10 * time.Minute
	for name, c := range map[string]struct {
		lasts time.Duration
		longs bool // the pauses stay at the longest
	}{
		"lost at once":       {0, true},
		"lost after seconds": {4 * time.Second, true},
		"lasted":             {transport.DefaultReconMax, false},
		"lasted long":        {time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ended time.Time
				var pauses []time.Duration
				o := transport.ClientOptions{}.WithDefaults()
				s := Subscribe(t.Context(), o, "master:4505", func(context.Context) (Session, error) {
					if !ended.IsZero() {
						pauses = append(pauses, time.Since(ended))
					}
					ended = time.Now().Add(c.lasts)
					return &talking{session: session{c.lasts}}, nil
				})
				go func() {
					for range s.Messages() {
					}
				}()
				time.Sleep(watched)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				for i, d := range pauses {
					low, high := o.ReconDefault/2, o.ReconDefault
					if c.longs {
						low, high = min(low<<min(i, 9), o.ReconMax/2), min(high<<min(i, 9), o.ReconMax)
					}
					if d < low || d > high {
						t.Fatalf("pause %d is %v, want %v to %v", i, d, low, high)
					}
				}
				if len(pauses) < 9 {
					t.Errorf("%d pauses", len(pauses))
				}
			})
		})
	}
}

// TestDelayCountsFromTheAttempt simulates a path that loses all packets: after an attempt that timed out the next one
// follows at once, since the path may work again. Attempts that fail at once, and connections that were lost, are
// followed by the whole delay.
func TestDelayCountsFromTheAttempt(t *testing.T) {
	const attempts = 8
	o := transport.ClientOptions{ReconDefault: 4 * time.Second, ReconMax: 4 * time.Second}.WithDefaults()
	for name, c := range map[string]struct {
		takes, lasts, least, most time.Duration // least and most are pauses
	}{
		"lost":   {10 * time.Second, 0, o.ReconMax / 16, o.ReconMax / 8},
		"slow":   {time.Second, 0, o.ReconMax/2 - time.Second, o.ReconMax - time.Second},
		"failed": {0, 0, o.ReconMax / 2, o.ReconMax},
		"stood":  {0, time.Hour, o.ReconMax / 2, o.ReconMax},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := func(what string, run func(open func(context.Context) (Session, error))) {
					var ended time.Time
					n := 0
					run(func(context.Context) (Session, error) {
						if pause := time.Since(ended); n > 0 && (pause < c.least || pause > c.most) {
							t.Errorf("%s: attempt %d came %v after the last one, want %v to %v", what, n, pause, c.least, c.most)
						}
						n++
						time.Sleep(c.takes)
						ended = time.Now().Add(c.lasts)
						if n == attempts {
							return nil, transport.ErrClosed
						}
						if c.lasts > 0 {
							return session{c.lasts}, nil
						}
						return nil, os.ErrDeadlineExceeded
					})
					if n < attempts {
						t.Errorf("%s: %d attempts", what, n)
					}
				}
				if c.lasts == 0 {
					check("Retry", func(open func(context.Context) (Session, error)) { _, _ = Retry(t.Context(), o, open) })
				}
				check("Subscriber", func(open func(context.Context) (Session, error)) {
					var n int
					ended := make(chan struct{})
					s := Subscribe(t.Context(), o, "master:4505", func(ctx context.Context) (Session, error) {
						if n++; n > attempts {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						sess, err := open(ctx)
						if n == attempts {
							close(ended)
						}
						return sess, err
					})
					<-ended
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		})
	}
}
