// Package linux_sysctl is Salt's execution module "sysctl" on Linux. Salt's source: salt/modules/linux_sysctl.py.
package linux_sysctl

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return e.Grain("kernel") == "Linux", "The linux_sysctl execution module cannot be loaded: only available on Linux systems."
}

func defaultConfig(ctx context.Context, c *modules.Call) (any, error) {
	if _, err := os.Stat(c.Path("/run/systemd/system")); err == nil && systemd(ctx, c) >= 207 {
		return "/etc/sysctl.d/99-salt.conf", nil
	}
	return "/etc/sysctl.conf", nil
}

// systemd returns the version of systemd, or 0 if it is unknown.
func systemd(ctx context.Context, c *modules.Call) int {
	r, err := c.Cmd(ctx, modules.Command{Args: []string{"systemctl", "--version"}})
	if err != nil {
		return 0
	}
	words := strings.Fields(string(r.Stdout))
	if len(words) < 2 {
		return 0
	}
	number := strings.TrimRightFunc(words[1], func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.Atoi(number)
	return n
}

func show(ctx context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	if c.Bool("config_file") {
		text, err := os.ReadFile(c.Path(c.Str("config_file")))
		if os.IsNotExist(err) {
			return []any{}, nil
		}
		if err != nil {
			c.Logger().Error("Cannot read the file of parameters", "err", err)
			return nil, nil
		}
		for _, line := range strings.Split(string(text), "\n") {
			line = pytext.Strip(line)
			if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
				out[pytext.StripRight(key)] = pytext.Strip(value)
			}
		}
		return out, nil
	}
	path, err := saltcmd.Which(c, "sysctl")
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.All(ctx, c, path, "-a")
	if err != nil {
		return nil, err
	}
	for _, line := range r.Lines() {
		if key, value, ok := strings.Cut(line, " = "); ok {
			out[key] = value
		}
	}
	return out, nil
}

func get(ctx context.Context, c *modules.Call) (any, error) { return read(ctx, c, c.Value("name")) }

func read(ctx context.Context, c *modules.Call, name any) (string, error) {
	path, err := saltcmd.Which(c, "sysctl")
	if err != nil {
		return "", err
	}
	return saltcmd.Text(ctx, c, path, "-n", name)
}

func assignParam(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(assign(ctx, c, c.Value("name"), c.Value("value")))
}

// assign implements sysctl.assign.
func assign(ctx context.Context, c *modules.Call, param, v any) (map[string]any, error) {
	name, ok := param.(string)
	if !ok {
		return nil, modules.NoAttribute(param, "translate")
	}
	value := pytext.Str(v)
	file := strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
	if _, err := os.Stat(c.Path("/proc/sys/" + file)); err != nil {
		return nil, modules.Errorf("sysctl %s does not exist", name)
	}
	path, err := saltcmd.Which(c, "sysctl")
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.All(ctx, c, path, "-w", name+"="+value)
	if err != nil {
		return nil, err
	}
	key, got, ok := strings.Cut(r.Stdout, " = ")
	if !confirms(r.Stdout, name, value) || strings.Contains(r.Stderr, "Invalid argument") {
		why := r.Stdout
		if r.Retcode != 0 && r.Stderr != "" {
			why = r.Stderr
		}
		return nil, modules.Errorf("sysctl -w failed: %s", why)
	}
	if !ok {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
	}
	return map[string]any{key: got}, nil
}

// confirms reports whether the answer is "<name> = <value>", with any space.
func confirms(out, name, value string) bool {
	rest, ok := strings.CutPrefix(out, name)
	bare := strings.TrimLeft(rest, " \t\n\r\f\v")
	after, eq := strings.CutPrefix(bare, "=")
	if !ok || !eq || bare == rest {
		return false
	}
	got := strings.TrimLeft(after, " \t\n\r\f\v")
	return got != after && (got == value || got == value+"\n")
}

// tabs returns a value with each run of white space replaced by a tab, as the kernel prints it.
func tabs(v any) string {
	text := pytext.Str(v)
	joined := strings.Join(strings.Fields(text), "\t")
	if t := strings.TrimLeft(text, " \t\n\r\f\v"); t != text {
		joined = "\t" + joined
	}
	if t := strings.TrimRight(text, " \t\n\r\f\v"); t != text && t != "" {
		joined += "\t"
	}
	return joined
}

func persist(ctx context.Context, c *modules.Call) (any, error) {
	name, value := c.Value("name"), c.Value("value")
	config := c.Str("config")
	if c.Value("config") == nil {
		v, err := defaultConfig(ctx, c)
		if err != nil {
			return nil, err
		}
		config = v.(string)
	}
	key := pytext.Str(name)
	if strings.Contains(key, "\n") || strings.Contains(pytext.Str(value), "\n") {
		return nil, modules.Usagef("a parameter and its value must be one line")
	}
	text, err := readConfig(c, config)
	if err != nil {
		return nil, err
	}
	lines, edited := strings.SplitAfter(text, "\n"), false
	entry := key + " = " + pytext.Str(value) + "\n"
	for i, line := range lines {
		k, v, ok := strings.Cut(line, "=")
		if !ok || pytext.Strip(k) != key || strings.HasPrefix(pytext.Strip(k), "#") {
			continue
		}
		if tabs(pytext.Strip(v)) == tabs(value) {
			now, err := read(ctx, c, name)
			if err != nil {
				return nil, err
			}
			if tabs(now) == tabs(value) {
				return "Already set", nil
			}
			_, err = assign(ctx, c, name, value)
			return "Updated", err
		}
		lines[i], edited = entry, true
	}
	if out := strings.Join(lines, ""); !edited {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		text = out + entry
	} else {
		text = out
	}
	if err := atomicfile.Replace(c.Path(config), []byte(text), 0o644); err != nil {
		return nil, modules.Errorf("Could not write to file: %s", config)
	}
	if _, err := assign(ctx, c, name, value); err != nil {
		return nil, err
	}
	return "Updated", nil
}

// readConfig returns the content of the configuration file. It creates the file if that is missing.
func readConfig(c *modules.Call, config string) (string, error) {
	if info, err := os.Stat(c.Path(config)); err != nil || !info.Mode().IsRegular() {
		if err := os.MkdirAll(c.Path(filepath.Dir(config)), 0o755); err != nil {
			return "", modules.OSError(err)
		}
		if err == nil {
			return "", modules.Errorf("Could not write to file: %s", config)
		}
		return "#\n# Kernel sysctl configuration\n#\n", nil
	}
	text, err := os.ReadFile(c.Path(config))
	if err != nil {
		return "", modules.Errorf("Could not read from file: %s", config)
	}
	return string(text), nil
}
