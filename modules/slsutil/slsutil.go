// Package slsutil is Salt's execution module "slsutil": merging, rendering and reading data. Salt's sources:
// salt/modules/slsutil.py, salt/utils/dictupdate.py, salt/utils/aggregation.py.
package slsutil

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// slsutil.renderer differs: it knows the renderers gpg, jinja, json, pass, stateconf, yaml and yamlex. Others need Python, a cloud
// account or libraries that an installation of Salt lacks too (nacl: PyNaCl); msgpack is one that in Salt fails on every text.
// slsutil.serialize differs: it knows configparser, json, keyvalue, msgpack, plist, python, yaml and yamlex, and of their options the ones
// that matter there.
// slsutil.deserialize differs: it knows these but python.

func update(_ context.Context, c *modules.Call) (any, error) {
	dest, ok1 := c.Value("dest").(*pyobj.Dict)
	upd, ok2 := c.Value("upd").(*pyobj.Dict)
	if !ok1 || !ok2 {
		return nil, &modules.TypeError{Msg: nested.ErrUpdate.Error()}
	}
	if c.Bool("recursive_update") {
		return nested.UpdateObject(dest, upd, c.Bool("merge_lists")), nil
	}
	dest.Update(upd)
	return dest, nil
}

func mergeFn(_ context.Context, c *modules.Call) (any, error) {
	return merge(c, c.Value("obj_a"), c.Value("obj_b"))
}

func mergeAll(_ context.Context, c *modules.Call) (any, error) {
	list, ok := c.Value("lst").(*pyobj.List)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("lst")) + "' object is not iterable"}
	}
	var (
		ret any = &pyobj.Dict{}
		err error
	)
	for _, x := range list.Items {
		if ret, err = merge(c, ret, x); err != nil {
			return nil, err
		}
	}
	return ret, nil
}

// merge merges by the call's strategy.
func merge(c *modules.Call, a, b any) (any, error) {
	strategy, renderer := c.Str("strategy"), c.Str("renderer")
	if strategy == "smart" {
		strategy = "recurse"
		if renderer[strings.LastIndexByte(renderer, '|')+1:] == "yamlex" || strings.HasPrefix(renderer, "yamlex_") {
			strategy = "aggregate"
		}
	}
	if strategy == "aggregate" {
		return pyobj.Aggregate(a, b, true), nil
	}
	m, ok1 := a.(*pyobj.Dict)
	n, ok2 := b.(*pyobj.Dict)
	if !ok1 || !ok2 {
		return nil, &modules.TypeError{Msg: nested.ErrUpdate.Error()}
	}
	lists := c.Bool("merge_lists")
	switch strategy {
	case "list":
		ret := &pyobj.Dict{}
		for k, v := range m.All() {
			if other, ok := n.Get(k); ok {
				v = pyobj.NewList(v, other)
			}
			_ = ret.Set(k, v)
		}
		return ret, nil
	case "overwrite":
		for k, v := range n.All() {
			if m.Has(k) {
				_ = m.Set(k, v)
			}
		}
	case "recurse":
	default:
		if strategy != "none" {
			c.Logger().Warn("Unknown merging strategy; recurse is used", "strategy", strategy)
		}
		lists = false
	}
	return nested.UpdateObject(pyobj.DeepCopy(m).(*pyobj.Dict), n, lists), nil
}

func boolstr(_ context.Context, c *modules.Call) (any, error) {
	if c.Bool("value") {
		return c.Value("true"), nil
	}
	return c.Value("false"), nil
}

// names returns the files or directories of an environment. They are requested once per job.
func names(ctx context.Context, c *modules.Call, kind string) ([]string, error) {
	env := c.Str("saltenv")
	key := "slsutil." + kind + "." + env
	if have, ok := c.Context().Get(key); ok {
		return have.([]string), nil
	}
	if c.Files == nil {
		return nil, modules.Errorf("cannot list files: this program has no file server to ask")
	}
	list := c.Files.List
	if kind == "dirs" {
		list = c.Files.Dirs
	}
	found, err := list(ctx, env, "")
	if err != nil {
		return nil, err
	}
	c.Context().Set(key, found)
	return found, nil
}

// has reports whether the file server has a path of one of the kinds.
func has(ctx context.Context, c *modules.Call, name string, kinds ...string) (bool, error) {
	for _, k := range kinds {
		list, err := names(ctx, c, k)
		if err != nil {
			return false, err
		}
		if slices.Contains(list, name) {
			return true, nil
		}
	}
	return false, nil
}

// answer makes any of a result, nil with an error.
func answer(ok bool, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return ok, nil
}

func fileExists(ctx context.Context, c *modules.Call) (any, error) {
	return answer(has(ctx, c, c.Str("path"), "files"))
}

func dirExists(ctx context.Context, c *modules.Call) (any, error) {
	return answer(has(ctx, c, c.Str("path"), "dirs"))
}

func pathExists(ctx context.Context, c *modules.Call) (any, error) {
	return answer(has(ctx, c, c.Str("path"), "files", "dirs"))
}

func findup(ctx context.Context, c *modules.Call) (any, error) {
	start := c.Str("startpath")
	if start != "" {
		start = path.Clean(start)
		if ok, err := has(ctx, c, start, "files", "dirs"); err != nil {
			return nil, err
		} else if !ok {
			return nil, modules.Usagef("Starting path not found in the state tree: %s", start)
		}
	}
	list, ok := c.Value("filenames").([]any)
	if text, isText := c.Value("filenames").(string); isText {
		list, ok = []any{text}, true
	}
	if !ok {
		return nil, modules.Usagef("Filenames argument must be a string or list of strings")
	}
	for {
		for _, f := range list {
			name := path.Clean(strings.TrimLeft(pytext.Str(f), "/"))
			if start != "" {
				name = path.Join(start, name)
			}
			if ok, err := has(ctx, c, name, "files", "dirs"); err != nil {
				return nil, err
			} else if ok {
				return name, nil
			}
		}
		if start == "" || start == "/" {
			return nil, modules.Errorf("File pattern(s) not found in path ancestry")
		}
		if start = path.Dir(start); start == "." {
			start = ""
		}
	}
}
