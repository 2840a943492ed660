// Package modulestest is the suite that every execution module passes: declarations that make sense, documentation, no panic
// on missing or odd arguments, no name that a shell reads, and an end soon after the context ends.
//
// What the modules of brine keep to in form, besides, is in [House].
//
// The functions really run, in an environment of their own: an empty directory as root of the host and as working directory,
// a runner that starts nothing, a master that answers nothing. A test of a module is one line plus what is special about the module:
//
//	func TestModule(t *testing.T) { modulestest.Run(t, mymodule.Module) }
package modulestest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
)

// Patience is how long a function may go on after its context ended.
const Patience = 2 * time.Second

// Run checks a module.
func Run(t *testing.T, m *modules.Module) {
	t.Helper()
	t.Chdir(t.TempDir()) // odd arguments may be relative paths of files to write
	t.Run("declarations", func(t *testing.T) { declarations(t, m) })
	t.Run("odd arguments", func(t *testing.T) { odd(t, m) })
	t.Run("names are not run", func(t *testing.T) { names(t, m) })
	t.Run("stops with its context", func(t *testing.T) { stops(t, m) })
}

func declarations(t *testing.T, m *modules.Module) {
	m = m.Documented()
	if !name(m.Name) || m.Virtual != "" && !name(m.Virtual) {
		t.Errorf("module name %q, virtual %q", m.Name, m.Virtual)
	}
	if strings.TrimSpace(m.Doc) == "" {
		t.Error("the module has no documentation")
	}
	if len(m.Funcs) == 0 {
		t.Error("the module has no functions")
	}
	seen := map[string]bool{}
	for i := range m.Funcs {
		d := &m.Funcs[i]
		if !name(d.Name) || seen[d.Name] {
			t.Errorf("function name %q, or there are two of it", d.Name)
		}
		seen[d.Name] = true
		if d.Run == nil {
			t.Errorf("%s does nothing", d.Name)
		}
		if strings.TrimSpace(d.Doc) == "" {
			t.Errorf("%s has no documentation", d.Name)
		}
		parameters(t, d)
	}
}

// House checks what the modules of brine keep to besides, so that their documentation looks like Salt's: sorted functions,
// documentation that begins with a sentence and has an example. Modules of others need not.
func House(t *testing.T, m *modules.Module) {
	t.Helper()
	m = m.Documented()
	if !strings.HasSuffix(m.Doc, ".") {
		t.Errorf("the documentation of module %s is not a sentence: %q", m.Name, m.Doc)
	}
	for i := range m.Funcs {
		documented(t, m, &m.Funcs[i])
	}
	if !slices.IsSortedFunc(m.Funcs, func(a, b modules.Def) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("the functions of %s are not sorted by name", m.Name)
	}
}

// name reports whether a text is a Python identifier in lower case, more or less; a few of Salt's have capitals.
func name(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && s[0] != '_'
}

func documented(t *testing.T, m *modules.Module, d *modules.Def) {
	first, _, _ := strings.Cut(d.Doc, "\n")
	if len(first) < 10 || !strings.Contains(d.Doc+"\n", ".\n") {
		t.Errorf("%s.%s: the documentation does not begin with a sentence: %q", m.Name, d.Name, first)
	}
	if !strings.Contains(d.Example, m.Called()+"."+d.Name) {
		t.Errorf("%s.%s: there is no example: %q", m.Name, d.Name, d.Example)
	}
}

func parameters(t *testing.T, d *modules.Def) {
	seen, optional := map[string]bool{}, false
	for _, p := range d.Params {
		if !name(p.Name) && !strings.HasPrefix(p.Name, "_") || seen[p.Name] {
			t.Errorf("%s: parameter name %q, or there are two of it", d.Name, p.Name)
		}
		seen[p.Name] = true
		switch p.Default.(type) {
		case int, int32, uint, uint64, float32:
			t.Errorf("%s: the default of %s is of the Go type %T; numbers are int64 or float64", d.Name, p.Name, p.Default)
		}
		if p.Optional && p.Default != nil {
			t.Errorf("%s: %s has a default and is None by default", d.Name, p.Name)
		}
		if !p.KeywordOnly {
			if p.Required() && optional {
				t.Errorf("%s: %s is required after an optional one", d.Name, p.Name)
			}
			optional = optional || !p.Required()
		}
		if secret(p.Name) && !p.Secret {
			t.Errorf("%s: %s is not declared secret", d.Name, p.Name)
		}
	}
	if d.Args != "" && seen[d.Args] || d.Kwargs != "" && seen[d.Kwargs] {
		t.Errorf("%s: *args or **kwargs is also a parameter", d.Name)
	}
}

