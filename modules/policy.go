package modules

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Kind is the kind of functions in a registry.
type Kind string

// The kinds of functions that a policy distinguishes.
const (
	Execution Kind = ""
	State     Kind = "state"
	Returner  Kind = "returner"
)

// Policy decides which functions a call may use, directly or through other functions. A [Registry] consults it at
// every look-up, so that calls, lists and documentation agree. It must be safe for concurrent use.
type Policy interface {
	// Disabled returns modules that count as missing, by file name or virtual name.
	Disabled(kind Kind) []string
	// Refuse returns nil if a function may be called, and otherwise a [*NotAvailableError] or a [*RefusedError].
	Refuse(kind Kind, fun string) error
	// RefuseArguments returns nil if a permitted function may be called with these arguments, and otherwise the reason.
	// given returns the arguments that the caller passed, by name: parameters, additional keywords, and the list of
	// additional positional arguments.
	RefuseArguments(kind Kind, fun string, given func() map[string]any) error
}

// RefusedError means that the minion's own configuration does not allow a function. It is shown like a [UsageError].
type RefusedError struct {
	// Fun is the function. A state's name has the prefix "state:".
	Fun string
	// Why names the option, for the host's owner.
	Why string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the policy of this minion does not allow %s (%s)", e.Fun, e.Why)
}

// Unwrap returns a [*UsageError], so that callers handle both alike.
func (e *RefusedError) Unwrap() error { return &UsageError{Msg: e.Error()} }

// IsRefused reports whether a policy refused a function. The function may exist, so callers must not fall back to
// another one.
func IsRefused(err error) bool {
	var e *RefusedError
	return errors.As(err, &e)
}

// disabled returns the modules that the call's policy removes from the registry.
func (r *Registry) disabled(e *Env) []string {
	if e == nil || e.Policy == nil {
		return nil
	}
	return e.Policy.Disabled(r.kind)
}

// Refused returns the reason why the call's policy forbids a function, or nil if it allows it. Look-ups in a registry
// check this themselves.
func (e *Env) Refused(kind Kind, fun string) error {
	if e == nil || e.Policy == nil {
		return nil
	}
	return e.Policy.Refuse(kind, fun)
}

// Admit returns the reason why the call's policy forbids it to run with its arguments, or nil if it may run. The
// registry checks it before every execution function. Code that runs other functions, such as states, must check it
// itself.
func (c *Call) Admit(kind Kind) error {
	if c.Policy == nil {
		return nil
	}
	return c.NoteRefusal(c.Fun, c.Policy.RefuseArguments(kind, c.Fun, c.allGiven))
}

// allGiven returns all arguments of the call by name.
func (c *Call) allGiven() map[string]any {
	args := maps.Clone(c.Keywords)
	if args == nil {
		args = map[string]any{}
	}
	for i, given := range c.given {
		if given {
			args[c.def.Params[i].Name] = c.values[i]
		}
	}
	if len(c.Extra) > 0 {
		args[c.def.Args] = c.Extra
	}
	return args
}

// NoteRefusal reports a call that a policy refused to OnRefused, and returns the error as it is.
func (e *Env) NoteRefusal(fun string, err error) error {
	if e != nil && e.OnRefused != nil && IsRefused(err) {
		e.OnRefused(fun, err)
	}
	return err
}

// Permitted returns the modules of a list, reduced to the functions that the call's policy allows, for listings and
// documentation. A module without any remaining function is left out.
func (e *Env) Permitted(kind Kind, list []*Module) []*Module {
	if e == nil || e.Policy == nil {
		return list
	}
	off := e.Policy.Disabled(kind)
	var out []*Module
	for _, m := range list {
		if m.named(off) {
			continue
		}
		allowed := func(name string) bool { return e.Refused(kind, m.Called()+"."+name) == nil }
		all, some := true, false
		for name := range m.Names() {
			ok := allowed(name)
			all, some = all && ok, some || ok
		}
		if all {
			out = append(out, m)
			continue
		}
		left := *m
		left.Funcs = slices.DeleteFunc(slices.Clone(m.Funcs), func(d Def) bool { return !allowed(d.Name) })
		left.found = make([]Found, len(m.found))
		for i, f := range m.found {
			left.found[i] = permitted{f, allowed}
		}
		if some {
			out = append(out, &left)
		}
	}
	return out
}

// permitted is a Found that is reduced to the functions that a policy allows.
type permitted struct {
	Found
	allowed func(name string) bool
}

func (p permitted) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range p.Found.Names() {
			if p.allowed(name) && !yield(name) {
				return
			}
		}
	}
}

func (p permitted) Def(name string) *Def {
	if !p.allowed(name) {
		return nil
	}
	return p.Found.Def(name)
}

// choiceKey returns the key under which the choice of a module is cached. It includes the disabled modules, since the
// minions of one program may have different policies.
func choiceKey(called string, off []string) string {
	if len(off) == 0 {
		return called
	}
	return called + " without " + strings.Join(off, " ")
}
