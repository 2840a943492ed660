// Package sysctl is Salt's state module "sysctl": settings of the kernel, now and after the next start (salt/states/sysctl.py).
package sysctl

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "sysctl".
var Module = &states.Module{
	Name: "sysctl", Doc: "Settings of the kernel.", Needs: "sysctl.show", Otherwise: "sysctl module could not be loaded",
	Funcs: []states.Def{{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "config", Optional: true}}, Run: present}},
}

const presentDoc = `Have a setting of the kernel at a value, now and after the next start.

name
    the setting
value
    the value
config
    the file that has it for the next start`

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, value, config := c.Str("name"), pytext.Str(c.Value("value")), c.Value("config")
	if config == nil {
		config = "/etc/sysctl.conf"
		if pkglist.Has(c.Call, "sysctl.default_config") {
			var err error
			if config, err = c.Exec(ctx, "sysctl.default_config"); err != nil {
				return nil, err
			}
		}
	}
	if c.Test() {
		return preview(ctx, c, ret, value, config)
	}
	update, err := c.Exec(ctx, "sysctl.persist", c.Value("name"), c.Value("value"), config)
	if modules.IsExecError(err) {
		return ret.As(states.False, "Failed to set "+name+" to "+value+": "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	switch update {
	case "Updated":
		ret.Changes[name] = c.Value("value")
		return ret.As(states.True, "Updated sysctl value "+name+" = "+value)
	case "Already set":
		return ret.As(states.True, "Sysctl value "+name+" = "+value+" is already set")
	}
	return ret.As(states.True, "")
}

// preview tells in test mode what would happen.
func preview(ctx context.Context, c *states.Call, ret *states.Result, value string, config any) (*states.Result, error) {
	name := c.Str("name")
	v, err := c.ExecKw(ctx, "sysctl.show", nil, map[string]any{"config_file": config})
	if err != nil {
		return nil, err
	}
	if v == nil {
		return ret.As(states.None, "Sysctl option "+name+" might be changed, we failed to check config file at "+pytext.Str(config)+
			". The file is either unreadable, or missing.")
	}
	configured, _ := v.(map[string]any)
	_, persistent := configured[name]
	now, err := c.Exec(ctx, "sysctl.get", c.Value("name"))
	if err != nil {
		return nil, err
	}
	current := pytext.Str(now)
	switch {
	case pytext.Truth(now) && persistent:
		if slices.Equal(strings.Fields(value), strings.Fields(current)) {
			return ret.As(states.True, "Sysctl value "+name+" = "+value+" is already set")
		}
	case pytext.Truth(now) && blanks(current) != blanks(value):
		return ret.As(states.None, "Sysctl option "+name+" set to be changed to "+value)
	case pytext.Truth(now):
		return ret.As(states.None, "Sysctl value is currently set on the running system but not in a config file. Sysctl option "+name+
			" set to be changed to "+value+" in config file.")
	case persistent:
		return ret.As(states.None, "Sysctl value "+name+" is present in configuration file but is not present in the running config. The value "+
			name+" is set to be changed to "+value)
	}
	return ret.As(states.None, "Sysctl option "+name+" would be changed to "+value)
}

// blanks makes one blank of several, and one of several tabs.
func blanks(s string) string {
	var b strings.Builder
	last := byte(0)
	for i := range len(s) {
		ch := s[i]
		if (ch == ' ' || ch == '\t') && ch == last {
			continue
		}
		last = ch
		if ch == '\t' {
			ch = ' '
		}
		b.WriteByte(ch)
	}
	return b.String()
}
