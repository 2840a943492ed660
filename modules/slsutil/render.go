package slsutil

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/internal/shlex"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
)

// maxFile bounds a file that is rendered.
const maxFile = 64 << 20

func renderer(ctx context.Context, c *modules.Call) (any, error) {
	file, text := c.Str("path"), c.Str("string")
	switch {
	case file == "" && text == "":
		return nil, modules.Usagef("Must pass either path or string")
	case file != "" && text != "":
		return nil, modules.Usagef("Must not pass both path and string")
	}
	vars := map[string]any{}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__pub_") && k != "env" {
			vars[k] = v
		}
	}
	if _, ok := vars["saltenv"]; !ok {
		vars["saltenv"] = "base"
	}
	name := ""
	if file != "" {
		var ok bool
		var err error
		if text, name, ok, err = source(ctx, c, file, vars["saltenv"]); err != nil || !ok {
			return &pyobj.Dict{}, err
		}
	}
	env, _ := vars["saltenv"].(string)
	v, err := c.Template(ctx, modules.Template{Text: text, Pipe: c.Str("default_renderer"), Shebang: true, Path: name, SaltEnv: env, Vars: vars})
	var failed *modules.RenderError
	switch {
	case errors.Is(err, modules.ErrEngine):
		return nil, modules.Errorf("cannot render %s: this program has no renderers", file)
	case errors.As(err, &failed):
		return nil, &modules.PythonError{Type: "SaltRenderError", Msg: failed.Error()}
	}
	return v, err
}

// source is the text of a file to render. false is a file that is not there or empty, for which stock answers {}.
func source(ctx context.Context, c *modules.Call, file string, env any) (text, name string, ok bool, err error) {
	v, err := c.ExecKw(ctx, "cp.get_url", []any{file}, map[string]any{"saltenv": env})
	if err != nil {
		return "", "", false, err
	}
	name, _ = v.(string)
	if !strings.Contains(file, "://") {
		name = c.Path(name)
	}
	info, err := os.Stat(name)
	if name == "" || err != nil || !info.Mode().IsRegular() {
		c.Logger().Error("a template does not exist", "file", file)
		return "", "", false, nil
	}
	if info.Size() > maxFile {
		return "", "", false, modules.Errorf("cannot render %s: it has more than %d bytes", file, maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", "", false, modules.OSError(err)
	}
	if !utf8.Valid(b) {
		return "", "", false, modules.Errorf("cannot render %s: it is not UTF-8", file)
	}
	return string(b), name, strings.TrimSpace(string(b)) != "", nil
}

// options are a serializer's options; an unknown one is an error.
func options(c *modules.Call, known ...string) (map[string]any, error) {
	opts := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if strings.HasPrefix(k, "__") {
			continue
		}
		if !slices.Contains(known, k) {
			return nil, modules.Usagef("the serializer %s does not know the option %s", c.Str("serializer"), k)
		}
		opts[k] = c.Keywords[k]
	}
	return opts, nil
}

func serialize(_ context.Context, c *modules.Call) (any, error) {
	obj := c.Value("obj")
	switch name := c.Str("serializer"); name {
	case "json":
		opts, err := options(c, "indent", "sort_keys", "ensure_ascii")
		if err != nil {
			return nil, err
		}
		indent := -1
		if n, ok := opts["indent"].(int64); ok {
			indent = int(min(n, 100))
		}
		return failing(output.Render("json", obj, output.Options{Indent: &indent}))
	case "yaml":
		opts, err := options(c, "indent", "default_flow_style", "sort_keys", "allow_unicode")
		if err != nil {
			return nil, err
		}
		style := yaml.Style{Flow: yaml.FlowLeafs}
		if v, ok := opts["default_flow_style"]; ok && v != nil {
			if style.Flow = yaml.FlowNever; pytext.Truth(v) {
				style.Flow = yaml.FlowAll
			}
		}
		if n, ok := opts["indent"].(int64); ok {
			style.Indent = int(min(max(n, 0), 100))
		}
		text, err := yaml.MarshalStyle(obj, style)
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n...\n"), "\n")
		return failing(text, err)
	case "python":
		if _, err := options(c); err != nil {
			return nil, err
		}
		return pytext.Pretty(obj, 1), nil
	case "keyvalue":
		return keyValue(c, obj)
	default:
		return nil, modules.Errorf("Serializer '%s' not found.", name)
	}
}

