// Package policy decides which functions masters may use on a host. It is the only package that evaluates the options
// minion_allow_functions, minion_deny_functions, whitelist_modules, whitelist_state_modules, disable_modules,
// disable_states and disable_returners. The registry consults it at every call and for every list ([modules.Policy]).
//
// Everything that a master causes is subject to all options, at any depth: jobs, states, templates, module.run,
// slots, conditions of states, the mine, the schedule, beacons, returners and startup_states. Commands of the host's
// owner (salt-call and the option return) are subject only to the options that remove modules, as in stock, and not
// to minion_allow_functions and minion_deny_functions.
//
// A [Seal] takes precedence over all options. It applies to masters and to salt-call, and a reload does not
// change it.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/target"
)

// The options that this package evaluates.
const (
	Allow            = "minion_allow_functions"
	Deny             = "minion_deny_functions"
	Whitelist        = "whitelist_modules"
	StateWhitelist   = "whitelist_state_modules"
	DisableModules   = "disable_modules"
	DisableStates    = "disable_states"
	DisableReturners = "disable_returners"
)

// Options returns the names of these options.
func Options() []string {
	return []string{Allow, Deny, Whitelist, StateWhitelist, DisableModules, DisableStates, DisableReturners}
}

// Policy holds the parsed options. It is immutable.
type Policy struct {
	allow, deny     []string // globs of functions
	modules, states []string // whitelisted modules, by the name that callers use; empty means all
	statesFrom      string   // the option that states comes from
	disabled        map[modules.Kind][]string
	own             *Policy // the owner's policy; nil in that policy itself
	seal            *Seal   // may be nil
}

var _ modules.Policy = (*Policy)(nil)

// New parses the options. An option that is not a list of strings is an error, because a restriction that
// cannot be parsed must not be ignored. seal may be nil.
func New(opts map[string]any, seal *Seal) (*Policy, error) {
	lists := map[string][]string{}
	for _, name := range Options() {
		list, err := texts(opts[name])
		if err != nil {
			return nil, fmt.Errorf("cannot use option %s: %w", name, err)
		}
		lists[name] = list
	}
	own := Policy{seal: seal, modules: lists[Whitelist], states: lists[StateWhitelist], statesFrom: StateWhitelist, disabled: map[modules.Kind][]string{
		modules.Execution: lists[DisableModules], modules.State: lists[DisableStates], modules.Returner: lists[DisableReturners]}}
	if len(own.states) == 0 {
		own.states, own.statesFrom = own.modules, Whitelist
	}
	p := own
	p.allow, p.deny, p.own = lists[Allow], lists[Deny], &own
	return &p, nil
}

// texts parses an option that is a string or a list of strings. Empty strings are dropped.
func texts(v any) ([]string, error) {
	var list []string
	switch v := v.(type) {
	case nil:
	case string:
		list = []string{v}
	case []string:
		list = v
	case []any:
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("%v is not a text", x)
			}
			list = append(list, s)
		}
	default:
		return nil, fmt.Errorf("%v is not a list of texts", v)
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" }), nil
}

// Own returns the policy for commands of the host's owner.
func (p *Policy) Own() *Policy {
	if p.own == nil {
		return p
	}
	return p.own
}

// LimitsMasters reports whether masters may do less than the host's owner.
func (p *Policy) LimitsMasters() bool { return len(p.allow)+len(p.deny) > 0 }

// Disabled implements [modules.Policy].
func (p *Policy) Disabled(kind modules.Kind) []string { return p.disabled[kind] }

// Refuse implements [modules.Policy].
func (p *Policy) Refuse(kind modules.Kind, fun string) error {
	if err := p.seal.Refuse(kind, fun); err != nil {
		return err
	}
	if err := p.unlisted(kind, fun); err != nil {
		return err
	}
	name := named(kind, fun)
	// Denying a function also denies the state of the same name. Allowing a function does not allow the state:
	// service.enabled only reads, but the state service.enabled makes changes.
	// guard: CVE-2013-4435,policy-of-nested-calls minion:TestT3PolicyHoldsHoweverDeep,minion:TestT3LocalPolicy
	if matches(p.deny, name) || name != fun && matches(p.deny, fun) {
		return &modules.RefusedError{Fun: name, Why: Deny}
	}
	// guard: CVE-2013-4435,policy-of-nested-calls minion:TestT3LocalPolicy
	if len(p.allow) > 0 && !matches(p.allow, name) {
		return &modules.RefusedError{Fun: name, Why: Allow + " does not name it"}
	}
	return nil
}

// RefuseArguments implements [modules.Policy]. Only a seal checks arguments.
func (p *Policy) RefuseArguments(kind modules.Kind, fun string, given func() map[string]any) error {
	return p.seal.RefuseArguments(kind, fun, given)
}

// unlisted applies the options whitelist_modules and whitelist_state_modules. As in stock, an unlisted module
// counts as missing.
func (p *Policy) unlisted(kind modules.Kind, fun string) error {
	mod, _, _ := strings.Cut(fun, ".")
	listed := func(list []string) bool { return len(list) == 0 || slices.Contains(list, mod) }
	switch {
	case kind == modules.Execution && !listed(p.modules):
		return &modules.NotAvailableError{Fun: fun}
	case kind == modules.State && !listed(p.states):
		return &modules.NotAvailableError{Fun: fun, Virtual: fmt.Sprintf("%s of this minion does not name %s", p.statesFrom, mod)}
	}
	return nil
}

func matches(globs []string, fun string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return target.Glob(g, fun) })
}
