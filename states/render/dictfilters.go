package render

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// noItems returns the error of setting a key in a value that is not a dict. look is set if Python looks the key up
// before it sets it, which may fail first.
func noItems(r *jinja.Run, v any, key string, look bool) error {
	// The membership test comes first, because it fails for types that do not support it.
	if look {
		if found, err := r.Contains(v, key); err != nil {
			return err
		} else if found {
			if _, err := r.Subscript(v, key); err != nil {
				return err
			}
		}
	}
	if _, ok := v.(*pyobj.List); ok {
		_, err := r.Subscript(v, key)
		return err
	}
	return raiseAs("TypeError", "'"+pyobj.TypeName(v)+"' object does not support item assignment")
}

// dictKeyFilter returns a filter that changes a value inside nested dicts: how is set, update, append or extend. The
// dict is changed in place.
func dictKeyFilter(how string) jinja.Filter {
	return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
		args, err := a.Bind(how+"_dict_key_value", []string{"keys", "value", "delimiter", "ordered_dict"}, ":", false)
		if err != nil {
			return nil, err
		}
		ordered, err := jinja.Truth(args[3])
		if err != nil {
			return nil, err
		}
		if _, err := r.Contains(args[0], args[2]); err != nil {
			return nil, err
		}
		keys, err := textArg(args[0])
		if err != nil {
			return nil, err
		}
		path := strings.Split(keys, pyobj.Str(args[2]))
		// Salt would fail at the first key that it looks up.
		top, ok := v.(*pyobj.Dict)
		if !ok {
			return nil, noItems(r, v, path[0], how != "set" || len(path) > 1)
		}
		// Missing dicts on the way are created, and other values on the way are replaced.
		at := top
		for _, k := range path[:len(path)-1] {
			next, ok := at.Value(k).(*pyobj.Dict)
			if !ok {
				next = &pyobj.Dict{Ordered: ordered}
				_ = at.Set(k, next)
			}
			at = next
		}
		// The value of the last key decides which operations are possible.
		last, value := path[len(path)-1], args[1]
		have := at.Value(last)
		fail := func(format string, what any) error {
			return raiseAs("SaltInvocationError", fmt.Sprintf(format, "<class '"+pyobj.TypeName(what)+"'>"))
		}
		switch how {
		case "set":
			_ = at.Set(last, value)
		case "update":
			// A key without a value begins as an empty dict, or as an empty list below.
			if have == nil {
				have = &pyobj.Dict{Ordered: ordered}
				_ = at.Set(last, have)
			}
			d, ok := have.(*pyobj.Dict)
			// An update needs a dict; append and extend need a list.
			if !ok {
				return nil, fail("The last key contains a %s, which cannot update.", have)
			}
			if err := jinja.Update(d, value); err != nil {
				return nil, raiseAs("SaltInvocationError", "Cannot update <class '"+pyobj.TypeName(have)+"'> with a <class '"+pyobj.TypeName(value)+"'>.")
			}
		default:
			if have == nil {
				have = &pyobj.List{}
				_ = at.Set(last, have)
			}
			l, ok := have.(*pyobj.List)
			if !ok {
				return nil, fail("The last key contains a %s, which cannot "+how+".", have)
			}
			if how == "append" {
				l.Items = append(l.Items, value)
				break
			}
			more, err := jinja.Collect(value)
			if err != nil {
				return nil, raiseAs("SaltInvocationError", "Cannot extend <class 'list'> with a <class '"+pyobj.TypeName(value)+"'>.")
			}
			l.Items = append(l.Items, more...)
		}
		return top, nil
	}
}
