package render

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// files serves the files of a directory.
type files struct {
	modules.Files
	dir string
}

func (f files) Cache(_ context.Context, url, saltenv string) (string, error) {
	name := filepath.Join(f.dir, saltenv, filepath.FromSlash(strings.TrimPrefix(url, "salt://")))
	if _, err := os.Stat(name); err != nil {
		return "", nil
	}
	return name, nil
}

// runner is a modules.Runner that is a function.
type runner func(c modules.Command) (modules.CommandResult, error)

func (r runner) Run(_ context.Context, c modules.Command) (modules.CommandResult, error) { return r(c) }

var echo = &modules.Module{Name: "test", Funcs: []modules.Def{
	{Name: "echo", Doc: "x", Params: []modules.Param{{Name: "text"}}, Ordered: true,
		Run: func(_ context.Context, c *modules.Call) (any, error) { return c.Value("text"), nil }},
	{Name: "fail", Doc: "x", Run: func(context.Context, *modules.Call) (any, error) { return nil, modules.Errorf("no luck") }},
}}

// host returns a call that can render, with the files of list in the environment base.
func host(t *testing.T, opts map[string]any, list map[string]string) *modules.Call {
	t.Helper()
	dir := t.TempDir()
	for name, text := range list {
		full := filepath.Join(dir, "base", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pillar := pyobj.NewDict("z", int64(1), "a", int64(2))
	return modules.NewRegistry(echo).NewCall(&modules.Env{
		Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return map[string]any{"os": "Debian"} },
		Pillar: func() map[string]any { return pyobj.PlainMap(pillar) }, OrderedPillar: func() *pyobj.Dict { return pillar },
		Files: files{dir: dir}, Templates: Render,
	}, "state.show_sls", "", nil)
}

// TestRendererLists checks that a renderer is skipped, as in stock, if renderer_whitelist does not name it or
// renderer_blacklist does.
func TestRendererLists(t *testing.T) {
	for option, want := range map[string]map[string]string{
		"renderer_whitelist": {"#!yaml\na: 1": "{'a': 1}", "#!json\n{\"a\": 1}": "{}", "#!jinja|yaml\na: '{{ 1 }}'": "{'a': '{{ 1 }}'}"},
		"renderer_blacklist": {"#!yaml\na: 1": "{}", "#!json\n{\"a\": 1}": "{'a': 1}", "#!jinja|yaml\na: {{ 1 }}": `'#!jinja|yaml\na: 1'`},
	} {
		c := host(t, map[string]any{option: []any{"yaml"}}, nil)
		for text, out := range want {
			v, err := c.Template(t.Context(), modules.Template{Text: text, Shebang: true})
			if d, ok := v.(*pyobj.Dict); ok {
				d.Ordered = false
			}
			if got := pyobj.Repr(v); got != out || err != nil {
				t.Errorf("%s: [yaml], %q: %s %v, want %s", option, text, got, err, out)
			}
		}
	}
}

func TestPipes(t *testing.T) {
	c := host(t, map[string]any{"renderer_blacklist": []any{"py"}}, nil)
	for text, want := range map[string]string{
		"b: {{ 1 }}\na: 2":                          "OrderedDict([('b', 1), ('a', 2)])",
		"#!yaml\na: {x: '{{ 1 }}'}":                 "OrderedDict([('a', OrderedDict([('x', '{{ 1 }}')]))])",
		"#!jinja|json\n{\"b\": {{ 1 }}, \"a\": []}": "{'b': 1, 'a': []}",
		"#!yaml_jinja\na: {{ 1 }}":                  "OrderedDict([('a', 1)])",
		"#!jinja\na {{ 1 }}\r\n":                    `'#!jinja\r\na 1\r\n'`,
		"#!py|jinja|yaml\na: 1":                     "OrderedDict([('a', 1)])",
		"#!nosuch\na: 1":                            `error The renderer "nosuch" is not available`,
		"#!yaml|jinja\na: 1":                        "error cannot render with jinja: the renderer before it did not return text",
		" \n":                                       "{}",
		"a: 1\na: 2":                                "error while constructing a mapping\n  in \"<unicode string>\", line 1, column 1\nfound conflicting ID 'a'\n  in \"<unicode string>\", line 2, column 1",
		"a:\n\t- b":                                 "error found character that cannot start any token",
	} {
		v, err := c.Template(t.Context(), modules.Template{Text: text, Shebang: true})
		got := pyobj.Repr(v)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	if _, err := c.Template(t.Context(), modules.Template{Text: "x", Pipe: "mako", Engine: true}); !errors.Is(err, modules.ErrEngine) {
		t.Errorf("an unknown engine: %v", err)
	}
}

func TestNamesOfAStateFile(t *testing.T) {
	c := host(t, nil, map[string]string{
		"web/nginx/map.jinja": "{% set m = {'dir': tpldir, 'file': tplfile} %}{% macro f() %}\n\n{{ nope }}{% endmacro %}",
		"lib.jinja":           "{% macro up(x) %}{{ x|upper }}{% endmacro %}",
		"data.yaml":           "k: [1, {{ grains.os }}]\n",
	})
	one := func(text string) (any, error) {
		return c.Template(t.Context(), modules.Template{Text: text, Pipe: "jinja", Path: "/cache/base/web/nginx/init.sls", SaltEnv: "base", SLS: "web.nginx", IsSLS: true,
			Vars: map[string]any{"extra": map[string]any{"b": 1}}})
	}
	for text, want := range map[string]string{
		"{{ sls }} {{ slspath }} {{ slsdotpath }} {{ slscolonpath }} {{ sls_path }} {{ tpldir }} {{ tplfile }} {{ tpldot }} {{ tplpath }} {{ saltenv }}": "web.nginx web/nginx web.nginx web:nginx web_nginx web/nginx web/nginx/init.sls web.nginx /cache/base/web/nginx/init.sls base",
		"{% from './map.jinja' import m %}{{ m }}":                                                                            "{'dir': 'web/nginx', 'file': './map.jinja'}",
		"{% from 'web/nginx/map.jinja' import m with context %}{{ m.dir }}":                                                   "web/nginx",
		"{% from '../../lib.jinja' import up %}{{ up('x') }}":                                                                 "X",
		"{% import_yaml 'data.yaml' as d %}{{ d.k }}":                                                                         "[1, 'Debian']",
		"{{ pillar.keys()|list }}{% do pillar.update({'n': 1}) %}{{ pillar.n }} {{ extra.b }}":                                "['z', 'a']1 1",
		"{{ salt['test.echo']({'b': 1, 'a': 2}) }} {{ salt.test.echo('x') }} {{ 'test.echo' in salt }} {{ 'no.no' in salt }}": "{'b': 1, 'a': 2} x True False",
		"{{ salt['no.no'] is defined }}":                                                                                      "False",
		"x\n{{ salt['test.fail']() }}":                                                                                        "error Problem running salt function in Jinja template: no luck; line 2\n\n---\nx\n{{ salt['test.fail']() }}    <======================\n---",
		"{% import '../../../x' as x %}":                                                                                      "error Jinja error: ../../../x; line 1\n\n---\n{% import '../../../x' as x %}    <======================\n---",
	} {
		v, err := one(text)
		got, _ := v.(string)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	_, err := one("{% from './map.jinja' import f %}\n{{ f() }}")
	file, _ := files{dir: c.Files.(files).dir}.Cache(t.Context(), "salt://web/nginx/map.jinja", "base")
	want := "Jinja variable 'nope' is undefined\n" + file + "(3):\n---\n{% set m = {'dir': tpldir, 'file': tplfile} %}{% macro f() %}\n\n{{ nope }}{% endmacro %}    <======================\n---"
	if err == nil || err.Error() != want {
		t.Errorf("an error in another file:\n got %v\nwant %s", err, want)
	}
}

func TestOptions(t *testing.T) {
	c := host(t, map[string]any{"jinja_sls_env": map[string]any{"trim_blocks": true}, "jinja_env": map[string]any{"variable_start_string": "<<", "variable_end_string": ">>"},
		"allow_undefined": true}, nil)
	for _, x := range []struct {
		t    modules.Template
		want string
	}{
		{modules.Template{Text: "{% if 1 %}\na{{ nope }}\n{% endif %}\n", Pipe: "jinja", SLS: "x", IsSLS: true}, "a\n\n"},
		{modules.Template{Text: "<< 1 >>{{ 1 }}", Pipe: "jinja", Engine: true}, "1{{ 1 }}"},
		{modules.Template{Text: "#jinja2: {\"trim_blocks\": false}\n{% if 1 %}\na{% endif %}", Pipe: "jinja", SLS: "x", IsSLS: true}, "\na"},
	} {
		got, err := c.Template(t.Context(), x.t)
		if got != x.want || err != nil {
			t.Errorf("%q: %q %v", x.t.Text, got, err)
		}
	}
}

func TestGPG(t *testing.T) {
	if host(t, nil, nil).Which("gpg") == "" {
		t.Log("gpg is not installed: its absence is what is tested")
		if _, err := host(t, nil, nil).Template(t.Context(), modules.Template{Text: "#!yaml|gpg\na: 1", Shebang: true}); err == nil || err.Error() != "GPG unavailable" {
			t.Error(err)
		}
		return
	}
	message := gpgBegin + "\n\nsecret\n" + gpgEnd
	opts := map[string]any{"gpg_keydir": "/keys", "gpg_decrypt_must_succeed": false}
	c := host(t, opts, nil)
	plain := "plain\n"
	c.Runner = runner(func(cmd modules.Command) (modules.CommandResult, error) {
		in, err := io.ReadAll(cmd.Stdin)
		if err != nil || string(in) != message || cmd.Args[2] != "/keys" {
			t.Errorf("gpg got %q, %v", in, cmd.Args)
		}
		return modules.CommandResult{Stdout: []byte(plain)}, nil
	})
	text := "#!yaml|gpg\na:\n  - x\n  - |\n    before " + strings.ReplaceAll(message, "\n", "\n    ") + "\n"
	v, err := c.Template(t.Context(), modules.Template{Text: text, Shebang: true})
	if got := pyobj.Repr(v); err != nil || got != "OrderedDict([('a', ['x', 'before plain'])])" {
		t.Errorf("%s %v", got, err)
	}
	plain = ""
	if v, err := c.Template(t.Context(), modules.Template{Text: text, Shebang: true}); err != nil || !strings.Contains(pyobj.Repr(v), "secret") {
		t.Errorf("a message that cannot be read: %v %v", v, err)
	}
	plain = "kept"
	opts["gpg_cache"], opts["gpg_cache_ttl"] = true, int64(60)
	for range 2 {
		if v, err := c.Decrypt(t.Context(), message, "gpg", false); err != nil || v != "kept" {
			t.Errorf("with a cache: %v %v", v, err)
		}
		plain = "it must not ask gpg"
	}
	plain = ""
	opts["gpg_cache"], opts["decrypt_pillar_renderers"] = false, []any{"gpg"}
	if _, err := c.Decrypt(t.Context(), message, "jinja", false); err == nil || err.Error() != "'jinja' is not a valid decryption renderer. Valid choices are: gpg" {
		t.Errorf("a renderer that is not allowed: %v", err)
	}
	opts["gpg_decrypt_must_succeed"] = true
	if _, err := c.Template(t.Context(), modules.Template{Text: text, Shebang: true}); err == nil {
		t.Error("no error though it must succeed")
	}
}

// TestFiltersOfTheHostThatRenders checks that a filter uses the host of the current render, although all renders
// share the compiled templates.
func TestFiltersOfTheHostThatRenders(t *testing.T) {
	for _, content := range []string{"", "x"} {
		c := host(t, nil, nil)
		c.Root = t.TempDir()
		if err := os.WriteFile(filepath.Join(c.Root, "f"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "False"
		if content == "" {
			want = "True"
		}
		got, err := c.Render(t.Context(), "jinja", "{{ '/f'|is_empty }}", nil)
		if err != nil || got != want {
			t.Errorf("%q: %q %v", content, got, err)
		}
	}
}
