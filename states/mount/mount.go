// Package mount is Salt's state module "mount": what is mounted where, swap, and the fstab (salt/states/mount.py).
package mount

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// mounting is mount.mounted while it runs.
type mounting struct {
	*states.Call
	ctx            context.Context
	ret            *states.Result
	name           string
	real           string // the mount point behind links
	key            string // as the list of mounts has it
	device, fstype string
	actual         string // the device that the list of mounts should show
	devices        []string
	opts           []string
	active         map[string]any
	remember       bool
}

func (m *mounting) fail(text string) error {
	m.ret.Result, m.ret.Comment = states.False, text
	return nil
}

// list returns a list of texts, or the parts of a text between commas.
func list(v any) []string {
	switch v := v.(type) {
	case string:
		return strings.Split(v, ",")
	case []any:
		out := make([]string, len(v))
		for i, x := range v {
			out[i] = pytext.Str(x)
		}
		return out
	}
	return nil
}

// realPath follows links, also where the end is not there.
func realPath(c *states.Call, path string) string {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // where a minion is at home
	}
	return posixpath.Real(path, func(p string) string {
		target, err := os.Readlink(c.Path(p))
		if err != nil {
			return ""
		}
		return target
	})
}

func exists(c *states.Call, path string) bool {
	_, err := os.Stat(c.Path(path))
	return err == nil
}

func escaped(path string) string { return strings.ReplaceAll(path, " ", `\040`) }

// bare removes the slash at the end of a mount point.
func bare(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimRight(path, "/")
}

// look reads the list of active mounts.
func (m *mounting) look() error {
	v, err := m.ExecKw(m.ctx, "mount.active", nil, map[string]any{"extended": true})
	m.active, _ = v.(map[string]any)
	return err
}

// at returns the entry of the list of mounts for a mount point.
func (m *mounting) at(key string) (map[string]any, bool) {
	e, ok := m.active[key].(map[string]any)
	return e, ok
}

func mounted(ctx context.Context, c *states.Call) (*states.Result, error) {
	m := &mounting{Call: c, ctx: ctx, ret: c.Result(), device: c.Str("device"), fstype: c.Str("fstype"), opts: list(c.Value("opts"))}
	m.ret.Result = states.True
	for _, key := range [...]string{"name", "device", "fstype"} {
		if !c.Bool(key) {
			return m.ret.As(states.False, "Must provide "+key+" to mount.mounted")
		}
	}
	m.name = bare(c.Str("name"))
	if err := m.look(); err != nil {
		return nil, err
	}
	m.real = realPath(c, m.name)
	m.key = escaped(m.real)
	done, err := m.identify()
	if done || err != nil {
		return m.ret, err
	}
	if _, ok := m.at(m.key); ok && c.Bool("mount") {
		if done, err = m.adjust(); done || err != nil {
			return m.ret, err
		}
	}
	if _, ok := m.at(m.key); !ok {
		if done, err = m.mount(); done || err != nil {
			return m.ret, err
		}
	}
	if !c.Bool("persist") {
		return m.ret, nil
	}
	return m.ret, m.persist()
}

