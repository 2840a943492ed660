package output

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fill implements Python's textwrap.fill with the same indent for all lines. Lines have at most width columns and
// break at blanks and after hyphens within words. Longer words are cut.
func fill(s string, width int, indent string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\v' || r == '\f' || r == '\r' {
			return ' '
		}
		return r
	}, strings.ReplaceAll(s, "\t", "        "))
	chunks := wrapChunks(s)
	room := width - len(indent)
	var lines []string
	for len(chunks) > 0 {
		if len(lines) > 0 && strings.TrimSpace(chunks[0]) == "" {
			if chunks = chunks[1:]; len(chunks) == 0 {
				break
			}
		}
		var line []string
		used := 0
		for len(chunks) > 0 && used+utf8.RuneCountInString(chunks[0]) <= room {
			line = append(line, chunks[0])
			used += utf8.RuneCountInString(chunks[0])
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && utf8.RuneCountInString(chunks[0]) > room {
			rs := []rune(chunks[0])
			n := max(room-used, 1)
			line = append(line, string(rs[:n]))
			chunks[0] = string(rs[n:])
		}
		if len(line) > 0 && strings.TrimSpace(line[len(line)-1]) == "" {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			lines = append(lines, indent+strings.Join(line, ""))
		}
	}
	return strings.Join(lines, "\n")
}

// wrapChunks splits a text into runs of blanks and words. It also splits words after a hyphen between letters.
func wrapChunks(s string) []string {
	var chunks []string
	start, blank := 0, false
	flush := func(end int) {
		if end > start {
			chunks = append(chunks, s[start:end])
			start = end
		}
	}
	letter := func(r rune) bool { return unicode.IsLetter(r) || r == '_' }
	var before rune
	for i, r := range s {
		if space := r == ' '; i > 0 && space != blank {
			flush(i)
			blank = space
		} else if i == 0 {
			blank = space
		}
		if r == '-' && letter(before) {
			next, n := utf8.DecodeRuneInString(s[i+1:])
			after, _ := utf8.DecodeRuneInString(s[i+1+n:])
			if letter(next) && (letter(after) || unicode.IsDigit(after)) || letter(next) && letter(after) {
				flush(i + 1)
			}
		}
		before = r
	}
	flush(len(s))
	return chunks
}
