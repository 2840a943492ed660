package states_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/test"
)

// within runs f inside of an execution function, as state.apply does.
func within(t testing.TB, e *modules.Env, f func(ctx context.Context, c *modules.Call) (any, error)) modules.Result {
	t.Helper()
	door := &modules.Module{Name: "door", Funcs: []modules.Def{{Name: "open", Run: f}}}
	return modules.NewRegistry(door).Run(t.Context(), e, modules.Request{Fun: "door.open", JID: "20250102030405678901"})
}

func bare(t testing.TB) *modules.Env {
	return &modules.Env{ID: "m", Opts: func() map[string]any { return map[string]any{"id": "m", "cachedir": t.TempDir()} }, Templates: render.Render}
}

// parse reads high data; every id gets an SLS and an order.
func parse(t testing.TB, text string) *pyobj.Dict {
	t.Helper()
	v, err := yaml.Parse([]byte(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	high, _ := pyobj.From(v).(*pyobj.Dict)
	order := int64(10000)
	for _, body := range high.All() {
		b := body.(*pyobj.Dict)
		for _, list := range b.All() {
			l := list.(*pyobj.List)
			l.Items = append(l.Items, pyobj.NewDict("order", order))
			order++
		}
		_ = b.Set("__sls__", "sls")
		_ = b.Set("__env__", "base")
	}
	return high
}

// apply runs high data. It returns "result comment" by id, and the ids in the order in which they ran.
func apply(t testing.TB, e *modules.Env, high *pyobj.Dict, o states.Options) (map[string]string, []string) {
	t.Helper()
	if o.Registry == nil {
		o.Registry = states.NewRegistry(test.Module)
	}
	res := within(t, e, func(ctx context.Context, c *modules.Call) (any, error) {
		return states.New(c, o).CallHigh(ctx, high, nil)
	})
	all, ok := res.Return.(map[string]any)
	if !ok {
		t.Fatalf("%v", res.Return)
	}
	out := map[string]string{}
	var ids []string
	num := map[string]int64{}
	for tag, v := range all {
		rec := v.(map[string]any)
		id := strings.Split(tag, "_|-")[1]
		out[id] = fmt.Sprint(rec["result"], " ", rec["comment"])
		num[id], _ = rec["__run_num__"].(int64)
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return int(num[a] - num[b]) })
	return out, ids
}

func TestRequisites(t *testing.T) {
	const failed = "false One or more requisite failed: sls.a"
	for _, c := range []struct{ name, high, want string }{
		{"require", "a: {test: [fail_without_changes]}\nb: {test: [nop, {require: [{test: a}]}]}", failed},
		{"require that succeeds", "a: {test: [nop]}\nb: {test: [nop, {require: [a]}]}", "true Success!"},
		{"watch with changes", "a: {test: [succeed_with_changes]}\nb: {test: [nop, {watch: [{test: a}]}]}", "true Watch statement fired."},
		{"watch without", "a: {test: [nop]}\nb: {test: [nop, {watch: [{test: a}]}]}", "true Success!"},
		{"onchanges without", "a: {test: [nop]}\nb: {test: [nop, {onchanges: [{test: a}]}]}", "true State was not run because none of the onchanges reqs changed"},
		{"onfail without", "a: {test: [nop]}\nb: {test: [nop, {onfail: [{test: a}]}]}", "true State was not run because onfail req did not change"},
		{"onfail", "a: {test: [fail_without_changes]}\nb: {test: [nop, {onfail: [{test: a}]}]}", "true Success!"},
		{"require_in", "a: {test: [fail_without_changes, {require_in: [{test: b}]}]}\nb: {test: [nop]}", failed},
		{"prereq without changes", "b: {test: [nop, {prereq: [{test: a}]}]}\na: {test: [nop]}", "true No changes detected"},
		{"glob", "a: {test: [fail_without_changes]}\nb: {test: [nop, {require: [{test: 'a*'}]}]}", failed},
		{"itself", "a: {test: [nop]}\nb: {test: [nop, {require: [{test: 'b*'}]}]}", "false Recursive requisite found"},
		{"nowhere", "a: {test: [nop]}\nb: {test: [nop, {require: [{cmd: x}]}]}", "false The following requisites were not found:\n" +
			"                   require:\n                       cmd: x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := apply(t, bare(t), parse(t, c.high), states.Options{})
			if got["b"] != c.want {
				t.Errorf("%q, want %q", got["b"], c.want)
			}
		})
	}
}

// TestGrainsOfTheJob: what a job has done to the grains counts in its own state run, over those that are given for it too.
func TestGrainsOfTheJob(t *testing.T) {
	for name, given := range map[string]map[string]any{"the minion's": nil, "given": {"os": "x"}} {
		res := within(t, bare(t), func(ctx context.Context, c *modules.Call) (any, error) {
			c.Context().SetGrain("state_runs_disabled", []any{"test.nop"})
			return states.New(c, states.Options{Registry: states.NewRegistry(test.Module), Grains: given}).CallHigh(ctx, parse(t, "a: {test: [nop]}"), nil)
		})
		all, _ := res.Return.(map[string]any)
		rec, _ := all["test_|-a_|-a_|-nop"].(map[string]any)
		if comment, _ := rec["comment"].(string); !strings.Contains(comment, "is currently disabled") {
			t.Errorf("%s: %v %v", name, res.Return, res.Err)
		}
	}
}

