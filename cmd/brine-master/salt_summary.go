package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/client"
)

// summary counts returns for --summary and the exit code.
type summary struct {
	verbose                           bool
	returned, lost                    int
	notConnected, silent, failedNames []string
	failed                            bool // a return code is not 0
}

func (s *summary) add(ret client.Return, code int) {
	s.failed = s.failed || code != 0
	switch ret.Status {
	case client.Returned:
		s.returned++
		if code != 0 {
			s.failedNames = append(s.failedNames, ret.ID)
		}
		return
	case client.NotConnected:
		s.notConnected = append(s.notConnected, ret.ID)
	default:
		s.silent = append(s.silent, ret.ID)
	}
	s.lost++
}

// text returns the text for --summary.
func (s *summary) text() string {
	var b strings.Builder
	line := strings.Repeat("-", 43)
	fmt.Fprintf(&b, "\n\n%s\nSummary\n%s\n", line, line)
	fmt.Fprintf(&b, "# of minions targeted: %d\n", s.returned+s.lost)
	fmt.Fprintf(&b, "# of minions returned: %d\n", s.returned)
	fmt.Fprintf(&b, "# of minions that did not return: %d\n", s.lost)
	fmt.Fprintf(&b, "# of minions with errors: %d\n", len(s.failedNames))
	if s.verbose {
		for _, part := range []struct {
			title string
			ids   []string
		}{{"Minions not connected", s.notConnected}, {"Minions not responding", s.silent},
			{"Minions with failures", s.failedNames}} {
			if len(part.ids) > 0 {
				fmt.Fprintf(&b, "%s: %s\n", part.title, strings.Join(part.ids, " "))
			}
		}
	}
	b.WriteString(line + "\n")
	return b.String()
}

// progress shows a progress bar instead of returns.
func (s *saltCmd) progress(ctx context.Context, r *client.Run, sum *summary) {
	total := len(r.Minions)
	start := time.Now()
	s.bar(0, total, start)
	count := 0
	for ret := range r.Returns(ctx) {
		code := ret.Code()
		if ret.Status != client.Returned {
			if s.isHidden(ret) {
				continue
			}
			code = 1
		} else {
			count++
		}
		sum.add(ret, code)
		total = max(total, count)
		s.bar(count, total, start)
	}
	fmt.Fprintln(s.Err)
}

// bar draws the progress bar in the style of Python's progressbar.
func (s *saltCmd) bar(n, total int, start time.Time) {
	percent := 100
	if total > 0 {
		percent = n * 100 / total
	}
	took := int(time.Since(start) / time.Second)
	left := fmt.Sprintf("%3d%% |", percent)
	right := fmt.Sprintf("| Elapsed Time: %d:%02d:%02d Returns: [%d/%d]", took/3600, took/60%60,
		took%60, n, total)
	room := max(s.Width()-len(left)-len(right)-1, 10)
	done := room * percent / 100
	fmt.Fprintf(s.Err, "\r%s%s%s%s", left, strings.Repeat("#", done),
		strings.Repeat(" ", room-done), right)
}
