package nested

import (
	"math/big"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// UpdateObject implements salt.utils.dictupdate.update for ordered values. It changes dest, which then shares values
// with upd.
func UpdateObject(dest, upd *pyobj.Dict, mergeLists bool) *pyobj.Dict {
	for k, v := range upd.All() {
		switch v := v.(type) {
		case *pyobj.Dict:
			if d, ok := dest.Value(k).(*pyobj.Dict); ok {
				UpdateObject(d, v, mergeLists)
				continue
			}
		case *pyobj.List:
			if d, ok := dest.Value(k).(*pyobj.List); ok && mergeLists {
				_ = dest.Set(k, JoinObjects(d, v))
				continue
			}
		}
		_ = dest.Set(k, v) // k is a key of upd, so it is valid
	}
	return dest
}

// JoinObjects returns a copy of a, followed by the elements of b that are not in a. As in Salt, an element that b has
// twice is added twice.
func JoinObjects(a, b *pyobj.List) *pyobj.List {
	out := pyobj.DeepCopy(a).(*pyobj.List)
	for _, x := range b.Items {
		if !hasObject(a.Items, x) {
			out.Items = append(out.Items, x)
		}
	}
	return out
}

func hasObject(list []any, v any) bool {
	for _, x := range list {
		if pyobj.Equal(x, v) {
			return true
		}
	}
	return false
}

// FilterObject implements grains.filter_by for ordered values. It tries the keys of the table in their order. As in
// Salt, the returned entry belongs to the table, so that a merge changes the table. data is plain or ordered.
func FilterObject(table *pyobj.Dict, key string, data, merge, byDefault, base any) (any, error) {
	values := []any{}
	if found, ok := GetObject(data, key, ":"); ok {
		values = []any{found}
		if l, isList := found.(*pyobj.List); isList {
			values = l.Items
		}
	}
	ret := pick(table, values)
	if ret == nil {
		var err error
		if ret, err = table.Lookup(byDefault); err != nil {
			return nil, err
		}
	}
	if pyobj.Truth(base) && table.Has(base) {
		under := table.Value(base)
		if d, ok := under.(*pyobj.Dict); ret == nil {
			ret = under
		} else if ok {
			over, ok := ret.(*pyobj.Dict)
			if !ok {
				return nil, ErrBase
			}
			ret = UpdateObject(pyobj.DeepCopy(d).(*pyobj.Dict), over, false)
		}
	}
	return MergeObject(ret, merge, false)
}

// MergeObject merges the argument merge of filter_by into picked, which it changes.
func MergeObject(picked, merge any, mergeLists bool) (any, error) {
	if !pyobj.Truth(merge) {
		return picked, nil
	}
	m, ok := merge.(*pyobj.Dict)
	if !ok {
		return nil, ErrMerge
	}
	if picked == nil {
		return m, nil
	}
	into, ok := picked.(*pyobj.Dict)
	if !ok {
		return nil, ErrUpdate
	}
	return UpdateObject(into, pyobj.DeepCopy(m).(*pyobj.Dict), mergeLists), nil
}

// pick returns the table's entry for the first value with a matching key.
func pick(table *pyobj.Dict, values []any) any {
	for _, v := range values {
		text := pyobj.Str(v)
		for k, x := range table.All() {
			if name := pyobj.Str(k); name == text || fnmatch.Match(name, text) {
				if x != nil {
					return x
				}
				break
			}
		}
	}
	return nil
}

// GetObject is like [Get], but data may also be ordered. Its result is an ordered value.
func GetObject(data any, key, delimiter string) (any, bool) {
	switch data.(type) {
	case map[string]any, map[any]any, []any:
		v, ok := Get(data, key, delimiter)
		return pyobj.From(v), ok
	}
	if delimiter == "" {
		return nil, false
	}
	return FollowObject(data, split(key, delimiter))
}

// Path returns the path for [Follow] from a key: a text is split, a number is a path of one part, and a list contains
// the parts. ok is false for other values.
func Path(key any, delimiter string) (path []string, ok bool) {
	var items []any
	switch k := key.(type) {
	case string:
		return split(k, delimiter), true
	case int64:
		return []string{pytext.Str(k)}, true
	case []any:
		items = k
	case *pyobj.List:
		items = k.Items
	case pyobj.Tuple:
		items = k
	default:
		return nil, false
	}
	for _, x := range items {
		path = append(path, pyobj.Str(x))
	}
	return path, true
}

// Repack implements salt.utils.data.repack_dictlist for an ordered value. The list contains dicts with one key each,
// and names and numbers, whose value becomes None. Repack merges them into one dict. The list may also be a YAML
// text. ok is false for any other value, also for a dict; Salt continues with an empty dict then.
func Repack(v any) (d *pyobj.Dict, ok bool) {
	if text, isText := v.(string); isText {
		var err error
		if v, err = yaml.ParseObject([]byte(text), "", false); err != nil {
			return &pyobj.Dict{}, false
		}
	}
	list, isList := v.(*pyobj.List)
	if !isList {
		return &pyobj.Dict{}, false
	}
	d = &pyobj.Dict{}
	for _, x := range list.Items {
		switch x := x.(type) {
		case *pyobj.Dict:
			if x.Len() != 1 {
				return &pyobj.Dict{}, false
			}
			d.Update(x)
		case string, bool, int64, *big.Int, float64:
			_ = d.Set(x, nil)
		default:
			return &pyobj.Dict{}, false
		}
	}
	return d, true
}
