package daemon

import "testing"

func TestShrink(t *testing.T) {
	const mb = 1 << 20
	var asked, held uint64
	trims := 0
	s := shrinker{usage: func() (uint64, uint64) { return asked, held }, trim: func() { trims++; held -= held / 2 }}
	for i, c := range []struct {
		asked, held uint64 // what came since
		trims       int
	}{
		{asked: 4 * mb, held: 40 * mb, trims: 1}, // what the start left: 20 MB stay
		{asked: 1 * mb, held: 5 * mb, trims: 1},  // no more than a quarter
		{asked: 900 * mb, held: 300 * mb, trims: 1},
		{asked: 16 * mb, trims: 1}, // still a storm
		{asked: 1 * mb, trims: 2},
		{trims: 2},
	} {
		asked, held = asked+c.asked, held+c.held
		if s.look(); trims != c.trims {
			t.Errorf("step %d: trimmed %d times, not %d", i, trims, c.trims)
		}
	}
}

// sink keeps memory from being given back.
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
