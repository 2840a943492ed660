package render

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyrandom"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// dataFilter returns one of the filters of salt.utils.data and dictupdate, or nil.
func dataFilter(name string) jinja.Filter {
	// The names are those that Salt's decorators register, the functions those that it decorates.
	switch name {
	case "compare_dicts":
		return compareDicts
	case "compare_lists":
		return compareLists
	case "json_encode_dict", "json_decode_dict", "json_encode_list", "json_decode_list":
		// The decoders are called encode in Salt as well, and do the same on Python 3.
		kind := name[len(name)-4:]
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			_, err := a.Bind("encode_"+kind, []string{"encoding", "errors", "keep", "preserve_dict_class", "preserve_tuples"}, nil, "strict", false, false, false)
			if err != nil {
				return nil, err
			}
			if kind == "dict" {
				if _, ok := v.(*pyobj.Dict); !ok {
					return nil, jinja.LacksAttribute(v, "items")
				}
				return encodeText(v, 0), nil
			}
			items, err := jinja.Collect(v)
			return encodeText(&pyobj.List{Items: items}, 0), err
		}
	case "exactly_n_true", "exactly_one_true":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			// exactly_one is exactly_n with 1.
			args := []any{int64(1)}
			var err error
			if name == "exactly_one_true" {
				err = a.None("exactly_one")
			} else {
				args, err = a.Bind("exactly_n", []string{"amount"}, int64(1))
			}
			if err != nil {
				return nil, err
			}
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			// Items are counted by their truth value, not by equality with True.
			n := int64(0)
			for _, x := range items {
				yes, err := jinja.Truth(x)
				if err != nil {
					return nil, err
				}
				if yes {
					n++
				}
			}
			return pyobj.Equal(n, args[0]), nil
		}
	case "traverse":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("traverse_dict_and_list", []string{"key", "default", "delimiter"}, nil, ":")
			if err != nil {
				return nil, err
			}
			// The path is a text with delimiters, an index, or a list.
			var path []string
			switch k := args[0].(type) {
			case string:
				path = strings.Split(k, pyobj.Str(args[2]))
			case int64:
				path = []string{pyobj.Str(k)}
			default:
				items, err := jinja.Collect(k)
				if err != nil {
					return nil, err
				}
				for _, x := range items {
					path = append(path, pyobj.Str(x))
				}
			}
			// If the path does not exist the result is the default, also if the path leads through a value that is
			// not a dict or list.
			if x, ok := nested.FollowObject(v, path); ok {
				return x, nil
			}
			return args[1], nil
		}
	case "substring_in_list":
		return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("substr_in_list", []string{"list_to_search"})
			if err != nil {
				return nil, err
			}
			items, err := jinja.Collect(args[0])
			if err != nil {
				return nil, err
			}
			for _, x := range items {
				if yes, err := r.Contains(x, v); err != nil || yes {
					return yes, err
				}
			}
			return false, nil
		}
	case "is_list":
		return plainFilter(name, func(v any) (any, error) { _, ok := v.(*pyobj.List); return ok, nil })
	case "is_iter":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			_, err := a.Bind(name, []string{"ignore"}, nil)
			return isIter(v), err
		}
	case "sorted_ignorecase":
		return plainFilter(name, func(v any) (any, error) {
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			// The items are sorted by their lower-case text, not by locale.
			out, err := jinja.SortItems(items, func(x any) (any, error) {
				s, err := textArg(x)
				if err != nil {
					return nil, raiseAs("AttributeError", "'"+pyobj.TypeName(x)+"' object has no attribute 'lower'")
				}
				return strings.ToLower(s), nil
			})
			return &pyobj.List{Items: out}, err
		})
	case "mysql_to_dict":
		return mysqlToDict
	case "json_query":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			// The expression is JMESPath.
			args, err := a.Bind("json_query", []string{"expr"})
			if err != nil {
				return nil, err
			}
			expr, err := textArg(args[0])
			if err != nil {
				return nil, err
			}
			// The library works on JSON's types, so integers are converted both ways.
			x, err := jmespath.Search(expr, toFloats(pyobj.Plain(v)))
			if err != nil {
				return nil, raiseAs("ParseError", err.Error())
			}
			return pyobj.From(toIntegers(x)), nil
		}
	case "flatten":
		return flattenFilter
	case "random_sample", "random_shuffle":
		return randomSample(name)
	case "to_entries":
		return plainFilter(name, toEntries)
	case "from_entries":
		return plainFilter(name, fromEntries)
	case "set_dict_key_value", "update_dict_key_value", "append_dict_key_value", "extend_dict_key_value":
		return dictKeyFilter(strings.TrimSuffix(name, "_dict_key_value"))
	}
	return nil
}

