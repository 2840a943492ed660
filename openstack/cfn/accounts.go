package cfn

import (
	"strconv"

	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules/pyobj"
)

// nologin is the shell of all users that metadata creates.
const nologin = "/sbin/nologin"

// number returns a user or group id.
func (n node) number() (int64, error) {
	s, err := n.text()
	if err != nil {
		return 0, n.mustBe("a number")
	}
	id, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, n.wrong("must be a number, not %q", s)
	}
	return int64(id), nil
}

// absent returns the condition that the accounts database does not have the name. As with groupadd and useradd,
// existing accounts are not changed.
func absent(database, name string) arg {
	return arg{"unless", shlex.Join([]string{"getent", database, name})}
}

func (c *compiler) groups(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		if c.fail(c.unknown(e.node, "gid")) {
			continue
		}
		args := []arg{{"name", e.key}}
		if gid, ok := e.child("gid"); ok && gid.v != nil {
			id, err := gid.number()
			if c.fail(err) {
				continue
			}
			args = append(args, arg{"gid", id})
		}
		c.add(e.key, "group", "present", append(args, absent("group", e.key))...)
	}
}

func (c *compiler) users(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		c.user(e)
	}
}

func (c *compiler) user(e entry) {
	if c.fail(c.unknown(e.node, "uid", "homeDir", "groups")) {
		return
	}
	args := []arg{{"name", e.key}, {"shell", nologin}, {"createhome", c.host.CreateHome},
		{"cmd_opts_exclude", pyobj.NewList("shell")}} // the condition must not run in the user's shell

	if uid, ok := e.child("uid"); ok && uid.v != nil {
		id, err := uid.number()
		if c.fail(err) {
			return
		}
		args = append(args, arg{"uid", id})
	}
	if home, ok := e.child("homeDir"); ok && home.v != nil {
		dir, err := home.text()
		if c.fail(err) {
			return
		}
		args = append(args, arg{"home", dir})
	}
	if groups, ok := e.child("groups"); ok {
		names, err := groups.texts()
		if c.fail(err) {
			return
		}
		list := pyobj.NewList()
		for _, name := range names {
			if name != e.key {
				list.Items = append(list.Items, name)
			}
		}
		if len(list.Items) > 0 {
			args = append(args, arg{"groups", list})
		}
	}
	// useradd would create a group of the same name, and fails if it exists.
	_, declared := c.made[[2]string{"groups", e.key}]
	if declared || c.host.Group != nil && c.host.Group(e.key) {
		args = append(args, arg{"gid", e.key})
	}
	c.add(e.key, "user", "present", append(args, absent("passwd", e.key))...)
}
