// Package debconfmod is Salt's execution module "debconf": answers to the questions that Debian's packages ask. Salt's source:
// salt/modules/debconfmod.py.
package debconfmod

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// debconf.set differs: an answer may not hold a line's end, which would be another setting.

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") != "Debian" {
		return false, "The debconfmod module could not be loaded: unsupported OS family"
	}
	if e.Which("debconf-get-selections") == "" {
		return false, "The debconfmod module could not be loaded: debconf-utils is not installed."
	}
	return true, ""
}

var line = lazyre.Regexp{Expr: `(?m)^([^#]\S+)[\t ]+(\S+)[\t ]+(\S+)[\t ]+([^\n]*)$`}

func selections(ctx context.Context, c *modules.Call, empty bool) (map[string]any, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"debconf-get-selections"}})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, m := range line.Get().FindAllStringSubmatch(out.Stdout, -1) {
		if empty || m[4] != "" {
			list, _ := ret[m[1]].([]any)
			ret[m[1]] = append(list, nested.Anys(m[2:5]))
		}
	}
	return ret, nil
}

func getSelections(ctx context.Context, c *modules.Call) (any, error) {
	return selections(ctx, c, c.Bool("fetchempty"))
}

func show(ctx context.Context, c *modules.Call) (any, error) {
	all, err := selections(ctx, c, true)
	return all[c.Str("name")], err
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	words := []string{c.Str("package"), c.Str("question"), c.Str("type"), c.Str("value")}
	text := strings.Join(append(words, pkglist.Names(c)...), " ")
	if strings.ContainsAny(text, "\n\r") {
		return nil, modules.Usagef("an answer for debconf must be one line")
	}
	if _, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"debconf-set-selections"}, Stdin: text}); err != nil {
		return nil, err
	}
	return true, nil
}

func setFile(ctx context.Context, c *modules.Call) (any, error) {
	return fromFile(ctx, c, c.Str("path"))
}

func fromFile(ctx context.Context, c *modules.Call, url string) (any, error) {
	path, err := pkglist.Cache(ctx, c, url, c.Str("saltenv"))
	if err != nil || path == "" {
		return false, err
	}
	if _, err := os.Stat(c.Path(path)); err != nil {
		return nil, modules.OSError(err)
	}
	if _, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"debconf-set-selections", path}}); err != nil {
		return nil, err
	}
	return true, nil
}

func setTemplate(ctx context.Context, c *modules.Call) (any, error) {
	kw := map[string]any{"path": c.Value("path"), "dest": nil, "saltenv": c.Value("saltenv")}
	for _, k := range []string{"template", "context", "defaults"} {
		kw[k] = c.Value(k)
	}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = v
		}
	}
	path, err := c.ExecKw(ctx, "cp.get_template", nil, kw)
	if err != nil {
		return nil, err
	}
	text, _ := path.(string)
	return fromFile(ctx, c, text)
}
