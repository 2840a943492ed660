package protocol

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/payload"
)

// kwargMark is the key that marks a map in arg as keyword arguments, if its value is true.
const kwargMark = "__kwarg__"

// ParseArgs splits the arguments of a job into positional and keyword arguments
// (salt/minion.py:load_args_and_kwargs). Keyword arguments are maps with __kwarg__ true, and strings of the form
// name=value. The value is parsed by yaml; with a nil yaml it stays a string. Positional strings are left alone,
// because the sender has parsed them. Later keywords replace earlier ones. arg is not changed.
func ParseArgs(arg []any, yaml func(string) any) (args []any, kwargs map[string]any) {
	args, kwargs = make([]any, 0, len(arg)), map[string]any{}
	for _, a := range arg {
		switch a := a.(type) {
		case map[string]any, map[any]any, payload.OrderedMap:
			m := pairsOf(a)
			if on, _ := m.Get(kwargMark); on != any(true) {
				args = append(args, a)
				continue
			}
			for _, p := range m {
				// Python refuses names that are not strings. No function has a parameter named "", so ours leads to
				// the same refusal.
				if name, ok := p.Key.(string); !ok {
					kwargs[""] = p.Value
				} else if name != kwargMark {
					kwargs[name] = p.Value
				}
			}
		case string:
			name, value, ok := SplitKwarg(a)
			switch {
			case !ok:
				args = append(args, a)
			case yaml != nil:
				kwargs[name] = yaml(value)
			default:
				kwargs[name] = value
			}
		default:
			args = append(args, a)
		}
	}
	return args, kwargs
}

// pairsOf returns the entries of a map of any kind.
func pairsOf(v any) payload.OrderedMap {
	m, _ := v.(payload.OrderedMap)
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			m = append(m, payload.Pair{Key: k, Value: x})
		}
	case map[any]any:
		for k, x := range v {
			m = append(m, payload.Pair{Key: k, Value: x})
		}
	}
	return m
}

// SplitKwarg splits "name=value" (salt/utils/args.py:KWARG_REGEX). name begins with a letter or underscore and
// continues with word characters, dots or dashes; "==" after it is not a keyword. value has no newline, except at
// its end.
func SplitKwarg(s string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	if !ok || name == "" || strings.HasPrefix(value, "=") {
		return "", "", false
	}
	value = strings.TrimSuffix(value, "\n") // "$" in Salt's pattern matches before a final newline
	if strings.ContainsRune(value, '\n') {
		return "", "", false
	}
	for i, r := range name {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) && (i > 0 || !unicode.IsDigit(r)):
		case i > 0 && (r == '.' || r == '-'):
		default:
			return "", "", false
		}
	}
	return name, value, utf8.ValidString(name)
}

// Kwargs returns keyword arguments as the map that travels inside arg.
func Kwargs(kwargs map[string]any) map[string]any {
	m := payload.OrderedMap{{Key: kwargMark, Value: true}}.Map()
	for k, v := range kwargs {
		if k != kwargMark {
			m[k] = v
		}
	}
	return m
}
