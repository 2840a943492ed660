package test

import (
	"context"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// kinds are the types that check_pillar knows: the argument, and how Python shows the type.
var kinds = [...]struct{ arg, shown string }{
	{"present", "None"}, {"boolean", "<class 'bool'>"}, {"integer", "<class 'int'>"}, {"string", "(<class 'str'>,)"},
	{"listing", "<class 'list'>"}, {"dictionary", "<class 'dict'>"},
}

// isKind implements Python's isinstance: a bool is an integer as well.
func isKind(arg string, v any) bool {
	switch v.(type) {
	case bool:
		return arg == "boolean" || arg == "integer"
	case int64, uint64, int:
		return arg == "integer"
	case string:
		return arg == "string"
	case []any:
		return arg == "listing"
	case map[string]any, map[any]any:
		return arg == "dictionary"
	}
	return false
}

// verdict is the result for one key.
type verdict struct{ key, shown string }

func checkPillar(ctx context.Context, c *states.Call) (*states.Result, error) {
	asked := false
	for _, k := range kinds {
		asked = asked || c.Bool(k.arg)
	}
	if !asked {
		return nil, modules.Usagef("Missing required argument text.")
	}
	ret := c.Result()
	ret.Result = states.True
	var failed, fine []verdict
	for _, k := range kinds {
		var keys []string
		switch v := c.Value(k.arg).(type) {
		case string, []any:
			keys = []string{}
			if s, ok := v.(string); !ok {
				keys = c.Strings(k.arg)
			} else if s != "" {
				keys = []string{s}
			}
		default:
			if c.Bool(k.arg) {
				return nil, &modules.TypeError{}
			}
		}
		for _, key := range keys {
			v, err := c.Exec(ctx, "pillar.get", key, nil)
			if err != nil {
				return nil, err
			}
			switch {
			case v == nil:
				failed = put(failed, verdict{key, ""})
			case k.arg != "present" && !isKind(k.arg, v):
				failed = put(failed, verdict{key, k.shown})
			case c.Bool("verbose"):
				fine = put(fine, verdict{key, k.shown})
			}
		}
	}
	for _, f := range failed {
		ret.Result = states.False
		if f.shown == "" {
			ret.Comment += `Pillar key "` + f.key + "\" is missing.\n"
		} else {
			ret.Comment += `Pillar key "` + f.key + `" is not ` + f.shown + ".\n"
		}
	}
	if len(fine) > 0 {
		ret.Comment += "Those keys passed the check:\n"
		for _, f := range fine {
			ret.Comment += "- " + f.key + " (" + f.shown + ")\n"
		}
	}
	return ret, nil
}

// put adds a verdict, or replaces the one on the same key.
func put(list []verdict, v verdict) []verdict {
	for i := range list {
		if list[i].key == v.key {
			list[i] = v
			return list
		}
	}
	return append(list, v)
}
