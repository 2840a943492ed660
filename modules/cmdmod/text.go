package cmdmod

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules"
)

// decode makes text of output. What is not valid in the encoding becomes replacement characters, as Python places them.
func decode(b []byte, encoding string) (string, error) {
	switch strings.ReplaceAll(strings.ToLower(encoding), "_", "-") {
	case "", "utf-8", "utf8":
		if utf8.Valid(b) {
			return string(b), nil
		}
		return replaceInvalid(b), nil
	case "ascii", "us-ascii":
		var s strings.Builder
		for _, c := range b {
			if c < utf8.RuneSelf {
				s.WriteByte(c)
			} else {
				s.WriteRune(utf8.RuneError)
			}
		}
		return s.String(), nil
	case "latin-1", "latin1", "iso-8859-1", "iso8859-1":
		var s strings.Builder
		for _, c := range b {
			s.WriteRune(rune(c))
		}
		return s.String(), nil
	}
	return "", &modules.PythonError{Type: "LookupError", Msg: "unknown encoding: " + encoding}
}

// replaceInvalid puts one replacement character for each longest piece that begins a character but does not complete it, and
// for each other byte that is wrong.
func replaceInvalid(b []byte) string {
	var s strings.Builder
	s.Grow(len(b) + 16)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r != utf8.RuneError || size > 1 {
			s.Write(b[:size])
			b = b[size:]
			continue
		}
		s.WriteRune(utf8.RuneError)
		b = b[begun(b):]
	}
	return s.String()
}

// begun is the length of the incomplete character at the beginning, at least 1.
func begun(b []byte) int {
	need, low, high := 0, byte(0x80), byte(0xbf)
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= low && b[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}

// rstrip is Python's str.rstrip.
func rstrip(s string) string {
	return strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
