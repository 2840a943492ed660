// Package timezone is Salt's execution module "timezone" on Linux and the BSDs. Salt's source: salt/modules/timezone.py.
package timezone

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	zoneinfo  = "/usr/share/zoneinfo/"
	localtime = "/etc/localtime"
)

func available(*modules.Env) (bool, string) {
	switch runtime.GOOS {
	case "windows":
		return false, "The timezone execution module failed to load: win_timezone.py should replace this module on Windows." +
			"There was a problem loading win_timezone.py."
	case "darwin":
		return false, "The timezone execution module failed to load: mac_timezone.py should replace this module on macOS." +
			"There was a problem loading mac_timezone.py."
	}
	return true, ""
}

// family reports whether the host's family of systems is the given one.
func family(c *modules.Call, name string) bool {
	s, _ := c.Grain("os_family").(string)
	return strings.Contains(s, name)
}

// localtimePath returns the file that sets the host's time zone.
func localtimePath(c *modules.Call) string {
	if id, _ := c.Grain("lsb_distrib_id").(string); family(c, "NILinuxRT") && strings.Contains(id, "nilrt") {
		return "/etc/natinst/share/localtime"
	}
	return localtime
}

func timedatectl(ctx context.Context, c *modules.Call) (saltcmd.Result, error) {
	r, err := saltcmd.All(ctx, c, "timedatectl")
	if err == nil && r.Retcode != 0 {
		err = modules.Errorf("timedatectl failed: %s", r.Stderr)
	}
	return r, err
}

func getZone(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(current(ctx, c))
}

// current returns the host's time zone, for timezone.get_zone.
func current(ctx context.Context, c *modules.Call) (string, error) {
	if c.Which("timedatectl") != "" {
		r, err := timedatectl(ctx, c)
		if err != nil {
			return "", err
		}
		for _, line := range strings.Split(r.Stdout, "\n") {
			key, rest, ok := strings.Cut(pytext.Strip(line), ":")
			if words := strings.Fields(rest); ok && (key == "Timezone" || key == "Time zone") && len(words) > 0 && rest[0] <= ' ' {
				return words[0], nil
			}
		}
		return "", modules.Errorf("Failed to parse timedatectl output: %s\nPlease file an issue with SaltStack", r.Stdout)
	}
	if name, _ := c.Grain("os").(string); strings.EqualFold(name, "centos") {
		return fromLocaltime(ctx, c)
	}
	switch {
	case family(c, "RedHat") || family(c, "Suse"):
		return fromSysconfig(c)
	case family(c, "Debian") || family(c, "Gentoo"):
		text, err := os.ReadFile(c.Path("/etc/timezone"))
		if err != nil {
			return "", modules.Errorf("Problem reading timezone file /etc/timezone: %s", reason(err))
		}
		return pytext.Strip(string(text)), nil
	}
	switch c.Grain("os_family") {
	case "FreeBSD", "OpenBSD", "NetBSD", "NILinuxRT", "Slackware":
		return fromLocaltime(ctx, c)
	}
	return "", modules.Errorf("Unable to get timezone")
}

// reason implements Python's strerror.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		s := errno.Error()
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return err.Error()
}

// lines returns the lines of a file without comments.
func lines(c *modules.Call, file string) ([]string, error) {
	text, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
			out = append(out, line)
		}
	}
	return out, nil
}

// lastValue returns the part of a line after its last equals sign.
func lastValue(line string) string { return line[strings.LastIndex(line, "=")+1:] }

func fromSysconfig(c *modules.Call) (string, error) {
	const file = "/etc/sysconfig/clock"
	list, err := lines(c, file)
	if err != nil {
		return "", modules.OSError(err)
	}
	for _, line := range list {
		if strings.Contains(line, "ZONE") && strings.Contains(line, "=") {
			if zone := strings.Trim(lastValue(line), `'"`); zone != "" {
				return zone, nil
			}
			return "UTC", nil
		}
	}
	return "", modules.Errorf("Unable to get timezone from %s", file)
}

// fromLocaltime finds the zone by where the link leads, or by a file of zoneinfo with the same content.
func fromLocaltime(ctx context.Context, c *modules.Call) (string, error) {
	file := localtimePath(c)
	target, err := os.Readlink(c.Path(file))
	if err == nil {
		if !path.IsAbs(target) {
			target = path.Join("/etc", target)
		}
		if zone, ok := strings.CutPrefix(path.Clean(target), zoneinfo); ok {
			return zone, nil
		}
		return "", modules.Errorf("Unable to determine timezone")
	}
	missing, noLink := errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL)
	switch {
	case (missing || noLink) && family(c, "FreeBSD"):
		return saltcmd.Text(ctx, c, "date", "+%Z")
	case missing:
		return "", modules.Errorf("%s does not exist", file)
	case !noLink:
		return "", modules.Errorf("Unable to determine timezone")
	}
	return bySameContent(ctx, c, file)
}

