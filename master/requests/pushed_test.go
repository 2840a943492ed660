package requests

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/internal/requesttest"
)

// TestPushed: a file arrives in pieces below the minion's own directory, within its limits; nothing else is taken.
func TestPushed(t *testing.T) {
	base := t.TempDir()
	dir, err := confined.Open(base, 0o750)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r := requesttest.NewSender(t)
	p := &Pushed{Dir: dir, MaxSize: 6000, Quota: 5 * fileBlock, Log: slog.New(slog.DiscardHandler)}
	off := &Pushed{Log: p.Log}
	large := make([]byte, 6000)
	parts := func(list ...any) []any { return list }
	for _, c := range []struct {
		name string
		to   *Pushed
		load object
		want bool
	}{
		{"off", off, object{"path": parts("a"), "data": []byte("x"), "loc": int64(0)}, false},
		{"the first piece", p, object{"path": parts("", "etc", "a"), "data": []byte("one "), "loc": int64(0)}, true},
		{"the second piece", p, object{"path": parts("", "etc", "a"), "data": []byte("two"), "loc": int64(4)}, true},
		{"no path", p, object{"data": []byte("x"), "loc": int64(0)}, false},
		{"a path that is not a list", p, object{"path": "a", "data": []byte("x"), "loc": int64(0)}, false},
		{"a part that is not text", p, object{"path": parts(int64(1)), "data": []byte("x"), "loc": int64(0)}, false},
		{"a path that leads out", p, object{"path": parts("..", "b"), "data": []byte("x"), "loc": int64(0)}, false},
		{"a control character", p, object{"path": parts("a\x1b[2J"), "data": []byte("x"), "loc": int64(0)}, false},
		{"an empty path", p, object{"path": parts(""), "data": []byte("x"), "loc": int64(0)}, false},
		{"no data", p, object{"path": parts("b"), "loc": int64(0)}, false},
		{"a negative offset", p, object{"path": parts("b"), "data": []byte("x"), "loc": int64(-1)}, false},
		{"as large as may be", p, object{"path": parts("large"), "data": large, "loc": int64(0)}, true},
		{"larger", p, object{"path": parts("large"), "data": []byte("x"), "loc": int64(6000)}, false},
		{"beyond the quota", p, object{"path": parts("second"), "data": large, "loc": int64(0)}, true},
		{"more beyond the quota", p, object{"path": parts("third"), "data": large, "loc": int64(0)}, false},
		{"the same file again", p, object{"path": parts("second"), "data": []byte("x"), "loc": int64(0)}, true},
	} {
		got, err := c.to.Receive(t.Context(), r.From("m", c.load))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	files := filepath.Join(base, "minions", "m", "files")
	if b, err := os.ReadFile(filepath.Join(files, "etc", "a")); err != nil || string(b) != "one two" {
		t.Errorf("%q, %v", b, err)
	}
	if list, err := os.ReadDir(files); err != nil || len(list) != 3 {
		t.Error(list, err)
	}
	if list, err := os.ReadDir(base); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}