// toFloats turns integers into floats, which is what the JMESPath library works on.
func toFloats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = toFloats(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = toFloats(x)
		}
		return out
	}
	return v
}

// toIntegers turns whole floats back into integers. It changes v, which is the library's own result.
func toIntegers(v any) any {
	switch v := v.(type) {
	case float64:
		// Beyond 2**53 a float no longer identifies one integer.
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = toIntegers(v[i])
		}
	case map[string]any:
		for k, x := range v {
			v[k] = toIntegers(x)
		}
	}
	return v
}

// isIter reports whether Python can iterate over a value, text excepted (salt.utils.data.is_iter).
func isIter(v any) bool {
	switch v.(type) {
	case string, pyobj.Markup:
		return false
	}
	_, err := jinja.Iterate(v)
	return err == nil
}

// compareDicts implements salt.utils.data.compare_dicts: keys that were added, changed or removed, with old and
// new value.
func compareDicts(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("compare_dicts", []string{"new"}, nil)
	if err != nil {
		return nil, err
	}
	old, _ := v.(*pyobj.Dict)
	now, _ := args[0].(*pyobj.Dict)
	// Two empty or missing dicts are equal.
	if (v == nil || old != nil && old.Len() == 0) && (args[0] == nil || now != nil && now.Len() == 0) {
		return &pyobj.Dict{}, nil
	}
	if old == nil || now == nil {
		return nil, raiseAs("TypeError", "argument of type 'NoneType' is not iterable")
	}
	out := &pyobj.Dict{}
	// Salt goes through the new dict first.
	for k, x := range now.All() {
		was, ok := old.Get(k)
		switch {
		case !ok:
			_ = out.Set(k, pyobj.NewDict("old", "", "new", x))
		case !pyobj.Equal(was, x):
			_ = out.Set(k, pyobj.NewDict("old", was, "new", x))
		}
	}
	for k, x := range old.All() {
		if !now.Has(k) {
			_ = out.Set(k, pyobj.NewDict("new", "", "old", x))
		}
	}
	return out, nil
}

// compareLists implements salt.utils.data.compare_lists: members that were added or removed.
func compareLists(r *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("compare_lists", []string{"new"}, nil)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	// note adds the members of list that other lacks.
	note := func(key string, list, other any) error {
		items, err := jinja.Collect(list)
		if err != nil {
			return err
		}
		for _, x := range items {
			// Members are looked up, not counted, so repeated members make no difference.
			if found, err := r.Contains(other, x); err != nil {
				return err
			} else if found {
				continue
			}
			l, ok := out.Value(key).(*pyobj.List)
			if !ok {
				l = &pyobj.List{}
				_ = out.Set(key, l)
			}
			l.Items = append(l.Items, x)
		}
		return nil
	}
	if err := note("new", args[0], v); err != nil {
		return nil, err
	}
	return out, note("old", v, args[0])
}

