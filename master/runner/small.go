package runner

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

func (f funcs) event() *modules.Module {
	return &modules.Module{Name: "event", Doc: "The master's event bus.", Funcs: []modules.Def{
		{Name: "send", Doc: `Fire an event on the master's bus.

tag
    The event's tag.
data
    A map.

    salt-run event.send my/tag '{"key": "value"}'`, Params: []modules.Param{{Name: "tag"}, {Name: "data", Optional: true}},
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				if f.Fire == nil {
					return nil, errNeeds("event bus")
				}
				data := map[string]any{}
				if pytext.Truth(c.Value("data")) {
					var err error
					if data, err = c.Map("data"); err != nil {
						return nil, err
					}
				}
				if err := f.Fire(ctx, c.Str("tag"), data); err != nil {
					return nil, err
				}
				return true, nil
			}},
	}}
}

func (f funcs) config() *modules.Module {
	return &modules.Module{Name: "config", Doc: "The master's configuration.", Funcs: []modules.Def{
		{Name: "get", Doc: `An option of the master; a delimiter in the key reaches into it.

    salt-run config.get file_roots
    salt-run config.get file_roots:base`, Params: []modules.Param{{Name: "key"}, {Name: "default", Default: ""}, {Name: "delimiter", Default: ":"}},
			Run: func(_ context.Context, c *modules.Call) (any, error) {
				if v, ok := traverse(f.Opts, strings.Split(c.Str("key"), c.Str("delimiter"))); ok {
					return v, nil
				}
				return c.Value("default"), nil
			}},
	}}
}

// traverse goes down maps, and lists by number or through the maps in them (salt.utils.data.traverse_dict_and_list).
func traverse(v any, path []string) (any, bool) {
	for _, key := range path {
		switch m := v.(type) {
		case map[string]any:
			x, ok := m[key]
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			n, err := modules.ToInt(key)
			if err == nil && n >= 0 && n < int64(len(m)) {
				v = m[n]
				continue
			}
			found := false
			for _, e := range m {
				if inner, ok := e.(map[string]any); ok {
					if x, ok := inner[key]; ok {
						v, found = x, true
						break
					}
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

func (f funcs) test() *modules.Module {
	arguments := func(drop bool) modules.Func {
		return func(_ context.Context, c *modules.Call) (any, error) {
			kwargs := maps.Clone(c.Keywords)
			maps.DeleteFunc(kwargs, func(k string, _ any) bool { return drop && strings.HasPrefix(k, "__") })
			if kwargs == nil {
				kwargs = map[string]any{}
			}
			args := c.Extra
			if args == nil {
				args = []any{}
			}
			return map[string]any{"args": args, "kwargs": kwargs}, nil
		}
	}
	return &modules.Module{Name: "test", Doc: "For trying out how runners are called.", Funcs: []modules.Def{
		{Name: "arg", Doc: `The arguments as they came, without those that Salt adds.

    salt-run test.arg foo bar=baz`, Args: "args", Kwargs: "kwargs", Run: arguments(true)},
		{Name: "raw_arg", Doc: `All arguments as they came.

    salt-run test.raw_arg foo bar=baz`, Args: "args", Kwargs: "kwargs", Run: arguments(false)},
		{Name: "metasyntactic", Doc: `The names that stand for any name, in the US or the UK.

    salt-run test.metasyntactic locality=uk`, Params: []modules.Param{{Name: "locality", Default: "us"}},
			Run: func(_ context.Context, c *modules.Call) (any, error) {
				switch c.Str("locality") {
				case "us":
					return words("foo bar baz qux quux quuz corge grault garply waldo fred plugh xyzzy thud"), nil
				case "uk":
					return words("wibble wobble wubble flob"), nil
				}
				return nil, nil
			}},
		{Name: "sleep", Doc: `Wait some seconds.

    salt-run test.sleep 3`, Params: []modules.Param{{Name: "s_time", Default: int64(10)}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			d, err := c.Seconds("s_time")
			if err != nil {
				return nil, err
			}
			if err := wait(ctx, d); err != nil {
				return nil, err
			}
			return true, nil
		}},
		{Name: "stdout_print", Doc: `Print one text and return another.

    salt-run test.stdout_print`, Run: func(context.Context, *modules.Call) (any, error) {
			if f.Print != nil {
				f.Print("foo")
			}
			return "bar", nil
		}},
		{Name: "stream", Doc: `Report progress for ten seconds.

    salt-run test.stream`, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			for i := int64(1); i < 100; i++ {
				c.Progress(map[string]any{"message": "Runner is " + pytext.Str(i) + "% done"})
				if err := wait(ctx, 100*time.Millisecond); err != nil {
					return nil, err
				}
			}
			return true, nil
		}},
		{Name: "get_opts", Doc: `The master's options.

    salt-run test.get_opts`, Run: func(context.Context, *modules.Call) (any, error) { return f.Opts, nil }},
	}}
}

// test.sleep differs: it does not print its argument.
// test.stdout_print absent: runners of this master have no standard output of their own.

func words(text string) []any {
	var out []any
	for w := range strings.FieldsSeq(text) {
		out = append(out, w)
	}
	return out
}

// wait waits unless ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f funcs) errorModule() *modules.Module {
	return &modules.Module{Name: "error", Doc: "For trying out how errors of runners look.", Funcs: []modules.Def{
		{Name: "error", Doc: `Fail with an exception of a name, or do nothing without one.

    salt-run error.error Exception 'this is a test'`, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "message", Default: ""}},
			Run: func(_ context.Context, c *modules.Call) (any, error) {
				if c.Value("name") == nil {
					return map[string]any{}, nil
				}
				name := c.Str("name")
				return nil, &modules.PythonError{Type: name[strings.LastIndexByte(name, '.')+1:], Msg: c.Str("message")}
			}},
	}}
}

func (f funcs) doc() *modules.Module {
	return &modules.Module{Name: "doc", Doc: "Documentation.", Funcs: []modules.Def{
		{Name: "runner", Doc: `The documentation of all runners.

    salt-run doc.runner`, Run: func(context.Context, *modules.Call) (any, error) {
			out := map[string]any{}
			for k, v := range f.client.Docs("") {
				out[k] = v
			}
			return out, nil
		}},
		{Name: "wheel", Doc: `The documentation of all wheel functions.

    salt-run doc.wheel`, Run: func(context.Context, *modules.Call) (any, error) {
			out := map[string]any{}
			for k, v := range NewWheel(f.Host).Docs("") {
				out[k] = v
			}
			return out, nil
		}},
		{Name: "execution", Doc: `The documentation of all execution functions that minions have.

    salt-run doc.execution`, Run: func(ctx context.Context, _ *modules.Call) (any, error) {
			answers, err := f.command(ctx, Job{Tgt: "*", Fun: "sys.doc"})
			if err != nil {
				return nil, err
			}
			out := map[string]any{}
			for _, a := range answers {
				docs, _ := a.Value.(map[string]any)
				maps.Copy(out, docs)
			}
			return out, nil
		}},
	}}
}
