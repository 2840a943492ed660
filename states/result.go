package states

import (
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
)

// Outcome is the result of a state: Python's False, True and None.
type Outcome int8

// False is a failure, True a success, None what would be changed in test mode.
const (
	False Outcome = iota
	True
	None
)

// Value is the outcome as a plain value.
func (o Outcome) Value() any {
	switch o {
	case True:
		return true
	case None:
		return nil
	}
	return false
}

// String is the outcome as Python shows it.
func (o Outcome) String() string { return [...]string{"False", "True", "None"}[o] }

// OutcomeOf is the outcome for a truth value.
func OutcomeOf(ok bool) Outcome {
	if ok {
		return True
	}
	return False
}

// Result is what a state function answers.
type Result struct {
	// Name is the state's name.
	Name string
	// Result is the outcome; a new result is False.
	Result  Outcome
	Comment string
	// Changes are what was changed, or would be in test mode; never nil in a result from [Call.Result].
	Changes map[string]any
	// Pchanges are predicted changes; nil if the function reports none.
	Pchanges map[string]any
	Warnings []string
	// SkipWatch keeps mod_watch from running.
	SkipWatch bool
	// SubStates are reported as states of their own (sub_state_run).
	SubStates []SubState
	// Extra are further keys of the answer. One of the keys above (a comment that is no text) replaces that part.
	Extra map[string]any
}

// SubState is a state that ran inside of another. Low has at least state, fun, name and __id__.
type SubState struct {
	Low    *Low
	Result Result
}

// As sets outcome and comment and returns the result as functions do.
func (r *Result) As(o Outcome, comment string) (*Result, error) {
	r.Result, r.Comment = o, comment
	return r, nil
}

// Comments joins several comments, one a line.
func (r *Result) Comments(list ...string) { r.Comment = strings.Join(list, "\n") }

// Warn adds a warning.
func (r *Result) Warn(text string) { r.Warnings = append(r.Warnings, text) }

// Map is the result as a plain value.
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
	return m
}

// plainSubs makes plain values of the states that ran inside of the one that a record is of.
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

// ResultOf makes a result of what an execution function answered that has the form of one ("result", "comment", "changes").
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

// Changed tells whether there are changes.
func (r *Result) Changed() bool { return len(r.Changes) > 0 }

// failure is the result of a state whose function raised.
func failure(name string, err error) *Result {
	return &Result{Name: name, Changes: map[string]any{}, Comment: "An exception occurred in this state: " + traceback(err)}
}
