package pyre

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/protocol/target"
)

// part is a piece of a replacement: a text, or a group if its number is not negative.
type part struct {
	text  string
	group int
}

// IndexError means that a replacement refers to a group that the pattern does not have. Python raises the exception
// of the same name.
type IndexError struct{ Msg string }

func (e *IndexError) Error() string { return e.Msg }

func wrong(pos int, format string, args ...any) error {
	return &target.RegexError{Msg: fmt.Sprintf(format, args...), Pos: pos}
}

// template parses a replacement (re._parser.parse_template). Positions in errors are in bytes.
func (re *Regexp) template(repl string) ([]part, error) {
	var (
		parts []part
		text  strings.Builder
	)
	group := func(n, pos int) error {
		if n > re.t.Groups {
			return wrong(pos, "invalid group reference %d", n)
		}
		if text.Len() > 0 {
			parts = append(parts, part{text.String(), -1})
			text.Reset()
		}
		parts = append(parts, part{group: n})
		return nil
	}
	octal := func(n int) {
		if re.bytes {
			text.WriteByte(byte(n))
		} else {
			text.WriteRune(rune(n))
		}
	}
	for i := 0; i < len(repl); {
		if repl[i] != '\\' {
			text.WriteByte(repl[i])
			i++
			continue
		}
		if i+1 == len(repl) {
			return nil, wrong(i, "bad escape (end of pattern)")
		}
		c := repl[i+1]
		switch {
		case c == 'g':
			n, end, err := re.groupName(repl, i+2)
			if err == nil {
				err = group(n, i+3)
			}
			if err != nil {
				return nil, err
			}
			i = end
		case c == '0':
			end := i + 2
			for end < len(repl) && end < i+4 && isOctal(repl[end]) {
				end++
			}
			n, _ := strconv.ParseInt(repl[i+1:end], 8, 32)
			octal(int(n))
			i = end
		case isDigit(c):
			end := i + 2
			if end < len(repl) && isDigit(repl[end]) {
				end++
				if isOctal(c) && isOctal(repl[end-1]) && end < len(repl) && isOctal(repl[end]) {
					end++
					n, _ := strconv.ParseInt(repl[i+1:end], 8, 32)
					if n > 0o377 {
						return nil, wrong(i, `octal escape value \%s outside of range 0-0o377`, repl[i+1:end])
					}
					octal(int(n))
					i = end
					continue
				}
			}
			n, _ := strconv.Atoi(repl[i+1 : end])
			if err := group(n, i+1); err != nil {
				return nil, err
			}
			i = end
		default:
			if k := strings.IndexByte("abfnrtv\\", c); k >= 0 {
				text.WriteByte("\a\b\f\n\r\t\v\\"[k])
			} else if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				return nil, wrong(i, `bad escape \%c`, c)
			} else {
				text.WriteByte('\\')
				text.WriteByte(c)
			}
			i += 2
		}
	}
	if text.Len() > 0 {
		parts = append(parts, part{text.String(), -1})
	}
	return parts, nil
}

// groupName parses <name> at an offset of the replacement.
func (re *Regexp) groupName(repl string, at int) (group, end int, err error) {
	if at >= len(repl) || repl[at] != '<' {
		return 0, 0, wrong(at, "missing <")
	}
	name, _, closed := strings.Cut(repl[at+1:], ">")
	switch {
	case name == "":
		return 0, 0, wrong(at+1, "missing group name")
	case !closed:
		return 0, 0, wrong(at+1, "missing >, unterminated name")
	}
	end = at + len(name) + 2
	if identifier(name) {
		n, ok := re.t.Names[name]
		if !ok {
			return 0, 0, &IndexError{fmt.Sprintf("unknown group name '%s'", name)}
		}
		return n, end, nil
	}
	n, err := strconv.ParseUint(name, 10, 31)
	if err != nil {
		return 0, 0, wrong(at+1, "bad character in group name '%s'", name)
	}
	return int(n), end, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

func identifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
