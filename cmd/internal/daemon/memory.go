package daemon

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// What the garbage collector lets the heap grow by, in percent: jobs are to be fast, and an idle daemon small.
const (
	percentIdle = 50
	percentBusy = 100
)

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
	m := &Memory{pause: pause, trim: Trim, percent: debug.SetGCPercent}
	if os.Getenv("GOGC") != "" {
		m.percent = func(int) int { return 0 }
	}
	m.start()
	return m
}

func (m *Memory) start() {
	m.percent(percentIdle)
	m.timer = time.AfterFunc(time.Hour, m.rest)
	m.timer.Stop() // until somebody touches it
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
	m.jobs = n
	if n == 0 {
		m.timer.Reset(m.pause)
		return
	}
	m.timer.Stop()
	if !m.busy {
		m.busy = true
		m.percent(percentBusy)
	}
}

// Stop ends the keeping.
func (m *Memory) Stop() { m.timer.Stop() }

// rest gives back what only the work needed.
func (m *Memory) rest() {
	m.mu.Lock()
	if m.jobs > 0 {
		m.mu.Unlock()
		return // a job came at the same moment
	}
	if m.busy {
		m.busy = false
		m.percent(percentIdle)
	}
	m.mu.Unlock()
	m.trim() // takes its time, and jobs that come meanwhile do not wait
}
