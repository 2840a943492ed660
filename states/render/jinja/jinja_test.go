package jinja

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules/pyobj"
)

func render(t testing.TB, env *Env, text string, vars map[string]any) (string, error) {
	t.Helper()
	tmpl, err := env.Compile("main", "", text)
	if err != nil {
		return "", err
	}
	return tmpl.Render(t.Context(), vars)
}

// TestValuesAreShared checks that a template changes the caller's list. The recorded cases are in states/render; the
// tests here cover what the package promises in addition to Jinja's language.
func TestValuesAreShared(t *testing.T) {
	l := pyobj.NewList(int64(1))
	env := NewEnv()
	out, err := render(t, env, `{% do l.append(2) %}{% set m = l %}{% do m.append(3) %}{{ l }}`, map[string]any{"l": l})
	if err != nil || out != "[1, 2, 3]" || len(l.Items) != 3 {
		t.Errorf("%q %v %v", out, err, l.Items)
	}
}

func TestLazyVariablesAreComputedOnce(t *testing.T) {
	n := 0
	v := NewLazy(func() (any, error) {
		n++
		return "x", nil
	})
	env := NewEnv()
	if out, err := render(t, env, "no use", map[string]any{"v": v}); err != nil || out != "no use" || n != 0 {
		t.Errorf("%q %v, computed %d times", out, err, n)
	}
	if out, err := render(t, env, "{{ v }}{{ v }}", map[string]any{"v": v}); err != nil || out != "xx" || n != 1 {
		t.Errorf("%q %v, computed %d times", out, err, n)
	}
}

