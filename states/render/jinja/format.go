package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxWidth limits widths and precisions in formats, so that "%99999999999d" fails before it allocates.
const maxWidth = 1 << 20

// intDigits returns the digits of an integer without its sign, in the base of the verb, and whether it is negative.
func intDigits(n *big.Int, verb byte) (string, bool) {
	base := 10
	switch verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
	case 'b':
		base = 2
	}
	s := new(big.Int).Abs(n).Text(base)
	if verb == 'X' {
		s = strings.ToUpper(s)
	}
	return s, n.Sign() < 0
}

// floatDigits returns the digits of a float without its sign, and whether it is negative. alt keeps the decimal
// point, as # does.
func floatDigits(x float64, verb byte, precision int, alt bool) (string, bool) {
	negative := math.Signbit(x) && !math.IsNaN(x)
	x = math.Abs(x)
	small := verb | 0x20
	var s string
	// The names of special values have no digits to format.
	switch {
	case math.IsNaN(x):
		s = "nan"
	case math.IsInf(x, 0):
		s = "inf"
	case small == 'g':
		s = formatGeneral(x, precision, alt)
	default:
		s = strconv.FormatFloat(x, small, precision, 64)
		// Go has no # flag here, so the point is inserted.
		if alt && precision == 0 {
			if i := strings.IndexByte(s, 'e'); i >= 0 {
				s = s[:i] + "." + s[i:]
			} else {
				s += "."
			}
		}
	}
	if verb < 'a' {
		s = strings.ToUpper(s)
	}
	return s, negative
}

// formatGeneral implements C's %g: the shorter of fixed and scientific notation, without trailing zeros unless
// alt is set.
func formatGeneral(x float64, precision int, alt bool) string {
	precision = max(precision, 1)
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	// The exponent after rounding decides between the notations.
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	s := e
	if exp >= -4 && exp < precision {
		s = strconv.FormatFloat(x, 'f', precision-1-exp, 64)
	}
	if alt {
		return s
	}
	mantissa, tail, scientific := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if scientific {
		return mantissa + "e" + tail
	}
	return mantissa
}

// floatToInt implements Python's int(x): towards zero, exact for any size.
func floatToInt(x float64) (any, error) {
	if math.IsNaN(x) {
		return nil, valueError("cannot convert float NaN to integer")
	}
	if math.IsInf(x, 0) {
		return nil, raise("OverflowError", "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(x).Int(nil)
	return pyobj.Int(n), nil
}

// spec is a format specification, of str.format and of the % operator alike.
type spec struct {
	// one character, "" for a blank
	fill  string
	align byte // < > ^ = or 0
	sign  byte
	// alt is #; zero fills with zeros behind the sign, for % only
	alt, zero bool
	width     int
	// ',' or '_', which group thousands
	group byte
	// -1 if not given
	precision int
	verb      byte
}

// signOf returns the sign that a number shows.
func (f *spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.sign == '+' || f.sign == ' ':
		return string(f.sign)
	}
	return ""
}

// fillOut pads a text to the width. prefix (sign, 0x) counts for the width and stays at the left of zeros.
func (f *spec) fillOut(s, prefix string) string {
	lack := f.width - runeCount(s) - len(prefix)
	if lack <= 0 {
		return prefix + s
	}
	fill := f.fill
	if fill == "" {
		fill = " "
	}
	// The zero flag acts like an alignment, but only if there is no other.
	align := f.align
	if f.zero && align != '<' {
		fill, align = "0", '='
	}
	switch align {
	case '<':
		return prefix + s + strings.Repeat(fill, lack)
	case '^':
		return strings.Repeat(fill, lack/2) + prefix + s + strings.Repeat(fill, lack-lack/2)
	case '=':
		return prefix + strings.Repeat(fill, lack) + s
	}
	return strings.Repeat(fill, lack) + prefix + s
}

// parseSpec reads the specification after the colon of a replacement field. ok is false if it is malformed or a
// number exceeds maxWidth.
func parseSpec(s string) (f spec, ok bool) {
	f.precision = -1
	// A fill character is recognized by the alignment behind it.
	isAlign := func(c byte) bool { return c == '<' || c == '>' || c == '^' || c == '=' }
	_, n := utf8.DecodeRuneInString(s)
	if n > 0 && n < len(s) && isAlign(s[n]) {
		f.fill, f.align, s = s[:n], s[n], s[n+1:]
	} else if s != "" && isAlign(s[0]) {
		f.align, s = s[0], s[1:]
	}
	if s != "" && (s[0] == '+' || s[0] == '-' || s[0] == ' ') {
		f.sign, s = s[0], s[1:]
	}
	s = strings.TrimPrefix(s, "z")
	if strings.HasPrefix(s, "#") {
		f.alt, s = true, s[1:]
	}
	// A zero before the width fills behind the sign.
	if strings.HasPrefix(s, "0") {
		if f.align == 0 {
			f.align = '='
		}
		if f.fill == "" {
			f.fill = "0"
		}
		s = s[1:]
	}
	// number reads digits up to maxWidth.
	number := func() (int, bool) {
		n, i := 0, 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			if n = n*10 + int(s[i]-'0'); n > maxWidth {
				return 0, false
			}
		}
		s = s[i:]
		return n, true
	}
	if f.width, ok = number(); !ok {
		return f, false
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.group, s = s[0], s[1:]
	}
	// A point without digits is malformed.
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if s == "" || s[0] < '0' || s[0] > '9' {
			return f, false
		}
		if f.precision, ok = number(); !ok {
			return f, false
		}
	}
	if len(s) == 1 {
		f.verb, s = s[0], ""
	}
	return f, s == ""
}

