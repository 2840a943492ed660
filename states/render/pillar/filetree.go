package pillar

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Limits of a file tree. Links that are followed can form a circle, which stock follows until the system refuses.
const (
	maxTreeDepth = 40
	maxTreeBytes = 64 << 20
)

// fileTree is the external pillar file_tree: directories become dicts and files texts, first those of the nodegroups
// that contain the minion, then those of the minion itself (salt/pillar/file_tree.py).
type fileTree struct {
	*compilation
	args  map[string]any
	globs []any // the patterns of keep_newline, if it is a list
	call  *modules.Call
	left  int64 // how many bytes may still be read
}

func (c *compilation) fileTreePillar(_ context.Context, r ExtRequest) (any, error) {
	args, err := bindArgs(r, []string{"root_dir", "follow_dir_links", "debug", "keep_newline", "render_default",
		"renderer_blacklist", "renderer_whitelist", "template"}, 0)
	if err != nil {
		return nil, err
	}
	t := &fileTree{compilation: c, args: args, left: maxTreeBytes}
	// The lists of this pillar replace the options of the same name.
	opts := maps.Clone(c.opts)
	opts["renderer_blacklist"], opts["renderer_whitelist"] = args["renderer_blacklist"], args["renderer_whitelist"]
	if id, ok := c.o.Opts["id"]; ok { // the id of the master, which stock shows to external pillars
		opts["id"] = id
	}
	env := *c.call.Env
	env.Opts = func() map[string]any { return opts }
	t.call = c.o.Registry.NewCall(&env, "pillar.items", "", nil)

	roots, err := t.roots()
	out := pyobj.NewDict()
	for _, root := range roots {
		if err := t.addRoot(out, root); err != nil {
			return nil, err
		}
	}
	return out, err
}

// roots returns root_dir or, if it is relative, the directories in which it is searched.
func (t *fileTree) roots() ([]string, error) {
	v := t.args["root_dir"]
	if !pytext.Truth(v) {
		t.o.Log.Error("file_tree: no root_dir specified")
		return nil, nil
	}
	root, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("expected str, bytes or os.PathLike object, not %s", pyobj.TypeName(v))
	}
	if filepath.IsAbs(root) {
		return []string{root}, nil
	}
	env := t.optionText("pillarenv")
	if env == "" {
		t.o.Log.Error("file_tree: root_dir is relative but pillarenv is not set")
		return nil, nil
	}
	dirs, ok := t.compilation.roots[env]
	if !ok {
		t.o.Log.Error("file_tree: root_dir is relative but no pillar_roots are specified  for pillarenv " + env)
		return nil, nil
	}
	var list []string
	for _, dir := range dirs {
		if dir = filepath.Join(dir, root); len(list) == 0 || dir != list[len(list)-1] {
			list = append(list, dir)
		}
	}
	return list, nil
}

// addRoot merges the files that one root has for the minion over out.
func (t *fileTree) addRoot(out *pyobj.Dict, root string) error {
	log := t.o.Log
	if !isDir(root) {
		log.Error("file_tree: root_dir " + root + " does not exist or is not a directory")
		return nil
	}
	switch v := t.args["keep_newline"].(type) {
	case nil, bool:
	case []any:
		t.globs = v
	default:
		log.Error("file_tree: keep_newline must be either True/False or a list of file globs. " +
			"Skipping this ext_pillar for root_dir " + root)
		return nil
	}
	groups, _ := t.opts["nodegroups"].(map[string]any)
	for _, name := range dirOrder(filepath.Join(root, "nodegroups")) {
		if _, ok := groups[name.Name()]; !ok {
			continue
		}
		ok, err := t.call.Match("nodegroup", name.Name(), "")
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := t.merge(out, filepath.Join(root, "nodegroups", name.Name())); err != nil {
			return err
		}
	}
	// An id must not be a path, whatever the caller allows.
	if id := t.req.ID; id != filepath.Base(id) || id == ".." || id == "." {
		return fmt.Errorf("cannot look for the files of minion %q: it is no file name", id)
	}
	host := filepath.Join(root, "hosts", t.req.ID)
	switch info, err := os.Stat(host); {
	case err != nil:
		return nil
	case !info.IsDir():
		log.Error("file_tree: " + host + " exists, but is not a directory")
		return nil
	}
	return t.merge(out, host)
}

func (t *fileTree) merge(out *pyobj.Dict, dir string) error {
	node := pyobj.NewDict()
	if err := t.read(node, dir, ".", 0); err != nil {
		return err
	}
	nested.UpdateObject(out, node, false)
	return nil
}

// read adds the files of a directory to node. prefix is its path below the directory of the nodegroup or minion.
func (t *fileTree) read(node *pyobj.Dict, dir, prefix string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("cannot read %s: more than %d directories in each other", dir, maxTreeDepth)
	}
	var dirs, files []fs.DirEntry
	for _, e := range dirOrder(dir) {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(filepath.Join(dir, e.Name())) {
			dirs = append(dirs, e)
			_ = node.Set(e.Name(), pyobj.NewDict()) // a text can be a key
		} else {
			files = append(files, e)
		}
	}
	for _, e := range files {
		v, err := t.readFile(dir, prefix, e.Name())
		if err != nil {
			return err
		}
		if v != nil {
			_ = node.Set(e.Name(), v)
		}
	}
	for _, e := range dirs {
		if !e.IsDir() && !pytext.Truth(t.args["follow_dir_links"]) {
			continue
		}
		below, _ := node.Value(e.Name()).(*pyobj.Dict)
		if err := t.read(below, filepath.Join(dir, e.Name()), posixpath.Join(strings.TrimPrefix(prefix, "."), e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// readFile returns the value of a file, or nil if it is not a regular file or cannot be read.
func (t *fileTree) readFile(dir, prefix, name string) (any, error) {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		t.o.Log.Error("file_tree: " + path + ": not a regular file")
		return nil, nil
	}
	f, err := os.Open(path)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, t.left+1))
		f.Close()
	}
	if err != nil {
		t.o.Log.Error("file_tree: Error reading "+path, "err", err)
		return nil, nil
	}
	if t.left -= int64(len(text)); t.left < 0 {
		return nil, fmt.Errorf("cannot read %s: the tree has more than %d bytes", path, maxTreeBytes)
	}
	if bytes.HasSuffix(text, []byte("\n")) && !t.keeps(prefix, name) {
		text = text[:len(text)-1]
	}
	if t.args["template"] != true {
		return text, nil
	}
	if strings.TrimSpace(string(text)) == "" || t.args["render_default"] == nil && !bytes.HasPrefix(text, []byte("#!")) {
		return pyobj.NewDict(), nil
	}
	v, err := t.call.Template(t.ctx, modules.Template{Text: string(text), Pipe: pytext.Str(t.args["render_default"]),
		Shebang: true, Path: path, SaltEnv: "base", PillarRoots: true})
	if err == nil {
		err = checkSize(v, path)
	}
	return v, err
}

// keeps reports whether the newline at the end of a file stays.
func (t *fileTree) keeps(prefix, name string) bool {
	full := posixpath.Join(prefix, name)
	return t.args["keep_newline"] == true || slices.ContainsFunc(t.globs, func(g any) bool {
		return fnmatch.Match(pytext.Str(g), full)
	})
}

// dirOrder lists a directory in its own order, as os.walk does. A directory that cannot be read counts as empty.
func dirOrder(dir string) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(-1)
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