func failing(text string, err error) (any, error) {
	if err != nil {
		return nil, &modules.PythonError{Type: "SerializationError", Msg: err.Error()}
	}
	return text, nil
}

// keyValue writes lines of keys and values.
func keyValue(c *modules.Call, obj any) (any, error) {
	opts, err := options(c, "line_ending", "quoting", "separator")
	if err != nil {
		return nil, err
	}
	end, separator := "\n", "="
	if s, ok := opts["line_ending"].(string); ok && s != "" {
		end = s
	}
	if s, ok := opts["separator"].(string); ok {
		separator = s
	}
	var lines []string
	add := func(k, v any) {
		text := pytext.Str(v)
		if pytext.Truth(opts["quoting"]) {
			text = shlex.Quote(text)
		}
		lines = append(lines, pytext.Str(k)+separator+text)
	}
	switch obj := obj.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(obj)) {
			add(k, obj[k])
		}
	case []any:
		for _, x := range obj {
			pair, ok := x.([]any)
			if !ok || len(pair) != 2 {
				return nil, &modules.PythonError{Type: "SerializationError", Msg: "each item must be a pair of key and value"}
			}
			add(pair[0], pair[1])
		}
	default:
		return nil, &modules.PythonError{Type: "SerializationError", Msg: "Input validation failed. Iterable required."}
	}
	return strings.Join(lines, end), nil
}

func deserialize(_ context.Context, c *modules.Call) (any, error) {
	text, ok := c.Value("stream_or_string").(string)
	if b, isBytes := c.Value("stream_or_string").([]byte); isBytes && utf8.Valid(b) {
		text, ok = string(b), true
	}
	name := c.Str("serializer")
	if !ok {
		return nil, &modules.PythonError{Type: "DeserializationError", Msg: "'" + modules.TypeName(c.Value("stream_or_string")) + "' object has no attribute 'read'"}
	}
	var (
		v   any
		err error
	)
	switch name {
	case "json":
		if _, err := options(c); err != nil {
			return nil, err
		}
		v, err = pyjson.Parse([]byte(text))
	case "yaml":
		if _, err := options(c); err != nil {
			return nil, err
		}
		v, err = yaml.Parse([]byte(text), "<string>")
	case "keyvalue":
		return readKeyValue(c, text)
	case "python":
		return nil, modules.Errorf("Serializer '%s' does not implement deserialize.", name)
	default:
		return nil, modules.Errorf("Serializer '%s' not found.", name)
	}
	if err != nil {
		return nil, &modules.PythonError{Type: "DeserializationError", Msg: err.Error()}
	}
	return v, nil
}

func readKeyValue(c *modules.Call, text string) (any, error) {
	opts, err := options(c, "quoting", "separator")
	if err != nil {
		return nil, err
	}
	separator := "="
	if s, ok := opts["separator"].(string); ok && s != "" {
		separator = s
	}
	ret := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		key, val, ok := strings.Cut(line, separator)
		if !ok {
			return nil, &modules.PythonError{Type: "DeserializationError", Msg: "not enough values to unpack (expected 2, got 1)"}
		}
		if opts["quoting"] == any(false) && len(val) > 1 && val[0] == val[len(val)-1] && (val[0] == '"' || val[0] == '\'') {
			val = val[1 : len(val)-1]
		}
		ret[key] = val
	}
	return ret, nil
}
