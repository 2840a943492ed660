//go:build unix

package file

import (
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// ordered returns an argument in the order of the SLS, with collections of package pyobj. An argument that contains
// slots is plain.
func (j *job) ordered(name string) any { return j.orderedOf(name, j.Value(name)) }

// orderedOf is like ordered for an argument with the plain value v.
func (j *job) orderedOf(name string, v any) any {
	switch v.(type) {
	case map[string]any, map[any]any, []any:
		if o := j.Low.Ordered(name); o != nil && !hasSlot(o) {
			return o
		}
	}
	return v
}

func hasSlot(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(v, "__slot__:")
	case *pyobj.List:
		for _, x := range v.Items {
			if hasSlot(x) {
				return true
			}
		}
	case *pyobj.Dict:
		for _, x := range v.All() {
			if hasSlot(x) {
				return true
			}
		}
	}
	return false
}

// scheme returns the scheme of a URL in lower case, or "" if it has none.
func scheme(url string) string {
	name, _, ok := strings.Cut(strings.TrimLeftFunc(url, func(r rune) bool { return r <= ' ' }), ":")
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '+' && r != '-' && r != '.' && (r < '0' || r > '9')) {
			return ""
		}
	}
	if !ok {
		return ""
	}
	return strings.ToLower(name)
}
