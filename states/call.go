package states

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A Call is one running state function: its arguments and everything it may use of the program. It belongs to the
// goroutine that runs the function and must not be shared.
type Call struct {
	*modules.Call
	// Low is the chunk that runs. Functions must not change it, except in mod_aggregate.
	Low *Low
	// KeywordNames are the keys of Keywords in the order of the SLS.
	KeywordNames []string

	run     *Run
	test    bool
	saltenv string
}

// Name returns the argument name as a string; the id of the state if it was not given.
func (c *Call) Name() string {
	if v := c.Value("name"); v != nil {
		return pytext.Str(v)
	}
	return c.Low.Name()
}

// OwnKeywords returns the keyword arguments that the function did not declare, without those that the state system
// adds. The map belongs to the caller and is never nil.
func (c *Call) OwnKeywords() map[string]any {
	kw := map[string]any{}
	maps.Copy(kw, c.Keywords)
	delete(kw, "__reqs__")
	return kw
}

// Test reports whether the function must only report what it would change.
func (c *Call) Test() bool { return c.test }

// InTest returns the call with test mode switched on or off, for itself and for the functions that are called
// through it. States use it to try something before they do it, and to have another state do real work in test
// mode.
func (c *Call) InTest(test bool) *Call {
	env, call, out := *c.Env, *c.Call, *c
	opts := maps.Clone(c.Config())
	if opts == nil {
		opts = map[string]any{}
	}
	opts["test"] = test
	env.Opts = func() map[string]any { return opts }
	call.Env, out.Call, out.test = &env, &call, test
	return &out
}

// Saltenv returns the environment that the state belongs to.
func (c *Call) Saltenv() string { return c.saltenv }

// Text returns v as Python prints it. Dictionaries of the state's arguments are shown as stock has them: an OrderedDict if
// they come from an SLS, in its order.
func (c *Call) Text(v any) string { return pyobj.Str(keyOrderOf(c.Low).asGiven(v)) }

// InstanceID returns a number that is different for each state run (__instance_id__).
func (c *Call) InstanceID() string { return c.run.instance }

// Lowstate returns all chunks of the run. Callers must not change them.
func (c *Call) Lowstate() []*Low { return c.run.chunks }

// Running returns the record of a state that has run, by [Low.Tag], with Salt's keys ("result", "changes",
// "comment", …). It returns nil if the state has not run. Callers must not change it.
func (c *Call) Running(tag string) map[string]any { return c.run.running.get(tag) }

// Result returns a new result with the state's name: failed, without changes.
func (c *Call) Result() *Result { return &Result{Name: c.Name(), Changes: map[string]any{}} }

// State calls another state function, like __states__["x.y"](…): with keyword arguments, name among them. The
// function runs alone, without requisites, conditions or retries. The error is the exception that it raised, or the
// one that Python raises for arguments that do not fit.
func (c *Call) State(ctx context.Context, fun string, kwargs map[string]any) (*Result, error) {
	return c.run.callState(ctx, c, fun, kwargs)
}
