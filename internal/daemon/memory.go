package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/memlimit"
)

// The heap growth in percent at which the garbage collector runs: jobs should be fast, and an idle daemon small.
const (
	percentIdle = 50
	percentBusy = 100
	percentOff  = -1
)

const (
	// busyAfter is how long jobs must last before the heap may grow more. After short jobs a larger heap would stay.
	busyAfter = 200 * time.Millisecond
	// worthTrimming is how many bytes must have been allocated before a garbage collection is worth its time.
	worthTrimming = 512 << 10
	// quietGrowth is how many bytes a quiet daemon may allocate before the garbage collector runs. The collector keeps
	// half of it in reserve.
	quietGrowth = 2 << 20
	// restAfter is how long goroutines, such as those of connections, may take to end when the daemon rests.
	restAfter = 50 * time.Millisecond
	// restTables replaces tablesAfter in a resting daemon, which runs nothing that reads the tables. The next poll
	// reads a third of a megabyte back from the disk.
	restTables = 500 * time.Millisecond
	// tablesAfter is how long a daemon must be quiet before the program's tables are removed from memory. The next job
	// may have to read them from the disk.
	tablesAfter = 10 * time.Second
)

// Memory keeps a daemon small while it is idle, and lets it use as much as its jobs need.
//
// After a pause without jobs and without calls of Touch, the daemon becomes quiet: unused heap and the pages of the
// program file are released. A garbage collection would load all tables of the program again, so a quiet daemon does
// not run the collector, not even the run that Go starts every two minutes. Instead its memory is limited. At the
// limit a collection ends the quiet state, and the next pause begins:
//
//	          job lasts 200 ms             no job for a pause
//	idle ───────────────────────▶ busy ─────────────────────────▶ quiet
//	 │  ▲                                                          │  ▲
//	 │  └──────────────── the memory reached the limit ────────────┘  │
//	 └───────────────────────── no job for a pause ───────────────────┘
//
// A daemon that is not busy uses one processor, since each further one has its own object cache and threads with
// stacks.
//
// The environment variables GOGC (garbage collector), GOMEMLIMIT (limit) and GOMAXPROCS (processors) take
// precedence.
type Memory struct {
	pause   time.Duration
	trim    func()
	unmap   func() // the part of trim that takes almost no time
	pageOut func()
	percent func(int) int
	limit   func(int64) int64
	procs   func(all bool)
	usage   func() (asked, held uint64)
	most    int64 // the limit of a daemon that is not quiet
	unwatch func()

	mu      sync.Mutex
	jobs    int           // guarded by mu
	busy    bool          // guarded by mu; the garbage collector has its setting for jobs
	quiet   bool          // guarded by mu; the garbage collector is off and memory is limited
	asked   uint64        // guarded by mu; bytes allocated at the last trim
	resting bool          // guarded by mu; the timer was set by Rest
	read    bool          // guarded by mu; a job or the garbage collector may have read the program's tables
	timer   *time.Timer   // of turn
	late    *time.Timer   // of tables
	ended   chan struct{} // closed by Stop
}

// NewMemory returns a Memory for a daemon that counts as idle after a pause without jobs and without calls of
// Touch.
func NewMemory(pause time.Duration) *Memory {
	runtime.MemProfileRate = 0 // the profile is not used, and its sparse tables take a quarter of a megabyte
	m := &Memory{pause: pause, trim: Trim, unmap: unmap, pageOut: pageOut, percent: debug.SetGCPercent, limit: debug.SetMemoryLimit, procs: processors,
		usage: usage}
	if os.Getenv("GOGC") != "" {
		m.percent, m.limit = func(int) int { return 0 }, func(int64) int64 { return 0 }
	}
	if ownProcessors() {
		m.procs = func(bool) {}
	}
	m.start()
	m.unwatch = afterCollections(m.collected)
	return m
}

// StartSmall must be called first in a daemon with a Memory: memory that is allocated earlier is never released.
func StartSmall() {
	if !ownProcessors() {
		processors(false)
	}
}

// ownProcessors reports whether GOMAXPROCS is set in the environment.
func ownProcessors() bool { return os.Getenv("GOMAXPROCS") != "" }

