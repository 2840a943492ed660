package test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	saltversion "github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func run(t *testing.T, fun string, kwargs map[string]any, args ...any) modules.Result {
	t.Helper()
	e := modulestest.Env(t)
	return modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "test." + fun, Args: args, Kwargs: kwargs,
		Pub: map[string]any{"jid": "20250101000000000000"}})
}

func TestReturns(t *testing.T) {
	kw := map[string]any{"a": "x"}
	pub := map[string]any{"a": "x", "__pub_jid": "20250101000000000000"}
	cases := map[string]struct {
		fun    string
		args   []any
		kwargs map[string]any
		want   any
	}{
		"ping":         {"ping", nil, nil, true},
		"echo":         {"echo", []any{[]any{int64(1)}}, nil, []any{int64(1)}},
		"version":      {"version", nil, nil, saltversion.Salt},
		"kwarg":        {"kwarg", nil, kw, pub},
		"arg":          {"arg", []any{int64(1)}, kw, map[string]any{"args": []any{int64(1)}, "kwargs": pub}},
		"arg_clean":    {"arg_clean", nil, kw, map[string]any{"args": []any{}, "kwargs": map[string]any{"a": "x"}}},
		"arg_type":     {"arg_type", []any{nil, 1.0}, nil, map[string]any{"args": []any{"<class 'NoneType'>", "<class 'float'>"}, "kwargs": map[string]any{"__pub_jid": "<class 'str'>"}}},
		"arg_repr":     {"arg_repr", []any{"it's"}, nil, map[string]any{"args": `("it's",)`, "kwargs": "{'__pub_jid': '20250101000000000000'}"}},
		"try":          {"try", nil, map[string]any{"module": "test.echo", "text": int64(5)}, int64(5)},
		"try failing":  {"try", nil, map[string]any{"module": "test.exception"}, nil},
		"try reported": {"try", []any{"test.exception", true}, nil, "Exception: Test Exception"},
		"cross":        {"cross_test", []any{"test.echo", []any{"x"}}, nil, "x"},
		"conf":         {"get_opts", nil, nil, nil},
		"no exception": {"raise_exception", []any{"len"}, nil, false},
		"provider":     {"provider", []any{"test"}, nil, "test"},
		"no provider":  {"provider", []any{"tes"}, nil, ""},
		"providers":    {"providers", nil, nil, map[string]any{"test": "test"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res := run(t, c.fun, c.kwargs, c.args...)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			if diff := cmp.Diff(c.want, res.Return); c.fun != "get_opts" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	first := func(fun string, n int64) any {
		res := run(t, fun, nil, n)
		if list, ok := res.Return.([]any); ok && len(list) == 2 {
			return list[0]
		}
		return res.Return
	}
	if got := first("fib", 90); got != int64(2880067194370816120) {
		t.Errorf("fib: %v", got)
	}
	if got := first("fib", 93); got != uint64(12200160415121876738) {
		t.Errorf("fib beyond int64: %v", got)
	}
	if diff := cmp.Diff([]any{int64(3), int64(10), 5.0, 16.0, 8.0, 4.0, 2.0}, first("collatz", 3)); diff != "" {
		t.Error(diff)
	}
	if text, _ := run(t, "random_hash", map[string]any{"hash_type": "sha512"}).Return.(string); len(text) != 128 {
		t.Errorf("random_hash: %q", text)
	}
	if text, _ := run(t, "random_hash", nil, int64(0)).Return.(string); text != "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9" {
		t.Errorf("random_hash of 0: %q", text)
	}
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		fun  string
		args []any
		want string
	}{
		"exec":      {"raise_exception", []any{"salt.exceptions.CommandExecutionError", "no disk"}, "ERROR: no disk"},
		"usage":     {"raise_exception", []any{"salt.exceptions.SaltInvocationError", "what"}, "ERROR executing 'test.raise_exception': what"},
		"missing":   {"raise_exception", []any{"salt.exceptions.CommandNotFoundError", "git"}, "Command required for 'test.raise_exception' not found: git"},
		"other":     {"raise_exception", []any{"KeyError", "a", int64(2)}, "The minion function caused an exception: KeyError: ('a', 2)"},
		"fib":       {"fib", []any{int64(-1)}, "The minion function caused an exception: ValueError: Negative number is not allowed!"},
		"overflow":  {"fib", []any{int64(94)}, "The minion function caused an exception: OverflowError: Integer value out of range"},
		"collatz":   {"collatz", []any{int64(0)}, "The minion function caused an exception: ValueError: The number must be positive, not 0"},
		"sleep":     {"sleep", []any{"long"}, "The minion function caused an exception: ValueError: invalid literal for int() with base 10: 'long'"},
		"hash":      {"random_hash", []any{int64(1), "sha0"}, "The minion function caused an exception: AttributeError: module 'hashlib' has no attribute 'sha0'"},
		"assertion": {"assertion", []any{""}, "The minion function caused an exception: AssertionError: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res := run(t, c.fun, nil, c.args...)
			if res.Return != c.want || res.Retcode != 1 || res.Success {
				t.Errorf("got %q, %d, %v", res.Return, res.Retcode, res.Success)
			}
		})
	}
}

func TestRetcode(t *testing.T) {
	if res := run(t, "retcode", nil); res.Return != true || res.Retcode != 42 || res.Success {
		t.Errorf("got %+v", res)
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	res := modules.NewRegistry(Module).Run(ctx, modulestest.Env(t), modules.Request{Fun: "test.sleep", Args: []any{int64(3600)}})
	if !errors.Is(res.Err, context.DeadlineExceeded) {
		t.Errorf("got %v", res.Err)
	}
}
