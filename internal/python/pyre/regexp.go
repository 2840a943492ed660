package pyre

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/brine-salt/brine/protocol/target"
)

// Flags are the flags of re.compile, with the same values as in Python.
type Flags = target.RegexFlags

// Flags of Python's module re.
const (
	IgnoreCase = target.RegexIgnoreCase
	Multiline  = target.RegexMultiline
	DotAll     = target.RegexDotAll
	Verbose    = target.RegexVerbose
	ASCII      = target.RegexASCII
)

// Timeout is how long one search may take. Only patterns with look-around, back references and the like can take long.
// guard: endless-searches TestBacktrackingStops instead: const Timeout = 10 * time.Second
const Timeout = 2 * time.Second

// ErrTimeout means that a search took longer than [Timeout].
var ErrTimeout = errors.New("the regular expression takes too long on this text")

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	t     *target.Translation
	bytes bool

	mu       sync.Mutex
	compiled map[place]*engine // guarded by mu
}

// Compile compiles a pattern for text. Its error has Python's text.
func Compile(pattern string, flags Flags) (*Regexp, error) {
	t, err := target.TranslateRegex(pattern, flags)
	if err != nil {
		return nil, err
	}
	re := &Regexp{t: t}
	_, err = re.engine(searching)
	return re, err
}

// CompileBytes compiles a pattern for bytes: it matches bytes instead of characters, and only ASCII letters are
// letters. The pattern and the texts may contain any bytes.
func CompileBytes(pattern string, flags Flags) (*Regexp, error) {
	t, err := target.TranslateRegex(widen(pattern), flags|ASCII)
	if err != nil {
		return nil, err
	}
	re := &Regexp{t: t, bytes: true}
	_, err = re.engine(searching)
	return re, err
}

// Groups returns the number of groups in the pattern.
func (re *Regexp) Groups() int { return re.t.Groups }

// Names returns the numbers of the named groups by name.
func (re *Regexp) Names() map[string]int { return re.t.Names }

// place restricts where a pattern may match: the assertions before and behind it.
type place struct{ before, behind string }

var (
	searching = place{}
	anchored  = place{before: `\A`}
	whole     = place{`\A`, `\z`}
)

// engine is a pattern compiled for one place. Either field may be nil.
type engine struct {
	linear *regexp.Regexp
	back   *regexp2.Regexp
}

func (re *Regexp) engine(p place) (*engine, error) {
	re.mu.Lock()
	defer re.mu.Unlock()
	if e := re.compiled[p]; e != nil {
		return e, nil
	}
	e := &engine{}
	if re.t.Linear != "" {
		e.linear, _ = regexp.Compile(p.before + `(?:` + re.t.Linear + `)` + p.behind) // fails for too many repetitions, for example
	}
	if re.compiled == nil {
		re.compiled = map[place]*engine{}
	}
	re.compiled[p] = e
	if e.linear == nil {
		var err error
		e.back, err = compileBack(p.before + `(?:` + re.t.Back + `)` + p.behind)
		return e, err
	}
	return e, nil
}

func compileBack(pattern string) (*regexp2.Regexp, error) {
	back, err := regexp2.Compile(pattern, regexp2.None)
	if err != nil {
		return nil, &target.RegexError{Msg: err.Error(), Pos: -1}
	}
	back.MatchTimeout = Timeout
	return back, nil
}

// backtracking returns the pattern, followed by suffix, for the backtracking engine, which supports all of Python's
// syntax.
func (re *Regexp) backtracking(p place, suffix string) (*regexp2.Regexp, error) {
	e, err := re.engine(p)
	if err != nil || suffix == "" && e.back != nil {
		return e.back, err
	}
	re.mu.Lock()
	defer re.mu.Unlock()
	key := place{p.before, p.behind + "\x00" + suffix}
	if have := re.compiled[key]; have != nil {
		return have.back, nil
	}
	back, err := compileBack(p.before + `(?:` + re.t.Back + `)` + p.behind + suffix)
	if err == nil {
		re.compiled[key] = &engine{back: back}
	}
	return back, err
}

// regular reports whether the linear engine returns the same results as Python for a text.
func (re *Regexp) regular(e *engine, s string) bool {
	return e.linear != nil && !(re.t.ASCIIOnly && !isASCII(s)) && !(re.t.OneLine && strings.Contains(s, "\n")) && !(re.t.NonEmpty && s == "")
}

// Search returns the first match anywhere: the begin and end of the match and of each group, or nil if there is no
// match. Groups that took no part have -1.
func (re *Regexp) Search(s string) ([]int, error) { return re.find(searching, s) }

// Match implements re.match: it returns a match at the beginning.
func (re *Regexp) Match(s string) ([]int, error) { return re.find(anchored, s) }

// FullMatch implements re.fullmatch: it reports whether the pattern matches the whole text.
func (re *Regexp) FullMatch(s string) (bool, error) {
	loc, err := re.find(whole, s)
	return loc != nil, err
}

