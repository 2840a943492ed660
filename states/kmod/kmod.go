// Package kmod is Salt's state module "kmod": modules of the kernel (salt/states/kmod.py).
package kmod

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// kmod.present, kmod.absent differ: several modules stand in their order; stock shows them in that of a set, which is another in each process.

// Module is "kmod".
var Module = &states.Module{
	Name: "kmod", Doc: "Modules of the kernel.", Needs: "kmod.available", Otherwise: "kmod module could not be loaded",
	Funcs: []states.Def{
		{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "persist", Default: false}, {Name: "comment", Default: true},
			{Name: "mods", Optional: true}}, Run: absent},
		{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "persist", Default: false}, {Name: "mods", Optional: true}}, Run: present},
	},
}

const (
	presentDoc = `Have modules of the kernel loaded.

name
    the module, if there are no mods
persist
    load it when the host starts as well
mods
    several modules`
	absentDoc = `Have modules of the kernel not loaded.

name
    the module, if there are no mods
persist
    do not load it when the host starts either
comment
    leave the line in the file as a comment
mods
    several modules`
)

// list asks for loaded modules, or for those that are loaded when the host starts.
func list(ctx context.Context, c *states.Call, fun string, args ...any) ([]string, error) {
	v, err := c.Exec(ctx, fun, args...)
	all, _ := v.([]any)
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = pytext.Str(x)
	}
	return out, err
}

// wanted returns the modules that the state names, without duplicates.
func wanted(c *states.Call) []string {
	many, ok := c.Value("mods").([]any)
	if !ok {
		return []string{c.Str("name")}
	}
	var out []string
	for _, x := range many {
		if s := pytext.Str(x); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// say adds a line to a comment.
func say(ret *states.Result, text string) {
	if ret.Comment != "" {
		text = pytext.StripRight(ret.Comment) + "\n" + text
	}
	ret.Comment = text
}

// one chooses between the words for one module and for several, and adds nothing without modules.
func one(ret *states.Result, mods []string, before, single, several string) {
	switch len(mods) {
	case 0:
	case 1:
		say(ret, before+" "+mods[0]+single)
	default:
		say(ret, before+"s "+strings.Join(mods, ", ")+several)
	}
}

// split cuts a list into the members that another has and the rest.
func split(mods, have []string) (in, out []string) {
	for _, m := range mods {
		if slices.Contains(have, m) {
			in = append(in, m)
		} else {
			out = append(out, m)
		}
	}
	return in, out
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	mods := wanted(c)
	have, err := list(ctx, c, "kmod.mod_list")
	if err == nil && c.Bool("persist") {
		var lasting []string
		lasting, err = list(ctx, c, "kmod.mod_list", true)
		have, _ = split(have, lasting)
	}
	if err != nil {
		return nil, err
	}
	there, missing := split(mods, have)
	one(ret, there, "Kernel module", " is already present", " are already present")
	count := 1
	if many, ok := c.Value("mods").([]any); ok {
		count = len(many)
	}
	if len(there) == count {
		return ret, nil
	}
	if c.Test() {
		ret.Result = states.None
		if len(missing) == 0 {
			say(ret, "Kernel modules  are set to be loaded")
		}
		one(ret, missing, "Kernel module", " is set to be loaded", " are set to be loaded")
		return ret, nil
	}
	known, err := list(ctx, c, "kmod.available")
	if err != nil {
		return nil, err
	}
	loadable, unknown := split(missing, known)
	one(ret, unknown, "Kernel module", " is unavailable", " are unavailable")
	if unknown != nil {
		ret.Result = states.False
	}
	return ret, change(ctx, c, ret, loadable, "kmod.load", []any{c.Value("persist")}, "load", "Loaded", "loaded")
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	mods := wanted(c)
	have, err := list(ctx, c, "kmod.mod_list")
	if err == nil && c.Bool("persist") {
		var lasting []string
		lasting, err = list(ctx, c, "kmod.mod_list", true)
		have = append(have, lasting...)
	}
	if err != nil {
		return nil, err
	}
	there, _ := split(mods, have)
	if there == nil {
		if many, ok := c.Value("mods").([]any); ok {
			mods = nil
			for _, x := range many {
				mods = append(mods, pytext.Str(x))
			}
		}
		if len(mods) == 1 {
			return ret.As(states.True, "Kernel module "+mods[0]+" is already removed")
		}
		return ret.As(states.True, "Kernel modules "+strings.Join(mods, ", ")+" are already removed")
	}
	if c.Test() {
		ret.Result = states.None
		one(ret, there, "Kernel module", " is set to be removed", " are set to be removed")
		return ret, nil
	}
	return ret, change(ctx, c, ret, there, "kmod.remove", []any{c.Value("persist"), c.Value("comment")}, "remove", "Removed", "removed")
}

// change loads or removes modules and puts the outcome into the result.
func change(ctx context.Context, c *states.Call, ret *states.Result, mods []string, fun string, args []any, verb, Done, done string) error {
	var yes, no, failed, others []string
	for _, m := range mods {
		if fun == "kmod.load" && slices.Contains(others, m) {
			yes = append(yes, m)
			continue
		}
		v, err := c.Exec(ctx, fun, append([]any{m}, args...)...)
		if err != nil {
			return err
		}
		result, ok := v.([]any)
		switch {
		case !ok:
			failed = append(failed, "Failed to "+verb+" kernel module "+m+": "+pytext.Str(v))
		case len(result) == 0:
			no = append(no, m)
		default:
			yes = append(yes, m)
			for _, x := range result {
				ret.Changes[pytext.Str(x)] = done
				others = append(others, pytext.Str(x))
			}
		}
	}
	one(ret, yes, Done+" kernel module", "", "")
	one(ret, no, "Failed to "+verb+" kernel module", "", "")
	for _, text := range failed {
		say(ret, text)
	}
	if no != nil || failed != nil {
		ret.Result = states.False
	}
	return nil
}
