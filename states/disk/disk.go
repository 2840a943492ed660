// Package disk is Salt's state module "disk": a state that only looks, at the space that is left (salt/states/disk.py).
package disk

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "disk".
var Module = &states.Module{Name: "disk", Doc: "A state that only looks, at the space that is left.", Funcs: []states.Def{
	{Name: "status", Doc: statusDoc, Params: []modules.Param{{Name: "name"}, {Name: "maximum", Optional: true}, {Name: "minimum", Optional: true},
		{Name: "absolute", Default: false}, {Name: "free", Default: false}}, Run: status},
}}

const statusDoc = `Fail when the used space is beyond limits.

name
    the mount point, or a directory
maximum, minimum
    the limits, in percent
absolute
    they are in kilobytes
free
    they are about the free space`

// limit is one of the limits. ok is false if it is not set, and bad is a value that is not a number.
type limit struct {
	n   int64
	ok  bool
	bad any
}

// notBelow implements Python's l >= o.
func (l limit) notBelow(o limit) (bool, error) {
	if l.bad == nil && o.bad == nil {
		return l.n >= o.n, nil
	}
	s, ok1 := l.bad.(string)
	t, ok2 := o.bad.(string)
	if ok1 && ok2 {
		return s >= t, nil
	}
	kind := func(l limit) string {
		if l.bad != nil {
			return modules.TypeName(l.bad)
		}
		return "int"
	}
	return false, &modules.TypeError{Msg: "'>=' not supported between instances of '" + kind(l) + "' and '" + kind(o) + "'"}
}

// bound reads a limit (_validate_int).
func bound(c *states.Call, name, strip string) (l limit, comment string) {
	v := c.Value(name)
	if v == nil {
		return l, ""
	}
	if s, ok := v.(string); ok {
		v = strings.Trim(s, " "+strip)
	}
	n, err := modules.ToInt(v)
	if err != nil {
		return limit{ok: true, bad: v}, name + " must be an integer "
	}
	if strip == "%" && (n < 0 || n > 100) {
		comment = name + " must be in the range [0, 100] "
	}
	return limit{n: n, ok: true}, comment
}

func status(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Extra = map[string]any{"data": map[string]any{}}
	strip := "%"
	if c.Bool("absolute") {
		strip = "KB"
	}
	high, bad1 := bound(c, "maximum", strip)
	low, bad2 := bound(c, "minimum", strip)
	comment := bad1 + bad2
	if low.ok && high.ok {
		above, err := low.notBelow(high)
		if err != nil {
			return nil, err
		}
		if above {
			comment += "minimum must be less than maximum "
		}
	}
	if comment != "" {
		return ret.As(states.False, comment)
	}
	v, err := c.Exec(ctx, "disk.usage")
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	if m, ok := all[c.Str("name")].(map[string]any); ok {
		return ofMount(c, ret, m, low, high)
	}
	return ofPath(ctx, c, ret, low, high)
}

func ofMount(c *states.Call, ret *states.Result, m map[string]any, low, high limit) (*states.Result, error) {
	var used, free int64
	var err error
	if c.Bool("absolute") {
		if used, err = modules.ToInt(m["used"]); err == nil {
			free, err = modules.ToInt(m["available"])
		}
	} else {
		used, err = modules.ToInt(strings.Trim(pytext.Str(m["capacity"]), "%"))
		free = 100 - used
	}
	if err != nil {
		return nil, err
	}
	ret.Extra["data"] = m
	return judge(c, ret, float64(used), float64(free), pytext.Str(used), pytext.Str(free), low, high)
}

func ofPath(ctx context.Context, c *states.Call, ret *states.Result, low, high limit) (*states.Result, error) {
	name := c.Str("name")
	ret.Comment = "Disk mount " + name + " not present. "
	if info, err := os.Stat(c.Path(name)); err != nil || !info.IsDir() {
		return ret.As(states.False, ret.Comment+"Directory "+name+" does not exist or is not a directory")
	}
	v, err := c.Exec(ctx, "status.diskusage", c.Value("name"))
	if err != nil {
		return nil, err
	}
	data, _ := v.(map[string]any)
	m, _ := data[name].(map[string]any)
	total, err := modules.ToInt(m["total"])
	if err != nil {
		return nil, err
	}
	free, err := modules.ToInt(m["available"])
	if err != nil {
		return nil, err
	}
	ret.Extra["data"] = data
	used := total - free
	if c.Bool("absolute") {
		return judge(c, ret, float64(used), float64(free), pytext.Str(used), pytext.Str(free), low, high)
	}
	if total == 0 {
		return judge(c, ret, 0, 0, "0", "0", low, high)
	}
	a, b := pytext.Round(float64(used)/float64(total)*100, 1), pytext.Round(float64(free)/float64(total)*100, 1)
	return judge(c, ret, a, b, pytext.Float(a), pytext.Float(b), low, high)
}

// judge compares with the limits (_check_min_max).
func judge(c *states.Call, ret *states.Result, used, free float64, usedText, freeText string, low, high limit) (*states.Result, error) {
	what, is, text, unit := "used", used, usedText, "%"
	if c.Bool("free") {
		what, is, text = "available", free, freeText
	}
	if c.Bool("absolute") {
		unit = "KB"
	}
	end := func(side string, n int64) (*states.Result, error) {
		return ret.As(states.False, "Disk "+what+" space is "+side+" of "+pytext.Str(n)+" "+unit+" at "+text+" "+unit)
	}
	switch {
	case low.ok && is < float64(low.n):
		return end("below minimum", low.n)
	case high.ok && is > float64(high.n):
		return end("above maximum", high.n)
	}
	return ret.As(states.True, "Disk used space in acceptable range")
}
