// Package grainsmod is Salt's execution module "grains": reading the minion's grains, and changing those that the grains file
// holds. Salt's source: salt/modules/grains.py.
package grainsmod

import (
	"context"
	"maps"
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
// grains.filter_by differs: the keys of a map that a master of ours sends are tried in the order of their text; those of a map in a template,
// from the command line, or from a master of stock are in its order.
// grains.set, grains.setval, grains.setvals, grains.append, grains.remove, grains.delkey, grains.delval differ: the grains file is replaced atomically; a file that cannot be read is left alone.

// find returns the grain at a key, with ordered dictionaries. ok is false if it is not set.
func find(c *modules.Call, key any, delimiter string) (any, bool, error) {
	switch k := pyobj.Plain(key).(type) {
	case nil, bool, float64:
		return nil, false, &modules.TypeError{Msg: "'" + modules.TypeName(key) + "' object is not iterable"}
	case []any:
		path := make([]string, len(k))
		for i, x := range k {
			path[i] = pytext.Str(x)
		}
		v, ok := follow(c, path)
		return v, ok, nil
	case int64:
		v, ok := follow(c, []string{pytext.Str(k)})
		return v, ok, nil
	}
	if delimiter == "" {
		return nil, false, errSeparator()
	}
	v, ok := follow(c, strings.Split(pytext.Str(key), delimiter))
	return v, ok, nil
}

func follow(c *modules.Call, path []string) (any, bool) {
	if len(path) == 0 {
		return c.OrderedGrains(), true
	}
	v, ok := c.OrderedGrain(path[0])
	if !ok {
		return nil, false
	}
	return nested.FollowObject(v, path[1:])
}

func errSeparator() error { return &modules.PythonError{Type: "ValueError", Msg: "empty separator"} }

// lookup returns a copy of a grain, or the default if it is not set.
func lookup(c *modules.Call, key any, byDefault any, delimiter string) (any, error) {
	v, ok, err := find(c, key, delimiter)
	if err != nil {
		return nil, err
	}
	if !ok {
		v = pyobj.DeepCopy(pyobj.From(byDefault))
	}
	return v, nil
}

func get(_ context.Context, c *modules.Call) (any, error) {
	return lookup(c, c.Value("key"), c.Value("default"), c.Str("delimiter"))
}

func hasValue(_ context.Context, c *modules.Call) (any, error) {
	_, ok, err := find(c, c.Value("key"), ":")
	if err != nil {
		return nil, err
	}
	return ok, nil
}

func ls(_ context.Context, c *modules.Call) (any, error) {
	list := []any{}
	for _, k := range slices.Sorted(maps.Keys(c.GrainData())) {
		list = append(list, k)
	}
	return list, nil
}

func items(_ context.Context, c *modules.Call) (any, error) {
	grains := c.OrderedGrains()
	if pytext.IsTrue(c.Value("sanitize")) {
		sanitize(grains)
	}
	return grains, nil
}

func item(_ context.Context, c *modules.Call) (any, error) {
	byDefault, ok := c.Keywords["default"]
	if !ok {
		byDefault = ""
	}
	delimiter := ":"
	if d, ok := c.Keywords["delimiter"]; ok {
		delimiter = pytext.Str(d)
	}
	out := &pyobj.Dict{}
	for _, name := range c.Extra {
		v, err := lookup(c, name, byDefault, delimiter)
		if err != nil {
			return nil, err
		}
		if out.Set(name, v) != nil {
			return nil, &modules.TypeError{Msg: "unhashable type: '" + modules.TypeName(name) + "'"}
		}
	}
	if pytext.IsTrue(c.Keywords["sanitize"]) {
		sanitize(out)
	}
	return out, nil
}

// sanitize hides what identifies a host.
func sanitize(grains *pyobj.Dict) {
	for name, text := range map[string]string{
		"domain": "DOMAINNAME", "fqdn": "MINION.DOMAINNAME", "id": "MINION.DOMAINNAME",
		"host": "MINION", "localhost": "MINION", "nodename": "MINION",
	} {
		if grains.Has(name) {
			_ = grains.Set(name, text) // a text is a key
		}
	}
	if v, ok := grains.Text("serialnumber"); ok {
		serial := []rune(pytext.Str(v))
		keep := len(serial) * 3 / 4
		_ = grains.Set("serialnumber", string(serial[:keep])+strings.Repeat("X", len(serial)-keep))
	}
}

func equals(_ context.Context, c *modules.Call) (any, error) {
	v, err := lookup(c, c.Value("key"), "", ":")
	if err != nil {
		return nil, err
	}
	return pytext.Str(c.Value("value")) == pyobj.Str(v), nil
}

func filterBy(_ context.Context, c *modules.Call) (any, error) {
	return filterby.Call(c, c.Str("grain"), c.GrainData())
}

func fetch(ctx context.Context, c *modules.Call) (any, error) { return get(ctx, c) }
