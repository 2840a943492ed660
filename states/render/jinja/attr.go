package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// isBuiltin reports whether the methods of a value are those of a built-in type, which callMethod knows.
func isBuiltin(v any) bool {
	switch v.(type) {
	case string, pyobj.Markup, *pyobj.Dict, *pyobj.List, pyobj.Tuple, int64, float64, bool, *pyobj.Set, []byte, *big.Int:
		return true
	}
	return false
}

// isDunder reports whether every Python object has an attribute of that name. The sandbox answers these with an
// unsafe undefined value and all other underscore names with a plain one.
func isDunder(name string) bool {
	switch name {
	case "__class__", "__init__", "__doc__", "__dict__", "__str__", "__repr__", "__eq__", "__ne__", "__hash__", "__dir__",
		"__format__", "__getattribute__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__",
		"__subclasshook__", "__delattr__", "__ge__", "__gt__", "__le__", "__lt__", "__init_subclass__", "__getstate__":
		return true
	}
	return false
}

// unsafeAttr returns the undefined value that jinja2.sandbox returns for a forbidden attribute. It raises
// SecurityError when it is used.
func (r *Run) unsafeAttr(v any, name string) *Undefined {
	return &Undefined{kind: r.env.Undefined, obj: v, name: name, exc: "SecurityError",
		hint: "access to attribute " + pyobj.Repr(name) + " of " + pyobj.Repr(shortType(v)) + " object is unsafe."}
}

