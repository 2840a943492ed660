package daemon

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memoryDiary replaces the functions of m by ones that record what is called and when. asked is how many bytes the
// daemon has allocated.
func memoryDiary(m *Memory, asked *uint64) (did *[]string) {
	did = new([]string)
	begin := time.Now()
	var mu sync.Mutex // timers write
	note := func(what ...any) {
		mu.Lock()
		defer mu.Unlock()
		*did = append(*did, fmt.Sprint(append([]any{time.Since(begin), " "}, what...)...))
	}
	m.pause = 2 * time.Second
	m.trim = func() { note("trim") }
	m.unmap = func() { note("unmap") }
	m.pageOut = func() { note("pageOut") }
	m.percent = func(n int) int { note(n, "%"); return 0 }
	m.limit = func(n int64) int64 {
		if n >= 0 {
			note("limit ", n>>20)
		}
		return 100 << 20
	}
	m.procs = func(all bool) { note("all processors ", all) }
	m.usage = func() (uint64, uint64) { return *asked, 5 << 20 }
	m.start()
	return did
}

// TestMemoryQuiet simulates a daemon with some activity, little work and much work, which the garbage collector
// wakes.
func TestMemoryQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		asked := uint64(1 << 20)
		did := memoryDiary(&m, &asked)
		defer m.Stop()
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		m.Touch()
		wait(time.Minute)
		m.Touch() // little was allocated: a collection is not worth its time
		wait(time.Minute)
		asked += 1 << 20
		m.Touch()
		wait(time.Minute)
		asked += 1 << 20
		m.collected() // the limit was reached
		wait(time.Minute)
		m.Jobs(1)
		wait(time.Minute) // a long job has no limit
		m.collected()
		m.Jobs(0)
		wait(time.Minute)
		want := []string{"0s 50%", "0s all processors false",
			"2s trim", "2s limit 7", "2s -1%", "2s unmap", "12s pageOut", "12s unmap",
			"1m2s unmap",
			"2m2s trim", "2m2s limit 7", "2m2s unmap", "2m12s pageOut", "2m12s unmap",
			"3m0s 50%", "3m0s limit 100", "3m2s trim", "3m2s limit 7", "3m2s -1%", "3m2s unmap", "3m12s pageOut", "3m12s unmap",
			"4m0.2s 50%", "4m0.2s limit 100", "4m0.2s 100%", "4m0.2s all processors true",
			"5m2s 50%", "5m2s all processors false", "5m2s limit 7", "5m2s -1%", "5m2s unmap", "5m12s pageOut", "5m12s unmap"}
		if !slices.Equal(*did, want) {
			t.Errorf("got  %q\nwant %q", *did, want)
		}
	})
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		var asked uint64
		did := memoryDiary(&m, &asked)
		defer m.Stop()
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		wait(time.Minute) // no calls of Touch
		asked += 1 << 20
		m.Touch()
		wait(time.Second)
		m.Touch()
		wait(5 * time.Second)
		asked += 1 << 20
		m.Jobs(1)
		m.Jobs(2)
		wait(time.Minute)
		m.Touch() // a job is still running
		m.Jobs(1)
		wait(time.Minute)
		m.Jobs(0)
		wait(time.Second)
		m.Jobs(1) // before the pause has passed
		wait(time.Second)
		m.Jobs(0)
		wait(time.Minute)
		m.Jobs(1)
		wait(100 * time.Millisecond)
		m.Jobs(0) // a short job
		wait(time.Minute)
		want := []string{"0s 50%", "0s all processors false",
			"1m3s trim", "1m3s limit 7", "1m3s -1%", "1m3s unmap", // a job begins before the tables are removed
			"1m6.2s 50%", "1m6.2s limit 100", "1m6.2s 100%", "1m6.2s all processors true",
			"3m10s 50%", "3m10s all processors false", "3m10s trim", "3m10s limit 7", "3m10s -1%", "3m10s unmap", "3m20s pageOut", "3m20s unmap",
			"4m10.1s unmap", "4m20.1s pageOut", "4m20.1s unmap"}
		if !slices.Equal(*did, want) {
			t.Errorf("got  %q\nwant %q", *did, want)
		}
	})
}

// TestMemoryRest simulates a daemon that rests between two polls, and one with a job at that time.
func TestMemoryRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		asked := uint64(1 << 20)
		did := memoryDiary(&m, &asked)
		defer m.Stop()
		m.Touch()
		m.Rest()
		time.Sleep(time.Minute)
		m.Rest()
		time.Sleep(time.Minute)
		m.Jobs(1)
		m.Rest()
		time.Sleep(100 * time.Millisecond)
		m.Jobs(0)
		synctest.Wait()
		want := []string{"0s 50%", "0s all processors false",
			"50ms trim", "50ms limit 7", "50ms -1%", "50ms unmap", "550ms pageOut", "550ms unmap",
			"1m0.05s unmap", "1m0.55s pageOut", "1m0.55s unmap"}
		if !slices.Equal(*did, want) {
			t.Errorf("got  %q\nwant %q", *did, want)
		}
	})
}

func TestMemoryLeavesGOGC(t *testing.T) {
	t.Setenv("GOGC", "70")
	t.Setenv("GOMAXPROCS", "2")
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

// TestQuietDaemonStillCollects allocates more than a quiet daemon may have: the garbage collector runs, and the quiet
// state begins again.
func TestQuietDaemonStillCollects(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMAXPROCS", "2") // also that of other tests
	m := NewMemory(time.Millisecond)
	defer debug.SetGCPercent(100)
	defer m.Stop()
	quiet := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			m.mu.Lock()
			is := m.quiet
			m.mu.Unlock()
			if is == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("quiet is %v", is)
			}
		}
	}
	m.Touch()
	quiet(true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 << 20 / 4096 {
		rubbish = make([]byte, 4096)
	}
	runtime.ReadMemStats(&after)
	if after.NumGC == before.NumGC {
		t.Error("the garbage collector did not run")
	}
	quiet(true)
}

var rubbish []byte
