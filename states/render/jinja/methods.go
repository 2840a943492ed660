package jinja

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// hasMethod reports whether a value of a built-in type has a method. It must agree with callMethod.
func hasMethod(v any, name string) bool {
	switch v := v.(type) {
	case string, pyobj.Markup:
		if hasTextMethod(name) {
			return true
		}
		_, markup := any(v).(pyobj.Markup)
		return markup && (name == "unescape" || name == "striptags")
	case *pyobj.Dict:
		switch name {
		case "get", "items", "keys", "values", "update", "pop", "popitem", "setdefault", "copy", "clear", "fromkeys":
			return true
		case "move_to_end":
			return v.Ordered
		}
	case *pyobj.List:
		switch name {
		case "append", "extend", "insert", "remove", "pop", "index", "count", "sort", "reverse", "copy", "clear":
			return true
		}
	case pyobj.Tuple:
		return name == "index" || name == "count"
	case *pyobj.Set:
		switch name {
		case "add", "remove", "discard", "pop", "clear", "copy", "union", "intersection", "difference", "symmetric_difference",
			"issubset", "issuperset", "isdisjoint", "update":
			return true
		}
	case int64, bool, *big.Int:
		return name == "bit_length" || name == "conjugate" || name == "bit_count"
	case float64:
		return name == "is_integer" || name == "conjugate" || name == "as_integer_ratio"
	case []byte:
		return name == "decode" || name == "hex"
	}
	return false
}

