// Package fields reads fields of jobs, returns and requests: maps in wire form, whose values may have any type.
// A value of another type than requested counts as missing.
package fields

import "github.com/brine-salt/brine/protocol/payload"

// Text returns a text field, "" if it is missing.
func Text(load map[string]any, key string) string {
	s, _ := payload.Text(load[key])
	return s
}

// List returns a value that is a list, nil if it is not.
func List(v any) []any {
	l, _ := payload.List(v)
	return l
}

// Texts returns the strings in a list. It is never nil, because some requests distinguish an empty list from a
// missing one.
func Texts(v any) []string {
	list, _ := payload.List(v)
	out := make([]string, 0, len(list))
	for _, x := range list {
		if s, ok := payload.Text(x); ok {
			out = append(out, s)
		}
	}
	return out
}

// Functions returns the functions of a job: one name, or the list of a compound command.
func Functions(fun any) []string {
	list, many := payload.List(fun)
	if !many {
		list = []any{fun}
	}
	funs := make([]string, len(list))
	for i, f := range list {
		funs[i], _ = payload.Text(f)
	}
	return funs
}

// FirstCode returns the retcode of a return; for compound commands the first that is not 0.
func FirstCode(v any) int {
	if n, ok := payload.Int(v); ok {
		return int(n)
	}
	list, _ := payload.List(v)
	if m, ok := payload.Map(v); ok {
		for _, x := range m {
			list = append(list, x)
		}
	}
	for _, x := range list {
		if n, ok := payload.Int(x); ok && n != 0 {
			return int(n)
		}
	}
	return 0
}

// Has reports whether a set has a member.
func Has[V any](set map[string]V, id string) bool {
	_, ok := set[id]
	return ok
}

// Brief shortens text from a peer for the log.
func Brief(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
