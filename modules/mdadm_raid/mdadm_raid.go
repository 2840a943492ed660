// Package mdadm_raid is Salt's execution module "raid". Salt's source: salt/modules/mdadm_raid.py.
package mdadm_raid

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// raid.create, raid.assemble differ: options come in alphabetical order, in stock in that of the call.

func available(e *modules.Env) (bool, string) {
	switch {
	case e.Grain("kernel") != "Linux":
		return false, "The mdadm execution module cannot be loaded: only available on Linux."
	case e.Which("mdadm") == "":
		return false, "The mdadm execution module cannot be loaded: the mdadm binary is not in the path."
	}
	return true, ""
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(arrays(ctx, c))
}

func arrays(ctx context.Context, c *modules.Call) (map[string]any, error) {
	r, err := saltcmd.All(ctx, c, "mdadm", "--detail", "--scan")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range r.Lines() {
		f := strings.Fields(line)
		if !strings.Contains(line, " ") {
			continue
		}
		if len(f) < 2 {
			return nil, modules.IndexError()
		}
		m := map[string]any{"device": f[1]}
		for _, w := range f[2:] {
			parts := strings.Split(w, "=")
			if len(parts) < 2 {
				return nil, modules.IndexError()
			}
			m[strings.ToLower(parts[0])] = parts[1]
		}
		out[f[1]] = m
	}
	return out, nil
}

func detail(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(describe(ctx, c, c.Str("device")))
}

func describe(ctx context.Context, c *modules.Call, device string) (map[string]any, error) {
	if _, err := os.Stat(c.Path(device)); err != nil || device == "" {
		return nil, modules.Errorf("Device %s doesn't exist!", device)
	}
	r, err := saltcmd.All(ctx, c, "mdadm", "--detail", device)
	if err != nil {
		return nil, err
	}
	members := map[string]any{}
	out := map[string]any{"members": members}
	for _, line := range r.Lines() {
		switch {
		case strings.HasPrefix(line, device) || !strings.Contains(line, " "):
		case strings.Contains(line, ":"):
			parts := strings.Split(line, " : ")
			if len(parts) < 2 {
				return nil, modules.IndexError()
			}
			out[strings.ReplaceAll(pytext.Strip(strings.ToLower(parts[0])), " ", "_")] = pytext.Strip(parts[1])
		case strings.Contains(line, "/dev/"):
			f := strings.Fields(line)
			if len(f) < 4 {
				return nil, modules.IndexError()
			}
			members[f[0]] = map[string]any{
				"device": f[len(f)-1], "major": f[1], "minor": f[2], "number": f[0], "raiddevice": f[3],
				"state": strings.Join(f[4:max(4, len(f)-1)], " "),
			}
		}
	}
	return out, nil
}

// config returns the path of mdadm's configuration file.
func config(c *modules.Call) string {
	if c.Grain("os_family") == "Debian" {
		return "/etc/mdadm/mdadm.conf"
	}
	return "/etc/mdadm.conf"
}

// replace changes the configuration. It returns false if the file is missing.
func replace(ctx context.Context, c *modules.Call, pattern, text string, appended bool) (bool, error) {
	kw := map[string]any{}
	if appended {
		kw["append_if_not_found"] = true
	}
	_, err := c.ExecKw(ctx, "file.replace", []any{config(c), pattern, text}, kw)
	var usage *modules.UsageError
	if errors.As(err, &usage) {
		return false, nil
	}
	return err == nil, err
}

func destroy(ctx context.Context, c *modules.Call) (any, error) {
	device := c.Str("device")
	details, err := describe(ctx, c, device)
	if modules.IsExecError(err) {
		return false, nil
	}
	if err != nil {
		return nil, err
	}
	code, err := saltcmd.Retcode(ctx, c, "mdadm", "--stop", device)
	if err != nil {
		return nil, err
	}
	if code == 0 {
		cmd := []any{"mdadm", "--zero-superblock"}
		members := details["members"].(map[string]any)
		for _, n := range slices.Sorted(maps.Keys(members)) {
			cmd = append(cmd, members[n].(map[string]any)["device"])
		}
		if _, err := saltcmd.Retcode(ctx, c, cmd...); err != nil {
			return nil, err
		}
	}
	if _, err := replace(ctx, c, "ARRAY "+device+" .*", "", false); err != nil {
		return nil, err
	}
	left, err := arrays(ctx, c)
	return err == nil && left[device] == nil, err
}

