package modules

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func probe(_ context.Context, c *Call) (any, error) {
	return map[string]any{"a": c.Value("a"), "b": c.Value("b"), "extra": c.Extra, "kw": c.Keywords}, nil
}

var probeModule = &Module{Name: "probe", Funcs: []Def{
	{Name: "two", Doc: "Two.", Params: []Param{{Name: "a"}, {Name: "b", Default: int64(2)}}, Run: probe},
	{Name: "none", Run: func(context.Context, *Call) (any, error) { return true, nil }},
	{Name: "all", Params: []Param{{Name: "a"}}, Args: "args", Kwargs: "kwargs", Run: probe},
	{Name: "three", Params: []Param{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "k", KeywordOnly: true}}, Run: probe},
	{Name: "exec", Run: func(context.Context, *Call) (any, error) { return nil, Errorf("no %s", "disk") }},
	{Name: "crash", Run: func(context.Context, *Call) (any, error) { panic("boom") }},
	{Name: "false", Run: func(context.Context, *Call) (any, error) {
		return map[string]any{"result": true, "success": false}, nil
	}},
	{Name: "retcode", Run: func(_ context.Context, c *Call) (any, error) { c.SetRetcode(7); return "x", nil }},
	{Name: "calls", Run: func(ctx context.Context, c *Call) (any, error) { return c.Exec(ctx, "probe.retcode") }},
	{Name: "endless", Run: func(ctx context.Context, c *Call) (any, error) { return c.Exec(ctx, "probe.endless") }},
}}

var absentModule = &Module{Name: "absentpkg", Virtual: "absent",
	Available: func(*Env) (bool, string) { return false, "no tool" }, Funcs: []Def{{Name: "x", Run: probe}}}

func TestRun(t *testing.T) {
	r := NewRegistry(probeModule, absentModule)
	all := func(extra []any, kw map[string]any) map[string]any {
		return map[string]any{"a": int64(1), "b": nil, "extra": extra, "kw": kw}
	}
	cases := []struct {
		name string
		q    Request
		want Result
	}{
		{"default", Request{Fun: "probe.two", Args: []any{int64(1)}}, Result{Success: true,
			Return: map[string]any{"a": int64(1), "b": int64(2), "extra": []any{}, "kw": map[string]any{}}}},
		{"varargs and pub", Request{Fun: "probe.all", Args: []any{int64(1), "x"}, Kwargs: map[string]any{"k": nil},
			Pub: map[string]any{"jid": "7"}},
			Result{Success: true, Return: all([]any{"x"}, map[string]any{"k": nil, "__pub_jid": "7"})}},
		{"missing one", Request{Fun: "probe.two"}, Result{Retcode: 1, Out: "nested",
			Return: "Passed invalid arguments to probe.two: two() missing 1 required positional argument: 'a'\nTwo."}},
		{"missing three", Request{Fun: "probe.three"}, Result{Retcode: 1, Out: "nested", Return: "Passed invalid arguments " +
			"to probe.three: three() missing 3 required positional arguments: 'a', 'b', and 'c'\n"}},
		{"missing keyword", Request{Fun: "probe.three", Args: []any{nil, nil, nil}}, Result{Retcode: 1, Out: "nested",
			Return: "Passed invalid arguments to probe.three: three() missing 1 required keyword-only argument: 'k'\n"}},
		{"too many", Request{Fun: "probe.none", Args: []any{"x"}}, Result{Retcode: 1, Out: "nested",
			Return: "Passed invalid arguments to probe.none: none() takes 0 positional arguments but 1 was given\n"}},
		{"too many of some", Request{Fun: "probe.two", Args: []any{1, 2, 3}}, Result{Retcode: 1, Out: "nested", Return: "Passed " +
			"invalid arguments to probe.two: two() takes from 1 to 2 positional arguments but 3 were given\nTwo."}},
		{"twice", Request{Fun: "probe.two", Args: []any{1}, Kwargs: map[string]any{"a": 2}}, Result{Retcode: 1, Out: "nested",
			Return: "Passed invalid arguments to probe.two: two() got multiple values for argument 'a'\nTwo."}},
		{"unknown keyword", Request{Fun: "probe.two", Kwargs: map[string]any{"z": true}}, Result{Retcode: 1, Out: "nested",
			Return: "ERROR executing 'probe.two': The following keyword arguments are not valid: z=True"}},
		{"failed", Request{Fun: "probe.exec"}, Result{Retcode: 1, Out: "nested", Return: "ERROR: no disk"}},
		{"false result", Request{Fun: "probe.false"}, Result{Retcode: 1,
			Return: map[string]any{"result": true, "success": false}}},
		{"retcode through a call", Request{Fun: "probe.calls"}, Result{Retcode: 7, Return: "x"}},
		{"absent", Request{Fun: "nope.x"}, Result{Retcode: 1, Out: "nested", Return: "'nope.x' is not available."}},
		{"absent with docs", Request{Fun: "probe.tw"}, Result{Retcode: 1, Out: "nested",
			Return: map[string]any{"probe.two": "Two.", "probe.tw": "'probe.tw' is not available."}}},
		{"refused", Request{Fun: "absent.x"}, Result{Retcode: 1, Out: "nested",
			Return: "'absent' __virtual__ returned False: no tool"}},
		{"endless", Request{Fun: "probe.endless"}, Result{Retcode: 1, Out: "nested",
			Return: "ERROR: functions call each other more than 64 deep at probe.endless"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := r.Run(t.Context(), &Env{}, c.q)
			got.Err = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPanicIsAResult(t *testing.T) {
	res := NewRegistry(probeModule).Run(t.Context(), &Env{}, Request{Fun: "probe.crash"})
	text, _ := res.Return.(string)
	if res.Retcode != 1 || res.Success || len(text) < 50 || text[:44] != "The minion function caused an exception: boo" {
		t.Errorf("got %d %v %q", res.Retcode, res.Success, text)
	}
	var crash *panicError
	if !errors.As(res.Err, &crash) {
		t.Errorf("Err = %v", res.Err)
	}
}

func TestArgspecAndSchema(t *testing.T) {
	d := &probeModule.Funcs[0]
	want := map[string]any{"args": []any{"a", "b"}, "defaults": []any{int64(2)}, "varargs": nil, "kwargs": nil}
	if diff := cmp.Diff(want, d.Argspec()); diff != "" {
		t.Error(diff)
	}
	typed := Def{Name: "t", Params: []Param{{Name: "n", Type: Int}, {Name: "p", Type: String, Optional: true, Secret: true}}}
	schema := map[string]any{"type": "object", "required": []any{"n"}, "additionalProperties": false,
		"properties": map[string]any{"n": map[string]any{"type": "integer"},
			"p": map[string]any{"type": "string", "writeOnly": true}}}
	if diff := cmp.Diff(schema, typed.Schema()); diff != "" {
		t.Error(diff)
	}
}

func TestAddRefusesNonsense(t *testing.T) {
	for name, m := range map[string]*Module{"nil": nil, "no name": {}, "dot": {Name: "a.b"}, "twice": probeModule} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Add did not panic")
				}
			}()
			NewRegistry(probeModule).Add(m)
		})
	}
}

