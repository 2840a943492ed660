package saltcli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// readUntil reads from the screen until it shows want. It returns the output.
func readUntil(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	var all strings.Builder
	for !strings.HasSuffix(all.String(), want) {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("the screen ended (%v) with %q", err, all.String())
		}
		all.WriteByte(b)
	}
	return all.String()
}

// TestMeter: the line is cut to the terminal's width, has no control characters, remains below other output, and is
// removed at the end.
func TestMeter(t *testing.T) {
	screen, terminal := testserver.Terminal(t, 30)
	r := bufio.NewReader(screen)
	c := &Console{Out: terminal, Err: terminal, Env: func(string) string { return "" }, ErrWidth: terminalWidth(terminal)}
	if c.ErrWidth == nil || c.ErrWidth() != 30 {
		t.Fatal("the terminal has no width")
	}
	m := c.StartMeter()
	m.Set("state 1/2 pkg.installed \x1b[31mnginx\nand more")
	if got, want := readUntil(t, r, "\x1b[K"), "\rstate 1/2 pkg.installed [31mn\x1b[K"; got != want { // 29 of 30 columns
		t.Errorf("shown %q, want %q", got, want)
	}
	fmt.Fprintln(c.Out, "a result")
	if got, want := readUntil(t, r, "result\r\n"), "\r\x1b[Ka result\r\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	m.Set("two")
	readUntil(t, r, "\rtwo (0 s)\x1b[K")
	readUntil(t, r, "\rtwo (1 s)\x1b[K")
	fmt.Fprint(c.Err, "half a line")
	readUntil(t, r, "\r\x1b[Khalf a line")
	m.Set("three") // not drawn while the last line is incomplete
	time.Sleep(3 * meterTick)
	fmt.Fprintln(c.Err)
	if got := readUntil(t, r, "\rthree (0 s)\x1b[K"); !strings.HasPrefix(got, "\r\n") {
		t.Errorf("shown %q", got)
	}
	m.Stop()
	m.Stop()
	m.Set("four")
	fmt.Fprintln(c.Out, "end")
	if got := readUntil(t, r, "end\r\n"); got != "\r\x1b[Kend\r\n" {
		t.Errorf("shown %q", got)
	}
}

// TestNoMeter: no meter is shown if standard error is not a terminal, or TERM is dumb.
func TestNoMeter(t *testing.T) {
	_, terminal := testserver.Terminal(t, 80)
	for _, c := range []*Console{
		{Env: func(string) string { return "" }},
		{Env: func(string) string { return "dumb" }, ErrWidth: terminalWidth(terminal)},
	} {
		var b bytes.Buffer
		c.Out, c.Err = &b, io.Discard
		if m := c.StartMeter(); m != nil || c.Out != io.Writer(&b) {
			t.Errorf("a meter for %+v", c)
		}
	}
}
