// Package pkgversion compares package versions by the rules of dpkg, of rpm, and by Salt's loose fallback rules. It
// runs no programs: it implements deb-version(7) and rpm's rpmvercmp. Salt's sources: salt/utils/versions.py,
// salt/utils/pkg/__init__.py, salt/modules/rpm_lowpkg.py.
package pkgversion

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Func compares two versions: it returns -1, 0 or 1. ok is false if they cannot be compared.
type Func func(a, b string) (order int, ok bool)

// Holds reports whether "a oper b" is true by the given rules. It returns false for an unknown operator.
func Holds(a, oper, b string, by Func) bool {
	switch oper {
	case "<", "<=", "==", ">=", ">", "!=":
	default:
		return false
	}
	n, ok := by(a, b)
	if !ok {
		return false
	}
	switch oper {
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case "==":
		return n == 0
	case ">=":
		return n >= 0
	case ">":
		return n > 0
	}
	return n != 0
}

// SplitComparison splits ">= 1.2" into operator and version; oper is "" if there is no operator. Salt's pattern:
// ^(<=>|!=|>=|<=|>>|<<|<>|>|<|=)?\s?([^<>=]+)$.
func SplitComparison(s string) (oper, version string) {
	for _, op := range [...]string{"<=>", "!=", ">=", "<=", ">>", "<<", "<>", ">", "<", "=", ""} {
		rest, ok := strings.CutPrefix(s, op)
		if !ok {
			continue
		}
		if rest == "" || strings.ContainsAny(rest, "<>=") {
			continue
		}
		if len(rest) > 1 && pytext.Strip(rest[:1]) == "" {
			rest = rest[1:]
		}
		return op, rest
	}
	return "", s
}

// Match returns the first available version that satisfies the desired one ("1.2", ">=1.2"), or "" if no version
// does.
func Match(desired string, available []string, by Func) string {
	oper, version := SplitComparison(desired)
	if oper == "" {
		oper = "=="
	}
	for _, v := range available {
		if Holds(v, oper, version, by) {
			return v
		}
	}
	return ""
}

// WithoutEpoch returns the part of a version after its first colon, or all of it if there is no colon.
func WithoutEpoch(v string) string {
	if _, rest, ok := strings.Cut(v, ":"); ok {
		return rest
	}
	return v
}

// Loose compares versions part by part like Salt's changed version of Python's LooseVersion. Parts are runs of
// digits, runs of letters, or other text. If any part is not a number, all parts are compared as text.
func Loose(a, b string) (int, bool) {
	x, y := looseParts(a), looseParts(b)
	text := slices.ContainsFunc(append(slices.Clone(x), y...), func(p string) bool { return !digits(p) })
	return slices.CompareFunc(x, y, func(p, q string) int {
		if text {
			return strings.Compare(fill(p), fill(q))
		}
		return numeric(p, q)
	}), true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// fill pads a number to eight digits like Python's str(int).zfill(8). It returns other parts unchanged.
func fill(p string) string {
	if !digits(p) {
		return p
	}
	p = strings.TrimLeft(p, "0")
	return strings.Repeat("0", max(0, 8-len(p))) + p
}

func numeric(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func looseParts(s string) []string {
	kind := func(c byte) int {
		switch {
		case c >= '0' && c <= '9':
			return 1
		case c >= 'a' && c <= 'z':
			return 2
		case c == '.':
			return 3
		}
		return 0
	}
	var parts []string
	for i := 0; i < len(s); {
		k, j := kind(s[i]), i+1
		for j < len(s) && kind(s[j]) == k {
			j++
		}
		if k != 3 {
			parts = append(parts, s[i:j])
		}
		i = j
	}
	return parts
}

// atoi returns the number in a text of digits. A number that is too large counts as 1<<30.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
