package network

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

func managed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, kw := c.Result(), arguments(c)
	kind := "eth"
	if v, ok := kw["type"]; ok {
		kind = pytext.Str(v)
		delete(kw, "type")
	}
	if addr, ok := kw["addr"]; ok {
		delete(kw, "addr")
		text := "it has been ignored in favor of 'hwaddr'."
		if _, ok := kw["hwaddr"]; !ok {
			text = "its value has been assigned to 'hwaddr' instead."
			kw["hwaddr"] = addr
		}
		ret.Warn("'addr' is not a valid argument name, " + text + " Update your SLS file to get rid of this warning.")
	}
	test := pytext.Truth(kw["test"])
	s, err := build(ctx, c, "get_interface", "build_interface", []any{c.Value("name"), kind, c.Value("enabled")}, kw)
	if err != nil {
		return failed(ret, err, "AttributeError")
	}
	ret.Result, ret.Comment = states.True, "Interface "+c.Name()+" is up to date."
	note(ret, s, test, "Interface "+c.Name(), "interface", "Added network interface.")
	if kind == "source" {
		return ret, nil
	}
	if _, err := c.Registry().Lookup("ip.get_bond", c.Env); kind == "bond" && err == nil { // Red Hat's module has no file for it
		s, err := build(ctx, c, "get_bond", "build_bond", []any{c.Value("name")}, kw)
		if err != nil {
			return failed(ret, err, "AttributeError")
		}
		note(ret, s, test, "Bond interface "+c.Name(), "bond", "Added bond "+c.Name()+".")
	}
	if test {
		return ret, nil
	}
	if strings.Contains(c.Name(), "range") {
		return ranged(ctx, c, ret)
	}
	runs, err := bring(ctx, c, ret, kind)
	if err != nil {
		return ret.As(states.False, message(err))
	}
	if _, manual := kw["noifupdown"]; kind == "bond" && !manual && pytext.Truth(kw["slaves"]) {
		if err := enslave(ctx, c, ret, kw["slaves"]); err != nil {
			return nil, err
		}
	}
	if c.Bool("enabled") && runs {
		return ret, nil
	}
	if _, err := c.Exec(ctx, "saltutil.refresh_grains"); err != nil {
		return nil, err
	}
	return ret, nil
}

// note puts into the result what changes, or would.
func note(ret *states.Result, s setting, test bool, what, key, added string) {
	switch {
	case !s.changed():
	case test && s.added():
		ret.Result, ret.Comment = states.None, what+" is set to be added."
	case test:
		ret.Result, ret.Comment = states.None, what+" is set to be updated:\n"+s.diff()
	case s.added():
		ret.Comment, ret.Changes[key] = what+" added.", added
	default:
		ret.Comment, ret.Changes[key] = what+" updated.", s.diff()
	}
}

// ranged restarts the network for a range of interfaces.
func ranged(ctx context.Context, c *states.Call, ret *states.Result) (*states.Result, error) {
	if !ret.Changed() {
		return ret.As(states.True, "no change, passing it")
	}
	ok, err := c.Exec(ctx, "service.restart", "network")
	if err != nil {
		return ret.As(states.False, message(err))
	}
	return ret.As(states.OutcomeOf(pytext.Truth(ok)), "network restarted for change of ranged interfaces")
}

// bring starts, restarts or stops the interface, and reports whether it was up.
func bring(ctx context.Context, c *states.Call, ret *states.Result, kind string) (bool, error) {
	v, err := c.Exec(ctx, "network.interfaces")
	if err != nil {
		return false, err
	}
	all, _ := v.(map[string]any)
	runs := isUp(all, c.Name())
	if _, manual := c.Keywords["noifupdown"]; manual {
		return runs, nil
	}
	call := func(status string, funs ...string) error {
		for _, fun := range funs {
			if _, err := c.Exec(ctx, fun, c.Value("name"), kind); err != nil {
				return err
			}
		}
		ret.Changes["status"] = "Interface " + c.Name() + " " + status
		return nil
	}
	switch {
	case c.Bool("enabled") && !runs:
		err = call("is up", "ip.up")
	case c.Bool("enabled") && ret.Changed():
		err = call("restart to validate", "ip.down", "ip.up")
	case !c.Bool("enabled") && runs:
		err = call("down", "ip.down")
	}
	return runs, err
}

// isUp reports whether an interface is up, which may be only a label of an address of another.
func isUp(all map[string]any, name string) bool {
	if one, ok := all[name].(map[string]any); ok {
		return pytext.Truth(one["up"])
	}
	labelled := func(v any, least int) bool {
		list, _ := v.([]any)
		return len(list) >= least && slices.ContainsFunc(list, func(x any) bool {
			m, _ := x.(map[string]any)
			return m["label"] == name
		})
	}
	for iface, v := range all {
		m, _ := v.(map[string]any)
		if labelled(m["secondary"], 1) || iface == "lo" && (labelled(m["inet"], 2) || labelled(m["inet6"], 2)) {
			return true
		}
	}
	return false
}

// enslave gives a bond the slaves that it lacks.
func enslave(ctx context.Context, c *states.Call, ret *states.Result, slaves any) error {
	out, err := saltcmd.Text(ctx, c.Call, "cat", "/sys/class/net/"+c.Name()+"/bonding/slaves")
	if err != nil {
		return err
	}
	have, want := strings.Fields(out), strings.Fields(pytext.Str(slaves))
	if list, ok := slaves.([]any); ok {
		want = texts(list)
	}
	missing := []string{}
	for _, s := range want {
		if !slices.Contains(have, s) && !slices.Contains(missing, s) {
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if path := c.Which("ifenslave"); path != "" {
		args := []any{path, c.Name()}
		for _, s := range missing {
			args = append(args, s)
		}
		if _, err := saltcmd.Text(ctx, c.Call, args...); err != nil {
			return err
		}
	}
	ret.Changes["enslave"] = "Added slaves '" + strings.Join(missing, " ") + "' to master '" + c.Name() + "'"
	return nil
}
