// Package defaults is Salt's execution module "defaults": default values of formulas. Salt's source:
// salt/modules/defaults.py.
package defaults

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

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
		parse := pyjson.ParseObject
		if ext == "yaml" {
			parse = func(b []byte) (any, error) { return yaml.ParseObject(b, name, false) }
		}
		v, err := parse(b)
		if err != nil {
			return nil, modules.Errorf("cannot read the defaults of %s: %v", formula, err)
		}
		if !pyobj.Truth(v) {
			v = &pyobj.Dict{}
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
	if v, ok := nested.GetObject(all, key, ":"); ok {
		return v, nil
	}
	return c.Value("default"), nil
}

func deepcopy(_ context.Context, c *modules.Call) (any, error) {
	return pyobj.DeepCopy(c.Value("source")), nil
}

// put implements Salt's dictupdate.update: it merges src into dest.
func put(dest, src any, lists bool) (any, error) {
	d, ok1 := dest.(*pyobj.Dict)
	s, ok2 := src.(*pyobj.Dict)
	if !ok1 || !ok2 {
		return nil, &modules.TypeError{Msg: nested.ErrUpdate.Error()}
	}
	return nested.UpdateObject(d, s, lists), nil
}

func merge(_ context.Context, c *modules.Call) (any, error) {
	dest, src := c.Value("dest"), c.Value("src")
	if c.Bool("convert_none") {
		if dest == nil && c.Bool("in_place") {
			return nil, &modules.TypeError{Msg: "Can't perform in-place merge into NoneType"}
		}
		dest, src = orEmpty(dest), orEmpty(src)
	}
	if !c.Bool("in_place") {
		dest = pyobj.DeepCopy(dest)
	}
	return put(dest, src, c.Bool("merge_lists"))
}

func orEmpty(v any) any {
	if v == nil {
		return &pyobj.Dict{}
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
	nodes, ok := dest.(*pyobj.Dict)
	if !ok {
		return nil, modules.NoAttribute(dest, "items")
	}
	if !c.Bool("in_place") {
		nodes = pyobj.DeepCopy(nodes).(*pyobj.Dict)
	}
	for _, name := range nodes.Keys() {
		vars := nodes.Value(name)
		if convert {
			vars = orEmpty(vars)
		}
		v, err := put(pyobj.DeepCopy(defaults), vars, c.Bool("merge_lists"))
		if err != nil {
			return nil, err
		}
		_ = nodes.Set(name, v)
	}
	return nodes, nil
}
