// Package selinux is Salt's state module "selinux": mode, booleans, modules and policies of SELinux (salt/states/selinux.py).
package selinux

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// selinux.module differs: where the state of the module makes no sense the comment names the module; stock shows a Python object.

// Module is "selinux".
var Module = &states.Module{
	Name: "selinux", Doc: "Mode, booleans, modules and policies of SELinux.",
	Needs: "selinux.getenforce", Otherwise: "selinux module could not be loaded",
	Funcs: []states.Def{
		{Name: "boolean", Doc: booleanDoc, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "persist", Default: false}}, Run: boolean},
		{Name: "fcontext_policy_absent", Doc: contextAbsentDoc, Params: []modules.Param{{Name: "name"}, {Name: "filetype", Default: "a"},
			{Name: "sel_type", Optional: true}, {Name: "sel_user", Optional: true}, {Name: "sel_level", Optional: true}}, Run: contextAbsent},
		{Name: "fcontext_policy_applied", Doc: contextAppliedDoc, Params: []modules.Param{{Name: "name"}, {Name: "recursive", Default: false}}, Run: contextApplied},
		{Name: "fcontext_policy_present", Doc: contextPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "sel_type"}, {Name: "filetype", Default: "a"},
			{Name: "sel_user", Optional: true}, {Name: "sel_level", Optional: true}}, Run: contextPresent},
		{Name: "mode", Doc: modeDoc, Params: []modules.Param{{Name: "name"}}, Run: mode},
		{Name: "module", Doc: moduleDoc, Params: []modules.Param{{Name: "name"}, {Name: "module_state", Default: "Enabled"}, {Name: "version", Default: "any"}},
			Kwargs: "opts", Run: module},
		{Name: "module_install", Doc: "Have a module of the policy installed.\n\nname\n    the file of the module", Params: []modules.Param{{Name: "name"}}, Run: moduleInstall},
		{Name: "module_remove", Doc: "Have a module of the policy removed.\n\nname\n    the module", Params: []modules.Param{{Name: "name"}}, Run: moduleRemove},
		{Name: "port_policy_absent", Doc: portAbsentDoc, Params: []modules.Param{{Name: "name"}, {Name: "sel_type", Optional: true}, {Name: "protocol", Optional: true},
			{Name: "port", Optional: true}}, Run: portAbsent},
		{Name: "port_policy_present", Doc: portPresentDoc, Params: []modules.Param{{Name: "name"}, {Name: "sel_type"}, {Name: "protocol", Optional: true},
			{Name: "port", Optional: true}, {Name: "sel_range", Optional: true}}, Run: portPresent},
	},
}

const (
	modeDoc = `Have SELinux in a mode.

name
    enforcing, permissive or disabled`
	booleanDoc = `Have a boolean of the policy on or off.

name
    the boolean
value
    the value
persist
    also after the next start`
	moduleDoc = `Have a module of the policy enabled or disabled.

name
    the module
module_state
    Enabled or Disabled
version
    the version that it must have
install, source, remove
    install the module from a file, or remove it`
	contextPresentDoc = `Have a policy for the context of files.

name
    the files, as a regular expression
sel_type, sel_user, sel_level
    the context
filetype
    which kinds of files: a, f, d, c, b, s, l or p`
	contextAbsentDoc = `Have no policy for the context of files.

name
    the files, as a regular expression
filetype
    which kinds of files: a, f, d, c, b, s, l or p
sel_type, sel_user, sel_level
    the context`
	contextAppliedDoc = `Have files with the context that the policies give them.

name
    the files
recursive
    with everything below`
	portPresentDoc = `Have a policy for ports.

name
    protocol/port or protocol/range
sel_type, sel_range
    the context
protocol, port
    instead of what the name says`
	portAbsentDoc = `Have no policy for ports.

name
    protocol/port or protocol/range
sel_type
    the type of the context
protocol, port
    instead of what the name says`
)

func refineMode(v any) string {
	s := strings.ToLower(pytext.Str(v))
	switch {
	case strings.HasPrefix(s, "e"), s == "1", s == "on":
		return "Enforcing"
	case strings.HasPrefix(s, "p"), s == "0", s == "off":
		return "Permissive"
	case strings.HasPrefix(s, "d"):
		return "Disabled"
	}
	return "unknown"
}

// onOff returns one of two words for a truth value, or "" for anything else.
func onOff(v any, on, off string) string {
	switch s := strings.ToLower(pytext.Str(v)); s {
	case "1", "on", "yes", "true", on:
		return on
	case "0", "off", "no", "false", off:
		return off
	}
	return ""
}

