package minion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/target"
)

// dispatcher decides what may run here and runs it.
type dispatcher struct {
	m *Minion

	mu       sync.Mutex
	filtered *modules.Registry // guarded by mu; without the modules of disable_modules; nil until needed
}

func (d *dispatcher) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.filtered = nil
}

// registry is what functions can reach. Modules that the operator disabled do not exist in it.
func (d *dispatcher) registry() *modules.Registry {
	off := d.m.settings().texts("disable_modules")
	if len(off) == 0 {
		return d.m.o.Registry
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.filtered == nil {
		d.filtered = d.m.o.Registry.Without(off...)
	}
	return d.filtered
}

// run runs the i-th function of a job with everything that stands in its way checked first.
func (d *dispatcher) run(ctx context.Context, e *modules.Env, j *job, i int) modules.Result {
	fun := j.Fun[i]
	if err := d.refuse(ctx, j.link, fun); err != nil {
		return failure(fun, err)
	}
	s := d.m.settings()
	sudo, err := executors(j.Raw["module_executors"], s)
	if err != nil {
		return failure(fun, err)
	}
	var arg []any
	if i < len(j.Args) {
		arg = j.Args[i]
	}
	args, kwargs := protocol.ParseArgs(arg, yaml.ParseValue)
	if sudo {
		return viaSudo(ctx, e, s, fun, args, kwargs)
	}
	return d.registry().Run(ctx, e, modules.Request{Fun: fun, JID: string(j.JID), Args: args, Kwargs: kwargs, Pub: j.Raw,
		Progress: func(item any) { j.progress.send(j, item) }})
}

// refuse says why a function may not be called from outside, or nothing. Only the minion's own configuration and data
// decide; no master can lift it.
func (d *dispatcher) refuse(ctx context.Context, l *link, fun string) error {
	if err := d.unlisted(fun); err != nil {
		return err
	}
	if err := d.policy(fun); err != nil {
		return err
	}
	return d.blackout(ctx, l, fun)
}

// policy is options minion_allow_functions and minion_deny_functions. Returners that a master asks for count as functions.
func (d *dispatcher) policy(fun string) error {
	s := d.m.settings()
	if allow := s.texts("minion_allow_functions"); allow != nil && !matchesAny(allow, fun) || matchesAny(s.texts("minion_deny_functions"), fun) {
		return modules.Usagef("the policy of this minion does not allow %s", fun)
	}
	return nil
}

// unlisted is option whitelist_modules. It filters what may be called from outside; functions may still call each other.
func (d *dispatcher) unlisted(fun string) error {
	mod, _, _ := strings.Cut(fun, ".")
	if white := d.m.settings().texts("whitelist_modules"); len(white) > 0 && !slices.Contains(white, mod) {
		return &modules.NotAvailableError{Fun: fun}
	}
	return nil
}

func matchesAny(globs []string, fun string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return target.Glob(g, fun) })
}

// blackout is the operator's emergency stop by pillar or grain (salt/minion.py: _execute_job_function).
func (d *dispatcher) blackout(ctx context.Context, l *link, fun string) error {
	if fun == "saltutil.refresh_pillar" || fun == "saltutil.find_job" {
		// The first ends a blackout; without the second a salt command does not learn that jobs still run.
		return nil
	}
	sources := []map[string]any{d.m.grains.get(ctx)}
	if l != nil {
		sources = append(sources, l.pillarData(ctx))
	}
	for _, data := range sources {
		o := options(data)
		if o.truth("minion_blackout", false) && !slices.Contains(o.texts("minion_blackout_whitelist"), fun) {
			return modules.Usagef("Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations. " +
				"Only saltutil.refresh_pillar allowed in blackout mode.")
		}
	}
	return nil
}

// executors reads how the function is to be run: directly, or, where the operator has set sudo_user, always through sudo.
func executors(wanted any, s *settings) (sudo bool, err error) {
	user := s.text("sudo_user", "")
	if wanted == nil {
		wanted = s.options["module_executors"]
	}
	list, ok := wanted.([]any)
	switch w := wanted.(type) {
	case nil:
		list = []any{"direct_call"}
	case string:
		list = []any{w}
	default:
		if !ok || len(list) == 0 {
			return false, modules.Usagef("Wrong executors specification: %v. String or non-empty list expected", wanted)
		}
	}
	for _, x := range list {
		if x != "direct_call" && (x != "sudo" || user == "") {
			return false, modules.Usagef("Executor '%v' is not available", x)
		}
	}
	return user != "", nil
}

// failure is the result of a call that was refused before it began.
func failure(fun string, err error) modules.Result {
	res := modules.Result{Retcode: 1, Out: "nested", Err: err, Return: err.Error()}
	if _, usage := err.(*modules.UsageError); usage {
		res.Return = fmt.Sprintf("ERROR executing '%s': %s", fun, err)
	}
	return res
}
