package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
)

// kind is the type of a token.
type kind uint8

const (
	tEOF kind = iota
	tData
	tVariableBegin
	tVariableEnd
	tBlockBegin
	tBlockEnd
	tName
	tString
	tInteger
	tFloat
	// operators
	tAdd
	tAssign
	tColon
	tComma
	tDiv
	tDot
	tEq
	tFloorDiv
	tGt
	tGtEq
	tLBrace
	tLBracket
	tLParen
	tLt
	tLtEq
	tMod
	tMul
	tNe
	tPipe
	tPow
	tRBrace
	tRBracket
	tRParen
	tSemicolon
	tSub
	tTilde
)

// String is what error messages call a token of the kind.
func (k kind) String() string {
	switch k {
	case tEOF:
		return "end of template"
	case tData:
		return "template data / text"
	case tVariableBegin:
		return "begin of print statement"
	case tVariableEnd:
		return "end of print statement"
	case tBlockBegin:
		return "begin of statement block"
	case tBlockEnd:
		return "end of statement block"
	case tName:
		return "name"
	case tString:
		return "string"
	case tInteger:
		return "integer"
	case tFloat:
		return "float"
	}
	for i := range operators {
		if operators[i].kind == k {
			return operators[i].text
		}
	}
	return "?"
}

// operators, the longer ones first.
var operators = [...]struct {
	text string
	kind kind
}{
	{"//", tFloorDiv}, {"**", tPow}, {"==", tEq}, {"!=", tNe}, {">=", tGtEq}, {"<=", tLtEq},
	{"+", tAdd}, {"-", tSub}, {"/", tDiv}, {"*", tMul}, {"%", tMod}, {"~", tTilde}, {"[", tLBracket}, {"]", tRBracket},
	{"(", tLParen}, {")", tRParen}, {"{", tLBrace}, {"}", tRBrace}, {">", tGt}, {"<", tLt}, {"=", tAssign}, {".", tDot},
	{":", tColon}, {"|", tPipe}, {",", tComma}, {";", tSemicolon},
}

type token struct {
	kind  kind
	line  int
	text  string // of names, strings and data
	value any    // of numbers
}

// describe is the token in error messages.
func (t token) describe() string {
	if t.kind == tName {
		return t.text
	}
	return t.kind.String()
}

// lexer cuts a template into tokens, by the rules of jinja2/lexer.py.
type lexer struct {
	s    *Syntax
	src  string
	pos  int
	line int
	toks []token
	err  *Error
	// starting tells that the last match ended with a line break.
	starting bool
	// tags, if set, gets what root and raw find; see [Tags].
	tags *[]Tag
}

func (l *lexer) fail(line int, format string, args ...any) *Error {
	e := raise("TemplateSyntaxError", format, args...)
	e.Line = line
	return e
}

// lex gives the tokens of a template. The source has "\n" as its only line ends.
// Where the source is wrong there is a token with the *Error as its value.
func lex(s *Syntax, src string) []token {
	l := &lexer{s: s, src: src, line: 1, starting: true, toks: make([]token, 0, len(src)/8+8)}
	for l.pos < len(l.src) && l.err == nil {
		l.root()
	}
	if l.err != nil {
		l.toks = append(l.toks, token{kind: tEOF, line: l.err.Line, value: l.err})
	}
	end := token{kind: tEOF, line: 1}
	if n := len(l.toks); n > 0 {
		end.line = l.toks[n-1].line // Jinja2's end is where the last token begins
	}
	return append(l.toks, end)
}

// normalize makes "\n" of all line ends and drops one at the end.
func normalize(src string, keepTrailing bool) string {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	}
	if !keepTrailing {
		src = strings.TrimSuffix(src, "\n")
	}
	return src
}

func (l *lexer) emit(k kind, text string) {
	l.toks = append(l.toks, token{kind: k, line: l.line, text: text})
}

// what begins at a place in the text
const (
	beginNothing = iota
	beginComment
	beginBlock
	beginVariable
	beginLineStatement
	beginLineComment
	beginRaw
)

