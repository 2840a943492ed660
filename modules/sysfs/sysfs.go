// Package sysfs is Salt's execution module "sysfs": attributes of the Linux kernel below /sys. Salt's source: salt/modules/sysfs.py.
package sysfs

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxAttribute bounds what is read of one file. Attributes have 4 KB, but links lead to other places.
const maxAttribute = 1 << 20

func available(e *modules.Env) (bool, string) { return e.Grain("kernel") == "Linux", "" }

// tree is /sys as a call sees it.
type tree struct{ *modules.Call }

// place resolves a path below /sys. It returns "" if the path does not exist.
func (t tree) place(key string) string {
	if !strings.HasPrefix(key, "/sys") {
		key = posixpath.Join("/sys", key)
	}
	full, err := filepath.EvalSymlinks(t.Path(key))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(full, strings.TrimSuffix(t.Path("/"), "/"))
}

func (t tree) isDir(path string) bool {
	info, err := os.Stat(t.Path(path))
	return err == nil && info.IsDir()
}

// key returns the argument key, which must be a text.
func key(c *modules.Call) (string, error) { return modules.Text(c.Value("key"), "startswith") }

func target(_ context.Context, c *modules.Call) (any, error) {
	s, err := key(c)
	if err != nil {
		return nil, err
	}
	switch at := (tree{c}).place(s); {
	case at == "":
		return false, nil
	case pytext.Truth(c.Value("full")):
		return at, nil
	default:
		return posixpath.Base(at), nil
	}
}

func attr(_ context.Context, c *modules.Call) (any, error) {
	s, err := key(c)
	if err != nil {
		return nil, err
	}
	t := tree{c}
	at := t.place(s)
	switch {
	case at == "":
		return false, nil
	case t.isDir(at):
		return at, nil
	case c.Value("value") != nil:
		return t.write(at, c.Value("value")), nil
	}
	return t.read(at), nil
}

func write(_ context.Context, c *modules.Call) (any, error) {
	s, ok := c.Value("key").(string)
	if !ok {
		return false, nil
	}
	t := tree{c}
	at := t.place(s)
	return at != "" && t.write(at, c.Value("value")), nil
}

func (t tree) write(at string, value any) bool {
	f, err := os.OpenFile(t.Path(at), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return false
	}
	_, err = f.WriteString(pytext.Str(value) + "\n")
	return f.Close() == nil && err == nil
}

func read(_ context.Context, c *modules.Call) (any, error) {
	t, root := tree{c}, c.Str("root")
	switch v := c.Value("key").(type) {
	case string:
		return t.read(posixpath.Join(root, v)), nil
	case []any:
		out := map[string]any{}
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, &modules.TypeError{Msg: "join() argument must be str, bytes, or os.PathLike object, not " + pytext.Repr(modules.TypeName(x))}
			}
			if got := t.read(posixpath.Join(root, s)); got != false {
				out[s] = got
			}
		}
		return out, nil
	default:
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
}

// read returns an attribute or the tree of them, false if there is nothing or nothing to be read.
func (t tree) read(path string) any {
	at := t.place(path)
	if at == "" {
		return false
	}
	if !t.isDir(at) {
		return t.readFile(at)
	}
	out := map[string]any{}
	lists := t.list(at)
	for _, name := range append(lists["r"], lists["rw"]...) {
		v := t.read(posixpath.Join(at, name))
		if v == false {
			continue
		}
		into := out
		parts := strings.Split(name, "/")
		for _, p := range parts[:len(parts)-1] {
			next, ok := into[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				into[p] = next
			}
			into = next
		}
		into[parts[len(parts)-1]] = v
	}
	return out
}

func (t tree) readFile(at string) any {
	f, err := os.OpenFile(t.Path(at), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAttribute+1))
	text := pytext.Strip(string(b))
	if err != nil || len(b) > maxAttribute || !utf8.Valid(b) || text == "" {
		return false
	}
	if n, err := modules.ToInt(text); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xXpP_") {
		return x
	}
	return text
}

func interfaces(_ context.Context, c *modules.Call) (any, error) {
	root, ok := c.Value("root").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("root"), "startswith")
	}
	t := tree{c}
	at := t.place(root)
	if at == "" || !t.isDir(at) {
		c.Logger().Error("Cannot list attributes: no such directory below /sys", "path", root)
		return false, nil
	}
	out := map[string]any{}
	for kind, names := range t.list(at) {
		list := make([]any, len(names))
		for i := range names {
			list[i] = names[i]
		}
		out[kind] = list
	}
	return out, nil
}

// list finds the files in a directory and those below it, by whether their owner may read them (r), write them (w), or
// both (rw). They come in the order of the directories, as os.walk has them: files before what lies deeper.
func (t tree) list(at string) map[string][]string {
	out := map[string][]string{"r": {}, "w": {}, "rw": {}}
	t.walk(t.Path(at), "", out)
	return out
}

// walk adds the files of one directory below root to out, and then those of its directories. What cannot be read is left
// out, as by os.walk.
func (t tree) walk(root, dir string, out map[string][]string) {
	f, err := os.Open(filepath.Join(root, dir))
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		kind := ""
		if info.Mode()&0o400 != 0 {
			kind += "r"
		}
		if info.Mode()&0o200 != 0 {
			kind += "w"
		}
		if kind != "" {
			out[kind] = append(out[kind], name)
		}
	}
	for _, e := range entries {
		if e.IsDir() {
			t.walk(root, filepath.Join(dir, e.Name()), out)
		}
	}
}
