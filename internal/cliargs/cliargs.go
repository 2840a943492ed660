// Package cliargs parses command line arguments as Salt does (salt/utils/args.py: parse_input, parse_kwarg,
// yamlify_arg, condition_input): name=value becomes a keyword argument, and values are YAML.
package cliargs

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Value parses one argument as YAML, or returns the text itself if it is not YAML. It never fails.
func Value(s string) any { return yaml.ParseValue(s) }

// NoParse splits the value of --no-parse: names of arguments whose values stay text.
func NoParse(list string) []string {
	if list == "" {
		return nil
	}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// Parse parses the arguments after a function's name. If a name is given twice, the last value counts. kwargs is
// never nil.
func Parse(list, noParse []string) (args []any, kwargs map[string]any) {
	return parse(list, noParse, Value)
}

// ParseOrdered is like Parse, but returns dictionaries as payload.OrderedMap, for arguments that are sent to minions.
func ParseOrdered(list, noParse []string) (args []any, kwargs map[string]any) {
	return parse(list, noParse, func(s string) any { return ordered.ToWire(yaml.ParseValueObject(s)) })
}

func parse(list, noParse []string, value func(string) any) (args []any, kwargs map[string]any) {
	args, kwargs = []any{}, map[string]any{}
	for _, text := range list {
		name, given, ok := Keyword(text)
		switch {
		case !ok:
			args = append(args, condition(value(text)))
		case contains(noParse, name):
			kwargs[name] = given
		default:
			kwargs[name] = value(given)
		}
	}
	return args, kwargs
}

// Keyword splits name=value. ok is false for other text. A name begins with a letter or underscore and continues with
// these, digits, dots and dashes. The value does not begin with "=" and has no line break, except for a final one,
// which is dropped.
func Keyword(s string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	if !ok || name == "" || strings.HasPrefix(value, "=") {
		return "", "", false
	}
	for i, r := range name {
		word := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if i == 0 && (!word || unicode.Is(unicode.Nd, r)) || !word && r != '.' && r != '-' {
			return "", "", false
		}
	}
	value = strings.TrimSuffix(value, "\n")
	if strings.Contains(value, "\n") {
		return "", "", false
	}
	return name, value, true
}

// condition turns numbers that look like job ids back into text.
func condition(v any) any {
	var text string
	switch v := v.(type) {
	case int64:
		text = strconv.FormatInt(v, 10)
	case uint64:
		text = strconv.FormatUint(v, 10)
	default:
		return v
	}
	if len(text) == 20 {
		return text
	}
	return v
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// Values parses arguments from a request like the command line's arguments, except for the keywords in noParse, whose
// values are final; "*" means all keywords.
func Values(args []any, noParse any) (pos []any, kwargs map[string]any) {
	keep := make(map[string]bool)
	list, _ := payload.List(noParse)
	for _, x := range list {
		if s, ok := payload.Text(x); ok {
			keep[s] = true
		}
	}
	pos, kwargs = protocol.ParseArgs(args, nil)
	if keep["*"] {
		return pos, kwargs
	}
	for i, a := range pos {
		if s, ok := a.(string); ok {
			pos[i] = Value(s)
		}
	}
	for k, a := range kwargs {
		if s, ok := a.(string); ok && !keep[k] {
			kwargs[k] = Value(s)
		}
	}
	return pos, kwargs
}
