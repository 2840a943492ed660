// Package group is Salt's state module "group": groups of users (salt/states/group.py). The parts for Windows are
// missing, since there is no execution module for it.
package group

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "group".
var Module = &states.Module{Name: "group", Doc: "Groups of users.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "local", Default: false}}, Run: absent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "gid", Optional: true}, {Name: "system", Default: false},
		{Name: "addusers", Optional: true}, {Name: "delusers", Optional: true}, {Name: "members", Optional: true}, {Name: "non_unique", Default: false},
		{Name: "local", Default: false}}, Run: present},
}}

const (
	absentDoc = `Have no such group.

name
    the group
local
    look at and change local groups only`
	presentDoc = `Have a group with this number and these members.

name
    the group
gid, non_unique
    its number, and whether another group may have the same
system
    make a system group
members
    all its members
addusers, delusers
    users who must be members, and who must not
local
    look at and change local groups only`
)

func info(ctx context.Context, c *states.Call) (map[string]any, error) {
	kwargs := map[string]any{}
	if c.Bool("local") {
		kwargs["root"] = "/"
	}
	v, err := c.ExecKw(ctx, "group.info", []any{c.Value("name")}, kwargs)
	m, _ := v.(map[string]any)
	return m, err
}

// users returns an argument that lists users.
func users(c *states.Call, arg string) ([]any, error) {
	switch v := c.Value(arg).(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case string:
		list := []any{}
		for _, r := range v {
			list = append(list, string(r)) // Python iterates over the letters
		}
		return list, nil
	default:
		if !pytext.Truth(v) {
			return []any{}, nil
		}
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
}

// wish holds what the state wants.
type wish struct {
	gid               any
	members, add, del []any
}

// changes returns the changes to make, in the order of Salt's dict, or nil if there is no such group.
func (w *wish) changes(ctx context.Context, c *states.Call) (*pyobj.Dict, error) {
	have, err := info(ctx, c)
	if err != nil || len(have) == 0 {
		return nil, err
	}
	d := &pyobj.Dict{}
	if pytext.Truth(w.gid) {
		n, err := modules.ToInt(w.gid)
		if err != nil {
			return pyobj.NewDict("result", false, "comment", "Invalid gid"), nil
		}
		if !pyobj.Equal(have["gid"], n) {
			_ = d.Set("gid", n)
		}
	}
	current, _ := have["members"].([]any)
	if w.members != nil && !sameSet(current, w.members) {
		if len(w.members) == 0 {
			set := &pyobj.Set{}
			for _, u := range current {
				_ = set.Add(u)
			}
			_ = d.Set("delusers", set)
		} else {
			_ = d.Set("members", pyobj.From(c.Value("members")))
		}
	}
	pick := func(key string, list []any, there bool) {
		var some []any
		for _, u := range list {
			if slices.Contains(current, u) == there {
				some = append(some, u)
			}
		}
		if some != nil {
			_ = d.Set(key, pyobj.NewList(some...))
		}
	}
	pick("addusers", w.add, false)
	pick("delusers", w.del, true)
	return d, nil
}

func sameSet(a, b []any) bool {
	in := func(list []any) func(any) bool { return func(v any) bool { return !slices.Contains(list, v) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	w := &wish{gid: c.Value("gid")}
	if c.Value("members") != nil && (c.Value("addusers") != nil || c.Value("delusers") != nil) {
		return ret.As(states.None, `Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. `)
	}
	var err error
	for _, arg := range [...]struct {
		name string
		list *[]any
	}{{"members", &w.members}, {"addusers", &w.add}, {"delusers", &w.del}} {
		if *arg.list, err = users(c, arg.name); err != nil {
			return nil, err
		}
	}
	for _, u := range w.add {
		if slices.Contains(w.del, u) {
			return ret.As(states.None, "Error. Same user(s) can not be added and deleted simultaneously")
		}
	}
	changes, err := w.changes(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case changes == nil:
		return w.create(ctx, c, ret)
	case changes.Len() == 0:
		return ret.As(states.True, "Group "+c.Name()+" is present and up to date")
	}
	ret.Comment = "The following group attributes are set to be changed:\n"
	for k, v := range changes.All() {
		ret.Comment += pyobj.Str(k) + ": " + pyobj.Str(v) + "\n"
	}
	if c.Test() {
		return ret.As(states.None, ret.Comment)
	}
	if err := w.apply(ctx, c, changes); err != nil {
		return nil, err
	}
	c.Context().Set("group.getent", nil)
	if changes, err = w.changes(ctx, c); err != nil {
		return nil, err
	}
	if changes != nil && changes.Len() > 0 {
		ret.Changes["Failed"] = pyobj.Plain(changes)
		return ret.As(states.False, ret.Comment+"Some changes could not be applied")
	}
	ret.Changes["Final"] = "All changes applied successfully"
	if changes == nil { // another process removed it meanwhile
		return w.create(ctx, c, ret)
	}
	return ret.As(states.True, ret.Comment)
}

// apply makes the changes.
func (w *wish) apply(ctx context.Context, c *states.Call, changes *pyobj.Dict) error {
	name := c.Value("name")
	for k, v := range changes.All() {
		switch k {
		case "gid":
			if _, err := c.ExecKw(ctx, "group.chgid", []any{name, w.gid}, map[string]any{"non_unique": c.Value("non_unique")}); err != nil {
				return err
			}
		case "addusers", "delusers":
			list, _ := pyobj.Plain(v).([]any)
			for _, u := range list {
				if _, err := c.Exec(ctx, "group."+strings.TrimSuffix(k.(string), "s"), name, u); err != nil {
					return err
				}
			}
		case "members":
			if err := w.setMembers(ctx, c, w.members); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *wish) setMembers(ctx context.Context, c *states.Call, list []any) error {
	names := make([]string, len(list))
	for i, u := range list {
		s, ok := u.(string)
		if !ok {
			return &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(u) + " found"}
		}
		names[i] = s
	}
	_, err := c.Exec(ctx, "group.members", c.Value("name"), strings.Join(names, ","))
	return err
}

// create makes the group.
func (w *wish) create(ctx context.Context, c *states.Call, ret *states.Result) (*states.Result, error) {
	name := c.Name()
	if c.Test() {
		return ret.As(states.None, "Group "+name+" set to be added")
	}
	all, err := c.Exec(ctx, "group.getent")
	if err != nil {
		return nil, err
	}
	if list, _ := all.([]any); w.gid != nil && !c.Bool("non_unique") {
		for _, x := range list {
			if g, _ := x.(map[string]any); pyobj.Equal(g["gid"], w.gid) {
				return ret.As(states.False, "Group "+name+" is not present but gid "+pytext.Str(w.gid)+" is already taken by group "+pytext.Str(g["name"]))
			}
		}
	}
	made, err := c.ExecKw(ctx, "group.add", []any{c.Value("name")}, map[string]any{"gid": w.gid, "system": c.Value("system"),
		"non_unique": c.Value("non_unique"), "local": c.Value("local")})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(made) {
		return ret.As(states.False, "Failed to create new group "+name)
	}
	list := w.members
	if len(w.add) > 0 {
		list = w.add
	}
	if len(list) > 0 {
		if err := w.setMembers(ctx, c, list); err != nil {
			return nil, err
		}
	}
	c.Context().Set("group.getent", nil)
	ret.Result, ret.Comment = states.True, "New group "+name+" created"
	if ret.Changes, err = info(ctx, c); err != nil {
		return nil, err
	}
	changes, err := w.changes(ctx, c)
	if err != nil {
		return nil, err
	}
	if changes != nil && changes.Len() > 0 {
		ret.Changes = map[string]any{"Failed": pyobj.Plain(changes)}
		return ret.As(states.False, "Group "+name+" has been created but, some changes could not be applied")
	}
	if ret.Changes == nil {
		ret.Changes = map[string]any{}
	}
	return ret, nil
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	have, err := info(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case len(have) == 0:
		return ret.As(states.True, "Group not present")
	case c.Test():
		return ret.As(states.None, "Group "+c.Name()+" is set for removal")
	}
	gone, err := c.ExecKw(ctx, "group.delete", []any{c.Value("name")}, map[string]any{"local": c.Value("local")})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(gone) {
		return ret.As(states.False, "Failed to remove group "+c.Name())
	}
	ret.Changes[c.Name()] = ""
	return ret.As(states.True, "Removed group "+c.Name())
}
