package service

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// status returns the words for the state of the service: running if started is true, asItShould if it is nil, else dead.
func status(started any, running, asItShould, dead string) string {
	switch started {
	case true:
		return running
	case nil:
		return asItShould
	}
	return dead
}

// enable enables the service at boot (_enable).
func (u *unit) enable(started any, o states.Outcome) (*states.Result, error) {
	known, err := u.known()
	switch {
	case modules.IsExecError(err):
		return u.end(states.False, states.ErrorText(err))
	case err != nil:
		return nil, err
	case !known:
		return u.end(states.False, u.unknown())
	case !u.has("service.enable"), !u.has("service.enabled"):
		return u.end(o, "Enable is not available on this minion, service "+u.name+status(started, " started", " is in the desired state", " is dead"))
	}
	before, err := u.ask("enabled", nil, u.more)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(before) {
		if started == nil {
			u.ret.Changes = map[string]any{}
		}
		return u.end(o, "Service "+u.name+" is already enabled, and "+status(started, "is running", "is in the desired state", "is dead"))
	}
	if u.Test() {
		return u.end(states.None, "Service "+u.name+" set to be enabled")
	}
	done, err := u.ask("enable", nil, u.more)
	if err != nil && !modules.IsExecError(err) {
		return nil, err
	}
	if err == nil && pytext.Truth(done) {
		return u.toggled(before, "enabled", u.more, "enabled", started, o)
	}
	comment := status(started, "Failed when setting service "+u.name+" to start at boot, but the service is running",
		"Failed when setting service "+u.name+" to start at boot, but the service was already running",
		"Failed when setting service "+u.name+" to start at boot, and the service is dead")
	if err != nil {
		comment += ". Additional information follows:\n\n" + states.ErrorText(err)
	}
	return u.end(states.False, comment)
}

// toggled returns the result after the service was enabled or disabled at boot. word names which; fun checks it.
func (u *unit) toggled(before any, fun string, kwargs map[string]any, word string, started any, o states.Outcome) (*states.Result, error) {
	after, err := u.ask(fun, nil, kwargs)
	if err != nil {
		return nil, err
	}
	u.ret.Changes = map[string]any{}
	if pytext.Repr(before) != pytext.Repr(after) {
		u.ret.Changes[u.name] = true
	}
	return u.end(o, "Service "+u.name+" has been "+word+", and "+status(started, "is running", "is in the desired state", "is dead"))
}

// disable disables the service at boot (_disable).
func (u *unit) disable(started any, o states.Outcome) (*states.Result, error) {
	known, err := u.known()
	switch {
	case modules.IsExecError(err):
		return u.end(states.False, states.ErrorText(err))
	case err != nil:
		return nil, err
	case !known:
		return u.end(states.True, u.unknown())
	case !u.has("service.disable"), !u.has("service.disabled"):
		return u.end(o, "Disable is not available on this minion, service "+u.name+status(started, " started", " is in the desired state", " is dead"))
	}
	before, err := u.ask("disabled", nil, nil)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(before) {
		if started == nil {
			u.ret.Changes = map[string]any{}
		}
		return u.end(o, "Service "+u.name+" is already disabled, and "+status(started, "is running", "is in the desired state", "is dead"))
	}
	if u.Test() {
		return u.end(states.None, "Service "+u.name+" set to be disabled")
	}
	done, err := u.ask("disable", nil, u.more)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(done) {
		return u.toggled(before, "disabled", nil, "disabled", started, o)
	}
	return u.end(states.False, status(started, "Failed when setting service "+u.name+" to not start at boot, and is running",
		"Failed when setting service "+u.name+" to not start at boot, but the service was already running",
		"Failed when setting service "+u.name+" to not start at boot, and the service is dead"))
}

func enabled(ctx context.Context, c *states.Call) (*states.Result, error) {
	u := of(ctx, c)
	c.Context().Set("service.state", "enabled")
	ret, err := u.enable(nil, states.True)
	if err == nil && c.Test() && ret.Comment == u.unknown() {
		return ret.As(states.None, "Service "+u.name+" not present; if created in this state run, it would have been enabled")
	}
	return ret, err
}

func disabled(ctx context.Context, c *states.Call) (*states.Result, error) {
	c.Context().Set("service.state", "disabled")
	return of(ctx, c).disable(nil, states.True)
}

func masked(ctx context.Context, c *states.Call) (*states.Result, error) {
	return of(ctx, c).mask(true, c.Bool("runtime"))
}

func unmasked(ctx context.Context, c *states.Call) (*states.Result, error) {
	return of(ctx, c).mask(false, c.Bool("runtime"))
}

// mask masks the unit or unmasks it.
func (u *unit) mask(on, runtime bool) (*states.Result, error) {
	if !u.has("service.masked") {
		return u.end(states.False, "Service masking not available on this minion")
	}
	ret, err := u.masking(on, runtime)
	if modules.IsExecError(err) {
		u.ret.Changes = map[string]any{}
		return u.end(states.False, states.ErrorText(err))
	}
	return ret, err
}

func (u *unit) masking(on, runtime bool) (*states.Result, error) {
	kind := "masked"
	if runtime {
		kind = "runtime masked"
	}
	fun, word, already := "mask", kind, " is already "
	if !on {
		fun, already, word = "unmask", " was already ", "unmasked"
		if runtime {
			word = "runtime unmasked"
		}
	}
	is, err := u.ask("masked", []any{runtime}, nil)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(is) == on {
		return u.end(states.True, "Service "+u.name+already+word)
	}
	changes := map[string]any{kind: map[string]any{"old": !on, "new": on}}
	if u.Test() {
		u.ret.Changes = changes
		return u.end(states.None, "Service "+u.name+" would be "+word)
	}
	if _, err := u.ask(fun, []any{runtime}, nil); err != nil {
		return nil, err
	}
	if is, err = u.ask("masked", []any{runtime}, nil); err != nil {
		return nil, err
	}
	if pytext.Truth(is) != on {
		return u.end(states.True, "Failed to "+fun+" service "+u.name)
	}
	u.ret.Changes = changes
	return u.end(states.True, "Service "+u.name+" was "+word)
}
