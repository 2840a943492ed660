// Package supervisord is Salt's execution module "supervisord": processes that supervisord looks after, through supervisorctl.
// Salt's source: salt/modules/supervisord.py.
package supervisord

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// supervisord.options differs: values are not interpolated (%(name)s stays as it is written).

// program returns the path of supervisorctl: that of the host, that of a virtual environment, or bin_env itself.
func program(c *modules.Call) (string, error) {
	bin := c.Str("bin_env")
	missing := &modules.MissingCommandError{Command: "Could not find a `supervisorctl` binary"}
	if bin == "" {
		if path := c.Which("supervisorctl"); path != "" {
			return "supervisorctl", nil
		}
		return "", missing
	}
	if info, err := os.Stat(c.Path(bin)); err != nil || !info.IsDir() {
		return bin, nil
	}
	path := filepath.Join(bin, "bin", "supervisorctl")
	if !c.IsFile(path) {
		return "", missing
	}
	return path, nil
}

// ctl runs supervisorctl and gives what it says, marked as an error if it failed.
func ctl(ctx context.Context, c *modules.Call, verb, name string) (string, error) {
	bin, err := program(c)
	if err != nil {
		return "", err
	}
	cmd := []string{bin}
	if c.Value("conf_file") != nil {
		cmd = append(cmd, "-c", c.Str("conf_file"))
	}
	cmd = append(cmd, verb)
	if name != "" {
		cmd = append(cmd, name)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, RunAs: c.Str("user")})
	if err != nil {
		return "", err
	}
	if out.Retcode != 0 && !strings.Contains(out.Stdout, "ERROR") {
		return "ERROR: " + out.Stdout, nil
	}
	return out.Stdout, nil
}

// one returns the name of a process, or "group:" for all processes of a group.
func one(c *modules.Call) string {
	if name := c.Str("name"); strings.HasSuffix(name, ":*") {
		return name[:len(name)-1]
	}
	return c.Str("name")
}

// group returns the name of a group without its colon.
func group(c *modules.Call) string {
	name := c.Str("name")
	if rest, ok := strings.CutSuffix(name, ":"); ok {
		return rest
	}
	return strings.TrimSuffix(name, ":*")
}

func start(ctx context.Context, c *modules.Call) (any, error) { return ctl(ctx, c, "start", one(c)) }

func restart(ctx context.Context, c *modules.Call) (any, error) {
	return ctl(ctx, c, "restart", one(c))
}

func stop(ctx context.Context, c *modules.Call) (any, error) { return ctl(ctx, c, "stop", one(c)) }

func add(ctx context.Context, c *modules.Call) (any, error) { return ctl(ctx, c, "add", group(c)) }

func remove(ctx context.Context, c *modules.Call) (any, error) {
	return ctl(ctx, c, "remove", group(c))
}

func reread(ctx context.Context, c *modules.Call) (any, error) { return ctl(ctx, c, "reread", "") }

func update(ctx context.Context, c *modules.Call) (any, error) {
	return ctl(ctx, c, "update", group(c))
}

func statusRaw(ctx context.Context, c *modules.Call) (any, error) {
	return ctl(ctx, c, "status", c.Str("name"))
}

func custom(ctx context.Context, c *modules.Call) (any, error) {
	return ctl(ctx, c, c.Str("command"), "")
}

// process parses a line of the status.
func process(line string) (name, state, reason string, err error) {
	words := strings.Fields(line)
	switch {
	case len(words) < 2:
		return "", "", "", &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 3, got " + strconv.Itoa(len(words)+1) + ")"}
	case len(words) == 2:
		return words[0], words[1], "", nil
	}
	rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(line), words[0]), " \t")
	rest = strings.TrimLeft(strings.TrimPrefix(rest, words[1]), " \t")
	return words[0], words[1], rest, nil
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	text, err := ctl(ctx, c, "status", c.Str("name"))
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		name, state, reason, err := process(line)
		if err != nil {
			return nil, err
		}
		ret[name] = map[string]any{"state": state, "reason": reason}
	}
	return ret, nil
}

func statusBool(ctx context.Context, c *modules.Call) (any, error) {
	wanted := c.Str("name")
	text, err := ctl(ctx, c, "status "+wanted, "")
	if err != nil {
		return nil, err
	}
	var name, state, reason string
	for _, line := range pytext.SplitLines(text, false) {
		if name, state, reason, err = process(line); err != nil {
			return nil, err
		}
	}
	if reason == "(no such process)" || name != wanted {
		return false, nil
	}
	return c.Value("expected_state") == nil || state == c.Str("expected_state"), nil
}

func options(_ context.Context, c *modules.Call) (any, error) {
	path := c.Str("conf_file")
	if c.Value("conf_file") == nil {
		for _, p := range []string{"/etc/supervisor/supervisord.conf", "/etc/supervisord.conf"} {
			if _, err := os.Stat(c.Path(p)); err == nil {
				path = p
				break
			}
		}
		if path == "" {
			return nil, modules.Errorf("No suitable config file found")
		}
	}
	b, err := os.ReadFile(c.Path(path))
	if err != nil && !os.IsNotExist(err) {
		return nil, modules.Errorf("Unable to read from %s: %s", path, err)
	}
	sections, err := configparser.Parse(string(b), path, true)
	var e *configparser.Error
	if errors.As(err, &e) {
		return nil, &modules.PythonError{Type: e.Type, Msg: e.Msg}
	}
	s := configparser.Find(sections, "program:"+c.Str("name"))
	if s == nil {
		return nil, modules.Errorf("Process '%s' not found", c.Str("name"))
	}
	ret := map[string]any{}
	for _, o := range s.Options {
		text, _, _ := strings.Cut(o.Value, ";")
		ret[o.Name] = number(strings.TrimSpace(text))
	}
	return ret, nil
}

// number converts a text to a number or a bool if it is one.
func number(text string) any {
	if n, err := modules.ToInt(text); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	switch strings.ToLower(text) {
	case "true":
		return true
	case "false":
		return false
	}
	return text
}
