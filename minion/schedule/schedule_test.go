package schedule

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/strftime"
)

// recorder records when jobs begin, in seconds since its creation.
type recorder struct {
	begin time.Time
	mu    sync.Mutex
	runs  map[string][]int // guarded by mu
}

func newRecorder() *recorder { return &recorder{begin: time.Now(), runs: map[string][]int{}} }

func (r *recorder) start(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[run.Name] = append(r.runs[run.Name], int(time.Since(r.begin).Round(time.Second)/time.Second))
}

func (r *recorder) of(name string) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs[name])
}

// in returns a time this many seconds from now, in the form of the configuration.
func in(seconds int) string {
	return strftime.Naive(timeLayout, pydate.Now(time.Now().Add(time.Duration(seconds)*time.Second)))
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := New(Options{Start: r.start, Jobs: map[string]any{
			"often":  map[string]any{"function": "a.b", "seconds": int64(20)},
			"once":   map[string]any{"function": "a.b", "once": in(33)},
			"past":   map[string]any{"function": "a.b", "once": in(-33)},
			"when":   map[string]any{"function": "a.b", "when": []any{in(10), in(45), in(46)}},
			"cron":   map[string]any{"function": "a.b", "cron": "* * * * *"},
			"start":  map[string]any{"function": "a.b", "hours": int64(5), "run_on_start": true},
			"off":    map[string]any{"function": "a.b", "seconds": int64(1), "enabled": false},
			"dry":    map[string]any{"function": "a.b", "seconds": int64(1), "dry_run": true},
			"broken": map[string]any{"function": "a.b", "seconds": "x"},
			"no job": "text",
		}})
		s.Start()
		time.Sleep(130 * time.Second)
		want := map[string][]int{"often": {20, 40, 60, 80, 100, 120}, "once": {33}, "when": {10, 45, 46}, "cron": {60, 120}, "start": {0}}
		for _, name := range []string{"often", "once", "past", "when", "cron", "start", "off", "dry", "broken", "no job"} {
			if diff := cmp.Diff(want[name], r.of(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		s.Stop()
		time.Sleep(time.Minute)
		if got := r.of("often"); len(got) != 6 {
			t.Errorf("jobs run after the end: %v", got)
		}
	})
}

// TestOwnJobsOfStock uses the entries that a stock minion leaves in _schedule.conf after a restart of its master:
// they are not jobs of the user.
func TestOwnJobsOfStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		left := map[string]any{"mine": map[string]any{"function": "a.b", "seconds": int64(40)}}
		for _, name := range []string{"__master_alive_127.0.0.1", "__master_failback", "__mine_interval", "__update_grains", "__proxy_keepalive_x"} {
			left[name] = map[string]any{"function": "status.master", "seconds": int64(0), "return_job": false, "maxrunning": int64(1),
				"kwargs": map[string]any{"connected": true, "master": "127.0.0.1"}}
		}
		s := New(Options{Start: r.start, Jobs: left})
		s.Start()
		time.Sleep(50 * time.Second)
		s.Replace(left)
		time.Sleep(50 * time.Second)
		s.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		if diff := cmp.Diff(map[string][]int{"mine": {40, 80}}, r.runs); diff != "" {
			t.Error(diff)
		}
	})
}

// TestClockSetBack: if the clock is set back, by an hour or by ten years, intervals and cron expressions continue as
// without the change.
func TestClockSetBack(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, 10 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			var back atomic.Int64
			s := New(Options{Start: r.start, Clock: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }, Jobs: map[string]any{
				"often":   map[string]any{"function": "a.b", "seconds": int64(20)},
				"seldom":  map[string]any{"function": "a.b", "minutes": int64(2)},
				"splayed": map[string]any{"function": "a.b", "seconds": int64(40), "splay": map[string]any{"start": int64(5), "end": int64(5)}},
				"cron":    map[string]any{"function": "a.b", "cron": "* * * * *"},
			}})
			s.Start()
			defer s.Stop()
			time.Sleep(70 * time.Second)
			back.Store(int64(by))
			time.Sleep(180 * time.Second)
			want := map[string][]int{
				"often":   {20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240},
				"seldom":  {120, 240},
				"splayed": {45, 90, 135, 180, 225},
				"cron":    {60, 120, 180, 240},
			}
			for name, want := range want {
				if diff := cmp.Diff(want, r.of(name)); diff != "" {
					t.Errorf("%v, %s (-want +got):\n%s", by, name, diff)
				}
			}
		})
	}
}

func TestMaxRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		busy := 0
		s := New(Options{Start: r.start, Running: func(string) int { return busy }, Jobs: map[string]any{
			"one": map[string]any{"function": "a.b", "seconds": int64(10)}, "two": map[string]any{"function": "a.b", "seconds": int64(10), "maxrunning": int64(2)}}})
		s.Start()
		time.Sleep(11 * time.Second)
		s.mu.Lock()
		busy = 1
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		s.Stop()
		if diff := cmp.Diff([]int{10}, r.of("one")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{10, 20}, r.of("two")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingToDoCostsNothing(t *testing.T) {
	s := New(Options{Jobs: map[string]any{"enabled": true}})
	s.Start()
	defer s.Stop()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		idle := s.timer == nil && !s.last.IsZero()
		s.mu.Unlock()
		if idle {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a schedule without jobs keeps a timer")
		}
	}
}

func TestPillarKeepsItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		var mu sync.Mutex
		pillar := map[string]any{"schedule": map[string]any{"same": map[string]any{"function": "a.b", "seconds": int64(30)},
			"changes": map[string]any{"function": "a.b", "seconds": int64(30)}, "goes": map[string]any{"function": "a.b", "seconds": int64(30)}}}
		s := New(Options{Start: r.start, Pillar: func() map[string]any { mu.Lock(); defer mu.Unlock(); return pillar }})
		s.Start()
		time.Sleep(20 * time.Second)
		mu.Lock()
		pillar = map[string]any{"schedule": map[string]any{"same": map[string]any{"function": "a.b", "seconds": int64(30)},
			"changes": map[string]any{"function": "a.b", "seconds": int64(25)}, "comes": map[string]any{"function": "a.b", "seconds": int64(30)}}}
		mu.Unlock()
		s.Wake()
		time.Sleep(35 * time.Second)
		s.Stop()
		for name, want := range map[string][]int{"same": {30}, "changes": {45}, "goes": nil, "comes": {50}} {
			if diff := cmp.Diff(want, r.of(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestReplaceKeepsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		jobs := func() map[string]any {
			return map[string]any{"job": map[string]any{"function": "a.b", "seconds": int64(30)}}
		}
		s := New(Options{Start: r.start, Jobs: jobs()})
		s.Start()
		time.Sleep(20 * time.Second)
		s.Replace(jobs())
		time.Sleep(15 * time.Second)
		s.Stop()
		if diff := cmp.Diff([]int{30}, r.of("job")); diff != "" {
			t.Error(diff)
		}
	})
}
