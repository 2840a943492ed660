package pyre

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/target"
)

// TestPython compares with the results of Python 3.11 (testdata/cases.py).
func TestPython(t *testing.T) {
	f, err := os.Open("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row []any
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		mode, pattern, text := row[0].(string), row[1].(string), row[3].(string)
		compile := Compile
		if mode == "bytes" {
			compile = CompileBytes
		}
		re, err := compile(pattern, Flags(int(row[2].(float64))))
		check := func(what string, want any, f func() (any, error)) {
			got, err2 := any(nil), err
			if err == nil {
				got, err2 = f()
			}
			if err2 != nil {
				got = failure(err2)
			} else if mode == "bytes" {
				got = latin(got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %q flags %v on %q, %s: Python (-) and ours (+):\n%s", mode, pattern, row[2], text, what, diff)
			}
		}
		groups := func(loc []int, err error) (any, error) {
			if err != nil || loc == nil {
				return nil, err
			}
			var list []any
			for i := 0; i < len(loc); i += 2 {
				if loc[i] < 0 {
					list = append(list, "")
				} else {
					list = append(list, text[loc[i]:loc[i+1]])
				}
			}
			return list, nil
		}
		check("search", row[4], func() (any, error) { return groups(re.Search(text)) })
		check("match", row[5], func() (any, error) { return groups(re.Match(text)) })
		check("fullmatch", row[6], func() (any, error) { return re.FullMatch(text) })
		check("split", row[7], func() (any, error) {
			list, err := re.Split(text)
			out := []any{}
			for _, s := range list {
				out = append(out, s)
			}
			return out, err
		})
		for _, x := range row[8:] {
			x := x.([]any)
			check("subn "+x[0].(string), x[2], func() (any, error) {
				s, n, err := re.Subn(x[0].(string), text, int(x[1].(float64)))
				return []any{s, float64(n)}, err
			})
		}
	}
}

func failure(err error) []any {
	name := "error"
	var index *IndexError
	if errors.As(err, &index) {
		name = "IndexError"
	}
	return []any{"error", name, err.Error()}
}

// latin shows bytes as the script cases.py does.
func latin(v any) any {
	switch v := v.(type) {
	case string:
		return widen(v)
	case []any:
		for i := range v {
			v[i] = latin(v[i])
		}
	}
	return v
}

func TestEscape(t *testing.T) {
	if got, want := Escape("a.b*c d-é_/'\"#"), `a\.b\*c\ d\-é_/'"\#`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongPatternIsRefused(t *testing.T) {
	if _, err := Compile(strings.Repeat("a", 1<<17), 0); !errors.Is(err, target.ErrLimit) {
		t.Errorf("error %v", err)
	}
}

func FuzzSubn(f *testing.F) {
	f.Add("a*", `\g<0>`, "baac")
	f.Add("(é)|b", `x`, "éb\xff")
	f.Fuzz(func(t *testing.T, pattern, repl, s string) {
		re, err := CompileBytes(pattern, Multiline)
		if err != nil || len(s) > 200 || len(pattern) > 40 {
			return
		}
		all, err := re.All(s, 0)
		if err != nil {
			return
		}
		got, n, err := re.Subn(`\g<0>`, s, 0)
		if err != nil || n != len(all) || got != s {
			t.Errorf("replacing by itself: %q, %d, %v", got, n, err)
		}
		_, _, _ = re.Subn(repl, s, 0)
		if !slices.IsSortedFunc(all, func(a, b []int) int { return a[0] - b[0] }) {
			t.Errorf("matches out of order: %v", all)
		}
	})
}

// TestBacktrackingStops: a pattern that backtracks exponentially stops after Timeout. Timeout is short because
// templates and states search many texts.
func TestBacktrackingStops(t *testing.T) {
	if Timeout > 2*time.Second {
		t.Errorf("a search may take %v", Timeout)
	}
	re, err := Compile(`(?=a)(a+)+$`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Search(strings.Repeat("a", 64) + "!"); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v, want %v", err, ErrTimeout)
	}
}
