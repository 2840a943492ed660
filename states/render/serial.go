package render

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/states/render/jinja"
)

// doubleQuoted is a text as a double quoted YAML scalar on one line.
func doubleQuoted(s string) string { return yaml.DoubleQuoted(s) }

// undefinedIn finds what is undefined in a value, at any depth.
func undefinedIn(v any) []string {
	var list []string
	seen := visited{}
	var search func(v any, depth int)
	search = func(v any, depth int) {
		if depth > maxPrintDepth || seen.before(v, depth) {
			return
		}
		switch v := v.(type) {
		case *jinja.Undefined:
			list = append(list, v.Message())
		case *pyobj.Dict:
			for _, x := range v.All() {
				search(x, depth+1)
			}
		case *pyobj.List:
			for _, x := range v.Items {
				search(x, depth+1)
			}
		case pyobj.Tuple:
			for _, x := range v {
				search(x, depth+1)
			}
		}
	}
	search(v, 0)
	return list
}

// strict makes a filter give an undefined value when its input has one in it (_handle_strict_undefined).
func strict(f jinja.Filter) jinja.Filter {
	return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
		if list := undefinedIn(v); list != nil && r.Env().Undefined == jinja.Strict {
			return r.Undefined(strings.Join(list, "\n")), nil
		}
		return f(r, v, a)
	}
}

// serialFilter is one of the filters of SerializerExtension, nil if there is none of the name.
func serialFilter(name string) jinja.Filter {
	switch name {
	case "yaml":
		return strict(filterYAML)
	case "json":
		return strict(filterJSON)
	case "python":
		return strict(func(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
			return pyobj.Markup(strings.TrimSpace(jinja.Pretty(v))), nil
		})
	case "xml":
		return strict(filterXML)
	case "load_yaml":
		return strict(filterLoadYAML)
	case "load_json":
		return strict(filterLoadJSON)
	case "load_text":
		return strict(func(_ *jinja.Run, v any, _ jinja.Args) (any, error) { return moduleText(v), nil })
	case "dict_to_sls_yaml_params":
		return strict(filterSLSParams)
	case "tojson":
		return strict(filterToJSON)
	}
	return iterFilter(name)
}

// moduleText is the text of an imported template; everything else stays as it is.
func moduleText(v any) any {
	if m, ok := v.(*jinja.Module); ok {
		return m.Text()
	}
	return v
}

func filterYAML(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("format_yaml", []string{"flow_style"}, true)
	if err != nil {
		return nil, err
	}
	return formatYAML(v, args[0])
}

func formatYAML(v, flow any) (any, error) {
	style := yaml.Style{Flow: yaml.FlowNever}
	if flow == nil {
		style.Flow = yaml.FlowLeafs
	} else if yes, err := jinja.Truth(flow); err != nil {
		return nil, err
	} else if yes {
		style.Flow = yaml.FlowAll
	}
	s, err := yaml.MarshalStyle(yamlValue(v), style)
	if err != nil {
		return nil, err
	}
	return pyobj.Markup(strings.TrimSuffix(strings.TrimSpace(s), "\n...")), nil
}

// yamlValue leaves data as it is.
func yamlValue(v any) any {
	if g, ok := v.(interface{ Plain() any }); ok {
		return pyobj.From(g.Plain())
	}
	return v
}

func filterSLSParams(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("dict_to_sls_yaml_params", []string{"flow_style"}, false)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, &jinja.Error{Kind: "AttributeError", Msg: "'" + pyobj.TypeName(v) + "' object has no attribute 'items'"}
	}
	l := &pyobj.List{}
	for k, x := range d.All() {
		l.Items = append(l.Items, pyobj.NewDict(k, x))
	}
	return formatYAML(l, args[0])
}

