// Package linux_lvm is Salt's execution module "lvm". Salt's source: salt/modules/linux_lvm.py.
package linux_lvm

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return e.Which("lvm") != "", "The linux_lvm execution module cannot be loaded: the lvm binary is not in the path."
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	out, err := saltcmd.Text(ctx, c, "lvm", "version")
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Split(out, "\n")[0], ": ")
	if len(parts) < 2 {
		return nil, modules.IndexError()
	}
	return pytext.Strip(parts[1]), nil
}

func fullVersion(ctx context.Context, c *modules.Call) (any, error) {
	text, err := saltcmd.Text(ctx, c, "lvm", "version")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		parts := strings.Split(line, ":")
		if len(parts) < 2 {
			return nil, modules.IndexError()
		}
		out[pytext.Strip(parts[0])] = pytext.Strip(parts[1])
	}
	return out, nil
}

// The columns of pvdisplay, vgdisplay and lvdisplay with -c.
const (
	pvColumns = "Physical Volume Device|Volume Group Name|Physical Volume Size (kB)|Internal Physical Volume Number|" +
		"Physical Volume Status|Physical Volume (not) Allocatable|Current Logical Volumes Here|Physical Extent Size (kB)|" +
		"Total Physical Extents|Free Physical Extents|Allocated Physical Extents"
	vgColumns = "Volume Group Name|Volume Group Access|Volume Group Status|Internal Volume Group Number|Maximum Logical Volumes|" +
		"Current Logical Volumes|Open Logical Volumes|Maximum Logical Volume Size|Maximum Physical Volumes|" +
		"Current Physical Volumes|Actual Physical Volumes|Volume Group Size (kB)|Physical Extent Size (kB)|" +
		"Total Physical Extents|Allocated Physical Extents|Free Physical Extents|UUID"
	lvColumns = "Logical Volume Name|Volume Group Name|Logical Volume Access|Logical Volume Status|Internal Logical Volume Number|" +
		"Open Logical Volumes|Logical Volume Size|Current Logical Extents Associated|Allocated Logical Extents|" +
		"Allocation Policy|Read Ahead Sectors|Major Device Number|Minor Device Number"
)

// display runs a program with -c and names its columns.
func display(ctx context.Context, c *modules.Call, program, columns string, name any, quiet bool) (map[string]any, error) {
	cmd := saltcmd.Command{Args: []string{program, "-c"}, IgnoreRetcode: quiet}
	if pytext.Truth(name) {
		cmd.Args = append(cmd.Args, pytext.Str(name))
	}
	out := map[string]any{}
	r, err := saltcmd.Run(ctx, c, cmd)
	if err != nil || r.Retcode != 0 {
		return out, err
	}
	names := strings.Split(columns, "|")
	for _, line := range r.Lines() {
		if program == "pvdisplay" && strings.Contains(line, "is a new physical volume") {
			continue
		}
		f := strings.Split(pytext.Strip(line), ":")
		if len(f) < len(names) {
			return nil, modules.IndexError()
		}
		m := map[string]any{}
		for i, n := range names {
			m[n] = f[i]
		}
		out[f[0]] = m
	}
	return out, nil
}

func pvdisplay(ctx context.Context, c *modules.Call) (any, error) {
	m, err := display(ctx, c, "pvdisplay", pvColumns, c.Value("pvname"), c.Bool("quiet"))
	if err != nil || !c.Bool("real") {
		return m, err
	}
	out := map[string]any{}
	for device, v := range m {
		real, err := filepath.EvalSymlinks(c.Path(device))
		if err != nil {
			real = device
		}
		v.(map[string]any)["Real Physical Volume Device"] = real
		out[real] = v
	}
	return out, nil
}

func vgdisplay(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(display(ctx, c, "vgdisplay", vgColumns, c.Value("vgname"), c.Bool("quiet")))
}

func lvdisplay(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(display(ctx, c, "lvdisplay", lvColumns, c.Value("lvname"), c.Bool("quiet")))
}

// devices returns the devices of the call: a list, or the parts of a text between commas.
func devices(c *modules.Call) ([]string, error) {
	switch v := c.Value("devices").(type) {
	case string:
		return strings.Split(v, ","), nil
	case []any:
		return saltcmd.Words(v...), nil
	}
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("devices")) + "' object is not iterable"}
}

func isVolume(ctx context.Context, c *modules.Call, device string, quiet bool) (bool, error) {
	m, err := display(ctx, c, "pvdisplay", pvColumns, device, quiet)
	return len(m) > 0, err
}

