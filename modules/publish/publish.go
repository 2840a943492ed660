// Package publish is Salt's execution module "publish": commands that a minion sends to other minions, where the master's option
// peer allows it. Salt's source: salt/modules/publish.py.
package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// pause is how long the minion waits between two questions for answers.
const pause = 300 * time.Millisecond

// arguments returns the list of arguments for the published function. A text is parsed as on a command line.
func arguments(c *modules.Call) []any {
	v, _ := c.InOrder("arg")
	if s, ok := v.(string); ok {
		v = yaml.ParseValueObject(s)
	}
	switch v := v.(type) {
	case nil:
		return []any{}
	case *pyobj.List:
		return v.Items
	default:
		return []any{v}
	}
}

func noParse(c *modules.Call) any {
	if v := c.Opt("no_parse"); v != nil {
		return v
	}
	return []any{}
}

// master returns the master to publish through: the one of via_master, or the default one.
func master(c *modules.Call) (modules.Master, error) {
	via := ""
	if c.Fun == "publish.publish" {
		via = c.Str("via_master")
	}
	if via == "" {
		return c.Master, nil
	}
	chooser, ok := c.Agent.(modules.MasterChooser)
	if !ok {
		return nil, modules.Usagef("Could not find list of masters in minion configuration but `via_master` was specified.")
	}
	if m := chooser.Via(via); m != nil {
		return m, nil
	}
	names := []any{}
	for name := range c.Agent.Masters() {
		names = append(names, name)
	}
	sorting.Stable(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return nil, modules.Usagef("Could not find match for %s in list of configured masters %s when using `via_master` option", via, pytext.Repr(names))
}

// send publishes and collects the answers in the given form, "clean" or "full".
func send(ctx context.Context, c *modules.Call, form string) (any, error) {
	none := map[string]any{}
	if c.Master == nil {
		c.Logger().Error("Cannot run publish commands without a connection to a salt master. No command sent.")
		return none, nil
	}
	fun := c.Str("fun")
	if strings.HasPrefix(fun, "publish.") {
		c.Logger().Info("Cannot publish publish calls. Returning {}")
		return none, nil
	}
	m, err := master(c)
	if err != nil {
		return nil, err
	}
	timeout, err := c.Float("timeout")
	if err != nil {
		return nil, err
	}
	v, err := m.Request(ctx, map[string]any{"cmd": "minion_pub", "fun": fun, "arg": arguments(c), "tgt": c.Value("tgt"),
		"tgt_type": c.Value("tgt_type"), "ret": c.Value("returner"), "tmo": c.Value("timeout"), "form": form, "id": c.ID, "no_parse": noParse(c)})
	if errors.Is(err, context.DeadlineExceeded) {
		return "'" + fun + "' publish timed out", nil
	}
	if err != nil {
		return nil, modules.Errorf("%s", err)
	}
	peer, _ := v.(map[string]any)
	if len(peer) == 0 {
		return none, nil
	}
	minions, _ := peer["minions"].([]any)
	if len(minions) == 0 {
		return nil, nil // Salt's loop ends before it begins, and so does the function
	}
	return collect(ctx, c, m, peer["jid"], minions, time.Duration(timeout*float64(time.Second)), form)
}

// collect asks for the answers until all are there or the time is over.
func collect(ctx context.Context, c *modules.Call, m modules.Master, jid any, minions []any, timeout time.Duration, form string) (any, error) {
	for n := 0; ; n++ {
		v, err := modules.RequestOrdered(ctx, m, map[string]any{"cmd": "pub_ret", "id": c.ID, "jid": jid})
		if err != nil {
			return nil, modules.Errorf("%s", err)
		}
		answers, ok := v.(*pyobj.Dict)
		if !ok {
			answers = pyobj.NewDict()
		}
		missing := slices.ContainsFunc(minions, func(id any) bool { return !answers.Has(pytext.Str(id)) })
		if !missing || time.Duration(n)*pause > timeout {
			return shaped(answers, form), nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, modules.Errorf("%s", context.Cause(ctx))
		}
	}
}

func shaped(answers *pyobj.Dict, form string) *pyobj.Dict {
	out := pyobj.NewDict()
	for id, v := range answers.All() {
		if m, ok := v.(*pyobj.Dict); ok && form == "clean" {
			v = m.Value("ret")
		}
		_ = out.Set(id, v) // it is a key already
	}
	return out
}

func publish(ctx context.Context, c *modules.Call) (any, error) { return send(ctx, c, "clean") }

func fullData(ctx context.Context, c *modules.Call) (any, error) { return send(ctx, c, "full") }

func runner(ctx context.Context, c *modules.Call) (any, error) {
	if c.Master == nil {
		return "No access to master. If using salt-call with --local, please remove.", nil
	}
	fun := c.Str("fun")
	v, err := modules.RequestOrdered(ctx, c.Master, map[string]any{"cmd": "minion_runner", "fun": fun, "arg": arguments(c), "tmo": c.Value("timeout"),
		"id": c.ID, "no_parse": noParse(c)})
	if errors.Is(err, context.DeadlineExceeded) {
		return "'" + fun + "' runner publish timed out", nil
	}
	if err != nil {
		return nil, modules.Errorf("%s", err)
	}
	return v, nil
}
