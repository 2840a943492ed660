package daemon

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		begin := time.Now()
		note := func(what string) { did = append(did, fmt.Sprint(time.Since(begin), " ", what)) }
		m := &Memory{pause: 2 * time.Second, trim: func() { note("trim") }, percent: func(n int) int { note(fmt.Sprint(n)); return 0 }}
		m.start()
		defer m.Stop()
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		wait(time.Minute) // nobody touched it
		m.Touch()
		wait(time.Second)
		m.Touch()
		wait(5 * time.Second)
		m.Jobs(1)
		m.Jobs(2)
		wait(time.Minute)
		m.Touch() // a job is still running
		m.Jobs(1)
		wait(time.Minute)
		m.Jobs(0)
		wait(time.Second)
		m.Jobs(1) // before the pause is over
		wait(time.Second)
		m.Jobs(0)
		wait(time.Minute)
		m.Jobs(1)
		wait(100 * time.Millisecond)
		m.Jobs(0) // a short one
		wait(time.Minute)
		want := []string{"0s 50", "1m3s trim", "1m6.2s 100", "3m10s 50", "3m10s trim", "4m10.1s trim"}
		if !slices.Equal(did, want) {
			t.Errorf("got  %q\nwant %q", did, want)
		}
	})
}

func TestMemoryLeavesGOGC(t *testing.T) {
	t.Setenv("GOGC", "70")
	m := NewMemory(time.Hour)
	defer m.Stop()
	m.Jobs(1)
	if n := m.percent(30); n != 0 {
		t.Errorf("the garbage collector had %d%%, and was told another", n)
	}
}

func TestHeapLimit(t *testing.T) {
	for group, want := range map[int64]int64{0: 0, -1: 0, 8 << 20: 4 << 20, 32 << 20: 24 << 20, 1000 << 20: 900 << 20} {
		if got := heapLimit(group); got != want {
			t.Errorf("%d: %d, want %d", group, got, want)
		}
	}
}
