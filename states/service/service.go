// Package service is Salt's state module "service", which starts and stops services, enables and disables them at boot,
// and masks units (salt/states/service.py).
package service

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// unit is a service while a state about it runs.
type unit struct {
	*states.Call
	ctx  context.Context
	name string
	more map[string]any // the further arguments
	ret  *states.Result
}

func of(ctx context.Context, c *states.Call) *unit {
	u := &unit{Call: c, ctx: ctx, name: c.Name(), more: maps.Clone(c.Keywords), ret: c.Result()}
	delete(u.more, "__reqs__")
	u.ret.Result = states.True
	return u
}

func (u *unit) end(o states.Outcome, comment string) (*states.Result, error) {
	return u.ret.As(o, comment)
}

func (u *unit) has(fun string) bool { return pkglist.Has(u.Call.Call, fun) }

// ask calls a function of the module service about the unit.
func (u *unit) ask(fun string, args []any, kwargs map[string]any) (any, error) {
	return u.ExecKw(u.ctx, "service."+fun, append([]any{u.name}, args...), kwargs)
}

// known reports whether the service exists (_available).
func (u *unit) known() (bool, error) {
	switch {
	case u.has("service.available"):
		v, err := u.ask("available", nil, nil)
		return pytext.Truth(v), err
	case u.has("service.get_all"):
		v, err := u.ExecKw(u.ctx, "service.get_all", nil, nil)
		list, _ := v.([]any)
		return slices.Contains(list, any(u.name)), err
	}
	return false, nil
}

func (u *unit) unknown() string { return "The named service " + u.name + " is not available" }

// offline reports whether the init system does not run, as while an image is built in a chroot.
func (u *unit) offline() (bool, error) {
	if !u.has("service.offline") {
		return false, nil
	}
	v, err := u.ExecKw(u.ctx, "service.offline", nil, nil)
	return pytext.Truth(v), err
}

// forSystemd returns the given arguments that only the systemd module knows and that its function fun accepts. On a
// host without systemd each causes a warning instead.
func (u *unit) forSystemd(fun string) map[string]any {
	out := map[string]any{}
	def, err := u.Registry().Lookup("service."+fun, u.Env)
	if err != nil {
		return out
	}
	for _, arg := range [...]string{"no_block", "unmask", "unmask_runtime"} {
		v, given := u.more[arg]
		if !given || !slices.ContainsFunc(def.Params, func(p modules.Param) bool { return p.Name == arg }) {
			continue
		}
		if systemd.Booted(u.Env) {
			out[arg] = v
			continue
		}
		if text := "The '" + arg + "' argument is not supported by this platform"; !slices.Contains(u.ret.Warnings, text) {
			u.ret.Warn(text)
		}
	}
	return out
}

// enabledHere calls service.enabled. Without that function every service counts as enabled.
func (u *unit) enabledHere() (any, error) {
	if !u.has("service.enabled") {
		return true, nil
	}
	return u.ask("enabled", nil, nil)
}

// wait waits for the seconds of init_delay.
func (u *unit) wait() error {
	if !u.Bool("init_delay") {
		return nil
	}
	d, err := u.Seconds("init_delay")
	if err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-u.ctx.Done():
		return u.ctx.Err()
	case <-timer.C:
		return nil
	}
}

// begin is the first part of both running and dead. done means that the state ends here; otherwise enable is the
// argument of that name: true, false or nil.
func (u *unit) begin(what, verb string) (enable any, done bool, err error) {
	u.Context().Set("service.state", what)
	if _, ok := u.more["enabled"]; ok {
		_, err := u.end(states.False, "Service "+u.name+` uses non-existent option "enabled".  Perhaps "enable" option was intended?`)
		return nil, true, err
	}
	enable = u.Value("enable")
	if s, ok := enable.(string); ok {
		enable = pytext.IsTrue(s)
	}
	if off, err := u.offline(); err != nil || off {
		u.ret.Comment = "Running in OFFLINE mode. Nothing to do"
		return nil, true, err
	}
	known, err := u.known()
	switch {
	case modules.IsExecError(err):
		_, err := u.end(states.False, states.ErrorText(err))
		return nil, true, err
	case err != nil:
		return nil, true, err
	case known:
		return enable, false, nil
	}
	switch {
	case u.Test():
		u.ret.Result, u.ret.Comment = states.None, "Service "+u.name+" not present; if created in this state run, it would have been "+verb
	default:
		u.ret.Result, u.ret.Comment = states.OutcomeOf(what == "dead"), u.unknown()
	}
	return nil, true, nil
}

