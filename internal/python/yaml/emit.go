package yaml

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bestWidth is libyaml's default width: it folds long scalars at the next blank after this column.
const bestWidth = 80

// emitter writes nodes by the rules of libyaml's emitter 0.2.5, which PyYAML's C dumper uses.
type emitter struct {
	out        strings.Builder
	column     int // in characters
	indent     int
	indents    []int
	indentBy   int
	flowLevel  int
	whitespace bool // the last character was a blank, or an indicator that needs no blank after it
	indention  bool // only blanks and indicators in this line so far
	openEnded  bool // the document needs an explicit end
	ascii      bool // escape all non-ASCII characters
	width      int  // the column after which scalars are folded
	python     bool // follow PyYAML's emitter where libyaml's differs
}

// context describes the position of a node.
type context struct{ mapping, simpleKey bool }

func (e *emitter) put(r rune) {
	e.out.WriteRune(r)
	e.column++
}

func (e *emitter) putBreak() {
	e.out.WriteByte('\n')
	e.column = 0
}

func (e *emitter) increaseIndent(flow, indentless bool) {
	e.indents = append(e.indents, e.indent)
	switch {
	case e.indent < 0 && flow:
		e.indent = e.indentBy
	case e.indent < 0:
		e.indent = 0
	case !indentless:
		e.indent += e.indentBy
	}
}

func (e *emitter) decreaseIndent() {
	e.indent = e.indents[len(e.indents)-1]
	e.indents = e.indents[:len(e.indents)-1]
}

func (e *emitter) writeIndent() {
	indent := max(e.indent, 0)
	if !e.indention || e.column > indent || e.column == indent && !e.whitespace {
		e.putBreak()
	}
	for e.column < indent {
		e.put(' ')
	}
	e.whitespace, e.indention = true, true
}

func (e *emitter) indicator(s string, needWhitespace, isWhitespace, isIndention bool) {
	if needWhitespace && !e.whitespace {
		e.put(' ')
	}
	for _, r := range s {
		e.put(r)
	}
	e.whitespace = isWhitespace
	e.indention = e.indention && isIndention
	e.openEnded = false
}

func (e *emitter) node(n *node, at context) {
	if n.anchor != "" {
		if n.written {
			e.indicator("*"+n.anchor, true, false, false)
			return
		}
		n.written = true
		e.indicator("&"+n.anchor, true, false, false)
	}
	if n.kind != reflect.String && n.tag != "" {
		e.indicator(n.tag, true, false, false)
	}
	switch n.kind {
	case reflect.Slice:
		if e.flowLevel > 0 || n.flow || len(n.items) == 0 {
			e.flowSequence(n)
		} else {
			e.blockSequence(n, at)
		}
	case reflect.Map:
		if e.flowLevel > 0 || n.flow || len(n.items) == 0 {
			e.flowMapping(n)
		} else {
			e.blockMapping(n)
		}
	default:
		e.increaseIndent(true, false)
		e.scalar(n, at)
		e.decreaseIndent()
	}
}

func (e *emitter) flowSequence(n *node) {
	e.indicator("[", true, true, false)
	e.increaseIndent(true, false)
	e.flowLevel++
	for i, item := range n.items {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		if e.column > e.width {
			e.writeIndent()
		}
		e.node(item, context{})
	}
	e.flowLevel--
	e.decreaseIndent()
	e.indicator("]", false, false, false)
}

func (e *emitter) flowMapping(n *node) {
	e.indicator("{", true, true, false)
	e.increaseIndent(true, false)
	e.flowLevel++
	for i := 0; i+1 < len(n.items); i += 2 {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		if e.column > e.width {
			e.writeIndent()
		}
		if n.items[i].simpleKey() {
			e.node(n.items[i], context{mapping: true, simpleKey: true})
			e.indicator(":", false, false, false)
		} else {
			e.indicator("?", true, false, false)
			e.node(n.items[i], context{mapping: true})
			if e.column > e.width {
				e.writeIndent()
			}
			e.indicator(":", true, false, false)
		}
		e.node(n.items[i+1], context{mapping: true})
	}
	e.flowLevel--
	e.decreaseIndent()
	e.indicator("}", false, false, false)
}

func (e *emitter) blockSequence(n *node, at context) {
	e.increaseIndent(false, at.mapping && !e.indention)
	for _, item := range n.items {
		e.writeIndent()
		e.indicator("-", true, false, true)
		e.node(item, context{})
	}
	e.decreaseIndent()
}

