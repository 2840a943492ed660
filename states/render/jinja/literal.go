package jinja

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// unescapeString decodes a string as Python's codec unicode-escape does. It returns the text, and the codec's
// message if an escape is malformed.
func unescapeString(s string) (string, string) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		// hex reads an escape of exactly n hex digits.
		hex := func(n int) string {
			if i+n < len(s) {
				if v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32); err == nil {
					b.WriteRune(rune(v))
					i += n
					return ""
				}
			}
			return "truncated \\" + string(s[i]) + strings.Repeat("X", n) + " escape"
		}
		msg := ""
		// These are the escapes of Python. Any other backslash is kept.
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			// Up to three octal digits.
			n, j := 0, i
			for ; j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7'; j++ {
				n = n*8 + int(s[j]-'0')
			}
			b.WriteRune(rune(n))
			i = j - 1
		case 'x':
			msg = hex(2)
		case 'u':
			msg = hex(4)
		case 'U':
			msg = hex(8)
		// The names would need Unicode's table of names, about 1 MB in every program.
		case 'N':
			msg = "unknown Unicode character name"
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
		if msg != "" {
			return "", msg
		}
	}
	return b.String(), ""
}

// digitRun returns the length of the digits that a text begins with. Single underscores between digits belong to
// them.
func digitRun(s string) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '_' && n > 0 && n+1 < len(s) && s[n-1] != '_' && s[n+1] >= '0' && s[n+1] <= '9') {
		n++
	}
	return n
}

// readNumber reads a float or an integer, in Python's notations. It returns false if there is no number here.
func (l *lexer) readNumber() bool {
	rest := l.src[l.pos:]
	if rest[0] < '0' || rest[0] > '9' {
		return false
	}
	// In a.1.2 the digits after a dot are two items, not a float.
	if n := floatLength(rest); n > 0 && !(l.pos > 0 && l.src[l.pos-1] == '.') {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(rest[:n], "_", ""), 64)
		l.toks = append(l.toks, token{kind: tFloat, line: l.line, value: f, text: rest[:n]})
		l.skipBytes(n)
		return true
	}
	n, base := 0, 10
	if rest[0] == '0' && len(rest) > 1 {
		set := ""
		// The prefixes 0b, 0o and 0x.
		switch rest[1] | 0x20 {
		case 'b':
			base, set = 2, "01"
		case 'o':
			base, set = 8, "01234567"
		case 'x':
			base, set = 16, "0123456789abcdefABCDEF"
		}
		if set != "" {
			n = 2
			for n < len(rest) && (strings.IndexByte(set, rest[n]) >= 0 || rest[n] == '_' && n+1 < len(rest) && strings.IndexByte(set, rest[n+1]) >= 0) {
				n++
			}
			// "0x" without digits is the number 0 and the name x.
			if n == 2 {
				n, base = 0, 10
			}
		}
	}
	text := ""
	if n > 0 {
		text = rest[2:n]
	} else {
		n = digitRun(rest)
		if rest[0] == '0' { // 0 may only be followed by zeros
			n = 1
			for n < len(rest) && (rest[n] == '0' || rest[n] == '_' && n+1 < len(rest) && rest[n+1] == '0') {
				n++
			}
		}
		text = rest[:n]
	}
	v, ok := new(big.Int).SetString(strings.ReplaceAll(text, "_", ""), base)
	if !ok || len(text) > maxDigits {
		l.err = l.syntaxError(l.line, "Exceeds the limit (%d digits) for integer string conversion", maxDigits)
		return true
	}
	l.toks = append(l.toks, token{kind: tInteger, line: l.line, value: pyobj.Int(v), text: rest[:n]})
	l.skipBytes(n)
	return true
}

// maxDigits is CPython's limit for integers as text (sys.set_int_max_str_digits), against quadratic conversion.
const maxDigits = 4300

// floatLength returns the length of the float that a text begins with, 0 if there is no float.
func floatLength(s string) int {
	n := digitRun(s)
	if n == 0 {
		return 0
	}
	end := 0
	if n+1 < len(s) && s[n] == '.' {
		if d := digitRun(s[n+1:]); d > 0 {
			n += 1 + d
			end = n
		}
	}
	// An exponent needs digits; otherwise the e begins a name.
	if n < len(s) && s[n]|0x20 == 'e' {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if m < len(s) {
			if d := digitRun(s[m:]); d > 0 {
				end = m + d
			}
		}
	}
	return end
}
