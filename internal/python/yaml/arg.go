package yaml

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// ParseValue converts a command-line argument to a typed value, as salt.utils.args.yamlify_arg does. It parses the
// argument as YAML, but comments, and mappings without braces, remain text. It never fails.
func ParseValue(s string) any { return parseValue(s, forms{}) }

// ParseValueObject is like [ParseValue] but returns the values of [ParseObject], whose dicts keep their order.
func ParseValueObject(s string) any { return parseValue(s, forms{objects: true}) }

// Values parses several values of one request. Their aliases count together against MaxAliased.
type Values struct{ aliased int }

// ParseObject is like [ParseValueObject]. The error wraps ErrLimit: the aliases of this value and those before it stand
// for more than MaxAliased nodes.
func (v *Values) ParseObject(s string) (any, error) {
	out := parseValue(s, forms{objects: true, aliased: &v.aliased})
	// guard: small-bodies TestValuesShareAliases,master/restapi/internal/exchange:TestFormAliases
	if v.aliased > MaxAliased {
		return nil, fmt.Errorf("aliases stand for more than %d nodes: %w", MaxAliased, ErrLimit)
	}
	return out, nil
}

func parseValue(s string, f forms) any {
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "" || trimmed == "---" || trimmed == "...":
		return s
	case strings.Contains(s, "_") && strings.Trim(trimmed, "0123456789_") == "":
		// Only digits and underscores: YAML would drop the underscores.
		return s
	case strings.ContainsAny(s, "\t\r\n"):
		return s
	case s == "None":
		return nil
	}
	v, err := parse([]byte(s), "<unicode string>", f)
	if err != nil {
		return s
	}
	if strings.Contains(s, "#") {
		if _, text := v.(string); text || v == nil {
			return s
		}
		return v
	}
	switch v := v.(type) {
	case map[string]any, map[any]any, *pyobj.Dict:
		if !strings.HasPrefix(s, "{") {
			return s
		}
	case []any, *pyobj.List:
		if !strings.HasPrefix(s, "[") {
			return s
		}
	case []byte:
		return s
	case string:
		if v == "" && (s == "|" || s == "!") {
			return s
		}
	case nil:
		if s == "!" {
			return s
		}
	}
	return v
}
