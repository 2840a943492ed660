package target

import (
	"fmt"
	"unicode/utf8"
)

// RegexFlags are flags of Python's module re, with Python's values. Other flags of Python do not affect matching.
type RegexFlags int

// The flags of re.compile. LOCALE and UNICODE are up to the caller, since they depend on the text to match.
const (
	RegexIgnoreCase RegexFlags = 2
	RegexMultiline  RegexFlags = 8
	RegexDotAll     RegexFlags = 16
	RegexVerbose    RegexFlags = 64
	RegexASCII      RegexFlags = 256
)

// A RegexError is a syntax error in a pattern, with Python's text.
type RegexError struct {
	Msg string
	// Pos is the position of the error in characters, or -1.
	Pos int
}

// Error returns the text with the position, as Python shows it.
func (e *RegexError) Error() string {
	if e.Pos < 0 {
		return e.Msg
	}
	return fmt.Sprintf("%s at position %d", e.Msg, e.Pos)
}

// A Translation is a Python regular expression in the syntax of Go's engines, for callers that search, split and
// replace. Groups have Python's numbers in both forms.
type Translation struct {
	// Linear is the pattern for package regexp, "" if the pattern is not regular. It is right only for strings that
	// meet the conditions below.
	Linear string
	// ASCIIOnly, OneLine and NonEmpty limit Linear to strings without non-ASCII characters, without line breaks, and
	// that are not empty.
	ASCIIOnly, OneLine, NonEmpty bool
	// Back is the pattern for package regexp2.
	Back string
	// Groups is the number of groups; Names maps the names of groups to their numbers.
	Groups int
	Names  map[string]int
	// Nullable reports whether the pattern can match the empty string.
	Nullable bool
}

// TranslateRegex translates a pattern. The error is a *RegexError or ErrLimit.
func TranslateRegex(pattern string, flags RegexFlags) (*Translation, error) {
	if len(pattern) > maxRegex {
		return nil, ErrLimit
	}
	// Flags of the call apply from the start, like flags at the start of the pattern.
	p := &rxParser{src: []rune(pattern), behindFrom: -1}
	for _, f := range [...]struct {
		python RegexFlags
		ours   rxFlags
	}{{RegexIgnoreCase, flagFold}, {RegexMultiline, flagMulti}, {RegexDotAll, flagDotAll}, {RegexVerbose, flagVerbose}, {RegexASCII, flagASCII}} {
		if flags&f.python != 0 {
			p.flags |= f.ours
		}
	}
	root, bad := p.parse()
	if bad != nil {
		return nil, &RegexError{Msg: bad.msg, Pos: p.pos}
	}
	t := &Translation{Groups: len(p.widths), Names: p.names, Nullable: p.widthOf(root).lo == 0}
	// Write both forms: the caller chooses for each string.
	linear := emitter{linear: true, captures: true}
	linear.writeNode(root)
	if !linear.unsupported {
		t.Linear = linear.out.String()
		t.ASCIIOnly, t.OneLine, t.NonEmpty = linear.boundary, linear.dollar, linear.nonEmpty
	}
	var back emitter
	back.writeNode(root)
	t.Back = back.out.String()
	return t, nil
}

// foldASCII returns the set with the other case of each ASCII letter added, as Python folds with re.ASCII.
func (s *rxCharSet) foldASCII() *rxCharSet {
	out := &rxCharSet{negate: s.negate, ranges: s.ranges[:len(s.ranges):len(s.ranges)], classes: s.classes}
	for _, r := range s.ranges {
		if r.lo >= utf8.RuneSelf {
			continue
		}
		if lo, hi := max(r.lo, 'a'), min(r.hi, 'z'); lo <= hi {
			out.ranges = append(out.ranges, runeRange{lo - 32, hi - 32})
		}
		if lo, hi := max(r.lo, 'A'), min(r.hi, 'Z'); lo <= hi {
			out.ranges = append(out.ranges, runeRange{lo + 32, hi + 32})
		}
	}
	return out
}
