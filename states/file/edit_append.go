//go:build unix

package file

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

var appendDef = states.Def{Name: "append", Params: []modules.Param{nameParam, {Name: "text", Optional: true}, {Name: "makedirs", Default: false},
	{Name: "source", Optional: true}, {Name: "source_hash", Optional: true}, {Name: "template", Default: "jinja"},
	{Name: "sources", Optional: true}, {Name: "source_hashes", Optional: true}, {Name: "defaults", Optional: true}, {Name: "context", Optional: true},
	{Name: "ignore_whitespace", Default: true}, encoding, {Name: "encoding_errors", Default: "strict"}}, Run: appendTo}

var prependDef = states.Def{Name: "prepend", Params: []modules.Param{nameParam, {Name: "text", Optional: true}, {Name: "makedirs", Default: false},
	{Name: "source", Optional: true}, {Name: "source_hash", Optional: true}, {Name: "template", Default: "jinja"},
	{Name: "sources", Optional: true}, {Name: "source_hashes", Optional: true}, {Name: "defaults", Optional: true}, {Name: "context", Optional: true},
	{Name: "header", Optional: true}, encoding, {Name: "encoding_errors", Default: "strict"}}, Run: prepend}

// addition is the common part of append and prepend: the texts that a file must contain. The file is created if
// necessary.
type addition struct {
	name  string
	texts []string
	// lines are the file's.
	lines []string
}

// addition begins such a state. A result that is not nil ends it.
func (j *job) addition(ret *states.Result, keep bool) (*addition, *states.Result, error) {
	a := &addition{name: j.expandUser(j.Str("name"))}
	if a.name == "" {
		end, err := fail(ret, "Must provide name to "+j.Fun)
		return nil, end, err
	}
	ret.Name = a.name
	sources, wrong := unifySources(j.Value("source"), j.Value("source_hash"), j.Value("sources"), j.Value("source_hashes"))
	if wrong != "" {
		end, err := fail(ret, wrong)
		return nil, end, err
	}
	if end, err := j.create(ret, a.name); end != nil || err != nil {
		return nil, end, err
	}
	if sources != nil {
		texts, failed, comment, err := j.templateTexts(sources, j.Value("template"), j.Value("defaults"), j.Value("context"), nil)
		if err != nil {
			return nil, nil, err
		}
		if comment != "" {
			return nil, unread(failed, comment), nil
		}
		a.texts = texts
	} else {
		a.texts = j.texts("text")
	}
	text, err := j.read(a.name)
	a.lines = pytext.SplitLines(text, keep)
	return a, nil, err
}

// unread returns the result of a state whose source cannot be read.
func unread(source any, comment string) *states.Result {
	return &states.Result{Name: pytext.Str(source), Comment: comment, Changes: map[string]any{}, Extra: map[string]any{"data": []any{}}}
}

// texts returns an argument as a list of texts.
func (j *job) texts(key string) []string {
	switch v := pyobj.From(j.ordered(key)).(type) {
	case *pyobj.List:
		list := make([]string, len(v.Items))
		for i, x := range v.Items {
			list[i] = pyobj.Str(x)
		}
		return list
	case *pyobj.Dict:
		return []string{pyobj.Str(v)}
	default:
		return textList(v)
	}
}

// create creates a missing file, and its directory if that is wanted.
func (j *job) create(ret *states.Result, name string) (*states.Result, error) {
	if j.Value("makedirs") == true {
		dir := posixpath.Dir(name)
		if j.Test() {
			ret.Result, ret.Comment = states.None, "Directory "+dir+" is set to be updated"
		} else if !j.isDir(dir) {
			if _, err := j.execKw("file.makedirs", nil, map[string]any{"path": name, "user": nil, "group": nil, "mode": nil}); err != nil {
				return nil, err
			}
		}
	}
	wrong := j.checkFile(name)
	if wrong == "" {
		return nil, nil
	}
	touched, err := j.State(j.ctx, "file.touch", map[string]any{"name": name, "makedirs": j.Value("makedirs")})
	if err != nil || j.Test() {
		return touched, err
	}
	if j.checkFile(name) != "" {
		return fail(ret, wrong)
	}
	return nil, nil
}

