// Package docker_volume is Salt's state module "docker_volume": volumes of a Docker daemon (salt/states/docker_volume.py). It works
// through the execution module docker.
package docker_volume

import (
	"context"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is Salt's "docker_volume".
var Module = &states.Module{Name: "docker_volume", Doc: "Volumes of Docker.", Needs: "docker.version", Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such volume. As in Salt, test mode removes it, too.\n\nname\n    the volume\n", Params: []modules.Param{
		{Name: "name"}, {Name: "driver", Optional: true},
	}, Run: absent},
	{Name: "present", Doc: "Have a volume.\n\nname\n    the volume\ndriver, driver_opts\n    what keeps it, and how\nforce\n    whether to replace one of another driver, " +
		"with all that is in it\n", Params: []modules.Param{
		{Name: "name"}, {Name: "driver", Optional: true}, {Name: "driver_opts", Optional: true}, {Name: "force", Default: false},
	}, Run: present},
}}

// find returns the daemon's description of the volume, or nil if it is missing.
func find(ctx context.Context, c *states.Call) (map[string]any, error) {
	v, err := c.Exec(ctx, "docker.volumes")
	m, _ := v.(map[string]any)
	list, _ := m["Volumes"].([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok && m["Name"] == c.Value("name") {
			return m, nil
		}
	}
	return nil, err
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	driver, opts := c.Value("driver"), c.Value("driver_opts")
	if d, ok := dockerargs.Repack(opts); ok {
		opts = d
	}
	create := func() (*states.Result, error) {
		v, err := c.ExecKw(ctx, "docker.create_volume", []any{c.Value("name")}, map[string]any{"driver": driver, "driver_opts": opts})
		if err != nil {
			return ret.As(states.False, "Failed to create volume '"+c.Name()+"': "+modules.ExceptionText(err))
		}
		ret.Changes["created"] = v
		return ret.As(states.True, "")
	}
	volume, err := find(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case volume == nil && c.Test():
		return ret.As(states.None, "The volume '"+c.Name()+"' will be created")
	case volume == nil:
		return create()
	case driver == nil || volume["Driver"] == driver:
		return ret.As(states.True, "Volume '"+c.Name()+"' already exists.")
	case !c.Bool("force"):
		out := states.False
		if c.Test() {
			out = states.None
		}
		return ret.As(out, "Driver for existing volume '"+c.Name()+"' ('"+pytext.Str(volume["Driver"])+"') does not match specified driver ('"+
			pytext.Str(driver)+"') and force is False")
	case c.Test():
		return ret.As(states.None, "The volume '"+c.Name()+"' will be replaced with a new one using the driver '"+pytext.Str(volume)+"'")
	}
	v, err := c.Exec(ctx, "docker.remove_volume", c.Value("name"))
	if err != nil {
		return ret.As(states.False, "Failed to remove volume '"+c.Name()+"': "+modules.ExceptionText(err))
	}
	ret.Changes["removed"] = v
	return create()
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	volume, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	if volume == nil {
		return ret.As(states.True, "Volume '"+c.Name()+"' already absent")
	}
	v, err := c.Exec(ctx, "docker.remove_volume", c.Value("name"))
	if err != nil {
		return ret.As(states.False, "Failed to remove volume '"+c.Name()+"': "+modules.ExceptionText(err))
	}
	ret.Changes["removed"] = v
	return ret.As(states.True, "")
}
