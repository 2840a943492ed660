// Package test is Salt's state module "test": states that only say so (salt/states/test.py).
package test

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "test".
var Module = &states.Module{Name: "test", Doc: "States that do nothing, for trying things out.", Funcs: []states.Def{
	{Name: "check_pillar", Doc: checkPillarDoc, Params: []modules.Param{name, {Name: "present", Optional: true}, {Name: "boolean", Optional: true},
		{Name: "integer", Optional: true}, {Name: "string", Optional: true}, {Name: "listing", Optional: true},
		{Name: "dictionary", Optional: true}, {Name: "verbose", Default: false}}, Run: checkPillar},
	{Name: "configurable_test_state", Doc: configurableDoc, Params: []modules.Param{name, {Name: "changes", Default: true},
		{Name: "result", Default: true}, {Name: "comment", Default: ""}, {Name: "warnings", Optional: true},
		{Name: "allow_test_mode_failure", Default: false}}, Run: configurable},
	{Name: "fail_with_changes", Doc: failChangesDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: failWithChanges},
	{Name: "fail_without_changes", Doc: failDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: failWithoutChanges},
	{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{name, {Name: "sfun", Optional: true}}, Kwargs: "kwargs", Run: modWatch},
	{Name: "nop", Doc: nopDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: nop},
	{Name: "show_notification", Doc: showDoc, Params: []modules.Param{name, {Name: "text", Optional: true}}, Kwargs: "kwargs", Run: show},
	{Name: "succeed_with_changes", Doc: succeedChangesDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: succeedWithChanges},
	{Name: "succeed_without_changes", Doc: succeedDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: succeedWithoutChanges},
}}

var name = modules.Param{Name: "name"}

const (
	nopDoc = `Do nothing and succeed. Useful as a place to hang requisites on, or where a template would leave a file empty.

name
    the state's name`
	succeedDoc = `Succeed, without changes.

name
    the state's name
comment
    what to say instead of Success!`
	succeedChangesDoc = `Succeed, with changes, for trying out requisites.

name
    the state's name
comment
    what to say instead of Success!`
	failDoc = `Fail, without changes.

name
    the state's name
comment
    what to say instead of Failure!`
	failChangesDoc = `Fail, with changes.

name
    the state's name
comment
    what to say instead of Failure!`
	configurableDoc = `Have the result, changes, comment and warnings that are asked for.

name
    the state's name
changes
    True, False or "Random"
result
    True, False or "Random"; in test mode a state with changes has no result
comment
    the comment
warnings
    a text or a list of texts
allow_test_mode_failure
    let a result of False be one in test mode as well`
	showDoc = `Show a text as the state's comment.

name
    the state's name
text
    the text`
	watchDoc = `Tell which of the watched states changed.

name
    the state's name
sfun
    the function that watches
result, comment, changes
    what to answer instead`
	checkPillarDoc = `Check that the pillar has keys, and of which types their values are.

name
    the state's name
present
    keys that must be there
boolean, integer, string, listing, dictionary
    keys whose values must be of that type
verbose
    list the keys that are as they should be`
)

func nop(_ context.Context, c *states.Call) (*states.Result, error) {
	return c.Result().As(states.True, "Success!")
}

// say returns a result with the caller's comment, or comment if it is missing.
func say(c *states.Call, o states.Outcome, comment string) *states.Result {
	ret := c.Result()
	ret.Result, ret.Comment = o, comment
	if v, ok := c.Keywords["comment"]; ok {
		ret.Extra = map[string]any{"comment": v}
	}
	return ret
}

// pretended returns the pretended changes of a state that changes nothing.
func pretended() map[string]any {
	return map[string]any{"testing": map[string]any{"old": "Unchanged", "new": "Something pretended to change"}}
}

// testing returns the result in test mode.
func testing(ret *states.Result, o states.Outcome, comment string) (*states.Result, error) {
	ret.Extra = nil
	return ret.As(o, comment)
}

func succeedWithoutChanges(_ context.Context, c *states.Call) (*states.Result, error) {
	return say(c, states.True, "Success!"), nil
}

func failWithoutChanges(_ context.Context, c *states.Call) (*states.Result, error) {
	ret := say(c, states.False, "Failure!")
	if c.Test() {
		return testing(ret, states.False, "If we weren't testing, this would be a failure!")
	}
	return ret, nil
}

func succeedWithChanges(_ context.Context, c *states.Call) (*states.Result, error) {
	ret := say(c, states.True, "Success!")
	ret.Changes = pretended()
	if c.Test() {
		return testing(ret, states.None, "If we weren't testing, this would be successful with changes")
	}
	return ret, nil
}

func failWithChanges(_ context.Context, c *states.Call) (*states.Result, error) {
	ret := say(c, states.False, "Failure!")
	ret.Changes = pretended()
	if c.Test() {
		return testing(ret, states.None, "If we weren't testing, this would be failed with changes")
	}
	return ret, nil
}

func random(v any) bool { return strings.EqualFold(pytext.Str(v), "random") }

func coin() bool { return rand.IntN(2) == 0 }

func configurable(_ context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	changes, result, comment := c.Value("changes"), c.Value("result"), c.Value("comment")
	ret.Extra = map[string]any{"comment": comment}
	switch {
	case changes == true, changes != false && random(changes) && coin():
		ret.Changes = pretended()
	case changes != false && !random(changes):
		return nil, modules.Usagef("You have specified the state option 'changes' with invalid arguments. It must be either True, False, or 'Random'")
	}
	switch v, ok := result.(bool); {
	case ok:
		ret.Result = states.OutcomeOf(v)
	case random(result):
		ret.Result = states.OutcomeOf(coin())
	default:
		return nil, modules.Usagef("You have specified the state option 'result' with invalid arguments. It must be either True, False, or 'Random'")
	}
	switch w := c.Value("warnings").(type) {
	case nil:
	case string:
		ret.Warn(w)
	case []any:
		ret.Extra["warnings"] = w
	default:
		return nil, modules.Usagef("You have specified the state option 'warnings' with invalid arguments. It must be a string or a list of strings")
	}
	if !c.Test() {
		return ret, nil
	}
	switch {
	case c.Bool("allow_test_mode_failure") && result == false:
		ret.Result = states.False
	case changes == false:
		ret.Result = states.True
	default:
		ret.Result = states.None
	}
	if !pytext.Truth(comment) {
		ret.Extra["comment"] = "This is a test"
	}
	return ret, nil
}

func show(_ context.Context, c *states.Call) (*states.Result, error) {
	if !c.Bool("text") {
		return nil, modules.Usagef("Missing required argument text.")
	}
	ret := c.Result()
	ret.Result, ret.Extra = states.True, map[string]any{"comment": c.Value("text")}
	return ret, nil
}

func modWatch(_ context.Context, c *states.Call) (*states.Result, error) {
	changed := []any{}
	for _, req := range c.Low.Reqs("watch") {
		if rec := c.Running(req.Tag()); pytext.Truth(rec["changes"]) {
			changed = append(changed, req.State()+": "+req.ID())
		}
	}
	ret := c.Result()
	ret.Result, ret.Comment = states.True, "Watch statement fired."
	ret.Changes["Requisites with changes"] = changed
	ret.Extra = map[string]any{}
	for _, key := range [...]string{"result", "comment", "changes"} {
		if v, ok := c.Keywords[key]; ok {
			ret.Extra[key] = v
		}
	}
	return ret, nil
}