// opening finds what begins at position i, and how long its mark is with a sign.
func (l *lexer) opening(i int) (what, length int, sign byte) {
	rest := l.src[i:]
	s := l.s
	if strings.HasPrefix(rest, s.BlockStart) {
		if n, sign := l.rawBegin(rest); n > 0 {
			return beginRaw, n, sign
		}
	}
	best, bestLen := beginNothing, 0
	// The longest mark wins; among equals the order is that of Python's sort, by name, from the end.
	try := func(what int, mark string) {
		if mark != "" && len(mark) > bestLen && strings.HasPrefix(rest, mark) {
			best, bestLen = what, len(mark)
		}
	}
	try(beginVariable, s.VariableStart)
	try(beginComment, s.CommentStart)
	try(beginBlock, s.BlockStart)
	if p := s.LineStatementPrefix; p != "" && (i == 0 || l.src[i-1] == '\n') {
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\v"))
		if len(p) > bestLen && strings.HasPrefix(rest[blank:], p) {
			best, bestLen = beginLineStatement, blank+len(p)
		}
	}
	if p := s.LineCommentPrefix; p != "" {
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\v\f\r"))
		r, _ := utf8.DecodeLastRuneInString(l.src[:i])
		atStart := i == 0 || l.src[i-1] == '\n' || !unicode.IsSpace(r)
		if atStart && strings.HasPrefix(rest[blank:], p) && (best == beginNothing || len(p) > bestLen || best == beginLineStatement && len(p) > len(s.LineStatementPrefix)) {
			best, bestLen = beginLineComment, blank+len(p)
		}
	}
	if best == beginNothing {
		return best, 0, 0
	}
	if len(rest) > bestLen && (rest[bestLen] == '-' || rest[bestLen] == '+') {
		return best, bestLen + 1, rest[bestLen]
	}
	return best, bestLen, 0
}

func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// rawBegin matches {% raw %}.
func (l *lexer) rawBegin(rest string) (length int, sign byte) {
	n := len(l.s.BlockStart)
	if len(rest) > n && (rest[n] == '-' || rest[n] == '+') {
		sign = rest[n]
		n++
	}
	n += spaces(rest[n:])
	if !strings.HasPrefix(rest[n:], "raw") {
		return 0, 0
	}
	n += 3
	n += spaces(rest[n:])
	if strings.HasPrefix(rest[n:], "-"+l.s.BlockEnd) {
		n += 1 + len(l.s.BlockEnd)
		return n + spaces(rest[n:]), sign
	}
	if strings.HasPrefix(rest[n:], l.s.BlockEnd) {
		return n + len(l.s.BlockEnd), sign
	}
	return 0, 0
}

// root reads text up to the next mark, and what the mark begins.
func (l *lexer) root() {
	from := l.pos
	what, length, at := beginNothing, 0, len(l.src)
	var sign byte
	for i := from; i < len(l.src); i++ {
		if !l.maybe(i) {
			continue
		}
		if what, length, sign = l.opening(i); what != beginNothing {
			at = i
			break
		}
	}
	text := l.src[from:at]
	if what == beginNothing {
		l.data(text)
		l.pos = len(l.src)
		return
	}
	l.strip(text, sign, what != beginVariable)
	mark := l.src[at : at+length]
	l.starting = strings.HasSuffix(mark, "\n")
	l.pos = at + length
	if l.tags != nil {
		first := len(l.toks)
		defer func() { l.noteTag(what, at, first, length) }()
	}
	switch what {
	case beginVariable:
		l.emit(tVariableBegin, "")
		l.line += strings.Count(mark, "\n")
		l.inside(tVariableEnd, l.s.VariableEnd, false)
	case beginBlock:
		l.emit(tBlockBegin, "")
		l.line += strings.Count(mark, "\n")
		l.inside(tBlockEnd, l.s.BlockEnd, l.s.TrimBlocks)
	case beginLineStatement:
		l.emit(tBlockBegin, "")
		l.inside(tBlockEnd, "", false)
	case beginRaw:
		l.line += strings.Count(mark, "\n")
		l.raw()
	case beginComment:
		l.line += strings.Count(mark, "\n")
		l.comment()
	case beginLineComment:
		end := strings.IndexByte(l.src[l.pos:], '\n')
		if end < 0 {
			end = len(l.src) - l.pos
		}
		l.pos += end
		l.starting = false
	}
}