func bySameContent(ctx context.Context, c *modules.Call, file string) (string, error) {
	want, err := os.ReadFile(c.Path(file))
	if err != nil {
		return "", modules.OSError(err)
	}
	found := ""
	root := c.Path(zoneinfo)
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || ctx.Err() != nil {
			return ctx.Err() // what cannot be read is not the zone
		}
		name, err := filepath.Rel(root, p)
		if err != nil || name[0] >= 'a' && name[0] <= 'z' {
			return err
		}
		if info, err := os.Stat(p); err != nil || info.Size() != int64(len(want)) {
			return nil
		}
		if text, err := os.ReadFile(p); err == nil && bytes.Equal(text, want) {
			found = filepath.ToSlash(name)
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && found == "" {
		err = modules.Errorf("Unable to determine timezone")
	}
	return found, err
}

func getZonecode(ctx context.Context, c *modules.Call) (any, error) {
	return saltcmd.Text(ctx, c, "date", "+%Z")
}

func getOffset(ctx context.Context, c *modules.Call) (any, error) {
	return saltcmd.Text(ctx, c, "date", "+%z")
}

func setZone(ctx context.Context, c *modules.Call) (any, error) {
	zone := c.Str("timezone")
	if c.Which("timedatectl") != "" {
		if _, err := saltcmd.Text(ctx, c, "timedatectl", "set-timezone", zone); err != nil && !modules.IsExecError(err) {
			return nil, err
		}
	}
	file := zoneinfo + zone
	if _, err := os.Stat(c.Path(file)); err != nil {
		return "Zone does not exist: " + file, nil
	}
	if err := link(c, file, localtimePath(c)); err != nil {
		return nil, err
	}
	switch {
	case family(c, "RedHat"):
		return sed(ctx, c, "/etc/sysconfig/clock", "^ZONE=.*", `ZONE="`+zone+`"`)
	case family(c, "Suse"):
		return sed(ctx, c, "/etc/sysconfig/clock", "^TIMEZONE=.*", `TIMEZONE="`+zone+`"`)
	case family(c, "Debian") || family(c, "Gentoo"):
		if err := atomicfile.Replace(c.Path("/etc/timezone"), []byte(pytext.Strip(zone)+"\n"), 0o644); err != nil {
			return nil, modules.OSError(err)
		}
	}
	return true, nil
}

// link makes the file of the host's zone a link to a file of zoneinfo.
func link(c *modules.Call, to, file string) error {
	if _, err := os.Stat(c.Path(file)); err == nil {
		if err := os.Remove(c.Path(file)); err != nil {
			return modules.OSError(err)
		}
	}
	if err := os.Symlink(to, c.Path(file)); err != nil {
		return modules.OSError(err)
	}
	return nil
}

func sed(ctx context.Context, c *modules.Call, file, before, after string) (any, error) {
	_, err := c.Exec(ctx, "file.sed", file, before, after)
	return err == nil, err
}

func zoneCompare(ctx context.Context, c *modules.Call) (any, error) {
	zone := c.Str("timezone")
	file := localtimePath(c)
	if family(c, "Arch") || family(c, "FreeBSD") {
		if !c.IsFile(file) {
			now, err := current(ctx, c)
			return now == zone, err
		}
	}
	a, err := os.Stat(c.Path(file))
	if err != nil {
		return nil, modules.Errorf("Failed to read %s to determine current timezone: %s", file, reason(err))
	}
	b, err := os.Stat(c.Path(zoneinfo + zone))
	if err != nil {
		return nil, modules.Usagef(`Can't find a local timezone "%s"`, zone)
	}
	if !a.Mode().IsRegular() || !b.Mode().IsRegular() || a.Size() != b.Size() {
		return false, nil
	}
	one, err1 := os.ReadFile(c.Path(file))
	two, err2 := os.ReadFile(c.Path(zoneinfo + zone))
	if err := errors.Join(err1, err2); err != nil {
		return nil, modules.OSError(err)
	}
	return bytes.Equal(one, two), nil
}
