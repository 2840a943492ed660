package jinja

import (
	"math/big"

	"github.com/brine-salt/brine/internal/pyobj"
)

func simple(fn func(v any) bool) Test {
	return func(_ *Run, v any, _ Args) (bool, error) { return fn(v), nil }
}

func comparison(op kind) Test {
	return func(_ *Run, v any, a Args) (bool, error) {
		if len(a.Kw) > 0 {
			return false, typeError("_operator.%s() takes no keyword arguments", operatorName(op))
		}
		if len(a.Pos) != 1 {
			return false, typeError("%s expected 2 arguments, got %d", operatorName(op), 1+len(a.Pos))
		}
		switch op {
		case tEq:
			return equals(v, a.Pos[0])
		case tNe:
			same, err := equals(v, a.Pos[0])
			return !same, err
		}
		return order(op, v, a.Pos[0])
	}
}

// hashes fails for what cannot be looked for in a dict.
func hashes(v any) error {
	if u, ok := v.(*Undefined); ok && u.kind == Strict {
		return u.fail()
	}
	_, err := pyobj.Hash(v)
	return err
}

// operatorName is the name of a comparison's function.
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

// builtinTest is one of Jinja's tests, nil if there is none of the name.
func builtinTest(name string) Test {
	t := testOf(name)
	switch name {
	case "boolean", "defined", "escaped", "even", "false", "filter", "float", "integer", "iterable", "lower", "mapping", "none", "number", "odd",
		"sequence", "string", "test", "true", "undefined", "upper":
		return func(r *Run, v any, a Args) (bool, error) {
			if name == "filter" || name == "test" {
				a.Before++ // the environment
			}
			if err := a.None("test_" + name); err != nil {
				return false, err
			}
			return t(r, v, a)
		}
	case "callable":
		return func(r *Run, v any, a Args) (bool, error) {
			if err := a.one(name); err != nil {
				return false, err
			}
			return t(r, v, a)
		}
	}
	return t
}

func testOf(name string) Test {
	switch name {
	case "odd", "even":
		return func(r *Run, v any, _ Args) (bool, error) {
			x, err := r.binary(tMod, v, int64(2))
			if err != nil {
				return false, err
			}
			want := int64(0)
			if name == "odd" {
				want = 1
			}
			return equals(x, want)
		}
	case "divisibleby":
		return func(r *Run, v any, a Args) (bool, error) {
			args, err := a.Bind("test_divisibleby", []string{"num"})
			if err != nil {
				return false, err
			}
			x, err := r.binary(tMod, v, args[0])
			if err != nil {
				return false, err
			}
			return equals(x, int64(0))
		}
	case "defined":
		return simple(func(v any) bool { return !isUndefined(v) })
	case "undefined":
		return simple(isUndefined)
	case "filter":
		return func(r *Run, v any, _ Args) (bool, error) {
			if err := hashes(v); err != nil {
				return false, err
			}
			s, ok := isText(v)
			return ok && r.env.filter(s) != nil, nil
		}
	case "test":
		return func(r *Run, v any, _ Args) (bool, error) {
			if err := hashes(v); err != nil {
				return false, err
			}
			s, ok := isText(v)
			return ok && r.env.test(s) != nil, nil
		}
	case "none":
		return simple(func(v any) bool { return v == nil })
	case "boolean":
		return simple(func(v any) bool { _, ok := v.(bool); return ok })
	case "false":
		return simple(func(v any) bool { return v == false })
	case "true":
		return simple(func(v any) bool { return v == true })
	case "integer":
		return simple(func(v any) bool {
			switch v.(type) {
			case int64, *big.Int:
				return true
			}
			return false
		})
	case "float":
		return simple(func(v any) bool { _, ok := v.(float64); return ok })
	case "lower", "upper":
		return func(_ *Run, v any, _ Args) (bool, error) {
			s, err := Str(v)
			return is(s, "is"+name), err
		}
	case "string":
		return simple(func(v any) bool { _, ok := isText(v); return ok })
	case "mapping":
		return simple(isMapping)
	case "number":
		return simple(isNumber)
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
		return simple(func(v any) bool {
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
			return identical(v, args[0]), nil
		}
	case "escaped":
		return simple(func(v any) bool { _, ok := v.(pyobj.Markup); return ok })
	case "in":
		return func(r *Run, v any, a Args) (bool, error) {
			args, err := a.Bind("test_in", []string{"seq"})
			if err != nil {
				return false, err
			}
			return r.contains(args[0], v)
		}
	case "==", "eq", "equalto":
		return comparison(tEq)
	case "!=", "ne":
		return comparison(tNe)
	case ">", "gt", "greaterthan":
		return comparison(tGt)
	case ">=", "ge":
		return comparison(tGtEq)
	case "<", "lt", "lessthan":
		return comparison(tLt)
	case "<=", "le":
		return comparison(tLtEq)
	}
	return nil
}

func isUndefined(v any) bool {
	_, ok := v.(*Undefined)
	return ok
}

func isMapping(v any) bool {
	if _, ok := v.(*pyobj.Dict); ok {
		return true
	}
	m, ok := v.(interface{ IsMapping() bool })
	return ok && m.IsMapping()
}

// identical is Python's "is". Small values are the same object if they are equal, as in CPython for most.
func identical(a, b any) bool {
	switch x := a.(type) {
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
