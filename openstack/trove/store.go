package trove

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// store keeps objects in containers: backups and published logs. A name may have slashes.
type store interface {
	// put stores the content of r and returns the checksum by which Trove knows the object. If r fails, no object
	// remains. Objects may have any size; only a part is in memory at a time.
	put(ctx context.Context, container, name string, r io.Reader, meta map[string]string) (checksum string, err error)
	// annotate replaces an object's metadata.
	annotate(ctx context.Context, container, name string, meta map[string]string) error
	// get opens an object. For a missing object the error matches fs.ErrNotExist.
	get(ctx context.Context, container, name string) (*object, error)
	// names returns the sorted names of a container's objects that begin with prefix; a missing container has none.
	names(ctx context.Context, container, prefix string) ([]string, error)
	// remove removes an object. A missing object is not an error.
	remove(ctx context.Context, container, name string) error
	// location returns the address of an object; locate is the inverse.
	location(container, name string) string
	locate(location string) (container, name string, err error)
}

// object is an open object. The keys of its metadata are lower-case words with underscores.
type object struct {
	io.ReadCloser
	meta map[string]string
	// checksum is that of the whole object if the store guarantees it, and otherwise empty: then it is the MD5 of what
	// is read.
	checksum string
}

// openStore opens the store that is configured in the option trove.
func (g *guest) openStore(ctx context.Context) (store, error) {
	kind := textOf(g.store, "type")
	switch kind {
	case "":
		return nil, modules.Errorf("cannot keep backups or logs: the option trove has no store")
	case "directory":
		dir := textOf(g.store, "path")
		if !filepath.IsAbs(dir) {
			return nil, modules.Errorf("cannot use the store: its path must be an absolute directory, not %s", pytext.Repr(g.store["path"]))
		}
		return directory{root: g.c.Path(dir), named: dir}, nil
	case "swift":
		return g.openSwift(ctx)
	case "s3":
		return g.openS3()
	}
	return nil, modules.Errorf("cannot use the store: this agent knows the types directory, swift and s3, not %s", pytext.Repr(kind))
}

// directory is a store in a directory of the host, which may be a network mount. An object is a file, with its
// metadata in another file next to it.
type directory struct{ root, named string }

// metaEnd is the suffix of files with metadata.
const metaEnd = ".metadata.json"

func (d directory) file(container, name string) (string, error) {
	at := filepath.Join(container, filepath.FromSlash(name))
	if container == "" || container == ".." || container == "." || strings.ContainsAny(container, `/\`) || name == "" || !filepath.IsLocal(at) || strings.HasSuffix(name, metaEnd) ||
		name[0] == '/' || path.Clean(name) != name || strings.HasPrefix(name, "..") {
		return "", modules.Errorf("cannot use the object %s of %s: this is not a name", pytext.Repr(name), pytext.Repr(container))
	}
	return filepath.Join(d.root, at), nil
}

func (d directory) put(ctx context.Context, container, name string, r io.Reader, meta map[string]string) (string, error) {
	file, err := d.file(container, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	sum := md5.New()
	if err == nil {
		err = atomicfile.ReplaceFrom(file, io.TeeReader(r, sum), 0o600)
	}
	if err != nil {
		return "", modules.Errorf("cannot store %s: %v", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), d.annotate(ctx, container, name, meta)
}

func (d directory) annotate(_ context.Context, container, name string, meta map[string]string) error {
	file, err := d.file(container, name)
	if err != nil {
		return err
	}
	b, err := json.Marshal(meta)
	if err == nil {
		err = atomicfile.WriteFile(file+metaEnd, b, 0o600)
	}
	if err != nil {
		return modules.Errorf("cannot store the metadata of %s: %v", name, err)
	}
	return nil
}

func (d directory) get(_ context.Context, container, name string) (*object, error) {
	file, err := d.file(container, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	meta := map[string]string{}
	b, err := os.ReadFile(file + metaEnd)
	if err == nil {
		err = json.Unmarshal(b, &meta)
	}
	if err != nil {
		_ = f.Close()
		return nil, modules.Errorf("cannot read the metadata of %s: %v", name, err)
	}
	return &object{ReadCloser: f, meta: meta}, nil
}

func (d directory) names(_ context.Context, container, prefix string) ([]string, error) {
	if _, err := d.file(container, "x"); err != nil {
		return nil, err
	}
	var list []string
	top := filepath.Join(d.root, container)
	err := filepath.WalkDir(top, func(p string, e os.DirEntry, err error) error {
		if missing(err) {
			return nil
		}
		if err != nil || e.IsDir() || strings.HasSuffix(p, metaEnd) {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if name := filepath.ToSlash(rel); err == nil && strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
		return err
	})
	slices.Sort(list)
	return list, err
}

func (d directory) remove(_ context.Context, container, name string) error {
	file, err := d.file(container, name)
	if err != nil {
		return err
	}
	for _, f := range [...]string{file, file + metaEnd} {
		if err := os.Remove(f); err != nil && !missing(err) {
			return modules.Errorf("cannot remove %s from the store: %v", name, err)
		}
	}
	return nil
}

func (d directory) location(container, name string) string {
	return "file://" + path.Join(filepath.ToSlash(d.named), container, name)
}

func (d directory) locate(location string) (container, name string, err error) {
	rest, ok := strings.CutPrefix(location, "file://"+path.Clean(filepath.ToSlash(d.named))+"/")
	container, name, found := strings.Cut(rest, "/")
	if !ok || !found {
		return "", "", modules.Errorf("cannot find the backup %s: it is not in the store %s", pytext.Repr(location), d.named)
	}
	_, err = d.file(container, name)
	return container, name, err
}

var _ store = directory{}
