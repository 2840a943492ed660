package cfn

import (
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules/pyobj"
)

func (c *compiler) commands(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	slices.SortStableFunc(list, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range list {
		c.fail(c.command(e))
	}
}

func (c *compiler) command(e entry) error {
	if err := c.unknown(e.node, "command", "env", "cwd", "test", "ignoreErrors", "waitAfterCompletion"); err != nil {
		return err
	}
	line, ok := e.child("command")
	if !ok {
		return e.wrong("needs a command")
	}
	script, err := shellScript(line)
	if err != nil {
		return err
	}
	env, clean, err := environment(e.node)
	if err != nil {
		return err
	}
	dir := c.host.Dir
	if cwd, ok := e.child("cwd"); ok {
		if dir, err = cwd.text(); err != nil {
			return err
		}
		if dir == "~" || strings.HasPrefix(dir, "~/") {
			dir = path.Join(c.host.Home, dir[1:])
		}
	}
	args := []arg{{"name", within(env, clean, script)}, {"shell", "/bin/sh"}}
	if dir != "" {
		args = append(args, arg{"cwd", dir})
	}
	if test, ok := e.child("test"); ok {
		condition, err := shellScript(test)
		if err != nil {
			return err
		}
		args = append(args, arg{"onlyif", within(env, clean, condition)})
	}
	if ignore, ok := e.child("ignoreErrors"); ok {
		yes, err := ignore.truth()
		if err != nil {
			return err
		}
		if yes {
			args = append(args, arg{"check_cmd", pyobj.NewList("true")}) // a successful test makes the state succeed
		}
	}
	if wait, ok := e.child("waitAfterCompletion"); ok {
		c.warn(wait, "has no effect: it is for restarts of Windows")
	}
	c.add(e.key, "cmd", "run", args...)
	return nil
}

// shellScript returns a command as a script. A list is a program and its arguments.
func shellScript(n node) (string, error) {
	if l, ok := n.v.(*pyobj.List); ok {
		words, err := n.texts()
		if err == nil && len(l.Items) == 0 {
			err = n.wrong("must not be empty")
		}
		return shlex.Join(words), err
	}
	return n.text()
}

// environment returns the variables that replace the environment of a command. clean is true if env is set.
func environment(n node) (words []string, clean bool, err error) {
	v, ok := n.child("env")
	if !ok || v.v == nil {
		return nil, false, nil
	}
	list, err := v.entries()
	if err != nil {
		return nil, false, err
	}
	for _, e := range list {
		text, err := e.text()
		if err != nil {
			return nil, false, err
		}
		if e.key == "" || strings.ContainsAny(e.key, "=\x00") {
			return nil, false, e.wrong("is not the name of an environment variable")
		}
		words = append(words, e.key+"="+text)
	}
	return words, true, nil
}

// within returns a script that runs in a separate environment; cmd.run itself can only add variables to the minion's.
func within(env []string, clean bool, script string) string {
	if !clean {
		return script
	}
	words := append([]string{"exec", "/usr/bin/env", "-i", "--"}, env...)
	return shlex.Join(append(words, "/bin/sh", "-c", script))
}
