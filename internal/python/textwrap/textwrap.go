// Package textwrap breaks text into lines as Python's module textwrap does, so that help and banners look like
// Salt's.
package textwrap

import (
	"slices"
	"strings"
	"unicode"
)

// Wrap implements Python's textwrap.wrap(text, width): it returns lines of at most width characters, without the
// blanks around breaks. Lines break at white space, which becomes blanks, after hyphens within words, and around
// dashes of several hyphens. A word longer than a line is broken after its last hyphen that fits, or anywhere. A
// width below 1 counts as 1; Python raises ValueError.
func Wrap(text string, width int) []string { return WrapOptions(text, width, Options{}) }

// Options are the options of Python's textwrap.wrap that differ from its defaults.
type Options struct {
	KeepLong    bool // break_long_words=False
	KeepHyphens bool // break_on_hyphens=False
	KeepBlanks  bool // expand_tabs=False, replace_whitespace=False
}

// WrapOptions is like [Wrap] with options.
func WrapOptions(text string, width int, o Options) []string {
	width = max(width, 1)
	var lines []string
	chars := []rune(text)
	if !o.KeepBlanks {
		chars = blank(text)
	}
	for chunks := split(chars, o.KeepHyphens); len(chunks) > 0; {
		if len(lines) > 0 && isBlank(chunks[0][0]) {
			chunks = chunks[1:]
		}
		var line [][]rune
		size := 0
		for len(chunks) > 0 && size+len(chunks[0]) <= width {
			line = append(line, chunks[0])
			size += len(chunks[0])
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && len(chunks[0]) > width {
			// As in Python, a full line gets an empty piece. The step below then removes that instead of the blanks
			// before it.
			if !o.KeepLong {
				end := cutAt(chunks[0], width-size, o.KeepHyphens)
				line = append(line, chunks[0][:end])
				chunks[0] = chunks[0][end:]
			} else if len(line) == 0 {
				line = append(line, chunks[0])
				chunks = chunks[1:]
			}
		}
		if n := len(line); n > 0 && strings.TrimSpace(string(line[n-1])) == "" {
			line = line[:n-1]
		}
		if len(line) > 0 {
			lines = append(lines, string(slices.Concat(line...)))
		}
	}
	return lines
}

func isBlank(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// blank replaces white space by blanks. A tab extends to the next multiple of eight characters.
func blank(text string) []rune {
	var out []rune
	column := 0
	for _, r := range text {
		switch r {
		case '\t':
			for more := 8 - column%8; more > 0; more-- {
				out = append(out, ' ')
				column++
			}
			continue
		case '\n', '\r':
			column = -1
			r = ' '
		case '\v', '\f':
			r = ' '
		}
		out = append(out, r)
		column++
	}
	return out
}

// cutAt returns the length of the part of a long word that goes on the line. room is the space that remains on the
// line.
func cutAt(word []rune, room int, keepHyphens bool) int {
	for i := room - 1; i > 0 && !keepHyphens; i-- {
		if word[i] == '-' {
			if slices.ContainsFunc(word[:i], func(r rune) bool { return r != '-' }) {
				return i + 1
			}
			break
		}
	}
	return room
}

// split splits a text into runs of blanks, words, parts of words that end with a hyphen, and dashes.
func split(text []rune, keepHyphens bool) [][]rune {
	var chunks [][]rune
	start := 0
	for i := 1; i <= len(text); i++ {
		if i == len(text) || isBlank(text[i]) != isBlank(text[i-1]) || !keepHyphens && (afterHyphen(text, start, i) || dash(text, i)) {
			chunks = append(chunks, text[start:i])
			start = i
		}
	}
	return chunks
}

// afterHyphen reports whether a word that begins at start may be broken before i: after a hyphen between letters.
func afterHyphen(text []rune, start, i int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || unicode.IsLetter(text[i]))
	}
	return text[i-1] == '-' && i-1 > start &&
		letter(i-2) && (letter(i-3) || i >= 3 && text[i-3] == '-' && letter(i-4)) &&
		letter(i) && (letter(i+1) || i+1 < len(text) && text[i+1] == '-' && letter(i+2))
}

// dash reports whether a dash of several hyphens between words begins or ends at i.
func dash(text []rune, i int) bool {
	from, to := i, i
	for from > 0 && text[from-1] == '-' {
		from--
	}
	for to < len(text) && text[to] == '-' {
		to++
	}
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	return to-from >= 2 && (i == from || i == to) && from > 0 && to < len(text) && word(text[to]) &&
		(word(text[from-1]) || strings.ContainsRune(`!"'&.,?`, text[from-1]))
}
