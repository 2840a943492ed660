package pillar

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
)

// Bounds of pillar files.
const (
	maxFile   = 16 << 20 // bytes
	maxFiles  = 100_000  // in one environment, for names with wildcards
	maxDepth  = 64       // levels of directories
	maxValues = 2 << 20  // in one file
)

// found is a pillar file: where it is, and whether it is an init.sls.
type found struct {
	path string
	init bool
}

// find looks for the file of an SLS name (Client.get_state).
func (c *compilation) find(sls, env string) (found, error) {
	rel := strings.ReplaceAll(sls, ".", "/")
	for i, suffix := range [...]string{".sls", "/init.sls"} {
		p, err := c.file(rel+suffix, env)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return found{p, i == 1}, err
		}
	}
	return found{}, fs.ErrNotExist
}

// file looks for a file in the roots of an environment. A name never leads out of them, unlike links.
func (c *compilation) file(name, env string) (string, error) {
	if path.Clean("/"+name) != "/"+name || !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
		return "", fs.ErrNotExist
	}
	for _, root := range c.roots[env] {
		full := filepath.Join(root, filepath.FromSlash(name))
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
			return full, nil
		}
	}
	return "", fs.ErrNotExist
}

// filter are the SLS names of an environment that a pattern means, none if there are none.
func (c *compilation) filter(env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := c.find(pattern, env); err != nil {
			return nil
		}
		return []string{pattern}
	}
	all, ok := c.avail[env]
	if !ok {
		all = c.list(env)
		c.avail[env] = all
	}
	var out []string
	for _, name := range all {
		if fnmatch.Match(pattern, name) {
			out = append(out, name)
		}
	}
	return out
}

// list are the SLS names of an environment, sorted. Links to directories are followed.
func (c *compilation) list(env string) []string {
	var out []string
	left := maxFiles
	var walk func(dir, prefix string, depth int)
	walk = func(dir, prefix string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil || depth > maxDepth {
			return
		}
		for _, e := range entries {
			if left--; left < 0 {
				return
			}
			name := e.Name()
			isDir := e.IsDir()
			if e.Type()&fs.ModeSymlink != 0 {
				info, err := os.Stat(filepath.Join(dir, name))
				isDir = err == nil && info.IsDir()
			}
			if isDir {
				walk(filepath.Join(dir, name), prefix+name+".", depth+1)
				continue
			}
			if sls, ok := strings.CutSuffix(name, ".sls"); ok {
				if sls == "init" && prefix != "" {
					sls = ""
				}
				out = append(out, strings.TrimSuffix(prefix+sls, "."))
			}
		}
	}
	for _, root := range c.roots[env] {
		walk(root, "", 0)
	}
	if left < 0 {
		c.o.Log.Warn("The pillar roots have too many files; wildcards do not see all of them", "saltenv", env)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// render renders a pillar file (compile_template).
func (c *compilation) render(f found, sls, env string, defaults *pyobj.Dict) (any, error) {
	text, err := read(f.path)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return pyobj.NewDict(), nil
	}
	var vars map[string]any
	if defaults != nil {
		vars = make(map[string]any, defaults.Len())
		for k, v := range defaults.All() {
			vars[pyobj.Str(k)] = v
		}
	}
	if c.call.Templates == nil {
		return static(text, f.path)
	}
	v, err := c.call.Template(c.ctx, modules.Template{Text: text, Pipe: c.text("renderer"), Shebang: true, Path: f.path, SaltEnv: env, SLS: sls,
		IsSLS: true, PillarRoots: true, Vars: vars})
	if err == nil {
		err = bounded(v, f.path)
	}
	return v, err
}

// static reads a file where the program has no renderers: templates are errors then, not text.
func static(text, path string) (any, error) {
	if strings.Contains(text, "{%") || strings.Contains(text, "{{") || strings.HasPrefix(text, "#!") {
		return nil, fmt.Errorf("%q needs a renderer, and this program has none", path)
	}
	v, err := yaml.ParseObject([]byte(text), path, true)
	if err == nil {
		err = bounded(v, path)
	}
	return v, err
}

// bounded refuses data that aliases of YAML make larger than any pillar is: it is sent without them.
func bounded(v any, path string) error {
	left := maxValues
	var count func(v any)
	count = func(v any) {
		if left--; left < 0 {
			return
		}
		switch v := v.(type) {
		case *pyobj.Dict:
			for _, x := range v.All() {
				if count(x); left < 0 {
					return
				}
			}
		case *pyobj.List:
			for _, x := range v.Items {
				if count(x); left < 0 {
					return
				}
			}
		}
	}
	if count(v); left < 0 {
		return fmt.Errorf("cannot use %q: it has more than %d values", path, maxValues)
	}
	return nil
}

func read(name string) (string, error) {
	h, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer h.Close()
	b, err := io.ReadAll(io.LimitReader(h, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("cannot read %q: more than %d bytes", name, maxFile)
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("cannot read %q: it is not UTF-8", name)
	}
	return string(b), nil
}