// processors makes Go code run on one processor, or on all that the host and its control group permit.
func processors(all bool) {
	if all {
		runtime.SetDefaultGOMAXPROCS()
	} else {
		runtime.GOMAXPROCS(1)
	}
}

func (m *Memory) start() {
	m.most, m.unwatch = m.limit(-1), func() {}
	memlimit.Keep(m.most)
	m.percent(percentIdle)
	m.procs(false)
	m.timer, m.late = time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	m.timer.Stop() // until there is something to wait for
	m.late.Stop()
	m.ended = make(chan struct{})
	go m.keep()
}

// keep handles the timers until Stop. It is one goroutine for the daemon's lifetime: when a goroutine begins or ends,
// Go looks its function up in tables of the program, which would be back in memory right after unmap.
func (m *Memory) keep() {
	for {
		select {
		case <-m.timer.C:
			m.turn()
		case <-m.late.C:
			m.tables()
		case <-m.ended:
			return
		}
	}
}

// Touch reports activity other than a job, such as connecting.
func (m *Memory) Touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == 0 {
		m.timer.Reset(m.pause)
	}
}

// Rest reports that the daemon will do nothing for seconds, for example between two polls. The quiet state then
// begins without the pause.
func (m *Memory) Rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == 0 {
		m.resting, m.read = true, true // the recent activity has read tables
		m.timer.Reset(min(m.pause, restAfter))
	}
}

// Jobs sets the number of running jobs.
func (m *Memory) Jobs(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.jobs
	m.jobs = n
	m.read = true
	m.late.Stop()
	switch {
	case n == 0:
		m.timer.Reset(m.pause)
	case was == 0 && m.busy:
		m.timer.Stop()
	case was == 0:
		m.timer.Reset(busyAfter)
	}
}

// Stop ends the goroutine and the timers.
func (m *Memory) Stop() {
	close(m.ended)
	m.timer.Stop()
	m.late.Stop()
	m.unwatch()
	memlimit.Keep(0)
}

// turn changes the state after jobs, or a pause without jobs, lasted long enough. Without jobs it releases memory
// that only jobs need.
func (m *Memory) turn() {
	m.mu.Lock()
	if m.jobs > 0 {
		if !m.busy {
			m.wake()
			m.busy = true
			m.percent(percentBusy)
			m.procs(true)
		}
		m.mu.Unlock()
		return
	}
	if m.busy {
		m.busy = false
		m.percent(percentIdle)
		m.procs(false)
	}
	asked, _ := m.usage()
	worth := asked-m.asked >= worthTrimming
	m.mu.Unlock()
	if worth {
		m.trim() // slow; new jobs must not wait for it
	}
	m.mu.Lock()
	if m.jobs == 0 {
		m.rest(worth)
	}
	m.mu.Unlock()
	m.unmap()
}

// rest makes the daemon quiet. The caller holds mu.
func (m *Memory) rest(trimmed bool) {
	asked, held := m.usage()
	if trimmed {
		m.asked, m.read = asked, true
	}
	switch {
	case m.resting:
		m.late.Reset(restTables)
	case m.read:
		m.late.Reset(tablesAfter)
	}
	m.resting = false
	if trimmed || !m.quiet {
		m.limit(min(m.most, int64(held)+quietGrowth))
	}
	if !m.quiet {
		m.quiet = true
		m.percent(percentOff)
	}
}

// tables removes the program's tables from memory after the daemon was quiet for tablesAfter.
func (m *Memory) tables() {
	m.mu.Lock()
	due := m.read && m.jobs == 0
	m.read = m.read && !due
	m.mu.Unlock()
	if due {
		m.pageOut()
		m.unmap()
	}
}

// wake ends the quiet state. The caller holds mu.
func (m *Memory) wake() {
	if m.quiet {
		m.quiet = false
		m.percent(percentIdle)
		m.limit(m.most)
	}
}

// collected is called after each garbage collection.
func (m *Memory) collected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.quiet {
		return
	}
	m.wake()
	if m.jobs == 0 {
		m.timer.Reset(m.pause)
	}
}
