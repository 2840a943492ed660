package slsutil

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestRenderer(t *testing.T) {
	e := modulestest.Env(t)
	e.Templates = func(_ context.Context, _ *modules.Call, t modules.Template) (any, error) {
		text, vars := t.Text, t.Vars
		name, _ := vars["name"].(string)
		return strings.ReplaceAll(text, "{{ name }}", name), nil
	}
	r := modules.NewRegistry(Module)
	cases := []struct {
		kwargs map[string]any
		want   any
	}{
		{map[string]any{"string": "a: {{ name }}", "name": "world"}, map[string]any{"a": "world"}},
		{map[string]any{"string": "Hello, {{ name }}.\r\n", "name": "world", "default_renderer": "jinja"}, "Hello, world.\r\n"},
		{map[string]any{"string": "#!jinja|json\n", "default_renderer": "yaml"}, nil},
		{map[string]any{"string": "#!yaml\n{a: 1}", "default_renderer": "json"}, map[string]any{"a": int64(1)}},
		{map[string]any{"string": "x", "default_renderer": "py"}, nil},
		{map[string]any{"string": "x: 1", "default_renderer": "yaml|jinja"}, nil},
	}
	for _, c := range cases {
		res := r.Run(t.Context(), e, modules.Request{Fun: "slsutil.renderer", Kwargs: c.kwargs})
		if c.want == nil && res.Err == nil {
			t.Errorf("%v: %v", c.kwargs, res.Return)
		}
		if diff := cmp.Diff(c.want, res.Return); c.want != nil && (diff != "" || res.Err != nil) {
			t.Errorf("%v: %v\n%s", c.kwargs, res.Err, diff)
		}
	}
	opts := map[string]any{"renderer_blacklist": []any{"jinja"}}
	e.Opts = func() map[string]any { return opts }
	res := r.Run(t.Context(), e, modules.Request{Fun: "slsutil.renderer", Kwargs: map[string]any{"string": "{{ name }}", "name": "x", "default_renderer": "jinja"}})
	if res.Return != "{{ name }}" {
		t.Errorf("a forbidden renderer: %v", res.Return)
	}
}