// callMethod calls a method of a built-in type; known is false if the type has no such method.
func (r *Run) callMethod(obj any, name string, a Args) (v any, known bool, err error) {
	if !hasMethod(obj, name) {
		return nil, false, nil
	}
	switch x := obj.(type) {
	case string:
		v, err = r.textMethod(x, false, name, a)
	case pyobj.Markup:
		v, err = r.textMethod(string(x), true, name, a)
	case *pyobj.Dict:
		v, err = r.dictMethod(x, name, a)
	case *pyobj.List:
		v, err = r.listMethod(x, name, a)
	case pyobj.Tuple:
		v, err = searchItems(x, name, a, "tuple")
	case *pyobj.Set:
		v, err = setMethod(x, name, a)
	case float64:
		switch name {
		case "is_integer":
			return x == math.Trunc(x) && !math.IsInf(x, 0), true, nil
		case "as_integer_ratio":
			q := new(big.Rat)
			if q.SetFloat64(x) == nil {
				return nil, true, raise("OverflowError", "cannot convert %s to integer ratio", pyobj.Repr(x))
			}
			return pyobj.Tuple{pyobj.Int(q.Num()), pyobj.Int(q.Denom())}, true, nil
		}
		// conjugate returns the number itself.
		return x, true, nil
	case []byte:
		if name == "hex" {
			var b strings.Builder
			for _, c := range x {
				b.WriteString(string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
			}
			return b.String(), true, nil
		}
		// decode reads the bytes as UTF-8, whatever the encoding argument is.
		return string(x), true, nil
	default:
		switch name {
		case "bit_length":
			return int64(toBig(x).BitLen()), true, nil
		case "bit_count":
			n := 0
			for _, c := range toBig(x).Bits() {
				for ; c != 0; c &= c - 1 {
					n++
				}
			}
			return int64(n), true, nil
		}
		v, err = signedNumber(false, x)
	}
	return v, true, err
}

// checkArity checks the number of positional arguments of a method without keywords. The texts are those of CPython's
// Argument Clinic, which depend on the number.
func checkArity(a Args, name string, low, high int) error {
	if len(a.Kw) > 0 {
		return typeError("%s() takes no keyword arguments", name)
	}
	n := len(a.Pos)
	short := name[strings.LastIndexByte(name, '.')+1:]
	plural := func(n int) string {
		if n == 1 {
			return ""
		}
		return "s"
	}
	switch {
	// CPython has its own texts for functions with no argument and with one.
	case low == high && n != low && low == 0:
		return typeError("%s() takes no arguments (%d given)", name, n)
	case low == high && n != low && low == 1:
		return typeError("%s() takes exactly one argument (%d given)", name, n)
	case low == high && n != low:
		return typeError("%s expected %d arguments, got %d", short, low, n)
	case n < low:
		return typeError("%s expected at least %d argument%s, got %d", short, low, plural(low), n)
	case n > high:
		return typeError("%s expected at most %d argument%s, got %d", short, high, plural(high), n)
	}
	return nil
}

// dictMethod calls a method of a dict. An OrderedDict has the same methods, but they have other names in errors, and
// two of them accept keywords.
func (r *Run) dictMethod(d *pyobj.Dict, name string, a Args) (any, error) {
	arity := func(low, high int) error {
		kind := "dict."
		if d.Ordered {
			kind = "OrderedDict."
		}
		return checkArity(a, kind+name, low, high)
	}
	// key returns the first argument if it can be a key.
	key := func() (any, error) {
		if u, ok := a.Pos[0].(*Undefined); ok && u.kind == Strict {
			return nil, u.fail()
		}
		_, err := pyobj.Hash(a.Pos[0])
		return a.Pos[0], err
	}
	second := func() any {
		if len(a.Pos) > 1 {
			return a.Pos[1]
		}
		return nil
	}
	if d.Ordered && (name == "pop" || name == "setdefault") { // these take keywords
		for _, kw := range a.Kw {
			if kw.Name == "default" && len(a.Pos) == 1 {
				a.Pos = append(a.Pos[:1:1], kw.Value)
				a.Kw = nil
			}
		}
	}
	switch name {
	case "get":
		if err := arity(1, 2); err != nil {
			return nil, err
		}
		k, err := key()
		if err != nil {
			return nil, err
		}
		if v, ok := d.Get(k); ok {
			return v, nil
		}
		return second(), nil
	case "items", "keys", "values":
		if err := arity(0, 0); err != nil {
			return nil, err
		}
		return &view{d, name}, nil
	case "update":
		if len(a.Pos) > 1 {
			return nil, typeError("update expected at most 1 argument, got %d", len(a.Pos))
		}
		return nil, updateDict(d, a)
	case "pop":
		if err := arity(1, 2); err != nil {
			return nil, err
		}
		k, err := key()
		if err != nil {
			return nil, err
		}
		if v, ok := d.Delete(k); ok {
			return v, nil
		}
		if len(a.Pos) > 1 {
			return a.Pos[1], nil
		}
		return nil, keyError(k)
	case "popitem":
		if err := arity(0, 0); err != nil {
			return nil, err
		}
		k, v, ok := d.Last()
		if !ok {
			if d.Ordered {
				return nil, keyError("dictionary is empty")
			}
			return nil, keyError("popitem(): dictionary is empty")
		}
		d.Delete(k)
		return pyobj.Tuple{k, v}, nil
	case "setdefault":
		if err := arity(1, 2); err != nil {
			return nil, err
		}
		k, err := key()
		if err != nil {
			return nil, err
		}
		if v, ok := d.Get(k); ok {
			return v, nil
		}
		return second(), d.Set(k, second())
	case "copy":
		return d.Copy(), arity(0, 0)
	case "clear":
		d.Clear()
		return nil, arity(0, 0)
	case "fromkeys":
		v, _, err := (&dictClass{ordered: d.Ordered}).GetAttr(r, "fromkeys")
		if err != nil {
			return nil, err
		}
		return r.Call(v, a)
	}
	// move_to_end exists only in OrderedDict. To move a key to the front the dict is built again, because pyobj can
	// only append.
	args, err := a.Bind("move_to_end", []string{"key", "last"}, true)
	if err != nil {
		return nil, err
	}
	v, ok := d.Delete(args[0])
	if !ok {
		return nil, keyError(args[0])
	}
	if last, err := Truth(args[1]); err != nil || last {
		_ = d.Set(args[0], v)
		return nil, err
	}
	rest := d.Copy()
	d.Clear()
	_ = d.Set(args[0], v)
	d.Update(rest)
	return nil, nil
}

// searchItems implements index and count of lists and tuples.
func searchItems(items []any, name string, a Args, kind string) (any, error) {
	if name == "count" {
		if err := checkArity(a, kind+".count", 1, 1); err != nil {
			return nil, err
		}
		n := int64(0)
		for _, x := range items {
			same, err := valuesEqual(x, a.Pos[0])
			if err != nil {
				return nil, err
			}
			if same {
				n++
			}
		}
		return n, nil
	}
	if err := checkArity(a, kind+".index", 1, 3); err != nil {
		return nil, err
	}
	// Start and stop may be negative, and stop may lie beyond the end.
	from, to := 0, len(items)
	for i, p := range a.Pos[1:] {
		n, err := toIndex(p)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n = max(n+len(items), 0)
		}
		if i == 0 {
			from = n
		} else {
			to = min(n, to)
		}
	}
	for i := from; i < to; i++ {
		same, err := valuesEqual(items[i], a.Pos[0])
		if err != nil {
			return nil, err
		}
		if same {
			return int64(i), nil
		}
	}
	// CPython's tuple does not show the value.
	if kind == "tuple" {
		return nil, valueError("tuple.index(x): x not in tuple")
	}
	return nil, valueError("%s is not in list", pyobj.Repr(a.Pos[0]))
}