func appendTo(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	ret := c.Result()
	a, end, err := j.addition(ret, false)
	if end != nil || err != nil {
		return end, err
	}
	var add []string
	for _, chunk := range a.texts {
		pattern := chunk
		if c.Bool("ignore_whitespace") {
			if pattern, err = anyBlanks(chunk); err != nil {
				return nil, err
			}
		}
		found, err := j.search(a.name, pattern)
		if err != nil {
			return typeErrorIs(ret, err, "No text found to append. Nothing appended")
		}
		if !found {
			add = append(add, pytext.SplitLines(chunk, false)...)
		}
	}
	right := "File " + a.name + " is in correct state"
	if c.Test() {
		if len(add) == 0 {
			return ret.As(states.True, right)
		}
		j.showDiff(ret, a.name, a.lines, append(slices.Clone(a.lines), add...), "\n")
		return ret.As(states.None, "File "+a.name+" is set to be updated")
	}
	ret.Comment = right
	if len(add) > 0 {
		if _, err := j.execKw("file.append", []any{a.name}, map[string]any{"args": nested.Anys(add)}); err != nil {
			return nil, err
		}
		ret.Comment = "Appended " + strconv.Itoa(len(add)) + " lines"
	}
	text, err := j.read(a.name)
	if err != nil {
		return nil, err
	}
	j.showDiff(ret, a.name, a.lines, pytext.SplitLines(text, false), "\n")
	return ret.As(states.True, ret.Comment)
}

// typeErrorIs ends a state with a comment where Python raises a TypeError, which Salt catches. Its SaltInvocationError is one.
func typeErrorIs(ret *states.Result, err error, comment string) (*states.Result, error) {
	var typ *modules.TypeError
	var usage *modules.UsageError
	if errors.As(err, &typ) || errors.As(err, &usage) {
		return fail(ret, comment)
	}
	return nil, err
}

func prepend(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	ret := c.Result()
	a, end, err := j.addition(ret, true)
	if end != nil || err != nil {
		return end, err
	}
	header := c.Bool("header")
	var add []string
	for _, chunk := range a.texts {
		if !header {
			pattern, err := anyBlanks(chunk)
			if err != nil {
				return nil, err
			}
			found, err := j.search(a.name, pattern)
			if err != nil {
				return nil, err
			}
			if found {
				continue
			}
		}
		add = append(add, pytext.SplitLines(chunk, false)...)
	}
	right := "File " + a.name + " is in correct state"
	if c.Test() {
		fresh := make([]string, 0, len(add)+len(a.lines))
		for _, l := range add {
			fresh = append(fresh, l+"\n")
		}
		if len(add) == 0 {
			return ret.As(states.True, right)
		}
		j.showDiff(ret, a.name, a.lines, append(fresh, a.lines...), "")
		return ret.As(states.None, "File "+a.name+" is set to be updated")
	}
	count := len(add)
	if header && slices.Equal(trimEnds(a.lines[:min(len(add), len(a.lines))]), add) {
		count = 0
	} else if _, err := j.exec("file.prepend", append([]any{a.name}, nested.Anys(add)...)...); err != nil {
		return nil, err
	}
	text, err := j.read(a.name)
	if err != nil {
		return nil, err
	}
	j.showDiff(ret, a.name, a.lines, pytext.SplitLines(text, true), "")
	if count > 0 {
		return ret.As(states.True, "Prepended "+strconv.Itoa(count)+" lines")
	}
	return ret.As(states.True, right)
}

// trimEnds returns lines without their line ends.
func trimEnds(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, pytext.SplitLines(l, false)...)
	}
	return out
}

// anyBlanks returns a pattern for a text with any white space between its words (build_whitespace_split_regex).
func anyBlanks(text string) (string, error) {
	const blanks = `(?:[\s]+)?`
	var b strings.Builder
	b.WriteString("(?m)^")
	for _, line := range pytext.SplitLines(text, false) {
		words, err := lex(line)
		if err != nil {
			return "", err
		}
		for i := range words {
			words[i] = pyre.Escape(words[i])
		}
		b.WriteString(blanks + strings.Join(words, blanks) + blanks)
	}
	b.WriteString("$")
	return b.String(), nil
}

// lex cuts a line into words as Python's shlex.shlex does with whitespace_split: a word that begins with a quote ends with the
// next one, and quotes stay.
func lex(line string) ([]string, error) {
	quotes := `"'`
	switch {
	case strings.Contains(line, `'\"`):
		quotes = ""
	case strings.Contains(line, "'"):
		quotes = `"`
	case strings.Contains(line, `"`):
		quotes = "'"
	}
	var words []string
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" {
			return words, nil
		}
		end := strings.IndexAny(line, " \t\r\n")
		if strings.IndexByte(quotes, line[0]) >= 0 {
			if end = strings.IndexByte(line[1:], line[0]); end < 0 {
				return nil, raise("ValueError", "No closing quotation")
			}
			end += 2
		} else if end < 0 {
			end = len(line)
		}
		words = append(words, line[:end])
		line = line[end:]
	}
}
