//go:build interop

package jinja

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

// suiteCase is a template that one of Jinja2's tests rendered.
type suiteCase struct {
	Src  string         `json:"src"`
	Name string         `json:"name"`
	Ctx  map[string]any `json:"ctx"`
	Test string         `json:"test"`
	Opts struct {
		BlockStart    string            `json:"block_start_string"`
		BlockEnd      string            `json:"block_end_string"`
		VariableStart string            `json:"variable_start_string"`
		VariableEnd   string            `json:"variable_end_string"`
		CommentStart  string            `json:"comment_start_string"`
		CommentEnd    string            `json:"comment_end_string"`
		LineStatement string            `json:"line_statement_prefix"`
		LineComment   string            `json:"line_comment_prefix"`
		Trim          bool              `json:"trim_blocks"`
		Lstrip        bool              `json:"lstrip_blocks"`
		Newline       string            `json:"newline_sequence"`
		Keep          bool              `json:"keep_trailing_newline"`
		Autoescape    bool              `json:"autoescape"`
		Undefined     string            `json:"undefined"`
		Globals       map[string]any    `json:"globals"`
		Files         map[string]string `json:"files"`
	} `json:"opts"`
	Out *string `json:"out"`
	Err []any   `json:"err"`
}

func fromTagged(t *testing.T, v any) any {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	items, _ := m["v"].([]any)
	text, _ := m["v"].(string)
	all := func() []any {
		out := make([]any, len(items))
		for i, x := range items {
			out[i] = fromTagged(t, x)
		}
		return out
	}
	switch m["t"] {
	case "i":
		n, _ := new(big.Int).SetString(text, 10)
		return pyobj.Int(n)
	case "f":
		f, _ := strconv.ParseFloat(text, 64)
		return f
	case "m":
		return pyobj.Markup(text)
	case "l":
		return &pyobj.List{Items: all()}
	case "t":
		return pyobj.Tuple(all())
	case "r":
		return &Range{int64(items[0].(float64)), int64(items[1].(float64)), int64(items[2].(float64))}
	case "d":
		d := &pyobj.Dict{}
		for _, p := range items {
			kv := p.([]any)
			_ = d.Set(fromTagged(t, kv[0]), fromTagged(t, kv[1]))
		}
		return d
	}
	t.Fatalf("unknown kind %v", m["t"])
	return nil
}

// excusedSuite lists the templates that render differently, by a part of the test's name and of the source, with the
// reason.
var excusedSuite = []struct{ test, src, why string }{
	{"test_chainable_undefined", "_undefined_name", "the sandbox, which is always on here, hides the attribute"},
	{"test_volatile_scoping", "__class__", "the sandbox, which is always on here, hides the attribute"},
	{"test_random", "random", "the result is a matter of chance"},
}

// TestJinja2Suite runs Jinja2's own tests under a recorder, and renders the templates that they render.
func TestJinja2Suite(t *testing.T) {
	dir := os.Getenv("BRINE_JINJA")
	if dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("BRINE_JINJA is not set")
		}
		t.Skip("BRINE_JINJA is not set; see interop/fetch-salt.sh")
	}
	sources, err := filepath.Glob(filepath.Join(dir, "jinja2-*", "tests"))
	if err != nil || len(sources) != 1 {
		t.Fatalf("cannot find Jinja2's tests in %s: %v", dir, err)
	}
	plugins, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "cases")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "python"), "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", "tests")
	cmd.Dir = filepath.Dir(sources[0])
	cmd.Env = append(os.Environ(), "RECORD_TO="+record, "PYTHONPATH="+plugins, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, equal, excused := 0, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
next:
	for lines.Scan() {
		var c suiteCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		total++
		got, want := suiteResult(t, c), ""
		if c.Out != nil {
			want = *c.Out
		} else {
			want = "error " + c.Err[0].(string) + ": " + pyobj.Str(c.Err[1])
		}
		if got == want {
			equal++
			continue
		}
		for _, e := range excusedSuite {
			if strings.Contains(c.Test, e.test) && strings.Contains(c.Src, e.src) {
				excused++
				continue next
			}
		}
		t.Errorf("%s: %q\n got %q\nwant %q", c.Test, c.Src, got, want)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d templates of Jinja2's tests, %d equal, %d excused", total, equal, excused)
	if total < 500 || equal*100 < total*98 {
		t.Errorf("%d of %d templates are equal", equal, total)
	}
}

func suiteResult(t *testing.T, c suiteCase) string {
	o := c.Opts
	env := NewEnv()
	env.Syntax = Syntax{BlockStart: o.BlockStart, BlockEnd: o.BlockEnd, VariableStart: o.VariableStart, VariableEnd: o.VariableEnd,
		CommentStart: o.CommentStart, CommentEnd: o.CommentEnd, LineStatementPrefix: o.LineStatement, LineCommentPrefix: o.LineComment,
		TrimBlocks: o.Trim, LstripBlocks: o.Lstrip, KeepTrailingNewline: o.Keep, Newline: o.Newline}
	env.Autoescape = o.Autoescape
	switch o.Undefined {
	case "StrictUndefined":
		env.Undefined = Strict
	case "ChainableUndefined":
		env.Undefined = Chainable
	case "DebugUndefined":
		env.Undefined = Debug
	}
	env.Globals = map[string]any{}
	for k, v := range o.Globals {
		env.Globals[k] = fromTagged(t, v)
	}
	env.Load = func(_ *Run, name string) (Source, bool, error) {
		text, ok := o.Files[name]
		return Source{Text: text}, ok, nil
	}
	vars := map[string]any{}
	for k, v := range c.Ctx {
		vars[k] = fromTagged(t, v)
	}
	tmpl, err := env.Compile(c.Name, "", c.Src)
	out := ""
	if err == nil {
		out, err = tmpl.Render(t.Context(), vars)
	}
	var e *Error
	if errors.As(err, &e) {
		return "error " + e.Kind + ": " + e.Msg
	}
	return out
}