// maybe tells whether a mark may begin at i, cheaply.
func (l *lexer) maybe(i int) bool {
	c := l.src[i]
	s := l.s
	if c == s.BlockStart[0] || c == s.VariableStart[0] || c == s.CommentStart[0] {
		return true
	}
	return s.LineStatementPrefix != "" || s.LineCommentPrefix != ""
}

// strip emits the text before a mark, without the blanks that the mark's sign or the option lstrip_blocks takes away.
func (l *lexer) strip(text string, sign byte, block bool) {
	switch {
	case sign == '-':
		kept := strings.TrimRightFunc(text, pySpace)
		l.data(kept)
		l.line += strings.Count(text[len(kept):], "\n")
	case sign != '+' && l.s.LstripBlocks && block:
		start := strings.LastIndexByte(text, '\n') + 1
		if (start > 0 || l.starting) && start < len(text) && strings.TrimFunc(text[start:], unicode.IsSpace) == "" {
			text = text[:start]
		}
		l.data(text)
	default:
		l.data(text)
	}
}

func pySpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// newlines puts the environment's line ends in.
func (l *lexer) newlines(text string) string {
	if l.s.Newline == "" || l.s.Newline == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", l.s.Newline)
}

func (l *lexer) data(text string) {
	if text != "" {
		l.emit(tData, l.newlines(text))
		l.line += strings.Count(text, "\n")
	}
}

// ending matches the end of a block or comment at the place, with its sign; 0 if it is not there.
func (l *lexer) ending(i int, mark string, trim bool) int {
	rest := l.src[i:]
	switch {
	case strings.HasPrefix(rest, "+"+mark):
		return 1 + len(mark)
	case strings.HasPrefix(rest, "-"+mark):
		n := 1 + len(mark)
		return n + spaces(rest[n:])
	case strings.HasPrefix(rest, mark):
		n := len(mark)
		if trim && strings.HasPrefix(rest[n:], "\n") {
			n++
		}
		return n
	}
	return 0
}

func (l *lexer) skip(n int) {
	part := l.src[l.pos : l.pos+n]
	l.line += strings.Count(part, "\n")
	l.starting = strings.HasSuffix(part, "\n")
	l.pos += n
}

func (l *lexer) comment() {
	for i := l.pos; i < len(l.src); i++ {
		if n := l.ending(i, l.s.CommentEnd, l.s.TrimBlocks); n > 0 {
			l.skip(i + n - l.pos)
			return
		}
	}
	l.err = l.fail(l.line, "Missing end of comment tag")
}

// raw reads up to {% endraw %}.
func (l *lexer) raw() {
	for i := l.pos; i < len(l.src); i++ {
		if !strings.HasPrefix(l.src[i:], l.s.BlockStart) {
			continue
		}
		j := i + len(l.s.BlockStart)
		var sign byte
		if j < len(l.src) && (l.src[j] == '-' || l.src[j] == '+') {
			sign = l.src[j]
			j++
		}
		j += spaces(l.src[j:])
		if !strings.HasPrefix(l.src[j:], "endraw") {
			continue
		}
		j += len("endraw")
		j += spaces(l.src[j:])
		n := l.ending(j, l.s.BlockEnd, l.s.TrimBlocks)
		if n == 0 {
			continue
		}
		l.strip(l.src[l.pos:i], sign, true)
		l.pos = i
		if l.tags != nil {
			*l.tags = append(*l.tags, Tag{Kind: TagRaw, Name: "endraw", Start: i, End: j + n})
		}
		l.skip(j + n - i)
		return
	}
	l.err = l.fail(l.line, "Missing end of raw directive")
}

