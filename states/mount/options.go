package mount

import (
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// options updates the mount options. done means that the state ends here.
func (m *mounting) options(here map[string]any) (done bool, err error) {
	changed, last, err := m.differing(here)
	if err != nil {
		return true, err
	}
	if changed != nil {
		slices.Sort(changed)
		why := "options (" + strings.Join(changed, ",") + ") changed"
		if m.Test() {
			m.ret.Result, m.ret.Comment = states.None, "Remount would be forced because "+why
			return true, nil
		}
		if done, err := m.again(why, "Forced a lazy unmount and mount because the previous unmount failed and because the "+why); done || err != nil {
			return true, err
		}
		m.remember = true
	}
	v, err := m.Exec(m.ctx, "mount.read_mount_cache", m.real)
	if err != nil {
		return true, err
	}
	cache, _ := v.(map[string]any)
	known, ok := cache["opts"]
	if !ok {
		m.remember = true
		return false, nil
	}
	missing := slices.DeleteFunc(each(known), func(o string) bool { return slices.Contains(m.opts, o) })
	if len(missing) == 0 {
		return false, nil
	}
	if m.Test() {
		m.ret.Result, m.ret.Comment = states.None, "Remount would be forced because options ("+strings.Join(missing, ",")+")changed"
		return true, nil
	}
	// Salt names the option that it looked at last.
	if done, err := m.again("options ("+last+") changed", ""); done || err != nil {
		return true, err
	}
	m.remember = true
	return false, nil
}

// each returns the elements of a list, or the characters of a text, as Python iterates over them.
func each(v any) []string {
	if s, ok := v.(string); ok {
		return strings.Split(s, "")
	}
	return list(v)
}

// again remounts the file system. Those of types nfs, cvfs and fuse are unmounted and mounted instead, because they
// cannot be remounted. If the unmount fails it is repeated lazily, and lazy is the text of the change unless empty.
func (m *mounting) again(why, lazy string) (done bool, err error) {
	how := map[string]any{"mkmnt": m.Value("mkmnt"), "fstype": m.fstype, "opts": nested.Anys(m.opts)}
	result := func(fun string) error {
		v, err := m.ExecKw(m.ctx, fun, []any{m.real, m.device}, how)
		m.ret.Result = states.OutcomeOf(pytext.Truth(v))
		return err
	}
	if m.fstype != "nfs" && m.fstype != "cvfs" && !strings.HasPrefix(m.fstype, "fuse") {
		m.ret.Changes["umount"] = "Forced remount because " + why
		err := result("mount.remount")
		if i := slices.Index(m.opts, "remount"); i >= 0 {
			m.opts = slices.Delete(m.opts, i, i+1)
		}
		return err != nil, err
	}
	m.ret.Changes["umount"] = "Forced unmount and mount because " + why
	out, err := m.Exec(m.ctx, "mount.umount", m.real)
	if err == nil && out != true {
		if lazy != "" {
			m.ret.Changes["umount"] = lazy
		}
		out, err = m.ExecKw(m.ctx, "mount.umount", []any{m.real}, map[string]any{"lazy": true})
	}
	if err != nil {
		return true, err
	}
	if out != true {
		return true, m.fail("Unable to unmount " + m.real + ": " + pytext.Str(out) + ".")
	}
	err = result("mount.mount")
	return err != nil, err
}

// size converts "size=1m" to kilobytes; ok is false for anything else.
func size(opt string) (string, bool) {
	text, ok := strings.CutPrefix(opt, "size=")
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if !ok || end == 0 || end == len(text) {
		return "", false
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return "", false
	}
	switch text[end] {
	case 'k':
	case 'm':
		n *= 1 << 10
	case 'g':
		n *= 1 << 20
	default:
		return "", false
	}
	return "size=" + strconv.FormatInt(n, 10) + "k", true
}

// differing returns the wanted options that the mount does not have. last is the option that was checked last.
func (m *mounting) differing(here map[string]any) (changed []string, last string, err error) {
	invisible := append([]string{"_netdev", "actimeo", "bg", "comment", "defaults", "delay_connect", "direct-io-mode", "intr", "loop", "nointr",
		"nobootwait", "nofail", "password", "reconnect", "retry", "soft", "auto", "users", "bind", "nonempty", "transform_symlinks", "port",
		"backup-volfile-servers"}, list(m.Value("extra_mount_invisible_options"))...)
	invisible = append(invisible, list(m.Value("hidden_opts"))...)
	keys := append([]string{"actimeo", "comment", "credentials", "direct-io-mode", "password", "port", "retry", "secretfile"},
		list(m.Value("extra_mount_invisible_keys"))...)
	var ignored []string
	if m.fstype == "ramfs" {
		ignored = []string{"size"}
	}
	if more, ok := m.Value("extra_mount_ignore_fs_keys").(map[string]any); ok && more[m.fstype] != nil {
		ignored = list(more[m.fstype])
	}
	translate, _ := m.Value("extra_mount_translate_options").(map[string]any)
	active, super := list(here["opts"]), list(here["superopts"])
	for _, opt := range m.opts {
		if other, ok := translate[opt]; ok {
			opt = pytext.Str(other)
		} else if opt == "tcp" || opt == "udp" {
			opt = "proto=" + opt
		}
		if opt, err = m.shown(opt, keys, ignored); err != nil {
			return nil, "", err
		}
		for i, o := range super {
			if s, ok := size(o); ok { // Salt compares nothing else then
				opt, super[i] = s, s
			}
		}
		last = opt
		if !slices.Contains(active, opt) && !slices.Contains(super, opt) && !slices.Contains(invisible, opt) && !slices.Contains(ignored, opt) &&
			!slices.Contains(keys, opt) {
			changed = append(changed, opt)
		}
	}
	return changed, last, nil
}

// shown returns an option in the form of the list of mounts.
func (m *mounting) shown(opt string, keys, ignored []string) (string, error) {
	key, _, _ := strings.Cut(opt, "=")
	if slices.Contains(keys, key) {
		opt = key
	}
	if s, ok := size(opt); ok {
		opt = s
	}
	parts := strings.Split(opt, "=")
	if m.fstype == "cifs" && parts[0] == "user" && len(parts) > 1 {
		opt = "username=" + parts[1]
		parts[0] = "username"
	}
	if slices.Contains(ignored, parts[0]) {
		opt = parts[0]
		parts = parts[:1]
	}
	if len(parts) < 2 || parts[0] != "uid" && parts[0] != "gid" {
		return opt, nil
	}
	id := parts[1]
	if id == "" || strings.Trim(id, "0123456789") != "" {
		fun := "user.info"
		if parts[0] == "gid" {
			fun = "group.info"
		}
		v, err := m.Exec(m.ctx, fun, id)
		if err != nil {
			return "", err
		}
		if info, ok := v.(map[string]any); ok && info[parts[0]] != nil {
			id = pytext.Str(info[parts[0]])
		}
	}
	return parts[0] + "=" + id, nil
}

// tolerated returns a device of the mount that is as good as the wanted one, or "" if it is missing.
func (m *mounting) tolerated() (string, error) {
	same := ""
	for _, pattern := range list(m.Value("device_name_regex")) {
		re, err := pyre.Compile(pattern, 0)
		if err != nil {
			return "", err
		}
		for _, d := range m.devices {
			at, err := re.Match(d)
			if err != nil {
				return "", err
			}
			if at != nil {
				same = d
				break
			}
		}
	}
	return same, nil
}
