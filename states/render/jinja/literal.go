package jinja

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// unescape is Python's codec unicode-escape.
func unescape(s string) (string, string) {
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

func digits(s string) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '_' && n > 0 && n+1 < len(s) && s[n-1] != '_' && s[n+1] >= '0' && s[n+1] <= '9') {
		n++
	}
	return n
}

// number reads a float or an integer.
func (l *lexer) number() bool {
	rest := l.src[l.pos:]
	if rest[0] < '0' || rest[0] > '9' {
		return false
	}
	if n := floatLength(rest); n > 0 && !(l.pos > 0 && l.src[l.pos-1] == '.') {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(rest[:n], "_", ""), 64)
		l.toks = append(l.toks, token{kind: tFloat, line: l.line, value: f, text: rest[:n]})
		l.skip(n)
		return true
	}
	n, base := 0, 10
	if rest[0] == '0' && len(rest) > 1 {
		set := ""
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
			if n == 2 {
				n, base = 0, 10
			}
		}
	}
	text := ""
	if n > 0 {
		text = rest[2:n]
	} else {
		n = digits(rest)
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
		l.err = l.fail(l.line, "Exceeds the limit (%d digits) for integer string conversion", maxDigits)
		return true
	}
	l.toks = append(l.toks, token{kind: tInteger, line: l.line, value: pyobj.Int(v), text: rest[:n]})
	l.skip(n)
	return true
}

// maxDigits is Python's limit for integers as text.
const maxDigits = 4300

// floatLength is the length of the float that text begins with, 0 if it begins with none.
func floatLength(s string) int {
	n := digits(s)
	if n == 0 {
		return 0
	}
	end := 0
	if n+1 < len(s) && s[n] == '.' {
		if d := digits(s[n+1:]); d > 0 {
			n += 1 + d
			end = n
		}
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if m < len(s) {
			if d := digits(s[m:]); d > 0 {
				end = m + d
			}
		}
	}
	return end
}
