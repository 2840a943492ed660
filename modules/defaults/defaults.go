// Package defaults is Salt's execution module "defaults": default values of formulas. Salt's source:
// salt/modules/defaults.py.
package defaults

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// defaults.merge differs: in_place changes nothing that the caller holds, since arguments are copies; the answer is the same.
// defaults.update differs: in_place changes nothing that the caller holds, since arguments are copies; the answer is the same.

// maxFile bounds a file of defaults.
const maxFile = 16 << 20

// load reads a formula's defaults.yaml or else its defaults.json, nil if it has neither.
func load(ctx context.Context, c *modules.Call, formula string) (any, error) {
	if c.Files == nil {
		return nil, modules.Errorf("cannot read the defaults of %s: this program has no file server to ask", formula)
	}
	for _, ext := range [...]string{"yaml", "json"} {
		name, err := c.Files.Cache(ctx, "salt://"+formula+"/defaults."+ext, "base")
		if err != nil {
			return nil, err
		}
		info, serr := os.Stat(name)
		if name == "" || serr != nil {
			continue
		}
		if info.Size() > maxFile {
			return nil, modules.Errorf("cannot read %s: it has more than %d bytes", name, maxFile)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, modules.OSError(err)
		}
		parse := pyjson.Parse
		if ext == "yaml" {
			parse = func(b []byte) (any, error) { return yaml.Parse(b, name) }
		}
		v, err := parse(b)
		if err != nil {
			return nil, modules.Errorf("cannot read the defaults of %s: %v", formula, err)
		}
		if !pytext.Truth(v) {
			v = map[string]any{}
		}
		return v, nil
	}
	return nil, nil
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	formula, key, _ := strings.Cut(c.Str("key"), ":")
	all, err := load(ctx, c, formula)
	if err != nil || key == "" {
		return all, err
	}
	if v, ok := nested.Get(all, key, ":"); ok {
		return v, nil
	}
	return c.Value("default"), nil
}

func deepcopy(_ context.Context, c *modules.Call) (any, error) {
	return nested.Copy(c.Value("source")), nil
}

// merged puts src over dest as Salt's dictupdate.update does.
func merged(dest, src any, lists bool) (any, error) {
	d, ok1 := dest.(map[string]any)
	s, ok2 := src.(map[string]any)
	if !ok1 || !ok2 {
		return nil, &modules.TypeError{Msg: nested.ErrUpdate.Error()}
	}
	return nested.Update(nested.CopyMap(d), s, lists), nil
}

func merge(_ context.Context, c *modules.Call) (any, error) {
	dest, src := c.Value("dest"), c.Value("src")
	if c.Bool("convert_none") {
		if dest == nil && c.Bool("in_place") {
			return nil, &modules.TypeError{Msg: "Can't perform in-place merge into NoneType"}
		}
		dest, src = orEmpty(dest), orEmpty(src)
	}
	return merged(dest, src, c.Bool("merge_lists"))
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

func update(_ context.Context, c *modules.Call) (any, error) {
	dest, defaults := c.Value("dest"), c.Value("defaults")
	convert := c.Bool("convert_none")
	if dest == nil && c.Bool("in_place") {
		return nil, &modules.TypeError{Msg: "Can't perform in-place update into NoneType"}
	}
	if convert {
		dest, defaults = orEmpty(dest), orEmpty(defaults)
	}
	nodes, ok := dest.(map[string]any)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + modules.TypeName(dest) + "' object has no attribute 'items'"}
	}
	ret := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		vars := nodes[name]
		if convert {
			vars = orEmpty(vars)
		}
		v, err := merged(defaults, vars, c.Bool("merge_lists"))
		if err != nil {
			return nil, err
		}
		ret[name] = v
	}
	return ret, nil
}
