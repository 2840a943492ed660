package reactor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/reactor"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/states/render"
)

// rig is a master with a reactor and a listener.
type rig struct {
	t   *testing.T
	m   *master.Master
	r   *reactor.Reactor
	sub *events.Subscription
	log *testlog.Buffer
}

// key is the key pair of all masters and minions, because generating one takes a while.
var key = sync.OnceValues(func() (*crypt.PrivateKey, error) { return crypt.GenerateKey(2048) })

// start starts a master with the files of the tests. It knows the minions web1 and web2, which are not connected.
func start(t *testing.T, change func(*reactor.Options)) *rig {
	t.Helper()
	files := fstest.MapFS{"react.sls": {Data: []byte("from the file server:\n  runner.test.arg:\n    - args:\n      - a: {{ tag }}\n")}}
	pair, err := key()
	if err != nil {
		t.Fatal(err)
	}
	pki := t.TempDir()
	if err := os.WriteFile(filepath.Join(pki, "master.pem"), pair.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := master.New(master.Options{ID: "the_master", PKIDir: pki,
		Files: master.FileOptions{FS: files}, Network: master.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := m.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	select {
	case <-m.Ready():
	case <-time.After(time.Minute):
		t.Fatal("the master does not serve")
	}
	for _, id := range []string{"web1", "web2"} {
		if err := m.Keys().Preseed(id, pair.Public().Text()); err != nil {
			t.Fatal(err)
		}
	}
	l := &testlog.Buffer{}
	log := slog.New(slog.NewTextHandler(l, nil))
	host := runner.Embedded(m, "the_master", nil, "", log)
	call := modules.NewRegistry().NewCall(&modules.Env{Templates: render.Render, Log: log}, "reactor", "", nil)
	o := reactor.Options{Master: m, ID: "the_master", Key: "root's key", Template: call.Template, Runner: runner.NewClient(host), Wheel: runner.NewWheel(host), Log: log}
	if change != nil {
		change(&o)
	}
	r, err := reactor.New(o)
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { r.Run(ctx) })
	sub := m.Events().Subscribe(events.SubscribeOptions{})
	t.Cleanup(sub.Close)
	return &rig{t, m, r, sub, l}
}

// file writes a reaction file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reaction.sls")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wait is the next event of a tag.
func (r *rig) wait(pattern string) events.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for {
		e, err := r.sub.Next(ctx)
		if err != nil {
			r.t.Fatalf("waiting for %s: %v\n%s", pattern, err, r.log)
		}
		if fnmatch.Match(pattern, e.Tag) {
			return e
		}
	}
}

// logs waits for a text in the log.
func (r *rig) logs(want string) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(r.log.String(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the log has no %q:\n%s", want, r.log)
		}
	}
}

func (r *rig) fire(tag string, data map[string]any) { r.m.Events().Publish(tag, data) }

func TestJobForMinions(t *testing.T) {
	for name, body := range map[string]string{
		"args":           "    - tgt: {{ data['id'] }}\n    - args:\n      - cmd: echo {{ data['n'] }}\n      - shell: /bin/sh\n",
		"args as a map":  "    - tgt: {{ data['id'] }}\n    - args:\n        cmd: echo {{ data['n'] }}\n        shell: /bin/sh\n",
		"the old way":    "    - tgt: {{ data['id'] }}\n    - kwarg:\n        cmd: echo {{ data['n'] }}\n        shell: /bin/sh\n",
		"list of ids":    "    - tgt: [{{ data['id'] }}, nobody]\n    - tgt_type: list\n    - args:\n      - cmd: echo {{ data['n'] }}\n      - shell: /bin/sh\n",
		"old tgt_type":   "    - tgt: web[1]\n    - expr_form: pcre\n    - args:\n      - cmd: echo {{ data['n'] }}\n      - shell: /bin/sh\n",
		"another string": "    - tgt: w*1\n    - kwarg: {cmd: echo {{ data['n'] }}, shell: /bin/sh}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "say:\n  local.cmd.run:\n"+body)
			r := start(t, func(o *reactor.Options) {
				o.Rules = []reactor.Rule{{Tag: "salt/minion/*/start", Files: []string{path}}}
			})
			r.fire("salt/minion/web1/start", map[string]any{"id": "web1", "n": int64(7)})
			e := r.wait("salt/job/*/new")
			want := map[string]any{"fun": "cmd.run", "user": reactor.User, "minions": []any{"web1"},
				"arg": []any{map[string]any{"__kwarg__": true, "cmd": "echo 7", "shell": "/bin/sh"}}}
			got := map[string]any{}
			for k := range want {
				got[k] = e.Data[k]
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPositionalArguments(t *testing.T) {
	path := file(t, "say:\n  cmd.test.arg:\n    - tgt: '*'\n    - arg:\n      - one\n      - 2\n")
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "go", Files: []string{path}}} })
	r.fire("go", nil)
	e := r.wait("salt/job/*/new")
	if d := cmp.Diff([]any{"one", int64(2)}, e.Data["arg"]); d != "" || e.Data["fun"] != "test.arg" {
		t.Error(e.Data["fun"], d)
	}
}

