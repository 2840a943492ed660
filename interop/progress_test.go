//go:build interop

package interop

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// TestProgressOfStockMinions runs states on stock minions with brine's salt. On a terminal it must show the last
// state that ended, for one minion and for several. Without a terminal it must show no progress.
func TestProgressOfStockMinions(t *testing.T) {
	s := newSite(t, "zeromq", "auto_accept: true\ntimeout: 20\n")
	m := &ourMaster{site: s, t: t, root: t, line: "3007"}
	m.up()
	write(t, s.dir+"/srv/slow.sls", "first: {test.nop: []}\nsleep 2: {cmd.run: []}\nsleep 1.5: {cmd.run: []}\n")
	lines := []string{"3006", "3007", "3008"}
	mark := m.bus.mark()
	for _, line := range lines {
		start(t, stock(t, line, "salt-minion"), "-c", s.minion(t, "m"+line, ""))
	}
	for _, line := range lines {
		m.bus.wait(mark, "salt/minion/m"+line+"/start")
	}
	for _, line := range lines {
		out, shown := onTerminal(t, "salt", "-c", s.dir+"/etc", "m"+line, "state.apply", "slow")
		if want := `\rstate 2/3 (cmd\.run )?sleep 2 \(\d+ s\)`; !regexp.MustCompile(want).MatchString(shown) || !strings.Contains(out, "Succeeded: 3") {
			t.Errorf("%s: the terminal shows %q; standard output is %s", line, shown, out)
		}
		if !strings.HasSuffix(shown, "\r\x1b[K") {
			t.Errorf("%s: the line stays: %q", line, shown)
		}
	}
	out, shown := onTerminal(t, "salt", "-c", s.dir+"/etc", "m*", "state.apply", "slow")
	if want := `\rm300[678]: state [123]/3 (cmd\.run )?sleep [0-9.]+, [012] of 3 minions have ended \(\d+ s\)`; !regexp.MustCompile(want).MatchString(shown) ||
		strings.Count(out, "Succeeded: 3") != 3 {
		t.Errorf("the terminal shows %q; standard output is %s", shown, out)
	}
	cmd := exec.Command(ours("salt"), "-c", s.dir+"/etc", "m3007", "state.apply", "slow")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Run(); err != nil || log.Len() > 0 {
		t.Errorf("without a terminal: %v, %s", err, &log)
	}
}

// onTerminal runs a program of brine with its standard error on a terminal. It returns the standard output, and the
// text on the terminal.
func onTerminal(t *testing.T, program string, args ...string) (out, shown string) {
	t.Helper()
	screen, term, err := testserver.OpenTerminal(200)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	cmd := exec.Command(ours(program), args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, term
	err = cmd.Start()
	term.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(screen) // ends with EIO when the program has ended
	_ = cmd.Wait()
	return text.String(), string(b)
}
