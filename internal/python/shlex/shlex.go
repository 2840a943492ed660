// Package shlex splits and quotes command lines like Python's shlex.split and shlex.quote, by the rules of a POSIX
// shell. It interprets quotes and backslashes, but supports neither expansion nor comments.
package shlex

import (
	"errors"
	"strings"
)

// The errors of Split; the texts are Python's.
var (
	ErrQuote  = errors.New("No closing quotation")
	ErrEscape = errors.New("No escaped character")
)

// Split splits a command line into words.
func Split(s string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		inWord bool
		quote  byte
	)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case quote == '"' && c == '"':
			quote = 0
		case c == '\\':
			i++
			if i == len(s) {
				return nil, ErrEscape
			}
			if quote == '"' && s[i] != '"' && s[i] != '\\' {
				word.WriteByte('\\')
			}
			word.WriteByte(s[i])
			inWord = true
		case quote == '"':
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, ErrQuote
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// Quote returns a text quoted so that a shell parses it as one word.
func Quote(s string) string {
	if s == "" {
		return "''"
	}
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

// Join quotes words and joins them with spaces.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}