func mode(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	want := refineMode(c.Value("name"))
	if want == "unknown" {
		return ret.As(states.False, c.Str("name")+" is not an accepted mode")
	}
	now, err := c.Exec(ctx, "selinux.getenforce")
	if err != nil {
		return nil, err
	}
	conf, err := c.Exec(ctx, "selinux.getconfig")
	if err != nil {
		return nil, err
	}
	if now == want && conf != want {
		now = conf
	}
	if now == want {
		return ret.As(states.True, "SELinux is already in "+want+" mode")
	}
	if c.Test() {
		ret.Changes["old"], ret.Changes["new"] = now, want
		return ret.As(states.None, "SELinux mode is set to be changed to "+want)
	}
	after, err := c.Exec(ctx, "selinux.setenforce", want)
	if err == nil && after != want && want == "Disabled" {
		conf, err = c.Exec(ctx, "selinux.getconfig")
	}
	if err != nil {
		return nil, err
	}
	if after == want || want == "Disabled" && conf == want {
		ret.Changes["old"], ret.Changes["new"] = now, after
		return ret.As(states.True, "SELinux has been set to "+want+" mode")
	}
	return ret.As(states.False, "Failed to set SELinux to "+want+" mode")
}

// entry returns the description of a boolean or module from a list. known is false if the list does not contain it.
func entry(ctx context.Context, c *states.Call, fun, name string) (m map[string]any, known bool, err error) {
	v, err := c.Exec(ctx, fun)
	all, _ := v.(map[string]any)
	x, known := all[name]
	m, _ = x.(map[string]any)
	return m, known, err
}

func boolean(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	have, known, err := entry(ctx, c, "selinux.list_sebool", name)
	if err != nil {
		return nil, err
	}
	if !known {
		return ret.As(states.False, "Boolean "+name+" is not available")
	}
	want := onOff(c.Value("value"), "on", "off")
	if want == "" {
		return ret.As(states.False, pytext.Str(c.Value("value"))+" is not a valid value for the boolean")
	}
	persist, lasting := c.Bool("persist"), have["Default"] == want
	switch {
	case have["State"] == want && (lasting || !persist):
		return ret.As(states.True, "Boolean is in the correct state")
	case c.Test():
		return ret.As(states.None, "Boolean "+name+" is set to be changed to "+want)
	}
	done, err := c.Exec(ctx, "selinux.setsebool", c.Value("name"), want, c.Value("persist"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set the boolean "+name+" to "+want)
	}
	ret.Changes["State"] = map[string]any{"old": have["State"], "new": want}
	if persist && !lasting {
		ret.Changes["Default"] = map[string]any{"old": have["Default"], "new": want}
	}
	return ret.As(states.True, "Boolean "+name+" has been set to "+want)
}

func module(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, install, drop := c.Str("name"), pytext.Truth(c.Keywords["install"]), pytext.Truth(c.Keywords["remove"])
	switch {
	case install && drop:
		return ret.As(states.False, "Cannot install and remove at the same time")
	case install:
		source, ok := c.Keywords["source"]
		if !ok {
			source = c.Value("name")
		}
		var err error
		if ret, err = installModule(ctx, c, source); err != nil || ret.Result != states.True {
			return ret, err
		}
	case drop:
		return moduleRemove(ctx, c)
	}
	have, known, err := entry(ctx, c, "selinux.list_semod", name)
	if err != nil {
		return nil, err
	}
	if !known {
		return ret.As(states.False, "Module "+name+" is not available")
	}
	want, text := onOff(c.Value("module_state"), "enabled", "disabled"), pytext.Str(c.Value("module_state"))
	if want == "" {
		return ret.As(states.False, text+" is not a valid state for the "+name+" module.")
	}
	if version := c.Value("version"); version != "any" && have["Version"] != version {
		return ret.As(states.False, "Module version is "+pytext.Str(have["Version"])+" and does not match the desired version of "+pytext.Str(version)+
			" or you are using semodule >= 2.4")
	}
	if onOff(have["Enabled"], "enabled", "disabled") == want {
		return ret.As(states.True, "Module "+name+" is in the desired state")
	}
	if c.Test() {
		return ret.As(states.None, "Module "+name+" is set to be toggled to "+text)
	}
	done, err := c.Exec(ctx, "selinux.setsemod", c.Value("name"), want)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(done) {
		return ret.As(states.True, "Module "+name+" has been set to "+text)
	}
	return ret.As(states.False, "Failed to set the Module "+name+" to "+text)
}

func moduleInstall(ctx context.Context, c *states.Call) (*states.Result, error) {
	return installModule(ctx, c, c.Value("name"))
}

func installModule(ctx context.Context, c *states.Call, source any) (*states.Result, error) {
	ret := c.Result()
	ret.Name = pytext.Str(source)
	done, err := c.Exec(ctx, "selinux.install_semod", source)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(done) {
		return ret.As(states.True, "Module "+ret.Name+" has been installed")
	}
	return ret.As(states.False, "Failed to install module "+ret.Name)
}

func moduleRemove(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	_, known, err := entry(ctx, c, "selinux.list_semod", name)
	if err != nil {
		return nil, err
	}
	if !known {
		return ret.As(states.False, "Module "+name+" is not available")
	}
	done, err := c.Exec(ctx, "selinux.remove_semod", c.Value("name"))
	if err != nil {
		return nil, err
	}
	if pytext.Truth(done) {
		return ret.As(states.True, "Module "+name+" has been removed")
	}
	return ret.As(states.False, "Failed to remove module "+name)
}
