package pkgversion

import (
	"slices"
	"strings"
)

// PythonSatisfies reports whether the version of a Python package satisfies a specifier such as ">=" "1.0" (PEP 440).
// Unlike pip it does not exclude pre-releases.
func PythonSatisfies(version, oper, spec string) bool {
	if oper == "===" {
		return strings.EqualFold(version, spec)
	}
	public, _, _ := strings.Cut(version, "+")
	switch oper {
	case "!=":
		return !PythonSatisfies(version, "==", spec)
	case "==":
		if prefix, ok := strings.CutSuffix(spec, ".*"); ok {
			return hasPrefix(public, prefix)
		}
		if !strings.Contains(spec, "+") {
			version = public
		}
		return Python(version, spec) == 0
	case ">=":
		return Python(public, spec) >= 0
	case "<=":
		return Python(public, spec) <= 0
	case "~=":
		at := strings.LastIndexByte(spec, '.')
		return at > 0 && Python(public, spec) >= 0 && hasPrefix(public, spec[:at])
	}
	v, ok1 := parsePython(version)
	s, ok2 := parsePython(spec)
	twins := ok1 && ok2 && v.epoch == s.epoch && slices.Equal(v.release, s.release)
	switch oper {
	case "<":
		return Python(version, spec) < 0 && (!twins || !v.early() || s.early())
	case ">":
		return Python(version, spec) > 0 && (!twins || v.rank[2] < 0 && v.local == "" || s.rank[2] >= 0)
	}
	return false
}

// early reports whether a version is a pre-release or a development release.
func (v pythonVersion) early() bool { return v.rank[0] != 9 || v.rank[4] != 1<<30 }

// hasPrefix reports whether the release number of a version begins with prefix.
func hasPrefix(version, prefix string) bool {
	v, ok1 := parsePython(version)
	p, ok2 := parsePython(prefix)
	if !ok1 || !ok2 || v.epoch != p.epoch {
		return false
	}
	// The parser drops trailing zeros, but those of a prefix count.
	_, rest, ok := strings.Cut(prefix, "!")
	if !ok {
		rest = prefix
	}
	for i := range strings.Count(rest, ".") + 1 {
		if at(v.release, i) != at(p.release, i) {
			return false
		}
	}
	return true
}

func at(list []int, i int) int {
	if i < len(list) {
		return list[i]
	}
	return 0
}
