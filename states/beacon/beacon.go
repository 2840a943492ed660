// Package beacon is Salt's state module "beacon": what the minion watches (salt/states/beacon.py).
package beacon

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "beacon".
var Module = &states.Module{Name: "beacon", Doc: "What the minion watches.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: saved[:], Kwargs: "kwargs", Run: absent},
	{Name: "disabled", Doc: disabledDoc, Params: saved[:1], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return switched(ctx, c, "beacons.disable_beacon", "Disabled beacon "+c.Name()+".", "Job "+c.Name()+" is not configured.")
	}},
	{Name: "enabled", Doc: enabledDoc, Params: saved[:1], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return switched(ctx, c, "beacons.enable_beacon", "Enabled "+c.Name()+" from beacons", c.Name()+" not a configured beacon")
	}},
	{Name: "present", Doc: presentDoc, Params: saved[:], Kwargs: "kwargs", Run: present},
}}

var saved = [...]modules.Param{{Name: "name"}, {Name: "save", Default: false}}

const (
	name = `

name
    the beacon`
	save = name + `
save
    keep the beacons for minions that start later`
	presentDoc  = `Have a beacon. Further arguments are its configuration.` + save
	absentDoc   = `Have no such beacon.` + save
	enabledDoc  = `Have a beacon enabled.` + name
	disabledDoc = `Have a beacon disabled.` + name
)

// list returns the configured beacons.
func list(ctx context.Context, c *states.Call) (map[string]any, error) {
	kw := maps.Clone(c.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	kw["return_yaml"] = false
	v, err := c.ExecKw(ctx, "beacons.list", nil, kw)
	m, _ := v.(map[string]any)
	return m, err
}

// call calls a function about the beacon; in test mode it says only what it would do.
func call(ctx context.Context, c *states.Call, fun string, args ...any) (map[string]any, error) {
	kw := maps.Clone(c.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	if c.Test() {
		kw["test"] = true
	}
	v, err := c.ExecKw(ctx, fun, append([]any{c.Value("name")}, args...), kw)
	m, _ := v.(map[string]any)
	return m, err
}

// refused returns the result for a function that did nothing, with its comment.
func refused(ret *states.Result, res map[string]any) (*states.Result, error) {
	ret.Extra = map[string]any{"comment": res["comment"]}
	return ret.As(states.OutcomeOf(pytext.Truth(res["result"])), "")
}

// keep saves the beacons if the argument says so, and completes the comments.
func keep(ctx context.Context, c *states.Call, ret *states.Result, comment string) (*states.Result, error) {
	switch {
	case !c.Bool("save"):
	case c.Test():
		comment += "\nBeacon " + c.Name() + " would be saved"
	default:
		if _, err := c.Exec(ctx, "beacons.save"); err != nil {
			return nil, err
		}
		comment += "\nBeacon " + c.Name() + " saved"
	}
	return ret.As(states.True, comment)
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	all, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	data := []any{}
	for _, k := range c.KeywordNames {
		data = append(data, map[string]any{k: c.Keywords[k]})
	}
	have, there := all[c.Name()]
	if there && pyobj.Equal(pyobj.From(data), pyobj.From(have)) {
		return keep(ctx, c, ret, "Job "+c.Name()+" in correct state")
	}
	fun, did := "beacons.add", "Adding "+c.Name()+" to beacons"
	if there {
		fun, did = "beacons.modify", "Modifying "+c.Name()+" in beacons"
	}
	res, err := call(ctx, c, fun, data)
	if err != nil {
		return nil, err
	}
	if !c.Test() && !pytext.Truth(res["result"]) {
		return refused(ret, res)
	}
	changes, ok := res["changes"].(map[string]any)
	switch {
	case there && c.Test() && !ok:
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'changes'"}
	case there && ok:
		ret.Changes = changes
	}
	if c.Test() || there && !ok {
		did = pytext.Str(res["comment"])
	}
	return keep(ctx, c, ret, did)
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	all, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, there := all[c.Name()]; !there {
		return keep(ctx, c, ret, c.Name()+" not configured in beacons")
	}
	res, err := call(ctx, c, "beacons.delete")
	switch {
	case err != nil:
		return nil, err
	case c.Test():
		return keep(ctx, c, ret, pytext.Str(res["comment"]))
	case !pytext.Truth(res["result"]):
		return refused(ret, res)
	}
	return keep(ctx, c, ret, "Removed "+c.Name()+" from beacons")
}

// switched enables or disables the beacon.
func switched(ctx context.Context, c *states.Call, fun, did, missing string) (*states.Result, error) {
	ret := c.Result()
	all, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, there := all[c.Name()]; !there {
		return ret.As(states.True, missing)
	}
	res, err := call(ctx, c, fun)
	switch {
	case err != nil:
		return nil, err
	case c.Test():
		return ret.As(states.True, pytext.Str(res["comment"]))
	case !pytext.Truth(res["result"]):
		return refused(ret, res)
	}
	return ret.As(states.True, did)
}
