package pkgversion

import (
	"cmp"
	"strings"
)

// RPM compares one part (a version or a release) by the rules of rpm's rpmvercmp.
func RPM(a, b string) int {
	if a == b {
		return 0
	}
	for a != "" || b != "" {
		a, b = strings.TrimLeftFunc(a, separator), strings.TrimLeftFunc(b, separator)
		if x, y := strings.HasPrefix(a, "~"), strings.HasPrefix(b, "~"); x || y {
			if !x {
				return 1
			}
			if !y {
				return -1
			}
			a, b = a[1:], b[1:]
			continue
		}
		if x, y := strings.HasPrefix(a, "^"), strings.HasPrefix(b, "^"); x || y {
			switch {
			case a == "":
				return -1
			case b == "":
				return 1
			case !x:
				return 1
			case !y:
				return -1
			}
			a, b = a[1:], b[1:]
			continue
		}
		if a == "" || b == "" {
			break
		}
		kind := alpha
		number := isDigit(a, 0)
		if number {
			kind = digit
		}
		x, y := a[:span(a, kind)], b[:span(b, kind)]
		if y == "" { // a number is newer than a word
			if number {
				return 1
			}
			return -1
		}
		n := strings.Compare(x, y)
		if number {
			n = numeric(x, y)
		}
		if n != 0 {
			return n
		}
		a, b = a[len(x):], b[len(y):]
	}
	return cmp.Compare(min(len(a), 1), min(len(b), 1))
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func alpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func separator(r rune) bool {
	return r != '~' && r != '^' && (r > 127 || !digit(byte(r)) && !alpha(byte(r)))
}

func span(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}