// listMethod calls a method of a list. The list is changed in place, so all variables that refer to it see the
// change.
func (r *Run) listMethod(l *pyobj.List, name string, a Args) (any, error) {
	arity := func(low, high int) error { return checkArity(a, "list."+name, low, high) }
	switch name {
	case "append":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		// The list is not counted by countMade when it grows, so it has a limit here.
		if len(l.Items) >= maxItems {
			return nil, raise("MemoryError", "more than %d items", maxItems)
		}
		l.Items = append(l.Items, a.Pos[0])
		return nil, nil
	case "extend":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		more, err := Collect(a.Pos[0])
		if err == nil && len(l.Items)+len(more) > maxItems {
			err = raise("MemoryError", "more than %d items", maxItems)
		}
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, more...)
		return nil, nil
	case "insert":
		if err := arity(2, 2); err != nil {
			return nil, err
		}
		i, err := toIndex(a.Pos[0])
		if err != nil {
			return nil, err
		}
		if i < 0 {
			i = max(i+len(l.Items), 0)
		}
		l.Items = slices.Insert(l.Items, min(i, len(l.Items)), a.Pos[1])
		return nil, nil
	case "remove":
		if err := arity(1, 1); err != nil {
			return nil, err
		}
		for i, x := range l.Items {
			same, err := valuesEqual(x, a.Pos[0])
			if err != nil {
				return nil, err
			}
			if same {
				l.Items = slices.Delete(l.Items, i, i+1)
				return nil, nil
			}
		}
		return nil, valueError("list.remove(x): x not in list")
	case "pop":
		if err := arity(0, 1); err != nil {
			return nil, err
		}
		i := -1
		if len(a.Pos) == 1 {
			var err error
			if i, err = toIndex(a.Pos[0]); err != nil {
				return nil, err
			}
		}
		if len(l.Items) == 0 {
			return nil, raise("IndexError", "pop from empty list")
		}
		if i < 0 {
			i += len(l.Items)
		}
		if i < 0 || i >= len(l.Items) {
			return nil, raise("IndexError", "pop index out of range")
		}
		v := l.Items[i]
		l.Items = slices.Delete(l.Items, i, i+1)
		return v, nil
	case "index", "count":
		return searchItems(l.Items, name, a, "list")
	case "sort":
		// list.sort takes keywords only.
		if len(a.Pos) > 0 {
			return nil, typeError("sort() takes no positional arguments")
		}
		key, reverse := any(nil), false
		for _, kw := range a.Kw {
			switch kw.Name {
			case "key":
				key = kw.Value
			case "reverse":
				var err error
				if reverse, err = Truth(kw.Value); err != nil {
					return nil, err
				}
			default:
				return nil, typeError("'%s' is an invalid keyword argument for sort()", kw.Name)
			}
		}
		var by func(v any) (any, error)
		if key != nil {
			by = func(v any) (any, error) { return r.Call(key, Args{Pos: []any{v}}) }
		}
		// The list is replaced only if all comparisons succeed; CPython may leave it half sorted.
		sorted, err := sortItems(l.Items, by, reverse)
		if err == nil {
			l.Items = sorted
		}
		return nil, err
	case "reverse":
		slices.Reverse(l.Items)
		return nil, arity(0, 0)
	case "copy":
		return &pyobj.List{Items: slices.Clone(l.Items)}, arity(0, 0)
	}
	l.Items = nil // clear
	return nil, arity(0, 0)
}

