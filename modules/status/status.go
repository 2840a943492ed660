// Package status is Salt's execution module "status": how the host is doing. Salt's source: salt/modules/status.py.
//
// What the kernel of Linux tells is read from /proc; the BSDs and macOS are asked through their own programs, whose output is
// parsed in bsd.go. The parsers take text, so that they are tested on every system.
package status

import (
	"context"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// status.saltmem is absent: it is a function of Windows, which this module does not support.
// status.diskusage differs: mount points that cannot be asked have no numbers, as in Salt 3008, rather than failing the call.
// status.master differs: no event is fired, since the minion watches its connection itself.
// status.ping_master differs: it reports whether the master takes connections on its request port.
// status.proxy_reconnect differs: the answer is False always, since there are no proxies.
// status.* differ: Solaris, AIX and Junos are not supported.

// unsupported is stock's answer on systems that it does not know.
const unsupported = "This method is unsupported on the current operating system!"

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "Windows platform is not supported by this module"
}

// kernel returns the grain kernel, or "".
func kernel(c *modules.Call) string {
	k, _ := c.Grain("kernel").(string)
	return k
}

// maxProc bounds a file of /proc.
const maxProc = 16 << 20

// proc returns the text of a file, or "" if it cannot be read.
func proc(c *modules.Call, name string) string {
	f, err := os.Open(c.Path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 0, 4096)
	for len(b) < maxProc {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			break
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// output returns what a program prints on both streams, without trailing white space, like cmd.run.
func output(ctx context.Context, c *modules.Call, args ...string) (string, error) {
	path := c.Which(args[0])
	if path == "" {
		return "", modules.Errorf("Unable to run command '%s': it is not installed", strings.Join(args, " "))
	}
	res, err := c.Cmd(ctx, modules.Command{Args: append([]string{path}, args[1:]...), Env: []string{"LC_ALL=C"}, Merge: true})
	if err != nil {
		return "", err
	}
	return strings.TrimRight(strings.ToValidUTF8(string(res.Stdout), "\uFFFD"), " \t\r\n\v\f"), nil
}

// number makes a number of a text: an int if it has only digits, a float if Python's float() takes it, else the text.
func number(text string) any {
	digits := text != ""
	for _, r := range text {
		digits = digits && r >= '0' && r <= '9'
	}
	if digits {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
	}
	if strings.ContainsAny(text, "xXpP") { // Go takes hexadecimal floats, Python does not
		return text
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil || math.IsInf(f, 0) {
		return f
	}
	return text
}

// lines returns the non-empty lines of a text.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func allStatus(ctx context.Context, c *modules.Call) (any, error) {
	all := map[string]any{}
	for _, f := range [...]struct {
		name string
		run  modules.Func
	}{
		{"cpuinfo", cpuinfo}, {"cpustats", cpustats}, {"diskstats", diskstats}, {"diskusage", diskusage}, {"loadavg", loadavg},
		{"meminfo", meminfo}, {"netdev", netdev}, {"netstats", netstats}, {"uptime", uptime}, {"vmstats", vmstats}, {"w", w},
	} {
		v, err := f.run(ctx, c)
		if err != nil {
			return nil, err
		}
		all[f.name] = v
	}
	return all, nil
}

func custom(ctx context.Context, c *modules.Call) (any, error) {
	v, err := c.Exec(ctx, "config.dot_vals", "status")
	if err != nil {
		return nil, err
	}
	conf, _ := v.(map[string]any)
	ret := map[string]any{}
	for key, items := range conf {
		i := strings.LastIndexByte(key, '.')
		if i < 0 || key[:i] == "status.custom" {
			continue
		}
		if _, err := c.Registry().Lookup(key[:i], c.Env); err != nil {
			c.Logger().Warn("A custom status is not available", "fun", key[:i])
			continue
		}
		v, err := c.Exec(ctx, key[:i])
		if err != nil {
			return nil, err
		}
		vals, _ := v.(map[string]any)
		list, ok := items.([]any)
		if !ok {
			list = []any{items}
		}
		for _, x := range list {
			name := pytext.Str(x)
			if val, ok := vals[name]; ok {
				ret[name] = val
			} else {
				c.Logger().Warn("A custom status is not in the function's answer", "fun", key[:i], "key", name)
				ret[name] = "UNKNOWN"
			}
		}
	}
	return ret, nil
}

// ps runs the program that the grain ps names; the grain is a shell's command line.
func ps(ctx context.Context, c *modules.Call) ([]string, error) {
	script, _ := c.Grain("ps").(string)
	if script == "" {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'ps'"}
	}
	res, err := c.Cmd(ctx, modules.Command{Shell: "/bin/sh", Script: script, Env: []string{"LC_ALL=C"}})
	if err != nil {
		return nil, err
	}
	return lines(strings.ToValidUTF8(string(res.Stdout), "\uFFFD")), nil
}

func procs(ctx context.Context, c *modules.Call) (any, error) {
	list, err := ps(ctx, c)
	if err != nil {
		return nil, err
	}
	return parseProcs(list), nil
}

func parseProcs(list []string) map[string]any {
	ret := map[string]any{}
	if len(list) == 0 {
		return ret
	}
	column := func(names ...string) int {
		for _, n := range names {
			for i, have := range strings.Fields(list[0]) {
				if have == n {
					return i
				}
			}
		}
		return 0
	}
	user, pid, cmd := column("USER", "UID"), column("PID"), column("COMMAND", "CMD")
	for _, line := range list[1:] {
		if comps := strings.Fields(line); len(comps) > max(user, pid, cmd) {
			ret[comps[pid]] = map[string]any{"user": comps[user], "cmd": strings.Join(comps[cmd:], " ")}
		}
	}
	return ret
}

func pid(ctx context.Context, c *modules.Call) (any, error) {
	pattern := c.Str("sig")
	if _, err := pyre.Search(pattern, ""); err != nil {
		return nil, modules.Usagef("cannot use the expression %q: %v", pattern, err)
	}
	list, err := ps(ctx, c)
	if err != nil {
		return nil, err
	}
	self := strconv.Itoa(os.Getpid())
	var pids []string
	for _, line := range list {
		comps := strings.Fields(line)
		// The minion, and what it started to ask, are not meant.
		if len(comps) < 2 || comps[1] == self || len(comps) > 2 && comps[2] == self {
			continue
		}
		if ok, err := pyre.Search(pattern, line); err == nil && ok {
			pids = append(pids, comps[1])
		}
	}
	return strings.Join(pids, "\n"), nil
}

func nproc(context.Context, *modules.Call) (any, error) { return int64(runtime.NumCPU()), nil }

func w(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		text, err := output(ctx, c, "w", "-fh")
		return parseW(text, true), err
	case "Darwin", "FreeBSD", "OpenBSD":
		text, err := output(ctx, c, "w", "-h")
		return parseW(text, false), err
	}
	return unsupported, nil
}

func parseW(text string, linux bool) []any {
	list := []any{}
	for _, row := range lines(text) {
		comps := strings.Fields(row)
		switch {
		case linux && len(comps) >= 6:
			list = append(list, map[string]any{"idle": comps[3], "jcpu": comps[4], "login": comps[2], "pcpu": comps[5],
				"tty": comps[1], "user": comps[0], "what": strings.Join(comps[6:], " ")})
		case !linux && len(comps) >= 5:
			list = append(list, map[string]any{"from": comps[2], "idle": comps[4], "login": comps[3], "tty": comps[1],
				"user": comps[0], "what": strings.Join(comps[5:], " ")})
		}
	}
	return list
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		if text := proc(c, "/proc/version"); text != "" {
			return strings.TrimSpace(text), nil
		}
		return map[string]any{}, nil
	case "FreeBSD", "OpenBSD":
		return output(ctx, c, "sysctl", "-n", "kern.version")
	}
	return unsupported, nil
}

func timeFn(_ context.Context, c *modules.Call) (any, error) {
	return strftime.Naive(c.Str("format"), c.Now().Local()), nil
}

func proxyReconnect(context.Context, *modules.Call) (any, error) { return false, nil }
