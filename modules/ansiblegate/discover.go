package ansiblegate

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// finder looks for playbooks.
type finder struct {
	c *modules.Call
	// endings are the extensions of playbooks, hosts is the name of inventories.
	endings []string
	hosts   string
}

func newFinder(c *modules.Call) finder {
	f := finder{c: c, endings: []string{".yml", ".yaml"}, hosts: "hosts"}
	if c.Bool("playbook_extension") {
		f.endings = c.Strings("playbook_extension")
		for i, e := range f.endings {
			f.endings[i] = "." + strings.TrimPrefix(e, ".")
		}
	}
	if c.Bool("hosts_filename") {
		f.hosts = c.Str("hosts_filename")
	}
	return f
}

func discoverPlaybooks(ctx context.Context, c *modules.Call) (any, error) {
	hasPath, hasLocations := c.Bool("path"), c.Bool("locations")
	if !hasPath && !hasLocations {
		return nil, modules.Errorf("You have to specify either 'path' or 'locations' arguments")
	}
	if hasPath && hasLocations {
		return nil, modules.Errorf("You cannot specify 'path' and 'locations' at the same time")
	}
	places := []any{c.Value("path")}
	if hasPath {
		path := c.Str("path")
		if !posixpath.IsAbs(path) {
			return nil, modules.Errorf("The given path is not an absolute path: %s", path)
		}
		if !isDir(c, path) {
			return nil, modules.Errorf("The given path is not a directory: %s", path)
		}
	} else if list, ok := c.Value("locations").([]any); ok {
		places = list
	} else {
		places = []any{c.Value("locations")}
	}
	f, ret := newFinder(c), map[string]any{}
	for _, p := range places {
		found, err := f.explore(ctx, pytext.Str(p))
		if err != nil {
			return nil, err
		}
		ret[pytext.Str(p)] = found
	}
	return ret, nil
}

func isDir(c *modules.Call, path string) bool {
	info, err := os.Stat(c.Path(path))
	return err == nil && info.IsDir()
}

// explore finds the playbooks in a directory and in those right below it.
func (f finder) explore(ctx context.Context, path string) (map[string]any, error) {
	ret := map[string]any{}
	if !posixpath.IsAbs(path) {
		f.c.Logger().Error("The given path is not an absolute path", "path", path)
		return ret, nil
	}
	if !isDir(f.c, path) {
		f.c.Logger().Error("The given path is not a directory", "path", path)
		return ret, nil
	}
	dirs, err := f.inDir(ret, path, "")
	for _, d := range dirs {
		if err == nil {
			_, err = f.inDir(ret, posixpath.Join(path, d), d)
		}
	}
	if err != nil {
		if text, _ := modules.OSErrorText(err); text != "" {
			return nil, modules.Errorf("There was an exception while discovering playbooks: %s", text)
		}
		return nil, err
	}
	if !f.c.Bool("syntax_check") {
		return ret, nil
	}
	for name, v := range ret {
		full, _ := v.(map[string]any)["fullpath"].(string)
		code, err := f.c.ExecKw(ctx, "cmd.retcode", []any{[]any{"ansible-playbook", "--syntax-check", full}},
			map[string]any{"reset_system_locale": false, "python_shell": false})
		if err != nil {
			return nil, modules.Errorf("There was an exception while checking syntax of playbooks: %v", err)
		}
		if code != int64(0) {
			delete(ret, name)
		}
	}
	return ret, nil
}

// inDir adds the playbooks of one directory, whose names begin with below, and returns the directories in it.
func (f finder) inDir(ret map[string]any, path, below string) ([]string, error) {
	entries, err := os.ReadDir(f.c.Path(path))
	if err != nil {
		return nil, err
	}
	inventory := posixpath.Join(path, f.hosts)
	hasInventory := f.c.IsFile(inventory)
	var dirs []string
	for _, e := range entries {
		full := posixpath.Join(path, e.Name())
		switch {
		case f.c.IsFile(full) && f.isPlaybook(full):
			found := map[string]any{"fullpath": full}
			if hasInventory {
				found["custom_inventory"] = inventory
			}
			ret[strings.TrimPrefix(below+"/"+e.Name(), "/")] = found
		case isDir(f.c, full):
			dirs = append(dirs, e.Name())
		}
	}
	return dirs, nil
}

func (f finder) isPlaybook(path string) bool {
	return slices.ContainsFunc(f.endings, func(e string) bool { return strings.HasSuffix(path, e) })
}
