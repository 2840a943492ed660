// Package textwrap breaks text into lines where Python's module textwrap does, so that help and banners look like Salt's.
package textwrap

import (
	"slices"
	"strings"
	"unicode"
)

// Wrap implements Python's textwrap.wrap(text, width): lines of at most width characters, without the blanks
// around breaks. Lines end at white space, which becomes blanks, after hyphens that join words, around dashes of
// several hyphens, and, in words longer than a line, after their last hyphen that fits or anywhere. A width below
// 1 counts as 1, where Python raises ValueError.
func Wrap(text string, width int) []string { return WrapOptions(text, width, Options{}) }

// Options are those of Python's textwrap.wrap that are not as usual.
type Options struct {
	KeepLong    bool // break_long_words=False
	KeepHyphens bool // break_on_hyphens=False
	KeepBlanks  bool // expand_tabs=False, replace_whitespace=False
}

// WrapOptions is like Wrap with options.
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
			// As in Python, a full line gets an empty piece, which then is dropped in place of the blanks before it.
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

// blank replaces white space by blanks. A tab reaches to the next multiple of eight characters.
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

// cutAt returns the length of the first part of a word that is longer than a line. room is the space that is left on
// the line.
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

// split parts text into runs of blanks, words, pieces of words that end with a hyphen, and dashes.
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

// afterHyphen reports whether a word that began at start may be parted before i: after a hyphen that joins words.
func afterHyphen(text []rune, start, i int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || unicode.IsLetter(text[i]))
	}
	return text[i-1] == '-' && i-1 > start &&
		letter(i-2) && (letter(i-3) || i >= 3 && text[i-3] == '-' && letter(i-4)) &&
		letter(i) && (letter(i+1) || i+1 < len(text) && text[i+1] == '-' && letter(i+2))
}

// dash reports whether a dash between words, several hyphens, begins or ends at i.
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
