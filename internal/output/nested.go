package output

import (
	"sort"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/protocol/payload"
)

// nested implements salt/output/nested.py.
func (r *renderer) nested(v any, indent int) string {
	n := nester{renderer: r}
	n.display(v, indent, "")
	return strings.Join(n.lines, "\n")
}

type nester struct {
	*renderer
	lines []string
}

func (n *nester) line(indent int, color, prefix, msg, suffix string) {
	n.lines = append(n.lines, strings.Repeat(" ", indent)+color+prefix+msg+n.colors.end+suffix)
}

func (n *nester) display(v any, indent int, prefix string) {
	list, mapping := n.colors.green, n.colors.cyan
	if n.Retcode != 0 {
		list, mapping = n.colors.red, n.colors.red
	}
	switch {
	case v == nil:
		n.line(indent, n.colors.lightYellow, prefix, "None", "")
		return
	case isNumber(v) || isInt(v):
		n.line(indent, n.colors.lightYellow, prefix, pytext.Repr(v), "")
		return
	}
	if _, isBytes := v.([]byte); isBytes {
		if _, ok := asText(v); !ok {
			return // Salt shows nothing for bytes that are not text
		}
	}
	if s, ok := asText(v); ok {
		for i, line := range pytext.SplitLines(s, false) {
			if i == 1 {
				prefix = strings.Repeat(" ", len(prefix))
			}
			n.line(indent, n.colors.green, prefix, n.stripEscapes(line), "")
		}
		return
	}
	if elements, ok := items(v); ok {
		for _, e := range elements {
			_, isMap := entries(e)
			_, isList := items(e)
			switch {
			case isMap:
				n.line(indent, list, "", "|_", "")
				n.display(e, indent+2, "")
			case isList:
				n.line(indent, list, "", "|_", "")
				n.display(e, indent+2, "- ")
			default:
				n.display(e, indent, "- ")
			}
		}
		return
	}
	m, ok := entries(v)
	if !ok {
		n.display(pytext.Str(v), indent, prefix)
		return
	}
	if indent > 0 {
		n.line(indent, mapping, "", "----------", "")
	}
	if _, given := v.(payload.OrderedMap); !given || !n.KeepOrder {
		m = nestedOrder(m)
	}
	for _, e := range m {
		n.line(indent, mapping, prefix, pytext.Str(e.key), ":")
		n.display(e.value, indent+4, "")
	}
}

// nestedOrder sorts keys as Python does: numbers as numbers and texts as texts, but a mixture of both as texts.
func nestedOrder(m []entry) []entry {
	kinds := 0
	for _, e := range m {
		switch e.key.(type) {
		case string:
			kinds |= 1
		case int64, uint64, float64, bool:
			kinds |= 2
		default:
			kinds |= 4
		}
	}
	less := func(i, j int) bool { return pytext.Less(m[i].key, m[j].key) }
	if kinds&(kinds-1) != 0 {
		less = func(i, j int) bool { return pytext.Str(m[i].key) < pytext.Str(m[j].key) }
	}
	sort.SliceStable(m, less)
	return m
}

// noReturn implements salt/output/no_return.py.
func (r *renderer) noReturn(v any, indent int) (string, error) {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	if s, ok := v.(string); ok {
		for line := range strings.SplitSeq(s, "\n") {
			b.WriteString(r.colors.red + pad + line + r.colors.end + "\n")
		}
	} else if m, ok := entries(v); ok {
		if mixedKeys(m) {
			return "", errShape
		}
		for _, e := range nestedOrder(m) {
			inner, err := r.noReturn(e.value, indent+4)
			if err != nil {
				return "", err
			}
			b.WriteString(r.colors.cyan + pad + pytext.Str(e.key) + r.colors.end + ":\n" + inner)
		}
	}
	return b.String(), nil
}

// key implements salt/output/key.py: the keys grouped by status.
func (r *renderer) key(v any) (string, error) {
	m, ok := entries(v)
	if !ok {
		return "", errShape
	}
	pad := ""
	if r.MultiKey {
		pad = "    "
	}
	var b strings.Builder
	for _, e := range nestedOrder(m) {
		title, titleColor, color := "", "", ""
		switch e.key {
		case "minions":
			title, titleColor, color = "Accepted Keys:", r.colors.lightGreen, r.colors.green
		case "minions_pre":
			title, titleColor, color = "Unaccepted Keys:", r.colors.lightRed, r.colors.red
		case "minions_denied":
			title, titleColor, color = "Denied Keys:", r.colors.lightMagenta, r.colors.magenta
		case "minions_rejected":
			title, titleColor, color = "Rejected Keys:", r.colors.lightBlue, r.colors.blue
		case "local":
			title, titleColor, color = "Local Keys:", r.colors.lightMagenta, r.colors.magenta
		default:
			return "", errShape
		}
		b.WriteString(pad + titleColor + title + r.colors.end + "\n")
		if list, ok := items(e.value); ok {
			names := make([]string, len(list))
			for i, k := range list {
				names[i] = pytext.Str(k)
			}
			sort.Strings(names)
			for _, k := range names {
				b.WriteString(pad + color + r.stripEscapes(k) + r.colors.end + "\n")
			}
			continue
		}
		keys, _ := entries(e.value)
		for _, k := range nestedOrder(keys) {
			b.WriteString(pad + color + r.stripEscapes(pytext.Str(k.key)) + ":  " + pytext.Str(k.value) + r.colors.end + "\n")
		}
	}
	return b.String(), nil
}
