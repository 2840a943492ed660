package render

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// doubleQuoted returns a text as a double quoted YAML scalar on one line.
func doubleQuoted(s string) string { return yaml.DoubleQuoted(s) }

// undefinedIn returns the messages of the undefined values in v, at any depth.
func undefinedIn(v any) []string {
	var list []string
	seen := visited{}
	var search func(v any, depth int)
	search = func(v any, depth int) {
		// Values that were searched at this depth are not searched again.
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

// strictFilter wraps a filter so that it returns an undefined value if its input contains one
// (_handle_strict_undefined). Otherwise a serializer would print nothing for a missing name.
func strictFilter(f jinja.Filter) jinja.Filter {
	return func(r *jinja.Run, v any, a jinja.Args) (any, error) {
		// Only a strict environment fails for it. The others print nothing.
		if list := undefinedIn(v); list != nil && r.Env().Undefined == jinja.Strict {
			return r.Undefined(strings.Join(list, "\n")), nil
		}
		return f(r, v, a)
	}
}

// serialFilter returns one of the filters of SerializerExtension, or nil.
func serialFilter(name string) jinja.Filter {
	switch name {
	case "yaml":
		return strictFilter(filterYAML)
	case "json":
		return strictFilter(filterJSON)
	case "python":
		return strictFilter(func(_ *jinja.Run, v any, _ jinja.Args) (any, error) {
			return pyobj.Markup(strings.TrimSpace(jinja.Pretty(v))), nil
		})
	case "xml":
		return strictFilter(filterXML)
	case "load_yaml":
		return strictFilter(filterLoadYAML)
	case "load_json":
		return strictFilter(filterLoadJSON)
	case "load_text":
		return strictFilter(func(_ *jinja.Run, v any, _ jinja.Args) (any, error) { return moduleText(v), nil })
	case "dict_to_sls_yaml_params":
		return strictFilter(filterSLSParams)
	case "tojson":
		return strictFilter(filterToJSON)
	}
	return iterFilter(name)
}

// moduleText returns the text of an imported template, and any other value unchanged. import_yaml imports a template
// and loads its text.
func moduleText(v any) any {
	if m, ok := v.(*jinja.Module); ok {
		return m.Text()
	}
	return v
}

// filterYAML implements the filter yaml.
func filterYAML(_ *jinja.Run, v any, a jinja.Args) (any, error) {
	args, err := a.Bind("format_yaml", []string{"flow_style"}, true)
	if err != nil {
		return nil, err
	}
	return formatYAML(v, args[0])
}

// formatYAML returns YAML in block style, in flow style, or with flow style for the innermost collections if flow
// is None.
func formatYAML(v, flow any) (any, error) {
	style := yaml.Style{Flow: yaml.FlowNever}
	// None is PyYAML's default style.
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

// yamlValue returns v as data. An object such as a group of groupby is replaced by its content.
func yamlValue(v any) any {
	if g, ok := v.(interface{ Plain() any }); ok {
		return pyobj.From(g.Plain())
	}
	return v
}

// filterSLSParams implements dict_to_sls_yaml_params: a list of dicts with one key each, the form of a state's
// arguments.
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

// filterJSON implements the filter json.
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

// filterToJSON implements Salt's tojson. Unlike Jinja's, it takes the options of json.dumps by name and returns a
// plain text.
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
		// The separators come as a pair.
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

// filterLoadYAML implements load_yaml, of a text or an imported template.
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
		return nil, raiseAs("TypeError", "a string or stream input is required")
	}
	data, err := yaml.ParseObject([]byte(text), "<unicode string>", false)
	var e *yaml.Error
	// Stock shows PyYAML's own message.
	if errors.As(err, &e) {
		return nil, &jinja.Error{Kind: "TemplateRuntimeError", Msg: "Encountered error loading yaml: " + e.Error()}
	}
	return decodeText(data, 0), err
}

// decodeText converts bytes to text and tuples to lists (salt.utils.data.decode), in place where possible.
func decodeText(v any, depth int) any {
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
			v.Items[i] = decodeText(x, depth+1)
		}
	case pyobj.Tuple:
		return decodeText(&pyobj.List{Items: v}, depth)
	// Only changed values are stored, so that a shared dict is not changed.
	case *pyobj.Dict:
		for k, x := range v.All() {
			if y := decodeText(x, depth+1); !isUnchanged(x, y) {
				_ = v.Set(k, y)
			}
		}
	}
	return v
}

// isUnchanged reports whether decodeText returned the same value. It changes only bytes and tuples. Comparing the
// values themselves could compare lists, which Go cannot compare.
func isUnchanged(x, y any) bool {
	switch x.(type) {
	case []byte:
		_, ok := y.([]byte)
		return ok
	case pyobj.Tuple:
		return false
	}
	return true
}

// filterLoadJSON implements load_json.
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
