// Package etcdmod is Salt's execution module "etcd": keys of an etcd server, over its HTTP interface of version 2 or 3.
//
//	get, set, … ── connect ──▶ keys ◀── client (etcd.require_v2: true, the default): /v2/keys, a tree of directories
//	                                ◀── store (false): /v3/kv, flat keys and values packed as msgpack
//
// Salt's sources: salt/modules/etcd_mod.py and salt/utils/etcd_util.py; the errors are those of python-etcd and etcd3-py.
package etcdmod

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxDepth bounds how deep etcd.tree follows what a server says.
const maxDepth = 300

// none returns nil as the result of a function that failed for one of the reasons. Other errors are returned.
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
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.get(ctx, c.Value("key"), c.Bool("recurse"))
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.set(ctx, c.Value("key"), c.Value("value"), c.Value("ttl"), c.Bool("directory"))
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	fields, ok := c.Value("fields").(map[string]any)
	if !ok {
		return nil, nil
	}
	flat := map[string]any{}
	flatten(flat, fields, c.Str("path"))
	return k.update(ctx, flat)
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
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.watch(ctx, c.Value("key"), c.Bool("recurse"), c.Value("timeout"), c.Value("index"))
}

func ls(ctx context.Context, c *modules.Call) (any, error) {
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.ls(ctx, c.Value("path"))
}

func rm(ctx context.Context, c *modules.Call) (any, error) {
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.rm(ctx, c.Value("key"), c.Bool("recurse"))
}

func tree(ctx context.Context, c *modules.Call) (any, error) {
	k, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return k.tree(ctx, c.Value("path"))
}

// get implements etcd.get for version 2 of the protocol.
func (e *client) get(ctx context.Context, key any, recurse bool) (any, error) {
	if recurse {
		return e.tree(ctx, key)
	}
	n, err := e.read(ctx, key, false, nil)
	return none(n.value, err, keyNotFound, connectionFailed, valueError)
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

func (e *client) update(ctx context.Context, fields map[string]any) (any, error) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		_, directory := fields[key].(map[string]any)
		v, err := e.set(ctx, key, fields[key], nil, directory)
		if err != nil || v == nil {
			return nil, err
		}
		fields[key] = v
	}
	return fields, nil
}

func (e *client) watch(ctx context.Context, key any, recurse bool, timeout, index any) (any, error) {
	n, err := e.read(ctx, key, recurse, &waiting{timeout: timeout, index: index})
	switch {
	case failedWith(err, valueError):
		return map[string]any{}, nil
	case err != nil:
		return none(nil, err, connectionFailed)
	}
	if recurse {
		key = n.key
	}
	return map[string]any{"key": key, "value": n.value, "dir": n.dir, "changed": true, "mIndex": n.index}, nil
}

func (e *client) ls(ctx context.Context, path any) (any, error) {
	n, err := e.read(ctx, path, false, nil)
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
		case x.key != path:
			in[pytext.Str(x.key)+"/"] = map[string]any{}
		}
	}
	return map[string]any{pytext.Str(path): in}, nil
}

func (e *client) rm(ctx context.Context, key any, recurse bool) (any, error) {
	err := e.remove(ctx, key, recurse)
	return none(true, err, notFile, rootReadOnly, keyNotFound, connectionFailed, valueError)
}

// tree returns the values below a path, in nested maps by name.
func (e *client) tree(ctx context.Context, path any) (any, error) { return e.treeAt(ctx, path, 0) }

func (e *client) treeAt(ctx context.Context, path any, depth int) (any, error) {
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
			if ret[name], err = e.treeAt(ctx, x.key, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return ret, nil
}
