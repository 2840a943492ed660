package main

import (
	"fmt"
	"strings"
	"time"
)

// What was measured with "make scale N=30000" over zeromq and PostgreSQL, on two processors that masters, minions and
// database shared.
const (
	// largest is how many minions were measured. The rest is an extrapolation.
	largest = 30_000
	// perMaster is how many minions a master had. The published unit's descriptors would suffice for five times as many.
	perMaster = 9000
	// mostMasters is how many masters over one database are tried.
	mostMasters = 12
	// emptyMaster is the memory of a master without minions, minionMemory that of one connected minion, in bytes.
	emptyMaster, minionMemory = 30 << 20, 20 << 10
	// signIn, returned and delivered are the masters' processor time for a sign-in with its pillar, for the return of a
	// job that somebody waits for, and for the delivery of an order with its return.
	signIn    = 2500 * time.Microsecond
	returned  = 300 * time.Microsecond
	delivered = 500 * time.Microsecond
	// minionRows and returnRows are what a minion and a return have in the database, in bytes with indexes.
	minionRows, returnRows = 3000, 500
	// traffic is what the masters read and write for a return, in bytes: of the minion, the database and the caller.
	traffic = 8000
)

// What the table assumes.
const (
	// processors is how many each master has.
	processors = 2
	// jobsKept is how many jobs to all the database keeps: one an hour, for a day.
	jobsKept = 24
)

// sizes are the rows of the table.
var sizes = []int{1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}

// need is what a number of minions needs.
type need struct {
	minions, databases, masters int
	memory                      int64         // of all masters, in bytes
	signIns                     time.Duration // until all have signed in again
	job, order                  time.Duration // until all have returned
	disk                        int64         // of all databases, in bytes
	perSecond                   int           // returns that each database stores in the second of a job
	network                     int64         // of all masters for a job, in bytes
}

// needOf computes what n minions need. Two masters are the least, so that one may end.
func needOf(n int) need {
	x := need{minions: n}
	x.databases = ceil(n, mostMasters*perMaster)
	x.masters = max(ceil(n, perMaster), 2*x.databases)
	x.memory = int64(x.masters)*emptyMaster + int64(n)*minionMemory
	each := func(cost time.Duration) time.Duration {
		return time.Duration(n) * cost / time.Duration(x.masters*processors)
	}
	x.signIns, x.job, x.order = each(signIn), each(returned), each(delivered)
	x.disk = int64(n) * (minionRows + jobsKept*returnRows)
	x.perSecond = int(float64(n) / float64(x.databases) / max(x.job.Seconds(), 1))
	x.network = int64(n) * traffic
	return x
}

func ceil(a, b int) int { return (a + b - 1) / b }

// table is the table of sizes in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| minions | databases | masters | memory of all masters | all sign in again | a job to all | an order to all | " +
		"database, a day's jobs | returns a second, each database | traffic of a job |\n" +
		"|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range sizes {
		x := needOf(n)
		mark := ""
		if n > largest {
			mark = " *"
		}
		fmt.Fprintf(&b, "| %s%s | %d | %d | %s | %s | %s | %s | %s | %d | %s |\n", thousands(n), mark, x.databases, x.masters, size(x.memory),
			span(x.signIns), span(x.job), span(x.order), size(x.disk), x.perSecond, size(x.network))
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
