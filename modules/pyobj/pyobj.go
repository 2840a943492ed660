// Package pyobj holds Python's collections as templates and state files need them: dicts that keep the order of insertion,
// and dicts and lists that are shared rather than copied. Package pytext and the wire know plain Go values (map[string]any,
// []any); these have neither order nor identity.
//
// A value is nil (None), bool, int64, *big.Int (only outside of int64), float64, string, [Markup], []byte, *[Dict], *[List],
// [Tuple], *[Set], or an object of the template engine that implements [Object]. From makes such values of plain ones, Plain
// the other way round:
//
//	d := pyobj.NewDict("b", 1, "a", pyobj.NewList(int64(2)))
//	for k, v := range d.All() { … }             // "b" before "a"
//	pyobj.Plain(d)                              // map[string]any{"a": []any{int64(2)}, "b": int64(1)}
package pyobj

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Markup is text that is known to be safe in HTML (markupsafe.Markup), which some filters return. It is a str otherwise.
type Markup string

// List is Python's list. All holders of the pointer share it.
type List struct {
	Items []any
	// Aggregate marks a list that [Aggregate] joins with others.
	Aggregate bool
}

// NewList makes a list of the items.
func NewList(items ...any) *List { return &List{Items: items} }

// Members returns the items.
func (l *List) Members() []any { return l.Items }

// Tuple is Python's tuple. Do not change the items.
type Tuple []any

// Members returns the items.
func (t Tuple) Members() []any { return t }

// Object is a value of another kind, as the template engine has them.
type Object interface {
	// TypeName is the name of the Python type.
	TypeName() string
	// Repr is Python's repr.
	Repr() string
}

// TypeError is Python's exception of that name.
type TypeError string

func (e TypeError) Error() string { return string(e) }

// entry is one of a dict, or a hole where one was: then its key is a hole.
type entry struct{ key, value any }

type hole struct{}

func (e *entry) dead() bool {
	_, dead := e.key.(hole)
	return dead
}

// Dict is Python's dict (or OrderedDict). All holders of the pointer share it. The zero value is empty and ready. It
// must not be used by several goroutines while one of them changes it.
type Dict struct {
	// Ordered marks Python's OrderedDict, which looks different as text and keeps its order as YAML.
	Ordered bool
	// Aggregate marks a dict that [Aggregate] joins with others.
	Aggregate bool
	// Bunch marks a dict of which d.key is d[key]: what it does not have is a KeyError, not undefined.
	Bunch bool

	entries []entry
	index   map[any]int32 // from small on; nil below
	live    int
}

// small is the size up to which a dict is searched rather than indexed.
const small = 16

// NewDict makes a dict of keys and values in turn. It panics on an odd number of them or a key that cannot be one, which is a
// programming error.
func NewDict(pairs ...any) *Dict {
	d := &Dict{}
	for i := 0; i < len(pairs); i += 2 {
		if err := d.Set(pairs[i], pairs[i+1]); err != nil {
			panic(err)
		}
	}
	return d
}

// Grow makes room for n more entries.
func (d *Dict) Grow(n int) { d.entries = slices.Grow(d.entries, n) }

// Len returns the number of entries.
func (d *Dict) Len() int { return d.live }

// Entry returns the first entry at position at or later, and the position after it. The key is in its encoded form:
// one that is not a scalar is converted to text. The first position is 0; there are Len entries.
func (d *Dict) Entry(at int) (key, value any, next int) {
	for d.entries[at].dead() {
		at++
	}
	e := &d.entries[at]
	return plainKey(e.key), e.value, at + 1
}

// plainKey returns a key in the form that plain maps have.
func plainKey(k any) any {
	switch k := k.(type) {
	case string, int64:
		return k
	case Tuple, []byte:
		return Str(k)
	default:
		return Plain(k)
	}
}

func (d *Dict) find(id any) int {
	if d.index != nil {
		if i, ok := d.index[id]; ok {
			return int(i)
		}
		return -1
	}
	if s, ok := id.(string); ok {
		return d.findText(s)
	}
	for i := range d.entries {
		if d.entries[i].dead() {
			continue
		}
		if k, err := Hash(d.entries[i].key); err == nil && k == id {
			return i
		}
	}
	return -1
}

func (d *Dict) findText(s string) int {
	if d.index != nil {
		if i, ok := d.index[s]; ok {
			return int(i)
		}
		return -1
	}
	for i := range d.entries {
		e := &d.entries[i]
		switch k := e.key.(type) {
		case string:
			if k == s {
				return i
			}
		case Markup:
			if string(k) == s {
				return i
			}
		}
	}
	return -1
}

