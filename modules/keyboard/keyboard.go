// Package keyboard is Salt's execution module "keyboard". Salt's source: salt/modules/keyboard.py.
package keyboard

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// keyboard.get_x differs: without setxkbmap it is an error; stock takes a word of the shell's complaint for the layout.

func available(e *modules.Env) (bool, string) {
	switch e.Grain("os_family") {
	case "RedHat", "Debian", "Gentoo":
		return true, ""
	}
	return e.Which("localectl") != "", "The keyboard exeuction module cannot be loaded: only works on Redhat, Debian or Gentoo systems or if " +
		"localectl binary in path."
}

func family(c *modules.Call, name string) bool {
	s, _ := c.Grain("os_family").(string)
	return strings.Contains(s, name)
}

// setting returns the file that holds the keyboard layout, and the name of the variable in it.
func setting(c *modules.Call) (file, name string) {
	switch {
	case family(c, "RedHat"):
		return "/etc/sysconfig/keyboard", "LAYOUT"
	case family(c, "Debian"):
		return "/etc/default/keyboard", "XKBLAYOUT"
	case family(c, "Gentoo"):
		return "/etc/conf.d/keymaps", "keymap"
	}
	return "", ""
}

func getSys(ctx context.Context, c *modules.Call) (any, error) {
	out, err := current(ctx, c)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(out, "=")
	if len(parts) < 2 {
		return nil, modules.IndexError()
	}
	return strings.ReplaceAll(parts[1], `"`, ""), nil
}

// current returns the present keyboard layout as lines of the form "name=value".
func current(ctx context.Context, c *modules.Call) (string, error) {
	var found []string
	if c.Which("localectl") != "" {
		r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"localectl"}, IgnoreRetcode: true})
		if err != nil {
			return "", err
		}
		for _, line := range r.Lines() {
			if strings.Contains(line, "Keymap") {
				found = append(found, strings.TrimLeft(strings.Replace(line, ": ", "=", 1), " \t"))
			}
		}
		return strings.Join(found, "\n"), nil
	}
	file, name := setting(c)
	text, _ := os.ReadFile(c.Path(file)) // as good as empty if it cannot be read
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, name) && !strings.HasPrefix(line, "#") && (name != "keymap" || strings.HasPrefix(line, name)) {
			found = append(found, line)
		}
	}
	c.SetRetcode(0)
	if found == nil {
		c.SetRetcode(1) // grep's
	}
	return strings.Join(found, "\n"), nil
}

func setSys(ctx context.Context, c *modules.Call) (any, error) {
	layout := c.Value("layout")
	var err error
	if c.Which("localectl") != "" {
		_, err = saltcmd.Text(ctx, c, "localectl", "set-keymap", layout)
	} else if file, name := setting(c); file != "" {
		_, err = c.Exec(ctx, "file.sed", file, "^"+name+"=.*", name+"="+pytext.Str(layout))
	}
	return layout, err
}

func getX(ctx context.Context, c *modules.Call) (any, error) {
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"setxkbmap", "-query"}, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	for _, line := range r.Lines() {
		if _, value, ok := strings.Cut(line, ":"); ok && strings.Contains(line, "layout") {
			value, _, _ = strings.Cut(value, ":")
			return pytext.Strip(value), nil
		}
	}
	return nil, modules.IndexError()
}

func setX(ctx context.Context, c *modules.Call) (any, error) {
	_, err := saltcmd.Text(ctx, c, "setxkbmap", c.Value("layout"))
	return c.Value("layout"), err
}
