package jinja

import (
	"math"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// equals is Python's ==, which fails for strict undefined values.
func equals(a, b any) (bool, error) {
	if u, ok := a.(*Undefined); ok && u.kind == Strict {
		return false, u.fail()
	}
	if u, ok := b.(*Undefined); ok && u.kind == Strict {
		return false, u.fail()
	}
	return pyobj.Equal(a, b), nil
}

// order is Python's comparison; op shows in errors.
func order(op kind, a, b any) (bool, error) {
	if u, ok := a.(*Undefined); ok {
		return false, u.fail()
	}
	if u, ok := b.(*Undefined); ok {
		return false, u.fail()
	}
	c, ok, nan := cmpValues(&a, &b)
	if !ok {
		return false, typeError("'%s' not supported between instances of '%s' and '%s'", opText(op), pyobj.TypeName(a), pyobj.TypeName(b))
	}
	if nan {
		return false, nil
	}
	switch op {
	case tLt:
		return c < 0, nil
	case tLtEq:
		return c <= 0, nil
	case tGt:
		return c > 0, nil
	}
	return c >= 0, nil
}

// cmpValues orders numbers, texts, lists and tuples. If it cannot, it leaves the members in a and b that are at fault.
func cmpValues(first, second *any) (c int, ok, nan bool) {
	a, b := *first, *second
	if isNumber(a) && isNumber(b) {
		return cmpNumbers(a, b)
	}
	if x, isStr := isText(a); isStr {
		y, same := isText(b)
		return strings.Compare(x, y), same, false
	}
	switch x := a.(type) {
	case *pyobj.List:
		if y, same := b.(*pyobj.List); same {
			return cmpItems(x.Items, y.Items, first, second)
		}
	case pyobj.Tuple:
		if y, same := b.(pyobj.Tuple); same {
			return cmpItems(x, y, first, second)
		}
	case []byte:
		if y, same := b.([]byte); same {
			return strings.Compare(string(x), string(y)), true, false
		}
	}
	return 0, false, false
}

func cmpItems(x, y []any, first, second *any) (int, bool, bool) {
	for i := range min(len(x), len(y)) {
		if pyobj.Equal(x[i], y[i]) {
			continue
		}
		*first, *second = x[i], y[i]
		return cmpValues(first, second)
	}
	switch {
	case len(x) < len(y):
		return -1, true, false
	case len(x) > len(y):
		return 1, true, false
	}
	return 0, true, false
}

func cmpNumbers(a, b any) (int, bool, bool) {
	x, okA := integer(a)
	y, okB := integer(b)
	if okA && okB {
		switch {
		case x < y:
			return -1, true, false
		case x > y:
			return 1, true, false
		}
		return 0, true, false
	}
	fa, isA := a.(float64)
	fb, isB := b.(float64)
	if isA && math.IsNaN(fa) || isB && math.IsNaN(fb) {
		return 0, true, true
	}
	if isA && isB {
		switch {
		case fa < fb:
			return -1, true, false
		case fa > fb:
			return 1, true, false
		}
		return 0, true, false
	}
	exact := func(v any, f float64, isFloat bool) *big.Float {
		if isFloat {
			return big.NewFloat(f)
		}
		return new(big.Float).SetInt(toBig(v))
	}
	return exact(a, fa, isA).Cmp(exact(b, fb, isB)), true, false
}

// contains is "v in box".
func (r *Run) contains(box, v any) (bool, error) {
	switch x := box.(type) {
	case string, pyobj.Markup:
		s, _ := isText(box)
		t, ok := isText(v)
		if !ok {
			if u, ok := v.(*Undefined); ok && u.kind == Strict {
				return false, typeError("'in <string>' requires string as left operand, not StrictUndefined")
			}
			return false, typeError("'in <string>' requires string as left operand, not %s", pyobj.TypeName(v))
		}
		return strings.Contains(s, t), nil
	case *pyobj.Dict:
		if _, err := pyobj.Hash(v); err != nil {
			return false, err
		}
		return x.Has(v), nil
	case *pyobj.Set:
		if _, err := pyobj.Hash(v); err != nil {
			return false, err
		}
		return x.Has(v), nil
	case *pyobj.List:
		return hasItem(x.Items, v)
	case pyobj.Tuple:
		return hasItem(x, v)
	case *Undefined:
		if x.kind == Strict {
			return false, x.fail()
		}
		return false, nil
	case Container:
		return x.Contains(v), nil
	}
	next, err := Iterate(box)
	if err != nil {
		if as(err).Kind == "TypeError" {
			return false, typeError("argument of type '%s' is not iterable", pyobj.TypeName(box))
		}
		return false, err
	}
	for {
		x, ok, err := next()
		if err != nil || !ok {
			return false, err
		}
		if same, err := equals(x, v); err != nil || same {
			return same, err
		}
	}
}

func hasItem(items []any, v any) (bool, error) {
	for _, x := range items {
		if same, err := equals(x, v); err != nil || same {
			return same, err
		}
	}
	return false, nil
}
