package mount

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

func readYAML(path string) map[string]any {
	text, err := os.ReadFile(path)
	if err != nil {
		return map[string]any{}
	}
	v, err := yaml.Parse(text, path)
	if m, ok := v.(map[string]any); ok && err == nil {
		return m
	}
	return map[string]any{}
}

// remember writes the mounts into the cache.
func remember(c *modules.Call, path string, data, mounts map[string]any) error {
	data["mounts"] = mounts
	text, err := yaml.Marshal(data)
	if err == nil {
		err = atomicfile.Replace(c.Path(path), []byte(text), 0o600)
	}
	if err != nil {
		c.Logger().Error("Cannot remember the mounts", "err", err)
		return modules.Errorf("Unable to write mount cache.")
	}
	return nil
}

// autoEntry splits a line of the automounter's file. ok is false for a comment or an unknown format.
func autoEntry(line string) ([]string, bool) {
	f := strings.Fields(line)
	return f, len(f) == 3 && !strings.HasPrefix(line, "#")
}

// afterColon returns the second of the parts between colons, with Python's IndexError if it is missing.
func afterColon(s string) (string, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 {
		return "", modules.IndexError()
	}
	return parts[1], nil
}

func automaster(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(readAutomaster(c, c.Str("config")))
}

func readAutomaster(c *modules.Call, config string) (map[string]any, error) {
	out := map[string]any{}
	if !c.IsFile(config) {
		return out, nil
	}
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		f, ok := autoEntry(line)
		if !ok {
			continue
		}
		device, err := afterColon(f[2])
		if err != nil {
			return nil, err
		}
		opts := strings.Split(f[1], ",")
		out[strings.ReplaceAll(f[0], "/..", "")] = map[string]any{"device": device, "fstype": opts[0], "opts": nested.Anys(opts[1:])}
	}
	return out, nil
}

func rmAutomaster(ctx context.Context, c *modules.Call) (any, error) {
	config, name := c.Str("config"), c.Str("name")
	now, err := readAutomaster(c, config)
	if err != nil {
		return nil, err
	}
	if now[name] == nil {
		return true, nil
	}
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	lines = slices.DeleteFunc(lines, func(line string) bool {
		f, ok := autoEntry(line)
		if !ok || strings.ReplaceAll(f[0], "/..", "") != name {
			return false
		}
		device, err := afterColon(f[2])
		return !c.Bool("device") || err == nil && device == c.Str("device")
	})
	if err := atomicfile.Replace(c.Path(config), []byte(strings.Join(lines, "")), 0o644); err != nil {
		why, _ := modules.OSErrorText(err)
		return nil, modules.Errorf("Couldn't write to %s: %s", config, why)
	}
	_, err = saltcmd.Text(ctx, c, "automount", "-cv")
	return true, err
}

func setAutomaster(_ context.Context, c *modules.Call) (any, error) {
	opts, config := c.Str("opts"), c.Str("config")
	if list, ok := c.Value("opts").([]any); ok {
		o, err := options(list)
		if err != nil {
			return nil, err
		}
		opts = strings.Join(o, ",")
	}
	if !c.IsFile(config) {
		if err := announce(c, config); err != nil {
			return nil, err
		}
	}
	fstype := c.Str("fstype")
	name, device, kind := "/.."+c.Str("name"), fstype+":"+c.Str("device"), "-fstype="+fstype+","+opts
	if fstype == "smbfs" {
		device = strings.ReplaceAll(device, fstype, "")
	}
	entry := name + "\t" + kind + "\t" + device + "\n"
	if strings.Count(entry, "\n") != 1 {
		return nil, modules.Usagef("a mount must be one line, not %s", pytext.Repr(entry))
	}
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	var out []string
	changed, present := false, false
	for _, line := range lines {
		f, ok := autoEntry(line)
		if !ok || f[0] != name && f[2] != device {
			out = append(out, line)
			continue
		}
		if present = true; c.Bool("not_change") {
			continue
		}
		if changed = changed || f[0] != name || f[1] != kind || f[2] != device; changed {
			out = append(out, entry)
		}
	}
	verdict := "new"
	switch {
	case changed:
		verdict = "change"
	case present:
		return "present", nil
	default:
		out = append(out, entry)
	}
	if testMode(c) {
		return verdict, nil
	}
	return verdict, write(c, config, out)
}

// announce makes the automounter's file and lists it in the master file.
func announce(c *modules.Call, config string) error {
	const master = "/etc/auto_master"
	if err := atomicfile.WriteFile(c.Path(config), nil, 0o644); err != nil {
		return modules.OSError(err)
	}
	text, err := os.ReadFile(c.Path(master))
	if err != nil {
		return modules.OSError(err)
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text, '\n')
	}
	if err := atomicfile.Replace(c.Path(master), append(text, "/-\t\t\t"+config+"\n"...), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}