// inside reads the tokens of a tag up to its end; mark "" is the end of a line.
func (l *lexer) inside(end kind, mark string, trim bool) {
	var open []byte
	for {
		if len(open) == 0 {
			if mark == "" {
				// The end takes blank lines after it along.
				n := spaces(l.src[l.pos:])
				if l.pos+n < len(l.src) {
					n = strings.LastIndexByte(l.src[l.pos:l.pos+n], '\n') + 1
				}
				if n > 0 || l.pos == len(l.src) {
					l.emit(end, "")
					l.skip(n)
					l.starting = true
					return
				}
			} else if n := l.closing(end, mark, trim); n > 0 {
				l.emit(end, "")
				l.skip(n)
				return
			}
		}
		if l.pos >= len(l.src) {
			return // the parser finds the end of the template
		}
		if n := spaces(l.src[l.pos:]); n > 0 {
			l.skip(n)
			continue
		}
		if l.number() || l.name() || l.str() {
			if l.err != nil {
				return
			}
			continue
		}
		if open = l.operator(open); l.err != nil {
			return
		}
	}
}

func (l *lexer) closing(end kind, mark string, trim bool) int {
	if end == tVariableEnd && strings.HasPrefix(l.src[l.pos:], "+"+mark) {
		return 0 // a variable's end knows no plus
	}
	return l.ending(l.pos, mark, trim)
}

func (l *lexer) operator(open []byte) []byte {
	rest := l.src[l.pos:]
	for i := range operators {
		op := &operators[i]
		if !strings.HasPrefix(rest, op.text) {
			continue
		}
		switch op.kind {
		case tLBrace:
			open = append(open, '}')
		case tLParen:
			open = append(open, ')')
		case tLBracket:
			open = append(open, ']')
		case tRBrace, tRParen, tRBracket:
			if len(open) == 0 {
				l.err = l.fail(l.line, "unexpected '%s'", op.text)
				return open
			}
			want := open[len(open)-1]
			open = open[:len(open)-1]
			if want != op.text[0] {
				l.err = l.fail(l.line, "unexpected '%s', expected '%c'", op.text, want)
				return open
			}
		}
		l.emit(op.kind, op.text)
		l.skip(len(op.text))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	l.err = l.fail(l.line, "unexpected char %s at %d", pyobj.Repr(string(r)), utf8.RuneCountInString(l.src[:l.pos]))
	return open
}

func (l *lexer) name() bool {
	rest := l.src[l.pos:]
	n := 0
	for i, r := range rest {
		if r != '_' && !unicode.IsLetter(r) && !unicode.In(r, unicode.N, unicode.Mn, unicode.Mc, unicode.Pc) && r != 0xb7 && r != 0x387 {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	if n == 0 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(rest)
	if first != '_' && !unicode.IsLetter(first) && !unicode.Is(unicode.Nl, first) {
		l.err = l.fail(l.line, "Invalid character in identifier")
		return true
	}
	l.emit(tName, rest[:n])
	l.skip(n)
	return true
}

func (l *lexer) str() bool {
	q := l.src[l.pos]
	if q != '"' && q != '\'' {
		return false
	}
	for i := l.pos + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case q:
			text, msg := unescape(l.newlines(l.src[l.pos+1 : i]))
			if msg != "" {
				l.err = l.fail(l.line, "%s", msg)
				return true
			}
			l.emit(tString, text)
			l.skip(i + 1 - l.pos)
			return true
		}
	}
	return false
}

// Syntax are the delimiters and options of the lexer (jinja_env of the minion's configuration).
type Syntax struct {
	BlockStart, BlockEnd, VariableStart, VariableEnd, CommentStart, CommentEnd string
	LineStatementPrefix, LineCommentPrefix                                     string
	TrimBlocks, LstripBlocks, KeepTrailingNewline                              bool
	// Newline is what line ends of the template become in its output.
	Newline string
}

// DefaultSyntax is Jinja's own.
func DefaultSyntax() Syntax {
	return Syntax{BlockStart: "{%", BlockEnd: "%}", VariableStart: "{{", VariableEnd: "}}", CommentStart: "{#", CommentEnd: "#}", Newline: "\n"}
}

// valid tells whether the delimiters can be told apart.
func (s *Syntax) valid() bool {
	marks := []string{s.BlockStart, s.VariableStart, s.CommentStart}
	return !slices.Contains(marks, "") && s.BlockEnd != "" && s.VariableEnd != "" && s.CommentEnd != "" &&
		marks[0] != marks[1] && marks[1] != marks[2] && marks[0] != marks[2]
}
