package pyobj

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// TypeName returns the name of the Python type of a value.
func TypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case string:
		return "str"
	case Markup:
		return "Markup"
	case int64, int, uint64, *big.Int:
		return "int"
	case float64:
		return "float"
	case []byte:
		return "bytes"
	case *Dict:
		if v.Ordered {
			return "collections.OrderedDict"
		}
		return "dict"
	case map[string]any, map[any]any:
		return "dict"
	case *List, []any:
		return "list"
	case Tuple:
		return "tuple"
	case *Set:
		if v.Frozen {
			return "frozenset"
		}
		return "set"
	case time.Time:
		if v.Location() == pytext.DateZone {
			return "datetime.date"
		}
		return "datetime.datetime"
	case Object:
		return v.TypeName()
	}
	return "object"
}

// Str implements Python's str(v).
func Str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Markup:
		return string(v)
	case interface{ Str() string }:
		return v.Str()
	case *Dict, *List, Tuple, *Set, Object, *big.Int:
		return Repr(v)
	}
	return pytext.Str(v)
}

// Repr implements Python's repr(v).
//
//go:noinline
func Repr(v any) string {
	w := writer{limit: math.MaxInt}
	w.value(v)
	return w.String()
}

// StrWithin is like Str with a limit on the size of the text: a list that contains another one many times takes
// little memory, but its text is long. ok is false if the text has more bytes than the limit.
func StrWithin(v any, limit int) (text string, ok bool) {
	switch v.(type) {
	case *Dict, *List, Tuple, *Set:
		w := writer{limit: limit}
		w.value(v)
		return w.String(), !w.full()
	}
	text = Str(v)
	return text, len(text) <= limit
}

// writer writes reprs; open holds the collections that are being written, for those that hold themselves.
type writer struct {
	strings.Builder
	open  []any
	limit int // nothing is written beyond it
}

func (w *writer) full() bool { return w.Len() > w.limit }

func (w *writer) enter(v any) bool {
	for _, x := range w.open {
		if x == v {
			return false
		}
	}
	w.open = append(w.open, v)
	return true
}

func (w *writer) leave() { w.open = w.open[:len(w.open)-1] }

func (w *writer) value(v any) {
	switch v := v.(type) {
	case string, nil, bool, int64, float64:
		w.WriteString(pytext.Repr(v))
	case Markup:
		w.WriteString("Markup(" + pytext.Repr(string(v)) + ")")
	case *big.Int:
		w.WriteString(v.String())
	case *List:
		if !w.enter(v) {
			w.WriteString("[...]")
			return
		}
		w.WriteByte('[')
		w.items(v.Items)
		w.WriteByte(']')
		w.leave()
	case Tuple:
		w.WriteByte('(')
		w.items(v)
		if len(v) == 1 {
			w.WriteByte(',')
		}
		w.WriteByte(')')
	case *Set:
		w.set(v)
	case *Dict:
		w.dict(v)
	case Object:
		w.WriteString(v.Repr())
	case map[string]any, map[any]any, []any, Entries: // may hold ordered values, which pytext does not know
		w.value(From(v))
	default:
		w.WriteString(pytext.Repr(v))
	}
}

func (w *writer) items(items []any) {
	for i, x := range items {
		if w.full() {
			return
		}
		if i > 0 {
			w.WriteString(", ")
		}
		w.value(x)
	}
}

func (w *writer) set(v *Set) {
	name := TypeName(v)
	switch {
	case v.Len() == 0:
		w.WriteString(name + "()")
	case v.Frozen:
		w.WriteString("frozenset({")
		w.items(v.Members())
		w.WriteString("})")
	default:
		w.WriteByte('{')
		w.items(v.Members())
		w.WriteByte('}')
	}
}

func (w *writer) dict(d *Dict) {
	if !w.enter(d) {
		if d.Ordered {
			w.WriteString("...")
		} else {
			w.WriteString("{...}")
		}
		return
	}
	defer w.leave()
	open, between, after, end := "{", ": ", "", "}"
	if d.Ordered { // the look of Python before 3.12
		if d.Len() == 0 {
			w.WriteString("OrderedDict()")
			return
		}
		open, between, after, end = "OrderedDict([", ", ", ")", "])"
	}
	w.WriteString(open)
	first := true
	for k, x := range d.All() {
		if w.full() {
			return
		}
		if !first {
			w.WriteString(", ")
		}
		first = false
		if d.Ordered {
			w.WriteByte('(')
		}
		w.value(k)
		w.WriteString(between)
		w.value(x)
		w.WriteString(after)
	}
	w.WriteString(end)
}

// Truth implements Python's bool(v).
func Truth(v any) bool {
	switch v := v.(type) {
	case *Dict:
		return v.Len() > 0
	case *List:
		return len(v.Items) > 0
	case Tuple:
		return len(v) > 0
	case *Set:
		return v.Len() > 0
	case Markup:
		return v != ""
	case *big.Int:
		return v.Sign() != 0
	}
	return pytext.Truth(v)
}

// Equal implements Python's ==: True equals 1 and 1.0, and collections are compared by content.
func Equal(a, b any) bool { return equal(a, b, 0) }

func equal(a, b any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			return x == y
		case Markup:
			return x == string(y)
		}
		return false
	case Markup:
		return equal(string(x), b, depth)
	case nil:
		return b == nil
	case *List:
		y, ok := b.(*List)
		return ok && (x == y || equalItems(x.Items, y.Items, depth))
	case Tuple:
		y, ok := b.(Tuple)
		return ok && equalItems(x, y, depth)
	case *Set:
		y, ok := b.(*Set)
		if !ok || x.Len() != y.Len() {
			return false
		}
		for _, v := range x.Members() {
			if !y.Has(v) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		return ok && equalDicts(x, y, depth)
	case []byte:
		y, ok := b.([]byte)
		return ok && string(x) == string(y)
	case interface{ Equal(other any) bool }:
		return x.Equal(b)
	}
	ka, err := Hash(a)
	if err != nil {
		return false
	}
	kb, err := Hash(b)
	return err == nil && ka == kb
}

func equalItems(x, y []any, depth int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !equal(x[i], y[i], depth+1) {
			return false
		}
	}
	return true
}

func equalDicts(x, y *Dict, depth int) bool {
	if x == y {
		return true
	}
	if x.Len() != y.Len() {
		return false
	}
	for k, v := range x.All() {
		other, ok := y.Get(k)
		if !ok || !equal(v, other, depth+1) {
			return false
		}
	}
	if x.Ordered && y.Ordered { // between two OrderedDicts the order counts
		a, b := x.Keys(), y.Keys()
		return equalItems(a, b, depth)
	}
	return true
}
