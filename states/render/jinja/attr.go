package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
)

// builtin tells whether methods of a value are those of a built-in type.
func builtin(v any) bool {
	switch v.(type) {
	case string, pyobj.Markup, *pyobj.Dict, *pyobj.List, pyobj.Tuple, int64, float64, bool, *pyobj.Set, []byte, *big.Int:
		return true
	}
	return false
}

// dunder tells whether every object of Python has an attribute of that name.
func dunder(name string) bool {
	switch name {
	case "__class__", "__init__", "__doc__", "__dict__", "__str__", "__repr__", "__eq__", "__ne__", "__hash__", "__dir__",
		"__format__", "__getattribute__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__",
		"__subclasshook__", "__delattr__", "__ge__", "__gt__", "__le__", "__lt__", "__init_subclass__", "__getstate__":
		return true
	}
	return false
}

func (r *Run) unsafe(v any, name string) *Undefined {
	return &Undefined{kind: r.env.Undefined, obj: v, name: name, exc: "SecurityError",
		hint: "access to attribute " + pyobj.Repr(name) + " of " + pyobj.Repr(shortType(v)) + " object is unsafe."}
}

// shortType is __name__ of the type.
func shortType(v any) string {
	name := pyobj.TypeName(v)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// attribute is Python's getattr, within the sandbox.
func (r *Run) attribute(v any, name string) (x any, ok bool, err error) {
	if u, is := v.(*Undefined); is {
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			if dunder(name) || name == "__call__" || name == "__getitem__" || name == "__len__" || name == "__iter__" {
				return r.unsafe(v, name), true, nil
			}
			return nil, false, nil
		}
		if u.kind == Chainable {
			return u, true, nil
		}
		return nil, false, u.fail()
	}
	if strings.HasPrefix(name, "_") {
		// guard: CVE-2021-25283 TestCVE_2021_25283_Sandbox
		if dunder(name) || specialDunder(v, name) {
			return r.unsafe(v, name), true, nil
		}
		return nil, false, nil
	}
	if hasMethod(v, name) {
		return &method{v, name}, true, nil
	}
	if a, is := v.(Attributes); is {
		return a.GetAttr(r, name)
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		if x, ok := v.Text(name); ok && v.Bunch {
			return x, true, nil
		}
		if v.Bunch {
			return nil, false, keyError(name)
		}
	case int64, bool, *big.Int:
		switch name {
		case "real", "numerator":
			n, err := sign(false, v)
			return n, true, err
		case "imag":
			return int64(0), true, nil
		case "denominator":
			return int64(1), true, nil
		}
	case float64:
		switch name {
		case "real":
			return v, true, nil
		case "imag":
			return 0.0, true, nil
		}
	}
	return nil, false, nil
}

// specialDunder are the names with underscores that only some types have.
func specialDunder(v any, name string) bool {
	switch v.(type) {
	case *pyobj.List, *pyobj.Dict:
		return name == "__len__" || name == "__getitem__" || name == "__contains__" || name == "__iter__" || name == "__setitem__" || name == "__delitem__"
	case string, pyobj.Tuple:
		return name == "__len__" || name == "__getitem__" || name == "__contains__" || name == "__iter__" || name == "__add__"
	case *Func, *Macro, *method:
		return name == "__call__" || name == "__globals__" || name == "__code__" || name == "__name__"
	}
	return false
}

// GetAttr is v.name in a template.
func (r *Run) GetAttr(v any, name string) (any, error) {
	if d, ok := v.(*pyobj.Dict); ok && !d.Bunch && !strings.HasPrefix(name, "_") && !hasMethod(v, name) {
		if x, ok := d.Text(name); ok {
			return x, nil
		}
		return r.undefinedAttr(v, name), nil
	}
	x, ok, err := r.attribute(v, name)
	if err != nil || ok {
		return x, err
	}
	x, err = r.subscript(v, name)
	if err == nil {
		return x, nil
	}
	if !as(err).lookup() {
		return nil, err
	}
	return r.undefinedAttr(v, name), nil
}

// GetItem is v[key] in a template.
func (r *Run) GetItem(v, key any) (any, error) {
	x, err := r.subscript(v, key)
	if err == nil {
		return x, nil
	}
	if !as(err).lookup() {
		return nil, err
	}
	if name, ok := isText(key); ok {
		x, ok, err := r.attribute(v, name)
		if err != nil || ok {
			return x, err
		}
	}
	return r.undefinedAttr(v, key), nil
}

