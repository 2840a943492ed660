// Package lvm is Salt's state module "lvm": physical volumes, volume groups and logical volumes (salt/states/lvm.py).
package lvm

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "lvm".
var Module = &states.Module{Name: "lvm", Doc: "Physical volumes, volume groups and logical volumes.", Available: available, Funcs: []states.Def{
	{Name: "lv_absent", Doc: lvAbsentDoc, Params: []modules.Param{{Name: "name"}, {Name: "vgname", Optional: true}}, Run: lvAbsent},
	{Name: "lv_present", Doc: lvPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "vgname", Optional: true}, {Name: "size", Optional: true},
		{Name: "extents", Optional: true}, {Name: "snapshot", Optional: true}, {Name: "pv", Default: ""}, {Name: "thinvolume", Default: false},
		{Name: "thinpool", Default: false}, {Name: "force", Default: false}, {Name: "resizefs", Default: false}}, Kwargs: "kwargs", Run: lvPresent},
	{Name: "pv_absent", Doc: pvAbsentDoc, Params: []modules.Param{{Name: "name"}}, Run: pvAbsent},
	{Name: "pv_present", Doc: pvPresentDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: pvPresent},
	{Name: "vg_absent", Doc: vgAbsentDoc, Params: []modules.Param{{Name: "name"}}, Run: vgAbsent},
	{Name: "vg_present", Doc: vgPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "devices", Optional: true}}, Kwargs: "kwargs", Run: vgPresent},
}}

const (
	pvPresentDoc = `Have a device as physical volume.

name
    the device

Further arguments are those of pvcreate.`
	pvAbsentDoc = `Have a device not as physical volume.

name
    the device`
	vgPresentDoc = `Have a volume group.

name
    the group
devices
    its physical volumes: a list, or a text with commas

Further arguments are those of vgcreate.`
	vgAbsentDoc = `Have no such volume group.

name
    the group`
	lvPresentDoc = `Have a logical volume, of a certain size.

name
    the volume
vgname
    its group; for a thin volume group/pool
size, extents
    the size, one of them
snapshot
    the volume that it is a snapshot of
pv
    the physical volume to have it on
thinvolume, thinpool
    whether it is a thin volume, or the pool for some
force
    do not ask; without it no volume is made smaller
resizefs
    give the file system the new size as well

Further arguments are those of lvcreate.`
	lvAbsentDoc = `Have no such logical volume.

name
    the volume
vgname
    its group`
)

func available(e *modules.Env) (bool, string) {
	if e.Which("lvm") == "" {
		return false, "lvm command not found"
	}
	return true, ""
}

// display asks for a description: the answer, and whether there is one.
func display(ctx context.Context, c *states.Call, fun string, name any, quiet bool) (map[string]any, bool, error) {
	kw := map[string]any{}
	if quiet {
		kw["quiet"] = true
	}
	v, err := c.ExecKw(ctx, "lvm."+fun, []any{name}, kw)
	m, _ := v.(map[string]any)
	return m, pytext.Truth(v), err
}

// thing is a physical volume or a volume group.
type thing struct{ what, display, create, remove string }

func (t thing) present(ctx context.Context, c *states.Call, args []any) (*states.Result, error) {
	ret := c.Result()
	what := t.what + " " + c.Str("name")
	if c.Test() {
		return ret.As(states.None, what+" is set to be created")
	}
	made, err := c.ExecKw(ctx, "lvm."+t.create, append([]any{c.Value("name")}, args...), c.OwnKeywords())
	if err != nil {
		return nil, err
	}
	_, there, err := display(ctx, c, t.display, c.Value("name"), false)
	if err != nil {
		return nil, err
	}
	if !there {
		return ret.As(states.False, "Failed to create "+what)
	}
	ret.Changes["created"] = made
	return ret.As(states.True, "Created "+what)
}

func (t thing) absent(ctx context.Context, c *states.Call, gone string) (*states.Result, error) {
	ret := c.Result()
	what := t.what + " " + c.Str("name")
	_, there, err := display(ctx, c, t.display, c.Value("name"), true)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, what+gone)
	case c.Test():
		return ret.As(states.None, what+" is set to be removed")
	}
	done, err := c.Exec(ctx, "lvm."+t.remove, c.Value("name"))
	if err != nil {
		return nil, err
	}
	if _, there, err = display(ctx, c, t.display, c.Value("name"), true); err != nil {
		return nil, err
	}
	if there {
		return ret.As(states.False, "Failed to remove "+what)
	}
	ret.Changes["removed"] = done
	return ret.As(states.True, "Removed "+what)
}

