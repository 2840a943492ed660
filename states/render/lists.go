package render

import (
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// isHashable reports whether Python can hash a value. Salt checks this before it works on lists.
func isHashable(v any) bool {
	_, err := pyobj.Hash(v)
	return err == nil
}

// setOf returns the members as a Python set, or a TypeError for one that cannot be hashed.
func setOf(v any) (*pyobj.Set, error) {
	items, err := jinja.Collect(v)
	if err != nil {
		return nil, err
	}
	s := &pyobj.Set{}
	for _, x := range items {
		if err := s.Add(x); err != nil {
			return nil, raiseAs("TypeError", err.Error())
		}
	}
	return s, nil
}

// hasEqual reports whether a list has a member equal to v.
func hasEqual(items []any, v any) bool {
	for _, x := range items {
		if pyobj.Equal(x, v) {
			return true
		}
	}
	return false
}

// uniqueItems implements Salt's filter: a set if the value is hashable, else a list without repeated members.
func uniqueItems(v any) (any, error) {
	// A hashable value becomes a set, although its members may be a text's characters.
	if isHashable(v) {
		return setOf(v)
	}
	items, err := jinja.Collect(v)
	if err != nil {
		return nil, err
	}
	out := &pyobj.List{Items: []any{}}
	for _, x := range items {
		if !hasEqual(out.Items, x) {
			out.Items = append(out.Items, x)
		}
	}
	return out, nil
}

// combineSets implements union, intersect, difference and symmetric_difference. Hashable values become sets; lists
// stay lists.
func combineSets(name string, x, y any) (any, error) {
	// Sets do not keep the order, as in Python.
	if isHashable(x) && isHashable(y) {
		a, err := setOf(x)
		if err != nil {
			return nil, err
		}
		b, err := setOf(y)
		if err != nil {
			return nil, err
		}
		out := &pyobj.Set{}
		for _, v := range a.Members() {
			if name == "union" || b.Has(v) == (name == "intersect") {
				_ = out.Add(v)
			}
		}
		if name == "union" || name == "symmetric_difference" {
			for _, v := range b.Members() {
				if !a.Has(v) {
					_ = out.Add(v)
				}
			}
		}
		return out, nil
	}
	// Lists are joined and then made unique.
	if name == "union" {
		joined, err := jinja.Add(x, y)
		if err != nil {
			return nil, err
		}
		return uniqueItems(joined)
	}
	a, err := jinja.Collect(x)
	if err != nil {
		return nil, err
	}
	b, err := jinja.Collect(y)
	if err != nil {
		return nil, err
	}
	// Salt adds the lists here, too, which fails for different types.
	if name == "symmetric_difference" {
		if _, err := jinja.Add(x, y); err != nil {
			return nil, err
		}
	}
	out := &pyobj.List{}
	for _, v := range a {
		if hasEqual(b, v) == (name == "intersect") {
			out.Items = append(out.Items, v)
		}
	}
	if name == "symmetric_difference" {
		for _, v := range b {
			if !hasEqual(a, v) {
				out.Items = append(out.Items, v)
			}
		}
	}
	return uniqueItems(out)
}

// listFilter returns one of the filters of salt.utils.jinja on lists and scalars, or nil.
func listFilter(name string) jinja.Filter {
	// The functions are those of salt.utils.jinja.
	switch name {
	case "skip":
		return plainFilter(name, func(any) (any, error) { return "", nil })
	case "sequence":
		return plainFilter(name, func(v any) (any, error) {
			switch v.(type) {
			case *pyobj.List, pyobj.Tuple, *pyobj.Set, *pyobj.Dict:
				return v, nil
			}
			return pyobj.NewList(v), nil
		})
	case "to_bool":
		return plainFilter(name, toBool)
	case "quote":
		return plainFilter(name, func(v any) (any, error) {
			// Every false value is quoted as an empty text.
			if yes, err := jinja.Truth(v); err != nil || !yes {
				return "''", err
			}
			s, err := textArg(v)
			return shlex.Quote(s), err
		})
	case "unique":
		return plainFilter(name, uniqueItems)
	case "union", "intersect", "difference", "symmetric_difference":
		return func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind(name, []string{"lst2"})
			if err != nil {
				return nil, err
			}
			return combineSets(name, v, args[0])
		}
	case "min", "max":
		return plainFilter("lst_"+name, func(v any) (any, error) {
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			if len(items) == 0 {
				return nil, raiseAs("ValueError", name+"() arg is an empty sequence")
			}
			return jinja.Extreme(items, nil, name == "max")
		})
	case "avg":
		return plainFilter(name, func(v any) (any, error) {
			// A value that can be hashed is a number to Salt.
			if isHashable(v) {
				return jinja.Float(v)
			}
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			// Python's sum, so that integers stay exact.
			sum := any(int64(0))
			for _, x := range items {
				if sum, err = jinja.Add(sum, x); err != nil {
					return nil, err
				}
			}
			return jinja.Divide(sum, int64(len(items)))
		})
	case "method_call":
		return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
			if len(a.Pos) == 0 {
				return nil, raiseAs("TypeError", "method_call() missing 1 required positional argument: 'f_name'")
			}
			f, err := r.GetAttr(v, pyobj.Str(a.Pos[0]))
			if err != nil {
				return nil, err
			}
			// A missing method results in None, not in an error.
			if _, undef := f.(*jinja.Undefined); undef {
				return nil, nil
			}
			return r.Call(f, jinja.Args{Pos: a.Pos[1:], Kw: a.Kw})
		}
	}
	return nil
}