func TestErrorsHaveAPlace(t *testing.T) {
	env := NewEnv()
	env.Undefined = Strict
	env.Load = func(_ *Run, name string) (Source, bool, error) {
		return Source{Text: "{% macro m() %}\n\n{{ nope }}{% endmacro %}", File: "/files/" + name}, name == "lib", nil
	}
	for text, want := range map[string]struct {
		kind, file string
		line       int
	}{
		"a\n{{ nope }}":                          {"UndefinedError", "", 2},
		"{% from 'lib' import m %}\n\n{{ m() }}": {"UndefinedError", "/files/lib", 3},
		"\n\n{% import 'gone' as x %}":           {"TemplateNotFound", "", 3},
		"a\nb\n{% for %}":                        {"TemplateSyntaxError", "", 3},
		"{% if x %}\n\n":                         {"TemplateSyntaxError", "", 1}, // the error is at the last token
		"{% if x %}\n{# c\n\n #}\n":              {"TemplateSyntaxError", "", 1},
		"a\n{% if x %}\n{{ y }}\n\n":             {"TemplateSyntaxError", "", 3},
		"\n\n{% if x":                            {"TemplateSyntaxError", "", 3},
		"x\n{% raw %}\n\n":                       {"TemplateSyntaxError", "", 2},
	} {
		_, err := render(t, env, text, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != want.kind || e.Line != want.line || e.File != want.file {
			t.Errorf("%q: %+v", text, err)
		}
	}
}

func TestLimits(t *testing.T) {
	env := NewEnv()
	env.Load = func(_ *Run, name string) (Source, bool, error) {
		return Source{Text: "{% include 'self' %}"}, name == "self", nil
	}
	for name, text := range map[string]string{
		"recursion":         "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"includes":          "{% include 'self' %}",
		"nesting":           "{{ " + strings.Repeat("(", 100000),
		"tags":              strings.Repeat("{% if x %}", 100000),
		"text":              `{{ "x" * 1000000000000 }}`,
		"text by text":      `{% set ns = namespace(s="xxxxxxxxxxxxxxxx") %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`,
		"list":              "{{ [0] * 100000000000 }}",
		"range":             "{{ range(1000000) }}",
		"power":             "{{ 10 ** 1000000000 }}",
		"width":             `{{ "%1000000000d" % 1 }}`,
		"width of a format": `{{ "{:1000000000}".format(1) }}`,
		"center":            `{{ "x".center(100000000000) }}`,
		"replace":           `{{ ("x" * 1000000).replace("x", "y" * 1000000) }}`,
		"indent":            `{{ ("\n" * 1000000)|indent(1000000) }}`,
		"join":              `{{ (["x" * 1000000] * 100000)|join }}`,
	} {
		if _, err := render(t, env, text, map[string]any{"x": true}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tmpl, err := env.Compile("", "", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a render goes on after its context: %v", err)
	}
}

func TestSandbox(t *testing.T) {
	env := NewEnv()
	for _, text := range []string{
		`{{ "".__class__ }}`, `{{ [].__class__.__mro__ }}`, `{{ ""["__class__"] }}`, `{{ "{0.__class__}".format(1) }}`, `{{ "x"|attr("__class__") }}`,
		`{% macro m() %}{% endmacro %}{{ m.__globals__ }}`, `{{ range.__call__ }}`,
	} {
		out, err := render(t, env, text, nil)
		if err == nil && out != "" {
			t.Errorf("%s: %q", text, out)
		}
	}
}

func TestTheCacheKeepsTemplatesApart(t *testing.T) {
	c := &Cache{}
	for _, strict := range []undefinedKind{Default, Strict} {
		env := NewEnv()
		env.Undefined = strict
		env.UseCache(c)
		_, err := render(t, env, "{{ nope }}", nil)
		if (err != nil) != (strict == Strict) {
			t.Errorf("%v: %v", strict, err)
		}
	}
	for i := range 50 {
		env := NewEnv()
		env.UseCache(c)
		text := strings.Repeat("x", maxCache/5) + string(rune('a'+i))
		if out, err := render(t, env, text, nil); err != nil || out != text {
			t.Fatal(err)
		}
	}
	if c.bytes > maxCache {
		t.Errorf("the cache holds %d bytes", c.bytes)
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"{{ x.y[1:2]|default('z')|upper }}", "{% for a, b in {'a': 1}.items() if a recursive %}{{ loop.index }}{% else %}{% endfor %}",
		"{% macro m(a, b=1) %}{{ caller() }}{{ varargs }}{{ kwargs }}{% endmacro %}{% call m(1, *[2], **{'c': 3}) %}x{% endcall %}",
		"{%- set a, b = 1, 2 -%}{%+ if a is odd and not b in [1] %}{{ '%05.2f' % 1.5 }}{% elif a ~ b %}{% endif %}", "{# c #}{% raw %}{{ }}{% endraw %}",
		"{% block b scoped %}{{ super() }}{{ self.b }}{% endblock %}", "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ '{:>{w}}'.format(1, w=5) }}",
		"{% filter upper|replace('A', 'b') %}a{% endfilter %}{% set x %}{{ 2 ** 70 // 3 }}{% endset %}{{ x|wordwrap(3)|pprint|tojson }}",
		"{{ '<a>'|urlize|striptags|xmlattr }}", "{% with a = 1 %}{% include 'i' ignore missing without context %}{% import 'i' as j with context %}{{ j }}{% endwith %}",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, other bool) {
		env := NewEnv()
		if other {
			env.Undefined = Strict
			env.Syntax.TrimBlocks, env.Syntax.LstripBlocks = true, true
			env.Syntax.LineStatementPrefix, env.Syntax.LineCommentPrefix = "%", "##"
		}
		env.Load = func(_ *Run, name string) (Source, bool, error) { return Source{Text: "{{ x }}"}, name == "i", nil }
		tmpl, err := env.Compile("", "", text)
		if err != nil {
			if e := asError(err); e.Line < 0 {
				t.Errorf("line %d", e.Line)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := tmpl.Render(ctx, map[string]any{"x": pyobj.NewDict("y", pyobj.NewList("a", int64(1)))})
		if err == nil && len(out) > MaxText {
			t.Errorf("%d bytes of output", len(out))
		}
	})
}

// TestCVE_2021_25283_Sandbox checks that a template cannot reach the internals of Python through an attribute of a
// value, as in Jinja's sandbox.
func TestCVE_2021_25283_Sandbox(t *testing.T) {
	for _, text := range []string{"{{ ''.__class__.__mro__ }}", "{{ [].__class__.__base__.__subclasses__() }}", "{{ ''['__class__'].x }}",
		"{{ (''|attr('__class__')).x }}", "{{ range.__init__.__globals__ }}", "{{ {}.__dict__.x }}"} {
		out, err := render(t, NewEnv(), text, nil)
		if out != "" || err == nil || !strings.Contains(err.Error(), "unsafe") {
			t.Errorf("%s: %q %v", text, out, err)
		}
	}
}
