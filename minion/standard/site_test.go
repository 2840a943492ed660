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

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/modules/returners/all"
	_ "github.com/brine-salt/brine/states/all"
)

const siteDir = "../../modules/execplugin/testdata/site"

// cases are the calls to test, here and in stock.py.
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

// answer is stock's answer: a value, or the text of the error.
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
	root string // the directory of the site's files
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

// plain returns a value as JSON decodes it, with the site's directory replaced as in stock's answers.
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

// comparable removes from the results of states what differs between runs, and from a traceback all but its last
// line.
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

// TestOwnCode runs a site's code, which was written for Salt, and compares the results with those of stock Salt
// (stock.json; TestStockOwnCode checks that file).
func TestOwnCode(t *testing.T) {
	var c cases
	var want answers
	read(t, "cases.json", &c)
	read(t, "stock.json", &want)
	s := newSite(t, map[string]any{"renderer_python": "local"})
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

// TestShippedCode: code that a tree distributes and the host does not run is reported, and what depends on it fails.
func TestShippedCode(t *testing.T) {
	s := newSite(t, map[string]any{"module_dirs": []any{}})
	for name, text := range map[string]string{
		"_grains/shopgrain.py": "def kind():\n    return {'shop_kind': 'grocery'}\n",
		"_modules/shop.py":     "def stock():\n    return 5\n",
		"_states/shopping.py":  "__virtualname__ = 'shop'\n\ndef stocked(name):\n    return {}\n",
		"_engines/e.py":        "",
		"top.sls":              "base:\n  'shop_kind:grocery':\n    - match: grain\n    - web\n  '*':\n    - web\n",
		"web.sls":              "a:\n  test.nop: []\n",
		"needs.sls":            "a:\n  shop.stocked: []\n",
		"kind.sls":             "{% if grains.get('shop_kind') == 'grocery' %}\na:\n  test.nop: []\n{% endif %}\n",
		"other.sls":            "{% if grains.get('other') %}\nb:\n  test.nop: []\n{% endif %}\na:\n  test.nop: []\n",
	} {
		s.write(filepath.Join("../site/tree", name), text)
	}
	var log strings.Builder
	m := s.minion(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	apply := func(args ...any) string {
		res := s.call(m, minion.CallOptions{Fun: "state.apply", Args: args})
		b, err := json.Marshal([]any{res.Return, res.Retcode})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		args []any
		want []string
	}{
		{nil, []string{"The target 'shop_kind:grocery' of the top file needs the grain 'shop_kind'", "_grains/shopgrain.py defines it", ",1]"}},
		{[]any{"needs"}, []string{"State 'shop.stocked' was not found in SLS 'needs'", "_states/shopping.py defines it", "states_dirs", ",2]"}},
		{[]any{"kind"}, []string{"SLS 'base:kind' needs the grain 'shop_kind'", "grains_dirs", ",1]"}},
		{[]any{"other"}, []string{`"result":true`, ",0]"}},
	} {
		got := apply(c.args...)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("state.apply %v: %q is not in %s", c.args, want, got)
			}
		}
	}
	notice := "The state tree distributes code that this minion does not run: _engines/e.py, _grains/shopgrain.py, _modules/shop.py, _states/shopping.py."
	if !strings.Contains(log.String(), notice) {
		t.Errorf("the log does not name them: %s", log.String())
	}
	all, _ := s.call(m, minion.CallOptions{Fun: "saltutil.sync_all"}).Return.(map[string]any)
	for kind, want := range map[string]string{
		"modules": "not run: _modules/shop.py (put it into a directory of this host that the option module_dirs names)",
		"engines": "not run: _engines/e.py (brine does not run code of this kind)",
	} {
		if diff := cmp.Diff([]any{want}, all[kind]); diff != "" {
			t.Errorf("sync_all, %s:\n%s", kind, diff)
		}
	}
	if diff := cmp.Diff([]any{}, s.call(m, minion.CallOptions{Fun: "saltutil.sync_beacons"}).Return); diff != "" {
		t.Error(diff)
	}
}

// TestStatesAreListed: a minion of standard.Options knows its states by sys.* also where the program is not brine's own.
func TestStatesAreListed(t *testing.T) {
	s := newSite(t, map[string]any{"module_dirs": []any{}})
	m := s.minion(nil)
	list, _ := s.call(m, minion.CallOptions{Fun: "sys.list_state_modules"}).Return.([]any)
	if !slices.Contains(list, any("test")) || !slices.Contains(list, any("file")) {
		t.Errorf("the modules of states are %v", list)
	}
	docs, _ := s.call(m, minion.CallOptions{Fun: "sys.state_doc", Args: []any{"test.nop"}}).Return.(map[string]any)
	if text, _ := docs["test.nop"].(string); text == "" {
		t.Errorf("the documentation of test.nop is %v", docs)
	}
}