func filterJSON(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("format_json", []string{"sort_keys", "indent"}, true, nil)
	if err != nil {
		return nil, err
	}
	var o pyjson.Options
	if o.Sort, err = jinja.Truth(args[0]); err != nil {
		return nil, err
	}
	if err := jinja.SetIndent(&o, args[1]); err != nil {
		return nil, err
	}
	s, err := jinja.JSON(v, o)
	return pyobj.Markup(strings.TrimSpace(s)), err
}

// filterToJSON is Salt's tojson, which takes the options of json.dumps and gives a plain text.
func filterToJSON(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	o := pyjson.Options{ASCII: true, Indent: -1}
	if len(a.Pos) > 1 {
		return nil, &jinja.Error{Kind: "TypeError", Msg: "tojson() takes from 1 to 2 positional arguments but 3 were given"}
	}
	if len(a.Pos) == 1 {
		if err := jinja.SetIndent(&o, a.Pos[0]); err != nil {
			return nil, err
		}
	}
	for _, kw := range a.Kw {
		yes, err := jinja.Truth(kw.Value)
		if err != nil {
			return nil, err
		}
		switch kw.Name {
		case "indent":
			if err := jinja.SetIndent(&o, kw.Value); err != nil {
				return nil, err
			}
		case "sort_keys":
			o.Sort = yes
		case "ensure_ascii":
			o.ASCII = yes
		case "skipkeys":
			o.SkipKeys = yes
		case "allow_nan":
			o.RefuseNaN = !yes
		case "separators":
			list, err := jinja.Collect(kw.Value)
			if err != nil || len(list) != 2 {
				return nil, &jinja.Error{Kind: "ValueError", Msg: "not enough values to unpack (expected 2, got " + pyobj.Str(int64(len(list))) + ")"}
			}
			o.Comma, o.Colon = pyobj.Str(list[0]), pyobj.Str(list[1])
		default:
			return nil, &jinja.Error{Kind: "TypeError", Msg: "JSONEncoder.__init__() got an unexpected keyword argument '" + kw.Name + "'"}
		}
	}
	s, err := jinja.JSON(v, o)
	return jinja.HTMLSafe(s), err
}

func filterLoadYAML(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
	v = moduleText(v)
	var text string
	switch x := v.(type) {
	case string:
		text = x
	case pyobj.Markup:
		text = string(x)
	case []byte:
		text = string(x)
	default:
		return nil, raised("TypeError", "a string or stream input is required")
	}
	data, err := yaml.ParseObject([]byte(text), "<unicode string>", false)
	var e *yaml.Error
	if errors.As(err, &e) {
		return nil, &jinja.Error{Kind: "TemplateRuntimeError", Msg: "Encountered error loading yaml: " + e.Error()}
	}
	return decoded(data, 0), err
}

// decoded makes text of bytes and lists of tuples (salt.utils.data.decode).
func decoded(v any, depth int) any {
	if depth > 200 {
		return v
	}
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
	case *pyobj.List:
		for i, x := range v.Items {
			v.Items[i] = decoded(x, depth+1)
		}
	case pyobj.Tuple:
		return decoded(&pyobj.List{Items: v}, depth)
	case *pyobj.Dict:
		for k, x := range v.All() {
			if y := decoded(x, depth+1); !same(x, y) {
				_ = v.Set(k, y)
			}
		}
	}
	return v
}

// same tells whether a value is what it was before: only bytes and tuples become something else.
func same(x, y any) bool {
	switch x.(type) {
	case []byte:
		_, ok := y.([]byte)
		return ok
	case pyobj.Tuple:
		return false
	}
	return true
}

func filterLoadJSON(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
	v = moduleText(v)
	fail := &jinja.Error{Kind: "TemplateRuntimeError", Msg: "Unable to load json from " + pyobj.Str(v)}
	var text string
	switch x := v.(type) {
	case string:
		text = x
	case pyobj.Markup:
		text = string(x)
	default:
		return nil, fail
	}
	data, err := pyjson.ParseObject([]byte(text))
	if err != nil {
		return nil, fail
	}
	return data, nil
}
