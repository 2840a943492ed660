//go:build unix

package file

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// tolerance is which changes of a file other states shall not see, and how new files are shown: arguments of Salt 3008.
type tolerance struct {
	on         bool // ignore_ordering, ignore_whitespace or ignore_comment_characters is given
	whitespace bool
	comments   []string
	newDiff    bool
}

func (h *host) tolerance() tolerance {
	return tolerate(func(name string) any { return pyobj.Plain(h.Keywords[name]) })
}

// tolerate reads these arguments.
func tolerate(given func(name string) any) tolerance {
	t := tolerance{whitespace: pytext.Truth(given("ignore_whitespace")), newDiff: pytext.Truth(given("new_file_diff"))}
	switch v := given("ignore_comment_characters").(type) {
	case string:
		if v != "" {
			t.comments = []string{v}
		}
	case []any:
		for _, x := range v {
			if s := str(x); s != "" {
				t.comments = append(t.comments, s)
			}
		}
	}
	t.on = t.whitespace || t.comments != nil || pytext.Truth(given("ignore_ordering"))
	return t
}

// counts reports whether a unified difference has changes that are not to be ignored: lines that were added and not taken away
// elsewhere, or the other way round.
func (t tolerance) counts(diff string) bool {
	if !t.on || !strings.HasPrefix(diff, "--- ") {
		return diff != ""
	}
	var added, removed []string
	for _, line := range strings.SplitAfter(diff, "\n") {
		if line == "" || line[0] != '+' && line[0] != '-' || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") {
			continue
		}
		by, text := line[0], line[1:]
		for _, mark := range t.comments {
			text, _, _ = strings.Cut(text, mark)
		}
		if t.whitespace {
			text = strings.TrimSpace(text)
		}
		switch {
		case text == "":
		case by == '+':
			added = append(added, text)
		default:
			removed = append(removed, text)
		}
	}
	slices.Sort(added)
	slices.Sort(removed)
	return !slices.Equal(added, removed)
}
