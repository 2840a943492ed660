//go:build unix

package standard_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/prereq"
	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/modules/returners/all"
	_ "github.com/brine-salt/brine/states/all"
)

const siteDir = "../../modules/execplugin/testdata/site"

// cases are what is asked of the site, and of stock Salt by stock.py.
type cases struct {
	Functions []struct {
		Fun    string         `json:"fun"`
		Args   []any          `json:"args"`
		Kwargs map[string]any `json:"kwargs"`
	} `json:"functions"`
	States []struct {
		SLS  string `json:"sls"`
		Test bool   `json:"test"`
	} `json:"states"`
	Grains    []string          `json:"grains"`
	Returners map[string]string `json:"returners"`
}

// answer is stock's: a value, or the text of the error.
type answer struct {
	Value any    `json:"value"`
	Error string `json:"error"`
}

type answers struct {
	Functions []answer            `json:"functions"`
	States    []answer            `json:"states"`
	Grains    map[string]any      `json:"grains"`
	Returners map[string][]string `json:"returners"`
}

// site is a host with the site's code.
type site struct {
	t    *testing.T
	root string // where the site keeps its things
	conf string
	opts map[string]any
}

func newSite(t *testing.T, more map[string]any) *site {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		prereq.Missing(t, "python3")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, root: filepath.Join(dir, "root"), conf: filepath.Join(dir, "conf")}
	code := filepath.Join(dir, "site")
	if err := os.CopyFS(code, os.DirFS(siteDir)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(code, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755) //nolint:gosec // directories of code must not be writable for others
		}
		return os.Chmod(path, 0o644) //nolint:gosec // nor files
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write("roles", "db web\n")
	if err := os.MkdirAll(s.conf, 0o755); err != nil {
		t.Fatal(err)
	}
	pillar := "shop:\n  place: Market Square\n  root: " + s.root + "\n  factor: 3\n  ordered: {zebra: 1, apple: 2, mango: 3}\n"
	if err := os.WriteFile(filepath.Join(code, "pillar/shop.sls"), []byte(pillar), 0o644); err != nil {
		t.Fatal(err)
	}
	own := map[string]any{"id": "web1", "file_client": "local", "root_dir": dir, "shop_root": s.root, "module_dirs": []any{code},
		"file_roots":   map[string]any{"base": []any{filepath.Join(code, "tree")}},
		"pillar_roots": map[string]any{"base": []any{filepath.Join(code, "pillar")}}, "options.host": "h1", "log_level": "quiet"}
	for k, v := range more {
		own[k] = v
	}
	b, err := json.Marshal(own) // YAML reads it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.conf, "minion"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if s.opts, err = config.Load("", own); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) minion(log *slog.Logger) *minion.Minion {
	s.t.Helper()
	o, err := standard.Options(s.opts, log)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := minion.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *site) call(m *minion.Minion, q minion.CallOptions) modules.Result {
	s.t.Helper()
	q.Local, q.NoReturnEvent = true, true
	res, err := m.Call(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// plain is a value as JSON has it, with the directory of the site named as in stock's answers.
func (s *site) plain(v any) any {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := pyjson.Parse([]byte(strings.ReplaceAll(string(b), s.root, "/ROOT")))
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// comparable takes what differs from run to run out of the results of states, and of a traceback all but its last line.
func comparable(v any) any {
	all, _ := v.(map[string]any)
	for _, x := range all {
		state, ok := x.(map[string]any)
		if !ok {
			continue
		}
		delete(state, "duration")
		delete(state, "start_time")
		if text, ok := state["comment"].(string); ok && strings.Contains(text, "Traceback") {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			state["comment"] = lines[len(lines)-1]
		}
	}
	return v
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(siteDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// TestOwnCode runs the code of a site, which is written for Salt, and compares what it does with the answers that stock Salt gave
// (stock.json; TestStockOwnCode compares these with stock).
func TestOwnCode(t *testing.T) {
	var c cases
	var want answers
	read(t, "cases.json", &c)
	read(t, "stock.json", &want)
	s := newSite(t, nil)
	m := s.minion(nil)
	for i, f := range c.Functions {
		res := s.call(m, minion.CallOptions{Fun: f.Fun, Args: f.Args, Kwargs: f.Kwargs})
		got := any(nil)
		if res.Err != nil {
			text := res.Err.Error()
			var missing *modules.MissingCommandError
			if errors.As(res.Err, &missing) {
				text = missing.Command
			}
			if want.Functions[i].Error == "" || !strings.HasSuffix(text, want.Functions[i].Error) {
				t.Errorf("%s %v %v: %s, stock %q", f.Fun, f.Args, f.Kwargs, text, want.Functions[i].Error)
			}
			continue
		}
		got = s.plain([]any{res.Return, res.Retcode})
		if diff := cmp.Diff(s.plain(want.Functions[i].Value), got); diff != "" {
			t.Errorf("%s %v %v (-stock +ours):\n%s", f.Fun, f.Args, f.Kwargs, diff)
		}
	}
	for i, q := range c.States {
		res := s.call(m, minion.CallOptions{Fun: "state.apply", Args: []any{q.SLS}, Kwargs: map[string]any{"test": q.Test}})
		if diff := cmp.Diff(comparable(s.plain(want.States[i].Value)), comparable(s.plain(res.Return))); diff != "" {
			t.Errorf("state.apply %s, run %d (-stock +ours):\n%s", q.SLS, i, diff)
		}
	}
	items, _ := s.call(m, minion.CallOptions{Fun: "grains.items"}).Return.(map[string]any)
	got := map[string]any{}
	for k, v := range items {
		if slices.ContainsFunc(c.Grains, func(p string) bool { return strings.HasPrefix(k, p) }) {
			got[k] = v
		}
	}
	if diff := cmp.Diff(s.plain(want.Grains), s.plain(got)); diff != "" {
		t.Errorf("grains (-stock +ours):\n%s", diff)
	}
	for name, file := range c.Returners {
		s.call(m, minion.CallOptions{Fun: "shop.list", Args: []any{int64(3)}, FunArgs: []any{"3"}, Returners: []string{name}})
		b, err := os.ReadFile(filepath.Join(s.root, file))
		if err != nil {
			t.Errorf("returner %s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want.Returners[name][0], string(b)); diff != "" {
			t.Errorf("returner %s (-stock +ours):\n%s", name, diff)
		}
	}
	t.Logf("%d calls, %d runs of states, %d grains, %d returners", len(c.Functions), len(c.States), len(want.Grains), len(c.Returners))
}
