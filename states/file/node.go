//go:build unix

package file

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var mknodDef = states.Def{Name: "mknod", Params: []modules.Param{
	{Name: "name"}, {Name: "ntype"}, {Name: "major", Default: int64(0)}, {Name: "minor", Default: int64(0)},
	{Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "mode", Default: "0600"},
}, Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return mknod(on(ctx, c)) }}

// shortcut is for Windows, where this package is not: stock's answer elsewhere.
var shortcutDef = states.Def{Name: "shortcut", Params: []modules.Param{
	{Name: "name"}, {Name: "target"}, {Name: "arguments", Optional: true}, {Name: "working_dir", Optional: true},
	{Name: "description", Optional: true}, {Name: "icon_location", Optional: true}, {Name: "force", Default: false},
	{Name: "backupname", Optional: true}, {Name: "makedirs", Default: false}, {Name: "user", Optional: true},
}, Kwargs: "kwargs", Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
	return fail(c.Result(), "Shortcuts are only supported on Windows")
}}

var modBeaconDef = states.Def{Name: "mod_beacon", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs",
	Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return modBeacon(on(ctx, c)) }}

func mknod(j *job) (*states.Result, error) {
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.mknod")
	}
	kind, is, title := "", "", ""
	switch j.Value("ntype") {
	case "c":
		kind, is, title = "character device", "file.is_chrdev", "Character device "
	case "b":
		kind, is, title = "block device", "file.is_blkdev", "Block device "
	case "p":
		kind, is, title = "fifo pipe", "file.is_fifo", "Fifo pipe "
	default:
		return fail(ret, "Node type unavailable: '"+j.Str("ntype")+"'. Available node types are character ('c'), block ('b'), and pipe ('p')")
	}
	if j.isFile(name) {
		return fail(ret, "File "+name+" exists and is not a "+kind+". Refusing to continue")
	}
	there, err := j.exec(is, name)
	switch {
	case err != nil:
		return nil, err
	case !pytext.Truth(there) && j.Test():
		return ret.As(states.None, title+name+" is set to be created")
	case !pytext.Truth(there):
		v, err := j.exec("file.mknod", name, j.Value("ntype"), j.Value("major"), j.Value("minor"), j.Value("user"), j.Value("group"), j.Value("mode"))
		if err != nil {
			return nil, err
		}
		return resultOf(v), nil
	}
	if kind != "fifo pipe" {
		v, err := j.exec("file.get_devmm", name)
		if err != nil {
			return nil, err
		}
		if pair, ok := v.([]any); ok && len(pair) == 2 && (pair[0] != j.Value("major") || pair[1] != j.Value("minor")) {
			return fail(ret, title+name+" exists and has a different major/minor "+pytext.Str(pair[0])+"/"+pytext.Str(pair[1])+". Refusing to continue")
		}
	}
	v, err := j.exec("file.check_perms", name, nil, j.Value("user"), j.Value("group"), j.Value("mode"))
	if err != nil {
		return nil, err
	}
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return nil, modules.Errorf("file.check_perms answered %s", pytext.Repr(v))
	}
	if ret = resultOf(pair[0]); !ret.Changed() {
		delete(ret.Extra, "comment")
		ret.Comment = title + name + " is in the correct state"
	}
	return ret, nil
}

// modBeacon implements the argument beacon of managed and directory.
func modBeacon(j *job) (*states.Result, error) {
	ret := j.Result()
	sfun := j.Keywords["sfun"]
	if sfun != "managed" && sfun != "directory" {
		return fail(ret, "file."+pytext.Str(sfun)+" does not work with the beacon state function")
	}
	if !pytext.Truth(j.Keywords["beacon"]) {
		return ret.As(states.True, "Not adding beacon.")
	}
	given := mapOf(j.Keywords["beacon_data"])
	or := func(name string, def any) any {
		if v, ok := given[name]; ok {
			return v
		}
		return def
	}
	data := map[string]any{"mask": or("mask", []any{"create", "delete", "modify"})}
	if sfun == "directory" {
		data["auto_add"], data["recurse"], data["exclude"] = or("auto_add", true), or("recurse", true), or("exclude", []any{})
	}
	name := j.Str("name")
	return j.State(j.ctx, "beacon.present", map[string]any{
		"name": "beacon_inotify_" + name, "files": map[string]any{name: data}, "interval": or("interval", int64(60)),
		"coalesce": or("coalesce", false), "beacon_module": "inotify",
	})
}
