// Package pyre implements Python's module re for Salt's modules: search, match, replace and split, in text and in
// bytes, with Python's flags, replacement templates and error texts. Package protocol/target parses the patterns: it
// implements Python's grammar, with limits for size and time.
package pyre

import (
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/protocol/target"
)

// Search reports whether a pattern matches anywhere in a text, as re.search does. Its error is that of [Compile], or
// [ErrTimeout].
func Search(pattern, s string) (bool, error) {
	re, err := Compile(pattern, 0)
	if err != nil {
		return false, err
	}
	loc, err := re.Search(s)
	return loc != nil, err
}

// Expr reports whether an expression matches all of a text, as a shell pattern or as a regular expression. An invalid
// regular expression does not match (salt/utils/stringutils.py: expr_match).
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