func physical() thing { return thing{"Physical Volume", "pvdisplay", "pvcreate", "pvremove"} }
func group() thing    { return thing{"Volume Group", "vgdisplay", "vgcreate", "vgremove"} }

func pvPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	_, there, err := display(ctx, c, "pvdisplay", c.Value("name"), true)
	if err != nil {
		return nil, err
	}
	if there {
		return c.Result().As(states.True, "Physical Volume "+c.Str("name")+" already present")
	}
	return physical().present(ctx, c, nil)
}

func pvAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return physical().absent(ctx, c, " does not exist")
}

func vgAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return group().absent(ctx, c, " already absent")
}

func vgPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	devices := c.Value("devices")
	if s, ok := devices.(string); ok {
		list := []any{}
		for _, d := range strings.Split(s, ",") {
			list = append(list, d)
		}
		devices = list
	}
	_, there, err := display(ctx, c, "vgdisplay", c.Value("name"), true)
	if err != nil {
		return nil, err
	}
	if !there {
		return group().present(ctx, c, []any{devices})
	}
	ret := c.Result()
	ret.Result, ret.Comment = states.True, "Volume Group "+c.Str("name")+" already present"
	list, ok := devices.([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(devices) + "' object is not iterable"}
	}
	for _, d := range list {
		if err := member(ctx, c, ret, pytext.Str(d)); err != nil {
			return nil, err
		}
	}
	return ret, nil
}

// member has a device in the volume group.
func member(ctx context.Context, c *states.Call, ret *states.Result, device string) error {
	name := c.Str("name")
	real := posixpath.Real(device, func(p string) string {
		target, err := os.Readlink(c.Path(p))
		if err != nil {
			return ""
		}
		return target
	})
	in := func() (vg any, known bool, err error) {
		v, err := c.ExecKw(ctx, "lvm.pvdisplay", []any{real}, map[string]any{"real": true})
		all, _ := v.(map[string]any)
		m, known := all[real].(map[string]any)
		return m["Volume Group Name"], known && len(m) > 0, err
	}
	vg, known, err := in()
	switch {
	case err != nil:
		return err
	case !known:
		ret.Result = states.False
		ret.Comment += "\npv " + device + " is not present"
	case vg == name:
		ret.Comment += "\n" + device + " is part of Volume Group"
	case vg == "" || vg == "#orphans_lvm2":
		if _, err := c.Exec(ctx, "lvm.vgextend", name, device); err != nil {
			return err
		}
		if vg, _, err = in(); err != nil {
			return err
		}
		if vg == name {
			ret.Changes[device] = "added to " + name
			break
		}
		ret.Result = states.False
		ret.Comment += "\n" + device + " could not be added"
	default:
		ret.Result = states.False
		ret.Comment += "\n" + device + " is part of " + pytext.Str(vg)
	}
	return nil
}

// megabytes returns a size in megabytes; a size without a unit is in megabytes already (_convert_to_mb).
func megabytes(size any) (float64, error) {
	s := strings.ToLower(pytext.Str(size))
	invalid := func(text string) (float64, error) {
		return 0, &modules.PythonError{Type: "salt.exceptions.ArgumentValueError", Msg: text}
	}
	unit, number := "m", s
	switch {
	case s == "":
		return invalid("Size  is invalid.")
	case s[len(s)-1] >= '0' && s[len(s)-1] <= '9':
	case s[len(s)-1] == 'b' && len(s) > 1:
		unit, number = s[len(s)-2:len(s)-1], s[:len(s)-2]
	default:
		unit, number = s[len(s)-1:], s[:len(s)-1]
	}
	if number == "" || number[len(number)-1] < '0' || number[len(number)-1] > '9' {
		return invalid("Size " + pytext.Str(size) + " is invalid.")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, &modules.PythonError{Type: "ValueError", Msg: "invalid literal for int() with base 10: " + pytext.Repr(number)}
	}
	f := float64(n)
	switch unit {
	case "s":
		return f / 2048, nil
	case "m":
		return f, nil
	case "g":
		return f * (1 << 10), nil
	case "t":
		return f * (1 << 20), nil
	case "p":
		return f * (1 << 30), nil
	}
	return invalid("Unit " + unit + " is invalid.")
}
