package sysmod

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func nothing(context.Context, *modules.Call) (any, error) { return nil, nil }

func TestOtherKinds(t *testing.T) {
	file := &modules.Module{Name: "file", Doc: "Files.", Funcs: []modules.Def{
		{Name: "absent", Doc: "No file.", Params: []modules.Param{{Name: "name"}}, Run: nothing},
		{Name: "managed", Doc: "A file.", Params: []modules.Param{{Name: "name"}, {Name: "mode", Default: int64(5)}, {Name: "source", Optional: true}},
			Kwargs: "kwargs", Run: nothing}}}
	e := modulestest.Env(t)
	e.Others = func(kind string) []*modules.Module {
		switch kind {
		case "states":
			return []*modules.Module{file}
		case "renderers":
			return []*modules.Module{{Name: "jinja", Doc: "Templates."}, {Name: "yaml", Doc: "Data."}}
		}
		return nil
	}
	kinds := func(name string, more map[string]any) map[string]any {
		var list []any
		for _, k := range []string{"boolean", "integer", "number", "string"} {
			m := map[string]any{"type": k, "title": name, "description": name}
			for key, v := range more {
				m[key] = v
			}
			list = append(list, m)
		}
		return map[string]any{"oneOf": list}
	}
	cases := map[string]struct {
		fun  string
		args []any
		want any
	}{
		"doc":            {"state_doc", []any{"file.absent"}, map[string]any{"file": "Files.", "file.absent": "No file."}},
		"all docs":       {"state_doc", nil, map[string]any{"file": "Files.", "file.absent": "No file.", "file.managed": "A file."}},
		"pattern":        {"list_state_functions", []any{"*.m*"}, []any{"file.managed"}},
		"module":         {"list_state_functions", []any{"file"}, []any{"file.absent", "file.managed"}},
		"modules":        {"list_state_modules", nil, []any{"file"}},
		"no runners":     {"list_runners", nil, []any{}},
		"no returners":   {"returner_doc", nil, map[string]any{}},
		"renderers":      {"list_renderers", nil, []any{"jinja", "yaml"}},
		"some renderers": {"list_renderers", []any{"j*"}, []any{"jinja"}},
		"renderer docs":  {"renderer_doc", []any{"yaml"}, map[string]any{"yaml": "Data."}},
		"argspec": {"state_argspec", []any{"file.managed"}, map[string]any{"file.managed": map[string]any{"args": []any{"name", "mode", "source"},
			"defaults": []any{int64(5), nil}, "varargs": nil, "kwargs": true}}},
		"schema": {"state_schema", []any{"file.m*"}, []any{map[string]any{"$schema": "http://json-schema.org/draft-04/schema#",
			"title": "file.managed", "description": "file.managed", "type": "object", "additionalProperties": false,
			"x-ordering": []any{"name", "mode", "source"},
			"properties": map[string]any{"name": kinds("name", nil), "mode": kinds("mode", map[string]any{"default": int64(5)}), "source": kinds("source", nil)}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "sys." + c.fun, Args: c.args})
			if diff := cmp.Diff(c.want, res.Return); diff != "" || res.Err != nil {
				t.Errorf("%v %s", res.Err, diff)
			}
		})
	}
}