// Get returns the value of a key. A value that cannot be a key is reported as missing.
func (d *Dict) Get(key any) (any, bool) {
	id, err := Hash(key)
	if err != nil {
		return nil, false
	}
	if i := d.find(id); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

// Text is like Get for a text key.
func (d *Dict) Text(key string) (any, bool) {
	if i := d.findText(key); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

// Value is like Get, but returns nil if the key is missing.
func (d *Dict) Value(key any) any {
	v, _ := d.Get(key)
	return v
}

// Lookup implements Python's d.get(key): it returns the value of a key, or nil if the key is missing. A key that is
// not hashable is an error.
func (d *Dict) Lookup(key any) (any, error) {
	if _, err := Hash(key); err != nil {
		return nil, err
	}
	return d.Value(key), nil
}

// Has reports whether there is such a key.
func (d *Dict) Has(key any) bool {
	_, ok := d.Get(key)
	return ok
}

// Set adds an entry at the end, or changes the value of the one there is. The error is a TypeError about a key that is not
// hashable; keys that are text never fail.
func (d *Dict) Set(key, value any) error {
	id, err := Hash(key)
	if err != nil {
		return err
	}
	if i := d.find(id); i >= 0 {
		d.entries[i].value = value
		return nil
	}
	d.add(id, key, value)
	return nil
}

func (d *Dict) add(id, key, value any) {
	if d.index == nil && len(d.entries) >= small {
		d.index = make(map[any]int32, max(2*small, cap(d.entries))) // what Grow was told will come
		for i := range d.entries {
			if !d.entries[i].dead() {
				k, _ := Hash(d.entries[i].key)
				d.index[k] = int32(i)
			}
		}
	}
	if d.index != nil {
		d.index[id] = int32(len(d.entries))
	}
	d.entries = append(d.entries, entry{key: key, value: value})
	d.live++
}

// Delete removes a key and gives the value it had.
func (d *Dict) Delete(key any) (any, bool) {
	id, err := Hash(key)
	if err != nil {
		return nil, false
	}
	i := d.find(id)
	if i < 0 {
		return nil, false
	}
	v := d.entries[i].value
	d.entries[i] = entry{key: hole{}}
	d.live--
	if d.index != nil {
		delete(d.index, id)
	}
	if len(d.entries) > 2*small && d.live < len(d.entries)/2 || d.live == 0 || i == len(d.entries)-1 {
		d.compact()
	}
	return v, true
}

// compact throws the holes out.
func (d *Dict) compact() {
	d.entries = slices.DeleteFunc(d.entries, func(e entry) bool { return e.dead() })
	if d.index == nil {
		return
	}
	clear(d.index)
	for i := range d.entries {
		k, _ := Hash(d.entries[i].key)
		d.index[k] = int32(i)
	}
}

// Clear removes everything.
func (d *Dict) Clear() { d.entries, d.index, d.live = nil, nil, 0 }

// All returns the entries in order. The dict may be modified during the iteration; entries that are added are then
// visited.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		if d == nil {
			return
		}
		for i := 0; i < len(d.entries); i++ {
			if e := &d.entries[i]; !e.dead() && !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Keys returns the keys in order.
func (d *Dict) Keys() []any {
	keys := make([]any, 0, d.live)
	for k := range d.All() {
		keys = append(keys, k)
	}
	return keys
}

// Values returns the values in order.
func (d *Dict) Values() []any {
	values := make([]any, 0, d.live)
	for _, v := range d.All() {
		values = append(values, v)
	}
	return values
}

// Last returns the entry that was added last.
func (d *Dict) Last() (key, value any, ok bool) {
	for i := len(d.entries) - 1; i >= 0; i-- {
		if e := &d.entries[i]; !e.dead() {
			return e.key, e.value, true
		}
	}
	return nil, nil, false
}

// Copy returns a dict with the same entries; the values are shared.
func (d *Dict) Copy() *Dict {
	out := &Dict{Ordered: d.Ordered, Aggregate: d.Aggregate, entries: make([]entry, 0, d.live)}
	for k, v := range d.All() {
		id, _ := Hash(k)
		out.add(id, k, v)
	}
	return out
}

// Update adds the entries of another dict.
func (d *Dict) Update(from *Dict) {
	for k, v := range from.All() {
		_ = d.Set(k, v) // it is a key already
	}
}

// Hash gives keys that are equal in Python (1, 1.0, True) one comparable value. The error is a TypeError.
func Hash(key any) (any, error) {
	switch k := key.(type) {
	case string, int64:
		return k, nil
	case nil:
		return none{}, nil
	case bool:
		if k {
			return int64(1), nil
		}
		return int64(0), nil
	case Markup:
		return string(k), nil
	case int:
		return int64(k), nil
	case float64:
		if k == math.Trunc(k) && k >= -1<<63 && k < 1<<63 {
			return int64(k), nil
		}
		return k, nil
	case *big.Int:
		return bigKey(k.String()), nil
	case []byte:
		return bytesKey(k), nil
	case Tuple:
		b := []byte{}
		for _, x := range k {
			id, err := Hash(x)
			if err != nil {
				return nil, err
			}
			b = fmt.Appendf(b, "%T ", id)
			b = strconv.AppendQuote(b, fmt.Sprint(id))
		}
		return tupleKey(b), nil
	case *List, *Dict, *Set, []any, map[string]any, map[any]any:
		return nil, TypeError("unhashable type: '" + TypeName(key) + "'")
	case interface{ Hash() (any, error) }:
		return k.Hash()
	}
	return key, nil
}

type (
	none     struct{}
	bigKey   string
	bytesKey string
	tupleKey string
)

// Set is Python's set. Its members keep the order of insertion, Python's have none.
type Set struct {
	// Frozen marks a frozenset.
	Frozen bool

	d Dict
}

// Add adds a member. The error is a TypeError about one that is not hashable.
func (s *Set) Add(v any) error {
	if s.d.Has(v) {
		return nil
	}
	return s.d.Set(v, nil)
}

// Has reports whether v is a member.
func (s *Set) Has(v any) bool { return s.d.Has(v) }

// Remove takes a member out and reports whether it was there.
func (s *Set) Remove(v any) bool {
	_, ok := s.d.Delete(v)
	return ok
}

// Len returns the number of members.
func (s *Set) Len() int { return s.d.Len() }

// Members returns the members.
func (s *Set) Members() []any { return s.d.Keys() }

// Iterate implements Python's iteration of a value: it returns its members, keys or characters. ok is false if the
// value cannot be iterated.
func Iterate(v any) ([]any, bool) {
	switch v := v.(type) {
	case *List:
		return v.Items, true
	case Tuple:
		return v, true
	case *Dict:
		return v.Keys(), true
	case []any:
		return v, true
	case string:
		list := make([]any, 0, len(v))
		for _, r := range v {
			list = append(list, string(r))
		}
		return list, true
	}
	return nil, false
}
