// Package target decides whether a target expression matches a minion. The minion uses it before it runs a job, the
// master to know which minions to wait for and to check access rules.
//
//	tgt_type, tgt ──▶ Compile ──▶ Expr (tree of nodes) ──▶ Match(Subject)       yes or no, on the minion
//	                                                  └──▶ Select(ids, cached)  yes, no or unknown, on the master
//
// It follows Salt's matchers (salt/matchers/*_match.py, salt/utils/data.py: subdict_match, salt/utils/minions.py),
// with Python's text of values, fnmatch and regular expressions. Expressions are parsed and never evaluated as
// code, as Salt does with compound targets. Every match has a budget: a hostile expression ends in ErrLimit or
// ErrTimeout, which callers treat as no match.
//
// It is stricter than Salt in a few places, where Salt's answer comes from a malformed expression that Python
// happens to accept: a juxtaposition that reads as a call ("web1 or a ( b )"), unknown or looping node groups, and
// named characters (\N{…}) in regular expressions are errors. The text of a map lists its keys sorted; Python keeps
// the order of insertion.
package target

import (
	"errors"
	"fmt"
)

// DefaultDelimiter separates the levels of grain and pillar expressions (salt.defaults.DEFAULT_TARGET_DELIM).
const DefaultDelimiter = ":"

// Types of targets, as tgt_type on the wire.
const (
	TypeGlob                = "glob"
	TypePCRE                = "pcre"
	TypeList                = "list"
	TypeGrain               = "grain"
	TypeGrainPCRE           = "grain_pcre"
	TypePillar              = "pillar"
	TypePillarPCRE          = "pillar_pcre"
	TypePillarExact         = "pillar_exact"
	TypeIPCIDR              = "ipcidr"
	TypeCompound            = "compound"
	TypeCompoundPillarExact = "compound_pillar_exact"
	TypeNodegroup           = "nodegroup"
	TypeData                = "data"
	TypeRange               = "range"
)

// OfIDs reports whether targets of this type depend on ids alone, so that a master and its minions decide the same.
func OfIDs(tgtType string) bool {
	return tgtType == TypeGlob || tgtType == TypePCRE || tgtType == TypeList
}

// Errors that callers may test for. All of them mean that nothing matches.
var (
	// ErrUnknownType means that no matcher exists for a tgt_type.
	ErrUnknownType = errors.New("target: unknown target type")
	// ErrSyntax is wrapped by every error about a malformed expression, pattern or network.
	ErrSyntax = errors.New("target: malformed expression")
	// ErrLimit means that an expression is too large or takes too many steps.
	ErrLimit = errors.New("target: expression exceeds the limit")
	// ErrTimeout means that a regular expression runs longer than RegexTimeout.
	ErrTimeout = errors.New("target: regular expression takes too long")
	// ErrNodegroup is wrapped if a node group is unknown, of the wrong type, or contains itself.
	ErrNodegroup = errors.New("target: unusable node group")
)

// Unusable reports whether err means that a target cannot be used at all: its type or a node group is unknown, or it
// is malformed.
func Unusable(err error) bool {
	return errors.Is(err, ErrUnknownType) || errors.Is(err, ErrSyntax) || errors.Is(err, ErrNodegroup)
}

// Limits of one match. They are far above any useful target, and prevent a hostile one from occupying a processor.
const (
	maxWords      = 1 << 16 // words of a compound expression after node groups were expanded
	maxNesting    = 200     // nested parentheses; Python has the same limit
	maxSplits     = 1 << 10 // levels of a delimited expression
	maxSteps      = 1 << 18 // comparisons of one delimited expression against one minion
	maxExpression = 1 << 20 // bytes of a delimited expression, a pattern or a compound word
)

// A Subject is the minion that a target is compared with. Its functions are called only if an expression needs them;
// a nil function counts as an empty map.
type Subject struct {
	// ID is the minion's id.
	ID string
	// Grains returns the minion's grains, nil if they are unknown.
	Grains func() map[string]any
	// Pillar returns the minion's pillar, nil if it is unknown.
	Pillar func() map[string]any
	// Data returns the minion's data store (the data execution module), for type "data".
	Data func() map[string]any
	// Nodegroups maps names to compound expressions (string or list of words), like the option nodegroups.
	Nodegroups map[string]any
}

