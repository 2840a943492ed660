package cron

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	tag   = "# Lines below here are managed by Salt, do not edit"
	ident = "SALT_CRON_IDENTIFIER"
)

// table is a user's table. Entries are as cron.list_tab shows them.
type table struct {
	pre                 []any
	crons, special, env []map[string]any
}

// jobs returns all jobs. Those with an @name in place of a time come last.
func (t *table) jobs() []map[string]any { return slices.Concat(t.crons, t.special) }

func read(ctx context.Context, c *modules.Call, user any) (*table, error) {
	text, err := raw(ctx, c, user)
	if err != nil {
		return nil, err
	}
	return parse(text), nil
}

func parse(text string) *table {
	t := &table{pre: []any{}}
	managed := false
	var comment, identifier any
	for _, line := range pytext.SplitLines(text, false) {
		if line == tag {
			managed = true
			continue
		}
		if !managed {
			t.pre = append(t.pre, line)
			continue
		}
		line, off := strings.CutPrefix(line, "#DISABLED#")
		eq, space := strings.Index(line, "="), strings.Index(line, " ")
		switch {
		case strings.HasPrefix(line, "@"):
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			t.special = append(t.special, map[string]any{
				"spec": f[0], "cmd": strings.Join(f[1:], " "), "identifier": identifier, "comment": comment, "commented": off,
			})
			comment, identifier = nil, nil
		case strings.HasPrefix(line, "#"):
			comment, identifier = remark(line, comment, identifier)
		case eq > 0 && (space < 0 || eq < space):
			t.env = append(t.env, map[string]any{"name": line[:eq], "value": line[eq+1:]})
		case strings.Count(line, " ") >= 5:
			f := strings.SplitN(line, " ", 6)
			t.crons = append(t.crons, map[string]any{
				"minute": f[0], "hour": f[1], "daymonth": f[2], "month": f[3], "dayweek": f[4], "cmd": f[5],
				"identifier": identifier, "comment": comment, "commented": off,
			})
			comment, identifier = nil, nil
		}
	}
	return t
}

// remark adds a comment line to the comment of the job that comes.
func remark(line string, comment, identifier any) (any, any) {
	line = strings.TrimLeft(line, "# ")
	if parts := strings.Split(line, ident); len(parts) > 1 {
		line = pytext.StripRight(parts[0])
		if r := []rune(parts[1]); len(r) > 1 { // the first is a colon
			identifier = string(r[1:])
		}
	}
	if comment == nil {
		return line, identifier
	}
	return comment.(string) + "\n" + line, identifier
}

// render returns the text of the table.
func (t *table) render() (string, error) {
	var b strings.Builder
	for _, line := range t.pre {
		b.WriteString(line.(string) + "\n")
	}
	b.WriteString(tag + "\n")
	for _, e := range t.env {
		value := `""`
		if v := e["value"]; v != nil && v != "" {
			value = pytext.Str(v)
		}
		b.WriteString(pytext.Str(e["name"]) + "=" + value + "\n")
	}
	for _, e := range t.jobs() {
		_, special := e["spec"]
		if err := above(&b, e, special); err != nil {
			return "", err
		}
		if e["commented"] == true {
			b.WriteString("#DISABLED#")
		}
		if special {
			b.WriteString(pytext.Str(e["spec"]) + " ")
		} else {
			for _, k := range times() {
				b.WriteString(pytext.Str(e[k]) + " ")
			}
		}
		b.WriteString(pytext.Str(e["cmd"]) + "\n")
	}
	return b.String(), nil
}

func times() []string { return []string{"minute", "hour", "daymonth", "month", "dayweek"} }

// above writes the comment of a job, which also holds its identifier.
func above(b *strings.Builder, e map[string]any, special bool) error {
	comment, id := e["comment"], e["identifier"]
	if comment == nil && id == nil {
		return nil
	}
	b.WriteString("#")
	if pytext.Truth(comment) {
		text, ok := comment.(string)
		if !ok {
			method := "replace"
			if special {
				method = "rstrip"
			}
			return modules.NoAttribute(comment, method)
		}
		if special {
			text = pytext.StripRight(text)
		}
		b.WriteString(" " + strings.ReplaceAll(text, "\n", "\n# "))
	}
	if pytext.Truth(id) {
		b.WriteString(" " + ident + ":" + pytext.Str(id))
	}
	b.WriteString("\n")
	return nil
}
