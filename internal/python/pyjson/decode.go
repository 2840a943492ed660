package pyjson

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// decoder parses JSON as Python's json module does: it accepts the same input and returns the same errors.
type decoder struct {
	s     string
	depth int
}

// wrong returns the error at a byte offset. Its text gives the position in characters.
func (d *decoder) wrong(what string, at int) error {
	at = min(at, len(d.s))
	before := d.s[:at]
	line, last := strings.Count(before, "\n")+1, strings.LastIndexByte(before, '\n')
	return &Error{"JSONDecodeError", fmt.Sprintf("%s: line %d column %d (char %d)", what, line, utf8.RuneCountInString(before[last+1:])+1, utf8.RuneCountInString(before))}
}

func (d *decoder) space(i int) int {
	for i < len(d.s) && (d.s[i] == ' ' || d.s[i] == '\t' || d.s[i] == '\n' || d.s[i] == '\r') {
		i++
	}
	return i
}

// is reports whether a character is at an offset.
func (d *decoder) is(i int, c byte) bool { return i < len(d.s) && d.s[i] == c }

// ParseObject is like [Parse] but returns ordered values: *pyobj.Dict, *pyobj.List, and *big.Int for integers beyond
// 64 bits. Its error is an *Error with Python's text.
func ParseObject(b []byte) (any, error) {
	d := &decoder{s: string(b)}
	if strings.HasPrefix(d.s, "\ufeff") {
		return nil, d.wrong("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)
	}
	v, i, err := d.value(d.space(0))
	if err != nil {
		return nil, err
	}
	if i = d.space(i); i < len(d.s) {
		return nil, d.wrong("Extra data", i)
	}
	return v, nil
}

func (d *decoder) value(i int) (any, int, error) {
	if i >= len(d.s) {
		return nil, 0, d.wrong("Expecting value", i)
	}
	switch d.s[i] {
	case '"':
		return wrap(d.text(i + 1))
	case '{', '[':
		if d.depth++; d.depth > maxDepth {
			return nil, 0, fmt.Errorf("cannot read JSON: nested more than %d deep", maxDepth)
		}
		defer func() { d.depth-- }()
		if d.s[i] == '{' {
			return wrap(d.object(i + 1))
		}
		return wrap(d.array(i + 1))
	}
	for _, word := range [...]struct {
		text  string
		value any
	}{{"null", nil}, {"true", true}, {"false", false}, {"NaN", math.NaN()}, {"Infinity", math.Inf(1)}, {"-Infinity", math.Inf(-1)}} {
		if strings.HasPrefix(d.s[i:], word.text) {
			return word.value, i + len(word.text), nil
		}
	}
	return d.number(i)
}

// wrap converts a value to any.
func wrap[T any](v T, i int, err error) (any, int, error) {
	if err != nil {
		return nil, 0, err
	}
	return v, i, nil
}

func (d *decoder) digits(i int) int {
	for i < len(d.s) && d.s[i] >= '0' && d.s[i] <= '9' {
		i++
	}
	return i
}

func (d *decoder) number(start int) (any, int, error) {
	i := start
	if d.is(i, '-') {
		i++
	}
	end := d.digits(i)
	if end == i {
		return nil, 0, d.wrong("Expecting value", start)
	}
	if d.s[i] == '0' {
		end = i + 1
	}
	whole := true
	if d.is(end, '.') {
		if e := d.digits(end + 1); e > end+1 {
			end, whole = e, false
		}
	}
	if d.is(end, 'e') || d.is(end, 'E') {
		e := end + 1
		if d.is(e, '+') || d.is(e, '-') {
			e++
		}
		if last := d.digits(e); last > e {
			end, whole = last, false
		}
	}
	text := d.s[start:end]
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, end, nil
		}
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return pyobj.Int(n), end, nil
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // a number out of range is infinite, as in Python
	return f, end, nil
}

func (d *decoder) object(i int) (*pyobj.Dict, int, error) {
	m := &pyobj.Dict{}
	if i = d.space(i); d.is(i, '}') {
		return m, i + 1, nil
	}
	for {
		if !d.is(i, '"') {
			return nil, 0, d.wrong("Expecting property name enclosed in double quotes", i)
		}
		k, end, err := d.text(i + 1)
		if err != nil {
			return nil, 0, err
		}
		if i = d.space(end); !d.is(i, ':') {
			return nil, 0, d.wrong("Expecting ':' delimiter", i)
		}
		v, end, err := d.value(d.space(i + 1))
		if err != nil {
			return nil, 0, err
		}
		_ = m.Set(k, v)
		if i = d.space(end); d.is(i, '}') {
			return m, i + 1, nil
		}
		if !d.is(i, ',') {
			return nil, 0, d.wrong("Expecting ',' delimiter", i)
		}
		i = d.space(i + 1)
	}
}

func (d *decoder) array(i int) (*pyobj.List, int, error) {
	l := &pyobj.List{Items: []any{}}
	if i = d.space(i); d.is(i, ']') {
		return l, i + 1, nil
	}
	for {
		v, end, err := d.value(i)
		if err != nil {
			return nil, 0, err
		}
		l.Items = append(l.Items, v)
		if i = d.space(end); d.is(i, ']') {
			return l, i + 1, nil
		}
		if !d.is(i, ',') {
			return nil, 0, d.wrong("Expecting ',' delimiter", i)
		}
		i = d.space(i + 1)
	}
}

// text parses a string after its opening quote.
func (d *decoder) text(i int) (string, int, error) {
	begin := i - 1
	var b strings.Builder
	for from := i; ; {
		if i >= len(d.s) {
			return "", 0, d.wrong("Unterminated string starting at", begin)
		}
		switch c := d.s[i]; {
		case c == '"':
			if b.Len() == 0 {
				return d.s[from:i], i + 1, nil
			}
			b.WriteString(d.s[from:i])
			return b.String(), i + 1, nil
		case c < ' ':
			return "", 0, d.wrong("Invalid control character at", i)
		case c != '\\':
			i++
		default:
			b.WriteString(d.s[from:i])
			r, end, err := d.escape(i, begin)
			if err != nil {
				return "", 0, err
			}
			b.WriteRune(r)
			i, from = end, end
		}
	}
}

// escape parses an escape sequence.
func (d *decoder) escape(i, begin int) (rune, int, error) {
	if i+1 >= len(d.s) {
		return 0, 0, d.wrong("Unterminated string starting at", begin)
	}
	switch c := d.s[i+1]; c {
	case '"', '\\', '/':
		return rune(c), i + 2, nil
	case 'b':
		return '\b', i + 2, nil
	case 'f':
		return '\f', i + 2, nil
	case 'n':
		return '\n', i + 2, nil
	case 'r':
		return '\r', i + 2, nil
	case 't':
		return '\t', i + 2, nil
	case 'u':
		r, ok := d.hex(i + 2)
		if !ok {
			return 0, 0, d.wrong(`Invalid \uXXXX escape`, i+1)
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(d.s[i+6:], `\u`) {
			if low, ok := d.hex(i + 8); ok {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					return both, i + 12, nil
				}
			}
		}
		return r, i + 6, nil
	}
	return 0, 0, d.wrong(`Invalid \escape`, i)
}

// hex parses the four digits of an escape. At least one more character must follow.
func (d *decoder) hex(i int) (rune, bool) {
	if i+4 >= len(d.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(d.s[i:i+4], 16, 32)
	return rune(n), err == nil
}
