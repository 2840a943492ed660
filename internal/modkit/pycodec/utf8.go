package pycodec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules"
)

// UTF8 converts bytes to text. It returns Python's error if they are not UTF-8.
func UTF8(b []byte) (string, error) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	return "", Undecodable(b)
}

// Replace decodes UTF-8 as Python does with errors="replace": it writes one replacement character for each longest
// incomplete sequence, and one for each other invalid byte.
func Replace(b []byte) string {
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
		length, _ := faulty(b)
		b = b[length:]
	}
	return s.String()
}

// Undecodable returns the error of Python's strict decoder for bytes that are not UTF-8.
func Undecodable(b []byte) error {
	at := 0
	for at < len(b) {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	length, reason := faulty(b[at:])
	if length == 1 {
		return &modules.PythonError{Type: "UnicodeDecodeError", Msg: fmt.Sprintf(
			"'utf-8' codec can't decode byte 0x%02x in position %d: %s", b[at], at, reason)}
	}
	return &modules.PythonError{Type: "UnicodeDecodeError", Msg: fmt.Sprintf(
		"'utf-8' codec can't decode bytes in position %d-%d: %s", at, at+length-1, reason)}
}

// faulty returns the length of the invalid sequence at the beginning of b, and Python's reason.
func faulty(b []byte) (int, string) {
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
	default:
		return 1, "invalid start byte"
	}
	for n := 1; n <= need; n++ {
		if n == len(b) {
			return n, "unexpected end of data"
		}
		if b[n] < low || b[n] > high {
			return n, "invalid continuation byte"
		}
		low, high = 0x80, 0xbf
	}
	return 1, "invalid start byte"
}
