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
	// What the garbage collector lets the heap of a master grow by, in percent. While minions come, what they leave for good lies between what is
	// garbage soon, and the places of that stay free: with 100 percent these are 1 KB less for each minion, with 200 percent 2 KB more.
	percentGrowing = 150
	// percentSettled applies while the heap has the size that it had when the master was quiet: anything beyond
	// is garbage after a storm. The heap grows by mostGrowth at most, or by leastPercent of the live heap. Each
	// collection scans the stacks of all connections, and a master must not use all memory of its host because
	// many minions answer at once.
	percentSettled = 400
	leastPercent   = 50
	mostGrowth     = 48 << 20
	// shrinkEvery is how often a master looks whether it is quiet: whether it has asked for less than quietBytes of memory since.
	shrinkEvery = 5 * time.Second
	quietBytes  = 16 << 20
)

// Shrink keeps a master small between storms, until ctx ends: it may have ten thousand requests at once and then
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

// shrinker releases memory when there is a quarter more of it than after the last release.
type shrinker struct {
	usage   func() (asked, held uint64)
	lives   func() uint64
	trim    func()
	percent func(int) int

	mu      sync.Mutex // guards the fields below
	asked   uint64     // at the last look
	floor   uint64     // what the last trim left
	settled uint64     // what lived after it
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

// adapt sets the percentage of the garbage collector by how far the heap has grown. The caller holds mu.
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

// afterCollections calls f after each round of the garbage collector, until stop.
func afterCollections(f func()) (stop func()) {
	done := make(chan struct{})
	var again func(struct{})
	watch := func() {
		runtime.AddCleanup(new(*int), again, struct{}{}) // unreachable, so the next collection runs again
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
