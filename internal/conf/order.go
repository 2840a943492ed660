package conf

import (
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// orderKey is the key of the ordered document (*pyobj.Dict) in the options of a file while files are merged. No file
// can contain it.
const orderKey = "\x00order"

// noteOrder stores the order of a file that contains nested values.
func noteOrder(opts map[string]any, b []byte, path string) {
	nested := false
	for _, v := range opts {
		switch v.(type) {
		case map[string]any, map[any]any, []any:
			nested = true
		}
	}
	if !nested {
		return
	}
	v, err := yaml.ParseObject(b, path, false)
	if d, ok := v.(*pyobj.Dict); ok && err == nil {
		opts[orderKey] = d
	}
}

// override replaces options by those with the same name in more.
func override(opts, more map[string]any) {
	have, _ := opts[orderKey].(*pyobj.Dict)
	for k, v := range more {
		opts[k] = v
	}
	if over, _ := more[orderKey].(*pyobj.Dict); have != nil && over != nil {
		both := have.Copy()
		both.Update(over)
		opts[orderKey] = both
	}
}

// mergeOrder is like [mergeInto] for ordered documents. Of two lists the second counts.
func mergeOrder(have, more *pyobj.Dict) *pyobj.Dict {
	out := have.Copy()
	for k, v := range more.All() {
		old, a := out.Value(k).(*pyobj.Dict)
		over, b := v.(*pyobj.Dict)
		if a && b {
			v = mergeOrder(old, over)
		}
		_ = out.Set(k, v) // cannot fail: the key comes from a dictionary
	}
	return out
}

// takeOrder moves the order of all files to l.Order.
func (l *loader) takeOrder(files map[string]any) {
	d, _ := files[orderKey].(*pyobj.Dict)
	delete(files, orderKey)
	for k, v := range d.All() {
		if inside := pyobj.Order(v); inside != nil {
			l.Order = append(l.Order, payload.Pair{Key: k, Value: ordered.ToWire(inside)})
		}
	}
}
