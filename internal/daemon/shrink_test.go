package daemon

import (
	"runtime"
	"testing"
)

func TestShrink(t *testing.T) {
	const mb = 1 << 20
	var asked, held uint64
	trims := 0
	s := shrinker{usage: func() (uint64, uint64) { return asked, held }, trim: func() { trims++; held -= held / 2 },
		lives: func() uint64 { return held }, percent: func(int) int { return 0 }}
	for i, c := range []struct {
		asked, held uint64 // changes since the previous step
		trims       int
	}{
		{asked: 4 * mb, held: 40 * mb, trims: 1}, // memory from the start: 20 MB stay
		{asked: 1 * mb, held: 5 * mb, trims: 1},  // no more than a quarter
		{asked: 900 * mb, held: 300 * mb, trims: 1},
		{asked: 16 * mb, trims: 1}, // still a peak
		{asked: 1 * mb, trims: 2},
		{trims: 2},
	} {
		asked, held = asked+c.asked, held+c.held
		if s.look(); trims != c.trims {
			t.Errorf("step %d: trimmed %d times, not %d", i, trims, c.trims)
		}
	}
}

// TestShrinkPercent: a heap may grow more once it was seen at rest, less if it is large, and little while its live
// part grows.
func TestShrinkPercent(t *testing.T) {
	const mb = 1 << 20
	var held, live uint64
	percent := 0
	s := shrinker{usage: func() (uint64, uint64) { return 0, held }, trim: func() {}, lives: func() uint64 { return live },
		percent: func(n int) int { percent = n; return 0 }}
	step := func(what string, want int, held2, live2 uint64, do func()) {
		t.Helper()
		held, live = held2, live2
		if do(); percent != want {
			t.Errorf("%s: the heap may grow by %d percent, not %d", what, percent, want)
		}
	}
	step("never at rest", percentGrowing, 20*mb, 10*mb, s.collected)
	step("at rest", percentSettled, 20*mb, 10*mb, s.look)
	step("a storm", 320, 40*mb, 15*mb, s.collected)
	step("minions come", percentGrowing, 100*mb, 16*mb, s.collected)
	step("they are there", 80, 90*mb, 60*mb, s.look)
	step("a storm of all", 60, 120*mb, 80*mb, s.collected)
	step("so many that it may grow by no more", leastPercent, 2000*mb, 1000*mb, s.look)
}

// TestAfterCollections: f is called after each garbage collection, until stop.
func TestAfterCollections(t *testing.T) {
	told := make(chan struct{}, 16)
	stop := afterCollections(func() { told <- struct{}{} })
	for range 3 {
		runtime.GC()
		<-told
	}
	stop()
}

// sink keeps memory alive.
var sink []byte

func TestUsage(t *testing.T) {
	asked, held := usage()
	sink = make([]byte, 64<<20)
	more, now := usage()
	sink = nil
	if more-asked < 64<<20 || held == 0 || now == 0 {
		t.Errorf("asked %d, then %d; held %d, then %d", asked, more, held, now)
	}
}