func (e *emitter) blockMapping(n *node) {
	e.increaseIndent(false, false)
	for i := 0; i+1 < len(n.items); i += 2 {
		e.writeIndent()
		if n.items[i].simpleKey() {
			e.node(n.items[i], context{mapping: true, simpleKey: true})
			e.indicator(":", false, false, false)
		} else {
			e.indicator("?", true, false, true)
			e.node(n.items[i], context{mapping: true})
			e.writeIndent()
			e.indicator(":", true, false, true)
		}
		e.node(n.items[i+1], context{mapping: true})
	}
	e.decreaseIndent()
}

// simpleKey reports whether a node may precede a colon: it must be one line of at most 128 bytes.
func (n *node) simpleKey() bool {
	if n.kind != reflect.String {
		return len(n.items) == 0
	}
	length := len(n.text)
	if n.tag == tagBinary {
		length += len("!!binary")
	}
	return length <= 128 && !analyze(n.text).multiline
}

// analysis lists the styles that a text permits (yaml_emitter_analyze_scalar).
type analysis struct{ multiline, flowPlain, blockPlain, single, block bool }

func isBreak(r rune) bool  { return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }
func isBlankZ(r rune) bool { return r == ' ' || r == '\t' || r == 0 || isBreak(r) }

// printable implements libyaml's IS_PRINTABLE, which excludes all characters beyond the basic plane.
func printable(r rune) bool {
	return r == '\n' || r >= 0x20 && r <= 0x7e || r >= 0xa0 && r < 0xd800 || r >= 0xe000 && r <= 0xfffd && r != 0xfeff
}

func analyze(text string) analysis {
	if text == "" {
		return analysis{blockPlain: true, single: true}
	}
	var blockIndicators, flowIndicators, lineBreaks, special bool
	var leading, trailing, trailingSpace, breakSpace, spaceBreak, previousSpace, previousBreak bool
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		blockIndicators, flowIndicators = true, true
	}
	preceded := true
	for i, r := range text {
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		last := i+utf8.RuneLen(r) >= len(text)
		followed := last || isBlankZ(next)
		switch {
		case i == 0 && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r):
			flowIndicators, blockIndicators = true, true
		case i == 0 && (r == '?' || r == ':'), i > 0 && r == ':':
			flowIndicators = true
			blockIndicators = blockIndicators || followed
		case i == 0 && r == '-' && followed, i > 0 && r == '#' && preceded:
			flowIndicators, blockIndicators = true, true
		case i > 0 && strings.ContainsRune(",?[]{}", r):
			flowIndicators = true
		}
		special = special || !printable(r)
		switch {
		case r == ' ':
			leading = leading || i == 0
			trailingSpace = trailingSpace || last
			breakSpace = breakSpace || previousBreak
			previousSpace, previousBreak = true, false
		case isBreak(r):
			lineBreaks = true
			leading = leading || i == 0
			trailing = trailing || last
			spaceBreak = spaceBreak || previousSpace
			previousSpace, previousBreak = false, true
		default:
			previousSpace, previousBreak = false, false
		}
		preceded = isBlankZ(r)
	}
	plain := !leading && !trailing && !trailingSpace && !breakSpace && !spaceBreak && !special && !lineBreaks
	return analysis{multiline: lineBreaks, flowPlain: plain && !flowIndicators, blockPlain: plain && !blockIndicators,
		single: !breakSpace && !spaceBreak && !special, block: !trailingSpace && !spaceBreak && !special}
}

// scalar selects a style (yaml_emitter_select_scalar_style) and writes the text in it.
func (e *emitter) scalar(n *node, at context) {
	text := strings.ToValidUTF8(n.text, "\ufffd")
	a := analyze(text)
	if e.ascii && strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }) >= 0 {
		a.flowPlain, a.blockPlain, a.single, a.block = false, false, false, false
	}
	implicit := resolve(text) == n.tag // as a plain scalar the text has the same meaning
	quotable := n.tag == tagStr        // in quotes it is text
	style := n.style
	tagged := !implicit && !quotable
	if at.simpleKey && a.multiline {
		style = '"'
	}
	if style == 0 {
		if e.flowLevel > 0 && !a.flowPlain || e.flowLevel == 0 && !a.blockPlain ||
			text == "" && (e.flowLevel > 0 || at.simpleKey) || !tagged && !implicit {
			style = '\''
		}
	}
	if style == '\'' && !a.single || style == '|' && (!a.block || e.flowLevel > 0 || at.simpleKey) {
		style = '"'
	}
	if tagged {
		e.indicator(n.tag, true, false, false)
	} else if style != 0 && !quotable { // a time in flow style, for which libyaml writes this tag
		e.indicator("!", true, false, false)
	}
	breaks := !at.simpleKey
	switch style {
	case '\'':
		e.singleQuoted(text, breaks)
	case '"':
		e.doubleQuoted(text, breaks)
	case '|':
		e.literal(text)
	default:
		e.plain(text, breaks)
	}
}

