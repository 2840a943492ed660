// Package data is Salt's execution module "data": values that the minion keeps in a file. Salt's source: salt/modules/data.py.
package data

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/brine-salt/brine/internal/datastore"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// path returns the store's file.
func path(c *modules.Call) (string, error) {
	dir, _ := c.Opt("cachedir").(string)
	if dir == "" {
		return "", modules.Errorf("cannot use the minion's data store: there is no cachedir")
	}
	return c.Path(datastore.Path(dir)), nil
}

func read(c *modules.Call) (map[string]any, error) {
	name, err := path(c)
	if err != nil {
		return nil, err
	}
	return datastore.Load(name)
}

// change changes the store. Like stock, an error of the disk is only logged: the functions answer true.
func change(c *modules.Call, f func(store map[string]any) bool) error {
	name, err := path(c)
	if err != nil {
		return err
	}
	return datastore.Change(name, f)
}

func clear(_ context.Context, c *modules.Call) (any, error) {
	name, err := path(c)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, modules.OSError(err)
	}
	return true, nil
}

func load(_ context.Context, c *modules.Call) (any, error) { return asAny(read(c)) }

func asAny(m map[string]any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func dump(_ context.Context, c *modules.Call) (any, error) {
	data, ok := c.Value("new_data").(map[string]any)
	if text, isText := c.Value("new_data").(string); isText {
		v, err := yaml.Parse([]byte(text), "new_data")
		if err != nil {
			return nil, modules.Usagef("new_data is no dictionary: %v", err)
		}
		data, ok = v.(map[string]any)
	}
	if !ok {
		return false, nil
	}
	err := change(c, func(store map[string]any) bool {
		for k := range store {
			delete(store, k)
		}
		for k, v := range data {
			store[k] = v
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return true, nil
}

func update(_ context.Context, c *modules.Call) (any, error) {
	key := c.Str("key")
	if err := change(c, func(store map[string]any) bool { store[key] = c.Value("value"); return true }); err != nil {
		return nil, err
	}
	return true, nil
}

func cas(_ context.Context, c *modules.Call) (any, error) {
	key, done := c.Str("key"), false
	err := change(c, func(store map[string]any) bool {
		have, ok := store[key]
		if done = ok && nested.Equal(have, c.Value("old_value")); done {
			store[key] = c.Value("value")
		}
		return done
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

func pop(_ context.Context, c *modules.Call) (any, error) {
	key, val := c.Str("key"), c.Value("default")
	err := change(c, func(store map[string]any) bool {
		if have, ok := store[key]; ok {
			val = have
		}
		delete(store, key)
		return true
	})
	if err != nil {
		return nil, err
	}
	return val, nil
}

func get(_ context.Context, c *modules.Call) (any, error) {
	store, err := read(c)
	if err != nil {
		return nil, err
	}
	if key, ok := c.Value("key").(string); ok {
		if v, ok := store[key]; ok {
			return v, nil
		}
		return c.Value("default"), nil
	}
	keys, ok := c.Value("key").([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("key")) + "' object is not iterable"}
	}
	list := []any{}
	for _, k := range keys {
		if v, ok := store[pytext.Str(k)]; ok {
			list = append(list, v)
		} else if c.Value("default") != nil {
			list = append(list, c.Value("default"))
		}
	}
	return list, nil
}

func keys(_ context.Context, c *modules.Call) (any, error) {
	store, err := read(c)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, k := range slices.Sorted(maps.Keys(store)) {
		list = append(list, k)
	}
	return list, nil
}

func values(_ context.Context, c *modules.Call) (any, error) {
	store, err := read(c)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, k := range slices.Sorted(maps.Keys(store)) {
		list = append(list, store[k])
	}
	return list, nil
}

func hasKey(_ context.Context, c *modules.Call) (any, error) {
	store, err := read(c)
	if err != nil {
		return nil, err
	}
	_, ok := store[c.Str("key")]
	return ok, nil
}
