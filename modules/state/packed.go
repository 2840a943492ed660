package state

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/consterr"
	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// What a packed run may unpack to.
const (
	maxUnpacked = 4 << 30 // bytes
	maxMembers  = 1 << 20
)

// errOutside is an archive with names that lead out of it.
const errOutside = consterr.Error("a name leads out of the archive")

func pkg(ctx context.Context, c *modules.Call) (any, error) {
	opts, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	name := c.Path(c.Str("pkg_path"))
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return map[string]any{}, nil
	}
	dir, err := os.MkdirTemp(pytemp.Dir(), "brine-state-")
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer os.RemoveAll(dir)
	ok, err := unpack(ctx, name, c.Str("pkg_sum"), c.Str("hash_type"), dir)
	if err != nil {
		return nil, err
	}
	if !ok {
		return map[string]any{}, nil
	}
	low, err := packedJSON(dir, "lowstate.json")
	if err != nil {
		return nil, err
	}
	chunks, ok, err := chunksOf(low)
	if err != nil {
		return nil, err
	}
	if !ok {
		return pyobj.Plain(low), nil // the errors of whoever packed it
	}
	over, err := packedDict(dir, "pillar.json")
	if err != nil {
		return nil, err
	}
	o := states.Options{Opts: opts}
	if o.Grains, err = packedDict(dir, "roster_grains.json"); err != nil {
		return nil, err
	}
	roots, err := environments(dir)
	if err != nil {
		return nil, err
	}
	opts["file_roots"], opts["test"] = map[string]any{}, testMode(ctx, c, c.Value("test"))
	for env, list := range roots {
		opts["file_roots"].(map[string]any)[env] = []any{list[0]}
	}
	// Salt sets an option "fileclient", which nothing reads: a minion that has a master's files keeps them.
	if c.Files != nil && opts["file_client"] == "local" {
		o.Files = c.Files.Local(roots)
	}
	pillar, err := states.Pillar(ctx, c, opts, pyobj.FromMap(over))
	if err != nil {
		return nil, err
	}
	if pillar != nil {
		defer c.Context().SetPillar(pillar)()
	}
	ret, err := states.New(c, o).CallPacked(ctx, chunks)
	if err != nil {
		return nil, err
	}
	setRetcode(c, ret, nil)
	return ret, nil
}

// unpack unpacks an archive that has the hash; false if it has not, or has names that lead out of it.
func unpack(ctx context.Context, name, sum, hashType, dir string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, modules.OSError(err)
	}
	defer f.Close()
	h := hashname.New(hashType)
	if h == nil {
		return false, &modules.PythonError{Type: "ValueError", Msg: "Invalid hash type: " + hashType}
	}
	if got, err := hashname.Digest(h, f); err != nil {
		return false, modules.OSError(err)
	} else if got != sum {
		return false, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, modules.OSError(err)
	}
	defer root.Close()
	// All names are looked at before the first file is made.
	for _, each := range [...]func(*tar.Header, io.Reader) error{inside, func(m *tar.Header, r io.Reader) error { return put(root, m, r) }} {
		err := members(ctx, f, each)
		if errors.Is(err, errOutside) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// members calls a function for each member of an archive.
func members(ctx context.Context, f io.ReadSeeker, each func(*tar.Header, io.Reader) error) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return &modules.PythonError{Type: "tarfile.ReadError", Msg: "not a gzip file"}
	}
	limited := &io.LimitedReader{R: z, N: maxUnpacked}
	r := tar.NewReader(limited)
	for range maxMembers {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		m, err := r.Next()
		if err == io.EOF && limited.N > 0 {
			return nil
		}
		if err == nil {
			err = each(m, r)
		}
		switch {
		case limited.N <= 0:
			return modules.Errorf("cannot unpack the states: they are larger than %d bytes", int64(maxUnpacked))
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &modules.PythonError{Type: "tarfile.ReadError", Msg: "truncated header"}
		case errors.Is(err, tar.ErrHeader):
			return &modules.PythonError{Type: "tarfile.ReadError", Msg: "invalid header"}
		case err != nil:
			return err
		}
	}
	return modules.Errorf("cannot unpack the states: there are more than %d files", maxMembers)
}

// inside refuses what Salt refuses.
func inside(m *tar.Header, _ io.Reader) error {
	if name := strings.TrimRight(m.Name, "/"); strings.HasPrefix(m.Name, "/") || strings.Contains(name, "../") {
		return errOutside
	}
	return nil
}

// put makes a file. Unlike Python it does not follow links of the archive that lead out of the directory, and makes no devices.
func put(root *os.Root, m *tar.Header, r io.Reader) error {
	name := path.Clean(m.Name)
	mode := m.FileInfo().Mode().Perm()
	if m.Typeflag == tar.TypeDir {
		if err := root.MkdirAll(name, 0o755); err != nil {
			return modules.OSError(err)
		}
		return modules.OSError(root.Chmod(name, mode|0o700))
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return modules.OSError(err)
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return modules.OSError(err)
	}
	switch m.Typeflag {
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return modules.OSError(err)
		}
		_, err = io.Copy(f, r)
		return modules.OSError(errors.Join(err, f.Chmod(mode), f.Close()))
	case tar.TypeSymlink:
		return modules.OSError(root.Symlink(m.Linkname, name))
	case tar.TypeLink:
		return modules.OSError(root.Link(path.Clean(m.Linkname), name))
	}
	return modules.Errorf("cannot unpack %s: it is neither a file, a directory nor a link", m.Name)
}

// packedJSON reads a file of the archive.
func packedJSON(dir, name string) (any, error) {
	b, err := readFile(filepath.Join(dir, name))
	if err != nil {
		return nil, modules.OSError(err)
	}
	v, err := pyjson.ParseObject(b)
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: name + ": " + err.Error()}
	}
	return v, nil
}

// packedDict reads a dict that need not be there.
func packedDict(dir, name string) (map[string]any, error) {
	if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	v, err := packedJSON(dir, name)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pyobj.Dict)
	if !ok && pyobj.Truth(v) {
		return nil, modules.Usagef("cannot use %s: it is not a dictionary", name)
	}
	return pyobj.PlainMap(d), nil
}

// chunksOf returns the chunks of a low state. ok is false if low is something else, such as a list of errors.
func chunksOf(low any) ([]*states.Low, bool, error) {
	list, ok := low.(*pyobj.List)
	if !ok {
		switch low.(type) {
		case *pyobj.Dict, string:
			return nil, !pyobj.Truth(low), nil
		}
		return nil, false, &modules.TypeError{Msg: "'" + pyobj.TypeName(low) + "' object is not iterable"}
	}
	chunks := make([]*states.Low, len(list.Items))
	for i, x := range list.Items {
		d, ok := x.(*pyobj.Dict)
		if !ok {
			return nil, false, nil
		}
		chunks[i] = states.NewLow(d)
	}
	for _, chunk := range chunks {
		for _, key := range [...]string{"state", "__id__", "name", "fun"} {
			if v := chunk.Value(key); v == nil {
				return nil, false, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)}
			}
		}
	}
	return chunks, true, nil
}

// environments returns the directories of the archive by environment.
func environments(dir string) (map[string][]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, modules.OSError(err)
	}
	roots := map[string][]string{}
	for _, e := range entries {
		full := filepath.Join(dir, e.Name())
		if info, err := os.Stat(full); err == nil && info.IsDir() {
			roots[e.Name()] = []string{full}
		}
	}
	return roots, nil
}
