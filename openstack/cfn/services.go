package cfn

import (
	"slices"

	"github.com/brine-salt/brine/modules/pyobj"
)

func (c *compiler) services(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		if e.key != "sysvinit" && e.key != "systemd" {
			c.warn(e.node, "is not a kind of services that cfn-init knows; they are skipped")
			continue
		}
		names, err := e.entries()
		if c.fail(err) {
			continue
		}
		for _, s := range names {
			c.fail(c.service(s))
		}
	}
}

// optionalBool returns an optional bool.
func optionalBool(n node, key string) (value, given bool, err error) {
	v, ok := n.child(key)
	if !ok {
		return false, false, nil
	}
	value, err = v.truth()
	return value, true, err
}

func (c *compiler) service(e entry) error {
	if err := c.unknown(e.node, "enabled", "ensureRunning", "files", "packages", "sources", "commands"); err != nil {
		return err
	}
	enabled, hasEnabled, err := optionalBool(e.node, "enabled")
	if err != nil {
		return err
	}
	running, hasRunning, err := optionalBool(e.node, "ensureRunning")
	if err != nil {
		return err
	}
	watch, err := c.triggers(e.node)
	if err != nil {
		return err
	}
	args := []arg{{"name", e.key}}
	if hasEnabled && hasRunning {
		args = append(args, arg{"enable", enabled})
	}
	if len(watch.Items) > 0 && hasRunning && running {
		args = append(args, arg{"watch", watch})
	} else if len(watch.Items) > 0 {
		c.warn(e.node, "is not ensured to run, so changes of what it names do not restart it")
	}
	switch {
	case hasRunning && running:
		c.add(e.key, "service", "running", args...)
	case hasRunning:
		c.add(e.key, "service", "dead", args...)
	case hasEnabled && enabled:
		c.add(e.key, "service", "enabled", args...)
	case hasEnabled:
		c.add(e.key, "service", "disabled", args...)
	default:
		c.warn(e.node, "has neither enabled nor ensureRunning")
	}
	return nil
}

// triggers returns the states whose changes restart a service.
func (c *compiler) triggers(n node) (*pyobj.List, error) {
	watch := pyobj.NewList()
	var have []ref
	put := func(from node, section, name string) {
		refs := c.made[[2]string{section, name}]
		if len(refs) == 0 {
			c.warn(from, "names %q, which this configuration does not have", name)
		}
		for _, r := range refs {
			if !slices.Contains(have, r) {
				have = append(have, r)
				watch.Items = append(watch.Items, r.dict())
			}
		}
	}
	for _, section := range [...]string{"files", "sources", "commands"} {
		v, ok := n.child(section)
		if !ok {
			continue
		}
		names, err := v.texts()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			put(v, section, name)
		}
	}
	v, ok := n.child("packages")
	if !ok {
		return watch, nil
	}
	list, err := v.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		names, err := e.texts()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			put(e.node, e.key, name)
		}
	}
	return watch, nil
}
