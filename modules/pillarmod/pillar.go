// Package pillarmod is Salt's execution module "pillar": the data that the master has for this minion. Salt's source:
// salt/modules/pillar.py.
package pillarmod

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/filterby"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// pillar.ext is absent: a minion does not choose which external pillars its master runs (CVE-2025-22237).
// pillar.keys and pillar.ls differ: the keys are sorted.
// pillar.* differ: the argument unmask (3008) changes nothing, since nothing is masked.

// compile compiles the pillar. A program that cannot has the one in memory.
func compile(ctx context.Context, c *modules.Call, saltenv, pillarenv any, override *pyobj.Dict) (*pyobj.Dict, error) {
	if pillarenv == nil && pytext.Truth(c.Opt("pillarenv_from_saltenv")) {
		pillarenv = saltenv
		if !pytext.Truth(pillarenv) {
			pillarenv = c.Opt("saltenv")
		}
	} else if pillarenv == nil {
		pillarenv = c.Opt("pillarenv")
	}
	text := ""
	if pillarenv != nil {
		text = pytext.Str(pillarenv)
	}
	if c.FreshPillar == nil {
		if text != "" && text != pytext.Str(c.Opt("pillarenv")) {
			return nil, modules.Errorf("cannot compile the pillar of %s: the minion has no master", text)
		}
		return nested.UpdateObject(pyobj.DeepCopy(c.OrderedPillar()).(*pyobj.Dict), override, true), nil
	}
	return c.FreshPillar(ctx, "", text, override)
}

// items implements pillar.items: it returns the whole pillar, freshly compiled.
func items(ctx context.Context, c *modules.Call) (any, error) { return fresh(ctx, c) }

func data(ctx context.Context, c *modules.Call) (any, error) { return fresh(ctx, c) }

func fresh(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) > 0 {
		return some(ctx, c, "", ":")
	}
	var override *pyobj.Dict
	if v, _ := c.InOrder("pillar"); pyobj.Truth(v) {
		if pytext.Truth(c.Value("pillar_enc")) {
			plain, err := c.Decrypt(ctx, pyobj.DeepCopy(v), pytext.Str(c.Value("pillar_enc")), true)
			if err != nil {
				return nil, modules.Errorf("Failed to decrypt pillar override: %v", err)
			}
			v = pyobj.From(plain)
		}
		d, ok := v.(*pyobj.Dict)
		if !ok { // Salt logs that it cannot use it and goes on
			c.Logger().Error("Pillar data must be a dictionary", "type", modules.TypeName(v))
		}
		override = d
	}
	return modules.Answer(compile(ctx, c, c.Value("saltenv"), c.Value("pillarenv"), override))
}

func item(ctx context.Context, c *modules.Call) (any, error) {
	byDefault, delimiter := c.Value("default"), ":"
	if byDefault == nil {
		byDefault = ""
	}
	if c.Value("delimiter") != nil {
		delimiter = c.Str("delimiter")
	}
	return some(ctx, c, byDefault, delimiter)
}

// some returns the values at the keys of the call.
func some(ctx context.Context, c *modules.Call, byDefault any, delimiter string) (any, error) {
	pillar, err := chosen(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	for _, key := range c.Extra {
		v, ok, err := find(pillar, key, delimiter)
		if err != nil {
			return nil, err
		}
		if !ok {
			v = pyobj.From(byDefault)
		}
		if out.Set(key, pyobj.DeepCopy(v)) != nil {
			return nil, &modules.TypeError{Msg: "unhashable type: '" + modules.TypeName(key) + "'"}
		}
	}
	return out, nil
}

// chosen returns the pillar in memory, or a fresh one if the call names an environment.
func chosen(ctx context.Context, c *modules.Call) (*pyobj.Dict, error) {
	if c.Value("saltenv") == nil && c.Value("pillarenv") == nil {
		return c.OrderedPillar(), nil
	}
	return compile(ctx, c, c.Value("saltenv"), c.Value("pillarenv"), nil)
}

func find(pillar *pyobj.Dict, key any, delimiter string) (any, bool, error) {
	switch k := key.(type) {
	case string:
		if delimiter == "" {
			return nil, false, &modules.PythonError{Type: "ValueError", Msg: "empty separator"}
		}
		v, ok := nested.FollowObject(pillar, strings.Split(k, delimiter))
		return v, ok, nil
	case int64:
		v, ok := nested.FollowObject(pillar, []string{pytext.Str(k)})
		return v, ok, nil
	case []any:
		path := make([]string, len(k))
		for i, x := range k {
			path[i] = pytext.Str(x)
		}
		v, ok := nested.FollowObject(pillar, path)
		return v, ok, nil
	}
	return nil, false, &modules.TypeError{Msg: "'" + modules.TypeName(key) + "' object is not iterable"}
}

// plainFind is like find, but returns plain values.
func plainFind(pillar *pyobj.Dict, key any, delimiter string) (any, bool, error) {
	v, ok, err := find(pillar, key, delimiter)
	return pyobj.Plain(v), ok, err
}

func notFound(key any) error {
	return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr("Pillar key not found: " + pytext.Str(key))}
}

