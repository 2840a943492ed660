package cfn

import (
	"context"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// hupRun is one check of the metadata.
type hupRun struct {
	c      *modules.Call
	h      *host
	conf   *hupConfig
	done   []any
	failed bool
}

func runHup(ctx context.Context, c *modules.Call) (any, error) {
	h := hostOf(c, false)
	conf, err := h.readHup(c.Str("config"))
	if err != nil {
		return nil, modules.Errorf("cannot load the configuration: %v", err)
	}
	r := &hupRun{c: c, h: h, conf: conf, done: []any{}}
	var resources []string
	for _, k := range conf.hooks {
		if !slices.Contains(resources, k.resource) {
			resources = append(resources, k.resource)
		}
	}
	for _, name := range resources {
		if err := r.resource(ctx, name); err != nil {
			return nil, modules.Errorf("cannot process the metadata of %s: %v", name, err)
		}
	}
	if c.SetRetcode(0); r.failed {
		c.SetRetcode(1)
	}
	return map[string]any{"result": !r.failed, "actions": r.done, "interval": int64(conf.interval.Minutes())}, nil
}

// resource starts the services of a resource that should run and do not, and then runs the hooks for its changes.
func (r *hupRun) resource(ctx context.Context, name string) error {
	a, err := r.h.retrieve(ctx, query{stack: r.conf.stack, resource: name, credentials: r.conf.credentials})
	if err != nil {
		return err
	}
	if err := r.services(ctx, name, a.metadata); err != nil {
		return err
	}
	for _, k := range r.conf.hooks {
		if k.resource != name {
			continue
		}
		for _, event := range k.event(a) {
			if k.wants(event) {
				r.run(ctx, k, event)
				break // run a hook once per change
			}
		}
	}
	return ctx.Err()
}

// services starts the services with ensureRunning that are not running.
func (r *hupRun) services(ctx context.Context, resource string, metadata any) error {
	n := node{"", metadata}
	for _, key := range [...]string{initKey, "config", "services"} {
		next, ok := n.child(key)
		if !ok {
			return nil
		}
		n = next
	}
	kinds, err := n.entries()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if kind.key != "sysvinit" && kind.key != "systemd" {
			continue
		}
		list, err := kind.entries()
		if err != nil {
			return err
		}
		for _, s := range list {
			if want, _, err := optionalBool(s.node, "ensureRunning"); err != nil {
				return err
			} else if want {
				r.service(ctx, resource, s.key)
			}
		}
	}
	return nil
}

func (r *hupRun) service(ctx context.Context, resource, name string) {
	if up, err := r.c.Exec(ctx, "service.status", name); err == nil && pytext.Truth(up) {
		return
	}
	r.h.log.Warn("The service does not run and is started", "service", name)
	started, err := r.c.Exec(ctx, "service.start", name)
	good := err == nil && pytext.Truth(started)
	act := map[string]any{"service": name, "event": "service.restarted", "result": good}
	if err != nil {
		act["comment"] = err.Error()
	}
	r.failed = r.failed || !good
	r.done = append(r.done, act)
	for _, k := range r.conf.hooks {
		if k.resource == resource && k.wants("service.restarted") {
			r.run(ctx, k, "service.restarted")
		}
	}
}

// run runs the action of a hook as the hook's user.
func (r *hupRun) run(ctx context.Context, k hook, event string) {
	out, err := r.c.ExecKw(ctx, "cmd.run_all", []any{k.action},
		map[string]any{"runas": k.runas, "shell": "/bin/sh", "python_shell": true, "cwd": "/", "ignore_retcode": true})
	act := map[string]any{"hook": k.name, "event": event, "result": false}
	res, _ := out.(map[string]any)
	switch {
	case err != nil:
		act["comment"] = err.Error()
	case !pytext.Truth(res["retcode"]):
		act["result"] = true
	default:
		act["comment"] = "exit status " + pytext.Str(res["retcode"])
	}
	for _, key := range [...]string{"retcode", "stdout", "stderr"} {
		if v, ok := res[key]; ok {
			act[key] = v
		}
	}
	if act["result"] == false {
		r.failed = true
		r.h.log.Error("The hook failed", "hook", k.name, "event", event, "err", act["comment"])
	}
	r.done = append(r.done, act)
}
