package requests

import (
	"fmt"

	"github.com/brine-salt/brine/internal/python/pyre"
)

// Access decides which minions may use which functions: Salt's peer_run, or rules for the mine. All rules that
// match a minion apply.
type Access struct{ rules []accessRule }

type accessRule struct {
	id   *pyre.Regexp
	funs []*pyre.Regexp
}

// CompileAccess compiles rules: regular expressions of minion ids, and of the functions that they may use. Both
// must match in full; Salt matches only at the start, so that "web1" also matches "web10". name is the option's
// name, for errors.
func CompileAccess(name string, rules map[string][]string) (*Access, error) {
	out := &Access{}
	for id, funs := range rules {
		r := accessRule{}
		var err error
		if r.id, err = pyre.Compile(id, 0); err != nil {
			return nil, fmt.Errorf("%s: minion pattern %q: %w", name, id, err)
		}
		for _, f := range funs {
			re, err := pyre.Compile(f, 0)
			if err != nil {
				return nil, fmt.Errorf("%s: function pattern %q: %w", name, f, err)
			}
			r.funs = append(r.funs, re)
		}
		out.rules = append(out.rules, r)
	}
	return out, nil
}

// Allows reports whether a minion may use a function.
func (a *Access) Allows(id, fun string) bool {
	for _, r := range a.rules {
		if ok, err := r.id.FullMatch(id); !ok || err != nil {
			continue
		}
		for _, f := range r.funs {
			if ok, err := f.FullMatch(fun); ok && err == nil {
				return true
			}
		}
	}
	return false
}