func fetch(ctx context.Context, c *modules.Call) (any, error) { return get(ctx, c) }

// get answers with the values that the job has, not copies: a template that changes one sees the change later on.
func get(ctx context.Context, c *modules.Call) (any, error) {
	pillar := c.OrderedPillar
	if c.Value("saltenv") != nil || c.Value("pillarenv") != nil {
		m, err := compile(ctx, c, c.Value("saltenv"), c.Value("pillarenv"), nil)
		if err != nil {
			return nil, err
		}
		pillar = func() *pyobj.Dict { return m }
	}
	path, ok := nested.Path(c.Value("key"), c.Str("delimiter"))
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("key")) + "' object is not iterable"}
	}
	if _, text := c.Value("key").(string); text && c.Str("delimiter") == "" {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "empty separator"}
	}
	v, ok := nested.FollowObject(pillar(), path)
	byDefault := c.Value("default")
	if c.Bool("merge") && c.Given("default") {
		if merged, done := mergeDefault(c, v, ok, byDefault); done {
			return merged, nil
		}
	}
	switch {
	case ok:
		return v, nil
	case c.Given("default"):
		return byDefault, nil
	case pytext.Truth(c.Opt("pillar_raise_on_missing")):
		return nil, notFound(c.Value("key"))
	}
	return "", nil
}

// mergeDefault puts the value over the default if both are of one kind. A missing value is an empty one of that kind.
func mergeDefault(c *modules.Call, v any, found bool, byDefault any) (any, bool) {
	lists := c.Value("merge_nested_lists")
	if lists == nil {
		lists = c.Opt("pillar_merge_lists")
	}
	switch d := byDefault.(type) {
	case *pyobj.Dict:
		if m, ok := v.(*pyobj.Dict); ok || !found {
			return nested.UpdateObject(pyobj.DeepCopy(d).(*pyobj.Dict), m, pyobj.Truth(lists)), true
		}
	case *pyobj.List:
		if l, ok := v.(*pyobj.List); ok {
			return nested.JoinObjects(d, l), true
		} else if !found {
			return pyobj.DeepCopy(d), true
		}
	}
	c.Logger().Error("pillar.get: default and value are not both dicts or lists. Merge will be skipped.",
		"default", modules.TypeName(byDefault), "value", modules.TypeName(v))
	return nil, false
}

func raw(_ context.Context, c *modules.Call) (any, error) {
	if !c.Bool("key") {
		return nested.CopyMap(c.PillarData()), nil
	}
	if v, ok := c.PillarData()[c.Str("key")]; ok {
		return nested.Copy(v), nil
	}
	return map[string]any{}, nil
}

func keys(_ context.Context, c *modules.Call) (any, error) {
	v, ok, err := plainFind(c.OrderedPillar(), c.Value("key"), c.Str("delimiter"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, notFound(c.Value("key"))
	}
	switch m := v.(type) {
	case map[string]any:
		return names(m), nil
	case map[any]any:
		return pytext.SortKeys(m), nil
	}
	return nil, &modules.PythonError{Type: "ValueError", Msg: "Pillar value in key " + c.Str("key") + " is not a dict"}
}

func names(m map[string]any) []any {
	list := []any{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k)
	}
	return list
}

func ls(ctx context.Context, c *modules.Call) (any, error) {
	v, err := fresh(ctx, c)
	if err != nil {
		return nil, err
	}
	v = pyobj.Plain(v)
	if m, ok := v.(map[any]any); ok {
		return pytext.SortKeys(m), nil
	}
	return names(v.(map[string]any)), nil
}

func obfuscate(ctx context.Context, c *modules.Call) (any, error) {
	v, err := fresh(ctx, c)
	if err != nil {
		return nil, err
	}
	return hide(pyobj.Plain(v)), nil
}

// hide puts the names of types in the place of values.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = hide(x)
		}
		return out
	case map[any]any:
		out := make(map[any]any, len(v))
		for k, x := range v {
			out[k] = hide(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = hide(x)
		}
		return out
	}
	name := modules.TypeName(v)
	return "<" + name[strings.LastIndexByte(name, '.')+1:] + ">"
}

func fileExists(_ context.Context, c *modules.Call) (any, error) {
	roots, _ := c.Opt("pillar_roots").(map[string]any)
	if len(roots) == 0 {
		return nil, modules.Errorf("No pillar_roots found. Are you running this on the master?")
	}
	path, env := c.Str("path"), c.Str("saltenv")
	for name, dirs := range roots {
		list, _ := dirs.([]any)
		if env != "" && name != env {
			continue
		}
		for _, dir := range list {
			full := path
			if !filepath.IsAbs(path) {
				full = filepath.Join(pytext.Str(dir), path)
			}
			if c.IsFile(full) {
				return true, nil
			}
		}
	}
	return false, nil
}

func filterBy(_ context.Context, c *modules.Call) (any, error) {
	return filterby.Call(c, c.Str("pillar"), c.OrderedPillar())
}