// assent returns the option that makes LVM not ask questions.
func assent(c *modules.Call) any {
	if c.Bool("force") {
		return "--yes"
	}
	return "-qq"
}

func pvcreate(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("devices") {
		return "Error: at least one device is required", nil
	}
	list, err := devices(c)
	if err != nil {
		return nil, err
	}
	cmd := []any{"pvcreate", assent(c)}
	for _, d := range list {
		if _, err := os.Stat(c.Path(d)); err != nil {
			return d + " does not exist", nil
		}
		volume, err := isVolume(ctx, c, d, true)
		if err != nil {
			return nil, err
		}
		if !volume {
			cmd = append(cmd, d)
		} else if !c.Bool("override") {
			return `Device "` + d + `" is already an LVM physical volume.`, nil
		}
	}
	if len(cmd) == 2 {
		return true, nil
	}
	cmd = append(cmd, options(c, " metadatasize dataalignment dataalignmentoffset pvmetadatacopies metadatacopies metadataignore restorefile "+
		"norestorefile labelsector setphysicalvolumesize ")...)
	if text, err := complaint(ctx, c, cmd); err != nil || text != nil {
		return text, err
	}
	for _, d := range list {
		if volume, err := isVolume(ctx, c, d, false); err != nil || !volume {
			return `Device "` + d + `" was not affected.`, err
		}
	}
	return true, nil
}

// options returns the keyword arguments that the program accepts, as options.
func options(c *modules.Call, valid string) []any {
	var out []any
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if v := c.Keywords[k]; pytext.Truth(v) && strings.Contains(valid, " "+k+" ") {
			out = append(out, "--"+k, v)
		}
	}
	return out
}

// complaint runs a program and returns its error output, or nil if it succeeded.
func complaint(ctx context.Context, c *modules.Call, cmd []any) (any, error) {
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil || r.Retcode == 0 {
		return nil, err
	}
	return r.Stderr, nil
}

func pvremove(ctx context.Context, c *modules.Call) (any, error) {
	list, v, err := onVolumes(ctx, c, "pvremove")
	if err != nil || v != nil {
		return v, err
	}
	for _, d := range list {
		if volume, err := isVolume(ctx, c, d, true); err != nil || volume {
			return `Device "` + d + `" was not affected.`, err
		}
	}
	return true, nil
}

func pvresize(ctx context.Context, c *modules.Call) (any, error) {
	_, v, err := onVolumes(ctx, c, "pvresize")
	if err != nil || v != nil {
		return v, err
	}
	return true, nil
}

// onVolumes runs a program on those of the devices that are physical volumes. A result that is not nil is Salt's answer.
func onVolumes(ctx context.Context, c *modules.Call, program string) ([]string, any, error) {
	list, err := devices(c)
	if err != nil {
		return nil, nil, err
	}
	cmd := []any{program, assent(c)}
	for _, d := range list {
		volume, err := isVolume(ctx, c, d, false)
		if err != nil {
			return nil, nil, err
		}
		if volume {
			cmd = append(cmd, d)
		} else if !c.Bool("override") {
			return nil, d + " is not a physical volume", nil
		}
	}
	if len(cmd) == 2 {
		return nil, true, nil
	}
	text, err := complaint(ctx, c, cmd)
	return list, text, err
}

// verdict runs a program and returns its error output, or the text success if it succeeded.
func verdict(ctx context.Context, c *modules.Call, cmd []any, success string) (string, error) {
	text, err := complaint(ctx, c, cmd)
	if s, ok := text.(string); ok {
		return pytext.Strip(s), err
	}
	return success, err
}

func vgcreate(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("vgname") || !c.Bool("devices") {
		return "Error: vgname and device(s) are both required", nil
	}
	list, err := devices(c)
	if err != nil {
		return nil, err
	}
	cmd := []any{"vgcreate", c.Value("vgname")}
	for _, d := range list {
		cmd = append(cmd, d)
	}
	cmd = append(append(cmd, assent(c)), options(c, " addtag alloc autobackup clustered maxlogicalvolumes maxphysicalvolumes metadatatype "+
		"vgmetadatacopies metadatacopies physicalextentsize zero ")...)
	text, err := verdict(ctx, c, cmd, `Volume group "`+c.Str("vgname")+`" successfully created`)
	if err != nil {
		return nil, err
	}
	out, err := display(ctx, c, "vgdisplay", vgColumns, c.Value("vgname"), false)
	if err != nil {
		return nil, err
	}
	out["Output from vgcreate"] = text
	return out, nil
}

