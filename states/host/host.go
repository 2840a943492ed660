// Package host is Salt's state module "host": the names of addresses in the hosts file (salt/states/host.py).
package host

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "host".
var Module = &states.Module{Name: "host", Doc: "Names of addresses in the hosts file.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "ip"}}, Run: absent},
	{Name: "only", Doc: onlyDoc, Params: []modules.Param{{Name: "name"}, {Name: "hostnames"}}, Run: only},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "ip"}, {Name: "comment", Default: ""}, {Name: "clean", Default: false}}, Run: present},
}}

const (
	absentDoc = `Have no such name for an address.

name
    the name
ip
    the address, or a list of them`
	onlyDoc = `Have these names for an address, and no others.

name
    the address
hostnames
    the name, or a list of them`
	presentDoc = `Have a name for an address.

name
    the name
ip
    the address, or a list of them
comment
    a comment behind the address's line
clean
    take the name from other addresses`
)

func addresses(c *states.Call) []any {
	if list, ok := c.Value("ip").([]any); ok {
		return list
	}
	return []any{c.Value("ip")}
}

// pair is an address and what belongs to it.
type pair struct{ addr, text any }

// plan holds the changes to make.
type plan struct {
	add, remove, comment []pair
	comments             []string
}

func once(list []pair, p pair) []pair {
	if slices.Contains(list, p) {
		return list
	}
	return append(list, p)
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	v, err := c.Exec(ctx, "hosts.list_hosts")
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	p := compare(c, ret, all)
	name := c.Name()
	steps := [...]struct {
		list                     []pair
		fun, key                 string
		would, did, failed, tail string
		loses                    bool // the result, in test mode
	}{
		{p.add, "hosts.add_host", "added", "Host ", "Added host ", "Failed to add host ", "added", true},
		{p.comment, "hosts.set_comment", "comment_added", "Comment for ", "Set comment for host ", "Failed to add comment for host ", "added", false},
		{p.remove, "hosts.rm_host", "removed", "Host ", "Removed host ", "Failed to remove host ", "removed", true},
	}
	for _, s := range steps {
		for _, x := range s.list {
			what := name + " (" + pytext.Str(x.addr) + ")"
			if s.key == "comment_added" {
				what = pytext.Str(x.addr) + " (" + pytext.Str(x.text) + ")"
			}
			if c.Test() {
				if s.loses {
					ret.Result = states.None
				}
				p.comments = append(p.comments, s.would+what+" would be "+s.tail)
			} else {
				ok, err := c.Exec(ctx, s.fun, x.addr, x.text)
				if err != nil {
					return nil, err
				}
				if !pytext.Truth(ok) {
					ret.Result = states.False
					p.comments = append(p.comments, s.failed+what)
					continue
				}
				p.comments = append(p.comments, s.did+what)
			}
			changed, _ := ret.Changes[s.key].(map[string]any)
			if changed == nil {
				changed = map[string]any{}
				ret.Changes[s.key] = changed
			}
			addr := pytext.Str(x.addr)
			list, _ := changed[addr].([]any)
			changed[addr] = append(list, x.text)
		}
	}
	ret.Comments(p.comments...)
	return ret, nil
}

// compare finds out what the hosts file lacks and what it should not have.
func compare(c *states.Call, ret *states.Result, all map[string]any) *plan {
	p := &plan{}
	name, comment := c.Value("name"), c.Value("comment")
	list := addresses(c)
	for _, addr := range list {
		if _, ok := all[pytext.Str(addr)]; !ok {
			p.add = once(p.add, pair{addr, name})
			if pytext.Truth(comment) {
				p.comment = once(p.comment, pair{addr, comment})
			}
		}
	}
	var order []string
	for addr := range all {
		order = append(order, addr)
	}
	slices.Sort(order)
	for _, addr := range order {
		info, _ := all[addr].(map[string]any) // a comment of its own is a list
		aliases, _ := info["aliases"].([]any)
		there := slices.Contains(aliases, name)
		switch {
		case !slices.Contains(list, any(addr)):
			if there && c.Bool("clean") {
				p.remove = once(p.remove, pair{addr, name})
			} else if there {
				ret.Warn("Host " + c.Name() + " present for IP address " + addr + ". To get rid of this warning, either run this state with 'clean' set to True " +
					"to remove " + c.Name() + " from " + addr + ", or add " + addr + " to the 'ip' argument.")
			}
		case there:
			if now, ok := info["comment"]; pytext.Truth(comment) && (!ok || now != comment) {
				p.comment = once(p.comment, pair{addr, comment})
			} else {
				p.comments = append(p.comments, "Host "+c.Name()+" ("+addr+") already present")
			}
		case valid(addr):
			p.add = once(p.add, pair{addr, name})
			if pytext.Truth(comment) {
				p.comment = once(p.comment, pair{addr, comment})
			}
		default:
			ret.Result = states.False
			p.comments = append(p.comments, "Invalid IP Address for "+c.Name()+" ("+addr+")")
		}
	}
	return p
}

// valid reports whether a text is an address, with or without the length of a subnet.
func valid(addr string) bool {
	if strings.Contains(addr, "/") {
		_, err := netip.ParsePrefix(addr)
		return err == nil
	}
	a, err := netip.ParseAddr(addr)
	return err == nil && a.Zone() == ""
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.None
	var comments []string
	for _, addr := range addresses(c) {
		what := c.Name() + " (" + pytext.Str(addr) + ")"
		there, err := c.Exec(ctx, "hosts.has_pair", addr, c.Value("name"))
		if err != nil {
			return nil, err
		}
		if !pytext.Truth(there) {
			ret.Result = states.True
			comments = append(comments, "Host "+what+" already absent")
			continue
		}
		if c.Test() {
			comments = append(comments, "Host "+what+" needs to be removed")
			continue
		}
		done, err := c.Exec(ctx, "hosts.rm_host", addr, c.Value("name"))
		if err != nil {
			return nil, err
		}
		if pytext.Truth(done) {
			ret.Changes["host"] = c.Value("name")
			ret.Result = states.True
			comments = append(comments, "Removed host "+what)
		} else {
			ret.Result = states.False
			comments = append(comments, "Failed to remove host")
		}
	}
	ret.Comments(comments...)
	return ret, nil
}

func only(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	names, ok := c.Value("hostnames").([]any)
	switch v := c.Value("hostnames").(type) {
	case string:
		names = []any{v}
	default:
		if !ok {
			return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
		}
	}
	var wanted []string
	for _, n := range names {
		s, ok := n.(string)
		if !ok {
			return nil, modules.NoAttribute(n, "strip")
		}
		wanted = append(wanted, pytext.Strip(s))
	}
	v, err := c.Exec(ctx, "hosts.get_alias", c.Value("name"))
	if err != nil {
		return nil, err
	}
	var have []string
	list, _ := v.([]any)
	for _, x := range list {
		have = append(have, pytext.Str(x))
	}
	before, after := strings.Join(have, " "), strings.Join(wanted, " ")
	change := c.Name() + ` from "` + before + `" to "` + after + `"`
	switch {
	case before == after:
		return ret.As(states.True, "IP address "+c.Name()+` already set to "`+after+`"`)
	case c.Test():
		return ret.As(states.None, "Would change "+change)
	}
	done, err := c.Exec(ctx, "hosts.set_host", c.Value("name"), after)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "hosts.set_host failed to change "+change)
	}
	ret.Changes[c.Name()] = map[string]any{"old": before, "new": after}
	return ret.As(states.True, "successfully changed "+change)
}
