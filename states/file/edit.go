//go:build unix

package file

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var (
	nameParam = modules.Param{Name: "name"}
	encoding  = modules.Param{Name: "encoding", Optional: true}
)

var commentDef = states.Def{Name: "comment", Params: []modules.Param{nameParam, {Name: "regex"}, {Name: "char", Default: "#"}, {Name: "backup", Default: ".bak"},
	{Name: "ignore_missing", Default: false}, encoding, {Name: "encoding_errors", Default: "strict"}}, Run: comment}

var uncommentDef = states.Def{Name: "uncomment", Params: []modules.Param{nameParam, {Name: "regex"}, {Name: "char", Default: "#"}, {Name: "backup", Default: ".bak"}},
	Run: uncomment}

var replaceDef = states.Def{Name: "replace", Params: []modules.Param{nameParam, {Name: "pattern"}, {Name: "repl"}, {Name: "count", Default: int64(0)},
	{Name: "flags", Default: int64(8)}, {Name: "bufsize", Default: int64(1)}, {Name: "append_if_not_found", Default: false},
	{Name: "prepend_if_not_found", Default: false}, {Name: "not_found_content", Optional: true}, {Name: "backup", Default: ".bak"}, {Name: "show_changes", Default: true},
	{Name: "ignore_if_missing", Default: false}, {Name: "backslash_literal", Default: false}, encoding}, Run: replace}

// read returns the text of a file, decoded with the encoding of the state (bytes.decode).
func (j *job) read(name string) (string, error) {
	b, err := os.ReadFile(j.Path(name))
	if err != nil {
		return "", modules.OSError(err)
	}
	codec := j.Str("encoding")
	if codec == "" {
		codec = "utf-8"
	}
	text, err := pycodec.Decode(b, codec)
	if err == nil {
		return text, nil
	}
	switch j.Str("encoding_errors") {
	case "ignore":
		return strings.ToValidUTF8(string(b), ""), nil
	case "replace":
		return string([]rune(string(b))), nil
	}
	return "", err
}

// isText implements salt.utils.files.is_text.
func (j *job) isText(name string) bool {
	f, err := os.Open(j.Path(name))
	if err != nil {
		return false
	}
	defer f.Close()
	block := make([]byte, 512)
	n, _ := f.Read(block)
	return !pycodec.Binary(block[:n])
}

// showDiff reports how lines changed; those of a binary file are not shown. by stands between the lines of the diff.
func (j *job) showDiff(ret *states.Result, name string, before, after []string, by string) {
	lines := difflib.UnifiedLines(before, after, "", "")
	switch {
	case lines == nil:
	case !j.isText(name):
		ret.Changes["diff"] = "Replace binary file"
	default:
		ret.Changes["diff"] = strings.Join(lines, by)
	}
}

// search runs file.search across lines.
func (j *job) search(name, pattern string) (bool, error) {
	v, err := j.execKw("file.search", []any{name, pattern}, map[string]any{"multiline": true})
	return pytext.Truth(v), err
}

// unanchored returns a pattern without leading flags and without anchors.
func unanchored(regex string) string {
	bare, end := strings.CutSuffix(regex, "\n")
	if strings.Contains(bare, "\n") {
		return regex
	}
	if len(bare) > 3 && bare[:2] == "(?" && strings.IndexByte("iLmsux", bare[2]) >= 0 && bare[3] == ')' {
		bare = bare[4:]
	}
	bare = strings.TrimSuffix(strings.TrimPrefix(bare, "^"), "$")
	if end {
		bare += "\n"
	}
	return bare
}

func comment(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.comment")
	}
	if wrong := j.checkFile(name); wrong != "" {
		return fail(ret, wrong)
	}
	char, bare := c.Str("char"), unanchored(c.Str("regex"))
	commented := char + bare
	found, err := j.search(name, `^(?!\s*`+char+`)\s*`+bare)
	if err != nil {
		return nil, err
	}
	if !found {
		already, err := j.search(name, commented)
		switch {
		case err != nil:
			return nil, err
		case already:
			return ret.As(states.True, "Pattern already commented")
		case c.Bool("ignore_missing"):
			return ret.As(states.True, "Pattern not found and ignore_missing set to True")
		}
		return fail(ret, bare+": Pattern not found")
	}
	if c.Test() {
		ret.Changes[name] = "updated"
		return ret.As(states.None, "File "+name+" is set to be updated")
	}
	return j.toggle(ret, name, true, commented, "Commented")
}

func uncomment(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.uncomment")
	}
	if wrong := j.checkFile(name); wrong != "" {
		return fail(ret, wrong)
	}
	bare := strings.TrimLeft(c.Str("regex"), "^")
	plain := "^[ \t]*" + bare
	found, err := j.search(name, c.Str("char")+"[ \t]*"+bare)
	if err != nil {
		return nil, err
	}
	if !found {
		already, err := j.search(name, plain)
		switch {
		case err != nil:
			return nil, err
		case already:
			return ret.As(states.True, "Pattern already uncommented")
		}
		return fail(ret, c.Str("regex")+": Pattern not found")
	}
	if c.Test() {
		ret.Changes[name] = "updated"
		return ret.As(states.None, "File "+name+" is set to be updated")
	}
	return j.toggle(ret, name, false, plain, "Uncommented")
}

// toggle makes comments of lines or lines of comments; what the file then has is expected.
func (j *job) toggle(ret *states.Result, name string, on bool, expected, done string) (*states.Result, error) {
	lines := func() ([]string, error) {
		text, err := j.read(name)
		if on {
			return pytext.SplitLines(text, true), err
		}
		return slices.Collect(strings.Lines(text)), err
	}
	before, err := lines()
	if err != nil {
		return nil, err
	}
	if _, err := j.exec("file.comment_line", name, j.Value("regex"), j.Value("char"), on, j.Value("backup")); err != nil {
		return nil, err
	}
	after, err := lines()
	if err != nil {
		return nil, err
	}
	found, err := j.search(name, expected)
	if err != nil {
		return nil, err
	}
	j.showDiff(ret, name, before, after, "")
	if !found {
		return fail(ret, "Expected "+strings.ToLower(done)+" lines not found")
	}
	return ret.As(states.True, done+" lines successfully")
}

func replace(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.replace")
	}
	if wrong := j.checkFile(name); wrong != "" {
		if c.Bool("ignore_if_missing") && strings.Contains(wrong, "file not found") {
			return ret.As(states.True, "No changes needed to be made")
		}
		return fail(ret, wrong)
	}
	kwargs := map[string]any{"dry_run": c.Test()}
	for _, key := range [...]string{"count", "flags", "bufsize", "append_if_not_found", "prepend_if_not_found", "not_found_content", "backup",
		"show_changes", "ignore_if_missing", "backslash_literal", "encoding"} {
		kwargs[key] = c.Value(key)
	}
	changes, err := j.execKw("file.replace", []any{name, c.Value("pattern"), c.Value("repl")}, kwargs)
	if err != nil {
		return nil, err
	}
	return j.edited(ret, changes, "Changes would have been made")
}

// edited ends a state with what an execution function says that it changed, or would.
func (j *job) edited(ret *states.Result, changes any, would string) (*states.Result, error) {
	switch {
	case !pytext.Truth(changes):
		return ret.As(states.True, "No changes needed to be made")
	case j.Test():
		ret.Changes["diff"] = changes
		return ret.As(states.None, would)
	}
	ret.Changes["diff"] = changes
	return ret.As(states.True, "Changes were made")
}
