// Package pathpick applies the include and exclude patterns of functions and states that copy or clean directory
// trees (salt/utils/stringutils.py: check_include_exclude).
package pathpick

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// Wanted reports whether a path matches the include patterns, if there are any, and no exclude pattern. Patterns are a
// text or a list of texts: a glob, whose * also matches slashes, or a regular expression after "E@".
func Wanted(path string, include, exclude any) (bool, error) {
	in, ex := true, false
	var err error
	if pytext.Truth(include) {
		if in, err = matchesAny(path, include); err != nil {
			return false, err
		}
	}
	if pytext.Truth(exclude) {
		ex, err = matchesAny(path, exclude)
	}
	return in && !ex, err
}

func matchesAny(path string, patterns any) (bool, error) {
	list, ok := patterns.([]any)
	if !ok {
		list = []any{patterns}
	}
	for _, p := range list {
		text := pytext.Str(p)
		re, isRegex := strings.CutPrefix(text, "E@")
		if !isRegex {
			if fnmatch.Match(text, path) {
				return true, nil
			}
			continue
		}
		if ok, err := pyre.Search(re, path); err != nil {
			return false, fmt.Errorf("cannot use the pattern %q: %w", re, err)
		} else if ok {
			return true, nil
		}
	}
	return false, nil
}
