// Package event is Salt's execution module "event": firing events on the minion's and on the master's event bus. Salt's
// source: salt/modules/event.py.
package event

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/jobenv"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// event.fire_master differs: True means that the master has the event, rather than that it is on its way there.
// event.send differs: True means that the master has the event, rather than that it is on its way there.

func fireMaster(ctx context.Context, c *modules.Call) (any, error) {
	return toMaster(ctx, c, c.Str("tag"), given(c), c.Value("preload")), nil
}

// given returns the argument data with its keys in the caller's order.
func given(c *modules.Call) any {
	v, _ := c.InOrder("data")
	return v
}

// toMaster sends an event. Like stock, a failure is false and not an error.
func toMaster(ctx context.Context, c *modules.Call, tag string, data, preload any) bool {
	local := pytext.Truth(c.Opt("local")) || c.Opt("file_client") == "local"
	if local && !pytext.Truth(c.Opt("use_master_when_local")) {
		c.Logger().Warn("The minion works without master; the event is not sent", "tag", tag)
		return false
	}
	if c.Master == nil {
		return false
	}
	var err error
	if more, ok := preload.(map[string]any); ok && len(more) > 0 {
		load := map[string]any{"cmd": "_minion_event", "id": c.ID, "tag": tag, "data": data}
		maps.Copy(load, more)
		_, err = c.Master.Request(ctx, load)
	} else {
		err = c.Master.Fire(ctx, tag, data)
	}
	if err != nil {
		c.Logger().Error("Cannot send event", "tag", tag, "err", err)
	}
	return err == nil
}

func fire(_ context.Context, c *modules.Call) (any, error) {
	return toBus(c, c.Str("tag"), given(c)), nil
}

// toBus puts an event on the minion's own bus.
func toBus(c *modules.Call, tag string, data any) bool {
	_, ok := data.(*pyobj.Dict)
	return ok && tag != "" && c.Agent != nil && c.Agent.FireLocal(tag, data)
}

func send(ctx context.Context, c *modules.Call) (any, error) {
	data := pyobj.NewDict()
	set := func(key, v any) { _ = data.Set(key, v) } // it is a text, or a key already
	if c.Bool("with_env") {
		env := jobenv.Map(c.Context().Environ())
		all := pyobj.NewDict()
		for _, name := range slices.Sorted(maps.Keys(env)) {
			_ = all.Set(name, env[name])
		}
		set("environ", subset(c.Value("with_env"), all))
	}
	if c.Bool("with_grains") {
		set("grains", subset(c.Value("with_grains"), c.OrderedGrains()))
	}
	if c.Bool("with_pillar") {
		set("pillar", subset(c.Value("with_pillar"), c.OrderedPillar()))
	}
	if c.Bool("with_env_opts") {
		env, ok := c.Config()["saltenv"]
		if !ok {
			env = "base"
		}
		set("saltenv", env)
		set("pillarenv", c.Opt("pillarenv"))
	}
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		set(k, c.KeywordInOrder(k))
	}
	if more, ok := given(c).(*pyobj.Dict); ok {
		data.Update(more)
	}
	local := pytext.Truth(c.Opt("local")) || c.Opt("file_client") == "local" || c.Opt("master_type") == "disable"
	if local && !pytext.Truth(c.Opt("use_master_when_local")) {
		return toBus(c, c.Str("tag"), data), nil
	}
	return toMaster(ctx, c, c.Str("tag"), data, c.Value("preload")), nil
}

// subset returns the entries of a map that a list names. It returns the whole map if names is not a list.
func subset(names any, all *pyobj.Dict) *pyobj.Dict {
	list, ok := names.([]any)
	if !ok {
		return all
	}
	part := pyobj.NewDict()
	for _, n := range list {
		name := pytext.Str(n)
		if v, ok := all.Text(name); ok {
			_ = part.Set(name, v)
		}
	}
	return part
}
