package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// percentFormat implements the operator % of a text, CPython's unicode_format.
func (r *Run) percentFormat(a any, s string, b any) (any, error) {
	_, markup := a.(pyobj.Markup)
	p := &percenter{r: r, s: s, markup: markup}
	// The arguments are the members of a tuple, the values of a dict by name, or the value itself.
	switch x := b.(type) {
	case pyobj.Tuple:
		p.args = x
	case *pyobj.Dict:
		p.dict, p.args, p.mapping = x, []any{b}, true
	case *pyobj.List, *Range, *view:
		p.args, p.mapping = []any{b}, true // these have __getitem__, so Python does not complain that they are left over
		if _, ok := b.(*view); ok {
			p.mapping = false
		}
	default:
		p.args = []any{b}
	}
	out, err := p.run()
	if err != nil {
		return nil, err
	}
	return textLike(out, markup), nil
}

// percenter is one use of the operator %.
type percenter struct {
	r      *Run
	s      string
	markup bool
	// the arguments one by one; a value that is not a tuple is the only one
	args []any
	dict *pyobj.Dict
	// set if values that are left over are not an error
	mapping bool
	used    int
	b       strings.Builder
}

// nextArg returns the next argument.
func (p *percenter) nextArg() (any, error) {
	if p.used >= len(p.args) {
		return nil, typeError("not enough arguments for format string")
	}
	p.used++
	return p.args[p.used-1], nil
}

// run formats the text.
func (p *percenter) run() (string, error) {
	// named is set once a conversion has taken its value by name.
	named := false
	for i := 0; i < len(p.s); {
		j := strings.IndexByte(p.s[i:], '%')
		if j < 0 {
			p.b.WriteString(p.s[i:])
			break
		}
		p.b.WriteString(p.s[i : i+j])
		i += j + 1
		n, byName, err := p.formatOne(i)
		if err != nil {
			return "", err
		}
		named = named || byName
		i = n
		if p.b.Len() > MaxText {
			return "", TooLong()
		}
	}
	// Python complains about arguments that are left over, unless they are a mapping.
	if p.used < len(p.args) && !p.mapping && !named {
		return "", typeError("not all arguments converted during string formatting")
	}
	return p.b.String(), nil
}

// formatOne formats the conversion that begins at i, after the percent sign. It returns the index after it and
// whether it had a name.
func (p *percenter) formatOne(i int) (int, bool, error) {
	s := p.s
	incomplete := func() (int, bool, error) { return 0, false, valueError("incomplete format") }
	named, start := false, i
	var v any
	// A name in parentheses.
	if i < len(s) && s[i] == '(' {
		if p.dict == nil && !p.mapping {
			return 0, false, typeError("format requires a mapping")
		}
		// Parentheses nest in names.
		depth, j := 1, i+1
		for ; j < len(s) && depth > 0; j++ {
			switch s[j] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		if depth > 0 {
			return 0, false, valueError("incomplete format key")
		}
		if p.dict == nil {
			_, err := p.r.lookupItem(p.args[0], s[i+1:j-1]) // a list, for example, fails with its own error
			return 0, false, err
		}
		x, ok := p.dict.Get(s[i+1 : j-1])
		if !ok {
			return 0, false, keyError(s[i+1 : j-1])
		}
		v, named, i = x, true, j
	}
	// Flags may repeat and come in any order.
	var f spec
	f.align = '>'
	for ; i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0; i++ {
		switch s[i] {
		case '-':
			f.align = '<'
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		case '#':
			f.alt = true
		case '0':
			f.zero = true
		}
	}
	// number reads a width or precision, or takes it from the arguments for "*".
	number := func() (int, error) {
		if i < len(s) && s[i] == '*' {
			i++
			w, err := p.nextArg()
			if err != nil {
				return 0, err
			}
			n, ok := toInteger(w)
			if !ok {
				return 0, typeError("* wants int")
			}
			if n > maxWidth {
				return 0, TooLong()
			}
			return int(n), nil
		}
		n := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			if n = n*10 + int(s[i]-'0'); n > maxWidth {
				return 0, TooLong()
			}
		}
		return n, nil
	}
	// The width, the precision, and a length, which has no meaning in Python.
	var err error
	if f.width, err = number(); err != nil {
		return 0, false, err
	}
	if f.width < 0 {
		f.align, f.width = '<', -f.width
	}
	f.precision = -1
	if i < len(s) && s[i] == '.' {
		i++
		if f.precision, err = number(); err != nil {
			return 0, false, err
		}
		f.precision = max(f.precision, 0)
	}
	// C's length modifiers are ignored, as in Python.
	for i < len(s) && (s[i] == 'l' || s[i] == 'h' || s[i] == 'L') {
		i++
	}
	if i >= len(s) {
		return incomplete()
	}
	c, size := utf8.DecodeRuneInString(s[i:])
	if c == '%' && i == start {
		p.b.WriteByte('%')
		return i + 1, named, nil
	}
	if !named {
		if v, err = p.nextArg(); err != nil {
			return 0, false, err
		}
	}
	text, err := p.convertValue(c, v, f, i)
	if err != nil {
		return 0, false, err
	}
	p.b.WriteString(text)
	return i + size, named, nil
}