// toBool implements Salt's filter: yes, 1 and true in any case, positive numbers, and lists that are not empty.
func toBool(v any) (any, error) {
	switch x := v.(type) {
	case nil:
		return false, nil
	case bool:
		return x, nil
	case string, pyobj.Markup:
		s, _ := textArg(x)
		switch lowerASCII(s) {
		case "yes", "1", "true":
			return true, nil
		}
		return false, nil
	case int64:
		return x > 0, nil
	}
	// The value is not hashable: a list or dict, which is true if it is not empty.
	if !isHashable(v) {
		items, err := jinja.Collect(v)
		return len(items) > 0, err
	}
	return false, nil
}

// lowerASCII lowers ASCII letters only, so that no other letter becomes one of "yes".
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return string(b)
}

// maxCombinations limits the results of the filters from itertools: the members of all lists together.
const maxCombinations = 5_000_000

// iterFilter returns one of the filters from Python's itertools, or nil. Python's are lazy. These compute everything
// at once, up to maxCombinations.
func iterFilter(name string) jinja.Filter {
	switch name {
	case "combinations", "combinations_with_replacement", "permutations":
		return strictFilter(func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			defaults := []any{}
			if name == "permutations" {
				// permutations takes all members if no number is given.
				defaults = []any{nil}
			}
			args, err := a.Bind(name, []string{"r"}, defaults...)
			if err != nil {
				return nil, err
			}
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			n := int64(len(items))
			if args[0] != nil {
				var ok bool
				if n, ok = args[0].(int64); !ok {
					return nil, raiseAs("TypeError", "'"+pyobj.TypeName(args[0])+"' object cannot be interpreted as an integer")
				}
			}
			// A negative number is an error in Python, and not an empty result.
			if n < 0 {
				return nil, raiseAs("ValueError", "r must be non-negative")
			}
			return itemChoices(name, items, int(min(n, 1<<20)))
		})
	case "product":
		return strictFilter(func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			lists := [][]any{}
			times := int64(1)
			// repeat is the only keyword.
			for _, kw := range a.Kw {
				if kw.Name == "repeat" {
					times, _ = kw.Value.(int64)
				}
			}
			for _, x := range append([]any{v}, a.Pos...) {
				items, err := jinja.Collect(x)
				if err != nil {
					return nil, err
				}
				lists = append(lists, items)
			}
			// repeat multiplies the lists; 64 is beyond maxCombinations for anything but lists of one.
			one := lists
			for i := int64(1); i < times && i < 64; i++ {
				lists = append(lists, one...)
			}
			// Each list multiplies the tuples so far. The size is checked before they are built.
			out := []any{pyobj.Tuple{}}
			for depth, l := range lists {
				if len(l)*len(out)*(depth+1) > maxCombinations {
					return nil, raiseAs("MemoryError", "too many combinations")
				}
				next := make([]any, 0, len(l)*len(out))
				for _, t := range out {
					for _, x := range l {
						old := t.(pyobj.Tuple)
						next = append(next, append(old[:len(old):len(old)], x))
					}
				}
				out = next
			}
			return jinja.NewIter("itertools.product", out), nil
		})
	case "compress":
		return strictFilter(func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			args, err := a.Bind("compress", []string{"selectors"})
			if err != nil {
				return nil, err
			}
			items, err := jinja.Collect(v)
			if err != nil {
				return nil, err
			}
			sel, err := jinja.Collect(args[0])
			if err != nil {
				return nil, err
			}
			var out []any
			// The result ends with the shorter list.
			for i := range min(len(items), len(sel)) {
				yes, err := jinja.Truth(sel[i])
				if err != nil {
					return nil, err
				}
				if yes {
					out = append(out, items[i])
				}
			}
			return jinja.NewIter("itertools.compress", out), nil
		})
	case "zip", "zip_longest":
		return strictFilter(func(_ *jinja.Run, v any, a jinja.Args) (any, error) {
			var lists [][]any
			// The lengths are known, since the lists are collected.
			shortest, longest := -1, 0
			for _, x := range append([]any{v}, a.Pos...) {
				items, err := jinja.Collect(x)
				if err != nil {
					return nil, err
				}
				lists = append(lists, items)
				longest = max(longest, len(items))
				if shortest < 0 || len(items) < shortest {
					shortest = len(items)
				}
			}
			// zip ends with the shortest list, zip_longest fills up to the longest.
			n := shortest
			var fill any
			if longest*len(lists) > maxCombinations {
				return nil, raiseAs("MemoryError", "too many combinations")
			}
			if name == "zip_longest" {
				n = longest
				fill, _ = a.Get("fillvalue")
			}
			out := make([]any, n)
			for i := range out {
				t := make(pyobj.Tuple, len(lists))
				for j, l := range lists {
					if t[j] = fill; i < len(l) {
						t[j] = l[i]
					}
				}
				out[i] = t
			}
			kind := "zip"
			if name != kind {
				kind = "itertools.zip_longest"
			}
			return jinja.NewIter(kind, out), nil
		})
	}
	return nil
}

