package jinja

// expr is an expression of the tree. Nodes are shared by concurrent renders, so eval keeps nothing in them.
type expr interface {
	// eval returns the value of the expression in a frame.
	eval(f *frame) (any, error)
	// at returns the line of the template on which the expression stands, for errors.
	at() int
}

// stmt is a statement of the tree, template data included.
type stmt interface {
	exec(f *frame) (signal, error)
}

// signal reports how a statement ended, so that break and continue pass through if and with up to their loop.
type signal uint8

// The ways in which a statement ends.
const (
	goOn signal = iota
	sigBreak
	sigContinue
)

// pos is the line of an expression; every expression embeds it.
type pos int

func (p pos) at() int { return int(p) }

type (
	// nameExpr is the use of a name.
	nameExpr struct {
		pos
		name string
		// refs are the slots that may hold the name, the innermost first. They are filled in when the text is
		// parsed.
		refs []ref
	}
	// constExpr is a number, a string, true, false or none.
	constExpr struct {
		pos
		value any
	}
	// tupleExpr is a tuple, with or without parentheses.
	tupleExpr struct {
		pos
		items []expr
	}
	// listExpr is [a, b].
	listExpr struct {
		pos
		items []expr
	}
	// dictExpr is {k: v}; keys and values are parallel.
	dictExpr struct {
		pos
		keys, values []expr
	}
	// condExpr is yes if test else no.
	condExpr struct {
		pos
		// Without an else part the value is undefined.
		test, yes, no expr // no may be nil
	}
	// binExpr is a binary operator other than and, or, ~ and the comparisons.
	binExpr struct {
		pos
		// a token kind, since each operator has one
		op          kind
		left, right expr
	}
	// andExpr leaves right unevaluated if left decides; so does orExpr.
	andExpr struct {
		pos
		left, right expr
	}
	orExpr struct {
		pos
		left, right expr
	}
	// notExpr is not x, and also the negated test "x is not y".
	notExpr struct {
		pos
		x expr
	}
	// signExpr is -x or +x.
	signExpr struct {
		pos
		neg bool
		x   expr
	}
	// concatExpr is a ~ b ~ c as one node, since Jinja escapes the parts together.
	concatExpr struct {
		pos
		items []expr
	}
	// compareExpr is a chain such as a < b <= c, in which each operand is evaluated once.
	compareExpr struct {
		pos
		first expr
		ops   []operand
	}
	// attrExpr is x.name.
	attrExpr struct {
		pos
		x    expr
		name string
	}
	// itemExpr is x[key]; the key may be a sliceExpr.
	itemExpr struct {
		pos
		x, key expr
	}
	// sliceExpr is start:stop:step inside of brackets.
	sliceExpr struct {
		pos
		start, stop, step expr // nil if left out
	}
	// callExpr is fn(…), or obj.name(…) when fn is an attrExpr.
	callExpr struct {
		pos
		fn expr
		arguments
	}
	// filterExpr is x|name(arguments).
	filterExpr struct {
		pos
		x    expr // nil in a filter block, which has its body in place of a value
		name string
		arguments
		// nil for an unknown filter inside a condition, which fails only when it runs
		fn Filter
	}
	// testExpr is x is name(arguments).
	testExpr struct {
		pos
		x    expr
		name string
		arguments
		// nil for an unknown test, like fn of filterExpr
		fn Test
	}
	nsRefExpr struct { // ns.attr as a target of set; never evaluated as a value of its own
		pos
		ns   *nameExpr
		attr string
	}
)

// operand is one step of a comparison: the operator and the expression at its right.
type operand struct {
	op kind // a comparison operator, tIn or tNotIn
	x  expr
}

// tIn and tNotIn are the comparison operators that are words. They have no token kind, so their numbers are above
// those of the kinds.
const (
	tIn kind = 100 + iota
	tNotIn
)

// arguments are the arguments of a call, a filter or a test: positional ones, keywords, *args and **kwargs.
type arguments struct {
	args             []expr
	names            []string
	values           []expr
	dynArgs, dynKwds expr
	// fixed holds the values of args when all of them are constants, so that a filter in a loop allocates nothing.
	// The function that is called never changes its arguments.
	fixed []any
}