// shelf is a source that a test fills.
type shelf struct {
	list   []*Module
	resets int
}

func (s *shelf) Find(_ *Registry, _ *Env, called string) []*Module {
	var found []*Module
	for _, m := range s.list {
		if m.Called() == called {
			found = append(found, m)
		}
	}
	return found
}
func (s *shelf) Modules(*Registry, *Env) []*Module { return s.list }
func (s *shelf) Reset()                            { s.resets++ }

func answer(v any) []Def {
	return []Def{{Name: "x", Run: func(context.Context, *Call) (any, error) { return v, nil }}}
}

func TestSource(t *testing.T) {
	s := &shelf{}
	r := NewRegistry(&Module{Name: "a", Funcs: answer("own")}, &Module{Name: "b", Funcs: answer("own")})
	r.AddSource(s)
	e := &Env{}
	ask := func(r *Registry, fun string) any { return r.Run(t.Context(), e, Request{Fun: fun}).Return }
	if got := ask(r, "c.x"); got != "'c.x' is not available." {
		t.Errorf("got %v", got)
	}
	s.list = []*Module{
		{Name: "a", Funcs: answer("source")}, {Name: "c", Funcs: answer("source")},
		{Name: "b", Funcs: answer("source"), Available: func(*Env) (bool, string) { return false, "not here" }},
	}
	want := map[string]any{"a.x": "source", "b.x": "'b' __virtual__ returned False: not here", "c.x": "source"}
	for fun, v := range want {
		if got := ask(r, fun); got != v {
			t.Errorf("%s: %v", fun, got)
		}
	}
	if diff := cmp.Diff([]string{"a.x", "c.x"}, r.Functions(e)); diff != "" {
		t.Error(diff)
	}
	e.Policy = without{"c", "b"}
	if diff := cmp.Diff([]string{"a.x"}, r.Functions(e)); diff != "" {
		t.Error(diff)
	}
	if got := ask(r, "c.x"); got != "'c.x' is not available." {
		t.Errorf("got %v", got)
	}
	if r.Reset(); s.resets != 1 {
		t.Errorf("%d resets", s.resets)
	}
}

// without is a policy that takes modules away.
type without []string

func (without) RefuseArguments(Kind, string, func() map[string]any) error { return nil }

func (w without) Disabled(Kind) []string  { return w }
func (without) Refuse(Kind, string) error { return nil }

func TestExitError(t *testing.T) {
	r := NewRegistry(&Module{Name: "a", Funcs: []Def{{Name: "x", Run: func(context.Context, *Call) (any, error) {
		return nil, &ExitError{Code: 5, Err: Errorf("no luck")}
	}}}})
	if res := r.Run(t.Context(), &Env{}, Request{Fun: "a.x"}); res.Return != "ERROR: no luck" || res.Retcode != 5 {
		t.Errorf("got %+v", res)
	}
}

