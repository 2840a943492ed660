package firewalld

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, err := zone(ctx, c, c.Result())
	if err == nil {
		err = reload(ctx, c, ret)
	}
	if err != nil {
		return nil, err
	}
	return ret, nil
}

func zone(ctx context.Context, c *states.Call, ret *states.Result) (*states.Result, error) {
	if err := configure(ctx, c, ret); err != nil {
		return failed(ret, err)
	}
	switch {
	case !ret.Changed():
		return ret.As(states.True, "'"+c.Name()+"' is already in the desired state.")
	case !c.Test():
		return ret.As(states.True, "'"+c.Name()+"' was configured.")
	}
	text, err := output.Render("nested", ret.Changes, output.Options{Color: pytext.Truth(c.Opt("color"))})
	if err != nil {
		return nil, err
	}
	ret.Changes = map[string]any{}
	return ret.As(states.None, "Configuration for '"+c.Name()+"' will change:\n"+pytext.StripRight(text))
}

// part is a list of things in a zone: the state's argument for it and the functions that show, add and remove.
type part struct{ arg, key, get, add, remove string }

func configure(ctx context.Context, c *states.Call, ret *states.Result) error {
	zones, err := ask(ctx, c, "get_zones", nil, map[string]any{"permanent": true})
	if err != nil {
		return err
	}
	if !has(zones, c.Value("name")) {
		if !c.Test() {
			if _, err := c.Exec(ctx, "firewalld.new_zone", c.Value("name")); err != nil {
				return err
			}
		}
		ret.Changes[c.Name()] = map[string]any{"old": zones, "new": c.Value("name")}
	}
	if err := parts(ctx, c, ret, part{"block_icmp", "icmp_types", "list_icmp_block", "block_icmp", "allow_icmp"}); err != nil {
		return err
	}
	if err := setDefault(ctx, c, ret); err != nil {
		return err
	}
	if err := setMasquerade(ctx, c, ret); err != nil {
		return err
	}
	if err := parts(ctx, c, ret, part{"ports", "ports", "list_ports", "add_port", "remove_port"}); err != nil {
		return err
	}
	if err := forwards(ctx, c, ret); err != nil {
		return err
	}
	for _, p := range [...]part{
		{"services", "services", "list_services", "add_service", "remove_service"},
		{"interfaces", "interfaces", "get_interfaces", "add_interface", "remove_interface"},
		{"sources", "sources", "get_sources", "add_source", "remove_source"},
		{"rich_rules", "rich_rules", "get_rich_rules", "add_rich_rule", "remove_rich_rule"},
	} {
		if err := parts(ctx, c, ret, p); err != nil {
			return err
		}
	}
	return nil
}

func setDefault(ctx context.Context, c *states.Call, ret *states.Result) error {
	if !c.Bool("default") {
		return nil
	}
	now, err := c.Exec(ctx, "firewalld.default_zone")
	if err != nil || now == c.Value("name") {
		return err
	}
	if !c.Test() {
		if _, err := c.Exec(ctx, "firewalld.set_default_zone", c.Value("name")); err != nil {
			return err
		}
	}
	ret.Changes["default"] = map[string]any{"old": now, "new": c.Value("name")}
	return nil
}

func setMasquerade(ctx context.Context, c *states.Call, ret *states.Result) error {
	now, err := c.ExecKw(ctx, "firewalld.get_masquerade", []any{c.Value("name")}, map[string]any{"permanent": true})
	if err != nil || c.Value("masquerade") == nil || c.Bool("masquerade") == pytext.Truth(now) {
		return err
	}
	fun, done := "firewalld.add_masquerade", "Masquerading successfully set."
	if !c.Bool("masquerade") {
		fun, done = "firewalld.remove_masquerade", "Masquerading successfully disabled."
	}
	if !c.Test() {
		if _, err := c.ExecKw(ctx, fun, []any{c.Value("name")}, map[string]any{"permanent": true}); err != nil {
			return err
		}
	}
	ret.Changes["masquerade"] = map[string]any{"old": now, "new": done}
	return nil
}

