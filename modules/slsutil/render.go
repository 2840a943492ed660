package slsutil

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/serializers"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
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
	sls, _ := vars["sls"].(string)
	v, err := c.Template(ctx, modules.Template{Text: text, Pipe: c.Str("default_renderer"), Shebang: true, Path: name, SaltEnv: env, SLS: sls, Vars: vars})
	var failed *modules.RenderError
	switch {
	case errors.Is(err, modules.ErrEngine):
		return nil, modules.Errorf("cannot render %s: this program has no renderers", file)
	case errors.As(err, &failed):
		return nil, &modules.PythonError{Type: cmp.Or(failed.Type, "SaltRenderError"), Msg: failed.Error()}
	}
	return v, err
}

// source returns the text of a file to render. ok is false if the file is missing or empty; stock then returns {}.
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
		c.Logger().Error("A template does not exist", "file", file)
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

// options returns the keyword arguments for the serializer.
func options(c *modules.Call) *pyobj.Dict {
	opts := &pyobj.Dict{}
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if !strings.HasPrefix(k, "__") {
			_ = opts.Set(k, pyobj.From(c.Keywords[k]))
		}
	}
	return opts
}

func serialize(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("serializer")
	if writes, _ := serializers.Known(name); !writes {
		return nil, modules.Errorf("Serializer '%s' not found.", name)
	}
	v, err := serializers.Serialize(name, c.Value("obj"), options(c))
	if err != nil {
		return nil, &modules.PythonError{Type: "SerializationError", Msg: err.Error()}
	}
	return v, nil
}

func deserialize(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("serializer")
	writes, reads := serializers.Known(name)
	switch {
	case !writes:
		return nil, modules.Errorf("Serializer '%s' not found.", name)
	case !reads:
		return nil, modules.Errorf("Serializer '%s' does not implement deserialize.", name)
	}
	var (
		v   any
		err error
	)
	switch in := c.Value("stream_or_string").(type) {
	case string:
		v, err = serializers.Deserialize(name, "", []byte(in), options(c))
	case []byte:
		v, err = serializers.Deserialize(name, "", in, options(c))
	default:
		err = errors.New("'" + modules.TypeName(in) + "' object has no attribute 'read'")
	}
	if err != nil {
		return nil, &modules.PythonError{Type: "DeserializationError", Msg: err.Error()}
	}
	return v, nil
}
