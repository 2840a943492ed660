package serve

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrew: the worker that became idle last works next, workers that are idle for long end, and endAll ends the
// rest.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew
		var all sync.WaitGroup
		var working atomic.Int32
		do := func(n int, f func()) {
			for range n {
				if !c.giveTask(f) {
					working.Add(1)
					all.Go(func() { c.runTasks(f); working.Add(-1) })
				}
			}
			synctest.Wait()
		}
		idle := func() []*worker {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.Clone(c.idle)
		}
		hold := make(chan struct{})
		do(5, func() { <-hold })
		close(hold)
		synctest.Wait()
		if working.Load() != 5 || len(idle()) != 5 {
			t.Fatalf("%d workers, %d rest; 5 tasks came at once", working.Load(), len(idle()))
		}
		last := idle()[4]
		for range 4 {
			time.Sleep(workerLinger / 2)
			do(1, func() {})
		}
		if working.Load() != 1 || len(idle()) != 1 || idle()[0] != last {
			t.Fatalf("%d workers are left, %d rest; one has worked", working.Load(), len(idle()))
		}
		time.Sleep(2 * workerLinger)
		synctest.Wait()
		if working.Load() != 0 || len(idle()) != 0 {
			t.Fatalf("%d workers are left, %d rest; none has worked", working.Load(), len(idle()))
		}
		do(3, func() {})
		late := make(chan struct{})
		do(1, func() { <-late })
		c.endAll()
		synctest.Wait()
		if working.Load() != 1 {
			t.Fatalf("%d workers are left after the end; one works", working.Load())
		}
		close(late)
		all.Wait()
		if c.giveTask(func() {}) || working.Load() != 0 {
			t.Fatal("somebody works after the end")
		}
	})
}
