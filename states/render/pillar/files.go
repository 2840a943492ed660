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

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Limits of pillar files. A minion's grains and id choose files and patterns, so everything here needs a limit.
const (
	maxFile   = 16 << 20 // bytes
	maxFiles  = 100_000  // in one environment, for names with wildcards
	maxDepth  = 64       // levels of directories
	maxValues = 2 << 20  // in one file
)

// found is a pillar file: its path, and whether it is an init.sls, against which relative names resolve
// differently.
type found struct {
	path string
	init bool
}

// findSLS returns the file of an SLS name (Client.get_state), or fs.ErrNotExist.
func (c *compilation) findSLS(sls, env string) (found, error) {
	rel := strings.ReplaceAll(sls, ".", "/")
	// A file with the name comes before a directory with an init.sls.
	for i, suffix := range [...]string{".sls", "/init.sls"} {
		p, err := c.findFile(rel+suffix, env)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return found{p, i == 1}, err
		}
	}
	return found{}, fs.ErrNotExist
}

// findFile returns a file in the roots of an environment. A name cannot lead out of the roots, but a link can.
func (c *compilation) findFile(name, env string) (string, error) {
	// The name must be clean and local: no "..", no empty part, no zero byte.
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

// matchSLS returns the SLS names of an environment that a pattern matches. A name without wildcards matches itself
// if the file exists.
func (c *compilation) matchSLS(env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := c.findSLS(pattern, env); err != nil {
			return nil
		}
		return []string{pattern}
	}
	// The list is created once for each compilation and environment.
	all, ok := c.avail[env]
	if !ok {
		all = c.listSLS(env)
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

// listSLS returns the SLS names of an environment, sorted. Links to directories are followed, so the depth has a
// limit.
func (c *compilation) listSLS(env string) []string {
	var out []string
	left := maxFiles
	var walk func(dir, prefix string, depth int)
	walk = func(dir, prefix string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil || depth > maxDepth {
			return
		}
		for _, e := range entries {
			// All entries count, not only files, so that empty directories are limited as well.
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
				// A directory's init.sls has the directory's name.
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

// renderFile renders a pillar file (compile_template). defaults are variables of the include that names it.
func (c *compilation) renderFile(f found, sls, env string, defaults *pyobj.Dict) (any, error) {
	text, err := readFile(f.path)
	if err != nil {
		return nil, err
	}
	// An empty file needs no renderer.
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
		return readStatic(text, f.path)
	}
	v, err := c.call.Template(c.ctx, modules.Template{Text: text, Pipe: c.optionText("renderer"), Shebang: true, Path: f.path, SaltEnv: env, SLS: sls,
		IsSLS: true, PillarRoots: true, Vars: vars})
	if err == nil {
		err = checkSize(v, f.path)
	}
	return v, err
}

// readStatic reads a file in a program without renderers. A template is an error then, because its text is not data.
func readStatic(text, path string) (any, error) {
	if strings.Contains(text, "{%") || strings.Contains(text, "{{") || strings.HasPrefix(text, "#!") {
		return nil, fmt.Errorf("%q needs a renderer, and this program has none", path)
	}
	v, err := yaml.ParseObject([]byte(text), path, true)
	if err == nil {
		err = checkSize(v, path)
	}
	return v, err
}

// checkSize fails for data that YAML's aliases make larger than any real pillar. The pillar is sent without aliases,
// so a few lines could fill the memory.
func checkSize(v any, path string) error {
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

// readFile reads a file of at most maxFile bytes.
func readFile(name string) (string, error) {
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
