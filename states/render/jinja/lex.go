package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// kind is the type of a token. Operators of expressions keep it as their operation.
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

// String returns the name of the kind in error messages.
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

// operators are sorted so that a longer one is tried before its prefix.
var operators = [...]struct {
	text string
	kind kind
}{
	{"//", tFloorDiv}, {"**", tPow}, {"==", tEq}, {"!=", tNe}, {">=", tGtEq}, {"<=", tLtEq},
	{"+", tAdd}, {"-", tSub}, {"/", tDiv}, {"*", tMul}, {"%", tMod}, {"~", tTilde}, {"[", tLBracket}, {"]", tRBracket},
	{"(", tLParen}, {")", tRParen}, {"{", tLBrace}, {"}", tRBrace}, {">", tGt}, {"<", tLt}, {"=", tAssign}, {".", tDot},
	{":", tColon}, {"|", tPipe}, {",", tComma}, {";", tSemicolon},
}

// token is a piece of a template.
type token struct {
	kind  kind
	line  int
	text  string // of names, strings and data
	value any    // of numbers; an *Error if the source is wrong here
}

// describe returns the token as error messages show it.
func (t token) describe() string {
	if t.kind == tName {
		return t.text
	}
	return t.kind.String()
}

// lexer splits a template into tokens, by the rules of jinja2/lexer.py. Jinja compiles regular expressions from the
// delimiters; lexer compares strings.
type lexer struct {
	s    *Syntax
	src  string
	pos  int
	line int
	toks []token
	err  *Error
	// starting is set if the last match ended with a line break. lstrip_blocks needs it to know whether a tag
	// begins its line.
	starting bool
	// tags, if set, receives what readText and readRaw find; see [Syntax.Tags].
	tags *[]Tag
}

// syntaxError returns a TemplateSyntaxError at a line.
//
//go:noinline
func (l *lexer) syntaxError(line int, format string, args ...any) *Error {
	e := raise("TemplateSyntaxError", format, args...)
	e.Line = line
	return e
}

// lex returns the tokens of a template. Lines of src must end with "\n" only. If src has an error, the value of the
// last token is the *Error.
func lex(s *Syntax, src string) []token {
	l := &lexer{s: s, src: src, line: 1, starting: true, toks: make([]token, 0, len(src)/8+8)}
	// The loop ends at the first error; what was read before it is kept.
	for l.pos < len(l.src) && l.err == nil {
		l.readText()
	}
	if l.err != nil {
		l.toks = append(l.toks, token{kind: tEOF, line: l.err.Line, value: l.err})
	}
	end := token{kind: tEOF, line: 1}
	if n := len(l.toks); n > 0 {
		end.line = l.toks[n-1].line // Jinja2 reports the end where the last token begins
	}
	return append(l.toks, end)
}

// normalize converts all line ends to "\n" and removes the last one unless keepTrailing is set.
func normalize(src string, keepTrailing bool) string {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	}
	if !keepTrailing {
		src = strings.TrimSuffix(src, "\n")
	}
	return src
}

// emitToken adds a token at the current line.
//
//go:noinline
func (l *lexer) emitToken(k kind, text string) {
	l.toks = append(l.toks, token{kind: k, line: l.line, text: text})
}

// The constructs that may begin at a place in the text.
const (
	beginNothing = iota
	beginComment
	beginBlock
	beginVariable
	beginLineStatement
	beginLineComment
	beginRaw
)