// encodeText converts all text in a value to bytes. It stops below 200 levels, because a list may contain itself.
func encodeText(v any, depth int) any {
	if depth > 200 {
		return v
	}
	switch v := v.(type) {
	case string:
		return []byte(v)
	case pyobj.Markup:
		return []byte(v)
	case *pyobj.List:
		out := &pyobj.List{Items: make([]any, len(v.Items))}
		for i, x := range v.Items {
			out.Items[i] = encodeText(x, depth+1)
		}
		return out
	// Tuples become lists, as preserve_tuples is false.
	case pyobj.Tuple:
		return encodeText(&pyobj.List{Items: v}, depth)
	case *pyobj.Dict:
		out := &pyobj.Dict{}
		for k, x := range v.All() {
			_ = out.Set(encodeText(k, depth+1), encodeText(x, depth+1))
		}
		return out
	}
	return v
}

// mysqlToDict parses the table that mysql prints and returns its rows by the value of one column.
func mysqlToDict(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("mysql_to_dict", []string{"key"})
	if err != nil {
		return nil, err
	}
	lines, err := jinja.Collect(v)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	var headers []string
	for _, l := range lines {
		line, err := textArg(l)
		if err != nil {
			return nil, err
		}
		// The lines of a table's frame begin with a plus.
		if line == "" || line[0] == '+' {
			continue
		}
		// Columns are framed by vertical bars, so the first and last part are empty.
		parts := strings.Split(line, "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		// The first line with columns holds their names.
		if len(headers) <= 1 {
			headers = parts
			continue
		}
		row := &pyobj.Dict{}
		for i := 1; i < len(headers)-1; i++ {
			if i >= len(parts) {
				return nil, raiseAs("IndexError", "list index out of range")
			}
			x, _ := toNum(parts[i])
			_ = row.Set(headers[i], x)
		}
		// The row is stored under the value of the key column; a later row with the same value replaces it.
		k, ok := row.Get(args[0])
		if !ok {
			return nil, raiseAs("KeyError", pyobj.Repr(args[0]))
		}
		_ = out.Set(k, row)
	}
	return out, nil
}

// flattenFilter implements salt.utils.data.flatten. Without levels all lists are flattened.
func flattenFilter(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("flatten", []string{"levels", "preserve_nulls"}, nil, false)
	if err != nil {
		return nil, err
	}
	keep, err := jinja.Truth(args[1])
	if err != nil {
		return nil, err
	}
	levels := int64(-1)
	if args[0] != nil {
		n, err := jinja.Int(args[0])
		if err != nil {
			return nil, err
		}
		levels, _ = n.(int64)
	}
	out := &pyobj.List{Items: []any{}}
	seen := map[any]bool{}
	var walk func(v any, levels int64, all bool) error
	walk = func(v any, levels int64, all bool) error {
		// The same list a second time is treated as a cycle, as in Salt.
		if l, ok := v.(*pyobj.List); ok {
			if seen[l] {
				return raiseAs("RecursionError", "Reference cycle detected. Check input list.")
			}
			seen[l] = true
		}
		items, err := jinja.Collect(v)
		if err != nil {
			return err
		}
		for _, x := range items {
			// These words stand for None in data that came from other tools.
			if !keep && (x == nil || x == "None" || x == "null") {
				continue
			}
			// Each level of nesting uses one level up.
			if isIter(x) && (all || levels >= 1) {
				if err := walk(x, levels-1, all); err != nil {
					return err
				}
				continue
			}
			out.Items = append(out.Items, x)
		}
		return nil
	}
	return out, walk(v, levels, args[0] == nil)
}

// randomSample implements random_sample and random_shuffle. With a seed the result is that of Python's random, so
// that a minion gets the same order under either.
func randomSample(name string) jinja.Filter {
	return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
		params := []string{"size", "seed"}
		if name == "random_shuffle" {
			params = params[1:]
		}
		args, err := a.Bind(strings.TrimPrefix(name, "random_"), params, nil)
		if err != nil {
			return nil, err
		}
		// A shuffle is a sample of everything.
		if name == "random_shuffle" {
			if _, err := jinja.Length(v); err != nil {
				return nil, err
			}
		}
		// Python's sample refuses sets and dicts, since their order is not defined.
		switch v.(type) {
		case string, pyobj.Markup, []byte, *pyobj.List, pyobj.Tuple, *jinja.Range:
		default:
			return nil, raiseAs("TypeError", "Population must be a sequence.  For dicts or sets, use sorted(d).")
		}
		items, err := jinja.Collect(v)
		if err != nil {
			return nil, err
		}
		n := int64(len(items))
		if name == "random_sample" {
			size, ok := args[0].(int64)
			if !ok {
				return nil, raiseAs("TypeError", "'"+pyobj.TypeName(args[0])+"' object cannot be interpreted as an integer")
			}
			n = size
		}
		if n < 0 || n > int64(len(items)) {
			return nil, raiseAs("ValueError", "Sample larger than population or is negative")
		}
		var picks []int
		// Without a seed the order is random.
		if seed := args[len(args)-1]; seed == nil {
			picks = rand.Perm(len(items))[:n]
		} else {
			b, err := bytesArg(seed)
			if err != nil {
				return nil, raiseAs("TypeError", "object supporting the buffer API required")
			}
			// Salt hashes the seed. Python seeds its generator with the text of that hash, which New does.
			r, err := pyrandom.New(hexDigest(hashname.New("sha512"), b))
			if err != nil {
				return nil, raiseAs("TypeError", err.Error())
			}
			picks = r.Sample(len(items), int(n))
		}
		out := &pyobj.List{Items: make([]any, len(picks))}
		for i, p := range picks {
			out.Items[i] = items[p]
		}
		return out, nil
	}
}

