// Package system is Salt's execution module "system" on Linux and the BSDs. Salt's source: salt/modules/system.py.
package system

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// system.get_reboot_required_witnessed, system.set_reboot_required_witnessed are absent: they are for NI Linux RT only.
// system.set_computer_desc differs: in /etc/machine-info the line gets an end; stock joins it with the next one.

func available(*modules.Env) (bool, string) {
	switch runtime.GOOS {
	case "windows":
		return false, "This module is not available on Windows"
	case "darwin":
		return false, "This module is not available on Mac OS"
	}
	return true, ""
}

func halt(ctx context.Context, c *modules.Call) (any, error) { return saltcmd.Text(ctx, c, "halt") }
func poweroff(ctx context.Context, c *modules.Call) (any, error) {
	return saltcmd.Text(ctx, c, "poweroff")
}

func runlevel(ctx context.Context, c *modules.Call) (any, error) {
	return saltcmd.Text(ctx, c, "init", c.Value("runlevel"))
}

func reboot(ctx context.Context, c *modules.Call) (any, error) {
	return saltcmd.Text(ctx, c, "shutdown", "-r", when(c))
}

func shutdown(ctx context.Context, c *modules.Call) (any, error) {
	flag := "-h"
	switch c.Grain("kernel") {
	case "FreeBSD", "NetBSD", "OpenBSD":
		flag = "-p"
	}
	return saltcmd.Text(ctx, c, "shutdown", flag, when(c))
}

func when(c *modules.Call) any {
	if c.Bool("at_time") {
		return c.Value("at_time")
	}
	return "now"
}

// local returns the time at the call's UTC offset, or the host's local time without one.
func local(c *modules.Call) (time.Time, bool, error) {
	v := c.Value("utc_offset")
	if v == nil {
		return c.Now(), false, nil
	}
	text, ok := v.(string)
	if !ok {
		return time.Time{}, false, &modules.TypeError{Msg: "expected string or bytes-like object, got '" + modules.TypeName(v) + "'"}
	}
	m := regexp.MustCompile(`^([+-])?(\d\d)(\d\d)\n?$`).FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false, modules.Usagef("Invalid UTC offset")
	}
	hours, _ := modules.ToInt(m[2])
	minutes, _ := modules.ToInt(m[3])
	seconds := int(hours*3600 + minutes*60)
	if m[1] == "-" {
		seconds = -seconds
	}
	return c.Now().In(time.FixedZone("", seconds)), true, nil
}

func getTime(_ context.Context, c *modules.Call) (any, error) { return show(c, "%I:%M:%S %p") }
func getDate(_ context.Context, c *modules.Call) (any, error) { return show(c, "%a %m/%d/%Y") }
func getDateTime(_ context.Context, c *modules.Call) (any, error) {
	return show(c, "%Y-%m-%d %H:%M:%S")
}

func show(c *modules.Call, format string) (any, error) {
	t, _, err := local(c)
	if err != nil {
		return nil, err
	}
	return strftime.Format(format, t), nil
}

// clock are the parts of a date and a time, nil for those that stay.
type clock [6]any

func setDateTime(ctx context.Context, c *modules.Call) (any, error) {
	var k clock
	for i, name := range [...]string{"years", "months", "days", "hours", "minutes", "seconds"} {
		k[i] = c.Value(name)
	}
	return set(ctx, c, k)
}

func setTime(ctx context.Context, c *modules.Call) (any, error) {
	text, err := argument(c, "newtime")
	if err != nil {
		return nil, err
	}
	h, m, s, ok := parseTime(text)
	if !ok {
		return false, nil
	}
	return set(ctx, c, clock{3: h, 4: m, 5: s})
}

func setDate(ctx context.Context, c *modules.Call) (any, error) {
	text, err := argument(c, "newdate")
	if err != nil {
		return nil, err
	}
	y, m, d, ok := parseDate(text)
	if !ok {
		return nil, modules.Usagef("Invalid date format")
	}
	return set(ctx, c, clock{y, m, d})
}

func argument(c *modules.Call, name string) (string, error) {
	text, ok := c.Value(name).(string)
	if !ok {
		return "", &modules.TypeError{Msg: "strptime() argument 1 must be str, not " + modules.TypeName(c.Value(name))}
	}
	return text, nil
}

// parseTime reads "11:37:53 PM", "11:37 PM", "23:37:53" and "23:37", in this order, as strptime does.
func parseTime(text string) (h, m, s int64, ok bool) {
	f := regexp.MustCompile(`^(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?:\s+([AaPp])[Mm])?$`).FindStringSubmatch(text)
	if f == nil {
		return 0, 0, 0, false
	}
	h, _ = modules.ToInt(f[1])
	m, _ = modules.ToInt(f[2])
	if f[3] != "" {
		s, _ = modules.ToInt(f[3])
	}
	switch half := strings.ToLower(f[4]); {
	case half == "":
		ok = h <= 23
	default:
		ok = h >= 1 && h <= 12
		h %= 12
		if half == "p" {
			h += 12
		}
	}
	return h, m, min(s, 59), ok && m <= 59 && s <= 61
}