type (
	// outputStmt writes template data or the value of an expression.
	outputStmt struct {
		line  int
		text  string // nil for template data
		x     expr
		check bool // set outside of macros and blocks: there a template with extends writes nothing
	}
	// assignStmt is {% set target = value %}.
	assignStmt struct {
		line   int
		target target
		value  expr
	}
	// assignBlockStmt is {% set x %}…{% endset %}, with an optional chain of filters.
	assignBlockStmt struct {
		line   int
		target target
		filter *filterExpr
		scope  *scope
		body   []stmt
	}
	// forStmt is a loop, with its else part in other.
	forStmt struct {
		line   int
		target target
		// test is the condition behind "for x in y if". It has a scope of its own, which sees the target but not
		// loop.
		iter, test       expr
		scope, elseScope *scope
		body, other      []stmt
		recursive        bool
		loopSlot         int
		testScope        *scope
		testTarget       target
		simple           int // the slot of the target if it is a single name, else -1; spares a call per round
	}
	// ifStmt has a test, its line and a body for if and for each elif; other is the body of else.
	ifStmt struct {
		line  int
		tests []expr
		lines []int
		body  [][]stmt
		other []stmt
	}
	// withStmt evaluates its values in the frame outside, so a value does not see the targets before it.
	withStmt struct {
		targets []target
		values  []expr
		scope   *scope
		body    []stmt
	}
	// autoescapeStmt switches autoescape for its body.
	autoescapeStmt struct {
		value expr
		scope *scope
		body  []stmt
	}
	// blockStmt is a block at its place in the text. Which version runs is decided by the context's blocks.
	blockStmt struct {
		line int
		name string
		scoped, required,
		toplevel bool
		scope *scope
		body  []stmt
	}
	// extendsStmt names the parent. It may run conditionally, hence it is a statement and not a property of the
	// template.
	extendsStmt struct {
		line     int
		template expr
		toplevel bool
	}
	// includeStmt keeps the scope in which it stands, whose names the included template sees.
	includeStmt struct {
		line          int
		template      expr
		ignoreMissing bool
		context       bool
		scope         *scope
		check         bool
	}
	// importStmt is {% import "x" as name %}.
	importStmt struct {
		line     int
		template expr
		target   target
		name     string
		context  bool
		scope    *scope
		toplevel bool
	}
	// fromStmt is {% from "x" import a as b %}; names and as are parallel to targets.
	fromStmt struct {
		line     int
		template expr
		names    []string
		targets  []target
		as       []string
		context  bool
		scope    *scope
		toplevel bool
	}
	// macroStmt stores a Macro, which captures the frame, in the macro's name.
	macroStmt struct {
		line int
		code *macroCode
		to   target
	}
	// callStmt is {% call f() %}: the body becomes the macro caller that the call receives.
	callStmt struct {
		line int
		call *callExpr
		code *macroCode
	}
	// filterStmt is {% filter f %}…{% endfilter %}.
	filterStmt struct {
		line   int
		filter *filterExpr
		scope  *scope
		body   []stmt
		check  bool
	}
	// doStmt evaluates an expression for its side effects.
	doStmt struct {
		line int
		x    expr
	}
	// jumpStmt is break or continue.
	jumpStmt struct{ sig signal }
)

// macroCode is the body of a macro or of a call block, with its parameters.
type macroCode struct {
	name     string // "" for a call block, which Jinja shows as None
	args     []string
	slots    []int
	defaults []expr // those of the last parameters
	scope    *scope
	body     []stmt
	// explicit is set if a parameter is called caller: then the special variable of that name does not exist.
	explicit bool
	// The slots of the special variables, -1 for those that the body does not use. Jinja refuses extra arguments if
	// the body does not use varargs or kwargs.
	callerSlot, varargsSlot, kwargsSlot int
}

// target is what an assignment stores into: a name, a tuple of targets, or an attribute of a namespace.
type target interface{ store(f *frame, v any) error }

type (
	// nameTarget stores into a slot, and into the context if export is set.
	nameTarget struct {
		name   string
		slot   int
		export bool // set at the top level of a template, whose assignments importing templates see
	}
	// tupleTarget unpacks a value.
	tupleTarget struct{ items []target }
	// nsTarget sets an attribute of a namespace.
	nsTarget struct {
		ns   *nameExpr
		attr string
	}
)