// boot enables or disables the service at boot if enable is true or false, and otherwise changes nothing. started
// selects the words of the comment: true for running, false for dead, nil for in the desired state.
func (u *unit) boot(enable, before any, started any, o states.Outcome) (*states.Result, error) {
	if before != nil && (pytext.Truth(before) == (enable == true)) {
		return u.ret, nil
	}
	switch enable {
	case true:
		return u.enable(started, o)
	case false:
		return u.disable(started, o)
	}
	return u.ret, nil
}

func running(ctx context.Context, c *states.Call) (*states.Result, error) {
	u := of(ctx, c)
	enable, done, err := u.begin("running", "started")
	if done || err != nil {
		return u.ret, err
	}
	statusArgs := u.forSystemd("status")
	before, err := u.ask("status", []any{c.Value("sig")}, statusArgs)
	if err != nil {
		return nil, err
	}
	enabledBefore, err := u.enabledHere()
	if err != nil {
		return nil, err
	}
	comment := ""
	if pytext.Truth(u.more["unmask"]) {
		sub := &unit{Call: c, ctx: ctx, name: u.name, ret: c.Result()}
		sub.ret.Result = states.True
		ret, err := sub.mask(false, pytext.Truth(u.more["unmask_runtime"]))
		if err != nil {
			return nil, err
		}
		comment = ret.Comment
	}
	if pytext.Truth(before) {
		u.ret.Comment = lines("The service "+u.name+" is already running", comment)
		return u.boot(enable, enabledBefore, nil, states.True)
	}
	if c.Test() {
		return u.end(states.None, lines("Service "+u.name+" is set to start", comment))
	}
	started, err := u.ask("start", nil, u.forSystemd("start"))
	if modules.IsExecError(err) {
		return u.end(states.False, states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(started) {
		u.ret.Result, u.ret.Comment = states.False, "Service "+u.name+" failed to start"
		return u.boot(enable, nil, false, states.False)
	}
	if err := u.wait(); err != nil {
		return nil, err
	}
	after, err := u.changed(before, enabledBefore, []any{c.Value("sig")}, statusArgs)
	if err != nil {
		return nil, err
	}
	if u.ret.Comment = "Started service " + u.name; !pytext.Truth(after) {
		u.ret.Result, u.ret.Comment = states.False, "Service "+u.name+" failed to start"
	}
	ret, err := u.boot(enable, nil, after, states.OutcomeOf(pytext.Truth(after)))
	if err != nil {
		return nil, err
	}
	if c.Bool("init_delay") {
		ret.Comment += "\nDelayed return for " + c.Str("init_delay") + " seconds"
	}
	if pytext.Truth(u.more["unmask"]) {
		ret.Comment += "\n" + comment
	}
	return ret, nil
}

// lines puts comments below each other, without empty ones.
func lines(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "\n")
}

// changed queries the service again, and records in the changes whether it differs from before.
func (u *unit) changed(before, enabledBefore any, args []any, kwargs map[string]any) (after any, err error) {
	if after, err = u.ask("status", args, kwargs); err != nil {
		return nil, err
	}
	enabledAfter, err := u.enabledHere()
	if err != nil {
		return nil, err
	}
	if pytext.Repr(before) != pytext.Repr(after) || pytext.Repr(enabledBefore) != pytext.Repr(enabledAfter) {
		u.ret.Changes[u.name] = after
	}
	return after, nil
}

func dead(ctx context.Context, c *states.Call) (*states.Result, error) {
	u := of(ctx, c)
	enable, done, err := u.begin("dead", "stopped")
	if done || err != nil {
		return u.ret, err
	}
	statusArgs := u.forSystemd("status")
	before, err := u.ask("status", []any{c.Value("sig")}, statusArgs)
	if err != nil {
		return nil, err
	}
	enabledBefore, err := u.enabledHere()
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(before) {
		u.ret.Comment = "The service " + u.name + " is already dead"
		return u.boot(enable, enabledBefore, nil, states.True)
	}
	if c.Test() {
		return u.end(states.None, "Service "+u.name+" is set to be killed")
	}
	stopped, err := u.ask("stop", nil, u.forSystemd("stop"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(stopped) {
		u.ret.Result, u.ret.Comment = states.False, "Service "+u.name+" failed to die"
		return u.boot(enable, nil, true, states.False)
	}
	if err := u.wait(); err != nil {
		return nil, err
	}
	// Salt forgets sig here.
	after, err := u.changed(before, enabledBefore, nil, statusArgs)
	if err != nil {
		return nil, err
	}
	if u.ret.Comment = "Service " + u.name + " was killed"; pytext.Truth(after) {
		u.ret.Result, u.ret.Comment = states.False, "Service "+u.name+" failed to die"
	}
	return u.boot(enable, nil, after, states.OutcomeOf(!pytext.Truth(after)))
}

func modWatch(ctx context.Context, c *states.Call) (*states.Result, error) {
	u := of(ctx, c)
	statusArgs := u.forSystemd("status")
	sfun := c.Value("sfun")
	if sfun != "dead" && sfun != "running" {
		return u.end(states.False, "Unable to trigger watch for service."+pytext.Str(sfun))
	}
	alive, err := u.ask("status", []any{c.Value("sig")}, statusArgs)
	if err != nil {
		return nil, err
	}
	fun, verb, done := u.reaction(sfun == "running", pytext.Truth(alive))
	if fun == "" {
		return u.end(states.True, "Service is already "+done)
	}
	if c.Test() {
		return u.end(states.None, "Service is set to be "+done)
	}
	if verb == "start" && u.has("service.stop") {
		if _, err := u.ask("stop", nil, nil); err != nil {
			return nil, err
		}
	}
	result, err := u.ask(fun, nil, u.forSystemd(fun))
	if modules.IsExecError(err) {
		return u.end(states.False, states.ErrorText(err))
	}
	if err == nil {
		err = u.wait()
	}
	if err != nil {
		return nil, err
	}
	u.ret.Changes[u.name] = result
	if pytext.Truth(result) {
		return u.end(states.True, "Service "+done)
	}
	return u.end(states.False, "Failed to "+verb+" the service")
}

// reaction returns the function of the module service that a change in a watched state triggers, and the words for it.
// fun is "" if there is nothing to do.
func (u *unit) reaction(wanted, alive bool) (fun, verb, done string) {
	switch {
	case !wanted && !alive:
		return "", "stop", "stopped"
	case !wanted:
		return "stop", "stop", "stopped"
	case !alive:
		return "start", "start", "started"
	case u.has("service.reload") && u.Bool("reload"):
		if u.has("service.force_reload") && u.Bool("force") {
			return "force_reload", "forcefully reload", "forcefully reloaded"
		}
		return "reload", "reload", "reloaded"
	case u.has("service.full_restart") && u.Bool("full_restart"):
		return "full_restart", "fully restart", "fully restarted"
	}
	return "restart", "restart", "restarted"
}

func modBeacon(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	switch sfun := pytext.Str(c.Keywords["sfun"]); {
	case sfun != "running" && sfun != "dead":
		return ret.As(states.False, "service."+sfun+" does not work with the beacon state function")
	case !pytext.Truth(c.Keywords["beacon"]):
		return ret.As(states.True, "Not adding beacon.")
	}
	given, _ := c.Keywords["beacon_data"].(map[string]any)
	pick := func(key string, otherwise any) any {
		if v, ok := given[key]; ok {
			return v
		}
		return otherwise
	}
	// Salt takes emitatstartup for uncleanshutdown as well.
	data := map[string]any{"onchangeonly": pick("onchangeonly", true), "delay": pick("delay", int64(0)), "emitatstartup": pick("emitatstartup", false),
		"uncleanshutdown": pick("emitatstartup", nil)}
	return c.State(ctx, "beacon.present", map[string]any{"name": "beacon_service_" + c.Name(), "services": map[string]any{c.Name(): data},
		"interval": pick("interval", int64(60)), "beacon_module": "service"})
}
