package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/memlimit"
)

// What the garbage collector lets the heap grow by, in percent: jobs are to be fast, and an idle daemon small.
const (
	percentIdle = 50
	percentBusy = 100
	percentOff  = -1
)

const (
	// busyAfter is how long jobs last before they may have more: what short ones leave behind in a larger heap stays.
	busyAfter = 200 * time.Millisecond
	// worthTrimming is how much memory has been asked for, in bytes, before a round of the garbage collector is worth its time.
	worthTrimming = 512 << 10
	// quietGrowth is how much memory a quiet daemon may take, in bytes, before the garbage collector runs. It keeps half of it in reserve.
	quietGrowth = 2 << 20
	// restAfter is how long goroutines may take to end, such as those of connections, when the daemon rests.
	restAfter = 50 * time.Millisecond
	// restTables is tablesAfter of a daemon that rests: by then it runs nothing that reads them. What the next poll needs of them, a third of
	// a megabyte, comes from disk.
	restTables = 500 * time.Millisecond
	// tablesAfter is how long a daemon that worked is quiet before the program's tables leave the memory: the next job may read them from disk.
	tablesAfter = 10 * time.Second
)

// Memory keeps a daemon small while it has nothing to do, and lets it take what it needs for its jobs.
//
// A pause after its last job, or after it was last touched, the daemon becomes quiet: unused heap and the pages of the program file
// leave the memory. A round of the garbage collector would bring back what it reads, which is all tables of the program, so a quiet
// daemon has none, not even the one that Go makes every two minutes. The memory that it takes meanwhile is limited. At the limit a
// round ends the quiet, and the next pause begins:
//
//	          job lasts 200 ms             no job for a pause
//	idle ───────────────────────▶ busy ─────────────────────────▶ quiet
//	 │  ▲                                                          │  ▲
//	 │  └──────────────── the memory reached the limit ────────────┘  │
//	 └───────────────────────── no job for a pause ───────────────────┘
//
// A daemon that is not busy has one processor: each further one has places of its own for objects, and threads with their stacks.
//
// The environment variable GOGC has the last word on the garbage collector, GOMEMLIMIT on the limit, and GOMAXPROCS on the processors.
type Memory struct {
	pause   time.Duration
	trim    func()
	unmap   func() // the part of trim that takes no time
	pageOut func()
	percent func(int) int
	limit   func(int64) int64
	procs   func(all bool)
	usage   func() (asked, held uint64)
	most    int64 // the limit of a daemon that is not quiet
	unwatch func()

	mu      sync.Mutex
	jobs    int           // guarded by mu
	busy    bool          // guarded by mu; what the garbage collector was told
	quiet   bool          // guarded by mu; what the garbage collector was told
	asked   uint64        // guarded by mu; what had been asked for after the last trim
	resting bool          // guarded by mu; the timer is that of Rest
	read    bool          // guarded by mu; a job or the garbage collector may have read the program's tables
	timer   *time.Timer   // of turn
	late    *time.Timer   // of tables
	ended   chan struct{} // closed by Stop
}

// NewMemory makes the keeper of a daemon that counts as idle a pause after its last job, or after it was last touched.
func NewMemory(pause time.Duration) *Memory {
	runtime.MemProfileRate = 0 // nothing reads the profile, whose sparse tables take a quarter of a megabyte
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

// StartSmall is for the first thing that a daemon with a Memory does: what it takes before that stays.
func StartSmall() {
	if !ownProcessors() {
		processors(false)
	}
}

// ownProcessors reports whether the environment says how many processors Go code runs on.
func ownProcessors() bool { return os.Getenv("GOMAXPROCS") != "" }

// processors has Go code run on one processor, or on all that the host and its control group give.
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

// keep follows the timers until Stop. It is one goroutine for all of the daemon's life: where a goroutine begins or ends, Go looks its
// function up in tables of the program, and these would be back in memory right after unmap.
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

// Touch tells that the daemon did something other than a job, such as connecting.
func (m *Memory) Touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == 0 {
		m.timer.Reset(m.pause)
	}
}

// Rest tells that the daemon has done something and will do nothing for seconds, as between two polls: it need not wait for the pause.
func (m *Memory) Rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == 0 {
		m.resting, m.read = true, true // what it did has read tables
		m.timer.Reset(min(m.pause, restAfter))
	}
}

// Jobs tells how many jobs there are now.
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

// Stop ends the keeping.
func (m *Memory) Stop() {
	close(m.ended)
	m.timer.Stop()
	m.late.Stop()
	m.unwatch()
	memlimit.Keep(0)
}

// turn follows what has lasted long enough: jobs, or that there are none, when it gives back what only they needed.
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
		m.trim() // takes its time, and jobs that come meanwhile do not wait
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

// tables removes the program's tables once the daemon was quiet for tablesAfter.
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

// wake ends the quiet. The caller holds mu.
func (m *Memory) wake() {
	if m.quiet {
		m.quiet = false
		m.percent(percentIdle)
		m.limit(m.most)
	}
}

// collected is called after each round of the garbage collector.
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
