package states

import (
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// An Outcome is the result of a state: Python's False, True or None.
type Outcome int8

// False is a failure and True a success. None means that something would be changed, in test mode. False is the
// zero value, so a result that a function forgets to set counts as failed.
const (
	False Outcome = iota
	True
	None
)

// Value returns the outcome as a plain value.
func (o Outcome) Value() any {
	switch o {
	case True:
		return true
	case None:
		return nil
	}
	return false
}

// String returns the outcome as Python prints it.
func (o Outcome) String() string { return [...]string{"False", "True", "None"}[o] }

// OutcomeOf returns the outcome for a bool.
func OutcomeOf(ok bool) Outcome {
	if ok {
		return True
	}
	return False
}

// A Result is the return value of a state function.
type Result struct {
	// Name is the name of the state, not its id.
	Name string
	// Result is the outcome; a new result is False.
	Result  Outcome
	Comment string
	// Changes are what was changed, or would be in test mode. [Call.Result] returns a result in which it is not
	// nil.
	Changes map[string]any
	// Pchanges are predicted changes; nil if the function reports none.
	Pchanges map[string]any
	Warnings []string
	// SkipWatch keeps mod_watch from running.
	SkipWatch bool
	// SubStates get records of their own (sub_state_run).
	SubStates []SubState
	// Extra are further keys of the record. A key that is also a field above replaces it, which is how a comment
	// that is not a string gets out.
	Extra map[string]any

	missing []string // keys that a function in another language left out
}

// A SubState is a state that ran inside of another. Low has at least state, fun, name and __id__.
type SubState struct {
	Low    *Low
	Result Result
}

// As sets outcome and comment, and returns the result as functions do.
func (r *Result) As(o Outcome, comment string) (*Result, error) {
	r.Result, r.Comment = o, comment
	return r, nil
}

// Comments sets the comment to several lines.
func (r *Result) Comments(list ...string) { r.Comment = strings.Join(list, "\n") }

// Warn adds a warning.
func (r *Result) Warn(text string) { r.Warnings = append(r.Warnings, text) }

// Map returns the result as a plain value with Salt's keys.
func (r *Result) Map() map[string]any {
	changes := r.Changes
	if changes == nil {
		changes = map[string]any{}
	}
	m := map[string]any{"name": r.Name, "result": r.Result.Value(), "comment": r.Comment, "changes": changes}
	if r.Pchanges != nil {
		m["pchanges"] = r.Pchanges
	}
	if r.SkipWatch {
		m["skip_watch"] = true
	}
	if len(r.Warnings) > 0 {
		m["warnings"] = nested.Anys(r.Warnings)
	}
	maps.Copy(m, r.Extra)
	for _, key := range r.missing {
		delete(m, key)
	}
	return m
}

// plainSubs turns the sub-states of a record into plain values, for a record that leaves the run without
// finishChunk.
func plainSubs(rec record) {
	subs, ok := rec["sub_state_run"].([]SubState)
	if !ok {
		return
	}
	list := make([]any, len(subs))
	for i, sub := range subs {
		m := sub.Result.Map()
		m["low"], m["__id__"], m["__sls__"], m["__run_num__"] = sub.Low.Plain(), sub.Low.Value("__id__"), nil, int64(0)
		list[i] = m
	}
	rec["sub_state_run"] = list
}

// ResultOf returns the Result for a map with the keys of one ("result", "comment", "changes"), as some execution
// functions return it. A comment or changes of another type go to Extra, so that nothing is lost.
func ResultOf(m map[string]any) *Result {
	r := &Result{Changes: map[string]any{}, Extra: map[string]any{}}
	for k, v := range m {
		switch k {
		case "name":
			r.Name = pytext.Str(v)
		case "result":
			if v == nil {
				r.Result = None
			} else {
				r.Result = OutcomeOf(pytext.Truth(v))
			}
		case "comment":
			if s, ok := v.(string); ok {
				r.Comment = s
				continue
			}
			r.Extra[k] = v
		case "changes":
			if c, ok := v.(map[string]any); ok {
				r.Changes = c
				continue
			}
			r.Extra[k] = v
		default:
			r.Extra[k] = v
		}
	}
	return r
}

// Changed reports whether there are changes.
func (r *Result) Changed() bool { return len(r.Changes) > 0 }

// exceptionResult returns the result of a state whose function raised an exception.
func exceptionResult(name string, err error) *Result {
	return &Result{Name: name, Changes: map[string]any{}, Comment: "An exception occurred in this state: " + tracebackText(err)}
}
