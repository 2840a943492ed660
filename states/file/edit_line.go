//go:build unix

package file

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var lineDef = states.Def{Name: "line", Params: []modules.Param{nameParam, {Name: "content", Optional: true}, {Name: "match", Optional: true},
	{Name: "mode", Optional: true}, {Name: "location", Optional: true}, {Name: "before", Optional: true}, {Name: "after", Optional: true},
	{Name: "show_changes", Default: true}, {Name: "backup", Default: false}, {Name: "quiet", Default: false}, {Name: "indent", Default: true}, {Name: "create", Default: false},
	{Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "file_mode", Optional: true}}, Run: line}

func line(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.line")
	}
	// Salt ignores the result: the file exists afterwards or it does not.
	if _, err := c.State(ctx, "file.managed", map[string]any{"name": name, "create": c.Value("create"), "user": c.Value("user"),
		"group": c.Value("group"), "mode": c.Value("file_mode"), "replace": false}); err != nil {
		return nil, err
	}
	if wrong := j.checkFile(name); wrong != "" {
		return fail(ret, wrong)
	}
	mode, ok := c.Value("mode").(string)
	switch {
	case c.Value("mode") == nil:
		return fail(ret, "Mode was not defined. How to process the file?")
	case !ok:
		return nil, raise("AttributeError", "'"+modules.TypeName(c.Value("mode"))+"' object has no attribute 'lower'")
	}
	if mode = strings.ToLower(mode); mode != "delete" && c.Value("content") == nil {
		return fail(ret, "Content can only be empty if mode is ['delete']")
	}
	kwargs := map[string]any{"mode": mode}
	for _, key := range [...]string{"match", "location", "before", "after", "show_changes", "backup", "quiet", "indent"} {
		kwargs[key] = c.Value(key)
	}
	changes, err := c.InTest(c.Test()).ExecKw(ctx, "file.line", []any{name, c.Value("content")}, kwargs)
	if err != nil {
		return nil, err
	}
	return j.edited(ret, changes, "Changes would be made")
}
