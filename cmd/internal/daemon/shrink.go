package daemon

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// percentMaster is what the garbage collector lets the heap of a master grow by, in percent: in a storm of ten thousand minions its rounds
	// take 3 percent of the processor time. What is left is given back when the storm is over, but for the free places between what stays:
	// with 100 percent these are 1 KB for each minion less, with 200 percent 2 KB more, and returns cost 5 percent more and less.
	percentMaster = 150
	// shrinkEvery is how often a master looks whether it is quiet: whether it has asked for less than quietBytes of memory since.
	shrinkEvery = 5 * time.Second
	quietBytes  = 16 << 20
)

// Shrink keeps a master small between storms, until ctx ends: it may have ten thousand requests at once and then none for hours. The
// environment variable GOGC has the last word on the garbage collector.
func Shrink(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(percentMaster))
	}
	s := shrinker{usage: usage, trim: Trim}
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

// shrinker gives memory back when there is a quarter more of it than after the last time.
type shrinker struct {
	usage func() (asked, held uint64)
	trim  func()

	asked uint64 // at the last look
	floor uint64 // what the last trim left
}

func (s *shrinker) look() {
	asked, held := s.usage()
	quiet := asked-s.asked < quietBytes
	s.asked = asked
	if !quiet || held <= s.floor+s.floor/4 {
		return
	}
	s.trim()
	s.asked, s.floor = s.usage()
}

// usage is how much memory was ever asked for, and how much is held now.
func usage() (asked, held uint64) {
	m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64(), m[1].Value.Uint64() - m[2].Value.Uint64()
}