func stop(ctx context.Context, c *modules.Call) (any, error) {
	code, err := saltcmd.Retcode(ctx, c, "mdadm", "--stop", "--scan")
	return err == nil && code != 0, err
}

// options returns the keyword arguments as options. True stands for an option without a value.
func options(c *modules.Call) []any {
	var out []any
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if strings.HasPrefix(k, "__") {
			continue
		}
		out = append(out, "--"+k)
		if v := c.Keywords[k]; v != true {
			out = append(out, v)
		}
	}
	return out
}

func create(ctx context.Context, c *modules.Call) (any, error) {
	devices, ok := c.Value("devices").([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: `can only concatenate list (not "` + modules.TypeName(c.Value("devices")) + `") to list`}
	}
	n := int64(len(devices))
	if v, ok := c.Keywords["spare-devices"]; ok {
		spare, err := modules.ToInt(v)
		if err != nil {
			return nil, err
		}
		n -= spare
	}
	cmd := append([]any{"mdadm", "-C", c.Value("name"), "-R", "-v", "-l", c.Value("level")}, options(c)...)
	cmd = append(append(cmd, "-e", c.Value("metadata"), "-n", n), devices...)
	switch c.Value("test_mode") {
	case true:
		return strings.Join(saltcmd.Words(cmd...), " "), nil
	case false:
		return saltcmd.Text(ctx, c, cmd...)
	}
	return nil, nil
}

func assemble(ctx context.Context, c *modules.Call) (any, error) {
	devices, ok := c.Value("devices").([]any)
	if s, text := c.Value("devices").(string); text {
		for _, d := range strings.Split(s, ",") {
			devices = append(devices, d)
		}
	} else if !ok {
		return nil, &modules.TypeError{Msg: `can only concatenate list (not "` + modules.TypeName(c.Value("devices")) + `") to list`}
	}
	cmd := append(append([]any{"mdadm", "-A", c.Value("name"), "-v"}, options(c)...), devices...)
	switch c.Value("test_mode") {
	case true:
		return cmd, nil
	case false:
		return saltcmd.Text(ctx, c, cmd...)
	}
	return nil, nil
}

func saveConfig(ctx context.Context, c *modules.Call) (any, error) {
	text, err := saltcmd.Text(ctx, c, "mdadm", "--detail", "--scan")
	if err != nil {
		return nil, err
	}
	lines := pytext.SplitLines(text, false)
	if c.Grain("os") == "Ubuntu" { // whose mdadm writes what it does not read
		tags := regexp.MustCompile(`(?i)\s(?:name|metadata)=\S+`)
		for i := range lines {
			lines[i] = tags.ReplaceAllString(lines[i], "")
		}
	}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 2 {
			return nil, modules.IndexError()
		}
		there, err := replace(ctx, c, `^ARRAY\s+`+pyre.Escape(f[1])+`\s+.*$`, line, true)
		if err != nil {
			return nil, err
		}
		if !there {
			if _, err := c.Exec(ctx, "file.write", append([]any{config(c)}, nested.Anys(lines)...)...); err != nil {
				return nil, err
			}
			break
		}
	}
	switch c.Grain("os_family") {
	case "Debian":
		return saltcmd.Text(ctx, c, "update-initramfs", "-u")
	case "RedHat":
		return saltcmd.Text(ctx, c, "dracut", "--force")
	}
	return nil, nil
}

func examine(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args: saltcmd.Words("mdadm", "-Y", "-E", c.Value("device")), IgnoreRetcode: c.Bool("quiet"),
	})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range r.Lines() {
		name, value, _ := strings.Cut(line, "=")
		out[name] = value
	}
	return out, nil
}

func add(ctx context.Context, c *modules.Call) (any, error) {
	code, err := saltcmd.Retcode(ctx, c, "mdadm", "--manage", c.Value("name"), "--add", c.Value("device"))
	return err == nil && code == 0, err
}
