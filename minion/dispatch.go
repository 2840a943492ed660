package minion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// dispatcher checks whether a function may run, and runs it.
type dispatcher struct{ m *Minion }

// runFunction runs the i-th function of a job, after the policy, the blackout and the executors were checked.
func (d *dispatcher) runFunction(ctx context.Context, e *modules.Env, j *job,
	i int) modules.Result {
	fun := j.Fun[i]
	if err := d.refuseFunction(ctx, j.link, j, fun); err != nil {
		return failedResult(fun, err)
	}
	s := d.m.settings()
	sudo, err := executors(j.Raw["module_executors"], s)
	if err != nil {
		return failedResult(fun, err)
	}
	var arg []any
	if i < len(j.Args) {
		arg = j.Args[i]
	}
	args, kwargs := protocol.ParseArgs(arg, yaml.ParseValueObject)
	if sudo {
		return viaSudo(ctx, e, s, fun, args, kwargs)
	}
	return d.m.o.Registry.Run(ctx, e,
		modules.Request{Fun: fun, JID: string(j.JID), Args: args, Kwargs: kwargs, Pub: j.Raw,
			AsGiven: true, Progress: func(item any) { j.progress.send(j, item) }})
}

// refuseFunction returns the reason why others may not call a function, or nil. The minion's own configuration
// decides the policy, and no master can change it. Functions that fun calls are checked again, at each call.
// j is the job that calls the function, or nil.
func (d *dispatcher) refuseFunction(ctx context.Context, l *link, j *job, fun string) error {
	if err := d.m.settings().policy.Refuse(modules.Execution, fun); err != nil {
		d.m.noteRefusal(l, j, fun, err)
		return err
	}
	return d.checkBlackout(ctx, l, fun)
}

// checkBlackout refuses functions while the pillar or a grain sets minion_blackout (salt/minion.py:
// _execute_job_function).
func (d *dispatcher) checkBlackout(ctx context.Context, l *link, fun string) error {
	if fun == "saltutil.refresh_pillar" || fun == "saltutil.find_job" {
		// refresh_pillar is how a blackout ends. find_job lets a salt command see that jobs still run.
		return nil
	}
	sources := []map[string]any{d.m.grains.get(ctx)}
	if l != nil {
		sources = append(sources, l.pillarData(ctx))
	}
	for _, data := range sources {
		o := options(data)
		if o.truthOr("minion_blackout", false) &&
			!slices.Contains(o.texts("minion_blackout_whitelist"), fun) {
			return modules.Usagef("Minion in blackout mode. Set 'minion_blackout' to False in " +
				"pillar or grains to resume operations. " +
				"Only saltutil.refresh_pillar allowed in blackout mode.")
		}
	}
	return nil
}

// executors checks module_executors and reports whether the function runs through sudo. It always does if
// sudo_user is set.
func executors(wanted any, s *settings) (sudo bool, err error) {
	user := s.text("sudo_user")
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
			return false, modules.Usagef("Wrong executors specification: %v. String or non-empty "+
				"list expected", wanted)
		}
	}
	// Only the first executor counts, as in stock.
	if x := list[0]; x != "direct_call" && (x != "sudo" || user == "") {
		return false, modules.Usagef("Executor '%v' is not available", x)
	}
	return user != "", nil
}

// failedResult returns the result of a function that was refused before it ran.
func failedResult(fun string, err error) modules.Result {
	res := modules.Result{Retcode: 1, Out: "nested", Err: err, Return: err.Error()}
	var usage *modules.UsageError
	if errors.As(err, &usage) {
		res.Return = fmt.Sprintf("ERROR executing '%s': %s", fun, err)
	}
	return res
}
