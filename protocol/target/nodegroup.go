package target

import (
	"fmt"
	"strings"
)

// NodegroupWords returns the compound words of a node group, with nested groups expanded
// (salt.utils.minions.nodegroup_comp). A definition is a string or a list of words. As in Salt, a definition without
// nested groups is returned as it is, without parentheses, and one that consists of names becomes one "L@…" word.
//
// Unknown and looping groups are an error that wraps ErrNodegroup. Salt leaves holes in the expression instead,
// which can make it match more minions than intended.
func NodegroupWords(name string, groups map[string]any) ([]string, error) {
	x := expander{groups: groups, open: make(map[string]bool)}
	return x.expandGroup(name, true)
}

// ExpandNodegroups replaces each N@ word of a compound expression, as Salt's client does before it publishes
// (salt.client.LocalClient._prep_pub).
func ExpandNodegroups(expr string, groups map[string]any) (string, error) {
	var words []string
	for _, w := range splitWords(expr) {
		name, found := strings.CutPrefix(w, "N@")
		if !found || name == "" {
			words = append(words, w)
			continue
		}
		expanded, err := NodegroupWords(name, groups)
		if err != nil {
			return "", err
		}
		if words = append(words, expanded...); len(words) > maxWords {
			return "", ErrLimit
		}
	}
	return strings.Join(words, " "), nil
}

// isOperator reports whether a word is an operator of compound expressions.
func isOperator(w string) bool {
	switch w {
	case "and", "or", "not", "(", ")":
		return true
	}
	return false
}

// splitWords implements Python's str.split.
func splitWords(s string) []string { return strings.FieldsFunc(s, isSpace) }

// An expander expands nested groups. open holds the groups that contain the current one, to detect loops. total
// counts the words of all groups, which are limited.
type expander struct {
	groups map[string]any
	open   map[string]bool
	total  int
}

// expandGroup returns the words of a group. first is true for the outermost group.
func (x *expander) expandGroup(name string, first bool) ([]string, error) {
	if x.open[name] {
		return nil, fmt.Errorf("%w: %s contains itself", ErrNodegroup, quoted(name))
	}
	definition, ok := x.groups[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s is not defined", ErrNodegroup, quoted(name))
	}
	words, err := definitionWords(name, definition)
	if err != nil {
		return nil, err
	}
	x.open[name] = true
	defer delete(x.open, name)
	var out []string
	nested := false
	// Each nested group is replaced by its words in parentheses.
	for _, w := range words {
		if inner, found := strings.CutPrefix(w, "N@"); found && inner != "" {
			nested = true
			more, err := x.expandGroup(inner, false)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		} else {
			out = append(out, w)
		}
		if x.total++; x.total > maxWords || len(out) > maxWords {
			return nil, ErrLimit
		}
	}
	if first && nested {
		return parenthesized(out), nil
	}
	if joined := joinNames(words); joined != "" {
		return []string{joined}, nil
	}
	if first {
		return words, nil
	}
	return parenthesized(out), nil
}

// parenthesized puts words between parentheses. It returns nil for no words.
func parenthesized(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	out := make([]string, 0, len(words)+2)
	return append(append(append(out, "("), words...), ")")
}

// definitionWords returns the words of a definition, which is a string or a list.
func definitionWords(name string, definition any) ([]string, error) {
	switch d := definition.(type) {
	case string:
		return splitWords(d), nil
	case []string:
		return d, nil
	case []any:
		words := make([]string, len(d))
		for i, w := range d {
			words[i] = Str(w)
		}
		return words, nil
	}
	return nil, fmt.Errorf("%w: %s is neither text nor a list", ErrNodegroup, quoted(name))
}

// joinNames joins a definition that has no operators, wildcards or engine letters into one word: a list of ids, or a
// regular expression if it looks like one (salt.utils.minions._nodegroup_regex). It returns "" for any other
// definition.
func joinNames(words []string) string {
	if len(words) == 0 {
		return "L@"
	}
	// Any special character of regular expressions makes the whole word one.
	regex := false
	for _, w := range words {
		if isOperator(w) || strings.Contains(w, "*") || len(w) > 1 && w[0] >= 'A' && w[0] <= 'Z' && w[1] == '@' {
			return ""
		}
		regex = regex || strings.ContainsAny(w, `([{\?}])`)
	}
	if regex {
		return "E@" + strings.Join(words, ",")
	}
	return "L@" + strings.Join(words, ",")
}