func spaceAt(s string, i int) bool { return i < len(s) && s[i] == ' ' }

func (e *emitter) plain(s string, breaks bool) {
	if !e.whitespace && (s != "" || e.flowLevel > 0) {
		e.put(' ')
	}
	spaces := false
	for i, r := range s {
		if r == ' ' {
			if breaks && !spaces && e.column > e.width && !spaceAt(s, i+1) {
				e.writeIndent()
			} else {
				e.put(r)
			}
			spaces = true
			continue
		}
		e.put(r)
		e.indention, spaces = false, false
	}
	e.whitespace, e.indention = false, false
}

// putFolded writes a line break in a quoted scalar: the first of several needs another one before it.
func (e *emitter) putFolded(r rune, again bool) {
	if !again && r == '\n' {
		e.putBreak()
	}
	if r == '\n' {
		e.putBreak()
	} else {
		e.out.WriteRune(r)
		e.column = 0
	}
	e.indention = true
	e.whitespace = e.whitespace || e.python
}

func (e *emitter) singleQuoted(s string, allowed bool) {
	e.indicator("'", true, false, false)
	spaces, breaks := false, false
	for i, r := range s {
		switch {
		case r == ' ':
			if breaks && e.python {
				e.writeIndent()
				breaks = false
			}
			if allowed && !spaces && e.column > e.width && i > 0 && i < len(s)-1 && !spaceAt(s, i+1) {
				e.writeIndent()
			} else {
				e.put(r)
			}
			spaces = true
		case isBreak(r):
			e.putFolded(r, breaks)
			breaks = true
		default:
			if breaks {
				e.writeIndent()
			}
			if r == '\'' {
				e.put('\'')
			}
			e.put(r)
			e.indention, spaces, breaks = false, false, false
		}
	}
	if breaks {
		e.writeIndent()
	}
	e.indicator("'", false, false, false)
	e.whitespace, e.indention = false, false
}

func (e *emitter) doubleQuoted(s string, allowed bool) {
	e.indicator(`"`, true, false, false)
	spaces := false
	for i, r := range s {
		switch {
		case !printable(r) || e.ascii && r > 0x7e || isBreak(r) || r == '"' || r == '\\':
			for _, c := range escape(r) {
				e.put(c)
			}
			spaces = false
		case r == ' ':
			if allowed && !spaces && e.column > e.width && i > 0 && i < len(s)-1 {
				e.writeIndent()
				if spaceAt(s, i+1) {
					e.put('\\')
				}
			} else {
				e.put(r)
			}
			spaces = true
		default:
			e.put(r)
			spaces = false
		}
	}
	e.indicator(`"`, false, false, false)
	e.whitespace, e.indention = false, false
}

func escape(r rune) string {
	const plain, letters = "\x00\x07\x08\x09\x0a\x0b\x0c\x0d\x1b\"\\\u0085\u00a0\u2028\u2029", "0abtnvfre\"\\N_LP"
	if i := strings.IndexRune(plain, r); i >= 0 {
		return `\` + string([]rune(letters)[utf8.RuneCountInString(plain[:i])])
	}
	switch {
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

func (e *emitter) literal(s string) {
	hints := ""
	if s != "" {
		if first, _ := utf8.DecodeRuneInString(s); first == ' ' || isBreak(first) {
			hints = strconv.Itoa(e.indentBy)
		}
		last, n := utf8.DecodeLastRuneInString(s)
		before, _ := utf8.DecodeLastRuneInString(s[:len(s)-n])
		switch {
		case !isBreak(last):
			hints += "-"
		case len(s) == n || isBreak(before):
			hints += "+"
		}
	}
	e.indicator("|"+hints, true, false, false)
	e.openEnded = strings.HasSuffix(hints, "+")
	e.putBreak()
	e.indention, e.whitespace = true, true
	breaks := true
	for _, r := range s {
		if isBreak(r) {
			e.putFolded(r, true)
			breaks = true
			continue
		}
		if breaks {
			e.writeIndent()
		}
		e.put(r)
		e.indention, breaks = false, false
	}
}
