package states

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Call is one running state function: its arguments and what it may ask of the program. It belongs to the goroutine that runs
// the function.
type Call struct {
	*modules.Call
	// Low is the chunk that runs. Functions must not change it, except in mod_aggregate.
	Low *Low
	// KeywordNames are the keys of Keywords in the order in which the SLS has them.
	KeywordNames []string

	run     *Run
	test    bool
	saltenv string
}

// Name is the argument name.
func (c *Call) Name() string {
	if v := c.Value("name"); v != nil {
		return pytext.Str(v)
	}
	return c.Low.Name()
}

// OwnKeywords are the keyword arguments that the function did not declare, without what the state system puts among them: a map of the
// caller's own, never nil.
func (c *Call) OwnKeywords() map[string]any {
	kw := map[string]any{}
	maps.Copy(kw, c.Keywords)
	delete(kw, "__reqs__")
	return kw
}

// Test tells whether the function must only say what it would do.
func (c *Call) Test() bool { return c.test }

// InTest is the call in test mode, or not: for it, and for the functions that are called through it. It is for states that try
// something out, or that need another state's work in test mode as well.
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

// Saltenv is the environment that the state belongs to.
func (c *Call) Saltenv() string { return c.saltenv }

// InstanceID names the state run; it is different for each.
func (c *Call) InstanceID() string { return c.run.instance }

// Lowstate are all chunks of the run. Callers must not change them.
func (c *Call) Lowstate() []*Low { return c.run.chunks }

// Running is what a state that has run came to, with Salt's keys ("result", "changes", "comment", …), by [Low.Tag]; nil if it
// has not. Callers must not change it.
func (c *Call) Running(tag string) map[string]any { return c.run.running.get(tag) }

// Result begins an answer: the state's name, failed, no changes.
func (c *Call) Result() *Result { return &Result{Name: c.Name(), Changes: map[string]any{}} }

// State calls another state function, as __states__["x.y"](…) does: with keyword arguments, name among them. Nothing of the
// state system is around it. The error is that of a function that raised, or of a call that does not fit.
func (c *Call) State(ctx context.Context, fun string, kwargs map[string]any) (*Result, error) {
	return c.run.callState(ctx, c, fun, kwargs)
}
