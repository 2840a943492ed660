// Package serializers formats and parses data in the formats of Salt's serializers: configparser, json, keyvalue,
// msgpack, plist, python, yaml and yamlex. Values are those of package pyobj. Salt's sources: salt/serializers/*.py.
package serializers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Known reports whether a format can be written and read. toml is not supported: in Salt it needs a Python package
// that Salt does not include.
func Known(format string) (writes, reads bool) {
	switch format {
	case "configparser", "json", "keyvalue", "msgpack", "plist", "yaml", "yamlex":
		return true, true
	case "python":
		return true, false
	}
	return false, false
}

// Serialize formats data as text or bytes. opts are the keyword arguments of Salt's function; an unknown one is an
// error. Errors have the text of Salt's SerializationError.
func Serialize(format string, v any, opts *pyobj.Dict) (any, error) {
	switch format {
	case "configparser":
		return writeConfig(v, opts)
	case "json":
		return writeJSON(v, opts)
	case "keyvalue":
		return writeKeyValue(v, opts)
	case "msgpack":
		if err := refuse(format, opts, "use_bin_type"); err != nil {
			return nil, err
		}
		p := packer{bin: !opts.Has("use_bin_type") || pyobj.Truth(opts.Value("use_bin_type"))}
		if err := p.value(v, 0); err != nil {
			return nil, err
		}
		return p.out, nil
	case "plist":
		return writePlist(v, opts)
	case "python":
		return writePython(v, opts)
	case "yaml", "yamlex":
		return writeYAML(format, v, opts)
	}
	return nil, fmt.Errorf("the serializer %s is not available", format)
}

// Deserialize parses data from text or bytes. Errors have the text of Salt's DeserializationError. name is the file's
// name in that text, or "" if the data is not from a file.
func Deserialize(format, name string, in []byte, opts *pyobj.Dict) (any, error) {
	switch format {
	case "configparser":
		return readConfig(name, string(in), opts)
	case "json":
		if err := refuse(format, opts); err != nil {
			return nil, err
		}
		return pyjson.ParseObject(in)
	case "keyvalue":
		return readKeyValue(string(in), opts)
	case "msgpack":
		if err := refuse(format, opts); err != nil {
			return nil, err
		}
		return unpack(in)
	case "plist":
		if err := refuse(format, opts); err != nil {
			return nil, err
		}
		return readPlist(in)
	case "yamlex":
		if err := refuse(format, opts); err != nil {
			return nil, err
		}
		v, err := yaml.ParseAggregate(in, "<unicode string>")
		if err != nil {
			msg, _ := yaml.Problem(err)
			return nil, errors.New(msg)
		}
		return v, nil
	case "yaml":
		if err := refuse(format, opts); err != nil {
			return nil, err
		}
		if name == "" {
			name = "<string>"
		}
		return yaml.ParseObject(in, name, false)
	}
	return nil, fmt.Errorf("the serializer %s is not available", format)
}

func refuse(format string, opts *pyobj.Dict, known ...string) error {
	for k := range opts.All() {
		found := false
		for _, name := range known {
			found = found || k == any(name)
		}
		if !found {
			return fmt.Errorf("the serializer %s does not know the option %s", format, pyobj.Str(k))
		}
	}
	return nil
}

// indentOf returns the option indent, limited to 100, or the value none if it is not set.
func indentOf(opts *pyobj.Dict, none int) int {
	if n, ok := opts.Value("indent").(int64); ok {
		return int(min(max(n, 0), 100))
	}
	return none
}

func writeJSON(v any, opts *pyobj.Dict) (any, error) {
	if err := refuse("json", opts, "indent", "sort_keys", "ensure_ascii", "separators"); err != nil {
		return nil, err
	}
	o := pyjson.Options{Indent: indentOf(opts, -1), Sort: pyobj.Truth(opts.Value("sort_keys")), ASCII: pyobj.Truth(opts.Value("ensure_ascii"))}
	if s, ok := opts.Value("indent").(string); ok {
		o.Indent, o.IndentText = 0, s
	}
	if l, ok := opts.Value("separators").(*pyobj.List); ok && len(l.Items) == 2 {
		o.Comma, o.Colon = pyobj.Str(l.Items[0]), pyobj.Str(l.Items[1])
	}
	return pyjson.Format(v, o)
}

func writePython(v any, opts *pyobj.Dict) (any, error) {
	if err := refuse("python", opts, "indent"); err != nil {
		return nil, err
	}
	text, err := pyjson.Format(v, pyjson.Options{Indent: -1})
	if err != nil {
		return nil, err
	}
	plain, err := pyjson.Parse([]byte(text))
	return pytext.Pretty(plain, indentOf(opts, 1)), err
}

func writeYAML(format string, v any, opts *pyobj.Dict) (any, error) {
	if err := refuse(format, opts, "indent", "default_flow_style", "allow_unicode", "width", "explicit_start", "explicit_end", "sort_keys"); err != nil {
		return nil, err
	}
	style := yaml.Style{Flow: yaml.FlowLeafs, ASCII: !pyobj.Truth(opts.Value("allow_unicode")), Sorted: true, Indent: indentOf(opts, 0),
		Start: pyobj.Truth(opts.Value("explicit_start")), End: pyobj.Truth(opts.Value("explicit_end"))}
	if n, ok := opts.Value("width").(int64); ok {
		style.Width = int(max(min(n, 1<<30), -1))
	}
	if format == "yamlex" || opts.Has("sort_keys") && !pyobj.Truth(opts.Value("sort_keys")) {
		style.Sorted, style.Unsorted = false, true
	}
	if v := opts.Value("default_flow_style"); v != nil {
		if style.Flow = yaml.FlowNever; pyobj.Truth(v) {
			style.Flow = yaml.FlowAll
		}
	}
	text, err := yaml.MarshalStyle(v, style)
	if short, ok := strings.CutSuffix(text, "\n...\n"); ok {
		return short, err
	}
	return strings.TrimSuffix(text, "\n"), err
}

// iterate implements Python's iteration. Its error is Python's for unpacking a value that cannot be iterated.
func iterate(v any) ([]any, error) {
	if list, ok := pyobj.Iterate(v); ok {
		return list, nil
	}
	return nil, fmt.Errorf("cannot unpack non-iterable %s object", pyobj.TypeName(v))
}
