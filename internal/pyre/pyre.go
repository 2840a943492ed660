// Package pyre answers the two questions that Salt's modules ask of Python's regular expressions outside of targets. The
// expressions are those of package protocol/target: Python's grammar, bounded in size and time.
package pyre

import (
	"strings"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/protocol/target"
)

// Search tells whether a pattern matches anywhere in a text, as re.search does. The error wraps target.ErrSyntax or
// target.ErrLimit, or is target.ErrTimeout.
func Search(pattern, s string) (bool, error) {
	flags, rest := split(pattern)
	re, err := target.CompileRegex(flags + `(?:[\s\S]*?)(?:` + rest + `)`)
	if err != nil {
		return false, err
	}
	return re.MatchStart(s)
}

// Expr tells whether a text matches an expression as a shell pattern or, in whole, as a regular expression; one that is no
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

// split takes global flags off the beginning of a pattern, where alone Python accepts them.
func split(pattern string) (flags, rest string) {
	if !strings.HasPrefix(pattern, "(?") {
		return "", pattern
	}
	end := strings.IndexByte(pattern, ')')
	if end < 3 || strings.Trim(pattern[2:end], "aiLmsux") != "" {
		return "", pattern
	}
	return pattern[:end+1], pattern[end+1:]
}
