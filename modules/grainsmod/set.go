package grainsmod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
)

// grainsFile returns the path of the file grains: beside the minion's configuration file, or inside it if that is a
// directory.
func grainsFile(c *modules.Call) (string, error) {
	conf, _ := c.Opt("conf_file").(string)
	if conf == "" {
		return "", modules.Errorf("cannot find the grains file: the minion has no configuration file")
	}
	if info, err := os.Stat(c.Path(conf)); err == nil && info.IsDir() {
		return c.Path(filepath.Join(conf, "grains")), nil
	}
	return c.Path(filepath.Join(filepath.Dir(conf), "grains")), nil
}

func setvals(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, c.Value("grains"), c.Bool("destructive"), c.Value("refresh_pillar"))
}

func setval(ctx context.Context, c *modules.Call) (any, error) {
	grain := map[string]any{pytext.Str(c.Value("key")): c.Value("val")}
	return change(ctx, c, grain, c.Bool("destructive"), c.Value("refresh_pillar"))
}

// change writes grains to the file and makes the minion read it. It returns the written grains, or a text about the
// failure.
func change(ctx context.Context, c *modules.Call, grains any, destructive bool, refreshPillar any) (any, error) {
	wanted, ok := grains.(map[string]any)
	if !ok {
		return nil, &modules.PythonError{Type: "SaltException", Msg: "setvals grains must be a dictionary."}
	}
	file, err := grainsFile(c)
	if err != nil {
		return nil, err
	}
	have, problem, err := readGrains(file)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if problem != "" {
		return problem, nil
	}
	for k, v := range wanted {
		if v == nil && destructive {
			delete(have, k)
			c.Context().DropGrain(k)
		} else {
			have[k] = v
			c.Context().SetGrain(k, nested.Copy(v))
		}
	}
	if err := writeGrains(file, have); err != nil {
		c.Logger().Error("Unable to write to grains file. Check permissions.", "path", file, "err", err)
	}
	return wanted, refresh(ctx, c, refreshPillar)
}

func refresh(ctx context.Context, c *modules.Call, refreshPillar any) error {
	if dir, ok := c.Opt("cachedir").(string); ok && dir != "" {
		if err := os.WriteFile(c.Path(filepath.Join(dir, "module_refresh")), nil, 0o600); err != nil {
			c.Logger().Error("Unable to write to cache file. Check permissions.", "err", err)
		}
	}
	if pytext.Truth(c.Opt("local")) {
		return nil
	}
	_, err := c.ExecKw(ctx, "saltutil.refresh_grains", nil, map[string]any{"refresh_pillar": refreshPillar})
	var absent *modules.NotAvailableError
	if errors.As(err, &absent) { // a program may do without saltutil; the file counts at its next start
		return nil
	}
	return err
}

// readGrains reads the grains file. A file that is no YAML is a problem, which Salt returns as text.
func readGrains(file string) (grains map[string]any, problem string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	v, err := yaml.Parse(text, file)
	if err != nil {
		return nil, fmt.Sprintf("Unable to read existing grains file: %s", err), nil
	}
	grains, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}, "", nil
	}
	return grains, "", nil
}

// writeGrains replaces the file; a link keeps pointing to it, and it keeps its mode.
func writeGrains(file string, grains map[string]any) error {
	text, err := yaml.Marshal(grains)
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	return atomicfile.WriteFile(file, []byte(text), mode)
}

// nest puts a changed value back into the grains that contain it, from the inside out, and returns the outermost key
// and its value. As in Salt, a value on the way that is not a map is replaced.
func nest(c *modules.Call, key, delimiter string, value, missing any) (string, any, error) {
	for strings.Contains(key, delimiter) {
		at := strings.LastIndex(key, delimiter)
		outer, rest := key[:at], key[at+len(delimiter):]
		v, err := plainLookup(c, outer, nested.Copy(missing), delimiter)
		if err != nil {
			return "", nil, err
		}
		if m, ok := v.(map[string]any); ok {
			m[rest] = value
		}
		key, value = outer, v
	}
	return key, value, nil
}

