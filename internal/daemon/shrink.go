package daemon

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// percentGrowing is the heap growth in percent at which a master's garbage collector runs while minions are
	// connecting. Their lasting memory lies between short-lived garbage, whose places stay free: with 100 percent that
	// is 1 KB less per minion, with 200 percent 2 KB more.
	percentGrowing = 150
	// percentSettled applies while the heap is about as large as when the master was last quiet: anything beyond is
	// garbage of a peak. The heap then grows by mostGrowth at most, or by leastPercent of the live heap. Each
	// collection scans the stacks of all connections, and a master must not use all memory of its host because many
	// minions answer at once.
	percentSettled = 400
	leastPercent   = 50
	mostGrowth     = 48 << 20
	// shrinkEvery is how often a master checks whether it is quiet, which means that it has allocated less than
	// quietBytes since the last check.
	shrinkEvery = 5 * time.Second
	quietBytes  = 16 << 20
)

// Shrink releases a master's memory between peaks, until ctx ends: it may have ten thousand requests at once and then
// none for hours. The environment variable GOGC takes precedence.
func Shrink(ctx context.Context) {
	s := &shrinker{usage: usage, lives: lives, trim: Trim, percent: debug.SetGCPercent}
	if os.Getenv("GOGC") != "" {
		s.percent = func(int) int { return 0 }
	}
	defer s.percent(s.percent(percentGrowing))
	stop := afterCollections(s.collected)
	defer stop()
	look := time.NewTicker(shrinkEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.look()
		case <-ctx.Done():
			return
		}
	}
}

// shrinker releases memory when the process holds a quarter more than after the last release.
type shrinker struct {
	usage   func() (asked, held uint64)
	lives   func() uint64
	trim    func()
	percent func(int) int

	mu      sync.Mutex // guards the fields below
	asked   uint64     // at the last check
	floor   uint64     // bytes held after the last trim
	settled uint64     // live bytes after the last trim
}

func (s *shrinker) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, held := s.usage()
	quiet := asked-s.asked < quietBytes
	s.asked = asked
	if !quiet || held <= s.floor+s.floor/4 {
		return
	}
	s.trim()
	s.asked, s.floor = s.usage()
	s.settled = s.lives()
	s.adapt()
}

// collected is called after each garbage collection.
func (s *shrinker) collected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adapt()
}

// adapt sets the garbage collector's percentage by the growth of the heap. The caller holds mu.
func (s *shrinker) adapt() {
	live := s.lives()
	if live > s.settled+s.settled/2 {
		s.percent(percentGrowing)
		return
	}
	s.percent(int(max(leastPercent, min(percentSettled, mostGrowth*100/max(live, 1)))))
}

// usage returns the bytes that were ever allocated on the heap, and the bytes that the process holds now.
func usage() (asked, held uint64) {
	m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64(), m[1].Value.Uint64() - m[2].Value.Uint64()
}

// lives returns the bytes that the last garbage collection found in use, including stacks; the collector's
// percentages refer to this number.
func lives() uint64 {
	m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64() + m[1].Value.Uint64()
}

// afterCollections calls f after each garbage collection, until stop is called.
func afterCollections(f func()) (stop func()) {
	done := make(chan struct{})
	var again func(struct{})
	watch := func() {
		runtime.AddCleanup(new(*int), again, struct{}{}) // unreachable at once, so the next collection calls again
	}
	again = func(struct{}) {
		select {
		case <-done:
			return
		default:
		}
		f()
		watch()
	}
	watch()
	return func() { close(done) }
}
