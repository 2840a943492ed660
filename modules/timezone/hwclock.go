package timezone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func getHwclock(ctx context.Context, c *modules.Call) (any, error) {
	if c.Which("timedatectl") != "" {
		r, err := timedatectl(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, line := range r.Lines() {
			line = strings.ToLower(line)
			if !strings.Contains(line, "rtc in local tz") {
				continue
			}
			if pytext.Strip(line[strings.LastIndex(line, ":")+1:]) == "yes" {
				return "localtime", nil
			}
			return "UTC", nil
		}
		return nil, modules.Errorf("Failed to parse timedatectl output: %s\nPlease file an issue with SaltStack", r.Stdout)
	}
	switch {
	case family(c, "RedHat") || family(c, "Suse") || family(c, "NILinuxRT"):
		return adjtime(ctx, c)
	case family(c, "Debian"):
		list, _ := lines(c, "/etc/default/rcS") // as good as empty if it cannot be read
		for _, line := range list {
			if strings.Contains(line, "UTC=") {
				if strings.EqualFold(lastValue(line), "yes") {
					return "UTC", nil
				}
				return "localtime", nil
			}
		}
		return adjtime(ctx, c)
	case family(c, "Gentoo"):
		return gentoo(ctx, c)
	case family(c, "Slackware"):
		return slackware(ctx, c)
	}
	return nil, nil
}

// adjtime returns the last line of /etc/adjtime. Without that file it returns None if the host has no hardware clock,
// and an error otherwise.
func adjtime(ctx context.Context, c *modules.Call) (any, error) {
	const file = "/etc/adjtime"
	if _, err := os.Stat(c.Path(file)); err == nil {
		return saltcmd.Text(ctx, c, "tail", "-n", "1", file)
	}
	if _, err := os.Stat(c.Path("/dev/rtc")); err == nil {
		return nil, modules.Errorf("Unable to get hwclock timezone from %s", file)
	}
	return nil, nil
}

func gentoo(ctx context.Context, c *modules.Call) (any, error) {
	const file = "/etc/conf.d/hwclock"
	if _, err := os.Stat(c.Path("/etc/adjtime")); err == nil {
		return adjtime(ctx, c)
	}
	list, err := lines(c, file)
	if err != nil {
		return nil, modules.Errorf("Problem reading offset file %s: %s", file, reason(err))
	}
	for _, line := range list {
		if !strings.HasPrefix(line, "clock=") {
			continue
		}
		switch strings.Trim(lastValue(line), `'"`) {
		case "UTC":
			return "UTC", nil
		case "local":
			return "LOCAL", nil
		}
	}
	return nil, modules.Errorf("Correct offset value not found in %s", file)
}

func slackware(ctx context.Context, c *modules.Call) (any, error) {
	if _, err := os.Stat(c.Path("/etc/adjtime")); err == nil {
		return adjtime(ctx, c)
	}
	list, err := lines(c, "/etc/hardwareclock")
	if errors.Is(err, fs.ErrNotExist) {
		return "UTC", nil
	}
	if err != nil {
		return adjtime(ctx, c)
	}
	for _, line := range list {
		if strings.HasPrefix(line, "UTC") {
			return "UTC", nil
		}
	}
	return "localtime", nil
}

func setHwclock(ctx context.Context, c *modules.Call) (any, error) {
	clock := c.Str("clock")
	local := "false"
	if clock == "localtime" {
		local = "true"
	}
	if c.Which("timedatectl") != "" {
		code, err := saltcmd.Retcode(ctx, c, "timedatectl", "set-local-rtc", local)
		return err == nil && code == 0, err
	}
	if c.Grain("os_family") == "NILinuxRT" {
		if !strings.EqualFold(clock, "utc") {
			return nil, modules.Usagef("UTC is the only permitted value")
		}
		return true, nil
	}
	zone, err := current(ctx, c)
	if err != nil {
		return nil, err
	}
	file := zoneinfo + zone
	if _, err := os.Stat(c.Path(file)); err != nil {
		return nil, modules.Errorf("Zone '%s' does not exist", file)
	}
	if err := os.Remove(c.Path(localtime)); err != nil {
		return nil, modules.OSError(err)
	}
	if err := link(c, file, localtime); err != nil {
		return nil, err
	}
	return remember(ctx, c, clock, zone, local)
}

// remember writes the choice where the system looks for it.
func remember(ctx context.Context, c *modules.Call, clock, zone, local string) (any, error) {
	known := clock == "UTC" || clock == "localtime"
	switch {
	case family(c, "Arch"):
		code, err := saltcmd.Retcode(ctx, c, "timezonectl", "set-local-rtc", local)
		return err == nil && code == 0, err
	case family(c, "RedHat"):
		return sed(ctx, c, "/etc/sysconfig/clock", "^ZONE=.*", `ZONE="`+zone+`"`)
	case family(c, "Suse"):
		return sed(ctx, c, "/etc/sysconfig/clock", "^TIMEZONE=.*", `TIMEZONE="`+zone+`"`)
	case family(c, "Debian") && known:
		utc := "UTC=no"
		if clock == "UTC" {
			utc = "UTC=yes"
		}
		return sed(ctx, c, "/etc/default/rcS", "^UTC=.*", utc)
	case (family(c, "Gentoo") || family(c, "Slackware")) && !known:
		return nil, modules.Usagef("Only 'UTC' and 'localtime' are allowed")
	case family(c, "Gentoo"):
		return sed(ctx, c, "/etc/conf.d/hwclock", "^clock=.*", `clock="`+strings.TrimSuffix(clock, "time")+`"`)
	case family(c, "Slackware"):
		return sed(ctx, c, "/etc/hardwareclock", "^(UTC|localtime)", clock)
	}
	return true, nil
}
