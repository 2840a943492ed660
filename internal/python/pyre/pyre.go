// Package pyre is Python's module re for Salt's modules: searching, matching at the beginning, replacing and splitting, in text
// and in bytes, with Python's flags, replacement templates and texts of errors. The patterns are parsed by package
// protocol/target: Python's grammar, bounded in size and time.
package pyre

import (
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/protocol/target"
)

// Search reports whether a pattern matches anywhere in a text, as re.search does. The error is that of
// Compile, or ErrTimeout.
func Search(pattern, s string) (bool, error) {
	re, err := Compile(pattern, 0)
	if err != nil {
		return false, err
	}
	loc, err := re.Search(s)
	return loc != nil, err
}

// Expr reports whether a text matches an expression as a shell pattern or, as a whole, as a regular expression. An
// invalid regular expression does not match (salt/utils/stringutils.py: expr_match).
func Expr(s, expr string) bool {
	if fnmatch.Match(expr, s) {
		return true
	}
	re, err := target.CompileRegex(`\A` + expr + `\Z`)
	if err != nil {
		return false
	}
	ok, err := re.MatchStart(s)
	return err == nil && ok
}
