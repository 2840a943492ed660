// Package firewalld is Salt's state module "firewalld": zones and services of the firewall daemon (salt/states/firewalld.py).
package firewalld

import (
	"context"
	"errors"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "firewalld".
var Module = &states.Module{Name: "firewalld", Doc: "Zones and services of the firewall daemon firewalld.", Available: available, Funcs: []states.Def{
	{Name: "present", Doc: `Have a zone, and in it what is listed.

name
    the zone
block_icmp
    kinds of ICMP messages to block
default
    make it the zone of connections that have none of their own
masquerade
    whether the zone masquerades; None leaves it as it is
ports, services, interfaces, sources, rich_rules
    what to have in the zone
port_fwd
    ports to forward, each "from:to:protocol" or "from:to:protocol:address"
prune_block_icmp, prune_ports, prune_port_fwd, prune_services, prune_interfaces, prune_sources, prune_rich_rules
    take out what is not listed`, Params: []modules.Param{
		{Name: "name"}, {Name: "block_icmp", Optional: true}, {Name: "prune_block_icmp", Default: false}, {Name: "default", Optional: true},
		{Name: "masquerade", Optional: true}, {Name: "ports", Optional: true}, {Name: "prune_ports", Default: false},
		{Name: "port_fwd", Optional: true}, {Name: "prune_port_fwd", Default: false}, {Name: "services", Optional: true},
		{Name: "prune_services", Default: false}, {Name: "interfaces", Optional: true}, {Name: "prune_interfaces", Default: false},
		{Name: "sources", Optional: true}, {Name: "prune_sources", Default: false}, {Name: "rich_rules", Optional: true},
		{Name: "prune_rich_rules", Default: false},
	}, Run: present},
	{Name: "service", Doc: `Have a service with exactly these ports and protocols.

name
    the service
ports
    its ports, such as 80/tcp
protocols
    its protocols`, Params: []modules.Param{{Name: "name"}, {Name: "ports", Optional: true}, {Name: "protocols", Optional: true}}, Run: service},
}}

func available(e *modules.Env) (bool, string) {
	return e.Which("firewall-cmd") != "", "firewall-cmd is not available, firewalld is probably not installed."
}

// failed makes the comment of a state of an error that Salt catches; others come back.
func failed(ret *states.Result, err error) (*states.Result, error) {
	var exec *modules.ExecError
	var missing *modules.MissingCommandError
	if errors.As(err, &exec) || errors.As(err, &missing) {
		return ret.As(states.False, "Error: "+err.Error())
	}
	return nil, err
}

// elements returns the elements that Python iterates over in a value.
func elements(v any) ([]any, error) {
	if !pytext.Truth(v) {
		return []any{}, nil
	}
	list := []any{}
	switch v := v.(type) {
	case []any:
		return v, nil
	case string:
		for _, r := range v {
			list = append(list, string(r))
		}
	case map[string]any:
		for k := range v {
			list = append(list, k)
		}
	default:
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
	return list, nil
}

// items returns the elements that Python's set() takes from a value, without duplicates, in order.
func items(v any) ([]any, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	var once []any
	for _, x := range list {
		switch x.(type) {
		case map[string]any:
			return nil, &modules.TypeError{Msg: "unhashable type: 'collections.OrderedDict'"}
		case []any:
			return nil, &modules.TypeError{Msg: "unhashable type: 'list'"}
		}
		if !has(once, x) {
			once = append(once, x)
		}
	}
	return once, nil
}

func has(list []any, v any) bool {
	return slices.ContainsFunc(list, func(x any) bool { return pyobj.Equal(x, v) })
}

// without returns the elements of a that are not in b.
func without(a, b []any) []any {
	var out []any
	for _, x := range a {
		if !has(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// ask returns the list that a function of the module firewalld returns.
func ask(ctx context.Context, c *states.Call, fun string, args []any, kw map[string]any) ([]any, error) {
	v, err := c.ExecKw(ctx, "firewalld."+fun, args, kw)
	list, _ := v.([]any)
	return list, err
}

func reload(ctx context.Context, c *states.Call, ret *states.Result) error {
	if !ret.Changed() {
		return nil
	}
	_, err := c.Exec(ctx, "firewalld.reload_rules")
	return err
}

func service(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	known, err := ask(ctx, c, "get_services", nil, nil)
	if err != nil {
		return nil, err
	}
	if !has(known, c.Value("name")) {
		// Salt makes the service in test mode too.
		if _, err := c.ExecKw(ctx, "firewalld.new_service", []any{c.Value("name")}, map[string]any{"restart": false}); err != nil {
			return nil, err
		}
	}
	for _, kind := range [...]string{"port", "protocol"} {
		if err := serviceParts(ctx, c, ret, kind); err != nil {
			return failed(ret, err)
		}
	}
	if err := reload(ctx, c, ret); err != nil {
		return nil, err
	}
	switch {
	case !ret.Changed():
		return ret.As(states.True, "'"+c.Name()+"' is already in the desired state.")
	case c.Test():
		return ret.As(states.None, "Configuration for '"+c.Name()+"' will change.")
	}
	return ret.As(states.True, "'"+c.Name()+"' was configured.")
}

// serviceParts gives the service its ports or protocols and takes the others from it.
func serviceParts(ctx context.Context, c *states.Call, ret *states.Result, kind string) error {
	key := kind + "s"
	wanted := c.Value(key)
	if !pytext.Truth(wanted) {
		wanted = []any{}
	}
	now, err := ask(ctx, c, "get_service_"+key, []any{c.Value("name")}, nil)
	if err != nil {
		return err
	}
	want, err := items(wanted)
	if err != nil {
		return err
	}
	add, remove := without(want, now), without(now, want)
	if !c.Test() {
		for _, x := range add {
			if _, err := c.Exec(ctx, "firewalld.add_service_"+kind, c.Value("name"), x); err != nil {
				return err
			}
		}
		for _, x := range remove {
			if _, err := c.Exec(ctx, "firewalld.remove_service_"+kind, c.Value("name"), x); err != nil {
				return err
			}
		}
	}
	if add != nil || remove != nil {
		ret.Changes[key] = map[string]any{"old": now, "new": wanted}
	}
	return nil
}
