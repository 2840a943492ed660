package render

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/tagged"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// lines reads a compressed file of JSON lines.
func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	for d := json.NewDecoder(z); d.More(); {
		var c T
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

type semanticCase struct {
	ID     string                     `json:"id"`
	Src    string                     `json:"src"`
	Files  map[string]string          `json:"files"`
	Ctx    map[string]json.RawMessage `json:"ctx"`
	Rec    map[string]json.RawMessage `json:"rec"`
	Out    *string                    `json:"out"`
	Err    string                     `json:"err"`
	Opts   map[string]any             `json:"opts"`
	Lineno int                        `json:"lineno"`
}

// recorded is the variable salt of a case. Its functions return the recorded results.
type recorded struct {
	t   *testing.T
	rec map[string]json.RawMessage
}

func (recorded) TypeName() string { return "FakeSalt" }
func (recorded) Repr() string     { return "<salt>" }

func compactJSON(v any) string {
	s, _ := jinja.JSON(v, pyjson.Options{Sort: true, Indent: -1, Comma: ",", Colon: ":"})
	return s
}

func (r recorded) fun(name string) *jinja.Func {
	return &jinja.Func{Name: name, Fn: func(_ *jinja.Run, a jinja.Args) (any, error) {
		var parts []string
		for _, v := range a.Pos {
			parts = append(parts, compactJSON(v))
		}
		kw := map[string]any{}
		for _, k := range a.Kw {
			kw[k.Name] = k.Value
		}
		for _, k := range pyobj.FromMap(kw).Keys() {
			parts = append(parts, k.(string)+"="+compactJSON(kw[k.(string)]))
		}
		key := name + "(" + strings.Join(parts, ",") + ")"
		raw, ok := r.rec[key]
		if !ok {
			return nil, errors.New("not recorded: " + key)
		}
		v := tagged.Parse(r.t, raw)
		if err, bad := v.(error); bad {
			return nil, err
		}
		return v, nil
	}}
}

func (r recorded) known(name string) bool {
	for k := range r.rec {
		if strings.HasPrefix(k, name+"(") {
			return true
		}
	}
	return strings.HasPrefix(name, "test.")
}

func (r recorded) GetItem(_ *jinja.Run, key any) (any, bool, error) {
	name := pyobj.Str(key)
	if !r.known(name) {
		return nil, false, nil
	}
	return r.fun(name), true, nil
}

func (r recorded) Contains(v any) bool { return r.known(pyobj.Str(v)) }

func (r recorded) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	if name != "test" {
		return nil, false, nil
	}
	return recordedModule{r, name}, true, nil
}

type recordedModule struct {
	r    recorded
	name string
}

func (recordedModule) TypeName() string { return "Mod" }
func (recordedModule) Repr() string     { return "<mod>" }
func (m recordedModule) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	return m.r.fun(m.name + "." + name), true, nil
}

// excused lists the cases whose results differ, with the reason.
var excused = map[string]string{
	"filters/97":  "the text has an address of Python's memory in it",
	"filters/109": "the recording holds the result of an iterator that was used up",
	"error/28":    "the text names a variable of the code that Jinja2 generates",
	"salt/12":     "the recording has another spelling of the argument",
	"salt/17":     "the class of the recorded error is not in the recording",
	"salt/18":     "the text is about an object of the recorder",
}

// TestSemantics renders templates and compares the results with those that Jinja2 computed in the environment of Salt
// 3007.
func TestSemantics(t *testing.T) {
	cases := lines[semanticCase](t, "testdata/semantic.jsonl.gz")
	wrong := 0
	for _, c := range cases {
		got, kind, line := renderCase(t, c)
		want, wantKind := "", ""
		if c.Out != nil {
			want = *c.Out
		} else {
			wantKind, want, _ = strings.Cut(c.Err, ": ")
		}
		ok := got == want && kind == wantKind && (c.Lineno == 0 || kind == "" || line == c.Lineno)
		if why, known := excused[c.ID]; known {
			if ok {
				t.Errorf("%s is right, but excused: %s", c.ID, why)
			}
			continue
		}
		if !ok {
			wrong++
			t.Errorf("%s: %q\n got %s %q line %d\nwant %s %q line %d", c.ID, c.Src, kind, got, line, wantKind, want, c.Lineno)
		}
	}
	t.Logf("%d cases, %d wrong, %d excused", len(cases), wrong, len(excused))
}

func renderCase(t *testing.T, c semanticCase) (out, kind string, line int) {
	t.Helper()
	names := map[string]any{"odict": jinja.DictClass(), "raise": &jinja.Func{Name: "jinja_raise", Fn: raiseError}}
	for k, raw := range c.Ctx {
		names[k] = tagged.Parse(t, raw)
	}
	names["salt"] = recorded{t, c.Rec}
	env := jinja.NewEnv()
	env.Undefined = jinja.Strict
	env.Serializers = true
	env.Filters, env.Tests = saltFilter, saltTest
	env.Finalize = printable
	env.Globals = names
	env.Load = func(r *jinja.Run, name string) (jinja.Source, bool, error) {
		full := name
		if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
			dir, _ := r.Global("tpldir")
			full = cleanPath(pyobj.Str(dir) + "/" + name)
		}
		text, ok := c.Files[full]
		return jinja.Source{Text: text, File: full}, ok, nil
	}
	tmpl, err := env.Compile("", "", c.Src)
	if err == nil {
		out, err = tmpl.Render(t.Context(), names)
	}
	if err == nil {
		if strings.HasSuffix(c.Src, "\n") {
			out += "\n"
		}
		return out, "", 0
	}
	var e *jinja.Error
	if !errors.As(err, &e) {
		return err.Error(), "error", 0
	}
	return e.Msg, e.Kind, e.Line
}

func cleanPath(p string) string {
	var parts []string
	for _, x := range strings.Split(p, "/") {
		switch x {
		case ".", "":
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		default:
			parts = append(parts, x)
		}
	}
	return strings.Join(parts, "/")
}

type yamlCase struct {
	ID   string          `json:"id"`
	Src  string          `json:"src"`
	Want json.RawMessage `json:"want"`
	Err  json.RawMessage `json:"err"`
	Line int             `json:"line"`
}

var excusedYAML = map[string]string{
	"scalar/207":  "!!omap of a sequence is an error of Salt's own making there, a list of pairs in YAML and here",
	"scalarl/207": "as scalar/207",
}

// TestYAML reads documents and compares the values with those that Salt 3007's loader returned.
func TestYAML(t *testing.T) {
	cases := lines[yamlCase](t, "testdata/yaml.jsonl.gz")
	wrong := 0
	for _, c := range cases {
		v, err := yaml.ParseObject([]byte(c.Src), "<unicode string>", false)
		ok := false
		if len(c.Err) > 0 && string(c.Err) != "null" {
			ok = err != nil
		} else if err == nil {
			ok = pyobj.Repr(v) == pyobj.Repr(tagged.Parse(t, c.Want))
		}
		if why, known := excusedYAML[c.ID]; known {
			if ok {
				t.Errorf("%s is right, but excused: %s", c.ID, why)
			}
			continue
		}
		if !ok {
			wrong++
			t.Errorf("%s: %q\n got %s, %v\nwant %s %s", c.ID, c.Src, pyobj.Repr(v), err, c.Want, c.Err)
		}
	}
	t.Logf("%d cases, %d wrong", len(cases), wrong)
}
