package conf

import "strings"

// fixed is a default that the linker lays out: a map literal of such values is code that runs, ten times as large.
type fixed struct {
	key   string
	value any
}

// list and object are a list and a dictionary among fixed defaults.
type (
	list   []any
	object []fixed
)

// fresh returns a fixed default as a value that belongs to the caller.
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

// withFixed adds fixed defaults to those that are built again each time.
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

// validTypes returns the names of the Python types that Salt's VALID_OPTS allows for an option, or "" for an unknown option.
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
