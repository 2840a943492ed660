// Package etcd_mod is Salt's state module "etcd": keys of an etcd server (salt/states/etcd_mod.py). It uses the
// execution module etcd. As in stock, its functions make changes even in test mode, and a key that the server refuses
// does not make a state fail: the error is only logged.
package etcd_mod

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

const (
	keyDoc     = "\nname\n    the key\n"
	valueDoc   = "value\n    its value\n"
	recurseDoc = "recurse\n    whether to remove what is below a directory\n"
	profileDoc = "profile\n    the option that says where the server is\n"
)

// Module is Salt's "etcd".
var Module = &states.Module{Name: "etcd_mod", Virtual: "etcd", Doc: "Keys of an etcd server. As in Salt, they are set and removed in test mode, too.", Needs: "etcd.set", Otherwise: "Unable to import etcd_util", Funcs: []states.Def{
	{Name: "directory", Doc: "Have a directory. Test mode does so, too.\n" + keyDoc + profileDoc, Params: []modules.Param{{Name: "name"}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: directory},
	{Name: "mod_watch", Doc: "Set or remove the key of wait_set or wait_rm, since something that it watches has changed.\n" + keyDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: watched},
	{Name: "rm", Doc: "Have no such key. Test mode does so, too.\n" + keyDoc + recurseDoc + profileDoc, Params: []modules.Param{{Name: "name"}, {Name: "recurse", Default: false}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: rm},
	{Name: "set", Python: "set_", Doc: "Have a key with a value. Test mode does so, too.\n" + keyDoc + valueDoc + profileDoc, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: set},
	{Name: "wait_rm", Doc: "Remove a key when something that the state watches has changed.\n" + keyDoc + recurseDoc + profileDoc, Params: []modules.Param{{Name: "name"}, {Name: "recurse", Default: false}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: wait},
	{Name: "wait_set", Doc: "Set a key when something that the state watches has changed.\n" + keyDoc + valueDoc + profileDoc, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: wait},
}}

// action is a key with the way to its server.
type action struct {
	*states.Call
	ctx            context.Context
	value, profile any
	recurse        bool
	more           map[string]any
}

func begin(ctx context.Context, c *states.Call) *action {
	return &action{c, ctx, c.Value("value"), c.Value("profile"), c.Bool("recurse"), c.Keywords}
}

// call calls a function of the module etcd.
func (a *action) call(fun string, args []any, kwargs map[string]any) (any, error) {
	kw := maps.Clone(a.more)
	if kw == nil {
		kw = map[string]any{}
	}
	maps.Copy(kw, kwargs)
	kw["profile"] = a.profile
	return a.ExecKw(a.ctx, "etcd."+fun, args, kw)
}

// current returns the value on the server, or nil if it is missing or the server cannot be queried. over is the
// result if a missing profile may be the reason.
func (a *action) current(recurse bool) (v any, over *states.Result) {
	kw := map[string]any{"key": a.Value("name"), "value": nil}
	if recurse {
		kw["recurse"] = true
	}
	v, err := a.call("get", nil, kw)
	if err != nil {
		a.Logger().Debug("Cannot read a key of etcd", "key", a.Name(), "error", err)
		v = nil
	}
	if v == nil && a.profile == nil {
		over = a.Result()
		over.Result, over.Comment = states.False, "No profile found, using a profile is always recommended"
	}
	return v, over
}

// unset logs that a key was not set. As in stock, the state does not fail.
func (a *action) unset(err error) {
	a.Logger().Error("Cannot set a key of etcd", "key", a.Name(), "error", err)
}

func set(ctx context.Context, c *states.Call) (*states.Result, error) { return begin(ctx, c).set() }

func (a *action) set() (*states.Result, error) {
	have, over := a.current(false)
	if over != nil {
		return over, nil
	}
	ret := a.Result()
	ret.Result, ret.Comment = states.True, "Key contains correct value"
	v, err := a.call("set", nil, map[string]any{"key": a.Value("name"), "value": a.value})
	if err != nil || v == nil {
		a.unset(err)
	}
	if err == nil && pytext.Truth(v) && !nested.Equal(v, have) {
		ret.Comment = "Key value updated"
		if !pytext.Truth(have) {
			ret.Comment = "New key created"
		}
		ret.Changes[a.Name()] = a.value
	}
	return ret, nil
}

func directory(ctx context.Context, c *states.Call) (*states.Result, error) {
	a := begin(ctx, c)
	have, over := a.current(true)
	if over != nil {
		return over, nil
	}
	ret := a.Result()
	ret.Result, ret.Comment = states.True, "Directory exists"
	v, err := a.call("set", []any{a.Value("name"), nil}, map[string]any{"directory": true})
	if err != nil {
		return nil, err
	}
	if v == nil {
		a.unset(nil)
	}
	if pytext.Truth(v) && !nested.Equal(v, have) && !pytext.Truth(have) {
		ret.Comment = "New directory created"
		ret.Changes[a.Name()] = "Created"
	}
	return ret, nil
}

func rm(ctx context.Context, c *states.Call) (*states.Result, error) { return begin(ctx, c).rm() }

func (a *action) rm() (*states.Result, error) {
	have, over := a.current(true)
	if over != nil {
		return over, nil
	}
	ret := a.Result()
	if !pytext.Truth(have) {
		return ret.As(states.True, "Key does not exist")
	}
	v, err := a.call("rm", []any{a.Value("name")}, map[string]any{"recurse": a.recurse})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		return ret.As(states.True, "Unable to remove key")
	}
	ret.Changes[a.Name()] = "Deleted"
	return ret.As(states.True, "Key removed")
}

func wait(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "")
}

// watched runs wait_set and wait_rm. Only the profile tells where the server is: stock passes nothing else on.
func watched(ctx context.Context, c *states.Call) (*states.Result, error) {
	a := &action{Call: c, ctx: ctx, value: c.Keywords["value"], profile: c.Keywords["profile"]}
	switch c.Keywords["sfun"] {
	case "wait_set", "wait_set_key":
		return a.set()
	case "wait_rm", "wait_rm_key":
		return a.rm()
	}
	return c.Result().As(states.False, "etcd."+pytext.Str(c.Keywords["sfun"])+" does not work with the watch requisite, please use etcd.wait_set or etcd.wait_rm")
}
