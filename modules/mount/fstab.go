package mount

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// format is the shape of a table: the names of its fields and how a line looks.
type format struct {
	keys  []string
	least int
	line  func(m map[string]string) string
	named []string // file systems that are found by name, since they have no device
}

func fstabFormat() format {
	return format{
		keys: []string{"device", "name", "fstype", "opts", "dump", "pass_num"}, least: 4,
		line: func(m map[string]string) string {
			return m["device"] + "\t\t" + m["name"] + "\t" + m["fstype"] + "\t" + m["opts"] + "\t" + m["dump"] + " " + m["pass_num"] + "\n"
		},
		named: []string{
			"none", "tmpfs", "sysfs", "proc", "fusectl", "debugfs", "securityfs", "devtmpfs", "cgroup", "nfs", "nfs4", "glusterfs", "btrfs",
		},
	}
}

func vfstabFormat() format {
	return format{
		keys: []string{"device", "device_fsck", "name", "fstype", "pass_fsck", "mount_at_boot", "opts"}, least: 7,
		line: func(m map[string]string) string {
			return fmt.Sprintf("%-11s %-3s %-19s %-8s %-3s %-6s %s\n",
				m["device"], m["device_fsck"], m["name"], m["fstype"], m["pass_fsck"], m["mount_at_boot"], m["opts"])
		},
		named: []string{"devfs", "proc", "ctfs", "objfs", "sharefs", "fs", "tmpfs"},
	}
}

// formatOf returns the format of the host's mount table.
func formatOf(c *modules.Call) format {
	if c.Grain("kernel") == "SunOS" {
		return vfstabFormat()
	}
	return fstabFormat()
}

// parse splits a line of the table. ok is false for a comment or an unknown format.
func (f format) parse(line string) (map[string]string, bool) {
	words := strings.Fields(line)
	if strings.HasPrefix(line, "#") || len(words) < f.least || len(words) > len(f.keys) {
		return nil, false
	}
	m := make(map[string]string, len(f.keys))
	for i, k := range f.keys {
		m[k] = "0"
		if i < len(words) {
			m[k] = words[i]
		}
	}
	return m, true
}

// matches reports whether a line has all values of a criterion; the order of options does not matter.
func matches(entry, want map[string]string) bool {
	for k, v := range want {
		have := entry[k]
		if k == "opts" {
			a, b := strings.Split(have, ","), strings.Split(v, ",")
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				return false
			}
		} else if have != v {
			return false
		}
	}
	return true
}

// readLines returns the lines of a file with their line ends.
func readLines(c *modules.Call, path string) ([]string, error) {
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		why, _ := modules.OSErrorText(err)
		if why == "" {
			why = err.Error()
		}
		return nil, modules.Errorf("Couldn't read from %s: %s", path, why)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines, nil
}

func write(c *modules.Call, path string, lines []string) error {
	if err := atomicfile.Replace(c.Path(path), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return modules.Errorf("File not writable %s", path)
	}
	return nil
}

func fstab(_ context.Context, c *modules.Call) (any, error) {
	out, config := map[string]any{}, c.Str("config")
	if !c.IsFile(config) {
		return out, nil
	}
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	f := formatOf(c)
	for _, line := range lines {
		entry, ok := f.parse(line)
		if !ok {
			continue
		}
		name := entry["name"]
		for out[name] != nil {
			name += "_"
		}
		m := map[string]any{}
		for k, v := range entry {
			switch k {
			case "name":
			case "opts":
				m[k] = nested.Anys(strings.Split(v, ","))
			case "pass_num":
				m["pass"] = v
			default:
				m[k] = v
			}
		}
		out[name] = m
	}
	return out, nil
}

func rmFstab(_ context.Context, c *modules.Call) (any, error) {
	f, config := formatOf(c), c.Str("config")
	want := criterion(map[string]any{"name": c.Value("name"), "device": c.Value("device")})
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		entry, ok := f.parse(line)
		return ok && matches(entry, want)
	})
	if len(rest) == len(lines) {
		return true, nil
	}
	if err := atomicfile.Replace(c.Path(config), []byte(strings.Join(rest, "")), 0o644); err != nil {
		why, _ := modules.OSErrorText(err)
		return nil, modules.Errorf("Couldn't write to %s: %s", config, why)
	}
	return true, nil
}

// criterion returns the values that are set, as text.
func criterion(values map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		if v != nil {
			out[k] = pytext.Str(v)
		}
	}
	return out
}

func setFstab(_ context.Context, c *modules.Call) (any, error) {
	opts, err := joined(c)
	if err != nil {
		return nil, err
	}
	device, err := modules.Text(c.Value("device"), "replace")
	if err != nil {
		return nil, err
	}
	return set(c, fstabFormat(), map[string]any{
		"name": c.Value("name"), "device": strings.ReplaceAll(device, `\ `, `\040`), "fstype": c.Value("fstype"),
		"opts": strings.ReplaceAll(opts, `\ `, `\040`), "dump": c.Value("dump"), "pass_num": c.Value("pass_num"),
	})
}