func (re *Regexp) find(p place, s string) ([]int, error) {
	e, err := re.engine(p)
	if err != nil {
		return nil, err
	}
	w := s
	if re.bytes {
		w = widen(s)
	}
	var loc []int
	if re.regular(e, w) {
		loc = e.linear.FindStringSubmatchIndex(w)
	} else {
		back, err := re.backtracking(p, "")
		if err != nil {
			return nil, err
		}
		m, err := back.FindStringMatch(w)
		if err != nil {
			return nil, ErrTimeout
		}
		loc = byteOffsets(w, spans(m))
	}
	if len(w) != len(s) {
		loc = narrowOffsets(w, loc)
	}
	return loc, nil
}

// spans returns the begin and end of a match and of its groups, counted in characters, or nil if there is no match.
func spans(m *regexp2.Match) []int {
	if m == nil {
		return nil
	}
	groups := m.Groups()
	loc := make([]int, 0, 2*len(groups))
	for i := range groups {
		if len(groups[i].Captures) == 0 {
			loc = append(loc, -1, -1)
			continue
		}
		loc = append(loc, groups[i].Index, groups[i].Index+groups[i].Length)
	}
	return loc
}

// byteOffsets converts character offsets to byte offsets.
func byteOffsets(s string, loc []int) []int {
	if loc == nil || isASCII(s) {
		return loc
	}
	at := make([]int, 0, len(s)+1)
	for i := range s {
		at = append(at, i)
	}
	at = append(at, len(s))
	for i, x := range loc {
		if x >= 0 {
			loc[i] = at[x]
		}
	}
	return loc
}

// narrowOffsets converts offsets in the output of widen to offsets in its input.
func narrowOffsets(w string, loc []int) []int {
	for i, x := range loc {
		if x >= 0 {
			loc[i] = utf8.RuneCountInString(w[:x])
		}
	}
	return loc
}

// All returns the matches that do not overlap, at most n if n is positive. Empty matches follow the rules of Python
// 3.7 and later. Its error is [ErrTimeout].
func (re *Regexp) All(s string, n int) ([][]int, error) {
	w := s
	if re.bytes {
		w = widen(s)
	}
	all, err := re.all(w, n)
	if len(w) != len(s) {
		for _, loc := range all {
			narrowOffsets(w, loc)
		}
	}
	return all, err
}

func (re *Regexp) all(s string, n int) ([][]int, error) {
	if n <= 0 {
		n = -1
	}
	e, err := re.engine(searching)
	if err != nil {
		return nil, err
	}
	if re.regular(e, s) && !re.t.Nullable {
		return e.linear.FindAllStringSubmatchIndex(s, n), nil
	}
	back, err := re.backtracking(searching, "")
	if err != nil {
		return nil, err
	}
	// After an empty match, the next match may begin at the same place but must not be empty.
	onward, err := re.backtracking(searching, `(?!\G)`)
	if err != nil {
		return nil, err
	}
	var list [][]int
	text := []rune(s)
	next := back
	for pos := 0; pos <= len(text) && len(list) != n; {
		m, err := next.FindRunesMatchStartingAt(text, pos)
		if err != nil {
			return nil, ErrTimeout
		}
		if m == nil {
			break
		}
		list = append(list, spans(m))
		pos, next = m.Index+m.Length, back
		if m.Length == 0 {
			next = onward
		}
	}
	return allByteOffsets(s, list), nil
}

func allByteOffsets(s string, list [][]int) [][]int {
	if len(list) == 0 || isASCII(s) {
		return list
	}
	at := make([]int, 0, len(s)+1)
	for i := range s {
		at = append(at, i)
	}
	at = append(at, len(s))
	for _, loc := range list {
		for i, x := range loc {
			if x >= 0 {
				loc[i] = at[x]
			}
		}
	}
	return list
}

// Subn implements re.subn: it replaces the matches, or only the first count if count is positive, by the expanded
// template. It also returns the number of replacements.
func (re *Regexp) Subn(repl, s string, count int) (string, int, error) {
	parts, err := re.template(repl)
	if err != nil {
		return "", 0, err
	}
	if count < 0 {
		return s, 0, nil // Python regards a negative count as reached
	}
	all, err := re.All(s, count)
	if err != nil || len(all) == 0 {
		return s, 0, err
	}
	var out strings.Builder
	end := 0
	for _, loc := range all {
		out.WriteString(s[end:loc[0]])
		for _, p := range parts {
			if p.group < 0 {
				out.WriteString(p.text)
			} else if from := loc[2*p.group]; from >= 0 {
				out.WriteString(s[from:loc[2*p.group+1]])
			}
		}
		end = loc[1]
	}
	out.WriteString(s[end:])
	return out.String(), len(all), nil
}

// Split implements re.split without a limit. The pieces include the pattern's groups, with "" for a group that took
// no part in the match.
func (re *Regexp) Split(s string) ([]string, error) {
	all, err := re.All(s, 0)
	if err != nil {
		return nil, err
	}
	var list []string
	end := 0
	for _, loc := range all {
		list = append(list, s[end:loc[0]])
		for g := 2; g < len(loc); g += 2 {
			if loc[g] < 0 {
				list = append(list, "")
				continue
			}
			list = append(list, s[loc[g]:loc[g+1]])
		}
		end = loc[1]
	}
	return append(list, s[end:]), nil
}

// Escape implements re.escape.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// widen converts each byte of a text to one character.
func widen(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