// itemChoices returns the ways to pick n members, in Python's order. name is the function of itertools.
func itemChoices(name string, items []any, n int) (any, error) {
	var out []any
	pick := make([]int, 0, n)
	used := make([]bool, len(items))
	full := false
	var walk func(from int)
	walk = func(from int) {
		// Once the limit is reached, the walk unwinds without more results.
		if full {
			return
		}
		if len(pick) == n {
			t := make(pyobj.Tuple, n)
			for i, p := range pick {
				t[i] = items[p]
			}
			if out = append(out, t); len(out)*max(n, 1) > maxCombinations {
				full = true
			}
			return
		}
		// Too few members are left to fill the tuple.
		if name != "combinations_with_replacement" && len(items)-len(pick) < n-len(pick) {
			return
		}
		// A permutation may use earlier members, a combination may not.
		start := from
		if name == "permutations" {
			start = 0
		}
		for i := start; i < len(items); i++ {
			if name == "permutations" && used[i] {
				continue
			}
			used[i] = true
			pick = append(pick, i)
			// With replacement a member may follow itself.
			next := i + 1
			if name == "combinations_with_replacement" {
				next = i
			}
			walk(next)
			pick = pick[:len(pick)-1]
			used[i] = false
		}
	}
	if n <= len(items) || name == "combinations_with_replacement" && len(items) > 0 && n <= 64 {
		walk(0)
	}
	if full {
		return nil, raiseAs("MemoryError", "too many combinations")
	}
	return jinja.NewIter("itertools."+name, out), nil
}
