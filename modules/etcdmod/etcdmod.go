// Package etcdmod is Salt's execution module "etcd": keys of an etcd server, over its HTTP interface of version 2. Salt's sources:
// salt/modules/etcd_mod.py and salt/utils/etcd_util.py; the errors are those of python-etcd.
package etcdmod

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxDepth bounds how deep etcd.tree follows what a server says.
const maxDepth = 300

// none is what functions answer that could not do their work for one of these reasons.
func none(v any, err error, reasons ...string) (any, error) {
	if err == nil {
		return v, nil
	}
	if failedWith(err, reasons...) {
		return nil, nil
	}
	return nil, err
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	if c.Bool("recurse") {
		return e.tree(ctx, c.Value("key"), 0)
	}
	n, err := e.read(ctx, c.Value("key"), false, nil)
	return none(n.value, err, keyNotFound, connectionFailed, valueError)
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	return e.set(ctx, c.Value("key"), c.Value("value"), c.Value("ttl"), c.Bool("directory"))
}

// set writes a key, or makes a directory, and tells its value or that it is one.
func (e *client) set(ctx context.Context, key, value, ttl any, directory bool) (any, error) {
	if !directory {
		n, err := e.write(ctx, key, value, ttl, false)
		return none(n.value, err, notFile, rootReadOnly, valueError, connectionFailed)
	}
	n, err := e.write(ctx, key, nil, ttl, true)
	if failedWith(err, notFile) { // it is there
		return true, nil
	}
	return none(n.dir, err, notDir, rootReadOnly, valueError, connectionFailed)
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	fields, ok := c.Value("fields").(map[string]any)
	if !ok {
		return nil, nil
	}
	flat := map[string]any{}
	flatten(flat, fields, c.Str("path"))
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		_, directory := flat[key].(map[string]any)
		v, err := e.set(ctx, key, flat[key], nil, directory)
		if err != nil || v == nil {
			return nil, err
		}
		flat[key] = v
	}
	return flat, nil
}

// flatten makes one map of paths of maps in maps.
func flatten(into, data map[string]any, path string) {
	if len(data) == 0 {
		into[path] = map[string]any{}
		return
	}
	if path = strings.Trim(path, "/"); path != "" {
		path = "/" + path
	}
	for k, v := range data {
		p := path + "/" + strings.Trim(k, "/")
		if m, ok := v.(map[string]any); ok {
			flatten(into, m, p)
		} else {
			into[p] = v
		}
	}
}

func watch(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	n, err := e.read(ctx, c.Value("key"), c.Bool("recurse"), &waiting{timeout: c.Value("timeout"), index: c.Value("index")})
	switch {
	case failedWith(err, valueError):
		return map[string]any{}, nil
	case err != nil:
		return none(nil, err, connectionFailed)
	}
	key := c.Value("key")
	if c.Bool("recurse") {
		key = n.key
	}
	return map[string]any{"key": key, "value": n.value, "dir": n.dir, "changed": true, "mIndex": n.index}, nil
}

func ls(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	n, err := e.read(ctx, c.Value("path"), false, nil)
	if failedWith(err, keyNotFound, valueError) {
		return map[string]any{}, nil
	}
	if err != nil {
		return none(nil, err, connectionFailed)
	}
	in := map[string]any{}
	for _, x := range n.leaves() {
		switch {
		case x.dir != true:
			in[pytext.Str(x.key)] = x.value
		case x.key != c.Value("path"):
			in[pytext.Str(x.key)+"/"] = map[string]any{}
		}
	}
	return map[string]any{c.Str("path"): in}, nil
}

func rm(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	err = e.remove(ctx, c.Value("key"), c.Bool("recurse"))
	return none(true, err, notFile, rootReadOnly, keyNotFound, connectionFailed, valueError)
}

func tree(ctx context.Context, c *modules.Call) (any, error) {
	e, err := connect(c)
	if err != nil {
		return nil, err
	}
	return e.tree(ctx, c.Value("path"), 0)
}

// tree is what stands below a path, in maps by name.
func (e *client) tree(ctx context.Context, path any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, &modules.PythonError{Type: "RecursionError", Msg: "maximum recursion depth exceeded"}
	}
	n, err := e.read(ctx, path, false, nil)
	if err != nil {
		return none(nil, err, keyNotFound, connectionFailed, valueError)
	}
	ret := map[string]any{}
	for _, x := range n.leaves() {
		key := pytext.Str(x.key)
		name := key[strings.LastIndexByte(key, '/')+1:]
		switch {
		case x.dir != true:
			ret[name] = x.value
		case x.key != path:
			if ret[name], err = e.tree(ctx, x.key, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return ret, nil
}
