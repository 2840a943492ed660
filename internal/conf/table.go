package conf

import "strings"

// A fixed is a default that the linker lays out. A map literal would be code, ten times as large.
type fixed struct {
	key   string
	value any
}

// list and object are a list and a dictionary in fixed defaults.
type (
	list   []any
	object []fixed
)

// fresh returns a copy of a fixed default that the caller may change.
func fresh(v any) any {
	switch v := v.(type) {
	case list:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = fresh(x)
		}
		return out
	case object:
		return withFixed(v, nil)
	}
	return v
}

// withFixed adds fixed defaults to built ones, which are created on each call.
func withFixed(table []fixed, built map[string]any) map[string]any {
	all := make(map[string]any, len(table)+len(built))
	for _, f := range table {
		all[f.key] = fresh(f.value)
	}
	for key, value := range built {
		all[key] = value
	}
	return all
}

// validTypesOfAll returns [validTypes] of every option that has one. The configuration of a minion has some 350 options:
// one after the other they took 3 ms of each salt-call.
func validTypesOfAll() map[string]string {
	all := make(map[string]string, 512)
	for _, t := range optionTypes {
		for key := range strings.SplitSeq(strings.Trim(t.options, "\n"), "\n") {
			all[key] = t.types
		}
	}
	return all
}

// validTypes returns the names of the Python types that Salt's VALID_OPTS permits for an option, or "" for an unknown
// option.
func validTypes(key string) string {
	if strings.Contains(key, "\n") {
		return ""
	}
	for _, t := range optionTypes {
		if strings.Contains(t.options, "\n"+key+"\n") {
			return t.types
		}
	}
	return ""
}