func TestFunctionsOfTheMaster(t *testing.T) {
	path := file(t, `
new:
  runner.test.arg:
    - args:
      - x: {{ data.x }}
      - tag: {{ tag }}
old:
  runner.test.arg:
    - y: [1, 2]
    - order: 1
accept:
  wheel.key.delete:
    - args:
      - match: web2
`)
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "a/?/c", Files: []string{path}}} })
	r.fire("a/b/c", map[string]any{"x": "v"})
	got := map[string]any{}
	for range 3 {
		e := r.wait("salt/*/*/ret")
		if e.Data["user"] != reactor.User || e.Data["success"] != true {
			t.Errorf("%v", e)
		}
		switch ret := e.Data["return"].(type) {
		case map[string]any:
			if kw, ok := ret["kwargs"].(map[string]any); ok && kw["y"] != nil {
				got["old"] = kw
			} else if ok {
				got["new"] = kw
			} else {
				got["wheel"] = e.Data["fun"]
			}
		default:
			got["wheel"] = e.Data["fun"]
		}
	}
	want := map[string]any{"new": map[string]any{"x": "v", "tag": "a/b/c"}, "old": map[string]any{"y": []any{int64(1), int64(2)}}, "wheel": "wheel.key.delete"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if st := r.m.Keys().State("web2").String(); st != "unknown" && st != "" && st != "none" {
		t.Errorf("web2 is %q", st)
	}
}

// TestFormsOfArguments: what functions get is what stock's ReactWrap 3007 hands over.
func TestFormsOfArguments(t *testing.T) {
	type kw = map[string]any
	calls := make(chan modules.Request, 1)
	for name, c := range map[string]struct {
		text  string
		args  []any
		named kw
	}{
		"names":      {"caller.test.arg: [{args: '[a: 1]'}]", nil, kw{"a": int64(1)}},
		"a map":      {"caller.test.arg: [{args: {a: 1, b: 2}}]", nil, kw{"a": int64(1), "b": int64(2)}},
		"a dictlist": {"caller.test.arg: [{args: [a: x, b: [1]]}]", nil, kw{"a": "x", "b": []any{int64(1)}}},
		"values":     {"caller.test.arg: [{args: [x, {a: 1}]}]", []any{"x", kw{"a": int64(1)}}, nil},
		"two in one": {"caller.test.arg: [{args: [{a: 1, b: 2}]}]", []any{kw{"a": int64(1), "b": int64(2)}}, nil},
		"old":        {"caller.test.arg: [{arg: [1]}, {kwarg: {z: 1}}]", []any{int64(1)}, kw{"z": int64(1)}},
		"one":        {"caller.test.arg: [{arg: x}]", []any{"x"}, nil},
		"none":       {"caller.test.arg: [{x: 1}]", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "it:\n  "+c.text+"\n")
			r := start(t, func(o *reactor.Options) {
				o.Rules = []reactor.Rule{{Tag: "go", Files: []string{path}}}
				o.Caller = func(_ context.Context, q modules.Request) (any, error) {
					calls <- q
					return nil, errors.New("it failed")
				}
			})
			r.fire("go", nil)
			got := <-calls
			for i, v := range got.Args {
				got.Args[i] = pyobj.Plain(v)
			}
			for k, v := range got.Kwargs {
				got.Kwargs[k] = pyobj.Plain(v)
			}
			if d := cmp.Diff(modules.Request{Fun: "test.arg", Args: c.args, Kwargs: c.named}, got); d != "" {
				t.Error(d)
			}
			r.logs("Reactor 'it' failed to execute caller 'test.arg': it failed")
		})
	}
	path := file(t, "it:\n  runner.test.arg:\n    - args: [a, b: 1]\n")
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "go", Files: []string{path}}} })
	r.fire("go", nil)
	ret, _ := r.wait("salt/run/*/ret").Data["return"].(map[string]any)
	if d := cmp.Diff(map[string]any{"a": nil, "b": int64(1)}, ret["kwargs"]); d != "" {
		t.Error(d)
	}
}

