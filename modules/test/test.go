// Package test is Salt's execution module "test": the smallest functions, to try out connections, arguments and errors.
// Salt's source: salt/modules/test.py.
package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// test.missing_func is absent: stock Salt never loads it either.
// test.collatz differs: a number below one is an error rather than an endless loop.
// test.fib differs: numbers beyond 64 bits are an error, since they cannot be sent.
// test.deprecation_warning differs: it warns of nothing.
// test.versions_report, test.versions and test.versions_information differ: they name this program's parts, not Python's.
// test.stack differs: the stack is Go's.

func echo(_ context.Context, c *modules.Call) (any, error) { return c.Value("text"), nil }

func outputter(_ context.Context, c *modules.Call) (any, error) { return c.Value("data"), nil }

func ping(context.Context, *modules.Call) (any, error) { return true, nil }

func trueFn(context.Context, *modules.Call) (any, error) { return true, nil }

func falseFn(context.Context, *modules.Call) (any, error) { return false, nil }

func deprecationWarning(context.Context, *modules.Call) (any, error) { return true, nil }

func attrCall(ctx context.Context, c *modules.Call) (any, error) { return c.Exec(ctx, "grains.items") }

func confTest(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "config.option", "test.foo")
}

func getOpts(_ context.Context, c *modules.Call) (any, error) {
	return nested.CopyMap(c.Options()), nil
}

func optsPkg(_ context.Context, c *modules.Call) (any, error) {
	return nested.CopyMap(c.Options()), nil
}

func kwarg(_ context.Context, c *modules.Call) (any, error) { return c.Keywords, nil }

func arg(_ context.Context, c *modules.Call) (any, error) {
	return pyobj.NewDict("args", pyobj.Tuple(c.Extra), "kwargs", pyobj.FromMap(c.Keywords)), nil
}

func argClean(_ context.Context, c *modules.Call) (any, error) {
	return pyobj.NewDict("args", pyobj.Tuple(c.Extra), "kwargs", pyobj.FromMap(clean(c.Keywords))), nil
}

// clean leaves out what begins with two underscores (salt/utils/args.py clean_kwargs).
func clean(kwargs map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range kwargs {
		if !strings.HasPrefix(k, "__") {
			out[k] = v
		}
	}
	return out
}

func argType(_ context.Context, c *modules.Call) (any, error) {
	args, kwargs := make([]any, len(c.Extra)), make(map[string]any, len(c.Keywords))
	for i, v := range c.Extra {
		args[i] = "<class '" + modules.TypeName(v) + "'>"
	}
	for k, v := range c.Keywords {
		kwargs[k] = "<class '" + modules.TypeName(v) + "'>"
	}
	return map[string]any{"args": args, "kwargs": kwargs}, nil
}

func argRepr(_ context.Context, c *modules.Call) (any, error) {
	return map[string]any{"args": tuple(c.Extra), "kwargs": pytext.Repr(c.Keywords)}, nil
}

// tuple returns a list in Python's notation of a tuple.
func tuple(list []any) string {
	text := pytext.Repr(list)
	text = "(" + text[1:len(text)-1]
	if len(list) == 1 {
		text += ","
	}
	return text + ")"
}

func sleep(ctx context.Context, c *modules.Call) (any, error) {
	n, err := c.Int("length")
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "sleep length must be non-negative"}
	}
	return wait(ctx, n)
}

func randSleep(ctx context.Context, c *modules.Call) (any, error) {
	n, ok := c.Value("max").(int64)
	if !ok {
		return nil, &modules.TypeError{Msg: `can only concatenate str (not "int") to ` + modules.TypeName(c.Value("max"))}
	}
	if n < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: emptyRange(n)}
	}
	return wait(ctx, rand.Int64N(min(n, 1<<32)+1))
}

// emptyRange returns the text of Python's error for a random number between 0 and a negative number.
func emptyRange(n int64) string {
	return fmt.Sprintf("empty range for randrange() (0, %d, %d)", n+1, n+1)
}

func wait(ctx context.Context, seconds int64) (any, error) {
	t := time.NewTimer(time.Duration(min(seconds, 1<<32)) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func crossTest(ctx context.Context, c *modules.Call) (any, error) {
	var args []any
	switch v := c.Value("args").(type) {
	case nil:
	case []any:
		args = v
	case string: // Python unpacks a text into its characters
		for _, r := range v {
			args = append(args, string(r))
		}
	default:
		return nil, &modules.TypeError{Msg: fmt.Sprintf("salt.loaded.int.module.%s() argument after * must be an iterable, not %s",
			c.Str("func"), modules.TypeName(v))}
	}
	return c.Exec(ctx, c.Str("func"), args...)
}

func tryFn(ctx context.Context, c *modules.Call) (any, error) {
	kwargs := map[string]any{}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__pub_") {
			kwargs[k] = v
		}
	}
	v, err := c.ExecKw(ctx, c.Str("module"), nil, kwargs)
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if c.Bool("return_try_exception") {
		return err.Error(), nil
	}
	return nil, nil
}

func retcode(_ context.Context, c *modules.Call) (any, error) {
	code, err := c.Int("code")
	if err != nil {
		return nil, err
	}
	c.SetRetcode(int(code))
	return true, nil
}

func tty(context.Context, *modules.Call) (any, error) {
	return "ERROR: This function has been moved to cmd.tty", nil
}

func stack(context.Context, *modules.Call) (any, error) { return string(debug.Stack()), nil }

func provider(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("module")
	for _, m := range c.Registry().Modules(c.Env) {
		if m.Called() == name {
			return m.Name, nil
		}
	}
	return "", nil
}

func providers(_ context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	for _, m := range c.Registry().Modules(c.Env) {
		out[m.Name] = m.Called()
	}
	return out, nil
}

func notLoaded(_ context.Context, c *modules.Call) (any, error) {
	loaded := map[*modules.Module]bool{}
	for _, m := range c.Registry().Modules(c.Env) {
		loaded[m] = true
	}
	out := []any{}
	for _, m := range c.Registry().All() {
		if !loaded[m] {
			out = append(out, m.Name)
		}
	}
	return out, nil
}

func moduleReport(_ context.Context, c *modules.Call) (any, error) {
	functions, names := []any{}, []any{}
	for _, m := range c.Registry().Modules(c.Env) {
		names = append(names, m.Called())
	}
	for _, f := range c.Registry().Functions(c.Env) {
		functions = append(functions, f)
	}
	return map[string]any{
		"functions": functions, "function_attrs": functions, "function_subs": functions,
		"modules": names, "module_attrs": names, "missing_attrs": []any{}, "missing_subs": []any{},
	}, nil
}
