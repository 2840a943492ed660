package jinja

import (
	"math/big"

	"github.com/brine-salt/brine/modules/pyobj"
)

// plainTest returns a test that calls a function that cannot fail.
//
//go:noinline
func plainTest(fn func(v any) bool) Test {
	return func(_ *Run, v any, _ Args) (bool, error) { return fn(v), nil }
}

// comparisonTest returns a test such as "x is gt 3", which is a function of Python's module operator.
func comparisonTest(op kind) Test {
	return func(_ *Run, v any, a Args) (bool, error) {
		if len(a.Kw) > 0 {
			return false, typeError("_operator.%s() takes no keyword arguments", operatorName(op))
		}
		if len(a.Pos) != 1 {
			return false, typeError("%s expected 2 arguments, got %d", operatorName(op), 1+len(a.Pos))
		}
		switch op {
		case tEq:
			return valuesEqual(v, a.Pos[0])
		case tNe:
			same, err := valuesEqual(v, a.Pos[0])
			return !same, err
		}
		return orderHolds(op, v, a.Pos[0])
	}
}

// checkHashable fails for values that cannot be looked up in a dict.
func checkHashable(v any) error {
	if u, ok := v.(*Undefined); ok && u.kind == Strict {
		return u.fail()
	}
	_, err := pyobj.Hash(v)
	return err
}

// operatorName returns the name of a comparison's function in Python's module operator.
func operatorName(op kind) string {
	switch op {
	case tEq:
		return "eq"
	case tNe:
		return "ne"
	case tLt:
		return "lt"
	case tLtEq:
		return "le"
	case tGt:
		return "gt"
	}
	return "ge"
}

// builtinTest returns one of Jinja's tests, or nil. Tests without parameters refuse arguments.
func builtinTest(name string) Test {
	t := testOf(name)
	switch name {
	case "boolean", "defined", "escaped", "even", "false", "filter", "float", "integer", "iterable", "lower", "mapping", "none", "number", "odd",
		"sequence", "string", "test", "true", "undefined", "upper":
		return func(r *Run, v any, a Args) (bool, error) {
			if name == "filter" || name == "test" {
				a.Before++ // Python also counts the environment
			}
			if err := a.None("test_" + name); err != nil {
				return false, err
			}
			return t(r, v, a)
		}
	case "callable":
		return func(r *Run, v any, a Args) (bool, error) {
			if err := a.refuseOne(name); err != nil {
				return false, err
			}
			return t(r, v, a)
		}
	}
	return t
}

// testOf is the table of tests.
func testOf(name string) Test {
	switch name {
	case "odd", "even":
		// odd and even use the remainder, for any type that has one.
		return func(r *Run, v any, _ Args) (bool, error) {
			x, err := r.binaryOp(tMod, v, int64(2))
			if err != nil {
				return false, err
			}
			want := int64(0)
			if name == "odd" {
				want = 1
			}
			return valuesEqual(x, want)
		}
	case "divisibleby":
		return func(r *Run, v any, a Args) (bool, error) {
			args, err := a.Bind("test_divisibleby", []string{"num"})
			if err != nil {
				return false, err
			}
			x, err := r.binaryOp(tMod, v, args[0])
			if err != nil {
				return false, err
			}
			return valuesEqual(x, int64(0))
		}
	case "defined":
		return plainTest(func(v any) bool { return !isUndefined(v) })
	case "undefined":
		return plainTest(isUndefined)
	case "filter":
		return func(r *Run, v any, _ Args) (bool, error) {
			if err := checkHashable(v); err != nil {
				return false, err
			}
			s, ok := isText(v)
			return ok && r.env.findFilter(s) != nil, nil
		}
	case "test":
		return func(r *Run, v any, _ Args) (bool, error) {
			if err := checkHashable(v); err != nil {
				return false, err
			}
			s, ok := isText(v)
			return ok && r.env.findTest(s) != nil, nil
		}
	case "none":
		return plainTest(func(v any) bool { return v == nil })
	case "boolean":
		return plainTest(func(v any) bool { _, ok := v.(bool); return ok })
	case "false":
		return plainTest(func(v any) bool { return v == false })
	case "true":
		return plainTest(func(v any) bool { return v == true })
	case "integer":
		return plainTest(func(v any) bool {
			switch v.(type) {
			case int64, *big.Int:
				return true
			}
			return false
		})
	case "float":
		return plainTest(func(v any) bool { _, ok := v.(float64); return ok })
	case "lower", "upper":
		return func(_ *Run, v any, _ Args) (bool, error) {
			s, err := Str(v)
			return textIs(s, "is"+name), err
		}
	case "string":
		return plainTest(func(v any) bool { _, ok := isText(v); return ok })
	case "mapping":
		return plainTest(isMapping)
	case "number":
		return plainTest(isNumber)
	case "sequence":
		return func(_ *Run, v any, _ Args) (bool, error) {
			switch x := v.(type) {
			case string, pyobj.Markup, *pyobj.List, pyobj.Tuple, *pyobj.Dict, []byte, *Range, *group2:
				return true, nil
			case *Undefined:
				if x.kind == Strict {
					return false, x.fail()
				}
				return true, nil
			}
			return false, nil
		}
	case "iterable":
		return func(_ *Run, v any, _ Args) (bool, error) {
			_, err := Iterate(v)
			if isKind(err, "TypeError") {
				return false, nil
			}
			return err == nil, err
		}
	case "callable":
		return plainTest(func(v any) bool {
			_, ok := v.(Callable)
			_, undef := v.(*Undefined)
			return ok || undef
		})
	case "sameas":
		return func(_ *Run, v any, a Args) (bool, error) {
			args, err := a.Bind("test_sameas", []string{"other"})
			if err != nil {
				return false, err
			}
			return isIdentical(v, args[0]), nil
		}
	case "escaped":
		return plainTest(func(v any) bool { _, ok := v.(pyobj.Markup); return ok })
	case "in":
		return func(r *Run, v any, a Args) (bool, error) {
			args, err := a.Bind("test_in", []string{"seq"})
			if err != nil {
				return false, err
			}
			return r.containsItem(args[0], v)
		}
	case "==", "eq", "equalto":
		return comparisonTest(tEq)
	case "!=", "ne":
		return comparisonTest(tNe)
	case ">", "gt", "greaterthan":
		return comparisonTest(tGt)
	case ">=", "ge":
		return comparisonTest(tGtEq)
	case "<", "lt", "lessthan":
		return comparisonTest(tLt)
	case "<=", "le":
		return comparisonTest(tLtEq)
	}
	return nil
}

// isUndefined reports whether a value is undefined, of whatever class.
func isUndefined(v any) bool {
	_, ok := v.(*Undefined)
	return ok
}

// isMapping reports whether a value is a mapping: a dict, or an object that says so, as Salt's functions dict does.
func isMapping(v any) bool {
	if _, ok := v.(*pyobj.Dict); ok {
		return true
	}
	m, ok := v.(interface{ IsMapping() bool })
	return ok && m.IsMapping()
}

// isIdentical implements Python's "is". Equal small values count as the same object, which is true in CPython for
// most of them.
func isIdentical(a, b any) bool {
	switch x := a.(type) {
	// Tuples and bytes cannot be compared by ==, so their storage decides.
	case pyobj.Tuple:
		y, ok := b.(pyobj.Tuple)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case []byte:
		return false
	}
	switch b.(type) {
	case pyobj.Tuple, []byte:
		return false
	}
	return a == b
}