// subscript is Python's v[key].
func (r *Run) subscript(v, key any) (any, error) {
	switch x := v.(type) {
	case *pyobj.Dict:
		if _, err := pyobj.Hash(key); err != nil {
			return nil, err
		}
		if value, ok := x.Get(key); ok {
			return value, nil
		}
		return nil, keyError(key)
	case *pyobj.List:
		i, err := position(key, len(x.Items), "list")
		if err != nil {
			return nil, err
		}
		return x.Items[i], nil
	case pyobj.Tuple:
		i, err := position(key, len(x), "tuple")
		if err != nil {
			return nil, err
		}
		return x[i], nil
	case string, pyobj.Markup:
		s, _ := isText(x)
		i, err := position(key, runes(s), "string")
		if err != nil {
			return nil, err
		}
		_, markup := x.(pyobj.Markup)
		return textLike(runeAt(s, i), markup), nil
	case []byte:
		i, err := position(key, len(x), "index")
		if err != nil {
			return nil, err
		}
		return int64(x[i]), nil
	case *Range:
		i, err := position(key, x.Len(), "range object")
		if err != nil {
			return nil, err
		}
		return x.item(i), nil
	case *Undefined:
		if x.kind == Chainable {
			return x, nil
		}
		return nil, x.fail()
	case Items:
		value, ok, err := x.GetItem(r, key)
		if err == nil && !ok {
			return nil, keyError(key)
		}
		return value, err
	}
	return nil, typeError("'%s' object is not subscriptable", pyobj.TypeName(v))
}

func position(key any, n int, what string) (int, error) {
	i64, ok := integer(key)
	if !ok {
		if u, is := key.(*Undefined); is && u.kind == Strict {
			return 0, typeError("%s indices must be integers or slices, not StrictUndefined", what)
		}
		if what == "string" {
			return 0, typeError("string indices must be integers, not '%s'", pyobj.TypeName(key))
		}
		return 0, typeError("%s indices must be integers or slices, not %s", what, pyobj.TypeName(key))
	}
	i := int(i64)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, raise("IndexError", "%s index out of range", what)
	}
	return i, nil
}

func runeAt(s string, n int) string {
	if len(s) == runes(s) {
		return s[n : n+1]
	}
	for i := range s {
		if n == 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			return s[i : i+size]
		}
		n--
	}
	return ""
}

// bounds is slice.indices of Python.
func bounds(n int, start, stop, step any) (from, to, by int, err error) {
	by = 1
	get := func(v any) (int, error) {
		if _, ok := integer(v); !ok {
			if _, big := v.(*big.Int); !big {
				if u, is := v.(*Undefined); is && u.kind == Strict {
					return 0, typeError("slice indices must be integers or None or have an __index__ method")
				}
				return 0, typeError("slice indices must be integers or None or have an __index__ method")
			}
		}
		return index(v)
	}
	if step != nil {
		if by, err = get(step); err != nil {
			return
		}
		if by == 0 {
			return 0, 0, 0, valueError("slice step cannot be zero")
		}
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	clamp := func(v any, standard int) (int, error) {
		if v == nil {
			return standard, nil
		}
		i, err := get(v)
		if i < 0 {
			i += n
		}
		return min(max(i, low), high), err
	}
	if by > 0 {
		if from, err = clamp(start, low); err == nil {
			to, err = clamp(stop, high)
		}
	} else {
		if from, err = clamp(start, high); err == nil {
			to, err = clamp(stop, low)
		}
	}
	return
}

// slice is v[start:stop:step].
func (r *Run) slice(v, start, stop, step any) (any, error) {
	pick := func(n int, add func(i int)) error {
		from, to, by, err := bounds(n, start, stop, step)
		if err != nil {
			return err
		}
		for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
			add(i)
		}
		return nil
	}
	switch x := v.(type) {
	case string, pyobj.Markup:
		s, _ := isText(x)
		chars := []rune(s)
		var out []rune
		err := pick(len(chars), func(i int) { out = append(out, chars[i]) })
		_, markup := x.(pyobj.Markup)
		return textLike(string(out), markup), err
	case *pyobj.List:
		out := &pyobj.List{}
		err := pick(len(x.Items), func(i int) { out.Items = append(out.Items, x.Items[i]) })
		return out, err
	case pyobj.Tuple:
		out := pyobj.Tuple{}
		err := pick(len(x), func(i int) { out = append(out, x[i]) })
		return out, err
	case []byte:
		out := []byte{}
		err := pick(len(x), func(i int) { out = append(out, x[i]) })
		return out, err
	case *Range:
		from, to, by, err := bounds(x.Len(), start, stop, step)
		if err != nil {
			return nil, err
		}
		return &Range{x.start + int64(from)*x.step, x.start + int64(to)*x.step, x.step * int64(by)}, nil
	case *Undefined:
		if x.kind == Chainable {
			return x, nil
		}
		return nil, x.fail()
	}
	if _, ok := v.(*pyobj.Dict); ok {
		return nil, typeError("unhashable type: 'slice'")
	}
	return nil, typeError("'%s' object is not subscriptable", pyobj.TypeName(v))
}