func secret(p string) bool {
	return strings.Contains(p, "password") || strings.Contains(p, "passphrase")
}

// values returns values of all types, which callers may pass in place of the expected ones.
func values() []any {
	return []any{
		nil, true, int64(-1), int64(1 << 62), 1.5, "", "x", "../../x", "a\x00b", "é", strings.Repeat("x", 5000), []byte{0xff},
		[]any{}, []any{nil, int64(1), []any{"x"}}, map[string]any{}, map[string]any{"a": map[string]any{"b": nil}},
		map[any]any{int64(1): "x"}, time.Unix(0, 0).UTC(),
	}
}

func odd(t *testing.T, m *modules.Module) {
	s := &suite{r: modules.NewRegistry(m), m: m, envs: []*modules.Env{{Root: t.TempDir()}, Env(t)}}
	for i := range m.Funcs {
		d := &m.Funcs[i]
		s.check(t, d, nil, nil)
		for _, v := range values() {
			args := make([]any, len(positional(d)))
			for k := range args {
				args[k] = v
			}
			s.check(t, d, args, nil)
			s.check(t, d, args[:required(d)], nil)
			for _, p := range d.Params[min(required(d), len(d.Params)):] {
				s.check(t, d, slices.Repeat([]any{"x"}, required(d)), map[string]any{p.Name: v})
			}
		}
		s.check(t, d, slices.Repeat([]any{"x"}, len(d.Params)+1), nil)
		s.check(t, d, nil, map[string]any{"brine_unknown": nil})
	}
}

func positional(d *modules.Def) []modules.Param {
	return slices.DeleteFunc(slices.Clone(d.Params), func(p modules.Param) bool { return p.KeywordOnly })
}

func required(d *modules.Def) int {
	n := 0
	for _, p := range d.Params {
		if p.Required() && !p.KeywordOnly {
			n++
		}
	}
	return n
}

// suite is a module under test.
type suite struct {
	r    *modules.Registry
	m    *modules.Module
	envs []*modules.Env
}

// check calls a function with a short life and complains about panics and lateness. A minion without parts and one with all
// parts are tried in turn.
func (s *suite) check(t *testing.T, d *modules.Def, args []any, kwargs map[string]any) {
	t.Helper()
	for _, e := range s.envs {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		s.call(ctx, t, d, e, args, kwargs)
		cancel()
	}
}

func (s *suite) call(ctx context.Context, t *testing.T, d *modules.Def, e *modules.Env, args []any, kwargs map[string]any) {
	t.Helper()
	fun := s.m.Called() + "." + d.Name
	show := fmt.Sprintf("%s(%.200v, %.200v)", fun, args, kwargs)
	done := make(chan modules.Result, 1)
	go func() { done <- s.r.Run(ctx, e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs}) }()
	select {
	case res := <-done:
		if text, _ := res.Return.(string); modules.Panicked(res.Err) {
			t.Fatalf("%s panics: %s", show, text)
		}
		if why := foreign(res.Return, 0); why != "" {
			t.Errorf("%s returns %s", show, why)
		}
	case <-time.After(Patience):
		t.Fatalf("%s goes on after its context ended", show)
	}
}

// foreign describes the first part of a result that cannot be sent to a master, or returns "" if all of it can.
func foreign(v any, depth int) string {
	if depth > 60 {
		return "something endless"
	}
	switch v := v.(type) {
	case nil, bool, int64, uint64, float64, string, []byte, time.Time:
	case int:
		return fmt.Sprintf("the int %d rather than an int64", v)
	case []any:
		for _, x := range v {
			if why := foreign(x, depth+1); why != "" {
				return why
			}
		}
	case map[string]any:
		for _, x := range v {
			if why := foreign(x, depth+1); why != "" {
				return why
			}
		}
	case map[any]any:
		for k, x := range v {
			if why := foreign(k, depth+1) + foreign(x, depth+1); why != "" {
				return why
			}
		}
	default:
		return fmt.Sprintf("a %T", v)
	}
	return ""
}

// stops calls every function under a context that has ended and wants an answer soon.
func stops(t *testing.T, m *modules.Module) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the job was killed"))
	s := &suite{r: modules.NewRegistry(m), m: m}
	env := Env(t)
	for i := range m.Funcs {
		d := &m.Funcs[i]
		args := slices.Repeat([]any{any("3600")}, required(d))
		s.call(ctx, t, d, env, args, nil)
	}
}