// convertValue formats a value for the conversion c.
func (p *percenter) convertValue(c rune, v any, f spec, at int) (string, error) {
	if u, ok := v.(*Undefined); ok && u.kind == Strict && c != 'r' && c != 'a' {
		return "", u.fail()
	}
	// Conversions of any value.
	switch c {
	case 's', 'r', 'a':
		text := ""
		switch {
		case c != 's':
			text = pyobj.Repr(v)
			if c == 'a' {
				text = asciiText(text)
			}
			if p.markup {
				text = Escape(text)
			}
		case p.markup:
			m, err := escapeValue(v)
			if err != nil {
				return "", err
			}
			text = string(m)
		default:
			var err error
			if text, err = Str(v); err != nil {
				return "", err
			}
		}
		if f.precision >= 0 {
			text = firstRunes(text, f.precision)
		}
		return f.fillOut(text, ""), nil
	case 'c':
		if t, ok := isText(v); ok && runeCount(t) == 1 {
			return f.fillOut(t, ""), nil
		}
		n, ok := toInteger(v)
		if !ok {
			return "", typeError("%c requires int or char")
		}
		if n < 0 || n > 0x10ffff {
			return "", raise("OverflowError", "%c arg not in range(0x110000)")
		}
		return f.fillOut(string(rune(n)), ""), nil
	// Integers, and for the decimal conversions also floats, of which the whole part is shown.
	case 'd', 'i', 'u', 'o', 'x', 'X':
		if x, ok := v.(float64); ok && (c == 'd' || c == 'i' || c == 'u') {
			n, err := floatToInt(x)
			if err != nil {
				return "", err
			}
			v = n
		}
		if _, ok := v.(float64); ok || !isNumber(v) {
			if c == 'd' || c == 'i' || c == 'u' {
				return "", typeError("%%%c format: a real number is required, not %s", c, pyobj.TypeName(v))
			}
			return "", typeError("%%%c format: an integer is required, not %s", c, pyobj.TypeName(v))
		}
		if c == 'i' || c == 'u' {
			c = 'd'
		}
		digits, negative := intDigits(toBig(v), byte(c))
		if f.precision > len(digits) {
			digits = strings.Repeat("0", f.precision-len(digits)) + digits
		}
		prefix := f.signOf(negative)
		if f.alt && c != 'd' {
			prefix += "0" + string(c)
		}
		return f.fillOut(digits, prefix), nil
	// Floats.
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !isNumber(v) {
			return "", typeError("must be real number, not %s", pyobj.TypeName(v))
		}
		x, err := toFloat(v)
		if err != nil {
			return "", err
		}
		if f.precision < 0 {
			f.precision = 6
		}
		digits, negative := floatDigits(x, byte(c), f.precision, f.alt)
		if math.IsInf(x, 0) || math.IsNaN(x) {
			f.zero = false
		}
		return f.fillOut(digits, f.signOf(negative)), nil
	}
	shown := c
	// Python shows characters that are not printable as "?".
	if c < 0x1f || c > 0x7e {
		shown = '?'
	}
	return "", valueError("unsupported format character '%c' (%#x) at index %d", shown, c, runeCount(p.s[:at]))
}

// firstRunes returns the first n characters.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// asciiText escapes the characters that are not ASCII, as Python's ascii() does.
func asciiText(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c <= 0xff:
			b.WriteString("\\x" + hexPad(c, 2))
		case c <= 0xffff:
			b.WriteString("\\u" + hexPad(c, 4))
		default:
			b.WriteString("\\U" + hexPad(c, 8))
		}
	}
	return b.String()
}

// hexPad returns a number with at least n hex digits.
func hexPad(c rune, n int) string {
	s := strconv.FormatInt(int64(c), 16)
	return strings.Repeat("0", max(n-len(s), 0)) + s
}
