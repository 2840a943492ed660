package subscribers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
)

// TestNewcomers: sources take turns, a place stays empty for a while after each sign-in, and a newcomer that gives
// up uses no turn.
func TestNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNewcomers(false)
		n.free, n.few = 1, ratelimit.New(newcomerRate, 1)
		for _, peer := range []string{"192.0.2.1:9", "192.0.2.2:9"} { // no more without a pause
			n.few.Allow(peer, time.Now())
		}
		begin := time.Now()
		var mu sync.Mutex
		var order []string // guarded by mu
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s)
		}
		signIn := func(ctx context.Context, peer string) {
			leave, err := n.Enter(ctx, peer)
			if err != nil {
				note("gone")
				return
			}
			note(fmt.Sprint(peer, " ", time.Since(begin)))
			time.Sleep(time.Millisecond)
			leave()
		}
		for i := range 3 {
			go signIn(t.Context(), fmt.Sprintf("192.0.2.1:%d", i))
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go signIn(ctx, "192.0.2.3:1")
		synctest.Wait()
		go signIn(t.Context(), "192.0.2.2:1")
		synctest.Wait()
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		want := []string{"192.0.2.1:0 0s", "gone", "192.0.2.1:1 8ms", "192.0.2.2:1 16ms",
			"192.0.2.1:2 24ms"}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if n.free != 1 || len(n.lines) != 0 {
			t.Errorf("%d places, %d lines in the end", n.free, len(n.lines))
		}
		if n = NewNewcomers(true); n.free < 1 {
			t.Errorf("%d places", n.free)
		}
		for range 3 {
			leave, err := n.Enter(t.Context(), "192.0.2.1:1")
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
	})
}

// TestFewNewcomers: a source pauses only after as many sign-ins as a site behind one address may have, and other
// sources do not wait for that.
func TestFewNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNewcomers(false)
		n.free = 1
		signIns := func(peer string, times int) time.Duration {
			begin := time.Now()
			for range times {
				leave, err := n.Enter(t.Context(), peer)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				leave()
			}
			return time.Since(begin)
		}
		if got := signIns("192.0.2.1:1", newcomerBurst+1); got != (newcomerBurst+1)*time.Millisecond {
			t.Errorf("few took %v", got)
		}
		if got := signIns("192.0.2.1:1", 10); got < 70*time.Millisecond {
			t.Errorf("10 more took %v", got)
		}
		time.Sleep(time.Second)
		if got := signIns("192.0.2.2:1", 10); got != 10*time.Millisecond {
			t.Errorf("10 of another source took %v", got)
		}
	})
}

// TestNewcomersAreBounded: the number of waiting newcomers is limited, per source and in total. Without a limit for
// sign-ins there is no such limit.
func TestNewcomersAreBounded(t *testing.T) {
	for _, unpaced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := NewNewcomers(unpaced)
			n.free = 0
			ctx, cancel := context.WithCancel(t.Context())
			var refused atomic.Int32
			try := func(peer string, times int) int32 {
				refused.Store(0)
				for range times {
					go func() {
						if _, err := n.Enter(ctx, peer); errors.Is(err, errManyNewcomers) {
							refused.Add(1)
						}
					}()
				}
				synctest.Wait()
				return refused.Load()
			}
			got := []int32{try("192.0.2.1:1", newcomersOfOne+10), try("192.0.2.2:1", 10)}
			for i := range 5 {
				got = append(got, try(fmt.Sprintf("192.0.2.%d:1", 10+i), 400))
			}
			want := []int32{10, 0, 0, 0, 0, 510 + 1600 - newcomersWaiting, 400}
			if unpaced {
				want = make([]int32, len(want))
			}
			if !slices.Equal(got, want) {
				t.Errorf("unpaced %v: refused %v, want %v", unpaced, got, want)
			}
			cancel()
			synctest.Wait()
		})
	}
}
