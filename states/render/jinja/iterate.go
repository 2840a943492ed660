package jinja

import (
	"fmt"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Iter is a lazy iterator, such as a generator or a map object. It can be iterated over once.
type Iter struct {
	// Kind is the name of Python's type, which shows when the iterator is printed.
	Kind string
	// Next returns the next item; ok is false after the last one.
	Next func() (any, bool, error)

	bytes int // what it holds, for countMade
}

// TypeName implements [pyobj.Object].
func (it *Iter) TypeName() string { return it.Kind }

// Repr implements [pyobj.Object].
func (it *Iter) Repr() string { return "<" + it.Kind + " object>" }

// Iterate implements [Iterable].
func (it *Iter) Iterate() func() (any, bool, error) { return it.Next }

// overItems iterates over the slice that items returns, which it calls for each item: a list may grow or shrink
// meanwhile, and Python uses its length at that moment.
//
//go:noinline
func overItems(items func() []any) func() (any, bool, error) {
	i := 0
	return func() (any, bool, error) {
		list := items()
		if i >= len(list) {
			return nil, false, nil
		}
		i++
		return list[i-1], true, nil
	}
}

// NewIter returns an iterator over a list. Its size counts for [MaxMade] when the iterator is returned to the
// template.
func NewIter(kind string, items []any) *Iter {
	bytes := slotBytes * len(items)
	for _, x := range items {
		if t, ok := x.(pyobj.Tuple); ok {
			bytes += slotBytes * len(t)
		}
	}
	return &Iter{kind, overItems(func() []any { return items }), bytes}
}

// Iterate implements Python's iter(v): it returns a function that yields one item per call. It fails with
// TypeError for a value that is not iterable.
func Iterate(v any) (func() (any, bool, error), error) {
	switch v := v.(type) {
	case *pyobj.List:
		return overItems(func() []any { return v.Items }), nil
	case pyobj.Tuple:
		return overItems(func() []any { return v }), nil
	case *pyobj.Dict:
		return overDict(v, v.Keys()), nil
	case *pyobj.Set:
		items := v.Members()
		return overItems(func() []any { return items }), nil
	case string:
		return overText(v), nil
	case pyobj.Markup:
		return overText(string(v)), nil
	case []byte:
		i := 0
		// Bytes are iterated over as integers.
		return func() (any, bool, error) {
			if i >= len(v) {
				return nil, false, nil
			}
			i++
			return int64(v[i-1]), true, nil
		}, nil
	case *Undefined:
		if v.kind == Strict {
			return nil, v.fail()
		}
		// A lenient undefined value is an empty sequence.
		return overItems(func() []any { return nil }), nil
	case Iterable:
		return v.Iterate(), nil
	}
	return nil, typeError("'%s' object is not iterable", pyobj.TypeName(v))
}

// overDict iterates over keys (or values, or items) and fails if the dict changes its size meanwhile, as Python
// does.
func overDict(d *pyobj.Dict, items []any) func() (any, bool, error) {
	i, n := 0, d.Len()
	return func() (any, bool, error) {
		// After the error the iterator cannot be used any more.
		if d.Len() != n {
			n = -1
			return nil, false, raise("RuntimeError", "dictionary changed size during iteration")
		}
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}
}

// overText yields the characters of a text as texts.
func overText(s string) func() (any, bool, error) {
	return func() (any, bool, error) {
		for i := range s {
			if i > 0 {
				c := s[:i]
				s = s[i:]
				return c, true, nil
			}
		}
		if s == "" {
			return nil, false, nil
		}
		c := s
		s = ""
		return c, true, nil
	}
}

// textLike returns s as Markup or as str.
//
//go:noinline
func textLike(s string, markup bool) any {
	if markup {
		return pyobj.Markup(s)
	}
	return s
}

// maxItems limits the length of a list, so that an endless iterator fails before memory runs out.
const maxItems = 10_000_000

// Collect implements Python's list(v), as a slice that the caller may change.
func Collect(v any) ([]any, error) {
	switch v := v.(type) {
	case *pyobj.List:
		return append([]any{}, v.Items...), nil
	case pyobj.Tuple:
		return append([]any{}, v...), nil
	case *pyobj.Dict:
		return v.Keys(), nil
	}
	next, err := Iterate(v)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for {
		x, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		// An iterator may be endless.
		if out = append(out, x); len(out) > maxItems {
			return nil, raise("MemoryError", "more than %d items", maxItems)
		}
	}
}

// view is a dict's keys(), values() or items(). It sees later changes of the dict.
type view struct {
	d    *pyobj.Dict
	kind string
}

func (v *view) TypeName() string { return "dict_" + v.kind }

// viewItems returns the members at this moment.
func (v *view) viewItems() []any {
	switch v.kind {
	case "keys":
		return v.d.Keys()
	case "values":
		return v.d.Values()
	}
	out := make([]any, 0, v.d.Len())
	for k, x := range v.d.All() {
		out = append(out, pyobj.Tuple{k, x})
	}
	return out
}

func (v *view) Repr() string {
	name := "dict_"
	if v.d.Ordered {
		name = "odict_"
	}
	return name + v.kind + "(" + pyobj.Repr(&pyobj.List{Items: v.viewItems()}) + ")"
}

func (v *view) Len() int                           { return v.d.Len() }
func (v *view) Iterate() func() (any, bool, error) { return overDict(v.d, v.viewItems()) }

// Contains looks up keys and items, and searches values.
func (v *view) Contains(x any) bool {
	switch v.kind {
	case "keys":
		return v.d.Has(x)
	case "items":
		t, ok := x.(pyobj.Tuple)
		if !ok || len(t) != 2 {
			return false
		}
		// A pair is in items if its key has its value.
		y, ok := v.d.Get(t[0])
		return ok && pyobj.Equal(y, t[1])
	}
	for _, y := range v.viewItems() {
		if pyobj.Equal(x, y) {
			return true
		}
	}
	return false
}

// Equal compares keys and items as sets. A view of values equals only itself.
func (v *view) Equal(other any) bool {
	o, ok := other.(*view)
	if !ok || v.kind != o.kind || v.kind == "values" {
		return v == other
	}
	if v.Len() != o.Len() {
		return false
	}
	for _, x := range v.viewItems() {
		if !o.Contains(x) {
			return false
		}
	}
	return true
}

// Range is Python's range: three numbers, whatever its length.
type Range struct{ start, stop, step int64 }

// TypeName implements [pyobj.Object].
func (*Range) TypeName() string { return "range" }

// Repr implements [pyobj.Object].
func (g *Range) Repr() string {
	if g.step == 1 {
		return fmt.Sprintf("range(%d, %d)", g.start, g.stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", g.start, g.stop, g.step)
}

// Len returns the number of members. The difference is taken without a sign, since it may exceed int64.
func (g *Range) Len() int {
	// Rounded up: the last step may be shorter.
	if g.step > 0 && g.start < g.stop {
		return int((uint64(g.stop) - uint64(g.start) + uint64(g.step) - 1) / uint64(g.step))
	}
	if g.step < 0 && g.start > g.stop {
		return int((uint64(g.start) - uint64(g.stop) + uint64(-g.step) - 1) / uint64(-g.step))
	}
	return 0
}

// itemAt returns the member at an index within Len.
func (g *Range) itemAt(i int) any { return g.start + int64(i)*g.step }

// Iterate implements [Iterable].
func (g *Range) Iterate() func() (any, bool, error) {
	i, n := 0, g.Len()
	return func() (any, bool, error) {
		if i >= n {
			return nil, false, nil
		}
		i++
		return g.itemAt(i - 1), true, nil
	}
}

// Contains implements [Container] by arithmetic. Hash turns 2.0 into 2, which is a member as well.
func (g *Range) Contains(v any) bool {
	id, err := pyobj.Hash(v)
	n, ok := id.(int64)
	if err != nil || !ok || g.Len() == 0 {
		return false
	}
	if g.step > 0 && (n < g.start || n >= g.stop) || g.step < 0 && (n > g.start || n <= g.stop) {
		return false
	}
	return (n-g.start)%g.step == 0
}

// Equal compares ranges as the sequences that they stand for.
func (g *Range) Equal(other any) bool {
	o, ok := other.(*Range)
	return ok && g.Len() == o.Len() && (g.Len() == 0 || g.start == o.start && (g.Len() == 1 || g.step == o.step))
}

// lengthOf implements Python's len(v).
func lengthOf(v any) (int, error) {
	switch v := v.(type) {
	case string:
		return runeCount(v), nil
	case pyobj.Markup:
		return runeCount(string(v)), nil
	case []byte:
		return len(v), nil
	case *pyobj.List:
		return len(v.Items), nil
	case pyobj.Tuple:
		return len(v), nil
	case *pyobj.Dict:
		return v.Len(), nil
	case *pyobj.Set:
		return v.Len(), nil
	case *Undefined:
		if v.kind == Strict {
			return 0, v.fail()
		}
		return 0, nil
	case *Loop:
		return v.totalLength()
	case Lener:
		return v.Len(), nil
	}
	return 0, typeError("object of type '%s' has no len()", pyobj.TypeName(v))
}

// runeCount counts characters as Python does, a broken byte being one.
//
//go:noinline
func runeCount(s string) int {
	n := 0
	for range s {
		n++
	}
	return n
}
