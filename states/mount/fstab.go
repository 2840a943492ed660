package mount

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// table returns the fstab.
func table(ctx context.Context, c *states.Call) (map[string]any, error) {
	v, err := c.Exec(ctx, "mount.fstab", c.Value("config"))
	m, _ := v.(map[string]any)
	return m, err
}

func field(fstab map[string]any, name, key string) any {
	m, _ := fstab[name].(map[string]any)
	return m[key]
}

func swap(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	name := c.Str("name")
	on := func() (map[string]any, error) {
		v, err := c.Exec(ctx, "mount.swaps")
		m, _ := v.(map[string]any)
		return m, err
	}
	used, err := on()
	if err != nil {
		return nil, err
	}
	real, err := swapDevice(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if _, active := used[real]; active {
		ret.Comment = "Swap " + name + " already active"
	} else if c.Test() {
		ret.Result, ret.Comment = states.None, "Swap "+name+" is set to be activated"
	} else {
		if _, err := c.Exec(ctx, "mount.swapon", real); err != nil {
			return nil, err
		}
		if used, err = on(); err != nil {
			return nil, err
		}
		if now, ok := used[real].(map[string]any); ok {
			ret.Comment, ret.Changes = "Swap "+name+" activated", now
		} else {
			ret.Result, ret.Comment = states.False, "Swap "+name+" failed to activate"
		}
	}
	if !c.Bool("persist") {
		return ret, nil
	}
	fstab, err := table(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Test() {
		_, there := fstab[name]
		for entry := range fstab {
			there = there || field(fstab, entry, "device") == c.Value("name")
		}
		if !there {
			ret.Result = states.None
			if _, ok := used[name]; ok {
				ret.Comment = "Swap " + name + " is set to be added to the fstab and to be activated"
			}
		}
		return ret, nil
	}
	if field(fstab, "none", "device") == c.Value("name") && field(fstab, "none", "fstype") != "swap" {
		return ret, nil
	}
	out, err := c.Exec(ctx, "mount.set_fstab", "none", c.Value("name"), "swap", []any{"defaults"}, int64(0), int64(0), c.Value("config"))
	switch {
	case err != nil:
		return nil, err
	case out == "new":
		ret.Changes["persist"] = "new"
		ret.Comment += ". Added new entry to the fstab."
	case out == "change":
		ret.Changes["persist"] = "update"
		ret.Comment += ". Updated the entry in the fstab."
	case out == "bad config":
		ret.Result = states.False
		ret.Comment += ". However, the fstab was not found."
	}
	return ret, nil
}

// swapDevice returns the device that a link points to.
func swapDevice(ctx context.Context, c *states.Call, name string) (string, error) {
	link, err := c.Exec(ctx, "file.is_link", c.Value("name"))
	if err != nil || !pytext.Truth(link) {
		return name, err
	}
	v, err := c.Exec(ctx, "file.readlink", c.Value("name"))
	real := pytext.Str(v)
	if err == nil && !strings.HasPrefix(real, "/") {
		real = "/dev/" + posixpath.Base(real)
	}
	return real, err
}

func unmounted(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	name, device := c.Str("name"), c.Value("device")
	if name == "" {
		return ret.As(states.False, "Must provide name to mount.unmounted")
	}
	v, err := c.ExecKw(ctx, "mount.active", nil, map[string]any{"extended": true})
	if err != nil {
		return nil, err
	}
	active, _ := v.(map[string]any)
	if _, ok := active[escaped(name)]; !ok {
		ret.Comment = "Target was already unmounted"
	} else {
		if c.Test() {
			return ret.As(states.None, "Mount point "+name+" is mounted but should not be")
		}
		args := []any{c.Value("name")}
		if pytext.Truth(device) {
			args = append(args, device)
		}
		out, err := c.ExecKw(ctx, "mount.umount", args, map[string]any{"user": c.Value("user")})
		if err != nil {
			return nil, err
		}
		switch text, isText := out.(string); {
		case isText:
			ret.Result, ret.Comment = states.False, text
		case out == true:
			ret.Comment = "Target was successfully unmounted"
			ret.Changes["umount"] = true
		default:
			ret.Comment = "Execute set to False, Target was not unmounted"
		}
		if _, err := c.Exec(ctx, "mount.delete_mount_cache", c.Value("name")); err != nil {
			return nil, err
		}
	}
	if !c.Bool("persist") {
		return ret, nil
	}
	fstab, err := table(ctx, c)
	if err != nil {
		return nil, err
	}
	_, there := fstab[name]
	switch {
	case !there:
		ret.Comment += ". fstab entry not found"
		return ret, nil
	case pytext.Truth(device) && field(fstab, name, "device") != device:
		ret.Comment += ". fstab entry for device " + pytext.Str(device) + " not found"
		return ret, nil
	case c.Test():
		return ret.As(states.None, "Mount point "+name+" is unmounted but needs to be purged from "+c.Str("config")+" to be made persistent")
	}
	out, err := c.Exec(ctx, "mount.rm_fstab", c.Value("name"), device, c.Value("config"))
	if err != nil {
		return nil, err
	}
	if out != true {
		ret.Result = states.False
		ret.Comment += ". Failed to persist purge"
		return ret, nil
	}
	ret.Comment += ". Removed target from fstab"
	ret.Changes["persist"] = "purged"
	return ret, nil
}

func modWatch(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	for _, key := range [...]string{"sfun", "device", "fstype", "opts"} {
		if _, ok := c.Keywords[key]; !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
		}
		if sfun := c.Keywords["sfun"]; sfun != "mounted" {
			return ret.As(states.True, "Watch not supported in "+pytext.Str(sfun)+" at this time")
		}
	}
	out, err := c.ExecKw(ctx, "mount.remount", []any{c.Value("name"), c.Keywords["device"], false, c.Keywords["fstype"], c.Keywords["opts"]},
		map[string]any{"user": c.Value("user")})
	if err != nil {
		return nil, err
	}
	if pytext.Truth(out) {
		return ret.As(states.True, c.Str("name")+" remounted")
	}
	return ret.As(states.False, c.Str("name")+" failed to remount: "+pytext.Str(out))
}

// spec returns the device in the form for fstab, or nil if it has no such form (_convert_to).
func spec(ctx context.Context, c *states.Call) (any, error) {
	name, by := c.Str("name"), c.Str("mount_by")
	if by == "" || by == "device" && strings.HasPrefix(name, "/") || strings.HasPrefix(name, strings.ToUpper(by)+"=") {
		return name, nil
	}
	kw := map[string]any{"token": name}
	var args []any
	if strings.HasPrefix(name, "/") {
		args, kw = []any{name}, nil
	}
	v, err := c.ExecKw(ctx, "disk.blkid", args, kw)
	all, _ := v.(map[string]any)
	if err != nil || len(all) != 1 {
		return nil, err
	}
	for device, info := range all {
		if by == "device" {
			return device, nil
		}
		key := strings.ToUpper(by)
		m, _ := info.(map[string]any)
		value, ok := m[key]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
		}
		return key + "=" + pytext.Str(value), nil
	}
	return nil, nil
}

func fstabPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, point, conf := c.Str("name"), bare(c.Str("fs_file")), c.Str("config")
	device, err := spec(ctx, c)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(device) {
		return ret.As(states.False, "Device "+name+" cannot be converted to "+pytext.Str(c.Value("mount_by")))
	}
	kw := map[string]any{"name": point, "device": device, "fstype": c.Value("fs_vfstype"), "opts": c.Value("fs_mntops"), "dump": c.Value("fs_freq"),
		"pass_num": c.Value("fs_passno"), "config": c.Value("config"), "match_on": c.Value("match_on"), "not_change": c.Value("not_change")}
	if c.Test() {
		kw["test"] = true
	}
	out, err := c.ExecKw(ctx, "mount.set_fstab", nil, kw)
	if err != nil {
		return nil, err
	}
	if c.Test() {
		return presentPreview(c, ret, point, conf, out)
	}
	comments := []string{}
	ret.Result = states.True
	switch out {
	case "present":
		comments = append(comments, point+" entry was already in "+conf+".")
	case "new":
		ret.Changes["persist"] = out
		comments = append(comments, point+" entry added in "+conf+".")
		if !c.Bool("mount") {
			break
		}
		done, err := c.Exec(ctx, "mount.mount", point)
		if err != nil {
			return nil, err
		}
		text, failed := done.(string)
		if !failed {
			comments = append(comments, "Mounted "+name+" on "+point)
			break
		}
		_, reason, ok := strings.Cut(text, ":")
		if !ok {
			return nil, modules.IndexError()
		}
		ret.Result = states.False
		comments = append(comments, "Error while mounting "+reason)
	case "change":
		ret.Changes["persist"] = out
		comments = append(comments, point+" entry updated in "+conf+".")
	default:
		ret.Result = states.False
		comments = append(comments, point+" entry cannot be changed in "+conf+": "+pytext.Str(out)+".")
	}
	ret.Comments(comments...)
	return ret, nil
}

func presentPreview(c *states.Call, ret *states.Result, point, conf string, out any) (*states.Result, error) {
	ret.Result = states.None
	switch out {
	case "present":
		ret.Comment = point + " entry is already in " + conf + "."
	case "new":
		ret.Comment = point + " entry will be written in " + conf + "."
		if c.Bool("mount") {
			ret.Comment += "\nWill mount " + c.Str("name") + " on " + point
		}
	case "change":
		ret.Comment = point + " entry will be updated in " + conf + "."
	default:
		ret.Result, ret.Comment = states.False, point+" entry cannot be created in "+conf+": "+pytext.Str(out)+"."
	}
	return ret, nil
}

func fstabAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	point, conf := bare(c.Str("fs_file")), c.Str("config")
	device, err := spec(ctx, c)
	if err != nil {
		return nil, err
	}
	fstab, err := table(ctx, c)
	if err != nil {
		return nil, err
	}
	_, there := fstab[point]
	o := states.True
	if c.Test() {
		o = states.None
	}
	switch {
	case !there:
		return ret.As(o, point+" entry is already missing in "+conf+".")
	case c.Test():
		return ret.As(o, point+" entry will be removed from "+conf+".")
	}
	out, err := c.ExecKw(ctx, "mount.rm_fstab", nil, map[string]any{"name": point, "device": device, "config": c.Value("config")})
	if err != nil {
		return nil, err
	}
	if out != true {
		return ret.As(states.False, point+" entry failed when removing from "+conf+".")
	}
	ret.Changes["persist"] = "removed"
	return ret.As(states.True, point+" entry removed from "+conf+".")
}