// TestJobsInOrder: the jobs of a file are published one after the other, as they stand there.
func TestJobsInOrder(t *testing.T) {
	text := ""
	for i := range 20 {
		text += fmt.Sprintf("j%02d:\n  local.test.arg:\n    - tgt: '*'\n    - arg: [%d]\n", i, i)
	}
	path := file(t, text)
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "go", Files: []string{path}}} })
	r.fire("go", nil)
	for i := range 20 {
		if d := cmp.Diff([]any{int64(i)}, r.wait("salt/job/*/new").Data["arg"]); d != "" {
			t.Fatal(d)
		}
	}
}

func TestFilesOfTheFileServer(t *testing.T) {
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "go", Files: []string{"salt://react.sls"}}} })
	r.fire("go", nil)
	e := r.wait("salt/run/*/ret")
	ret, _ := e.Data["return"].(map[string]any)
	if d := cmp.Diff(map[string]any{"a": "go"}, ret["kwargs"]); d != "" {
		t.Error(d)
	}
}

func TestFunctionOfTheProgram(t *testing.T) {
	got := make(chan events.Event, 1)
	r := start(t, func(o *reactor.Options) {
		o.Rules = []reactor.Rule{
			{Tag: "go", Do: func(context.Context, events.Event) error { return errors.New("no luck") }},
			{Tag: "go", Do: func(context.Context, events.Event) error { panic("oh") }},
			{Tag: "g*", Do: func(_ context.Context, e events.Event) error { got <- e; return nil }},
		}
	})
	r.fire("go", map[string]any{"a": true})
	select {
	case e := <-got:
		if e.Tag != "go" || e.Data["a"] != true {
			t.Errorf("%+v", e)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing happened")
	}
	r.logs("no luck")
	r.logs("ended in a panic")
}

// What a reactor starts causes nothing, so that a reaction to runs does not feed itself.
func TestNoLoops(t *testing.T) {
	path := file(t, "again:\n  runner.test.arg: []\n")
	r := start(t, func(o *reactor.Options) {
		o.Rules = []reactor.Rule{{Tag: "salt/run/*", Files: []string{path}}, {Tag: "go", Files: []string{path}}}
	})
	r.fire("go", nil)
	first := r.wait("salt/run/*/ret")
	r.fire("go", nil)
	if second := r.wait("salt/run/*/ret"); second.Data["jid"] == first.Data["jid"] {
		t.Error("one run ended twice")
	}
	r.fire("end", nil)
	for e := (events.Event{}); e.Tag != "end"; {
		if e = r.wait("*"); strings.HasPrefix(e.Tag, "salt/run/") {
			t.Errorf("another run: %v", e)
		}
	}
}

func TestBadReactions(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":             {"a: [", "Failed to render"},
		"undefined":           {"a: {{ nothing.here }}\n", "Failed to render"},
		"no dictionary":       {"- a\n", "not to a dictionary"},
		"no list":             {"a:\n  local.test.ping:\n    tgt: '*'\n", "is not formed as a list"},
		"no target":           {"a:\n  local.test.ping:\n    - arg: []\n", "it has no tgt"},
		"no such kind":        {"a:\n  remote.test.ping:\n    - tgt: '*'\n", "unknown kind of reaction remote"},
		"no such runner":      {"a:\n  runner.test.nothing: []\n", "function not available"},
		"arguments":           {"a:\n  runner.test.arg:\n    - args: text\n", "incorrect argument format"},
		"no arguments":        {"a:\n  runner.test.arg:\n    - args: []\n", "incorrect argument format"},
		"two in one":          {"a:\n  runner.test.arg:\n    - args: [{a: 1, b: 2}]\n", "incorrect argument format"},
		"arguments in a list": {"a:\n  local.test.arg:\n    - tgt: '*'\n    - args: [[1]]\n", "incorrect argument format"},
		"nobody calls":        {"a:\n  caller.test.arg: []\n", "this master has no execution functions"},
		"job id":              {"a:\n  local.test.ping:\n    - tgt: '*'\n    - jid: ../../x\n", "is not a job id"},
		"failing run":         {"a:\n  runner.error.error:\n    - args:\n      - name: Exception\n      - message: broken\n", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, c.text)
			r := start(t, func(o *reactor.Options) {
				o.Rules = []reactor.Rule{{Tag: "go", Files: []string{path, "salt://react.sls"}}}
			})
			r.fire("go", nil)
			r.logs(c.want)
		})
	}
	r := start(t, func(o *reactor.Options) {
		o.Rules = []reactor.Rule{{Tag: "go", Files: []string{"/nonexistent/*.sls", "salt://none.sls", "salt://react.sls"}}}
	})
	r.fire("go", nil)
	r.logs("Can not render SLS /nonexistent/*.sls for tag go. File missing or not found.")
	r.logs("Can not render SLS salt://none.sls for tag go. File missing or not found.")
	r.wait("salt/run/*/ret")
}

