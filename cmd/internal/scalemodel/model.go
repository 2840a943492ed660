package main

import (
	"fmt"
	"strings"
	"time"
)

// What "make scale N=10000" measured over zeromq and PostgreSQL, on two processors that masters, minions, the database and
// other work shared. Processor time is the kernel's, so it depends little on that.
const (
	// largest is how many minions were measured. The rest is an extrapolation.
	largest = 10_000
	// perMaster is how many minions a master has at most in "make scale". The descriptors of the packages' unit suffice for
	// five times as many.
	perMaster = 9000
	// mostMasters is how many masters over one database "make scale" starts at most.
	mostMasters = 12
	// emptyMaster is the memory of a master without minions, minionMemory that of a connected minion, in bytes.
	emptyMaster, minionMemory = 9 << 20, 18739
	// minionRows and returnRows are the sizes of a minion and of a test.ping's return in the database, in bytes,
	// including indexes.
	minionRows, returnRows = 1178, 575
	// traffic is what the masters read and write for a return, in bytes: of the minion, the database and the caller.
	traffic = 3325
)

// cost is processor time of the masters and of the database.
type cost struct{ master, database time.Duration }

var (
	signIn   = cost{4905 * time.Microsecond, 1609 * time.Microsecond} // with session and pillar
	returned = cost{259 * time.Microsecond, 97 * time.Microsecond}    // of a job that a command waits for
	ordered  = cost{1173 * time.Microsecond, 686 * time.Microsecond}  // a delivery of an order, with its return
)

// What the table assumes.
const (
	// processors is how many each master has, and databaseProcessors each database.
	processors, databaseProcessors = 2, 4
	// jobsKept is how many jobs to all the database keeps: one an hour, for a day.
	jobsKept = 24
)

// sizes are the rows of the table.
var sizes = []int{1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}

// need holds the resources for a number of minions.
type need struct {
	minions, databases, masters int
	memory                      int64         // of all masters, in bytes
	signIns, job, order         time.Duration // of all minions
	disk                        int64         // of all databases, in bytes
	network                     int64         // of all masters for a job, in bytes
}

// needOf computes what n minions need. Each database has two masters at least, so that one may end.
func needOf(n int) need {
	x := need{minions: n}
	x.databases = ceil(n, mostMasters*perMaster)
	x.masters = max(ceil(n, perMaster), 2*x.databases)
	x.memory = int64(x.masters)*emptyMaster + int64(n)*minionMemory
	// The slower of masters and databases decides.
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

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes bytes with two digits at least.
func size(n int64) string {
	switch {
	case n < 10<<30:
		return fmt.Sprintf("%d MB", (n+1<<19)>>20)
	default:
		return fmt.Sprintf("%d GB", (n+1<<29)>>30)
	}
}

// span writes a time in seconds.
func span(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
