package conf

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a configuration tree of testdata/trees.json with Salt's result; gen/cases.py writes them.
type tree struct {
	Name, Role string
	Files      map[string]string
	Strict     bool
	Result     struct {
		Changed map[string]json.RawMessage
		Exit    *int
		Error   string
		Log     []string
		Left    []string
	}
}

func stockTrees(t *testing.T) []tree {
	t.Helper()
	b, err := os.ReadFile("testdata/trees.json")
	if err != nil {
		t.Fatal(err)
	}
	var trees []tree
	if err := json.Unmarshal(b, &trees); err != nil {
		t.Fatal(err)
	}
	return trees
}

func fromJSON(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return untag(t, v)
}

func untag(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = untag(t, e)
		}
		return out
	case map[string]any:
		if f, ok := v["__float__"]; ok {
			n, err := strconv.ParseFloat(f.(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if pairs, ok := v["__pairs__"]; ok {
			m := map[any]any{}
			for _, p := range pairs.([]any) {
				m[untag(t, p.([]any)[0])] = untag(t, p.([]any)[1])
			}
			return m
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = untag(t, e)
		}
		return out
	}
	return v
}

func TestStockTrees(t *testing.T) {
	trees := stockTrees(t)
	if len(trees) < 90 {
		t.Fatalf("%d trees", len(trees))
	}
	for _, c := range trees {
		t.Run(c.Name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.Files {
				path := filepath.Join(root, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@", root)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			// Here stock's minion continues and ours does not; see TestLostConfiguration.
			strict := c.Strict && c.Name != "broken nested include"
			o := Options{Tool: !strict, Host: &Host{
				Hostname: func() (string, error) { return "guessed.Example.org", nil },
				FQDN:     func(h string) string { return h },
				ReadFile: func(path string) ([]byte, error) {
					if !strings.HasPrefix(path, root) {
						return nil, fs.ErrNotExist // files of this host must not matter
					}
					return os.ReadFile(path)
				}}}
			load, defaults := LoadMinionWith, MinionDefaults()
			if c.Role == "master" {
				load, defaults = LoadMasterWith, MasterDefaults()
			}
			got, err := load(filepath.Join(root, "etc/salt", c.Role), o)
			checkLeft(t, root, c.Result.Left)
			if c.Result.Exit != nil || c.Result.Error != "" {
				checkError(t, root, c, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			changed := map[string]any{}
			for k, v := range got.Opts {
				if def, ok := defaults[k]; ok && k != "ipc_write_buffer" && cmp.Equal(def, v) || k == "__cli" || k == "__role" {
					continue
				}
				changed[k] = v
			}
			want := map[string]any{}
			for k, raw := range c.Result.Changed {
				want[k] = fromJSON(t, []byte(strings.ReplaceAll(string(raw), "@", root)))
			}
			if d := cmp.Diff(want, changed); d != "" {
				t.Error(d)
			}
			checkNotes(t, root, c.Result.Log, got.Notes)
		})
	}
}

func checkLeft(t *testing.T, root string, want []string) {
	t.Helper()
	left := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, path)
			left = append(left, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(left)
	if d := cmp.Diff(want, left); d != "" {
		t.Errorf("files afterwards: %s", d)
	}
}

// checkError compares file, context and problem with Salt's text, and the line of the problem.
func checkError(t *testing.T, root string, c tree, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %v %s", err, c.Result.Log, c.Result.Error)
	}
	got := strings.ReplaceAll(err.Error(), root, "@")
	got, _, _ = strings.Cut(got, "\nThe key '") // brine's addition; see TestDuplicateKey
	if c.Result.Error != "" {
		if _, want, _ := strings.Cut(c.Result.Error, ": "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		return
	}
	want := strings.TrimPrefix(c.Result.Log[0], "ERROR: ")
	if withoutPlaces(got) != withoutPlaces(want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if line := lastLine(want); line > 0 && line != e.Line {
		t.Errorf("line %d, want %d: %s", e.Line, line, got)
	}
}

func lastLine(s string) int {
	i := strings.LastIndex(s, ", line ")
	if i < 0 {
		return 0
	}
	number, _, _ := strings.Cut(s[i+7:], ",")
	n, _ := strconv.Atoi(number)
	return n
}

// withoutPlaces removes the places, whose columns are not always known here.
func withoutPlaces(s string) string {
	var kept []string
	for line := range strings.SplitSeq(s, "\n") {
		if !strings.HasPrefix(line, "  in ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func checkNotes(t *testing.T, root string, want []string, notes []Note) {
	t.Helper()
	got := []string{}
	for _, n := range notes {
		text := strings.ReplaceAll(n.Text, root, "@")
		switch n.Level {
		case slog.LevelWarn:
			if strings.HasSuffix(text, " is used") {
				continue // stock does not log these; see TestValuesThatMeanNothing
			}
			got = append(got, "WARNING: "+text)
		case slog.LevelError:
			got = append(got, "ERROR: "+withoutPlaces(text))
		}
	}
	wanted := []string{}
	for _, w := range want {
		if strings.HasPrefix(w, "ERROR: ") {
			w = withoutPlaces(w)
		}
		wanted = append(wanted, w)
	}
	sort.Strings(got)
	sort.Strings(wanted)
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
}
