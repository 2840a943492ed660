package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/brine-salt/brine/master/audit"
)

// log is an account in a file of a test.
type log struct {
	*testing.T
	path string
	f    *audit.File
}

func open(t *testing.T, path string, chain bool) *log {
	t.Helper()
	f, err := audit.Open(path, chain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &log{t, path, f}
}

func (l *log) write(entries ...string) {
	l.Helper()
	for _, e := range entries {
		line := fmt.Sprintf("{\"e\":%q}\n", e)
		if n, err := l.f.Write([]byte(line)); err != nil || n != len(line) {
			l.Fatal(n, err)
		}
	}
}

func (l *log) text(name string) string {
	l.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

// verify reads texts as the files of a chain.
func verify(texts ...string) (c audit.Chain, err error) {
	for _, s := range texts {
		if err = c.Verify(strings.NewReader(s)); err != nil {
			return c, err
		}
	}
	return c, nil
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	open(t, path, false).write("a", "b")
	l := open(t, path, false)
	l.write("c")
	if got := l.text(path); got != "{\"e\":\"a\"}\n{\"e\":\"b\"}\n{\"e\":\"c\"}\n" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info, err)
	}
}

// TestTornLine: after a master died while writing a line, the next entry is on a new line and continues the chain.
func TestTornLine(t *testing.T) {
	for _, chain := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "log")
		l := open(t, path, chain)
		l.write("a", "b")
		whole := l.text(path)
		put(t, path, whole[:len(whole)-5])
		l = open(t, path, chain)
		l.write("c")
		l.write("d")
		lines := strings.Split(l.text(path), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[2], `{"e":"c"`) || !strings.HasPrefix(lines[3], `{"e":"d"`) || lines[4] != "" {
			t.Errorf("%q", lines)
		}
		if !chain {
			continue
		}
		if c, err := verify(l.text(path)); err != nil || c.Lines != 4 || c.Torn != 1 || c.First != "" {
			t.Error(c, err)
		}
		if _, err := verify(strings.Replace(l.text(path), lines[1], "", 1)); err == nil {
			t.Error("a torn line was taken out unnoticed")
		}
	}
}

// TestRotation: the file is renamed, removed and truncated, and the writer is not notified.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l := open(t, path, true)
	l.write("a", "b")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(path, path+".1"))
	l.write("c")
	second := l.text(path)
	must(os.Truncate(path, 0)) // copytruncate
	l.write("d")
	third := l.text(path)
	must(os.Remove(path))
	put(t, path, "") // a new file was put there, as logrotate's create does
	l.write("e", "f")
	texts := []string{l.text(path + ".1"), second, third, l.text(path)}
	c, err := verify(texts...)
	if err != nil || c.Lines != 6 || c.Torn != 0 || c.First != "" {
		t.Fatal(c, err)
	}
	if later, err := verify(texts[2:]...); err != nil || later.Lines != 3 || later.First == "" || later.Last != c.Last {
		t.Error(later, err)
	}
	if _, err := verify(texts[0], texts[2]); err == nil || err.Error() != "line 1 does not follow the line before it" {
		t.Error("a file that is not there:", err)
	}
	for range 2 {
		must(l.f.Close())
	}
	if _, err := l.f.Write([]byte("{}\n")); err == nil {
		t.Error("written after the end")
	}
}

// TestTampering: each way to change a chain is found in the line where it shows.
func TestTampering(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path, "{\"e\":\"before there was a chain\"}\n")
	l := open(t, path, true)
	l.write("a", "b", "c", "d")
	text := l.text(path)
	if c, err := verify(text); err != nil || c.Lines != 4 {
		t.Fatal(c, err)
	}
	lines := strings.SplitAfter(text, "\n")
	other := strings.Join(lines[3:4], "")
	for name, c := range map[string]struct{ text, want string }{
		"changed":        {strings.Replace(text, `"b"`, `"x"`, 1), "line 4 does not follow the line before it"},
		"taken out":      {lines[0] + lines[1] + lines[3] + lines[4], "line 3 does not follow the line before it"},
		"put in":         {lines[0] + lines[1] + "{\"e\":\"x\"}\n" + lines[2], "line 3 is not part of the chain"},
		"twice":          {lines[0] + lines[1] + lines[2] + other + other, "line 5 does not follow the line before it"},
		"in other order": {lines[0] + lines[1] + lines[3] + lines[2], "line 3 does not follow the line before it"},
		"begun anew":     {text + "{\"prev\":\"\"}\n", "line 6 starts a new chain"},
		"old line":       {strings.Replace(text, "before", "after", 1), "line 2 does not follow the line before it"},
		"not a line":     {lines[0] + lines[1] + "x\n" + lines[2], "line 4 does not follow the line before it"},
		"a long line":    {lines[0] + strings.Repeat("x", 5<<20), "line 2: it has more than 4194304 bytes"},
	} {
		if _, err := verify(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoPlaceForIt(t *testing.T) {
	dir := t.TempDir()
	if _, err := audit.Open(filepath.Join(dir, "no", "log"), true); err == nil {
		t.Error("opened in a directory that is not there")
	}
	put(t, filepath.Join(dir, "log"), strings.Repeat("x", 5<<20))
	if _, err := audit.Open(filepath.Join(dir, "log"), true); err == nil {
		t.Error("went on from a line without end")
	}
	if _, err := open(t, filepath.Join(dir, "other"), true).f.Write([]byte("text\n")); err == nil {
		t.Error("took text into a chain")
	}
}

func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, true)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				l.f.Write(fmt.Appendf(nil, "{\"e\":\"%d %d\"}\n", i, j))
			}
		})
	}
	wg.Wait()
	if c, err := verify(l.text(path)); err != nil || c.Lines != 400 {
		t.Error(c, err)
	}
}
