package jinja

// expr is an expression.
type expr interface {
	// eval computes the value.
	eval(f *frame) (any, error)
	// at is the line on which the expression is.
	at() int
}

// stmt is a statement.
type stmt interface {
	exec(f *frame) (signal, error)
}

// signal is how a statement ended.
type signal uint8

const (
	goOn signal = iota
	sigBreak
	sigContinue
)

type pos int

func (p pos) at() int { return int(p) }

type (
	nameExpr struct {
		pos
		name string
		refs []ref
	}
	constExpr struct {
		pos
		value any
	}
	tupleExpr struct {
		pos
		items []expr
	}
	listExpr struct {
		pos
		items []expr
	}
	dictExpr struct {
		pos
		keys, values []expr
	}
	condExpr struct {
		pos
		test, yes, no expr // no may be nil
	}
	binExpr struct {
		pos
		op          kind
		left, right expr
	}
	andExpr struct {
		pos
		left, right expr
	}
	orExpr struct {
		pos
		left, right expr
	}
	notExpr struct {
		pos
		x expr
	}
	signExpr struct {
		pos
		neg bool
		x   expr
	}
	concatExpr struct {
		pos
		items []expr
	}
	compareExpr struct {
		pos
		first expr
		ops   []operand
	}
	attrExpr struct {
		pos
		x    expr
		name string
	}
	itemExpr struct {
		pos
		x, key expr
	}
	sliceExpr struct {
		pos
		start, stop, step expr // may be nil
	}
	callExpr struct {
		pos
		fn expr
		arguments
	}
	filterExpr struct {
		pos
		x    expr // nil in a filter block
		name string
		arguments
		fn Filter
	}
	testExpr struct {
		pos
		x    expr
		name string
		arguments
		fn Test
	}
	nsRefExpr struct { // only as a target
		pos
		ns   *nameExpr
		attr string
	}
)

type operand struct {
	op kind // a comparison, or tIn and tNotIn
	x  expr
}

// Further operators of comparisons.
const (
	tIn kind = 100 + iota
	tNotIn
)

// arguments of a call.
type arguments struct {
	args             []expr
	names            []string
	values           []expr
	dynArgs, dynKwds expr
	// fixed are the values of args when all of them are constants. Who is called never changes its arguments.
	fixed []any
}

type (
	outputStmt struct {
		line  int
		text  string // template data, if x is nil
		x     expr
		check bool // outside of macros and blocks, where a template with extends writes nothing
	}
	assignStmt struct {
		line   int
		target target
		value  expr
	}
	assignBlockStmt struct {
		line   int
		target target
		filter *filterExpr
		scope  *scope
		body   []stmt
	}
	forStmt struct {
		line             int
		target           target
		iter, test       expr
		scope, elseScope *scope
		body, other      []stmt
		recursive        bool
		loopSlot         int
		testScope        *scope
		testTarget       target
		simple           int // the slot of a target that is one name, else -1
	}
	ifStmt struct {
		line  int
		tests []expr
		lines []int
		body  [][]stmt
		other []stmt
	}
	withStmt struct {
		targets []target
		values  []expr
		scope   *scope
		body    []stmt
	}
	autoescapeStmt struct {
		value expr
		scope *scope
		body  []stmt
	}
	blockStmt struct {
		line int
		name string
		scoped, required,
		toplevel bool
		scope *scope
		body  []stmt
	}
	extendsStmt struct {
		line     int
		template expr
		toplevel bool
	}
	includeStmt struct {
		line          int
		template      expr
		ignoreMissing bool
		context       bool
		scope         *scope
		check         bool
	}
	importStmt struct {
		line     int
		template expr
		target   target
		name     string
		context  bool
		scope    *scope
		toplevel bool
	}
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
	macroStmt struct {
		line int
		code *macroCode
		to   target
	}
	callStmt struct {
		line int
		call *callExpr
		code *macroCode
	}
	filterStmt struct {
		line   int
		filter *filterExpr
		scope  *scope
		body   []stmt
		check  bool
	}
	doStmt struct {
		line int
		x    expr
	}
	jumpStmt struct{ sig signal }
)

// macroCode is the body of a macro or call block.
type macroCode struct {
	name     string // "" for call blocks
	args     []string
	slots    []int
	defaults []expr // of the last arguments
	scope    *scope
	body     []stmt
	// explicit tells that one of the arguments is called caller.
	explicit                            bool
	callerSlot, varargsSlot, kwargsSlot int
}

// target is what an assignment stores into.
type target interface{ store(f *frame, v any) error }

type (
	nameTarget struct {
		name   string
		slot   int
		export bool // at the top level of a template
	}
	tupleTarget struct{ items []target }
	nsTarget    struct {
		ns   *nameExpr
		attr string
	}
)
