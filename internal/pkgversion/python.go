package pkgversion

import (
	"cmp"
	"slices"
	"strings"
)

// Python compares versions of Python packages by PEP 440: epoch, release, then development, alpha, beta, candidate,
// final and post releases. Texts that are not such versions sort first, in text order.
func Python(a, b string) int {
	x, ok1 := parsePython(a)
	y, ok2 := parsePython(b)
	switch {
	case !ok1 && !ok2:
		return strings.Compare(a, b)
	case !ok1:
		return -1
	case !ok2:
		return 1
	}
	return cmp.Or(cmp.Compare(x.epoch, y.epoch), slices.Compare(x.release, y.release), slices.Compare(x.rank[:], y.rank[:]), strings.Compare(x.local, y.local))
}

type pythonVersion struct {
	epoch   int
	release []int
	rank    [6]int // kind and number of pre, post and development release
	local   string
}

func parsePython(s string) (pythonVersion, bool) {
	var v pythonVersion
	s = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "v")
	s, v.local, _ = strings.Cut(s, "+")
	if epoch, rest, ok := strings.Cut(s, "!"); ok {
		if !digits(epoch) {
			return v, false
		}
		v.epoch, s = atoi(epoch), rest
	}
	for {
		n := span(s, digit)
		if n == 0 {
			return v, false
		}
		v.release, s = append(v.release, atoi(s[:n])), s[n:]
		if len(s) < 2 || s[0] != '.' || !digit(s[1]) {
			break
		}
		s = s[1:]
	}
	for len(v.release) > 1 && v.release[len(v.release)-1] == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	pre, post, dev := 9, -1, 1<<30
	var preN, postN int
	for s != "" {
		if s[0] == '-' && len(s) > 1 && digits(s[1:]) { // "1.0-1" is a post-release
			s = "post" + s[1:]
		}
		s = strings.TrimLeft(s, ".-_")
		w := span(s, alpha)
		word, rest := s[:w], strings.TrimLeft(s[w:], ".-_")
		n := span(rest, digit)
		number := 0
		if n > 0 {
			number = atoi(rest[:n])
		}
		switch word {
		case "a", "alpha":
			pre, preN = 1, number
		case "b", "beta":
			pre, preN = 2, number
		case "c", "rc", "pre", "preview":
			pre, preN = 3, number
		case "post", "rev", "r":
			post, postN = 0, number
		case "dev":
			dev = number
		default:
			return v, false
		}
		s = rest[n:]
	}
	if dev != 1<<30 && pre == 9 && post < 0 {
		pre = 0 // 1.0.dev1 is older than 1.0a1
	}
	v.rank = [6]int{pre, preN, post, postN, dev}
	return v, true
}
