package pkgversion

import (
	"cmp"
	"strings"
)

// debVersion is [epoch:]upstream[-revision].
type debVersion struct {
	epoch              int
	upstream, revision string
}

// Deb compares versions by the rules of dpkg. It compares versions that dpkg accepts with a warning as dpkg does.
// Only versions that dpkg refuses are not comparable.
func Deb(a, b string) (int, bool) {
	x, ok1 := parseDeb(a)
	y, ok2 := parseDeb(b)
	if !ok1 || !ok2 {
		return 0, false
	}
	if none := (debVersion{}); x == none || y == none {
		return cmp.Compare(min(len(x.upstream), 1), min(len(y.upstream), 1)), true
	}
	return cmp.Or(cmp.Compare(x.epoch, y.epoch), debPart(x.upstream, y.upstream), debPart(x.revision, y.revision)), true
}

// parseDeb parses a version as dpkg --compare-versions does. There, the empty text is a version older than any other.
func parseDeb(s string) (debVersion, bool) {
	var v debVersion
	if s == "" || s == "<unknown>" {
		return v, true
	}
	s = strings.Trim(s, " \t\n\r\f\v")
	if strings.ContainsAny(s, " \t\n\r\f\v") {
		return v, false // "version string has embedded spaces"
	}
	if epoch, rest, ok := strings.Cut(s, ":"); ok {
		if !digits(epoch) || atoi(epoch) > 1<<31-1 || len(strings.TrimLeft(epoch, "0")) > 10 || rest == "" {
			return v, false
		}
		if n := strings.TrimLeft(epoch, "0"); len(n) == 10 && n > "2147483647" {
			return v, false
		}
		v.epoch, s = atoi(epoch), rest
	}
	v.upstream = s
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		v.upstream, v.revision = s[:i], s[i+1:]
		if v.revision == "" {
			return v, false
		}
	}
	if v.upstream == "" {
		return v, false
	}
	return v, true
}

// debOrder returns the sort weight of the non-digit at s[i]: "~" sorts before the end of the text, the end before
// letters, and letters before other characters.
func debOrder(s string, i int) int {
	if i >= len(s) {
		return 0
	}
	c := s[i]
	switch {
	case c >= '0' && c <= '9':
		return 0
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return int(c)
	case c == '~':
		return -1
	}
	return int(c) + 256
}

func isDigit(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

// debPart compares upstream versions or revisions: runs of non-digits and numbers alternate.
func debPart(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !isDigit(a, i) || j < len(b) && !isDigit(b, j) {
			if n := cmp.Compare(debOrder(a, i), debOrder(b, j)); n != 0 {
				return n
			}
			i, j = i+1, j+1
		}
		i0, j0 := i, j
		for isDigit(a, i) {
			i++
		}
		for isDigit(b, j) {
			j++
		}
		if n := numeric(a[min(i0, len(a)):min(i, len(a))], b[min(j0, len(b)):min(j, len(b))]); n != 0 {
			return n
		}
	}
	return 0
}
