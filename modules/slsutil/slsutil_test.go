package slsutil

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cpmod"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/pyobj"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestRenderer(t *testing.T) {
	e := modulestest.Env(t)
	var got modules.Template
	e.Templates = func(_ context.Context, _ *modules.Call, t modules.Template) (any, error) {
		got = t
		if t.Text == "bad" {
			return nil, &modules.RenderError{Text: "Jinja syntax error: x"}
		}
		return pyobj.NewDict("b", int64(1), "a", pyobj.NewList()), nil
	}
	if err := os.WriteFile(filepath.Join(e.Root, "f.sls"), []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := modules.NewRegistry(Module, cpmod.Module)
	run := func(kwargs map[string]any) modules.Result {
		return r.Run(t.Context(), e, modules.Request{Fun: "slsutil.renderer", Kwargs: kwargs})
	}
	res := run(map[string]any{"string": "a: {{ name }}", "name": "world", "default_renderer": "jinja"})
	want := modules.Template{Text: "a: {{ name }}", Pipe: "jinja", Shebang: true, SaltEnv: "base", Vars: map[string]any{"name": "world", "saltenv": "base"}}
	if diff := cmp.Diff(want, got); diff != "" || res.Err != nil {
		t.Errorf("%v\n%s", res.Err, diff)
	}
	if diff := cmp.Diff(any(map[string]any{"b": int64(1), "a": []any{}}), res.Return); diff != "" {
		t.Error(diff)
	}
	if run(map[string]any{"path": "/f.sls"}); got.Text != "from a file\n" || got.Path != filepath.Join(e.Root, "f.sls") || got.Pipe != "jinja|yaml" {
		t.Errorf("got %+v", got)
	}
	if res := run(map[string]any{"string": "bad"}); res.Err == nil || res.Err.Error() != "SaltRenderError: Jinja syntax error: x" {
		t.Errorf("%v", res.Err)
	}
	e.Templates = nil
	if res := run(map[string]any{"string": "x"}); res.Err == nil {
		t.Errorf("without renderers: %v", res.Return)
	}
}