func TestRequiredStatesRunFirst(t *testing.T) {
	_, order := apply(t, bare(t), parse(t, "c: {test: [nop, {require: [{test: b}]}]}\nb: {test: [nop, {require: [{test: a}]}]}\na: {test: [nop]}\n"), states.Options{})
	if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestParallelStatesAreWaitedFor(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "p%02d: {test: [nop, {parallel: true}]}\n", i)
	}
	text.WriteString("z: {test: [nop, {require: ['p*']}]}\n")
	got, _ := apply(t, bare(t), parse(t, text.String()), states.Options{})
	for id, s := range got {
		if s != "true Success!" {
			t.Errorf("%s: %s", id, s)
		}
	}
	if len(got) != 21 {
		t.Errorf("%d results", len(got))
	}
}

// TestParallelStatesAreBounded: at most state_max_parallel states run at once, in the order of the run.
func TestParallelStatesAreBounded(t *testing.T) {
	for most, want := range map[int64]string{0: "5 in 1s", 1: "1 in 5s", 2: "2 in 3s", 9: "5 in 1s"} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var begun []string
			running, peak := 0, 0
			slow := &states.Module{Name: "slow", Funcs: []states.Def{{Name: "run", Params: []modules.Param{{Name: "name"}},
				Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
					mu.Lock()
					begun = append(begun, c.Low.ID())
					running++
					peak = max(peak, running)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					running--
					mu.Unlock()
					return c.Result().As(states.True, "done")
				}}}}
			var text strings.Builder
			for i := range 5 {
				fmt.Fprintf(&text, "p%d: {slow: [run, {parallel: true}]}\n", i)
			}
			e := bare(t)
			dir := t.TempDir()
			e.Opts = func() map[string]any { return map[string]any{"id": "m", "cachedir": dir, "state_max_parallel": most} }
			at := time.Now()
			got, _ := apply(t, e, parse(t, text.String()), states.Options{Registry: states.NewRegistry(slow)})
			if s := fmt.Sprintf("%d in %s", peak, time.Since(at)); s != want || len(got) != 5 {
				t.Errorf("at most %d: %s, %v", most, s, got)
			}
			if most == 1 && !slices.IsSorted(begun) {
				t.Errorf("begun in the order %s", begun)
			}
		})
	}
}

