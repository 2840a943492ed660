package jinja

import (
	"slices"
	"strings"
)

// TagKind is the kind of a tag.
type TagKind string

// The kinds of tags.
const (
	TagBlock    TagKind = "block"    // {% if x %}, and line statements
	TagVariable TagKind = "variable" // {{ x }}
	TagComment  TagKind = "comment"  // {# x #}, and line comments
	TagRaw      TagKind = "raw"      // {% raw %} or {% endraw %}; between them there are no tags
)

// Tag is a tag in the text of a template, for tools that look at templates without running them.
type Tag struct {
	Kind TagKind
	// Name is the first name in the tag: "if" of {% if x %}, "endraw".
	Name string
	// Assigns reports whether a set tag has a value: {% set x %} without one begins a block that ends with endset.
	Assigns bool
	// Start and End are where the tag begins and ends in the text: with its marks, without the blanks that they
	// take away.
	Start, End int
}

// Tags returns the tags of a template in the order of the text. The error is that of the lexer; the last tag then
// reaches to the end of the text.
func (s Syntax) Tags(text string) ([]Tag, error) {
	var tags []Tag
	l := &lexer{s: &s, src: text, line: 1, starting: true, tags: &tags}
	for l.pos < len(l.src) && l.err == nil {
		l.readText()
	}
	if l.err == nil {
		return tags, nil
	}
	if n := len(tags); n > 0 {
		tags[n-1].End = len(text)
	}
	return tags, l.err
}

// noteTag adds the tag that begins at a position, by its tokens from the first one on. The end of a raw block was
// noted before its beginning.
func (l *lexer) noteTag(what, at, first, length int) {
	t := Tag{Start: at}
	toks := l.toks[min(first, len(l.toks)):]
	switch what {
	case beginRaw:
		t.Kind, t.Name, t.End = TagRaw, "raw", at+len(strings.TrimRight(l.src[at:at+length], " \t\r\n\v\f"))
		list := *l.tags
		i := len(list)
		if i > 0 && list[i-1].Name == "endraw" && list[i-1].Start >= t.End {
			i--
			list[i].End = list[i].Start + len(strings.TrimRight(l.src[list[i].Start:list[i].End], " \t\r\n\v\f"))
		}
		*l.tags = slices.Insert(list, i, t)
		return
	case beginVariable:
		t.Kind = TagVariable
	case beginBlock, beginLineStatement:
		t.Kind = TagBlock
	default:
		t.Kind = TagComment
	}
	t.End = at + len(strings.TrimRight(l.src[at:l.pos], " \t\r\n\v\f"))
	// The first name is the tag's; an equals sign before a pipe makes a set tag an assignment.
	for i, k := range toks {
		if k.kind == tName && t.Name == "" {
			t.Name = k.text
		}
		if i > 0 && k.kind == tAssign {
			t.Assigns = true
		}
		if k.kind == tPipe || k.kind == tAssign {
			break // an equals sign behind a pipe belongs to a filter's argument
		}
	}
	*l.tags = append(*l.tags, t)
}