// An Expr is a compiled target. It is immutable and safe for concurrent use.
type Expr struct {
	root node
}

// Compile compiles a target of the given type ("" means glob). An empty delimiter means DefaultDelimiter; only grain,
// grain_pcre and pillar use another one, as on Salt's minion. Only compound and nodegroup targets use the node
// groups.
//
// The error wraps ErrUnknownType, ErrSyntax, ErrLimit or ErrNodegroup. An expression that does not compile matches
// no minion.
func Compile(tgtType string, tgt any, delimiter string, nodegroups map[string]any) (*Expr, error) {
	if delimiter == "" {
		delimiter = DefaultDelimiter
	}
	var root node
	var err error
	switch tgtType {
	case TypeCompound, TypeCompoundPillarExact:
		root, err = compileCompound(tgt, nodegroups, tgtType == TypeCompoundPillarExact)
	case TypeNodegroup:
		root, err = compileNodegroup(tgt, nodegroups)
	case TypePillarPCRE, TypePillarExact:
		// Salt's minion passes the delimiter only for the other three (salt/minion.py: _target_load).
		root, err = compileLeaf(tgtType, tgt, DefaultDelimiter)
	default:
		root, err = compileLeaf(tgtType, tgt, delimiter)
	}
	if err != nil {
		return nil, err
	}
	return &Expr{root: root}, nil
}

// Match reports whether the expression matches the subject. Unknown data counts as empty.
func (e *Expr) Match(s Subject) (bool, error) {
	r := run{subject: &s}
	v, err := e.root.eval(&r)
	return v == yes && err == nil, err
}

// Match compiles a target and compares it with one minion. The result is false if there is an error.
func Match(tgtType string, tgt any, delimiter string, s Subject) (bool, error) {
	e, err := Compile(tgtType, tgt, delimiter, s.Nodegroups)
	if err != nil {
		return false, err
	}
	return e.Match(s)
}

// An answer is a truth value of Kleene's logic. unknown occurs only on the master, for minions without cached data.
type answer uint8

// The zero value is no, so that a forgotten case does not match.
const (
	no answer = iota
	yes
	unknown
)

// answerOf returns yes or no.
func answerOf(b bool) answer {
	if b {
		return yes
	}
	return no
}

// A node is a compiled part of an expression.
type node interface {
	eval(r *run) (answer, error)
}

// A run is the state of one evaluation: the subject, the budget, and the compiled patterns.
type run struct {
	subject *Subject
	// partial means that missing grains or pillar make the answer unknown instead of no.
	partial bool
	steps   int
	regexes map[string]*Regex
	globs   map[string]*glob
}

// spendStep spends one unit of the budget.
func (r *run) spendStep() error {
	if r.steps++; r.steps > maxSteps {
		return ErrLimit
	}
	return nil
}

// regexFor returns the compiled pattern, nil if it is invalid. Patterns are cached, because one evaluation compares
// them with many values.
func (r *run) regexFor(pattern string) *Regex {
	re, seen := r.regexes[pattern]
	if seen {
		return re
	}
	re, err := CompileRegex(pattern)
	if err != nil {
		re = nil
	}
	if r.regexes == nil {
		r.regexes = make(map[string]*Regex)
	}
	r.regexes[pattern] = re
	return re
}

// globFor returns the compiled glob of a pattern.
func (r *run) globFor(pattern string) *glob {
	g, seen := r.globs[pattern]
	if seen {
		return g
	}
	g = compileGlob(pattern)
	if r.globs == nil {
		r.globs = make(map[string]*glob)
	}
	r.globs[pattern] = g
	return g
}

// A constant is an expression with a fixed answer.
type constant answer

// eval returns the constant.
func (c constant) eval(*run) (answer, error) { return answer(c), nil }

// textOf returns a target as a string. A []byte is text that is not UTF-8, which never matches a minion.
func textOf(tgt any) (string, bool) {
	s, ok := tgt.(string)
	return s, ok
}

// syntaxError returns an error that wraps ErrSyntax.
func syntaxError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSyntax, fmt.Sprintf(format, args...))
}

// quoted shortens a part of an error text, because expressions may be a megabyte long.
func quoted(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%.77q…", s)
	}
	return fmt.Sprintf("%q", s)
}