// shortType returns the type's __name__, without its module.
func shortType(v any) string {
	name := pyobj.TypeName(v)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// lookupAttr implements Python's getattr within the sandbox. ok is false if there is no such attribute; err is an
// exception other than AttributeError.
func (r *Run) lookupAttr(v any, name string) (x any, ok bool, err error) {
	// An undefined value has no attributes: what follows depends on its class.
	if u, is := v.(*Undefined); is {
		// A look-up of a magic name must not raise: copy and pickle ask for them, and Jinja answers AttributeError.
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			if isDunder(name) || name == "__call__" || name == "__getitem__" || name == "__len__" || name == "__iter__" {
				return r.unsafeAttr(v, name), true, nil
			}
			return nil, false, nil
		}
		// A chainable one stays undefined; the others raise here, which is why "a.b.c" fails at b.
		if u.kind == Chainable {
			return u, true, nil
		}
		return nil, false, u.fail()
	}
	if strings.HasPrefix(name, "_") {
		// Magic names are answered with an unsafe value, others with "no such attribute".
		// guard: CVE-2021-25283 TestCVE_2021_25283_Sandbox
		if isDunder(name) || specialDunder(v, name) {
			return r.unsafeAttr(v, name), true, nil
		}
		return nil, false, nil
	}
	// The methods of built-in types come before everything else, as in Python.
	if hasMethod(v, name) {
		return &method{v, name}, true, nil
	}
	// Objects of this and other packages look up their own attributes.
	if a, is := v.(Attributes); is {
		return a.GetAttr(r, name)
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		if x, ok := v.Text(name); ok && v.Bunch {
			return x, true, nil
		}
		// A Bunch is Salt's dict with attributes; it raises KeyError in place of AttributeError.
		if v.Bunch {
			return nil, false, keyError(name)
		}
	case int64, bool, *big.Int:
		switch name {
		case "real", "numerator":
			// Integers have the attributes of Python's numeric tower. n.real of a bool is an int.
			n, err := signedNumber(false, v)
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

// specialDunder reports whether a type has an underscore name that not all objects have.
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

// GetAttr returns v.name as a template sees it: the attribute, else the item of that name, else an undefined value.
// Errors other than a failed look-up are passed on.
func (r *Run) GetAttr(v any, name string) (any, error) {
	// The common case, a key of a plain dict, is handled without creating an error.
	if d, ok := v.(*pyobj.Dict); ok && !d.Bunch && !strings.HasPrefix(name, "_") && !hasMethod(v, name) {
		if x, ok := d.Text(name); ok {
			return x, nil
		}
		return r.undefinedAttr(v, name), nil
	}
	x, ok, err := r.lookupAttr(v, name)
	if err != nil || ok {
		return x, err
	}
	// There is no attribute, so the dot falls back to the item. This makes pillar.name work.
	x, err = r.lookupItem(v, name)
	if err == nil {
		return x, nil
	}
	// Only a failed look-up becomes undefined; a KeyError of a function, say, passes through.
	if !asError(err).isLookup() {
		return nil, err
	}
	return r.undefinedAttr(v, name), nil
}

// GetItem returns v[key] as a template sees it: the item, else the attribute of that name, else an undefined value.
func (r *Run) GetItem(v, key any) (any, error) {
	x, err := r.lookupItem(v, key)
	if err == nil {
		return x, nil
	}
	if !asError(err).isLookup() {
		return nil, err
	}
	// A text key falls back to the attribute, in the other order than the dot.
	if name, ok := isText(key); ok {
		x, ok, err := r.lookupAttr(v, name)
		if err != nil || ok {
			return x, err
		}
	}
	return r.undefinedAttr(v, key), nil
}

// lookupItem implements Python's v[key]. A missing key is a KeyError or IndexError, for GetAttr and GetItem to
// turn into undefined.
func (r *Run) lookupItem(v, key any) (any, error) {
	switch x := v.(type) {
	case *pyobj.Dict:
		// The hash is checked first: in Python an unhashable key is a TypeError, and not a missing key.
		if _, err := pyobj.Hash(key); err != nil {
			return nil, err
		}
		if value, ok := x.Get(key); ok {
			return value, nil
		}
		return nil, keyError(key)
	// Sequences count from the end for negative indices.
	case *pyobj.List:
		i, err := itemIndex(key, len(x.Items), "list")
		if err != nil {
			return nil, err
		}
		return x.Items[i], nil
	case pyobj.Tuple:
		i, err := itemIndex(key, len(x), "tuple")
		if err != nil {
			return nil, err
		}
		return x[i], nil
	// An item of a text is a text of one character.
	case string, pyobj.Markup:
		s, _ := isText(x)
		i, err := itemIndex(key, runeCount(s), "string")
		if err != nil {
			return nil, err
		}
		_, markup := x.(pyobj.Markup)
		return textLike(runeAt(s, i), markup), nil
	case []byte:
		i, err := itemIndex(key, len(x), "index")
		if err != nil {
			return nil, err
		}
		return int64(x[i]), nil
	case *Range:
		i, err := itemIndex(key, x.Len(), "range object")
		if err != nil {
			return nil, err
		}
		return x.itemAt(i), nil
	case *Undefined:
		if x.kind == Chainable {
			return x, nil
		}
		return nil, x.fail()
	// These objects have items of their own.
	case Items:
		value, ok, err := x.GetItem(r, key)
		if err == nil && !ok {
			return nil, keyError(key)
		}
		return value, err
	}
	return nil, typeError("'%s' object is not subscriptable", pyobj.TypeName(v))
}

// itemIndex converts key to an index within n members, counting from the end if it is negative. what names the type
// in Python's error.
func itemIndex(key any, n int, what string) (int, error) {
	i64, ok := toInteger(key)
	if !ok {
		if u, is := key.(*Undefined); is && u.kind == Strict {
			return 0, typeError("%s indices must be integers or slices, not StrictUndefined", what)
		}
		if what == "string" {
			return 0, typeError("string indices must be integers, not '%s'", pyobj.TypeName(key))
		}
		return 0, typeError("%s indices must be integers or slices, not %s", what, pyobj.TypeName(key))
	}
	// Negative indices count from the end.
	i := int(i64)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, raise("IndexError", "%s index out of range", what)
	}
	return i, nil
}

// runeAt returns the character at index n as a text.
func runeAt(s string, n int) string {
	// ASCII text, the common case, is indexed without a scan.
	if len(s) == runeCount(s) {
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

// sliceBounds implements Python's slice.indices. It returns the first index, the index to stop at, and the step.
func sliceBounds(n int, start, stop, step any) (from, to, by int, err error) {
	by = 1
	// get returns one part of the slice as an index.
	get := func(v any) (int, error) {
		if _, ok := toInteger(v); !ok {
			if _, big := v.(*big.Int); !big {
				if u, is := v.(*Undefined); is && u.kind == Strict {
					return 0, typeError("slice indices must be integers or None or have an __index__ method")
				}
				return 0, typeError("slice indices must be integers or None or have an __index__ method")
			}
		}
		return toIndex(v)
	}
	if step != nil {
		if by, err = get(step); err != nil {
			return
		}
		if by == 0 {
			return 0, 0, 0, valueError("slice step cannot be zero")
		}
	}
	// A negative step goes from the last member down to before the first, so the range of legal indices moves by
	// one.
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	// clamp limits a part to the legal range. Python never fails for a part outside of it.
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

// sliceOf returns v[start:stop:step]; nil stands for a part that was left out.
func (r *Run) sliceOf(v, start, stop, step any) (any, error) {
	// pick visits the indices of the slice; the types below only differ in what they append.
	pick := func(n int, add func(i int)) error {
		from, to, by, err := sliceBounds(n, start, stop, step)
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
		// A slice of a range is a range: nothing is created.
		from, to, by, err := sliceBounds(x.Len(), start, stop, step)
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
	// Python uses the slice as a key, which cannot be hashed.
	if _, ok := v.(*pyobj.Dict); ok {
		return nil, typeError("unhashable type: 'slice'")
	}
	return nil, typeError("'%s' object is not subscriptable", pyobj.TypeName(v))
}