// sortItems implements sorted(items, key=by, reverse=reverse). The sort is stable and uses only <.
func sortItems(items []any, by func(v any) (any, error), reverse bool) ([]any, error) {
	type pair struct{ key, v any }
	list := make([]pair, len(items))
	for i, v := range items {
		// The key is computed once per item, as in Python.
		list[i] = pair{v, v}
		if by != nil {
			k, err := by(v)
			if err != nil {
				return nil, err
			}
			list[i].key = k
		}
	}
	// The list is reversed before and after the sort, so that equal items keep their order.
	if reverse {
		slices.Reverse(list)
	}
	// After the first failed comparison, the rest of the sort compares nothing.
	var failed error
	sort.SliceStable(list, func(i, j int) bool {
		if failed != nil {
			return false
		}
		// Python compares the later item with the earlier one, and the error shows this order.
		less, err := orderHolds(tLt, list[i].key, list[j].key)
		if err != nil {
			failed = err
		}
		return less
	})
	if failed != nil {
		return nil, failed
	}
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i].v
	}
	if reverse {
		slices.Reverse(out)
	}
	return out, nil
}

// setOf implements Python's set(v).
func setOf(v any) (*pyobj.Set, error) {
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	s := &pyobj.Set{}
	for _, x := range items {
		if err := s.Add(x); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// setMethod calls a method of a set.
func setMethod(s *pyobj.Set, name string, a Args) (any, error) {
	// Methods without arguments.
	if len(a.Pos) == 0 {
		switch name {
		case "pop":
			items := s.Members()
			if len(items) == 0 {
				return nil, keyError("pop from an empty set")
			}
			s.Remove(items[0])
			return items[0], nil
		case "clear":
			for _, x := range s.Members() {
				s.Remove(x)
			}
			return nil, nil
		case "copy":
			return setOf(s)
		}
		return nil, checkArity(a, "set."+name, 1, 1)
	}
	// First the methods that accept any value, then those that accept an iterable.
	v := a.Pos[0]
	switch name {
	case "add":
		return nil, s.Add(v)
	case "discard":
		s.Remove(v)
		return nil, nil
	case "remove":
		if !s.Remove(v) {
			return nil, keyError(v)
		}
		return nil, nil
	}
	// The other operand may be any iterable.
	o, err := setOf(v)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Set{}
	switch name {
	case "update":
		for _, x := range o.Members() {
			_ = s.Add(x)
		}
		return nil, nil
	case "issubset", "issuperset":
		if name == "issuperset" {
			s, o = o, s
		}
		for _, x := range s.Members() {
			if !o.Has(x) {
				return false, nil
			}
		}
		return true, nil
	case "isdisjoint":
		for _, x := range s.Members() {
			if o.Has(x) {
				return false, nil
			}
		}
		return true, nil
	}
	for _, x := range s.Members() {
		if name == "union" || o.Has(x) == (name == "intersection") {
			_ = out.Add(x)
		}
	}
	if name == "union" || name == "symmetric_difference" {
		for _, x := range o.Members() {
			if !s.Has(x) {
				_ = out.Add(x)
			}
		}
	}
	return out, nil
}