func setVfstab(_ context.Context, c *modules.Call) (any, error) {
	opts, err := joined(c)
	if err != nil {
		return nil, err
	}
	boot := "no"
	if c.Value("mount_at_boot") == "yes" {
		boot = "yes"
	}
	return set(c, vfstabFormat(), map[string]any{
		"name": c.Value("name"), "device": c.Value("device"), "fstype": c.Value("fstype"), "opts": opts,
		"device_fsck": c.Value("device_fsck"), "pass_fsck": c.Value("pass_fsck"), "mount_at_boot": boot,
	})
}

// joined returns the mount options of the call, joined by commas.
func joined(c *modules.Call) (string, error) {
	if list, ok := c.Value("opts").([]any); ok {
		opts, err := options(list)
		return strings.Join(opts, ","), err
	}
	return modules.Text(c.Value("opts"), "replace")
}

// matchOn returns the fields that identify an entry.
func (f format) matchOn(v, fstype any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case string:
		if v != "auto" {
			return []any{v}, nil
		}
		if s, ok := fstype.(string); ok && slices.Contains(f.named, s) {
			return []any{"name"}, nil
		}
		return []any{"device"}, nil
	}
	return nil, modules.Errorf("match_on must be a string or list of strings")
}

// set adds an entry to a table, or changes the existing one.
func set(c *modules.Call, f format, values map[string]any) (any, error) {
	fields, err := f.matchOn(c.Value("match_on"), values["fstype"])
	if err != nil {
		return nil, err
	}
	entry, want, config := criterion(values), map[string]string{}, c.Str("config")
	var odd []any
	for _, k := range fields {
		key, _ := k.(string)
		if v, ok := entry[key]; ok {
			want[key] = v
		} else {
			odd = append(odd, k)
		}
	}
	if odd != nil {
		return nil, modules.Errorf(`Unrecognized keys in match_on: "%s"`, pytext.Str(odd))
	}
	for _, k := range f.keys {
		if s, ok := entry[k]; !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(k)}
		} else if strings.Contains(s, "\n") {
			return nil, modules.Usagef("%s must be one line, not %s", k, pytext.Repr(s))
		}
	}
	if !c.IsFile(config) {
		return nil, modules.Errorf(`Bad config file "%s"`, config)
	}
	lines, err := readLines(c, config)
	if err != nil {
		return nil, err
	}
	verdict := ""
	for i, line := range lines {
		have, ok := f.parse(line)
		if !ok || !matches(have, want) {
			continue
		}
		verdict = "present"
		if !matches(have, entry) && !c.Bool("not_change") {
			verdict, lines[i] = "change", f.line(entry)
		}
	}
	switch verdict {
	case "present":
		return verdict, nil
	case "":
		if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
			lines[n-1] += "\n"
		}
		verdict, lines = "new", append(lines, f.line(entry))
	}
	if testMode(c) {
		return verdict, nil
	}
	return verdict, write(c, config, lines)
}

// testMode reports whether the caller only wants to know what would be done.
func testMode(c *modules.Call) bool {
	if pytext.IsTrue(c.Value("test")) {
		return true
	}
	for k, v := range c.Keywords {
		if strings.EqualFold(k, "test") && pytext.IsTrue(v) {
			return true
		}
	}
	return false
}

// cache returns the path and the content of the file in which mounts are remembered.
func cache(c *modules.Call) (path string, data, mounts map[string]any) {
	dir, _ := c.Opt("cachedir").(string)
	path = strings.TrimSuffix(dir, "/") + "/mounts"
	data = readYAML(c.Path(path))
	mounts, _ = data["mounts"].(map[string]any)
	return path, data, mounts
}

func readMountCache(_ context.Context, c *modules.Call) (any, error) {
	_, _, mounts := cache(c)
	if v, ok := mounts[c.Str("name")]; ok {
		return v, nil
	}
	return map[string]any{}, nil
}

func writeMountCache(_ context.Context, c *modules.Call) (any, error) {
	path, data, mounts := cache(c)
	if mounts == nil {
		mounts = map[string]any{}
	}
	mounts[c.Str("real_name")] = map[string]any{
		"device": c.Value("device"), "fstype": c.Value("fstype"), "mkmnt": c.Value("mkmnt"), "opts": c.Value("mount_opts"),
	}
	return true, remember(c, path, data, mounts)
}

func deleteMountCache(_ context.Context, c *modules.Call) (any, error) {
	path, data, mounts := cache(c)
	name := c.Str("real_name")
	if !nested.Contains(keys(mounts), name) {
		return true, nil
	}
	delete(mounts, name)
	return true, remember(c, path, data, mounts)
}
