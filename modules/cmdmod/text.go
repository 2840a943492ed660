package cmdmod

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/modules"
)

// decode makes text of output. What is not valid in the encoding becomes replacement characters, as Python places them.
func decode(b []byte, encoding string) (string, error) {
	switch strings.ReplaceAll(strings.ToLower(encoding), "_", "-") {
	case "", "utf-8", "utf8":
		if utf8.Valid(b) {
			return string(b), nil
		}
		return pycodec.Replace(b), nil
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

// rstrip implements Python's str.rstrip.
func rstrip(s string) string {
	return strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
