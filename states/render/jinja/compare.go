package jinja

import (
	"math"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// valuesEqual implements Python's ==. It fails for strict undefined values, which raise on any use.
func valuesEqual(a, b any) (bool, error) {
	if u, ok := a.(*Undefined); ok && u.kind == Strict {
		return false, u.fail()
	}
	if u, ok := b.(*Undefined); ok && u.kind == Strict {
		return false, u.fail()
	}
	return pyobj.Equal(a, b), nil
}

// orderHolds reports whether a op b holds for <, <=, > and >=. A type error names the operator as Python does.
func orderHolds(op kind, a, b any) (bool, error) {
	if u, ok := a.(*Undefined); ok {
		return false, u.fail()
	}
	if u, ok := b.(*Undefined); ok {
		return false, u.fail()
	}
	// The members at fault are left in a and b, so that the error names their types and not those of the lists.
	c, ok, nan := cmpValues(&a, &b)
	if !ok {
		return false, typeError("'%s' not supported between instances of '%s' and '%s'", opText(op), pyobj.TypeName(a), pyobj.TypeName(b))
	}
	if nan {
		// NaN is neither less than, nor equal to, nor greater than anything.
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

// cmpValues orders numbers, texts, lists, tuples and bytes. ok is false for types that Python does not order; it
// then leaves in first and second the two members at fault, which may be deep inside. nan is set if one of them is
// NaN.
// The order of the cases is that of their frequency.
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

// cmpItems orders two sequences by their first members that differ, then by length.
func cmpItems(x, y []any, first, second *any) (int, bool, bool) {
	for i := range min(len(x), len(y)) {
		if pyobj.Equal(x[i], y[i]) {
			continue
		}
		*first, *second = x[i], y[i]
		return cmpValues(first, second)
	}
	// One is the beginning of the other: the shorter one is less.
	switch {
	case len(x) < len(y):
		return -1, true, false
	case len(x) > len(y):
		return 1, true, false
	}
	return 0, true, false
}

// cmpNumbers orders two numbers exactly: a float and an int are compared as big.Float, since a conversion of the
// int to float64 would lose digits.
func cmpNumbers(a, b any) (int, bool, bool) {
	x, okA := toInteger(a)
	y, okB := toInteger(b)
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
	// exact converts a number without loss.
	exact := func(v any, f float64, isFloat bool) *big.Float {
		if isFloat {
			return big.NewFloat(f)
		}
		return new(big.Float).SetInt(toBig(v))
	}
	return exact(a, fa, isA).Cmp(exact(b, fb, isB)), true, false
}

// containsItem implements Python's "v in box": substring, key, member, or an object's own __contains__.
func (r *Run) containsItem(box, v any) (bool, error) {
	switch x := box.(type) {
	case string, pyobj.Markup:
		s, _ := isText(box)
		t, ok := isText(v)
		if !ok {
			// Jinja's strict class shows under its own name in this one error.
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
	// Any other iterable is searched item by item, as Python does without __contains__.
	next, err := Iterate(box)
	if err != nil {
		if asError(err).Kind == "TypeError" {
			// Python words this differently from a failed loop.
			return false, typeError("argument of type '%s' is not iterable", pyobj.TypeName(box))
		}
		return false, err
	}
	for {
		x, ok, err := next()
		if err != nil || !ok {
			return false, err
		}
		if same, err := valuesEqual(x, v); err != nil || same {
			return same, err
		}
	}
}

// hasItem searches a sequence by ==, and fails if a comparison fails.
func hasItem(items []any, v any) (bool, error) {
	for _, x := range items {
		if same, err := valuesEqual(x, v); err != nil || same {
			return same, err
		}
	}
	return false, nil
}
