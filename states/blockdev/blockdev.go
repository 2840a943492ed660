// Package blockdev is Salt's state module "blockdev": block devices and what they are formatted with (salt/states/blockdev.py).
package blockdev

import (
	"context"
	"os"
	"time"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "blockdev".
var Module = &states.Module{
	Name: "blockdev", Doc: "Block devices and what they are formatted with.",
	Needs: "disk.tune", Otherwise: "Cannot load the blockdev state module: disk execution module not found",
	Funcs: []states.Def{
		{Name: "formatted", Doc: formattedDoc, Params: []modules.Param{{Name: "name"}, {Name: "fs_type", Default: "ext4"}, {Name: "force", Default: false}},
			Kwargs: "kwargs", Run: formatted},
		{Name: "tuned", Doc: tunedDoc, Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: tuned},
	},
}

const (
	formattedDoc = `Have a device formatted with a file system. One that has another is formatted anew.

name
    the device
fs_type
    the file system
force
    let mkfs do it whatever is there

Further arguments go to disk.format.`
	tunedDoc = `Have attributes of a device at values.

name
    the device
read-ahead, filesystem-read-ahead
    the number of sectors that are read ahead
read-only, read-write
    True has it read-only, or writable`
)

// attribute returns the name of an attribute in disk.dump.
func attribute(key string) string {
	switch key {
	case "read-ahead":
		return "getra"
	case "filesystem-read-ahead":
		return "getfra"
	case "read-only", "read-write":
		return "getro"
	}
	return ""
}

func tuned(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Str("name")
	is, err := c.Exec(ctx, "file.is_blkdev", c.Value("name"))
	switch {
	case err != nil:
		return nil, err
	case !pytext.Truth(is):
		return ret.As(states.False, "Changes to "+name+" cannot be applied. Not a block device.")
	case c.Test():
		return ret.As(states.None, "Changes to "+name+" will be applied ")
	}
	v, err := c.Exec(ctx, "disk.dump", c.Value("name"))
	if err != nil {
		return nil, err
	}
	before, _ := v.(map[string]any)
	kw := c.OwnKeywords()
	if v, err = c.ExecKw(ctx, "disk.tune", []any{c.Value("name")}, kw); err != nil {
		return nil, err
	}
	after, _ := v.(map[string]any)
	for key, want := range kw {
		a := attribute(key)
		if a == "" || pytext.Str(before[a]) == pytext.Str(after[a]) {
			continue
		}
		old, new := before[a], after[a]
		if _, flag := want.(bool); flag {
			old, new = old == "1", new == "1"
		}
		if key == "read-write" {
			old, new = !pytext.Truth(old), !pytext.Truth(new)
		}
		ret.Changes[key] = "Changed from " + pytext.Str(old) + " to " + pytext.Str(new)
	}
	switch {
	case len(after) == 0:
		return ret.As(states.False, "Failed to modify block device "+name)
	case ret.Changed():
		return ret.As(states.True, "Block device "+name+" successfully modified ")
	}
	return ret.As(states.True, "Block device "+name+" already in correct state")
}

// kind returns the type of the file system on a device, or "" if it is missing.
func kind(ctx context.Context, c *states.Call) (string, error) {
	r, err := saltcmd.Run(ctx, c.Call, saltcmd.Command{Args: []string{"blkid", "-o", "value", "-s", "TYPE", c.Str("name")}, Merge: true, IgnoreRetcode: true})
	return r.Stdout, err
}

func formatted(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, want := c.Str("name"), c.Str("fs_type")
	if _, err := os.Stat(c.Path(name)); err != nil {
		return ret.As(states.False, name+" does not exist")
	}
	now, err := kind(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case now == want:
		return ret.As(states.True, name+" already formatted with "+want)
	case c.Which("mkfs."+want) == "":
		return ret.As(states.False, "Invalid fs_type: "+want)
	case c.Test():
		return ret.As(states.None, "Changes to "+name+" will be applied ")
	}
	kw := c.OwnKeywords()
	kw["force"] = c.Value("force")
	if _, err := c.ExecKw(ctx, "disk.format", []any{c.Value("name"), c.Value("fs_type")}, kw); err != nil {
		return nil, err
	}
	// blkid may need a while to see it.
	for range 10 {
		if now, err = kind(ctx, c); err != nil {
			return nil, err
		}
		if now == want {
			ret.Changes["new"], ret.Changes["old"] = want, now // Salt shows the new one twice
			return ret.As(states.True, name+" has been formatted with "+want)
		}
		if now != "" {
			break
		}
		timer := time.NewTimer(3 * time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
	return ret.As(states.False, "Failed to format "+name)
}
