package target

import (
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// RegexTimeout is the processor time one regular expression may take on one value before ErrTimeout. Only expressions with
// look-around, back references, atomic groups or conditionals can reach it; all others run in linear time.
const RegexTimeout = 10 * time.Millisecond

// maxAttempts bounds how often a match is tried again that was cut off by the clock without having used its processor time,
// because the machine is busy. The time for each attempt doubles.
const maxAttempts = 8

// maxRegex is the longest pattern in bytes.
const maxRegex = 1 << 16

// Regex is a compiled Python regular expression (module re, text patterns, Python 3.11). It is safe for concurrent use.
//
// Named characters (\N{…}) are not known, and the backtracking engine ignores case by lower case alone, so that (?i) does
// not see the long s or the Kelvin sign there.
//
// The pattern is parsed by Python's grammar and written out again for Go's linear-time engine if it is regular, otherwise for a
// backtracking engine with RegexTimeout.
type Regex struct {
	// linear is nil for patterns that are not regular or repeat more than Go's engine accepts.
	linear *regexp.Regexp
	// These restrict linear to texts without other letters, without line breaks, and that are not empty; Python's \b, $
	// and \B differ there.
	asciiOnly, oneLine, nonEmpty bool

	source *rxNode
	once   sync.Once
	back   *regexp2.Regexp
	err    error
}

// CompileRegex parses a pattern. The error wraps ErrSyntax or ErrLimit.
func CompileRegex(pattern string) (*Regex, error) {
	if len(pattern) > maxRegex {
		return nil, ErrLimit
	}
	root, err := parseRegex(pattern)
	if err != nil {
		return nil, err
	}
	re := &Regex{source: root}
	e := emitter{linear: true}
	e.node(root)
	if !e.unsupported {
		if re.linear, err = regexp.Compile(`\A(?:` + e.out.String() + `)`); err == nil {
			re.asciiOnly, re.oneLine, re.nonEmpty = e.boundary, e.dollar, e.nonEmpty
			return re, nil
		}
	}
	// Compile now, so that the error comes from here.
	re.once.Do(re.compileBacktracking)
	return re, re.err
}

var setClock sync.Once

func (re *Regex) compileBacktracking() {
	setClock.Do(func() {
		// The engine looks at a clock that ticks every 100 ms unless told; the limit needs a finer one. It runs only
		// while patterns of this kind are in use.
		regexp2.SetTimeoutCheckPeriod(time.Millisecond)
	})
	re.back, re.err = re.compileBack(RegexTimeout)
}

func (re *Regex) compileBack(timeout time.Duration) (*regexp2.Regexp, error) {
	var e emitter
	e.node(re.source)
	back, err := regexp2.Compile(`\A(?:`+e.out.String()+`)`, regexp2.None)
	if err != nil {
		return nil, syntaxError("cannot compile the regular expression: %v", err)
	}
	back.MatchTimeout = timeout
	return back, nil
}

// MatchStart reports whether the pattern matches at the start of s, as re.match does; the rest of s is free. The error is
// ErrTimeout, or wraps ErrSyntax when the pattern cannot be compiled for this text.
func (re *Regex) MatchStart(s string) (bool, error) {
	if re.linear != nil && !(re.asciiOnly && !isASCII(s)) && !(re.oneLine && strings.Contains(s, "\n")) && !(re.nonEmpty && s == "") {
		return re.linear.MatchString(s), nil
	}
	re.once.Do(re.compileBacktracking)
	if re.err != nil {
		return false, re.err
	}
	return re.matchBacktracking(s)
}

// matchBacktracking enforces RegexTimeout. The engine itself only knows the clock, and on a busy machine 10 ms pass without
// any work being done; a minion must not miss its jobs for that.
func (re *Regex) matchBacktracking(s string) (bool, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := cpuTime()
	back := re.back
	for attempt := 1; ; attempt++ {
		ok, err := back.MatchString(s)
		if err == nil {
			return ok, nil
		}
		if cpuTime()-start >= RegexTimeout || attempt == maxAttempts {
			return false, ErrTimeout
		}
		if back, err = re.compileBack(RegexTimeout << attempt); err != nil {
			return false, err
		}
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
