// Package grains is Salt's state module "grains": the minion's own grains (salt/states/grains.py).
package grains

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "grains".
var Module = &states.Module{Name: "grains", Doc: "The minion's own grains.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{name, {Name: "destructive", Default: false}, delimiter, force}, Run: absent},
	{Name: "append", Doc: appendDoc, Params: []modules.Param{name, value, {Name: "convert", Default: false}, delimiter}, Run: appendTo},
	{Name: "exists", Doc: existsDoc, Params: []modules.Param{name, delimiter}, Run: exists},
	{Name: "list_absent", Doc: listAbsentDoc, Params: []modules.Param{name, value, delimiter}, Run: listAbsent},
	{Name: "list_present", Doc: listPresentDoc, Params: []modules.Param{name, value, delimiter}, Run: listPresent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{name, value, delimiter, force}, Run: present},
}}

var (
	name      = modules.Param{Name: "name"}
	value     = modules.Param{Name: "value"}
	delimiter = modules.Param{Name: "delimiter", Default: ":"}
	force     = modules.Param{Name: "force", Default: false}
)

const (
	existsDoc = `Check that a grain is there.

name
    the grain; parts of nested ones are separated by the delimiter
delimiter
    the delimiter`
	presentDoc = `Give a grain a value.

name
    the grain; parts of nested ones are separated by the delimiter
value
    the value
delimiter
    the delimiter
force
    overwrite what cannot be nested in`
	listPresentDoc = `Have a value in a grain that is a list.

name
    the grain
value
    the value, or a list of them
delimiter
    the delimiter`
	listAbsentDoc = `Have no such value in a grain that is a list.

name
    the grain
value
    the value, or a list of them
delimiter
    the delimiter`
	absentDoc = `Have no value in a grain, or no such grain.

name
    the grain
destructive
    remove it instead of setting it to None
delimiter
    the delimiter
force
    overwrite what cannot be nested in`
	appendDoc = `Append a value to a grain that is a list.

name
    the grain
value
    the value
convert
    make a list of a grain that is none
delimiter
    the delimiter`
)

// nowhere is the default passed to grains.get, which shows that there is no such grain.
const nowhere = "\x00nowhere"

// begin is the grain's name with the usual delimiter, and a result for it.
func begin(c *states.Call) (string, *states.Result) {
	ret := c.Result()
	ret.Name = strings.ReplaceAll(c.Name(), c.Str("delimiter"), ":")
	ret.Result = states.True
	return ret.Name, ret
}

// valueOf returns the argument value with its dictionaries in the order of the SLS, as they are written to the grains
// file.
func valueOf(c *states.Call) any {
	v, _ := c.InOrder("value")
	return v
}

// get returns the grain as the minion has it, with ordered dictionaries (package modules/pyobj).
func get(ctx context.Context, c *states.Call, grain string, byDefault ...any) (any, error) {
	return c.ExecOrdered(ctx, "grains.get", append([]any{grain}, byDefault...), nil)
}

func contains(list *pyobj.List, v any) bool {
	return slices.ContainsFunc(list.Items, func(x any) bool { return pyobj.Equal(x, v) })
}

// members returns the items of a list, or v itself as the only one.
func members(v any) []any {
	if list, ok := v.(*pyobj.List); ok {
		return list.Items
	}
	return []any{v}
}

func exists(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	have, err := c.Exec(ctx, "grains.get", grain, nowhere)
	if err != nil {
		return nil, err
	}
	if have == nowhere {
		return ret.As(states.False, "Grain does not exist")
	}
	return ret.As(states.True, "Grain exists")
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	val := valueOf(c)
	have, err := get(ctx, c, grain, nowhere)
	if err != nil {
		return nil, err
	}
	if have != nowhere && pyobj.Equal(have, val) {
		return ret.As(states.True, "Grain is already set")
	}
	if c.Test() {
		if have == nowhere {
			ret.Changes["new"] = grain
			return ret.As(states.None, "Grain "+grain+" is set to be added")
		}
		ret.Changes["changed"] = map[string]any{grain: val}
		return ret.As(states.None, "Grain "+grain+" is set to be changed")
	}
	if ret, err = set(ctx, c, grain, val, map[string]any{"force": c.Value("force")}); err != nil {
		return nil, err
	}
	if ret.Result == states.True && ret.Changed() {
		ret.Comment = "Set grain " + grain + " to " + c.Text(val)
	}
	return ret, nil
}

// set calls grains.set and returns its result, which has the form of a state's result.
func set(ctx context.Context, c *states.Call, grain string, val any, kwargs map[string]any) (*states.Result, error) {
	v, err := c.ExecOrdered(ctx, "grains.set", []any{grain, val}, kwargs)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not subscriptable"}
	}
	m := entries(d)
	if changes, ok := m["changes"].(*pyobj.Dict); ok {
		m["changes"] = entries(changes)
	}
	ret := states.ResultOf(m)
	ret.Name = grain
	return ret, nil
}

// entries returns a dictionary as a map, whose values stay ordered.
func entries(d *pyobj.Dict) map[string]any {
	m := make(map[string]any, d.Len())
	for k, v := range d.All() {
		m[pyobj.Str(k)] = v
	}
	return m
}

func listPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	val := valueOf(c)
	have, err := get(ctx, c, grain)
	if err != nil {
		return nil, err
	}
	if pyobj.Truth(have) {
		list, ok := have.(*pyobj.List)
		if !ok {
			return ret.As(states.False, "Grain "+grain+" is not a valid list")
		}
		if many, ok := val.(*pyobj.List); ok {
			there, rest := &pyobj.List{}, &pyobj.List{}
			for _, v := range many.Items {
				if contains(list, v) {
					there.Items = append(there.Items, v)
				} else {
					rest.Items = append(rest.Items, v)
				}
			}
			if len(rest.Items) == 0 {
				return ret.As(states.True, "Value "+c.Text(val)+" is already in grain "+grain)
			}
			val = rest
			if len(there.Items) > 0 {
				ret.Comment = "Removed value " + c.Text(there) + ` from update due to value found in "` + grain + "\".\n"
			}
		} else if contains(list, val) {
			return ret.As(states.True, "Value "+c.Text(val)+" is already in grain "+grain)
		}
		if c.Test() {
			ret.Changes["new"] = have
			return ret.As(states.None, "Value "+c.Text(val)+" is set to be appended to grain "+grain)
		}
	}
	if c.Test() {
		ret.Changes["new"] = have
		return ret.As(states.None, "Grain "+grain+" is set to be added")
	}
	added, err := c.ExecOrdered(ctx, "grains.append", []any{grain, val}, nil)
	if err != nil {
		return nil, err
	}
	now, err := get(ctx, c, grain, []any{})
	if err != nil {
		return nil, err
	}
	list, ok := now.(*pyobj.List)
	for _, v := range members(val) {
		if !ok || !contains(list, v) {
			return ret.As(states.False, "Failed append value "+c.Text(val)+" to grain "+grain)
		}
	}
	ret.Changes["new"] = added
	return ret.As(states.True, ret.Comment+"Append value "+c.Text(val)+" to grain "+grain)
}

func listAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	have, err := get(ctx, c, grain, nil)
	if err != nil {
		return nil, err
	}
	if !pyobj.Truth(have) {
		return ret.As(states.True, "Grain "+grain+" does not exist")
	}
	list, ok := have.(*pyobj.List)
	if !ok {
		return ret.As(states.False, "Grain "+grain+" is not a valid list")
	}
	var comments []string
	deleted := []any{}
	for _, v := range members(valueOf(c)) {
		text := c.Text(v)
		switch {
		case !contains(list, v):
			comments = append(comments, "Value "+text+" is absent from grain "+grain)
			continue
		case c.Test():
			ret.Result = states.None
			comments = append(comments, "Value "+text+" in grain "+grain+" is set to be deleted")
		default:
			if _, err := c.Exec(ctx, "grains.remove", grain, v); err != nil {
				return nil, err
			}
			comments = append(comments, "Value "+text+" was deleted from grain "+grain)
		}
		deleted = append(deleted, v)
		ret.Changes["deleted"] = deleted
	}
	ret.Comments(comments...)
	return ret, nil
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	destructive := c.Value("destructive") == true
	have, err := c.Exec(ctx, "grains.get", grain, nowhere)
	if err != nil {
		return nil, err
	}
	if have == nowhere {
		return ret.As(states.True, "Grain "+grain+" does not exist")
	}
	if c.Test() {
		switch {
		case destructive:
			ret.Changes["deleted"] = grain
			return ret.As(states.None, "Grain "+grain+" is set to be deleted")
		case have == nil:
			return ret.As(states.None, "")
		}
		ret.Changes["grain"], ret.Changes["value"] = grain, nil
		return ret.As(states.None, "Value for grain "+grain+" is set to be deleted (None)")
	}
	if ret, err = set(ctx, c, grain, nil, map[string]any{"destructive": c.Value("destructive"), "force": c.Value("force")}); err != nil {
		return nil, err
	}
	switch {
	case ret.Result == states.False:
	case destructive:
		ret.Comment, ret.Changes = "Grain "+grain+" was deleted", map[string]any{"deleted": grain}
	case have != nil:
		ret.Comment, ret.Changes = "Value for grain "+grain+" was set to None", map[string]any{"grain": grain, "value": nil}
	}
	return ret, nil
}

func appendTo(ctx context.Context, c *states.Call) (*states.Result, error) {
	grain, ret := begin(c)
	val := valueOf(c)
	have, err := get(ctx, c, grain, nil)
	if err != nil {
		return nil, err
	}
	if _, known := c.GrainData()[grain]; !pyobj.Truth(have) && !known {
		return ret.As(states.False, "Grain "+grain+" does not exist")
	}
	list, isList := have.(*pyobj.List)
	text := c.Text(val)
	switch {
	case isList && contains(list, val):
		return ret.As(states.True, "Value "+text+" is already in the list for grain "+grain)
	case isList && c.Test():
		ret.Changes["added"] = val
		return ret.As(states.None, "Value "+text+" in grain "+grain+" is set to be added")
	case isList:
		_, err = c.Exec(ctx, "grains.append", grain, val)
	case c.Value("convert") != true:
		return ret.As(states.False, "Grain "+grain+" is not a valid list")
	case c.Test():
		ret.Changes["added"] = val
		return ret.As(states.None, "Grain "+grain+" is set to be converted to list and value "+text+" will be added")
	default:
		now := pyobj.NewList(val)
		if have != nil {
			now = pyobj.NewList(have, val)
		}
		_, err = c.Exec(ctx, "grains.setval", grain, now)
	}
	if err != nil {
		return nil, err
	}
	ret.Changes["added"] = val
	return ret.As(states.True, "Value "+text+" was added to grain "+grain)
}
