package main

import (
	"fmt"
	"strings"
	"time"
)

// Results of "make scale N=10000" with zeromq and PostgreSQL, on two processors shared by masters, minions, the
// database and other work. Processor time comes from the kernel, so it depends little on that.
const (
	// largest is the largest number of minions that was measured. Larger rows are extrapolated.
	largest = 10_000
	// perMaster is the maximum number of minions per master in "make scale". The packages' unit allows enough
	// descriptors for five times as many.
	perMaster = 9000
	// mostMasters is the maximum number of masters with one database in "make scale".
	mostMasters = 12
	// emptyMaster is the memory of a master without minions, minionMemory that of a connected minion, in bytes.
	emptyMaster, minionMemory = 9 << 20, 18739
	// minionRows and returnRows are the sizes of a minion and of a test.ping's return in the database, in bytes,
	// including indexes.
	minionRows, returnRows = 1178, 575
	// traffic is the number of bytes that the masters read and write for one return, with the minion, the database and
	// the caller.
	traffic = 3325
)

// cost is the processor time of the masters and of the database.
type cost struct{ master, database time.Duration }

var (
	signIn   = cost{4905 * time.Microsecond, 1609 * time.Microsecond} // including session and pillar
	returned = cost{259 * time.Microsecond, 97 * time.Microsecond}    // of a job that a command waits for
	ordered  = cost{1173 * time.Microsecond, 686 * time.Microsecond}  // delivery of an order, with its return
)

// Assumptions of the table.
const (
	// processors is the number of processors per master, databaseProcessors that per database.
	processors, databaseProcessors = 2, 4
	// jobsKept is how many jobs to all minions the database stores: one per hour for a day.
	jobsKept = 24
)

// sizes are the numbers of minions in the rows of the table.
var sizes = []int{1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}

// need holds the resources for a number of minions.
type need struct {
	minions, databases, masters int
	memory                      int64         // of all masters, in bytes
	signIns, job, order         time.Duration // of all minions
	disk                        int64         // of all databases, in bytes
	network                     int64         // of all masters for a job, in bytes
}

// needOf returns what n minions need. Each database has at least two masters, so that one may fail.
func needOf(n int) need {
	x := need{minions: n}
	x.databases = ceil(n, mostMasters*perMaster)
	x.masters = max(ceil(n, perMaster), 2*x.databases)
	x.memory = int64(x.masters)*emptyMaster + int64(n)*minionMemory
	// The slower of masters and databases determines the time.
	all := func(c cost) time.Duration {
		return max(time.Duration(n)*c.master/time.Duration(x.masters*processors),
			time.Duration(n)*c.database/time.Duration(x.databases*databaseProcessors))
	}
	x.signIns, x.job, x.order = all(signIn), all(returned), all(ordered)
	x.disk = int64(n) * (minionRows + jobsKept*returnRows)
	x.network = int64(n) * traffic
	return x
}

func ceil(a, b int) int { return (a + b - 1) / b }

// table returns the table of sizes in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| minions | databases | masters | memory of all masters | all sign in again | a job to all | an order to all | " +
		"database, a day's jobs | traffic of a job |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range sizes {
		x := needOf(n)
		mark := ""
		if n > largest {
			mark = " *"
		}
		fmt.Fprintf(&b, "| %s%s | %d | %d | %s | %s | %s | %s | %s | %s |\n", thousands(n), mark, x.databases, x.masters, size(x.memory),
			span(x.signIns), span(x.job), span(x.order), size(x.disk), size(x.network))
	}
	return b.String()
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size formats a number of bytes with at least two digits.
func size(n int64) string {
	switch {
	case n < 10<<30:
		return fmt.Sprintf("%d MB", (n+1<<19)>>20)
	default:
		return fmt.Sprintf("%d GB", (n+1<<29)>>30)
	}
}

// span formats a duration in seconds.
func span(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
