package output

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// tabler implements salt/output/table_out.py.
type tabler struct {
	*renderer
	header, separate                                                 bool
	rowDelimiter, delim, justify, prefix, suffix, rowsKey, labelsKey string
	width                                                            int
	out                                                              []string
}

func (r *renderer) table(v any) (string, error) {
	t := tabler{renderer: r, header: true, separate: true, rowDelimiter: "-", delim: " | ", justify: "center",
		prefix: "| ", suffix: " |", width: 50}
	set := func(name string, to *string) {
		if s, ok := r.Table[name].(string); ok && s != "" {
			*to = s
		}
	}
	set("row_delimiter", &t.rowDelimiter)
	set("delim", &t.delim)
	set("justify", &t.justify)
	set("prefix", &t.prefix)
	set("suffix", &t.suffix)
	set("rows_key", &t.rowsKey)
	set("labels_key", &t.labelsKey)
	if b, ok := r.Table["has_header"].(bool); ok {
		t.header = b
	}
	if b, ok := r.Table["separate_rows"].(bool); ok {
		t.separate = b
	}
	if n, ok := r.Table["width"].(int64); ok && n > 0 {
		t.width = int(n)
	}
	indent := r.NestedIndent
	if n, ok := r.Table["nested_indent"].(int64); ok && indent == 0 && n > 0 {
		indent = int(n)
	}
	if title, _ := r.Table["title"].(string); title != "" && t.rowsKey != "" {
		// Salt passes the title and the colour in the wrong order.
		t.out = append(t.out, strings.Repeat(" ", indent)+title+r.colors.white+r.colors.end+"\n")
	}
	if err := t.display(v, indent); err != nil {
		return "", err
	}
	return strings.Join(t.out, "\n"), nil
}

func (t *tabler) line(indent int, color, msg, suffix string) {
	t.out = append(t.out, strings.Repeat(" ", indent)+color+msg+t.colors.end+suffix)
}