// identify determines the form in which the list of mounts shows the device. done means that the state ends here.
func (m *mounting) identify() (done bool, err error) {
	upper := strings.ToUpper(m.device)
	m.actual = m.device
	switch {
	case strings.HasPrefix(m.device, "/"):
		m.actual = realPath(m.Call, m.device)
		if here, ok := m.at(m.key); ok && slices.Contains(m.opts, "bind") {
			if err := m.bound(here); err != nil {
				return true, err
			}
		}
	case strings.HasPrefix(upper, "UUID="):
		m.actual = strings.ToLower(strings.Trim(strings.Split(m.device, "=")[1], `"`))
	case strings.HasPrefix(upper, "LABEL="):
		label := strings.Split(m.device, "=")[1]
		res, err := saltcmd.All(m.ctx, m.Call.Call, "blkid", "-t", "LABEL="+label)
		if err != nil {
			return true, err
		}
		if res.Retcode > 0 {
			return true, m.fail("Unable to find device with label " + label + ".")
		}
		// Salt takes the first letter of the output for the device and adds it to the known devices, so that
		// every mounted device passes for the wanted one.
		if res.Stdout == "" {
			return true, modules.IndexError()
		}
		m.actual = res.Stdout[:1]
		m.devices = append(m.devices, m.actual)
	}
	if parts := strings.Split(m.device, "/"); len(parts) == 4 && parts[0] == "" && parts[1] == "dev" && parts[2] != "" && parts[3] != "" {
		mapper := "/dev/mapper/" + strings.ReplaceAll(parts[2], "-", "--") + "-" + strings.ReplaceAll(parts[3], "-", "--")
		if exists(m.Call, mapper) {
			m.actual = mapper
		}
	}
	if kind, rest, ok := strings.Cut(m.device, "#"); ok && kind != "" && rest != "" && !strings.ContainsFunc(kind, notWord) {
		m.actual = rest // fuse
	}
	return false, nil
}

func notWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// bound handles a bind mount, whose device is that of the file system that contains the bound directory.
func (m *mounting) bound(here map[string]any) error {
	adopt := func(e map[string]any) {
		if m.Bool("bind_mount_copy_active_opts") {
			all := slices.Concat(m.opts, list(e["opts"]), list(e["superopts"]))
			slices.Sort(all)
			m.opts = slices.Compact(all)
		}
		opts, _ := here["opts"].([]any)
		here["opts"] = append(slices.Clone(opts), "bind")
	}
	dev := escaped(m.device)
	if !strings.HasPrefix(pytext.Str(here["device"]), "/") {
		if e, ok := m.at(dev); ok {
			adopt(e)
		}
		m.actual = pytext.Str(here["device"])
		return nil
	}
	for {
		if e, ok := m.at(dev); ok {
			m.actual = pytext.Str(e["device"])
			adopt(e)
			return nil
		}
		if dev == "/" || dev == "" {
			return modules.Errorf("cannot find the file system of %s among the mounts", m.device)
		}
		dev = posixpath.Dir(strings.ReplaceAll(dev, `\040`, " "))
	}
}

// adjust corrects an existing mount: it updates the options, and unmounts a wrong device. done means that the state
// ends here.
func (m *mounting) adjust() (done bool, err error) {
	here, _ := m.at(m.key)
	device := pytext.Str(here["device"])
	m.devices = append(m.devices, device)
	m.devices = append(m.devices, realPath(m.Call, m.devices[0]))
	for _, key := range [...]string{"alt_device", "device_uuid", "device_label"} {
		if d := here[key]; pytext.Truth(d) && !slices.Contains(m.devices, pytext.Str(d)) {
			m.devices = append(m.devices, pytext.Str(d))
		}
	}
	if len(m.opts) > 0 {
		if done, err := m.options(here); done || err != nil {
			return true, err
		}
	}
	if slices.Contains(m.devices, m.actual) {
		m.ret.Comment = "Target was already mounted"
		return false, nil
	}
	same, err := m.tolerated()
	switch {
	case err != nil:
		return true, err
	case same != "":
		m.ret.Result, m.ret.Comment = states.True, "An umount will not be forced because device matched device_name_regex: "+same
		return false, nil
	case m.Test():
		m.ret.Result, m.ret.Comment = states.None, "An umount would have been forced because devices do not match.  Watched: "+m.device
		return false, nil
	}
	why := "Forced unmount because devices don't match. Wanted: " + m.device
	if m.actual != m.device {
		why += " (" + m.actual + ")"
	}
	m.ret.Changes["umount"] = why + ", current: " + strings.Join(m.devices, ", ")
	if _, err := m.ExecKw(m.ctx, "mount.umount", []any{m.real}, map[string]any{"user": m.Value("user")}); err != nil {
		return true, err
	}
	if err := m.look(); err != nil {
		return true, err
	}
	if _, ok := m.at(m.key); ok {
		return true, m.fail("Unable to unmount")
	}
	m.remember = true
	return false, nil
}