// TestRecipe copies the code of a tree to a host by states, in one run, into the directory that the owner's
// configuration names. Without that option nothing is loaded.
func TestRecipe(t *testing.T) {
	for _, named := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "own")
		opts := map[string]any{"module_dirs": []any{}}
		if named {
			opts["module_dirs"] = []any{dir}
		}
		s := newSite(t, opts)
		for name, text := range map[string]string{
			"_modules/till.py": "def total():\n    return 'total of ' + __opts__['id']\n",
			"_states/till.py":  "def counted(name):\n    return {'name': name, 'result': True, 'changes': {}, 'comment': __salt__['till.total']()}\n",
			"code.sls": `{% for kind in ('modules', 'states') %}
own-{{ kind }}:
  file.recurse:
    - name: ` + dir + `/{{ kind }}
    - source: salt://_{{ kind }}
    - dir_mode: '0755'
    - file_mode: '0644'
{% endfor %}
used:
  module.run:
    - name: till.total
state-used:
  till.counted: []
`,
		} {
			s.write(filepath.Join("../site/tree", name), text)
		}
		m := s.minion(nil)
		res := s.call(m, minion.CallOptions{Fun: "state.apply", Args: []any{"code"}})
		b, err := json.Marshal(res.Return)
		if err != nil {
			t.Fatal(err)
		}
		if works := strings.Contains(string(b), `"ret":"total of web1"`) && strings.Contains(string(b), `"comment":"total of web1"`); works != named {
			t.Errorf("module_dirs set: %v, works: %v: %s", named, works, b)
		}
		if named && res.Retcode != 0 || !named && res.Retcode == 0 {
			t.Errorf("module_dirs set: %v: return code %d: %s", named, res.Retcode, b)
		}
	}
}

// TestRefusedDirectories: code that other users can change is not run, and neither is code in directories that
// masters write to.
func TestRefusedDirectories(t *testing.T) {
	s := newSite(t, map[string]any{"module_dirs": []any{}})
	dir := filepath.Dir(s.root)
	for name, mode := range map[string]os.FileMode{"open": 0o777, "var/cache/salt/minion/extmods/grains": 0o755, "closed": 0o755} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "def f():\n    return {'from_" + filepath.Base(name) + "': True}\n"
		if err := os.WriteFile(filepath.Join(dir, name, "g.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	s.opts["grains_dirs"] = []any{filepath.Join(dir, "open"), filepath.Join(dir, "var/cache/salt/minion/extmods/grains"), filepath.Join(dir, "closed")}
	s.opts["extension_modules"] = filepath.Join(dir, "var/cache/salt/minion/extmods")
	var log strings.Builder
	m := s.minion(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	items, _ := s.call(m, minion.CallOptions{Fun: "grains.items"}).Return.(map[string]any)
	if items["from_open"] != nil || items["from_grains"] != nil || items["from_closed"] != true {
		t.Errorf("%v %v %v", items["from_open"], items["from_grains"], items["from_closed"])
	}
	if !strings.Contains(log.String(), "is writable by everybody") {
		t.Errorf("the log does not tell: %s", log.String())
	}
}

// TestPythonRenderersAreRefused: without the owner's option, and for requests of a master, no code of a state file is
// run.
func TestPythonRenderersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		opts map[string]any
		file string
		want string
	}{
		"off":      {map[string]any{}, "", "renderer_python is not set to local"},
		"remote":   {map[string]any{"renderer_python": "local", "file_client": "remote"}, "", "the files are a master's"},
		"writable": {map[string]any{"renderer_python": "local"}, "pyone.sls", "is writable by everybody"},
		"on":       {map[string]any{"renderer_python": "local"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.opts)
			if c.file != "" {
				if err := os.Chmod(filepath.Join(filepath.Dir(s.root), "site/tree", c.file), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			m := s.minion(nil)
			path := filepath.Join(filepath.Dir(s.root), "site/tree/pyone.sls")
			res := s.call(m, minion.CallOptions{Fun: "state.show_sls", Args: []any{"pyone"}})
			if c.opts["file_client"] == "remote" {
				res = s.call(m, minion.CallOptions{Fun: "slsutil.renderer", Args: []any{path}})
			}
			b, err := json.Marshal(res.Return)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && !strings.Contains(string(b), "zebra") || !strings.Contains(string(b), c.want) {
				t.Errorf("%s", b)
			}
		})
	}
}