// TestFullQueue: in a flood of events reactions are dropped and this is logged; the bus keeps working.
func TestFullQueue(t *testing.T) {
	begun, release := make(chan struct{}, 8), make(chan struct{})
	r := start(t, func(o *reactor.Options) {
		o.Workers, o.Queue = 1, 1
		o.Rules = []reactor.Rule{{Tag: "go", Do: func(context.Context, events.Event) error {
			begun <- struct{}{}
			<-release
			return nil
		}}}
	})
	r.fire("go", nil)
	<-begun
	for !strings.Contains(r.log.String(), "A reaction was dropped") && !strings.Contains(r.log.String(), "missed events") {
		r.fire("go", nil)
	}
	close(release)
	<-begun
}

func TestRulesFromAFile(t *testing.T) {
	path := file(t, "- go:\n  - salt://react.sls\n- bad\n")
	r := start(t, func(o *reactor.Options) { o.RuleFile = path })
	r.fire("go", nil)
	r.wait("salt/run/*/ret")
	r.logs("entry 2 of reactor is not a map of one tag")
	if err := os.WriteFile(path, []byte("- [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.fire("go", nil)
	r.logs("cannot read the reactor map")
}

func TestManagedByEvents(t *testing.T) {
	r := start(t, func(o *reactor.Options) { o.Rules = []reactor.Rule{{Tag: "a", Files: []string{"/a.sls"}}} })
	const manage = "salt/reactors/manage/"
	ask := func(what, answer string, data map[string]any) map[string]any {
		data["key"] = "root's key"
		r.fire(manage+what, data)
		got := maps.Clone(r.wait(manage + answer).Data) // the event is everybody's
		delete(got, "_stamp")
		return got
	}
	a := map[string]any{"a": []any{"/a.sls"}}
	b := map[string]any{"b": []any{"/b.sls", "/c.sls"}}
	status := func(ok bool, text string) map[string]any { return map[string]any{"status": ok, "comment": text} }
	for _, c := range []struct {
		what, answer string
		data, want   map[string]any
	}{
		{"list", "list-results", map[string]any{}, map[string]any{"reactors": []any{a}}},
		{"add", "add-complete", map[string]any{"event": "b", "reactors": []any{"/b.sls", "/c.sls"}}, map[string]any{"reactors": []any{a, b}, "result": status(true, "Reactor added.")}},
		{"add", "add-complete", map[string]any{"event": "b", "reactors": "/x"}, map[string]any{"reactors": []any{a, b}, "result": status(false, "Reactor already exists.")}},
		{"delete", "delete-complete", map[string]any{"event": "a"}, map[string]any{"reactors": []any{b}, "result": status(true, "Reactor deleted.")}},
		{"delete", "delete-complete", map[string]any{"event": "a"}, map[string]any{"reactors": []any{b}, "result": status(false, "Reactor does not exists.")}},
		{"is_leader", "leader/value", map[string]any{}, map[string]any{"result": true}},
		{"set_leader", "leader/value", map[string]any{"id": "another", "value": false}, map[string]any{"result": true}},
		{"set_leader", "leader/value", map[string]any{"id": "the_master", "value": false}, map[string]any{"result": false}},
	} {
		if d := cmp.Diff(c.want, ask(c.what, c.answer, c.data)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
	r.r.SetLeader(true)
	for _, key := range []any{nil, "", "another key", 7} {
		r.fire(manage+"delete", map[string]any{"event": "b", "key": key})
	}
	r.logs("Received salt/reactors/manage/delete without the master's key")
	ask("list", "list-results", map[string]any{})
	rules, err := r.r.List()
	if err != nil || len(rules) != 1 || rules[0].Tag != "b" {
		t.Errorf("%v, %v", rules, err)
	}
}

func TestParseRules(t *testing.T) {
	rules, err := reactor.ParseRules([]any{map[string]any{"a": "/one"}, map[string]any{"b": []any{"/two", "/three"}}, "c", map[string]any{"d": int64(1)}, map[string]any{"e": []any{true}}})
	want := []reactor.Rule{{Tag: "a", Files: []string{"/one"}}, {Tag: "b", Files: []string{"/two", "/three"}}}
	if d := cmp.Diff(want, rules); d != "" {
		t.Error(d)
	}
	const text = "entry 3 of reactor is not a map of one tag\nreactor \"d\": its files are int64, not a list\nreactor \"e\": file 1 is bool, not a path"
	if err == nil || err.Error() != text {
		t.Errorf("%v", err)
	}
	if _, err := reactor.ParseRules("text"); err == nil {
		t.Error("no error")
	}
}