func appendFn(ctx context.Context, c *modules.Call) (any, error) {
	key, delimiter, val := c.Str("key"), c.Str("delimiter"), c.Value("val")
	have, err := plainLookup(c, key, []any{}, delimiter)
	if err != nil {
		return nil, err
	}
	list, ok := have.([]any)
	if !ok && c.Bool("convert") {
		if have != nil {
			list = []any{have}
		}
		ok = true
	}
	if !ok {
		return "The key " + key + " is not a valid list", nil
	}
	if nested.Contains(list, val) {
		return "The val " + pytext.Str(val) + " was already in the list " + key, nil
	}
	if more, ok := val.([]any); ok {
		list = append(list, more...)
	} else {
		list = append(list, val)
	}
	return put(ctx, c, key, delimiter, list, map[string]any{})
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	key, delimiter, val := c.Str("key"), c.Str("delimiter"), c.Value("val")
	have, err := plainLookup(c, key, []any{}, delimiter)
	if err != nil {
		return nil, err
	}
	list, ok := have.([]any)
	if !ok {
		return "The key " + key + " is not a valid list", nil
	}
	for i, x := range list {
		if nested.Equal(x, val) {
			return put(ctx, c, key, delimiter, append(list[:i:i], list[i+1:]...), nil)
		}
	}
	return "The val " + pytext.Str(val) + " was not in the list " + key, nil
}

func put(ctx context.Context, c *modules.Call, key, delimiter string, value, missing any) (any, error) {
	key, value, err := nest(c, key, delimiter, value, missing)
	if err != nil {
		return nil, err
	}
	return change(ctx, c, map[string]any{key: value}, false, true)
}

func delkey(ctx context.Context, c *modules.Call) (any, error) {
	return assign(ctx, c, assignment{key: c.Str("key"), force: c.Bool("force"), destructive: true, delimiter: ":"})
}

func delval(ctx context.Context, c *modules.Call) (any, error) {
	return assign(ctx, c, assignment{key: c.Str("key"), force: c.Bool("force"), destructive: c.Bool("destructive"), delimiter: ":"})
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	return assign(ctx, c, assignment{key: c.Str("key"), value: c.Value("val"), force: c.Bool("force"),
		destructive: c.Bool("destructive"), delimiter: c.Str("delimiter")})
}

// assignment are the arguments of grains.set.
type assignment struct {
	key, delimiter     string
	value              any
	force, destructive bool
}

func isComplex(v any) bool {
	switch v.(type) {
	case map[string]any, map[any]any, []any:
		return true
	}
	return false
}

// assign implements grains.set. It does not overwrite maps and lists unless force is set.
func assign(ctx context.Context, c *modules.Call, a assignment) (any, error) {
	ret := map[string]any{"comment": "", "changes": map[string]any{}, "result": true}
	have, exists, err := plainFind(c, a.key, a.delimiter)
	if err != nil {
		return nil, err
	}
	if exists && nested.Equal(have, a.value) && (a.value != nil || !a.destructive) {
		ret["comment"] = "Grain is already set"
		return ret, nil
	}
	if exists && have != nil && !a.force {
		comment := ""
		if isComplex(have) {
			comment = "The key '" + a.key + "' exists but is a dict or a list. Use 'force=True' to overwrite."
		} else if isComplex(a.value) {
			comment = "The key '" + a.key + "' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
		}
		if comment != "" {
			ret["comment"], ret["result"] = comment, false
			return ret, nil
		}
	}
	key, value := a.key, a.value
	for strings.Contains(key, a.delimiter) {
		at := strings.LastIndex(key, a.delimiter)
		outer, rest := key[:at], key[at+len(a.delimiter):]
		around, err := plainLookup(c, outer, map[string]any{}, a.delimiter)
		if err != nil {
			return nil, err
		}
		next, comment := a.into(around, outer, rest, value)
		if comment != "" {
			ret["comment"], ret["result"] = comment, false
			return ret, nil
		}
		key, value = outer, next
	}
	done, err := change(ctx, c, map[string]any{key: value}, a.destructive, true)
	if err != nil {
		return nil, err
	}
	if m, ok := done.(map[string]any); ok {
		ret["changes"] = m
	} else {
		ret["comment"], ret["result"] = done, false
	}
	return ret, nil
}

// into stores a value under a name in the value that contains it. The text is the reason if that is not possible.
func (a assignment) into(around any, outer, rest string, value any) (any, string) {
	switch x := around.(type) {
	case map[string]any:
		if value == nil && a.destructive {
			delete(x, rest)
		} else {
			x[rest] = value
		}
		return x, ""
	case []any:
		found := false
		for i, member := range x {
			if m, ok := member.(map[string]any); ok {
				if _, ok := m[rest]; ok {
					m[rest] = value
					found = true
				}
			} else if member == any(rest) {
				x[i] = map[string]any{rest: value}
				found = true
			}
		}
		if !found {
			x = append(x, map[string]any{rest: value})
		}
		return x, ""
	}
	if around == any(rest) || a.force {
		return map[string]any{rest: value}, ""
	}
	return nil, "The key '" + outer + "' value is '" + pytext.Str(around) + "', which is different from the provided key '" + rest +
		"'. Use 'force=True' to overwrite."
}
