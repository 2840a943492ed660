//go:build bench

package master_test

import (
	"context"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// The limits of TestTenThousandSubscribers, for a master in its own process and all subscribers on the same machine.
const (
	manySubscribers    = 10_000
	budgetOfSubscriber = 12 << 10 // bytes of the master's memory
)

// TestTenThousandSubscribers connects manySubscribers publish channels to a master over loopback and publishes jobs.
// It measures the memory of each channel and how long a job takes to reach the last subscriber, and checks that every
// subscriber receives jobs after all have reconnected at once.
func TestTenThousandSubscribers(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < manySubscribers+200 {
		t.Fatalf("only %d descriptors are allowed (ulimit -n)", limit.Max)
	}
	c := startChild(t)
	c.connect(t, 1) // a publish needs a minion
	base := c.rss(t)
	var got atomic.Int64
	all := make(chan struct{}, 1)
	arrived := func(n int) {
		if got.Add(1) == int64(n) {
			all <- struct{}{}
		}
	}
	begin := time.Now()
	subs := make([]transport.Subscriber, manySubscribers)
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < len(subs); i += 8 {
				ready := make(chan struct{})
				var once sync.Once
				s, err := zeromq.New().Subscribe(context.Background(), transport.ClientOptions{RequestAddr: c.req, PublishAddr: c.pub,
					OnState: func(st transport.State) {
						if st.Connected {
							once.Do(func() { close(ready) })
						}
					}})
				if err != nil {
					t.Error(err)
					return
				}
				subs[i] = s
				go func() {
					for range s.Messages() {
						arrived(len(subs))
					}
				}()
				<-ready
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, s := range subs {
			wg.Go(func() { s.Close() })
		}
		wg.Wait()
	})
	c.subscribers(t, manySubscribers+1)
	t.Logf("%d connected in %v", manySubscribers, time.Since(begin).Round(time.Millisecond))
	full := c.rss(t)
	each := (full - base) / manySubscribers
	t.Logf("memory %d MB, then %d MB: %d bytes each", base>>20, full>>20, each)
	if each > budgetOfSubscriber {
		t.Errorf("a subscriber costs %d bytes, more than %d", each, budgetOfSubscriber)
	}
	for _, size := range []string{"100", "100", "100", "100000"} {
		got.Store(0)
		begin := time.Now()
		c.command(t, "publish "+size, "published")
		sent := time.Since(begin)
		select {
		case <-all:
		case <-time.After(2 * time.Minute):
			t.Fatalf("a publish reached %d of %d", got.Load(), len(subs))
		}
		t.Logf("a job of %s bytes: handed over after %v, at the last subscriber after %v", size, sent.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	}
	// All subscribers connect again at once, as after a failure of the network.
	begin = time.Now()
	for _, s := range subs {
		s.Reset()
	}
	for _, s := range subs {
		for end := time.Now().Add(2 * time.Minute); s.State().Reconnects == 0 || !s.State().Connected; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a subscriber does not come back: %+v", s.State())
			}
		}
	}
	c.subscribers(t, manySubscribers+1)
	t.Logf("all back after %v", time.Since(begin).Round(time.Millisecond))
	got.Store(0)
	c.command(t, "publish 100", "published")
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		t.Fatalf("after the return a publish reached %d of %d", got.Load(), len(subs))
	}
	t.Logf("memory of the master at the end %d MB; %d goroutines here", c.rss(t)>>20, runtime.NumGoroutine())
}

// command sends an instruction to the child master and returns the rest of the answer, which must begin with want.
func (c *child) command(t testing.TB, text, want string) string {
	t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), want)
	if err != nil || !ok {
		t.Fatalf("%s: %q %v", text, line, err)
	}
	return strings.TrimSpace(rest)
}

// subscribers waits until the master has n subscribers.
func (c *child) subscribers(t testing.TB, n int) {
	t.Helper()
	c.command(t, "subscribers "+strconv.Itoa(n), "subscribed")
}
