package fileserver

import (
	"fmt"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/protocol/target"
)

// Ignore is Salt's file_ignore_regex and file_ignore_glob. A nil Ignore ignores nothing.
type Ignore struct {
	globs []string
	exprs []*pyre.Regexp
}

// NewIgnore compiles the lists. Regular expressions are Python's and match anywhere in a path; shell patterns match
// the whole path.
func NewIgnore(regexes, globs []string) (*Ignore, error) {
	if len(regexes) == 0 && len(globs) == 0 {
		return nil, nil
	}
	ig := &Ignore{globs: globs}
	for _, r := range regexes {
		e, err := pyre.Compile(r, 0)
		if err != nil {
			return nil, fmt.Errorf("cannot use file_ignore_regex %q: %w", r, err)
		}
		ig.exprs = append(ig.exprs, e)
	}
	return ig, nil
}

// Match reports whether a path is ignored. An expression that takes too long counts as a match, so that what it
// should hide stays hidden.
func (ig *Ignore) Match(name string) bool {
	if ig == nil {
		return false
	}
	for _, e := range ig.exprs {
		if at, err := e.Search(name); at != nil || err != nil {
			return true
		}
	}
	for _, g := range ig.globs {
		if target.Glob(g, name) {
			return true
		}
	}
	return false
}
