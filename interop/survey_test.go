//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSurvey compares minions with the survey runners of stock's salt-run and of brine's under one stock master. The
// output and the exit codes must be the same.
func TestSurvey(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\ntimeout: 10\n")
	for id, text := range map[string]string{"web1": "a\nb\nc\nd\n", "web2": "a\nb\nc\nd\n", "db1": "a\nB\nc\nd\ne\n"} {
		start(t, ours("salt-minion"), "-c", m.minion(t, id, fmt.Sprintf("lines: %s\ntext: %q\nmap: {z: 1, %s: {y: 2, b: 3}}\n", id[:2], text, id[:2])))
		m.bus.wait(0, "salt/minion/"+id+"/start")
	}
	for _, args := range [][]string{
		{"survey.hash", "*", "test.ping"}, {"survey.hash", "*", "config.get", "lines"}, {"survey.hash", "survey_sort=up", "*", "config.get", "lines"},
		{"survey.hash", "web* or db1", "test.echo", "x"}, {"survey.hash", "web.", "test.echo", "x", "tgt_type=pcre"}, {"survey.hash", "web1", "test.echo", "x", "tgt_type=list"},
		{"survey.hash", "nobody", "test.ping"}, {"survey.hash", "web1", "test.kwarg", "a=1"},
		{"survey.diff", "*", "config.get", "lines"}, {"survey.diff", "*", "test.ping"}, {"survey.diff", "nobody", "test.ping"},
		{"survey.diff", "*", "config.get", "text"}, {"survey.diff", "survey_sort=up", "*", "config.get", "text"},
		{"survey.diff", "*", "cp.get_file_str", "salt://hello.txt"},
		{"survey.hash", "*", "config.get", "map"}, {"survey.diff", "*", "config.get", "map"},
		{"test.stdout_print"},
	} {
		run := func(program string) (string, int) {
			out, code := output(t, program, append([]string{"-c", m.dir + "/etc", "--out=json"}, args...)...)
			return restJID.ReplaceAllString(out, "<jid>"), code
		}
		theirs, code1 := run(stock(t, "3007", "salt-run"))
		mine, code2 := run(ours("salt-run"))
		if diff := cmp.Diff(theirs, mine); diff != "" || code1 != code2 {
			t.Errorf("%s: exit codes %d and %d (-stock +ours):\n%s", strings.Join(args, " "), code1, code2, diff)
		}
	}
}
