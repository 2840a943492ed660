// Package network is Salt's state module "network": interfaces, routes and settings of the network (salt/states/network.py).
package network

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "network".
var Module = &states.Module{Name: "network", Doc: "Interfaces, routes and settings of the network.", Available: available, Funcs: []states.Def{
	{Name: "managed", Doc: `Have an interface set up in this way.

name
    the interface
enabled
    whether it is up
type
    eth, bond, slave, bridge or vlan; pppoe or source on Debian; team, teamport, ipip, ib or alias on Red Hat
proto, ipaddr, netmask, gateway, dns and so on
    its settings; those of one family of addresses begin with ipv4 or ipv6
noifupdown
    if given, the interface is neither started nor stopped`, Params: []modules.Param{{Name: "name"}, {Name: "enabled", Default: true}}, Kwargs: "kwargs", Run: managed},
	{Name: "routes", Doc: `Have these routes through an interface.

name
    the interface
routes
    the routes, each with ipaddr, netmask, gateway, metric and name`, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: routes},
	{Name: "system", Doc: `Have these settings of the whole host.

name
    the state's name
enabled, hostname, search
    whether interfaces are set up, the name of the host, the domains to search
gateway, nisdomain, nozeroconf, retain_settings and so on
    further settings on Red Hat; keep those that are there and not given
apply_hostname, require_reboot
    set the name at once; leave the network as it is until the next boot`, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: system},
}}

func available(e *modules.Env) (bool, string) {
	switch {
	case e.GrainData()["kernel"] == "Windows":
		return false, "Only supported on non-Windows OSs"
	case e.GrainData()["os_family"] != "Debian" && e.GrainData()["os_family"] != "RedHat":
		return false, "ip module could not be loaded"
	}
	return true, ""
}

// setting is something in a file: what it is called in comments, and how it was and will be.
type setting struct {
	old, new any
}

// build requests the present settings, and those that result from the state, from functions of the module ip.
func build(ctx context.Context, c *states.Call, get, make string, args []any, kw map[string]any) (setting, error) {
	had := len(args)
	if had > 1 {
		had = 1 // the functions that only look take just the name
	}
	old, err := c.Exec(ctx, "ip."+get, args[:had]...)
	if err != nil {
		return setting{}, err
	}
	now, err := c.ExecKw(ctx, "ip."+make, args, kw)
	return setting{old, now}, err
}

func (s setting) added() bool   { return !pytext.Truth(s.old) && pytext.Truth(s.new) }
func (s setting) changed() bool { return !nested.Equal(s.old, s.new) }

// diff shows what changes.
func (s setting) diff() string {
	out := difflib.UnifiedLines(texts(s.old), texts(s.new), "", "")
	for i, line := range out {
		if i < 2 || strings.HasPrefix(line, "@@") {
			out[i] = strings.TrimSuffix(line, "\n")
		}
	}
	return strings.Join(out, "\n")
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return out
}

// failed makes the comment of a state of the errors that Salt catches: of the given types of Python's.
func failed(ret *states.Result, err error, types ...string) (*states.Result, error) {
	var e *modules.PythonError
	if !errors.As(err, &e) || !slices.Contains(types, e.Type) {
		return nil, err
	}
	return ret.As(states.False, e.Msg)
}

// message returns the text of an error without the type of Python's exception.
func message(err error) string {
	var e *modules.PythonError
	if errors.As(err, &e) {
		return e.Msg
	}
	return err.Error()
}

// arguments returns the state's keyword arguments, including test.
func arguments(c *states.Call) map[string]any {
	kw := maps.Clone(c.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	if _, ok := kw["test"]; !ok {
		kw["test"] = c.Test()
	}
	return kw
}

func routes(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, kw := c.Result(), arguments(c)
	what := "Interface " + c.Name() + " routes"
	s, err := build(ctx, c, "get_routes", "build_routes", []any{c.Value("name")}, kw)
	if err != nil {
		return failed(ret, err, "AttributeError")
	}
	ret.Result, ret.Comment = states.True, what+" are up to date."
	switch {
	case !s.changed():
		return ret, nil
	case pytext.Truth(kw["test"]) && s.added():
		return ret.As(states.None, what+" are set to be added.")
	case pytext.Truth(kw["test"]):
		return ret.As(states.None, what+" are set to be updated:\n"+s.diff())
	case s.added():
		ret.Comment, ret.Changes["network_routes"] = what+" added.", "Added interface "+c.Name()+" routes."
	default:
		ret.Comment, ret.Changes["network_routes"] = what+" updated.", s.diff()
	}
	if _, err := c.ExecKw(ctx, "ip.apply_network_settings", nil, kw); err != nil {
		return failed(ret, err, "AttributeError")
	}
	return ret, nil
}

func system(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, kw := c.Result(), arguments(c)
	kw["test"] = c.Test()
	s, err := build(ctx, c, "get_network_settings", "build_network_settings", nil, kw)
	if err != nil {
		// Python shows the text of a KeyError in quotes, which ours has already.
		return failed(ret, err, "AttributeError", "KeyError")
	}
	ret.Result, ret.Comment = states.True, "Global network settings are up to date."
	switch {
	case !s.changed():
		return ret, nil
	case c.Test() && s.added():
		return ret.As(states.None, "Global network settings are set to be added.")
	case c.Test():
		return ret.As(states.None, "Global network settings are set to be updated:\n"+s.diff())
	case s.added():
		ret.Changes["network_settings"] = "Added global network settings."
	default:
		ret.Changes["network_settings"] = s.diff()
	}
	if _, err := c.ExecKw(ctx, "ip.apply_network_settings", nil, kw); err != nil {
		return failed(ret, err, "AttributeError")
	}
	return ret, nil
}
