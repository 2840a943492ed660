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

// RegexTimeout is the processor time that one regular expression may take on one value before ErrTimeout. Only
// expressions with look-around, back references, atomic groups or conditionals can reach it; all others run in
// linear time.
const RegexTimeout = 10 * time.Millisecond

// maxAttempts is how often a match is tried if the engine's clock stops it before it has used RegexTimeout of
// processor time, because the machine is busy. Each attempt gets twice the time of the previous one.
const maxAttempts = 8

// maxRegex is the longest pattern in bytes.
const maxRegex = 1 << 16

// A Regex is a compiled Python regular expression (module re, str patterns, Python 3.11). It is safe for concurrent
// use.
//
//	pattern ──▶ rxParser (Python's grammar) ──▶ rxNode ──▶ emitter ──┬─▶ regexp    linear time, if regular
//	                                                                 └─▶ regexp2   backtracking, RegexTimeout
//
// Targets come from the network, and a backtracking engine can be kept busy for ever by a short pattern; hence the
// two engines. Named characters (\N{…}) are not supported. The backtracking engine ignores case by lower case
// alone, so (?i) does not match the long s or the Kelvin sign there.
type Regex struct {
	// linear is nil for patterns that are not regular, or that have more repetitions than Go's engine accepts.
	linear *regexp.Regexp
	// These limit linear to strings without non-ASCII characters, without line breaks, or that are not empty, because
	// Python's \b, $ and \B behave differently on others.
	asciiOnly, oneLine, nonEmpty bool

	source *rxNode
	once   sync.Once
	back   *regexp2.Regexp
	err    error
}

// CompileRegex compiles a pattern. The error wraps ErrSyntax or ErrLimit.
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
	e.writeNode(root)
	if !e.unsupported {
		// \A anchors the match at the start, as re.match does.
		if re.linear, err = regexp.Compile(`\A(?:` + e.out.String() + `)`); err == nil {
			re.asciiOnly, re.oneLine, re.nonEmpty = e.boundary, e.dollar, e.nonEmpty
			return re, nil
		}
	}
	// Compile now, so that this function returns the error.
	re.once.Do(re.compileBacktracking)
	return re, re.err
}

// setClock sets the engine's clock once per process.
var setClock sync.Once

// compileBacktracking compiles the pattern for the backtracking engine. It runs when a string first needs it.
func (re *Regex) compileBacktracking() {
	setClock.Do(func() {
		// By default the engine's clock ticks every 100 ms, which is too coarse for the limit. The clock runs only
		// while such patterns are used.
		regexp2.SetTimeoutCheckPeriod(time.Millisecond)
	})
	re.back, re.err = re.compileBack(RegexTimeout)
}

// compileBack compiles the pattern with a time limit.
func (re *Regex) compileBack(timeout time.Duration) (*regexp2.Regexp, error) {
	var e emitter
	e.writeNode(re.source)
	back, err := regexp2.Compile(`\A(?:`+e.out.String()+`)`, regexp2.None)
	if err != nil {
		return nil, syntaxError("cannot compile the regular expression: %v", err)
	}
	back.MatchTimeout = timeout
	return back, nil
}

// MatchStart reports whether the pattern matches at the start of s, as re.match does. The error is ErrTimeout, or
// wraps ErrSyntax if the pattern cannot be compiled for this string.
func (re *Regex) MatchStart(s string) (bool, error) {
	// The linear engine is used only for strings on which it agrees with Python.
	if re.linear != nil && !(re.asciiOnly && !isASCII(s)) && !(re.oneLine && strings.Contains(s, "\n")) && !(re.nonEmpty && s == "") {
		return re.linear.MatchString(s), nil
	}
	re.once.Do(re.compileBacktracking)
	if re.err != nil {
		return false, re.err
	}
	return re.matchBacktracking(s)
}

// matchBacktracking enforces RegexTimeout. The engine measures only elapsed time, and on a busy machine 10 ms may pass
// without any work. A minion must not miss a job because of that, so the processor time of the thread decides.
func (re *Regex) matchBacktracking(s string) (bool, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The thread is locked, since its processor time is measured.
	start := cpuTime()
	back := re.back
	for attempt := 1; ; attempt++ {
		ok, err := back.MatchString(s)
		if err == nil {
			return ok, nil
		}
		// Stop if the match used its processor time, or if the machine is too busy to measure it.
		if cpuTime()-start >= RegexTimeout || attempt == maxAttempts {
			return false, ErrTimeout
		}
		if back, err = re.compileBack(RegexTimeout << attempt); err != nil {
			return false, err
		}
	}
}

// isASCII reports whether a text has only ASCII characters.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
