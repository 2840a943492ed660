// Package aliases is Salt's execution module "aliases": the file of mail aliases. Salt's source: salt/modules/aliases.py.
package aliases

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// line is a line of the file: an alias, its target and a comment after them, or only a comment.
type line struct{ alias, target, comment string }

func file(ctx context.Context, c *modules.Call) (string, error) {
	v, err := c.Exec(ctx, "config.option", "aliases.file")
	if err != nil {
		return "", err
	}
	path, ok := v.(string)
	if !ok || path == "" {
		path = "/etc/aliases"
	}
	return filepath.Clean(path), nil
}

func read(ctx context.Context, c *modules.Call) ([]line, error) {
	path, err := file(ctx, c)
	if err != nil {
		return nil, err
	}
	if !c.IsFile(path) {
		return nil, nil
	}
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	entry := regexp.MustCompile(`^([^:#]*)\s*:?\s*([^#]*?)(\s+#.*|$)`)
	var out []line
	for _, s := range strings.SplitAfter(string(text), "\n") {
		if s == "" {
			continue
		}
		s = strings.TrimSuffix(s, "\n")
		if m := entry.FindStringSubmatch(s); m != nil {
			if !strings.ContainsAny(s, ":#") {
				m[1] += "\n" // stock's expression takes the end of such a line, which is none of an alias, for part of the name
			}
			out = append(out, line{m[1], m[2], m[3]})
		} else {
			out = append(out, line{comment: pytext.Strip(s)})
		}
	}
	return out, nil
}

func write(ctx context.Context, c *modules.Call, lines []line) error {
	path, err := file(ctx, c)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, l := range lines {
		if l.alias != "" && l.target != "" {
			b.WriteString(l.alias + ": " + l.target)
		}
		b.WriteString(l.comment + "\n")
	}
	if err := atomicfile.Replace(c.Path(path), []byte(b.String()), 0o644); err != nil {
		return modules.OSError(err)
	}
	if program := c.Which("newaliases"); program != "" {
		_, err = saltcmd.Text(ctx, c, program)
	}
	return err
}

func all(ctx context.Context, c *modules.Call) (map[string]any, error) {
	lines, err := read(ctx, c)
	out := map[string]any{}
	for _, l := range lines {
		if l.alias != "" {
			out[l.alias] = l.target
		}
	}
	return out, err
}

func listAliases(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(all(ctx, c))
}

func getTarget(ctx context.Context, c *modules.Call) (any, error) {
	m, err := all(ctx, c)
	if err != nil {
		return nil, err
	}
	if v, ok := m[c.Str("alias")]; ok {
		return v, nil
	}
	return "", nil
}

// joined returns a target as text; a list is joined by commas.
func joined(v any) (string, error) {
	list, ok := v.([]any)
	if !ok {
		return pytext.Str(v), nil
	}
	out := make([]string, len(list))
	for i, x := range list {
		s, ok := x.(string)
		if !ok {
			return "", &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(x) + " found"}
		}
		out[i] = s
	}
	return strings.Join(out, ", "), nil
}

func hasTarget(ctx context.Context, c *modules.Call) (any, error) {
	if c.Value("target") == "" {
		return nil, modules.Usagef("target can not be an empty string")
	}
	m, err := all(ctx, c)
	have, ok := m[c.Str("alias")]
	if err != nil || !ok {
		return false, err
	}
	want := c.Value("target")
	if _, ok := want.([]any); ok {
		if want, err = joined(want); err != nil {
			return nil, err
		}
	}
	return nested.Equal(want, have), nil
}

func setTarget(ctx context.Context, c *modules.Call) (any, error) {
	for _, name := range [...]string{"alias", "target"} {
		if c.Value(name) == "" {
			return nil, modules.Usagef("%s can not be an empty string", name)
		}
	}
	alias := c.Str("alias")
	target, err := joined(c.Value("target"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(alias+target, "\n") {
		return nil, modules.Usagef("an alias and its target must be one line")
	}
	lines, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	now, err := all(ctx, c)
	if err != nil || nested.Equal(now[alias], c.Value("target")) {
		return err == nil, err
	}
	var out []line
	found := false
	for _, l := range lines {
		if l.alias == alias && alias != "" {
			if found {
				continue
			}
			l.target, found = target, true
		}
		out = append(out, l)
	}
	if !found {
		out = append(out, line{alias: alias, target: target})
	}
	return true, write(ctx, c, out)
}

func rmAlias(ctx context.Context, c *modules.Call) (any, error) {
	alias := c.Str("alias")
	lines, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	if m, err := all(ctx, c); err != nil || !pytext.Truth(m[alias]) {
		return err == nil, err
	}
	var out []line
	for _, l := range lines {
		if l.alias != alias {
			out = append(out, l)
		}
	}
	return true, write(ctx, c, out)
}