// groupDigits puts sep between groups of digits, counted from the point to the left.
func groupDigits(digits string, sep byte, every int) string {
	if sep == 0 {
		return digits
	}
	head, tail := digits, ""
	if i := strings.IndexAny(digits, ".e%"); i >= 0 {
		head, tail = digits[:i], digits[i:]
	}
	var b strings.Builder
	for i := range len(head) {
		if i > 0 && (len(head)-i)%every == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(head[i])
	}
	return b.String() + tail
}

// formatValue implements Python's format(v, spec) for texts and numbers. Other types accept an empty spec only.
func formatValue(v any, text string) (string, error) {
	if text == "" {
		return Str(v)
	}
	if u, ok := v.(*Undefined); ok {
		if u.kind == Strict {
			return "", u.fail()
		}
		return "", typeError("unsupported format string passed to %s.__format__", u.TypeName())
	}
	f, ok := parseSpec(text)
	// bad and unknown are Python's errors for a malformed spec and for a verb that the type lacks.
	bad := func() (string, error) {
		return "", valueError("Invalid format specifier '%s' for object of type '%s'", text, shortType(v))
	}
	unknown := func() (string, error) {
		return "", valueError("Unknown format code '%c' for object of type '%s'", f.verb, shortType(v))
	}
	s, isStr := isText(v)
	switch {
	case isStr:
		if !ok {
			return bad()
		}
		if f.verb != 0 && f.verb != 's' {
			return unknown()
		}
		if f.group != 0 {
			return "", valueError("Cannot specify '%c' with 's'.", f.group)
		}
		if f.sign != 0 {
			return "", valueError("Sign not allowed in string format specifier")
		}
		if f.align == '=' {
			if f.fill == "0" {
				f.align = '<'
			} else {
				return "", valueError("'=' alignment not allowed in string format specifier")
			}
		}
		if f.align == 0 {
			f.align = '<'
		}
		if f.precision >= 0 {
			s = firstRunes(s, f.precision)
		}
		return f.fillOut(s, ""), nil
	case isNumber(v):
		if !ok {
			return bad()
		}
		return formatNumber(v, f, unknown)
	}
	return "", typeError("unsupported format string passed to %s.__format__", shortType(v))
}