func (t *tabler) display(v any, indent int) error {
	if list, ok := items(v); ok {
		if t.rowsKey == "" {
			return t.rows(list, nil, indent)
		}
		return nil
	}
	m, ok := entries(v)
	if !ok {
		return nil
	}
	if mixedKeys(m) {
		return errShape
	}
	m = nestedOrder(m)
	found := t.rowsKey == ""
	var labels any
	for _, e := range m {
		found = found || e.key == t.rowsKey
		if t.labelsKey != "" && e.key == t.labelsKey {
			labels = e.value
		}
	}
	for _, e := range m {
		if !found {
			if err := t.display(e.value, indent); err != nil {
				return err
			}
			continue
		}
		if t.rowsKey != "" && e.key != t.rowsKey {
			continue
		}
		if t.rowsKey == "" {
			t.line(indent, t.colors.darkGray, pytext.Str(e.key), ":")
			t.line(indent, t.colors.darkGray, "----------", "")
		}
		var err error
		if list, ok := items(e.value); ok {
			err = t.rows(list, labels, indent)
		} else {
			err = t.display(e.value, indent+4)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mixedKeys(m []entry) bool {
	for i := range m {
		if _, a := m[i].key.(string); i > 0 {
			if _, b := m[0].key.(string); a != b {
				return true
			}
		}
	}
	return false
}

// rows shows a list of mappings, lists or texts. Like Salt it shows nothing for a list of mixed kinds.
func (t *tabler) rows(rows []any, labels any, indent int) error {
	if len(rows) == 0 {
		return nil
	}
	kind := func(v any) string {
		if _, ok := entries(v); ok {
			return "dict"
		}
		if _, ok := items(v); ok {
			return "list"
		}
		return fmt.Sprintf("%T", v)
	}
	for _, row := range rows {
		if kind(row) != kind(rows[0]) {
			return nil
		}
	}
	var heads []string
	if m, ok := entries(labels); ok {
		for _, e := range nestedOrder(m) {
			heads = append(heads, pytext.Str(e.value))
		}
	} else if list, ok := items(labels); ok {
		for _, l := range list {
			heads = append(heads, pytext.Str(l))
		}
	}
	var table [][]string
	for i, row := range rows {
		var cells []string
		if m, ok := entries(row); ok {
			m = nestedOrder(m)
			if i == 0 && len(heads) == 0 {
				for _, e := range m {
					heads = append(heads, titleCase(strings.ReplaceAll(pytext.Str(e.key), "_", " ")))
				}
			}
			for _, e := range m {
				cells = append(cells, pytext.Str(plain(e.value)))
			}
		} else if list, ok := items(row); ok {
			for _, e := range list {
				s, ok := asText(e)
				if !ok {
					return errShape
				}
				cells = append(cells, s)
			}
		} else if s, ok := asText(row); ok {
			cells = []string{s}
		} else {
			return errShape
		}
		if len(cells) == 0 {
			return errShape
		}
		table = append(table, cells)
	}
	if len(heads) > 0 {
		table = append([][]string{heads}, table...)
	}
	t.draw(table, indent+4, t.header && len(heads) > 0)
	return nil
}

func (t *tabler) draw(table [][]string, indent int, header bool) {
	var logical [][][]string // rows of cells of lines
	columns := -1
	for _, row := range table {
		lines := -1
		var cells [][]string
		for _, cell := range row {
			wrapped := strings.Split(t.wrap(cell), "\n")
			cells = append(cells, wrapped)
			// As in Salt, a row has as many lines as its cell with the fewest lines; further lines of other cells are
			// lost.
			if lines < 0 || len(wrapped) < lines {
				lines = len(wrapped)
			}
		}
		var physical [][]string
		for i := range lines {
			line := make([]string, len(cells))
			for j := range cells {
				line[j] = cells[j][i]
			}
			physical = append(physical, line)
		}
		logical = append(logical, physical)
		if columns < 0 || len(row) < columns {
			columns = len(row)
		}
	}
	widths := make([]int, columns)
	total := utf8.RuneCountInString(t.prefix) + utf8.RuneCountInString(t.suffix) + utf8.RuneCountInString(t.delim)*(columns-1)
	for j := range widths {
		for _, physical := range logical {
			for _, line := range physical {
				widths[j] = max(widths[j], utf8.RuneCountInString(line[j]))
			}
		}
		total += widths[j]
	}
	separator := strings.Repeat(t.rowDelimiter, max(total, 0))
	if t.separate {
		t.line(indent, t.colors.lightGray, separator, "")
	}
	for _, physical := range logical {
		for _, line := range physical {
			cells := make([]string, columns)
			for j := range cells {
				cells[j] = t.align(line[j], widths[j])
			}
			t.line(indent, t.colors.white, t.prefix+strings.Join(cells, t.delim)+t.suffix, "")
		}
		if t.separate || header {
			t.line(indent, t.colors.lightGray, separator, "")
			header = false
		}
	}
}

// wrap breaks the text of a cell at blanks.
func (t *tabler) wrap(s string) string {
	parts := strings.Split(s, " ")
	line := parts[0]
	for _, word := range parts[1:] {
		first, _, _ := strings.Cut(word, "\n")
		sep := " "
		if utf8.RuneCountInString(line[strings.LastIndex(line, "\n")+1:])+utf8.RuneCountInString(first) >= t.width {
			sep = "\n"
		}
		line += sep + word
	}
	return line
}

func (t *tabler) align(s string, width int) string {
	pad := max(width-utf8.RuneCountInString(s), 0)
	switch strings.ToLower(t.justify) {
	case "left":
		return s + strings.Repeat(" ", pad)
	case "right":
		return strings.Repeat(" ", pad) + s
	}
	left := pad/2 + pad&width&1 // str.center of CPython
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", pad-left)
}

// titleCase implements Python's str.title.
func titleCase(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		letter := unicode.IsLetter(r)
		defer func() { inWord = letter }()
		if letter && !inWord {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// profile implements salt/output/profile.py: a table of the states, sorted by duration.
func (r *renderer) profile(v any) (string, error) {
	hosts, ok := entries(v)
	if !ok {
		return "", errShape
	}
	type row struct {
		duration, name, fun string
		order               float64
	}
	var rows []row
	width := len("duration (ms)")
	for _, h := range hosts {
		states, ok := entries(h.value)
		if list, isList := items(h.value); isList {
			for _, e := range list {
				states = append(states, entry{e, map[string]any{}})
			}
		} else if s, isText := h.value.(string); isText {
			// Salt iterates over the characters of a text.
			for _, c := range s {
				states = append(states, entry{string(c), map[string]any{}})
			}
		} else if !ok {
			return "", errShape
		}
		for _, st := range states {
			id := pytext.Str(st.key)
			comps := strings.Split(id, "_|-")
			name, duration := any(id), -1.0
			if info, ok := st.value.(map[string]any); ok {
				if name = info["name"]; name == nil {
					name = info["__id__"]
				}
				if d, ok := info["duration"]; ok {
					if duration, ok = float(d); !ok {
						return "", errShape
					}
				}
			}
			shown := "<>"
			if name != nil {
				shown = pytext.Str(name)
			}
			if rs := []rune(shown); len(rs) > 60 {
				shown = string(rs[:57]) + "..."
			}
			text := fmt.Sprintf("%.4f", duration)
			width = max(width, len(text))
			rows = append(rows, row{text, shown, comps[0] + "." + comps[len(comps)-1], duration})
		}
	}
	table := make([]any, len(rows))
	for i := range rows {
		rows[i].duration = strings.Repeat(" ", width-len(rows[i].duration)) + rows[i].duration
	}
	sort.SliceStable(rows, func(i, j int) bool {
		a, b := rows[i], rows[j]
		if a.duration != b.duration {
			return a.duration < b.duration
		}
		return a.name+"\x00"+a.fun < b.name+"\x00"+b.fun
	})
	for i, w := range rows {
		table[i] = []any{w.name, w.fun, w.duration}
	}
	inner := *r
	inner.Table = map[string]any{}
	for k, v := range r.Table {
		inner.Table[k] = v
	}
	inner.Table["rows_key"], inner.Table["labels_key"] = "rows", "labels"
	return inner.table(map[string]any{"labels": []any{"name", "mod.fun", "duration (ms)"}, "rows": table})
}
