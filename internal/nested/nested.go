// Package nested finds, compares, copies and merges plain data: nested maps and lists, such as grains, pillar and
// options.
//
// Salt's sources: salt/utils/data.py (traverse_dict_and_list, filter_by), salt/utils/dictupdate.py.
package nested

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Get returns the value at a key like "a:b:0:c". In a list, a number is an index; any other word is looked up in the
// list's maps, and the first match is used. A word that is not a key of a map is also tried as the number, bool or
// None that YAML parses from it.
func Get(data any, key, delimiter string) (any, bool) {
	if delimiter == "" {
		return nil, false
	}
	return Follow(data, split(key, delimiter))
}

func split(key, delimiter string) []string { return strings.Split(key, delimiter) }

// Follow is like [Get] for a key that is already split.
func Follow(data any, path []string) (any, bool) {
	for _, word := range path {
		var ok bool
		if list, isList := data.([]any); isList {
			data, ok = inList(list, word)
		} else {
			data, ok = inMap(data, word)
		}
		if !ok {
			return nil, false
		}
	}
	return data, true
}

func inList(list []any, word string) (any, bool) {
	index, err := strconv.Atoi(strings.TrimSpace(word))
	for _, x := range list {
		switch m := x.(type) {
		case map[string]any:
			if v, ok := m[word]; ok && err != nil {
				return v, true
			}
		case map[any]any:
			var key any = word
			if err == nil {
				key = int64(index)
			}
			if v, ok := m[key]; ok {
				return v, true
			}
		}
	}
	if err != nil {
		return nil, false
	}
	if index < 0 {
		index += len(list) // Python counts from the end
	}
	if index < 0 || index >= len(list) {
		return nil, false
	}
	return list[index], true
}

func inMap(data any, word string) (any, bool) {
	switch m := data.(type) {
	case map[string]any:
		v, ok := m[word]
		return v, ok
	case map[any]any:
		if v, ok := m[word]; ok {
			return v, true
		}
		key := yaml.ParseValue(word)
		if key != nil && !reflect.TypeOf(key).Comparable() {
			return nil, false
		}
		v, ok := m[key]
		return v, ok
	}
	return nil, false
}

// Equal implements Python's ==: True equals 1 and 1.0, and lists and maps are compared by content.
func Equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any, map[any]any:
		return equalMaps(items(a), items(b))
	case []byte:
		b, ok := b.([]byte)
		return ok && string(a) == string(b)
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.Equal(b)
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	}
	return reflect.DeepEqual(a, b)
}

// number converts numbers and bools to values that compare as Python compares them.
func number(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	case uint64:
		if v < 1<<63 {
			return int64(v), true
		}
		return v, true
	case float64:
		if v == float64(int64(v)) && v >= -1<<63 && v < 1<<63 {
			return int64(v), true
		}
		return v, true
	}
	return nil, false
}

// items returns the entries of a map with keys of any type, or nil for other values.
func items(v any) map[any]any {
	switch m := v.(type) {
	case map[any]any:
		return m
	case map[string]any:
		out := make(map[any]any, len(m))
		for k, x := range m {
			out[k] = x
		}
		return out
	}
	return nil
}

func equalMaps(a, b map[any]any) bool {
	if len(a) != len(b) || b == nil {
		return false
	}
	for k, x := range a {
		y, ok := b[k]
		if !ok || !Equal(x, y) {
			return false
		}
	}
	return true
}

// Contains reports whether a list has an equal member.
func Contains(list []any, v any) bool {
	for _, x := range list {
		if Equal(x, v) {
			return true
		}
	}
	return false
}

// Copy returns a deep copy of lists and maps.
func Copy(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Copy(v[i])
		}
		return out
	case map[string]any:
		return CopyMap(v)
	case map[any]any:
		out := make(map[any]any, len(v))
		for k, x := range v {
			out[k] = Copy(x)
		}
		return out
	}
	return v
}

// CopyMap is like [Copy] for a map. It never returns nil.
func CopyMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, x := range m {
		out[k] = Copy(x)
	}
	return out
}

// Update merges upd into dest and returns dest. Maps are merged at every depth; other values are replaced. With
// mergeLists, lists are joined without duplicates. The values are copied: dest shares no data with upd.
func Update(dest, upd map[string]any, mergeLists bool) map[string]any {
	for k, v := range upd {
		switch v := v.(type) {
		case map[string]any:
			if d, ok := dest[k].(map[string]any); ok {
				dest[k] = Update(d, v, mergeLists)
				continue
			}
		case []any:
			if d, ok := dest[k].([]any); ok && mergeLists {
				dest[k] = Join(d, v)
				continue
			}
		}
		dest[k] = Copy(v)
	}
	return dest
}

// Anys returns a list of values of one type as a list of any.
func Anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}

// Join returns a copy of a, followed by the elements of b that are not in a. As in Salt, an element that b has twice
// is added twice.
func Join(a, b []any) []any {
	out := Copy(a).([]any)
	for _, x := range b {
		if !Contains(a, x) {
			out = append(out, Copy(x))
		}
	}
	return out
}

// The errors of Filter; the texts are Salt's.
var (
	ErrBase  = errors.New("filter_by default and look-up values must both be dictionaries.")
	ErrMerge = errors.New("filter_by merge argument must be a dictionary.")
)

// ErrUpdate is Python's TypeError for a merge into a value that is not a map.
var ErrUpdate = errors.New("Cannot update using non-dict types in dictupdate.update()")

// FollowObject is like [Follow] for ordered values (package pyobj).
func FollowObject(data any, path []string) (any, bool) {
	for _, word := range path {
		ok := false
		switch x := data.(type) {
		case *pyobj.List:
			data, ok = inObjects(x.Items, word)
		case *pyobj.Dict:
			if data, ok = x.Get(word); !ok {
				if key := pyobj.From(yaml.ParseValue(word)); key != word {
					data, ok = x.Get(key)
				}
			}
		case pyobj.Tuple:
			if n, err := strconv.Atoi(word); err == nil && n >= 0 && n < len(x) {
				data, ok = x[n], true
			}
		}
		if !ok {
			return nil, false
		}
	}
	return data, true
}

func inObjects(list []any, word string) (any, bool) {
	index, err := strconv.Atoi(strings.TrimSpace(word))
	for _, x := range list {
		if d, ok := x.(*pyobj.Dict); ok {
			var key any = word
			if err == nil {
				key = int64(index)
			}
			if v, ok := d.Get(key); ok {
				return v, true
			}
		}
	}
	if err != nil {
		return nil, false
	}
	if index < 0 {
		index += len(list) // Python counts from the end
	}
	if index < 0 || index >= len(list) {
		return nil, false
	}
	return list[index], true
}
