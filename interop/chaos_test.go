//go:build chaos && linux

package interop

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// The fault campaign, "make chaos": each part is one test, such as TestChaosKills and TestChaosLinks, in a separate
// file. A part injects faults, prints one table of their targets and results, and fails for every broken invariant.
// With BRINE_CHAOS=full, which "make chaos PART=kills" sets, a part runs for at most 25 minutes. Without it the short
// form for CI runs; all short forms together take at most 90 seconds.

// chaosFull reports whether the full campaign runs and not its short form.
func chaosFull() bool { return os.Getenv("BRINE_CHAOS") == "full" }

// campaign is the table of one part and its broken invariants. Its methods may be called by several goroutines.
type campaign struct {
	t     *testing.T
	title string
	begun time.Time

	mu     sync.Mutex // guards the fields below
	rows   [][]string // the first has the names of the columns
	broken int
}

// maxBroken is how many broken invariants are printed; the others are counted.
const maxBroken = 40

// newCampaign starts a part whose table has these columns. The table is printed when the test ends.
func newCampaign(t *testing.T, title string, columns ...string) *campaign {
	c := &campaign{t: t, title: title, begun: time.Now(), rows: [][]string{columns}}
	t.Cleanup(func() { fmt.Print(c.text()) })
	return c
}

// row adds a line to the table.
func (c *campaign) row(cells ...any) {
	var line []string
	for _, x := range cells {
		line = append(line, fmt.Sprint(x))
	}
	c.t.Helper()
	c.t.Log(strings.Join(line, " | ")) // an interrupted campaign does not print the table
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, line)
}

// breaks reports a broken invariant. The test fails, but continues.
func (c *campaign) breaks(format string, args ...any) {
	c.t.Helper()
	c.mu.Lock()
	c.broken++
	n := c.broken
	c.mu.Unlock()
	if n <= maxBroken {
		c.t.Errorf(format, args...)
	} else {
		c.t.Fail()
	}
}

// text returns the table in Markdown, with padded columns.
func (c *campaign) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var width []int
	for _, line := range c.rows {
		for i, cell := range line {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	form := "short form"
	if chaosFull() {
		form = "full"
	}
	fmt.Fprintf(&b, "\n%s (%s): %v, broken invariants: %d\n\n", c.title, form, time.Since(c.begun).Round(time.Second), c.broken)
	for i, line := range c.rows {
		for k, cell := range line {
			fmt.Fprintf(&b, "| %-*s ", width[k], cell)
		}
		b.WriteString("|\n")
		if i == 0 {
			for _, w := range width {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String() + "\n"
}
