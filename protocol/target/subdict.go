package target

import (
	"sort"
	"strings"
)

// SubdictMode is how the last part of a delimited expression is compared with a value. Both are compared in lower
// case.
type SubdictMode uint8

// Modes of SubdictMatch.
const (
	// SubdictGlob compares by Glob.
	SubdictGlob SubdictMode = iota
	// SubdictRegex compares by a regular expression anchored at the start.
	SubdictRegex
	// SubdictExact compares for equality.
	SubdictExact
)

// SubdictMatch reports whether data matches "key:key:pattern" (salt.utils.data.subdict_match). The longest key that
// exists is tried first, and the key "*" means any key. An invalid pattern, or an expression beyond the limits,
// matches nothing.
func SubdictMatch(data any, expr, delimiter string, m SubdictMode) bool {
	if delimiter == "" {
		delimiter = DefaultDelimiter
	}
	r := run{subject: &Subject{}}
	ok, err := r.matchSubdict(data, expr, delimiter, m)
	return ok && err == nil
}

// matchSubdict implements the recursion of Salt's function subdict_match. Keys may contain the delimiter, so it tries
// keys from the longest to the shortest.
func (r *run) matchSubdict(data any, expr, delimiter string, m SubdictMode) (bool, error) {
	if strings.Count(expr, delimiter) >= maxSplits {
		return false, ErrLimit
	}
	splits := strings.Split(expr, delimiter)
	found := traversePrefixes(data, splits)
	for i := len(splits) - 1; i > 0; i-- {
		if err := r.spendStep(); err != nil {
			return false, err
		}
		var value any
		pattern := expr
		if i == 1 && splits[0] == "*" {
			// "*" at the top level: match the whole expression against the whole data.
			value = data
		} else {
			// This key does not exist; a shorter one may.
			if i > len(found) {
				continue
			}
			value, pattern = found[i-1], exprTail(expr, splits, i, delimiter)
		}
		ok, err := r.matchValue(value, pattern, m)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// exprTail returns the expression after the first n parts.
func exprTail(expr string, splits []string, n int, delimiter string) string {
	skip := n * len(delimiter)
	for _, s := range splits[:n] {
		skip += len(s)
	}
	return expr[skip:]
}

// matchValue compares the value of a key with the rest of the expression.
func (r *run) matchValue(value any, pattern string, m SubdictMode) (bool, error) {
	switch v := value.(type) {
	case map[string]any, map[any]any:
		if mapLen(v) == 0 {
			return false, nil
		}
		return r.matchDict(v, pattern, m)
	// A member of a list matches as a map or by its text.
	case []any:
		for _, member := range v {
			if isMap(member) {
				if ok, err := r.matchDict(member, pattern, m); ok || err != nil {
					return ok, err
				}
			}
			if ok, err := r.matchScalar(member, pattern, m); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	case []string:
		for _, member := range v {
			if ok, err := r.matchScalar(member, pattern, m); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	return r.matchScalar(value, pattern, m)
}

// matchDict implements Salt's _dict_match: a map matches by one of its keys, or by something inside it.
func (r *run) matchDict(target any, pattern string, m SubdictMode) (bool, error) {
	if err := r.spendStep(); err != nil {
		return false, err
	}
	// "*:" means one level down, for every key.
	pattern, wildcard := strings.CutPrefix(pattern, "*:")
	if pattern == "*" || hasKey(target, pattern) {
		return true, nil
	}
	for key := range mapKeys(target) {
		if ok, err := r.matchScalar(key, pattern, m); ok || err != nil {
			return ok, err
		}
	}
	// Below the top level Salt always uses the default delimiter.
	if strings.Contains(pattern, DefaultDelimiter) {
		if ok, err := r.matchSubdict(target, pattern, DefaultDelimiter, m); ok || err != nil {
			return ok, err
		}
	}
	if !wildcard {
		return false, nil
	}
	for value := range mapValues(target) {
		ok, err := r.matchBelow(value, pattern, m)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// matchBelow compares one value one level below a "*" key. Maps inside lists match by their text only, as in Salt.
func (r *run) matchBelow(value any, pattern string, m SubdictMode) (bool, error) {
	switch v := value.(type) {
	case map[string]any, map[any]any:
		return r.matchDict(v, pattern, m)
	case []any:
		for _, member := range v {
			if ok, err := r.matchScalar(member, pattern, m); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	return r.matchScalar(value, pattern, m)
}

// matchScalar compares the text of a value with a pattern, both in lower case. Long texts cost several steps, so that
// the budget limits time, not only comparisons.
func (r *run) matchScalar(value any, pattern string, m SubdictMode) (bool, error) {
	if err := r.spendStep(); err != nil {
		return false, err
	}
	s := lower(Str(value))
	// Long texts take time to lower and to compare.
	if r.steps += len(s) / 64; len(s) > maxText || r.steps > maxSteps {
		return false, ErrLimit
	}
	switch m {
	case SubdictExact:
		return s == lower(pattern), nil
	case SubdictRegex:
		// A pattern that does not compile matches nothing.
		re := r.regexFor(lower(pattern))
		if re == nil {
			return false, nil
		}
		return re.MatchStart(s)
	}
	return r.globFor(lower(pattern)).match(s), nil
}

// Traverse follows "key:key:…" through maps and lists (salt.utils.data.traverse_dict_and_list). A list is entered
// by an index (a negative one counts from the end) or through its first map that has the key. A key that does not
// exist as a string is tried as the number, bool or null that YAML reads from it. An empty delimiter means
// DefaultDelimiter.
func Traverse(data any, key, delimiter string) (any, bool) {
	if delimiter == "" {
		delimiter = DefaultDelimiter
	}
	for rest, more := key, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, delimiter)
		var ok bool
		if data, ok = enterPart(data, part); !ok {
			return nil, false
		}
	}
	return data, true
}

// traversePrefixes returns the values of the first part, the first two parts and so on, up to the first that does not
// exist.
func traversePrefixes(data any, parts []string) []any {
	var found []any
	for _, part := range parts[:len(parts)-1] {
		var ok bool
		if data, ok = enterPart(data, part); !ok {
			break
		}
		found = append(found, data)
	}
	return found
}

// enterPart does one step of Traverse.
func enterPart(data any, part string) (any, bool) {
	switch v := data.(type) {
	case map[string]any:
		if x, ok := v[part]; ok {
			return x, true
		}
		// Try the key that YAML reads from the text, for example a quoted name.
		if key, ok := yamlKey(part); ok {
			if s, isText := key.(string); isText {
				x, ok := v[s]
				return x, ok
			}
		}
		return nil, false
	case map[any]any:
		if x, ok := v[part]; ok {
			return x, true
		}
		if key, ok := yamlKey(part); ok {
			return lookupEqual(v, key)
		}
		return nil, false
	case []any:
		return enterList(v, part)
	case []string:
		i, ok := pythonInt(part)
		if !ok {
			return nil, false
		}
		// Negative indices count from the end.
		if i < 0 {
			i += int64(len(v))
		}
		if i < 0 || i >= int64(len(v)) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// enterList does one step into a list: through its first map that has the key, or by an index.
func enterList(list []any, part string) (any, bool) {
	i, isInt := pythonInt(part)
	for _, member := range list {
		switch m := member.(type) {
		case map[string]any:
			if isInt {
				continue
			}
			if x, ok := m[part]; ok {
				return x, true
			}
		case map[any]any:
			if isInt {
				if x, ok := lookupEqual(m, i); ok {
					return x, true
				}
			} else if x, ok := m[part]; ok {
				return x, true
			}
		}
	}
	if !isInt {
		return nil, false
	}
	if i < 0 {
		i += int64(len(list))
	}
	if i < 0 || i >= int64(len(list)) {
		return nil, false
	}
	return list[i], true
}

// lookupEqual finds a key by Python's equality, in which 1, 1.0 and True are equal.
func lookupEqual(m map[any]any, key any) (any, bool) {
	if x, ok := m[key]; ok {
		return x, true
	}
	// Go's maps also compare types, so search for an equal number.
	want, ok := numberOf(key)
	if !ok {
		return nil, false
	}
	for k, x := range m {
		if got, ok := numberOf(k); ok && got == want {
			return x, true
		}
	}
	return nil, false
}

// numberOf returns a number or bool as a float, by which Python compares them.
func numberOf(v any) (float64, bool) {
	switch n := v.(type) {
	case bool:
		if n {
			return 1, true
		}
		return 0, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// isMap, mapLen, hasKey, mapKeys and mapValues work on both types of maps.
func isMap(v any) bool {
	switch v.(type) {
	case map[string]any, map[any]any:
		return true
	}
	return false
}

func mapLen(v any) int {
	switch m := v.(type) {
	case map[string]any:
		return len(m)
	case map[any]any:
		return len(m)
	}
	return 0
}

func hasKey(v any, key string) bool {
	switch m := v.(type) {
	case map[string]any:
		_, ok := m[key]
		return ok
	case map[any]any:
		_, ok := m[key]
		return ok
	}
	return false
}

// mapKeys yields the keys in no particular order. No result depends on the order.
func mapKeys(v any) func(func(any) bool) {
	return func(yield func(any) bool) {
		switch m := v.(type) {
		case map[string]any:
			for k := range m {
				if !yield(k) {
					return
				}
			}
		case map[any]any:
			for k := range m {
				if !yield(k) {
					return
				}
			}
		}
	}
}

func mapValues(v any) func(func(any) bool) {
	return func(yield func(any) bool) {
		switch m := v.(type) {
		case map[string]any:
			for _, x := range m {
				if !yield(x) {
					return
				}
			}
		case map[any]any:
			for _, x := range m {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// sortedKeys returns the keys sorted by their text.
func sortedKeys(m map[any]any) []any {
	keys := make([]any, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return Str(keys[i]) < Str(keys[j]) })
	return keys
}
