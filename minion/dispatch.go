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

// dispatcher decides what may run here and runs it.
type dispatcher struct{ m *Minion }

// runFunction runs the i-th function of a job with everything that stands in its way checked first.
func (d *dispatcher) runFunction(ctx context.Context, e *modules.Env, j *job,
	i int) modules.Result {
	fun := j.Fun[i]
	if err := d.refuseFunction(ctx, j.link, fun); err != nil {
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

// refuseFunction says why a function may not be called from outside, or nothing. Only the minion's own configuration
// and data decide; no master can lift it. The policy is asked again at every call that the function makes.
func (d *dispatcher) refuseFunction(ctx context.Context, l *link, fun string) error {
	if err := d.m.settings().policy.Refuse(modules.Execution, fun); err != nil {
		d.m.noteRefusal(l, nil, fun, err)
		return err
	}
	return d.checkBlackout(ctx, l, fun)
}

// checkBlackout is the operator's emergency stop by pillar or grain (salt/minion.py: _execute_job_function).
func (d *dispatcher) checkBlackout(ctx context.Context, l *link, fun string) error {
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
		if o.truthOr("minion_blackout", false) &&
			!slices.Contains(o.texts("minion_blackout_whitelist"), fun) {
			return modules.Usagef("Minion in blackout mode. Set 'minion_blackout' to False in " +
				"pillar or grains to resume operations. " +
				"Only saltutil.refresh_pillar allowed in blackout mode.")
		}
	}
	return nil
}

// executors reads how the function is to be run: directly, or, where the operator has set sudo_user, always through
// sudo.
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
	// The first one answers; what follows it in the list is not looked at, as in stock.
	if x := list[0]; x != "direct_call" && (x != "sudo" || user == "") {
		return false, modules.Usagef("Executor '%v' is not available", x)
	}
	return user != "", nil
}

// failedResult is the result of a call that was refused before it began.
func failedResult(fun string, err error) modules.Result {
	res := modules.Result{Retcode: 1, Out: "nested", Err: err, Return: err.Error()}
	var usage *modules.UsageError
	if errors.As(err, &usage) {
		res.Return = fmt.Sprintf("ERROR executing '%s': %s", fun, err)
	}
	return res
}