// parts adds to the zone what the argument lists and the zone lacks, and takes out the rest if the state says so.
func parts(ctx context.Context, c *states.Call, ret *states.Result, p part) error {
	prune := c.Bool("prune_" + p.arg)
	if !c.Bool(p.arg) && !prune {
		return nil
	}
	given := c.Value(p.arg)
	if !pytext.Truth(given) {
		given = []any{}
	}
	permanent := map[string]any{"permanent": true}
	now, err := ask(ctx, c, p.get, []any{c.Value("name")}, permanent)
	if err != nil {
		return err
	}
	want, err := items(given)
	if err != nil {
		return err
	}
	if p.arg == "block_icmp" && len(want) > 0 {
		if given, want, err = knownICMP(ctx, c, given, want); err != nil {
			return err
		}
	}
	change := func(fun string, x any) error {
		if c.Test() {
			return nil
		}
		args := []any{c.Value("name"), x}
		if p.arg == "services" {
			args = []any{x, c.Value("name")}
		}
		_, err := c.ExecKw(ctx, "firewalld."+fun, args, permanent)
		return err
	}
	add, remove := without(want, now), []any(nil)
	for _, x := range add {
		if err := change(p.add, x); err != nil {
			return err
		}
	}
	if prune {
		remove = without(now, want)
	} else {
		given = append(append([]any{}, now...), add...) // in stock in the order of a set, which is any
	}
	for _, x := range remove {
		if err := change(p.remove, x); err != nil {
			return err
		}
	}
	if add != nil || remove != nil {
		ret.Changes[p.key] = map[string]any{"old": now, "new": given}
	}
	return nil
}

// knownICMP leaves out the kinds of messages that the firewall does not know.
func knownICMP(ctx context.Context, c *states.Call, given any, want []any) (any, []any, error) {
	known, err := ask(ctx, c, "get_icmp_types", nil, map[string]any{"permanent": true})
	if err != nil {
		return nil, nil, err
	}
	unknown := without(want, known)
	for _, x := range unknown {
		c.Logger().Error(pytext.Str(x) + " is an invalid ICMP type")
	}
	list, ok := given.([]any)
	if !ok && unknown != nil {
		return nil, nil, modules.NoAttribute(given, "remove")
	}
	if unknown != nil {
		given = append([]any{}, without(list, unknown)...)
	}
	return given, without(want, unknown), nil
}

// forwarding is one forwarded port.
type forwarding struct{ src, dest, proto, addr string }

func (f forwarding) value() any {
	return map[string]any{"Source port": f.src, "Destination port": f.dest, "Protocol": f.proto, "Destination address": f.addr}
}

// forwardings reads the argument port_fwd.
func forwardings(v any) ([]forwarding, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	out := make([]forwarding, 0, len(list))
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return nil, modules.NoAttribute(x, "split")
		}
		p := strings.Split(s, ":")
		switch {
		case len(p) > 4:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 4)"}
		case len(p) < 3:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 3, got " + pytext.Str(int64(len(p))) + ")"}
		case len(p) == 3:
			p = append(p, "")
		}
		out = append(out, forwarding{p[0], p[1], p[2], p[3]})
	}
	return out, nil
}

// forwards is like parts for forwarded ports.
func forwards(ctx context.Context, c *states.Call, ret *states.Result) error {
	prune := c.Bool("prune_port_fwd")
	if !c.Bool("port_fwd") && !prune {
		return nil
	}
	got, err := ask(ctx, c, "list_port_fwd", []any{c.Value("name")}, map[string]any{"permanent": true})
	if err != nil {
		return err
	}
	want, err := forwardings(c.Value("port_fwd"))
	if err != nil {
		return err
	}
	now := []forwarding{}
	for _, x := range got {
		m, _ := x.(map[string]any)
		now = append(now, forwarding{
			pytext.Str(m["Source port"]), pytext.Str(m["Destination port"]), pytext.Str(m["Protocol"]), pytext.Str(m["Destination address"]),
		})
	}
	call := func(fun string, f forwarding, kw map[string]any) error {
		if c.Test() {
			return nil
		}
		_, err := c.ExecKw(ctx, "firewalld."+fun, []any{c.Value("name"), f.src, f.dest, f.proto, f.addr}, kw)
		return err
	}
	all, changed := append([]forwarding{}, now...), false
	for _, f := range missing(want, now) {
		if err := call("add_port_fwd", f, map[string]any{"permanent": true, "force_masquerade": false}); err != nil {
			return err
		}
		all, changed = append(all, f), true
	}
	if prune {
		all = want
		for _, f := range missing(now, want) {
			if err := call("remove_port_fwd", f, map[string]any{"permanent": true}); err != nil {
				return err
			}
			changed = true
		}
	}
	if changed {
		ret.Changes["port_fwd"] = map[string]any{"old": forwardValues(now), "new": forwardValues(all)}
	}
	return nil
}

func missing(a, b []forwarding) []forwarding {
	var out []forwarding
	for _, f := range a {
		if !slices.Contains(b, f) && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func forwardValues(list []forwarding) []any {
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = f.value()
	}
	return out
}