func vgextend(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("vgname") || !c.Bool("devices") {
		return "Error: vgname and device(s) are both required", nil
	}
	list, err := devices(c)
	if err != nil {
		return nil, err
	}
	cmd := []any{"vgextend", c.Value("vgname"), assent(c)}
	for _, d := range list {
		cmd = append(cmd, d)
	}
	text, err := verdict(ctx, c, cmd, `Volume group "`+c.Str("vgname")+`" successfully extended`)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Output from vgextend": text}, nil
}

func vgremove(ctx context.Context, c *modules.Call) (any, error) {
	return verdict(ctx, c, []any{"vgremove", c.Value("vgname"), assent(c)}, `Volume group "`+pytext.Str(c.Value("vgname"))+`" successfully removed`)
}

func lvremove(ctx context.Context, c *modules.Call) (any, error) {
	name := pytext.Str(c.Value("lvname"))
	return verdict(ctx, c, []any{"lvremove", pytext.Str(c.Value("vgname")) + "/" + name, assent(c)}, `Logical volume "`+name+`" successfully removed`)
}

func lvcreate(ctx context.Context, c *modules.Call) (any, error) {
	size, extents, thin, pool := c.Bool("size"), c.Bool("extents"), c.Bool("thinvolume"), c.Bool("thinpool")
	switch {
	case size && extents:
		return "Error: Please specify only one of size or extents", nil
	case thin && pool:
		return "Error: Please set only one of thinvolume or thinpool to True", nil
	case extents && thin:
		return "Error: Thin volume size cannot be specified as extents", nil
	case !size && !extents:
		return "Error: Either size or extents must be specified", nil
	}
	path := c.Which("lvcreate")
	if path == "" {
		path = "lvcreate"
	}
	cmd, name, group := []any{path}, c.Value("lvname"), pytext.Str(c.Value("vgname"))
	switch {
	case thin:
		cmd = append(cmd, "--thin", "-n", name)
	case pool:
		cmd = append(cmd, "--thinpool", name)
	default:
		cmd = append(cmd, "-n", name)
	}
	if c.Bool("snapshot") {
		cmd = append(cmd, "-s", group+"/"+c.Str("snapshot"))
	} else {
		cmd = append(cmd, c.Value("vgname"))
	}
	switch {
	case thin:
		cmd = append(cmd, "-V", c.Value("size"))
	case size:
		cmd = append(cmd, "-L", c.Value("size"))
	default:
		cmd = append(cmd, "-l", c.Value("extents"))
	}
	if c.Bool("pv") {
		cmd = append(cmd, c.Value("pv"))
	}
	const flags = " nosync noudevsync ignoremonitoring thin "
	const valid = " activate chunksize contiguous discards stripes stripesize minor persistent mirrors monitor permission poolmetadatasize " +
		"readahead regionsize type virtualsize zero "
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if strings.Contains(flags, " "+k+" ") {
			cmd = append(cmd, "--"+k)
		} else if strings.Contains(valid, " "+k+" ") {
			cmd = append(cmd, "--"+k, c.Keywords[k])
		}
	}
	text, err := verdict(ctx, c, append(cmd, assent(c)), `Logical volume "`+pytext.Str(name)+`" created.`)
	if err != nil {
		return nil, err
	}
	out, err := display(ctx, c, "lvdisplay", lvColumns, "/dev/"+group+"/"+pytext.Str(name), false)
	if err != nil {
		return nil, err
	}
	out["Output from lvcreate"] = text
	return out, nil
}

func lvresize(ctx context.Context, c *modules.Call) (any, error) {
	return resize(ctx, c, "lvresize", "--force", "resized")
}

func lvextend(ctx context.Context, c *modules.Call) (any, error) {
	return resize(ctx, c, "lvextend", "--yes", "extended")
}

func resize(ctx context.Context, c *modules.Call, program, force, done string) (any, error) {
	size, extents := c.Bool("size"), c.Bool("extents")
	if size == extents {
		c.Logger().Error("Either size or extents must be given, and not both")
		return map[string]any{}, nil
	}
	cmd := []any{program, "-qq"}
	if c.Bool("force") {
		cmd[1] = force
	}
	if c.Bool("resizefs") {
		cmd = append(cmd, "--resizefs")
	}
	if size {
		cmd = append(cmd, "-L", c.Value("size"))
	} else {
		cmd = append(cmd, "-l", c.Value("extents"))
	}
	text, err := verdict(ctx, c, append(cmd, c.Value("lvpath")), `Logical volume "`+pytext.Str(c.Value("lvpath"))+`" successfully `+done+".")
	if err != nil {
		return nil, err
	}
	return map[string]any{"Output from " + program: text}, nil
}
