package schedule

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/internal/testkit/growth"
)

// manyJobs returns n jobs with intervals of a minute to an hour.
func manyJobs(n int) map[string]any {
	jobs := make(map[string]any, n)
	for i := range n {
		jobs[fmt.Sprintf("job%05d", i)] = map[string]any{"function": "test.ping", "seconds": int64(60 + i%3541), "splay": int64(5)}
	}
	return jobs
}

// TestGrowth: evaluating costs as much per job with 10,000 jobs as with 100.
func TestGrowth(t *testing.T) {
	growth.Bound(t, growth.Linear, []int{100, 1000, 10_000}, func(n int) func() {
		s := New(Options{Jobs: manyJobs(n)})
		now := s.now()
		return func() {
			for i := range 10 {
				s.evaluate(now.Add(time.Duration(i)*time.Minute), time.Second)
			}
		}
	})
}

// TestThousandJobs: each of 1,000 jobs runs as often as planned. As in stock, the schedule is evaluated once a second
// at most, however many jobs there are.
func TestThousandJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span = 1200
		var looks atomic.Int64
		r := newRecorder()
		jobs := manyJobs(1000)
		for _, v := range jobs {
			delete(v.(map[string]any), "splay")
		}
		s := New(Options{Start: r.start, Jobs: jobs, Clock: func() time.Time { looks.Add(1); return time.Now() }})
		s.Start()
		time.Sleep(span*time.Second + 500*time.Millisecond)
		s.Stop()
		for i := range 1000 {
			if got, want := len(r.of(fmt.Sprintf("job%05d", i))), span/(60+i); got != want {
				t.Errorf("job %d ran %d times, want %d", i, got, want)
			}
		}
		// An evaluation reads the clock twice: for the time, and to set the timer.
		n := looks.Load() / 2
		t.Logf("%d looks in %d s", n, span)
		if n > span+1 {
			t.Errorf("the schedule looked %d times in %d s", n, span)
		}
	})
}
