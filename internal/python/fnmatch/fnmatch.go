// Package fnmatch matches names against shell patterns by the rules of Python's fnmatch.fnmatchcase. Unlike in
// path.Match, "*" also matches slashes, "[!…]" negates, a bracket that is not closed matches itself, and a
// backslash has no special meaning.
package fnmatch

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether a name matches a pattern. It needs at most len(pattern)×len(name) steps.
func Match(pattern, name string) bool {
	// After a mismatch, the last star matches one more character. Earlier stars need not be retried.
	starPattern, starName := "", ""
	star := false
	for {
		if pattern != "" && pattern[0] == '*' {
			pattern = pattern[1:]
			starPattern, starName, star = pattern, name, true
			continue
		}
		if rest, after, ok := one(pattern, name); ok {
			pattern, name = rest, after
			continue
		}
		if pattern == "" && name == "" {
			return true
		}
		if !star || starName == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(starName)
		starName = starName[size:]
		pattern, name = starPattern, starName
	}
}

// one matches one character, and returns what remains of pattern and name. It reports whether the character matched.
func one(pattern, name string) (string, string, bool) {
	if pattern == "" || name == "" {
		return "", "", false
	}
	p, psize := utf8.DecodeRuneInString(pattern)
	r, rsize := utf8.DecodeRuneInString(name)
	switch p {
	case '?':
		return pattern[1:], name[rsize:], true
	case '[':
		if end := closing(pattern); end > 0 {
			return pattern[end+1:], name[rsize:], class(pattern[1:end], r)
		}
	}
	if p == r && (p != utf8.RuneError || pattern[:psize] == name[:rsize]) {
		return pattern[psize:], name[rsize:], true
	}
	return "", "", false
}

// closing returns the index of the bracket that closes the class at the beginning of the pattern, or -1 if it is not
// closed. A closing bracket that comes first belongs to the class.
func closing(pattern string) int {
	i := 1
	if i < len(pattern) && pattern[i] == '!' {
		i++
	}
	if i < len(pattern) && pattern[i] == ']' {
		i++
	}
	for ; i < len(pattern); i++ {
		if pattern[i] == ']' {
			return i
		}
	}
	return -1
}

func class(set string, r rune) bool {
	negate := false
	if set != "" && set[0] == '!' {
		negate, set = true, set[1:]
	}
	chars := []rune(set)
	found := false
	for i := 0; i < len(chars); i++ {
		if i+2 < len(chars) && chars[i+1] == '-' {
			found = found || chars[i] <= r && r <= chars[i+2]
			i += 2
			continue
		}
		found = found || chars[i] == r
	}
	return found != negate
}

// Filter returns the names that match, in their order.
func Filter(names []string, pattern string) []string {
	var out []string
	for _, n := range names {
		if Match(pattern, n) {
			out = append(out, n)
		}
	}
	return out
}

// Has reports whether a text is a pattern: it contains "*", "?", or brackets with text between them.
func Has(s string) bool {
	if strings.ContainsAny(s, "*?") {
		return true
	}
	i := strings.IndexByte(s, '[')
	return i >= 0 && strings.LastIndexByte(s, ']') > i+1
}