// toEntries converts a dict or list to a list of dicts with a key and a value, as jq does.
func toEntries(v any) (any, error) {
	out := &pyobj.List{Items: []any{}}
	switch v := v.(type) {
	case *pyobj.Dict:
		for k, x := range v.All() {
			out.Items = append(out.Items, pyobj.NewDict("key", k, "value", x))
		}
	// A list has its indices as keys.
	case *pyobj.List:
		for i, x := range v.Items {
			out.Items = append(out.Items, pyobj.NewDict("key", int64(i), "value", x))
		}
	default:
		return nil, raiseAs("SaltException", "Input data must be a dict or list")
	}
	return out, nil
}

// fromEntries reverses toEntries.
func fromEntries(v any) (any, error) {
	items, err := jinja.Collect(v)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	// An entry is a dict, or a value from which Python can create a dict.
	for _, x := range items {
		entry, ok := x.(*pyobj.Dict)
		if !ok {
			if pairs, err := jinja.Collect(x); err != nil {
				return nil, err
			} else if len(pairs) == 0 {
				continue
			} else if pair, err := jinja.Collect(pairs[0]); err != nil {
				return nil, raiseAs("TypeError", "cannot unpack non-iterable "+pyobj.TypeName(pairs[0])+" object")
			} else if len(pair) < 2 {
				return nil, raiseAs("ValueError", "not enough values to unpack (expected 2, got "+pyobj.Str(int64(len(pair)))+")")
			} else if len(pair) > 2 {
				return nil, raiseAs("ValueError", "too many values to unpack (expected 2)")
			}
			entry = &pyobj.Dict{}
			if err := jinja.Update(entry, x); err != nil {
				return nil, err
			}
		}
		// get looks up a key without regard to case. The last match counts.
		get := func(name string) any {
			var found any
			for k, v := range entry.All() {
				if s, ok := k.(string); ok && strings.EqualFold(s, name) {
					found = v
				}
			}
			return found
		}
		// jq accepts both names for the key.
		for _, name := range [...]string{"key", "name"} {
			k := get(name)
			if yes, err := jinja.Truth(k); err != nil {
				return nil, err
			} else if yes {
				if err := out.Set(k, get("value")); err != nil {
					return nil, raiseAs("TypeError", err.Error())
				}
				break
			}
		}
	}
	return out, nil
}