// formatNumber formats a number. unknown returns the error for a verb that its type does not have.
func formatNumber(v any, f spec, unknown func() (string, error)) (string, error) {
	if f.align == 0 {
		f.align = '>'
	}
	x, isFloat := v.(float64)
	every, prefix := 3, ""
	var digits string
	var negative bool
	switch f.verb {
	case 0, 'd', 'n', 'b', 'o', 'x', 'X', 'c':
		if isFloat {
			if f.verb != 0 && f.verb != 'n' {
				return unknown()
			}
			break
		}
		if f.precision >= 0 {
			return "", valueError("Precision not allowed in integer format specifier")
		}
		if f.verb == 'c' {
			n, ok := toInteger(v)
			if !ok || n < 0 || n > 0x10ffff {
				return "", raise("OverflowError", "%c arg not in range(0x110000)")
			}
			return f.fillOut(string(rune(n)), ""), nil
		}
		verb := f.verb
		if verb == 0 || verb == 'n' {
			verb = 'd'
		}
		digits, negative = intDigits(toBig(v), verb)
		if verb != 'd' {
			// Python groups the digits of other bases by four.
			every = 4
			if f.alt {
				prefix = "0" + string(verb)
			}
		}
		return f.padNumber(digits, f.signOf(negative)+prefix, every), nil
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
	default:
		return unknown()
	}
	// An integer with a float verb is converted, which fails if it is too large.
	if !isFloat {
		var err error
		if x, err = toFloat(v); err != nil {
			return "", err
		}
	}
	// The default precision is 6, except without a verb.
	switch {
	case f.verb == '%':
		if f.precision < 0 {
			f.precision = 6
		}
		digits, negative = floatDigits(x*100, 'f', f.precision, f.alt)
		digits += "%"
	case f.verb == 0 && f.precision < 0:
		digits = pytext.Float(math.Abs(x))
		negative = math.Signbit(x) && !math.IsNaN(x)
	case f.verb == 0 || f.verb == 'n':
		p := f.precision
		digits, negative = floatDigits(x, 'g', p, f.alt)
		if f.verb == 0 && !strings.ContainsAny(digits, ".en") {
			digits += ".0"
		}
	default:
		if f.precision < 0 {
			f.precision = 6
		}
		digits, negative = floatDigits(x, f.verb, f.precision, f.alt)
	}
	return f.padNumber(digits, f.signOf(negative), 3), nil
}

// padNumber groups the digits and pads them to the width. Zeros that fill the width are grouped too, so they are
// added one by one.
func (f *spec) padNumber(digits, prefix string, every int) string {
	grouped := groupDigits(digits, f.group, every)
	// Zeros are added until the grouped number fills the width.
	if f.group != 0 && f.align == '=' && f.fill == "0" {
		for len(prefix)+len(grouped) < f.width {
			digits = "0" + digits
			next := groupDigits(digits, f.group, every)
			if len(prefix)+len(next) > f.width && next[1] == f.group {
				break
			}
			grouped = next
		}
	}
	return f.fillOut(grouped, prefix)
}

// formatText implements str.format. Attributes and items are looked up through the sandbox, since a format string
// reaches them as well (CVE-2016-10745 of Jinja).
func (r *Run) formatText(s string, markup bool, args []any, kw func(string) (any, bool)) (string, error) {
	f := &formatter{r: r, args: args, kw: kw, markup: markup, auto: -1}
	return f.expandFields(s, 2)
}

// formatter is one call of str.format.
type formatter struct {
	r      *Run
	args   []any
	kw     func(string) (any, bool)
	markup bool
	auto   int // the last number given to {}; -1 before the first, -2 once numbers are written out
}

// expandFields replaces the fields of s. depth limits how deeply fields may be nested in the specs of fields: two
// levels in Python.
func (f *formatter) expandFields(s string, depth int) (string, error) {
	if depth < 0 {
		return "", valueError("Max string recursion exceeded")
	}
	var b strings.Builder
	// A doubled brace is written as one brace.
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '}':
			if i+1 < len(s) && s[i+1] == '}' {
				b.WriteByte('}')
				i++
				continue
			}
			return "", valueError("Single '}' encountered in format string")
		case '{':
			if i+1 < len(s) && s[i+1] == '{' {
				b.WriteByte('{')
				i++
				continue
			}
			if i+1 == len(s) {
				return "", valueError("Single '{' encountered in format string")
			}
			// A brace inside of [ ] belongs to the key.
			end, level, bracket := i+1, 1, false
			for ; end < len(s); end++ {
				switch s[end] {
				case '[':
					bracket = true
				case ']':
					bracket = false
				case '{':
					if !bracket {
						level++
					}
				case '}':
					if !bracket {
						level--
					}
				}
				if level == 0 {
					break
				}
			}
			if level > 0 {
				return "", valueError("expected '}' before end of string")
			}
			text, err := f.formatField(s[i+1:end], depth)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			// The field ends at its own brace.
			i = end
		default:
			b.WriteByte(c)
		}
		if b.Len() > MaxText {
			return "", TooLong()
		}
	}
	return b.String(), nil
}