func TestProviders(t *testing.T) {
	say := func(text string) *Module {
		return &Module{Name: text, Virtual: "pkg", Available: func(*Env) (bool, string) { return text == "first", "no" },
			Funcs: []Def{{Name: "who", Run: func(context.Context, *Call) (any, error) { return text, nil }}}}
	}
	r := NewRegistry(say("first"), say("second"))
	for _, c := range []struct{ provider, fun, want string }{
		{"nothing", "pkg.who", "first"}, {"second", "pkg.who", "second"}, {"second", "other.who", "second"},
	} {
		e := &Env{Opts: func() map[string]any {
			return map[string]any{"providers": map[string]any{"pkg": c.provider, "other": c.provider}}
		}}
		if got := r.Run(t.Context(), e, Request{Fun: c.fun}).Return; got != c.want {
			t.Errorf("%s with provider %s is %v, want %s", c.fun, c.provider, got, c.want)
		}
	}
}

// TestSeveralProviders: what the first module behind a name lacks comes from the next that suits the host, as in Salt.
func TestSeveralProviders(t *testing.T) {
	module := func(name string, suits bool, funs ...string) *Module {
		m := &Module{Name: name, Virtual: "service", Available: func(*Env) (bool, string) { return suits, "no" }}
		for _, fun := range funs {
			m.Funcs = append(m.Funcs, Def{Name: fun, Run: func(context.Context, *Call) (any, error) { return name, nil }})
		}
		return m
	}
	r := NewRegistry(module("a", true, "start"), module("b", true, "start", "offline"), module("c", false, "start", "reload"), module("d", true, "offline", "mask"))
	e := &Env{Opts: func() map[string]any { return nil }}
	for fun, want := range map[string]any{"start": "a", "offline": "b", "mask": "d"} {
		if got := r.Run(t.Context(), e, Request{Fun: "service." + fun}).Return; got != want {
			t.Errorf("service.%s is %v's, want %v", fun, got, want)
		}
	}
	if got := r.Functions(e); !slices.Equal(got, []string{"service.mask", "service.offline", "service.start"}) {
		t.Errorf("functions %v", got)
	}
	e.Opts = func() map[string]any { return map[string]any{"providers": map[string]any{"service": "c"}} }
	for fun, want := range map[string]any{"start": "c", "reload": "c", "mask": "d"} {
		if got := r.Run(t.Context(), e, Request{Fun: "service." + fun}).Return; got != want {
			t.Errorf("service.%s is %v's, want %v", fun, got, want)
		}
	}
}

// found are functions of a host.
type found []Def

func (f found) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range f {
			if !yield(d.Name) {
				return
			}
		}
	}
}

func (f found) Def(name string) *Def {
	if i := slices.IndexFunc(f, func(d Def) bool { return d.Name == name }); i >= 0 {
		return &f[i]
	}
	return nil
}

// denied is a policy that refuses one function.
type denied string

func (denied) RefuseArguments(Kind, string, func() map[string]any) error { return nil }

func (denied) Disabled(Kind) []string { return nil }

func (d denied) Refuse(_ Kind, fun string) error {
	if fun == string(d) {
		return errors.New("refused")
	}
	return nil
}

// TestDiscover: functions of the host stand beside the declared ones, are looked for once, and again after a reset.
func TestDiscover(t *testing.T) {
	calls, fails := 0, false
	m := &Module{Name: "tool", Funcs: []Def{{Name: "own", Doc: "declared"}}, Discover: func(*Env) (Found, error) {
		calls++
		if fails {
			return nil, errors.New("tool is broken")
		}
		return found{{Name: "found.deep"}, {Name: "own", Doc: "found"}}, nil
	}}
	r, e := NewRegistry(m), &Env{}
	for range 2 {
		if diff := cmp.Diff([]string{"tool.found.deep", "tool.own"}, r.Functions(e)); diff != "" {
			t.Error(diff)
		}
	}
	if d, err := r.Lookup("tool.own", e); err != nil || d.Doc != "declared" {
		t.Errorf("tool.own: %v, %v", d, err)
	}
	e.Policy = denied("tool.found.deep")
	if diff := cmp.Diff([]string{"tool.own"}, r.Functions(e)); diff != "" {
		t.Error(diff)
	}
	if list := r.Modules(e); len(list) != 1 || list[0].Def("found.deep") != nil || list[0].Def("own") == nil {
		t.Errorf("a refused function is declared: %v", list)
	}
	e.Policy = nil
	if calls != 1 || len(m.Funcs) != 1 {
		t.Errorf("Discover ran %d times, the module has %d functions", calls, len(m.Funcs))
	}
	fails = true
	r.Reset()
	if _, err := r.Lookup("tool.own", e); err == nil || err.Error() != "'tool' __virtual__ returned False: tool is broken" || calls != 2 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}
