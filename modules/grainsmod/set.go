package grainsmod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
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
	grain := pyobj.NewDict(pyobj.Str(c.Value("key")), c.Value("val"))
	return change(ctx, c, grain, c.Bool("destructive"), c.Value("refresh_pillar"))
}

// change writes grains to the file and makes the minion read it. It returns the written grains, or a text about the
// failure. As in Salt, the keys in the file are sorted, except those of an OrderedDict, which a state passes.
func change(ctx context.Context, c *modules.Call, grains any, destructive bool, refreshPillar any) (any, error) {
	wanted, ok := grains.(*pyobj.Dict)
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
	for k, v := range wanted.All() {
		if v == nil && destructive {
			have.Delete(k)
			c.Context().DropGrain(pyobj.Str(k))
			continue
		}
		if err := have.Set(k, v); err != nil {
			return nil, err
		}
		c.Context().SetGrain(pyobj.Str(k), v)
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
func readGrains(file string) (grains *pyobj.Dict, problem string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &pyobj.Dict{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	v, err := yaml.ParseObject(text, file, false)
	if err != nil {
		return nil, fmt.Sprintf("Unable to read existing grains file: %s", err), nil
	}
	grains, ok := v.(*pyobj.Dict)
	if !ok {
		return &pyobj.Dict{}, "", nil
	}
	return grains, "", nil
}

// writeGrains replaces the file; a link keeps pointing to it, and it keeps its mode.
func writeGrains(file string, grains *pyobj.Dict) error {
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
		v, err := lookup(c, outer, missing, delimiter)
		if err != nil {
			return "", nil, err
		}
		if d, ok := v.(*pyobj.Dict); ok {
			if err := d.Set(rest, value); err != nil {
				return "", nil, err
			}
		}
		key, value = outer, v
	}
	return key, value, nil
}

// indexOf returns the position of the first item that is equal to v, or -1.
func indexOf(list *pyobj.List, v any) int {
	return slices.IndexFunc(list.Items, func(x any) bool { return pyobj.Equal(x, v) })
}

func appendFn(ctx context.Context, c *modules.Call) (any, error) {
	key, delimiter, val := c.Str("key"), c.Str("delimiter"), c.Value("val")
	have, err := lookup(c, key, &pyobj.List{}, delimiter)
	if err != nil {
		return nil, err
	}
	list, ok := have.(*pyobj.List)
	if !ok && c.Bool("convert") {
		if list = (&pyobj.List{}); have != nil {
			list.Items = []any{have}
		}
		ok = true
	}
	if !ok {
		return "The key " + key + " is not a valid list", nil
	}
	if indexOf(list, val) >= 0 {
		return "The val " + pyobj.Str(val) + " was already in the list " + key, nil
	}
	if more, ok := val.(*pyobj.List); ok {
		list.Items = append(list.Items, more.Items...)
	} else {
		list.Items = append(list.Items, val)
	}
	return put(ctx, c, key, delimiter, list, &pyobj.Dict{})
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	key, delimiter, val := c.Str("key"), c.Str("delimiter"), c.Value("val")
	have, err := lookup(c, key, &pyobj.List{}, delimiter)
	if err != nil {
		return nil, err
	}
	list, ok := have.(*pyobj.List)
	if !ok {
		return "The key " + key + " is not a valid list", nil
	}
	at := indexOf(list, val)
	if at < 0 {
		return "The val " + pyobj.Str(val) + " was not in the list " + key, nil
	}
	list.Items = slices.Delete(list.Items, at, at+1)
	return put(ctx, c, key, delimiter, list, nil)
}

func put(ctx context.Context, c *modules.Call, key, delimiter string, value, missing any) (any, error) {
	key, value, err := nest(c, key, delimiter, value, missing)
	if err != nil {
		return nil, err
	}
	return change(ctx, c, pyobj.NewDict(key, value), false, true)
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
	case *pyobj.Dict, *pyobj.List:
		return true
	}
	return false
}

// assign implements grains.set. It does not overwrite maps and lists unless force is set.
func assign(ctx context.Context, c *modules.Call, a assignment) (any, error) {
	result := func(comment, changes any, ok bool) *pyobj.Dict {
		return pyobj.NewDict("comment", comment, "changes", changes, "result", ok)
	}
	none := &pyobj.Dict{}
	have, exists, err := find(c, a.key, a.delimiter)
	if err != nil {
		return nil, err
	}
	if exists && pyobj.Equal(have, a.value) && (a.value != nil || !a.destructive) {
		return result("Grain is already set", none, true), nil
	}
	if exists && have != nil && !a.force {
		comment := ""
		if isComplex(have) {
			comment = "The key '" + a.key + "' exists but is a dict or a list. Use 'force=True' to overwrite."
		} else if isComplex(a.value) {
			comment = "The key '" + a.key + "' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
		}
		if comment != "" {
			return result(comment, none, false), nil
		}
	}
	key, value := a.key, a.value
	for strings.Contains(key, a.delimiter) {
		at := strings.LastIndex(key, a.delimiter)
		outer, rest := key[:at], key[at+len(a.delimiter):]
		around, err := lookup(c, outer, &pyobj.Dict{}, a.delimiter)
		if err != nil {
			return nil, err
		}
		next, comment := a.into(around, outer, rest, value)
		if comment != "" {
			return result(comment, none, false), nil
		}
		key, value = outer, next
	}
	done, err := change(ctx, c, pyobj.NewDict(key, value), a.destructive, true)
	if err != nil {
		return nil, err
	}
	if _, ok := done.(*pyobj.Dict); ok {
		return result("", done, true), nil
	}
	return result(done, none, false), nil
}

// into stores a value under a name in the value that contains it. The text is the reason if that is not possible.
func (a assignment) into(around any, outer, rest string, value any) (any, string) {
	switch x := around.(type) {
	case *pyobj.Dict:
		if value == nil && a.destructive {
			x.Delete(rest)
		} else {
			_ = x.Set(rest, value) // a text is a key
		}
		return x, ""
	case *pyobj.List:
		found := false
		for i, member := range x.Items {
			if d, ok := member.(*pyobj.Dict); ok {
				if d.Has(rest) {
					_ = d.Set(rest, value)
					found = true
				}
			} else if member == any(rest) {
				x.Items[i] = pyobj.NewDict(rest, value)
				found = true
			}
		}
		if !found {
			x.Items = append(x.Items, pyobj.NewDict(rest, value))
		}
		return x, ""
	}
	if around == any(rest) || a.force {
		return pyobj.NewDict(rest, value), ""
	}
	return nil, "The key '" + outer + "' value is '" + pyobj.Str(around) + "', which is different from the provided key '" + rest +
		"'. Use 'force=True' to overwrite."
}