// formatField formats the text between two braces: name!conversion:spec.
func (f *formatter) formatField(s string, depth int) (string, error) {
	name, conversion, format := s, "", ""
	bracket := false
	for i := range len(s) {
		c := s[i]
		if c == '[' {
			bracket = true
		} else if c == ']' {
			bracket = false
		}
		if bracket || c != '!' && c != ':' {
			continue
		}
		name = s[:i]
		if c == ':' {
			format = s[i+1:]
			break
		}
		rest := s[i+1:]
		if rest == "" {
			return "", valueError("end of string while looking for conversion specifier")
		}
		conversion = rest[:1]
		if len(rest) > 1 {
			if rest[1] != ':' {
				return "", valueError("expected ':' after conversion specifier")
			}
			format = rest[2:]
		}
		break
	}
	v, err := f.fieldValue(name)
	if err != nil {
		return "", err
	}
	switch conversion {
	case "":
	// The conversions of str.format.
	case "s":
		if v, err = anyStr(v); err != nil {
			return "", err
		}
	case "r":
		v = pyobj.Repr(v)
	case "a":
		v = asciiText(pyobj.Repr(v))
	default:
		return "", valueError("Unknown conversion specifier %s", conversion)
	}
	// A spec may hold fields itself: "{:{width}}".
	if strings.ContainsAny(format, "{}") {
		if format, err = f.expandFields(format, depth-1); err != nil {
			return "", err
		}
	}
	if _, safe := v.(pyobj.Markup); safe && f.markup && format == "" {
		return Str(v)
	}
	text, err := formatValue(v, format)
	if f.markup && err == nil {
		text = Escape(text)
	}
	return text, err
}

// anyStr returns Str's text as any.
func anyStr(v any) (any, error) {
	s, err := Str(v)
	return s, err
}

// fieldValue returns the value of a field name: the argument, then attributes and items of it.
func (f *formatter) fieldValue(name string) (any, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	var v any
	// A number, or an empty name, is an argument by position.
	if n, err := strconv.Atoi(first); name == "" || err == nil && first[0] != '+' && first[0] != '-' {
		if name == "" {
			if f.auto == -2 {
				return nil, valueError("cannot switch from manual field specification to automatic field numbering")
			}
			f.auto++
			n = f.auto
		} else if rest == "" {
			if f.auto >= 0 {
				return nil, valueError("cannot switch from automatic field numbering to manual field specification")
			}
			f.auto = -2
		}
		if n >= len(f.args) {
			return nil, raise("IndexError", "tuple index out of range")
		}
		v = f.args[n]
	} else {
		x, ok := f.kw(first)
		if !ok {
			return nil, keyError(first)
		}
		v = x
	}
	// Any number of .name and [key] may follow.
	for rest != "" {
		var err error
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			attr := rest[1:]
			if end >= 0 {
				attr, rest = rest[1:1+end], rest[1+end:]
			} else {
				rest = ""
			}
			if attr == "" {
				return nil, valueError("Empty attribute in format string")
			}
			v, err = f.r.GetAttr(v, attr)
		} else {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, valueError("Missing ']' in format string")
			}
			// A key of digits is an index; any other key is a text.
			key := any(rest[1:end])
			if n, err := strconv.ParseInt(rest[1:end], 10, 64); err == nil {
				key = n
			}
			if rest = rest[end+1:]; rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, valueError("Only '.' or '[' may follow ']' in format field specifier")
			}
			v, err = f.r.GetItem(v, key)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}