// findOpening returns what begins at position i, how long its mark is with a sign, and that sign: '-', '+' or 0.
func (l *lexer) findOpening(i int) (what, length int, sign byte) {
	rest := l.src[i:]
	s := l.s
	// raw is matched before everything else, because Jinja's root rule has a separate mark for it.
	if strings.HasPrefix(rest, s.BlockStart) {
		if n, sign := l.rawBegin(rest); n > 0 {
			return beginRaw, n, sign
		}
	}
	best, bestLen := beginNothing, 0
	// The longest mark is used. Marks of equal length are tried in the order of Python's sort, by name, from the end.
	try := func(what int, mark string) {
		if mark != "" && len(mark) > bestLen && strings.HasPrefix(rest, mark) {
			best, bestLen = what, len(mark)
		}
	}
	try(beginVariable, s.VariableStart)
	try(beginComment, s.CommentStart)
	try(beginBlock, s.BlockStart)
	// A line statement begins at the start of a line, after blanks.
	if p := s.LineStatementPrefix; p != "" && (i == 0 || l.src[i-1] == '\n') {
		blank := len(rest) - len(strings.TrimLeft(rest, " \t\v"))
		if len(p) > bestLen && strings.HasPrefix(rest[blank:], p) {
			best, bestLen = beginLineStatement, blank+len(p)
		}
	}
	// A line comment may also follow text, up to the blanks before it.
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

// leadingSpace returns how many bytes of white space a text begins with.
func leadingSpace(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// rawBegin matches {% raw %} and returns its length, 0 if there is another tag.
func (l *lexer) rawBegin(rest string) (length int, sign byte) {
	n := len(l.s.BlockStart)
	if len(rest) > n && (rest[n] == '-' || rest[n] == '+') {
		sign = rest[n]
		n++
	}
	n += leadingSpace(rest[n:])
	if !strings.HasPrefix(rest[n:], "raw") {
		return 0, 0
	}
	n += 3
	n += leadingSpace(rest[n:])
	if strings.HasPrefix(rest[n:], "-"+l.s.BlockEnd) {
		n += 1 + len(l.s.BlockEnd)
		return n + leadingSpace(rest[n:]), sign
	}
	if strings.HasPrefix(rest[n:], l.s.BlockEnd) {
		return n + len(l.s.BlockEnd), sign
	}
	return 0, 0
}

// readText reads text up to the next mark, and then what the mark begins.
func (l *lexer) readText() {
	from := l.pos
	what, length, at := beginNothing, 0, len(l.src)
	var sign byte
	// mayOpen rejects most characters without a comparison of strings.
	for i := from; i < len(l.src); i++ {
		if !l.mayOpen(i) {
			continue
		}
		if what, length, sign = l.findOpening(i); what != beginNothing {
			at = i
			break
		}
	}
	text := l.src[from:at]
	if what == beginNothing {
		l.emitData(text)
		l.pos = len(l.src)
		return
	}
	// lstrip_blocks does not remove the blanks before a variable.
	l.emitStripped(text, sign, what != beginVariable)
	mark := l.src[at : at+length]
	l.starting = strings.HasSuffix(mark, "\n")
	l.pos = at + length
	if l.tags != nil {
		first := len(l.toks)
		defer func() { l.noteTag(what, at, first, length) }()
	}
	// Each kind of mark has its own end.
	switch what {
	case beginVariable:
		l.emitToken(tVariableBegin, "")
		l.line += strings.Count(mark, "\n")
		l.readTag(tVariableEnd, l.s.VariableEnd, false)
	case beginBlock:
		l.emitToken(tBlockBegin, "")
		l.line += strings.Count(mark, "\n")
		l.readTag(tBlockEnd, l.s.BlockEnd, l.s.TrimBlocks)
	case beginLineStatement:
		l.emitToken(tBlockBegin, "")
		l.readTag(tBlockEnd, "", false)
	case beginRaw:
		l.line += strings.Count(mark, "\n")
		l.readRaw()
	case beginComment:
		l.line += strings.Count(mark, "\n")
		l.skipComment()
	case beginLineComment:
		end := strings.IndexByte(l.src[l.pos:], '\n')
		if end < 0 {
			end = len(l.src) - l.pos
		}
		l.pos += end
		l.starting = false
	}
}

// mayOpen reports whether a mark may begin at i. It is called for every character.
func (l *lexer) mayOpen(i int) bool {
	c := l.src[i]
	s := l.s
	if c == s.BlockStart[0] || c == s.VariableStart[0] || c == s.CommentStart[0] {
		return true
	}
	return s.LineStatementPrefix != "" || s.LineCommentPrefix != ""
}

// emitStripped emits the text before a mark, without the blanks that the mark's sign or the option lstrip_blocks
// removes.
func (l *lexer) emitStripped(text string, sign byte, block bool) {
	switch {
	case sign == '-':
		kept := strings.TrimRightFunc(text, pySpace)
		// The stripped line breaks still count for the lines of errors.
		l.emitData(kept)
		l.line += strings.Count(text[len(kept):], "\n")
	case sign != '+' && l.s.LstripBlocks && block:
		start := strings.LastIndexByte(text, '\n') + 1
		// There are only blanks between the start of the line and the tag.
		if (start > 0 || l.starting) && start < len(text) && strings.TrimFunc(text[start:], unicode.IsSpace) == "" {
			text = text[:start]
		}
		l.emitData(text)
	default:
		l.emitData(text)
	}
}

// pySpace implements str.isspace: Unicode's white space and the four separators of ASCII, which Go does not count.
func pySpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// withNewlines replaces line ends by those of the environment.
func (l *lexer) withNewlines(text string) string {
	if l.s.Newline == "" || l.s.Newline == "\n" {
		return text
	}
	return strings.ReplaceAll(text, "\n", l.s.Newline)
}

// emitData emits template data, if there is any.
func (l *lexer) emitData(text string) {
	if text != "" {
		l.emitToken(tData, l.withNewlines(text))
		l.line += strings.Count(text, "\n")
	}
}

// matchEnd returns the length of a tag's end at position i, including its sign and the white space that this removes,
// or 0 if there is no end.
func (l *lexer) matchEnd(i int, mark string, trim bool) int {
	rest := l.src[i:]
	switch {
	case strings.HasPrefix(rest, "+"+mark):
		return 1 + len(mark)
	case strings.HasPrefix(rest, "-"+mark):
		n := 1 + len(mark)
		return n + leadingSpace(rest[n:])
	case strings.HasPrefix(rest, mark):
		n := len(mark)
		// trim_blocks removes one line break after a tag.
		if trim && strings.HasPrefix(rest[n:], "\n") {
			n++
		}
		return n
	}
	return 0
}

// skipBytes moves n bytes forward and updates line and starting.
func (l *lexer) skipBytes(n int) {
	part := l.src[l.pos : l.pos+n]
	l.line += strings.Count(part, "\n")
	l.starting = strings.HasSuffix(part, "\n")
	l.pos += n
}

// skipComment reads up to the end of a comment.
func (l *lexer) skipComment() {
	for i := l.pos; i < len(l.src); i++ {
		if n := l.matchEnd(i, l.s.CommentEnd, l.s.TrimBlocks); n > 0 {
			l.skipBytes(i + n - l.pos)
			return
		}
	}
	l.err = l.syntaxError(l.line, "Missing end of comment tag")
}

// readRaw reads up to {% endraw %}. The signs of its tags strip white space like those of any tag.
func (l *lexer) readRaw() {
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
		j += leadingSpace(l.src[j:])
		if !strings.HasPrefix(l.src[j:], "endraw") {
			continue
		}
		j += len("endraw")
		j += leadingSpace(l.src[j:])
		n := l.matchEnd(j, l.s.BlockEnd, l.s.TrimBlocks)
		if n == 0 {
			continue
		}
		l.emitStripped(l.src[l.pos:i], sign, true)
		l.pos = i
		if l.tags != nil {
			*l.tags = append(*l.tags, Tag{Kind: TagRaw, Name: "endraw", Start: i, End: j + n})
		}
		l.skipBytes(j + n - i)
		return
	}
	l.err = l.syntaxError(l.line, "Missing end of raw directive")
}

// readTag reads the tokens of a tag up to its end. An empty mark means the end of the line, for line statements.
func (l *lexer) readTag(end kind, mark string, trim bool) {
	// The end of a tag does not count inside of brackets: {{ {'a': {}} }}.
	var open []byte
	for {
		if len(open) == 0 {
			if mark == "" {
				// The end of a line statement includes the blank lines after it.
				n := leadingSpace(l.src[l.pos:])
				if l.pos+n < len(l.src) {
					n = strings.LastIndexByte(l.src[l.pos:l.pos+n], '\n') + 1
				}
				if n > 0 || l.pos == len(l.src) {
					l.emitToken(end, "")
					l.skipBytes(n)
					l.starting = true
					return
				}
			} else if n := l.matchClosing(end, mark, trim); n > 0 {
				l.emitToken(end, "")
				l.skipBytes(n)
				return
			}
		}
		// The text ends before the tag.
		if l.pos >= len(l.src) {
			return // the parser reports the end of the template
		}
		if n := leadingSpace(l.src[l.pos:]); n > 0 {
			l.skipBytes(n)
			continue
		}
		// The order is that of Jinja's rules: a float before an integer before a name.
		if l.readNumber() || l.readName() || l.readString() {
			if l.err != nil {
				return
			}
			continue
		}
		if open = l.readOperator(open); l.err != nil {
			return
		}
	}
}

// matchClosing is like matchEnd for the tag that is open.
func (l *lexer) matchClosing(end kind, mark string, trim bool) int {
	if end == tVariableEnd && strings.HasPrefix(l.src[l.pos:], "+"+mark) {
		return 0 // {{ x +}} has no meaning in Jinja, the plus is an operator
	}
	return l.matchEnd(l.pos, mark, trim)
}

// readOperator reads an operator and returns the stack of brackets that are open.
func (l *lexer) readOperator(open []byte) []byte {
	rest := l.src[l.pos:]
	for i := range operators {
		op := &operators[i]
		if !strings.HasPrefix(rest, op.text) {
			continue
		}
		// Brackets must match; Jinja checks that in the lexer.
		switch op.kind {
		case tLBrace:
			open = append(open, '}')
		case tLParen:
			open = append(open, ')')
		case tLBracket:
			open = append(open, ']')
		case tRBrace, tRParen, tRBracket:
			if len(open) == 0 {
				l.err = l.syntaxError(l.line, "unexpected '%s'", op.text)
				return open
			}
			want := open[len(open)-1]
			open = open[:len(open)-1]
			if want != op.text[0] {
				l.err = l.syntaxError(l.line, "unexpected '%s', expected '%c'", op.text, want)
				return open
			}
		}
		l.emitToken(op.kind, op.text)
		l.skipBytes(len(op.text))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	// Jinja counts characters of the whole source here, not columns.
	l.err = l.syntaxError(l.line, "unexpected char %s at %d", pyobj.Repr(string(r)), utf8.RuneCountInString(l.src[:l.pos]))
	return open
}

// readName reads a name, by Python's rules for identifiers. It returns false if there is no name here.
func (l *lexer) readName() bool {
	rest := l.src[l.pos:]
	n := 0
	// Python's identifiers: letters first, then also digits and marks.
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
		l.err = l.syntaxError(l.line, "Invalid character in identifier")
		return true
	}
	l.emitToken(tName, rest[:n])
	l.skipBytes(n)
	return true
}

// readString reads a quoted string. It returns false for an unterminated one, whose quote is then an unexpected
// character, as in Jinja.
func (l *lexer) readString() bool {
	q := l.src[l.pos]
	if q != '"' && q != '\'' {
		return false
	}
	// A backslash keeps the next character from ending the string.
	for i := l.pos + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case q:
			// Line ends inside a string become those of the environment before escapes are read.
			text, msg := unescapeString(l.withNewlines(l.src[l.pos+1 : i]))
			if msg != "" {
				l.err = l.syntaxError(l.line, "%s", msg)
				return true
			}
			l.emitToken(tString, text)
			l.skipBytes(i + 1 - l.pos)
			return true
		}
	}
	return false
}

// Syntax holds the delimiters and options of the lexer (jinja_env of the minion's configuration).
type Syntax struct {
	// the marks
	BlockStart, BlockEnd, VariableStart, VariableEnd, CommentStart, CommentEnd string
	LineStatementPrefix, LineCommentPrefix                                     string
	TrimBlocks, LstripBlocks, KeepTrailingNewline                              bool
	// Newline is what line ends of the template become in its output.
	Newline string
}

// DefaultSyntax returns Jinja's own delimiters.
func DefaultSyntax() Syntax {
	return Syntax{BlockStart: "{%", BlockEnd: "%}", VariableStart: "{{", VariableEnd: "}}", CommentStart: "{#", CommentEnd: "#}", Newline: "\n"}
}

// valid reports whether the delimiters differ. An empty mark would match everywhere.
func (s *Syntax) valid() bool {
	marks := []string{s.BlockStart, s.VariableStart, s.CommentStart}
	return !slices.Contains(marks, "") && s.BlockEnd != "" && s.VariableEnd != "" && s.CommentEnd != "" &&
		marks[0] != marks[1] && marks[1] != marks[2] && marks[0] != marks[2]
}
