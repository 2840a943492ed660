package lvm

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// volume is lvm.lv_present while it runs.
type volume struct {
	*states.Call
	ctx  context.Context
	ret  *states.Result
	name string
	path string
	size float64
}

func lvPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	v := &volume{Call: c, ctx: ctx, ret: c.Result(), name: c.Str("name")}
	if c.Bool("extents") && c.Bool("size") {
		return v.ret.As(states.False, "Only one of extents or size can be specified.")
	}
	if c.Bool("size") {
		var err error
		if v.size, err = megabytes(c.Value("size")); err != nil {
			return nil, err
		}
	}
	var snapshot any
	if c.Bool("snapshot") {
		snapshot, v.name = c.Value("name"), c.Str("snapshot")
	}
	vg := pytext.Str(c.Value("vgname"))
	if c.Bool("thinvolume") {
		vg, _, _ = strings.Cut(vg, "/")
	}
	v.path = "/dev/" + vg + "/" + v.name
	info, err := v.info()
	if err != nil {
		return nil, err
	}
	if len(info) == 0 {
		return v.create(snapshot)
	}
	v.ret.Result, v.ret.Comment = states.True, "Logical Volume "+v.name+" already present"
	if !c.Bool("size") && !c.Bool("extents") {
		return v.ret, nil
	}
	return v.resize(info)
}

func (v *volume) info() (map[string]any, error) {
	all, _, err := display(v.ctx, v.Call, "lvdisplay", v.path, true)
	m, _ := all[v.path].(map[string]any)
	return m, err
}

func (v *volume) create(snapshot any) (*states.Result, error) {
	if v.Test() {
		return v.ret.As(states.None, "Logical Volume "+v.name+" is set to be created")
	}
	kw := v.OwnKeywords()
	for _, key := range [...]string{"size", "extents", "pv", "thinvolume", "thinpool", "force"} {
		kw[key] = v.Value(key)
	}
	kw["snapshot"] = snapshot
	made, err := v.ExecKw(v.ctx, "lvm.lvcreate", []any{v.name, v.Value("vgname")}, kw)
	if err != nil {
		return nil, err
	}
	_, there, err := display(v.ctx, v.Call, "lvdisplay", v.path, false)
	if err != nil {
		return nil, err
	}
	if !there {
		text, err := output(made, "Output from lvcreate")
		if err != nil {
			return nil, err
		}
		return v.ret.As(states.False, "Failed to create Logical Volume "+v.name+". Error: "+text)
	}
	v.ret.Changes["created"] = made
	return v.ret.As(states.True, "Created Logical Volume "+v.name)
}

// output returns a field of a program's result.
func output(v any, key string) (string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
	}
	text, ok := m[key]
	if !ok {
		return "", &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
	}
	return pytext.Str(text), nil
}

// resize resizes the volume.
func (v *volume) resize(info map[string]any) (*states.Result, error) {
	had, err := modules.ToInt(info["Current Logical Extents Associated"])
	if err != nil {
		return nil, err
	}
	before, err := megabytes(pytext.Str(info["Logical Volume Size"]) + "s")
	if err != nil {
		return nil, err
	}
	extents, size := had, v.size
	if !v.Bool("size") {
		size = before
		switch x := v.Value("extents").(type) {
		case int64:
			extents = x
		default:
			if !strings.Contains(pytext.Str(x), "%") {
				return nil, &modules.TypeError{Msg: "'<' not supported between instances of '" + modules.TypeName(x) + "' and 'int'"}
			}
			v.ret.Comment = "Logical Volume " + v.name + " already present, " + pytext.Str(x) + " won't be resized."
		}
	}
	switch {
	case v.Value("force") == false && (size < before || extents < had):
		return v.ret.As(states.False, "To reduce a Logical Volume option 'force' must be True.")
	case size == before && extents == had:
		return v.ret, nil
	case v.Test():
		return v.ret.As(states.None, "Logical Volume "+v.name+" is set to be resized")
	}
	kw := map[string]any{"lvpath": v.path, "resizefs": v.Value("resizefs"), "force": v.Value("force")}
	if v.Bool("size") {
		kw["size"] = v.Value("size")
	} else {
		kw["extents"] = extents
	}
	changes, err := v.ExecKw(v.ctx, "lvm.lvresize", nil, kw)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(changes) {
		v.ret.Result, v.ret.Comment = states.False, "Failed to resize Logical Volume. Unknown Error."
	}
	if info, err = v.info(); err != nil {
		return nil, err
	}
	after, err := megabytes(pytext.Str(info["Logical Volume Size"]) + "s")
	if err != nil {
		return nil, err
	}
	if after == before {
		text, err := output(changes, "Output from lvresize")
		if err != nil {
			return nil, err
		}
		return v.ret.As(states.False, "Failed to resize Logical Volume "+v.name+".\nError: "+text)
	}
	v.ret.Changes["resized"] = changes
	return v.ret.As(v.ret.Result, "Resized Logical Volume "+v.name)
}

func lvAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	path := "/dev/" + pytext.Str(c.Value("vgname")) + "/" + name
	_, there, err := display(ctx, c, "lvdisplay", path, true)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, "Logical Volume "+name+" already absent")
	case c.Test():
		return ret.As(states.None, "Logical Volume "+name+" is set to be removed")
	}
	done, err := c.Exec(ctx, "lvm.lvremove", c.Value("name"), c.Value("vgname"))
	if err != nil {
		return nil, err
	}
	if _, there, err = display(ctx, c, "lvdisplay", path, true); err != nil {
		return nil, err
	}
	if there {
		return ret.As(states.False, "Failed to remove Logical Volume "+name)
	}
	ret.Changes["removed"] = done
	return ret.As(states.True, "Removed Logical Volume "+name)
}
