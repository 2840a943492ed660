package xfs

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// geometry reads what xfs_info and mkfs.xfs print: sections, each of a line that begins with its name and of lines that begin
// with "=".
func geometry(text string) (any, error) {
	out := map[string]any{}
	var section map[string]any
	for _, line := range strings.Split(text, "\n") {
		line = strings.ReplaceAll(pytext.Strip(oneBlank(line)), ", ", " ")
		if !strings.Contains(line, "=") {
			continue
		}
		rest := pairs(line)
		if !strings.HasPrefix(line, "=") {
			head := rest[0]
			if len(head) < 2 {
				return nil, &modules.PythonError{Type: "IndexError", Msg: "tuple index out of range"}
			}
			section = map[string]any{"section": head[1]}
			if head[1] == unnamed {
				section["section"] = head[0]
			}
			out[head[0]], rest = section, rest[1:]
		}
		if section == nil {
			return nil, &modules.TypeError{Msg: "'NoneType' object is not subscriptable"}
		}
		for i, p := range rest {
			if len(p) != 2 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: fmt.Sprintf("dictionary update sequence element #%d has length %d; 2 is required", i, len(p))}
			}
			section[p[0]] = p[1]
		}
	}
	return out, nil
}

// unnamed stands for the value of a section that has none.
const unnamed = "***"

// pairs splits a line into names and values; values may have blanks.
func pairs(line string) [][]string {
	line = pytext.Strip(strings.TrimPrefix(line, "="))
	line = strings.ReplaceAll(strings.ReplaceAll(line, " = ", "="+unnamed+" "), " =", "=")
	var words []string
	for _, w := range strings.Split(line, " ") {
		if last := len(words) - 1; last < 0 || strings.Contains(w, "=") {
			words = append(words, w)
		} else {
			words[last] += " " + w
		}
	}
	out := make([][]string, len(words))
	for i, w := range words {
		out[i] = strings.Split(w, "=")
	}
	return out
}

// oneBlank makes one blank of each run of white space.
func oneBlank(s string) string {
	var b strings.Builder
	blank := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}
