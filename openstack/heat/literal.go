package heat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLiteralDepth limits the nesting of a literal.
const maxLiteralDepth = 50

// parseLiteral parses a Python literal, as ast.literal_eval does, or JSON: texts, numbers, lists, tuples (as lists),
// dictionaries with text keys, True, False, None. Errors contain the position.
func parseLiteral(s string) (any, error) {
	p := literalParser{s: s}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(s) {
		return nil, p.wrong("text behind the value")
	}
	return v, nil
}

type literalParser struct {
	s  string
	at int
}

func (p *literalParser) wrong(what string) error {
	return fmt.Errorf("cannot read the value at character %d: %s", p.at+1, what)
}

func (p *literalParser) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

// next skips blanks, and consumes the next byte if it is c.
func (p *literalParser) next(c byte) bool {
	p.space()
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *literalParser) value(depth int) (any, error) {
	if depth > maxLiteralDepth {
		return nil, p.wrong("too deep")
	}
	p.space()
	if p.at == len(p.s) {
		return nil, p.wrong("a value is missing")
	}
	switch c := p.s[p.at]; c {
	case '[':
		p.at++
		return p.list(']', depth)
	case '(':
		p.at++
		return p.list(')', depth)
	case '{':
		p.at++
		return p.dict(depth)
	case '\'', '"':
		p.at++
		return p.text(c)
	}
	return p.word()
}

func (p *literalParser) list(end byte, depth int) (any, error) {
	list := []any{}
	for !p.next(end) {
		if len(list) > 0 {
			if !p.next(',') {
				return nil, p.wrong("a comma or " + string(end) + " is missing")
			}
			if p.next(end) {
				break
			}
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (p *literalParser) dict(depth int) (any, error) {
	m := map[string]any{}
	for first := true; !p.next('}'); first = false {
		if !first {
			if !p.next(',') {
				return nil, p.wrong("a comma or } is missing")
			}
			if p.next('}') {
				break
			}
		}
		k, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := k.(string)
		if !ok {
			return nil, p.wrong("a key is not text")
		}
		if !p.next(':') {
			return nil, p.wrong("a colon is missing")
		}
		if m[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// text parses the rest of a quoted text.
func (p *literalParser) text(quote byte) (any, error) {
	var b strings.Builder
	for p.at < len(p.s) {
		c := p.s[p.at]
		p.at++
		switch {
		case c == quote:
			return b.String(), nil
		case c == '\n':
			p.at--
			return nil, p.wrong("the text has no end in its line")
		case c != '\\':
			b.WriteByte(c)
		default:
			if err := p.escape(&b); err != nil {
				return nil, err
			}
		}
	}
	return nil, p.wrong("the text has no end")
}

// escape parses the characters after a backslash.
func (p *literalParser) escape(b *strings.Builder) error {
	if p.at == len(p.s) {
		return p.wrong("the text has no end")
	}
	c := p.s[p.at]
	p.at++
	if i := strings.IndexByte("abfnrtv\\'\"/", c); i >= 0 {
		b.WriteByte("\a\b\f\n\r\t\v\\'\"/"[i])
		return nil
	}
	switch c {
	case '\n':
		return nil
	case 'x':
		return p.code(b, 2, 16)
	case 'u':
		return p.code(b, 4, 16)
	case 'U':
		return p.code(b, 8, 16)
	}
	if c >= '0' && c <= '7' {
		p.at--
		n := 1
		for n < 3 && p.at+n < len(p.s) && p.s[p.at+n] >= '0' && p.s[p.at+n] <= '7' {
			n++
		}
		return p.code(b, n, 8)
	}
	b.WriteByte('\\')
	b.WriteByte(c)
	return nil
}

// code parses the number of a character.
func (p *literalParser) code(b *strings.Builder, digits, base int) error {
	if p.at+digits > len(p.s) {
		return p.wrong("a character's number is too short")
	}
	n, err := strconv.ParseUint(p.s[p.at:p.at+digits], base, 32)
	if err != nil || n > utf8.MaxRune {
		return p.wrong("a character has a wrong number")
	}
	p.at += digits
	b.WriteRune(rune(n))
	return nil
}

// word parses a number or a name.
func (p *literalParser) word() (any, error) {
	end := p.at
	for end < len(p.s) && strings.IndexByte(" \t\r\n,:]})", p.s[end]) < 0 {
		end++
	}
	word := p.s[p.at:end]
	switch word {
	case "True", "true":
		p.at = end
		return true, nil
	case "False", "false":
		p.at = end
		return false, nil
	case "None", "null":
		p.at = end
		return nil, nil
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		p.at = end
		return n, nil
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && strings.Trim(word, "+-.0123456789eE_") == "" {
		p.at = end
		return f, nil
	}
	return nil, p.wrong("neither text nor a number")
}