func TestSoftKillEndsTheRun(t *testing.T) {
	e := bare(t)
	dir := t.TempDir()
	e.Opts = func() map[string]any { return map[string]any{"id": "m", "cachedir": dir} }
	const jid = "20250102030405678901"
	if err := states.ChangePause(e, jid, "b", func(data map[string]any, id string) { data[id] = map[string]any{"kill": true} }); err != nil {
		t.Fatal(err)
	}
	got, _ := apply(t, e, parse(t, "a: {test: [nop]}\nb: {test: [nop]}\nc: {test: [nop]}\n"), states.Options{JID: jid})
	if diff := cmp.Diff(map[string]string{"a": "true Success!"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(states.PauseDir(e), jid)); err == nil {
		t.Error("the pause is still there after the run")
	}
}

func TestPauseFilesStayInTheirDirectory(t *testing.T) {
	if err := states.ChangePause(bare(t), "../../etc/x", "", func(map[string]any, string) {}); err == nil {
		t.Error("a path is taken for a job id")
	}
}

func TestEventsOfStates(t *testing.T) {
	e := bare(t)
	var tags []string
	e.Master = modulestest.Master(func(_ context.Context, load map[string]any) (any, error) {
		tags = append(tags, fmt.Sprint(load["tag"]))
		return nil, nil
	})
	apply(t, e, parse(t, "a: {test: [nop, {fire_event: my/event}]}\nb: {test: [nop, {fire_event: true}]}\nc: {test: [nop]}\n"),
		states.Options{JID: "j", Opts: map[string]any{"id": "m", "state_events": false}})
	if diff := cmp.Diff([]string{"salt/state_result/j/m/my/event", "salt/state_result/j/m/b"}, tags); diff != "" {
		t.Error(diff)
	}
}

func TestGlobalConditions(t *testing.T) {
	e := bare(t)
	match := &modules.Module{Name: "match", Funcs: []modules.Def{{Name: "compound", Params: []modules.Param{{Name: "tgt"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) { return c.Str("tgt") == "yes", nil }}}}
	high := parse(t, "a: {test: [nop]}\nb: {test: [succeed_with_changes]}\n")
	var got any
	door := &modules.Module{Name: "door", Funcs: []modules.Def{{Name: "open", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		o := states.Options{Registry: states.NewRegistry(test.Module), Opts: map[string]any{"global_state_conditions": map[string]any{"*": []any{"no"}, "test.nop": "yes"}}}
		var err error
		got, err = states.New(c, o).CallHigh(ctx, high, nil)
		return nil, err
	}}}}
	modules.NewRegistry(door, match).Run(t.Context(), e, modules.Request{Fun: "door.open"})
	all, _ := got.(map[string]any)
	a, _ := all["test_|-a_|-a_|-nop"].(map[string]any)
	b, _ := all["test_|-b_|-b_|-succeed_with_changes"].(map[string]any)
	if a["comment"] != "Success!" || b["comment"] != "Failed to meet global state conditions. State not called." || b["result"] != nil {
		t.Errorf("%v %v", a, b)
	}
}

// folder is a file client on one directory.
type folder struct {
	modulestest.NoFiles
	dir string
}

func (f folder) Envs(context.Context) ([]string, error) { return []string{"base"}, nil }

func (f folder) List(context.Context, string, string) ([]string, error) {
	var list []string
	err := filepath.WalkDir(f.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(f.dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	return list, err
}

func (f folder) Cache(_ context.Context, url, _ string) (string, error) {
	path := filepath.Join(f.dir, strings.TrimPrefix(url, "salt://"))
	if _, err := os.Stat(path); err != nil {
		return "", nil //nolint:nilerr // no such file
	}
	return path, nil
}

func TestCompile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"top.sls":       "base: {'*': [web]}\n",
		"web/init.sls":  "include: [.conf]\nserver:\n  test.nop:\n    - require: [{sls: web.conf}]\n",
		"web/conf.sls":  "{% for n in [1, 2] %}\nfile{{ n }}: test.nop\n{% endfor %}\n",
		"web/other.sls": "unused: test.nop\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := bare(t)
	opts := map[string]any{"id": "m", "renderer": "jinja|yaml", "state_top": "top.sls", "state_auto_order": true, "cachedir": dir}
	e.Opts, e.Files = func() map[string]any { return opts }, folder{dir: dir}
	var ids []string
	res := within(t, e, func(ctx context.Context, c *modules.Call) (any, error) {
		h, err := states.NewHighState(ctx, c, states.Options{Opts: maps.Clone(opts)})
		if err != nil {
			return nil, err
		}
		chunks, errs, err := h.CompileLow(ctx)
		for _, c := range chunks {
			ids = append(ids, c.SLS()+":"+c.ID())
		}
		return fmt.Sprint(errs), err
	})
	if diff := cmp.Diff([]string{"web.conf:file1", "web.conf:file2", "web:server"}, ids); diff != "" {
		t.Error(diff, res)
	}
}

// BenchmarkUnchanged runs 2,000 states that change nothing, each requiring the one before it.
func BenchmarkUnchanged(b *testing.B) {
	e := bare(b)
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "s%04d: {test: [nop, {require: [{test: s%04d}]}]}\n", i, max(i-1, 0))
	}
	source := strings.Replace(text.String(), "s0000: {test: [nop, {require: [{test: s0000}]}]}", "s0000: {test: [nop]}", 1)
	high := parse(b, source)
	b.ReportAllocs()
	for b.Loop() {
		got, _ := apply(b, e, pyobj.DeepCopy(high).(*pyobj.Dict), states.Options{})
		if len(got) != 2000 {
			b.Fatal(len(got))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2000, "µs/state")
}

// TestConditionsThatCannotRun has the errors of stock's loader, which takes long to say some of them.
func TestConditionsThatCannotRun(t *testing.T) {
	for text, want := range map[string]string{
		"{onlyif: [{fun: [a]}]}":                      "TypeError: unhashable type: 'list'",
		"{unless: [{fun: {a: b}}]}":                   "TypeError: unhashable type: 'dict'",
		"{onlyif: [{fun: ~}]}":                        "KeyError: 'The key must be a string.'",
		"{onlyif: [{fun: 5}]}":                        "KeyError: 'The key must be a string.'",
		"{unless: [{fun: nodots}]}":                   `KeyError: "The key 'nodots' should contain a '.'"`,
		"{onlyif: [{fun: door.open, args: 5}]}":       "TypeError: 'int' object is not iterable",
		"{onlyif: [{fun: door.open, args: ~}]}":       "TypeError: 'NoneType' object is not iterable",
		"{onlyif: [{fun: none.there, args: {a: b}}]}": "KeyError: 'none.there'",
	} {
		got, _ := apply(t, bare(t), parse(t, "x: {test: [nop, "+text+"]}"), states.Options{})
		if !strings.HasPrefix(got["x"], "false An exception occurred in this state: ") || !strings.HasSuffix(strings.TrimSpace(got["x"]), want) {
			t.Errorf("%s\n got %s\nwant %s", text, got["x"], want)
		}
	}
}