// mount mounts the device if the state wants that. done means that the state ends here.
func (m *mounting) mount() (done bool, err error) {
	there, mkmnt := exists(m.Call, m.name), m.Bool("mkmnt")
	say := func(text string) { m.ret.Comment = m.name + " " + text }
	if !m.Bool("mount") {
		switch {
		case there && m.Test():
			say("would not be mounted")
		case there:
			say("not mounted")
		case m.Test():
			if m.ret.Result = states.None; mkmnt {
				say("would be created, but not mounted")
			} else {
				say("does not exist and would neither be created nor mounted")
			}
		case mkmnt:
			say("was created, not mounted")
			_, err = m.ExecKw(m.ctx, "file.mkdir", []any{m.name}, map[string]any{"user": m.Value("user")})
		default:
			say("not present and not mounted")
		}
		return err != nil, err
	}
	if m.Test() {
		m.ret.Result = states.None
		switch {
		case there:
			say("would be mounted")
		case mkmnt:
			say("would be created and mounted")
		default:
			say("does not exist and would not be created")
		}
		return true, nil
	}
	if !there && !mkmnt {
		return true, m.fail("Mount directory is not present")
	}
	out, err := m.ExecKw(m.ctx, "mount.mount", []any{m.name, m.device, m.Value("mkmnt"), m.fstype, nested.Anys(m.opts)}, map[string]any{"user": m.Value("user")})
	if err != nil {
		return true, err
	}
	if err := m.look(); err != nil {
		return true, err
	}
	m.remember = true
	if text, ok := out.(string); ok {
		return true, m.fail(text)
	}
	if _, ok := m.at(m.key); ok {
		m.ret.Comment = "Target was successfully mounted"
		m.ret.Changes["mount"] = true
	}
	return false, nil
}

// persist writes the mount to the fstab.
func (m *mounting) persist() error {
	kw := map[string]any{"match_on": m.Value("match_on")}
	if m.Test() {
		kw["test"] = true
	}
	out, err := m.ExecKw(m.ctx, "mount.set_fstab", []any{m.name, m.device, m.fstype, nested.Anys(m.opts), m.Value("dump"), m.Value("pass_num"), m.Value("config")}, kw)
	if err != nil {
		return err
	}
	if m.Test() && out != "present" {
		m.preview(out)
		return nil
	}
	if m.remember { // in test mode as well
		if _, err := m.ExecKw(m.ctx, "mount.write_mount_cache", []any{m.real, m.device},
			map[string]any{"mkmnt": m.Value("mkmnt"), "fstype": m.fstype, "mount_opts": nested.Anys(m.opts)}); err != nil {
			return err
		}
	}
	switch out {
	case "present":
		m.ret.Comment += ". Entry already exists in the fstab."
	case "new":
		m.ret.Changes["persist"] = "new"
		m.ret.Comment += ". Added new entry to the fstab."
	case "change":
		m.ret.Changes["persist"] = "update"
		m.ret.Comment += ". Updated the entry in the fstab."
	case "bad config":
		m.ret.Result = states.False
		m.ret.Comment += ". However, the fstab was not found."
	}
	return nil
}

// preview sets the result of test mode: whether the fstab would get a new or a changed entry.
func (m *mounting) preview(out any) {
	comment := ""
	m.ret.Result = states.None
	switch mount := m.Bool("mount"); {
	case out == "new" && mount:
		comment = m.name + " is mounted, but needs to be written to the fstab in order to be made persistent."
	case out == "new":
		comment = m.name + " needs to be written to the fstab in order to be made persistent."
	case out == "change" && mount:
		comment = m.name + " is mounted, but its fstab entry must be updated."
	case out == "change":
		comment = "The " + m.name + " fstab entry must be updated."
	default:
		m.ret.Result = states.False
		comment = "Unable to detect fstab status for mount point " + m.name + " due to unexpected output '" + pytext.Str(out) +
			"' from call to mount.set_fstab. This is most likely a bug."
	}
	m.ret.Comment += ". " + comment
}
