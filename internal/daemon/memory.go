package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// What the garbage collector lets the heap grow by, in percent: jobs are to be fast, and an idle daemon small.
const (
	percentIdle = 50
	percentBusy = 100
)

// busyAfter is how long jobs last before they may have more: what short ones leave behind in a larger heap stays.
const busyAfter = 200 * time.Millisecond

// Memory keeps a daemon small while it has nothing to do, and lets it take what it needs for its jobs. The environment
// variable GOGC has the last word on the garbage collector.
type Memory struct {
	pause   time.Duration
	trim    func()
	percent func(int) int

	mu    sync.Mutex
	jobs  int  // guarded by mu
	busy  bool // guarded by mu; what the garbage collector was told
	timer *time.Timer
}

// NewMemory makes the keeper of a daemon that counts as idle a pause after its last job, or after it was last touched.
func NewMemory(pause time.Duration) *Memory {
	runtime.MemProfileRate = 0 // nothing reads the profile, whose sparse tables take a quarter of a megabyte
	m := &Memory{pause: pause, trim: Trim, percent: debug.SetGCPercent}
	if os.Getenv("GOGC") != "" {
		m.percent = func(int) int { return 0 }
	}
	m.start()
	return m
}

func (m *Memory) start() {
	m.percent(percentIdle)
	m.timer = time.AfterFunc(time.Hour, m.turn)
	m.timer.Stop() // until there is something to wait for
}

// Touch tells that the daemon did something other than a job, such as connecting.
func (m *Memory) Touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == 0 {
		m.timer.Reset(m.pause)
	}
}

// Jobs tells how many jobs there are now.
func (m *Memory) Jobs(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.jobs
	m.jobs = n
	switch {
	case n == 0:
		m.timer.Reset(m.pause)
	case was == 0 && m.busy:
		m.timer.Stop()
	case was == 0:
		m.timer.Reset(busyAfter)
	}
}

// Stop ends the keeping.
func (m *Memory) Stop() { m.timer.Stop() }

// turn follows what has lasted long enough: jobs, or that there are none, when it gives back what only they needed.
func (m *Memory) turn() {
	m.mu.Lock()
	working := m.jobs > 0
	if m.busy != working {
		m.busy = working
		if working {
			m.percent(percentBusy)
		} else {
			m.percent(percentIdle)
		}
	}
	m.mu.Unlock()
	if !working {
		m.trim() // takes its time, and jobs that come meanwhile do not wait
	}
}