// parseDate reads 2015-05-12, 05-12-2015 and 05-12-15, also with slashes.
func parseDate(text string) (y, m, d int64, ok bool) {
	f := regexp.MustCompile(`^(\d+)([-/])(\d{1,2})([-/])(\d+)$`).FindStringSubmatch(text)
	if f == nil || f[2] != f[4] {
		return 0, 0, 0, false
	}
	year, month, day := f[5], f[1], f[3]
	if len(f[1]) == 4 {
		year, month, day = f[1], f[3], f[5]
	}
	if len(month) > 2 || len(day) > 2 || len(year) != 4 && len(year) != 2 {
		return 0, 0, 0, false
	}
	y, _ = modules.ToInt(year)
	m, _ = modules.ToInt(month)
	d, _ = modules.ToInt(day)
	if len(year) == 2 {
		if y += 1900; y < 1969 {
			y += 100
		}
	}
	return y, m, d, valid(y, m, d)
}

func valid(y, m, d int64) bool {
	t := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC)
	return y >= 1 && y <= 9999 && int64(t.Month()) == m && int64(t.Day()) == d
}

// set sets the clock and, if there is one, the hardware clock.
func set(ctx context.Context, c *modules.Call, k clock) (any, error) {
	now, utc, err := local(c)
	if err != nil {
		return nil, err
	}
	var n [6]int64
	for i, v := range [6]int{now.Year(), int(now.Month()), now.Day(), now.Hour(), now.Minute(), now.Second()} {
		n[i] = int64(v)
		switch x := k[i].(type) {
		case nil:
		case int64:
			n[i] = x
		case bool:
			n[i], _ = modules.ToInt(x)
		default:
			return nil, &modules.TypeError{Msg: "'" + modules.TypeName(x) + "' object cannot be interpreted as an integer"}
		}
	}
	if !valid(n[0], n[1], n[2]) || n[3] < 0 || n[3] > 23 || n[4] < 0 || n[4] > 59 || n[5] < 0 || n[5] > 59 {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'ValueError' object has no attribute 'message'"}
	}
	t := time.Date(int(n[0]), time.Month(n[1]), int(n[2]), int(n[3]), int(n[4]), int(n[5]), 0, now.Location())
	cmd := []any{"date"}
	if utc {
		t, cmd = t.UTC(), append(cmd, "-u")
	}
	posix := fmt.Sprintf("%02d%02d%02d%02d%04d", t.Month(), t.Day(), t.Hour(), t.Minute(), t.Year())
	r, err := saltcmd.All(ctx, c, append(cmd, posix+fmt.Sprintf(".%02d", t.Second()))...)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		again, err := saltcmd.All(ctx, c, append(cmd, " "+posix)...)
		if err != nil {
			return nil, err
		}
		if again.Retcode != 0 {
			return nil, modules.Errorf("date failed: %s", r.Stderr)
		}
	}
	if ok, err := hwclock(ctx, c); err != nil || !ok {
		return err == nil, err
	}
	if r, err = saltcmd.All(ctx, c, "hwclock", "--systohc"); err == nil && r.Retcode != 0 {
		c.Logger().Warn("Cannot set the hardware clock", "err", r.Stderr)
	}
	return err == nil, err
}

func settable(ctx context.Context, c *modules.Call) (any, error) { return hwclock(ctx, c) }

// hwclock reports whether the hardware clock can be set.
func hwclock(ctx context.Context, c *modules.Call) (bool, error) {
	if c.Which("hwclock") == "" {
		return false, nil
	}
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"hwclock", "--test", "--systohc"}, IgnoreRetcode: true})
	return err == nil && r.Retcode == 0, err
}

const machineInfo = "/etc/machine-info"

func getDesc(ctx context.Context, c *modules.Call) (any, error) {
	desc, found := "", false
	if path := c.Which("hostnamectl"); path != "" {
		out, err := saltcmd.Text(ctx, c, path, "status", "--pretty")
		if err != nil {
			return nil, err
		}
		desc, found = out, true
	} else {
		text, _ := os.ReadFile(c.Path(machineInfo)) // as good as empty if it cannot be read
		for _, line := range strings.Split(string(text), "\n") {
			if value, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "PRETTY_HOSTNAME="); ok {
				desc, found = unquote(pytext.Strip(value)), true
			}
		}
	}
	if !found {
		return false, nil
	}
	for _, pair := range [...][2]string{{`\\`, `\`}, {`\"`, `"`}, {`\n`, "\n"}, {`\t`, "\t"}} {
		desc = strings.ReplaceAll(desc, pair[0], pair[1])
	}
	return desc, nil
}

func unquote(s string) string {
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}

func setDesc(ctx context.Context, c *modules.Call) (any, error) {
	desc, ok := c.Value("desc").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "expected str, bytes, or bytearray not <class '" + modules.TypeName(c.Value("desc")) + "'>"}
	}
	desc = strings.NewReplacer(`"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(desc)
	if path := c.Which("hostnamectl"); path != "" {
		code, err := saltcmd.Retcode(ctx, c, path, "set-hostname", "--pretty", desc)
		return err == nil && code == 0, err
	}
	text, err := os.ReadFile(c.Path(machineInfo))
	if err != nil && !os.IsNotExist(err) {
		return false, nil
	}
	entry := `PRETTY_HOSTNAME="` + desc + `"` + "\n"
	lines, found := strings.SplitAfter(string(text), "\n"), false
	for i, line := range lines {
		if !found && strings.HasPrefix(strings.TrimLeft(line, " \t"), "PRETTY_HOSTNAME=") {
			lines[i], found = entry, true
		}
	}
	out := strings.Join(lines, "")
	if !found {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += entry
	}
	return atomicfile.Replace(c.Path(machineInfo), []byte(out), 0o644) == nil, nil
}

func setName(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "network.mod_hostname", c.Value("hostname"))
}

func getName(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "network.get_hostname")
}
