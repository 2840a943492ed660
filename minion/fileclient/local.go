package fileclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// findLocal returns the path of a file in the first root that has it, or "" if it is missing.
func (c *Client) findLocal(p place) (string, error) {
	if _, err := p.localName(); err != nil {
		return "", err
	}
	for _, root := range c.o.Roots[p.env] {
		full := filepath.Join(root, filepath.FromSlash(strings.TrimLeft(p.path, "|/")))
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
			return full, nil
		}
	}
	return "", nil
}

// copyLocal copies a file of the roots into the cache. Stock does the same, and modules expect the file there.
func (c *Client) copyLocal(p place) (string, error) {
	name, err := p.localName()
	if err != nil {
		return "", err
	}
	source, err := c.findLocal(p)
	if err != nil || source == "" {
		return "", err
	}
	full := filepath.Join(c.o.CacheDir, name)
	if want, err := hashFile(source, c.o.HashType); err == nil {
		if have, err := hashFile(full, c.o.HashType); err == nil && have == want {
			return full, nil
		}
	}
	in, err := os.Open(source)
	if err != nil {
		return "", fmt.Errorf("cannot cache file %q: %w", p.path, err)
	}
	defer in.Close()
	w, err := c.createFile(name)
	if err != nil {
		return "", err
	}
	defer w.discard()
	if _, err := io.Copy(w.file, in); err != nil {
		return "", fmt.Errorf("cannot cache file %q: %w", p.path, err)
	}
	return w.commit()
}

// localHash returns the hash of a file of this host, or nil if it is not a regular file.
func (c *Client) localHash(name string) (map[string]any, error) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	sum, err := hashFile(name, c.o.HashType)
	if err != nil {
		return nil, err
	}
	return map[string]any{"hsum": sum, "hash_type": c.o.HashType}, nil
}

func (c *Client) localEnvs() []string { return slices.Sorted(maps.Keys(c.o.Roots)) }

// localList lists the roots of an environment as the master's file server does.
func (c *Client) localList(cmd, saltenv, prefix string) ([]string, error) {
	found := map[string]bool{}
	for _, root := range c.o.Roots[saltenv] {
		err := walkRoot(root, prefix, func(e entry) {
			switch {
			case cmd == "_file_list" && !e.dir, cmd == "_dir_list" && e.dir, cmd == "_file_list_emptydirs" && e.empty:
				found[e.rel] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// localLinks returns the symbolic links below the roots.
func (c *Client) localLinks(saltenv, prefix string) (map[string]string, error) {
	links := map[string]string{}
	for _, root := range c.o.Roots[saltenv] {
		err := walkRoot(root, prefix, func(e entry) {
			if !e.link {
				return
			}
			if to, err := os.Readlink(filepath.Join(root, filepath.FromSlash(e.rel))); err == nil {
				links[e.rel] = to
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return links, nil
}

// An entry is a file or directory below a root, with its relative path. A link to a directory counts as both.
type entry struct {
	rel              string
	dir, link, empty bool
}

// walkRoot visits everything below a root whose path begins with prefix. As in Salt, slashes around prefix are
// ignored, and links to directories are followed. A missing root is treated as empty.
func walkRoot(root, prefix string, visit func(entry)) error {
	prefix = strings.Trim(prefix, "/")
	var below func(rel string, above []fs.FileInfo) error
	below = func(rel string, above []fs.FileInfo) error {
		list, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(rel)))
		if err != nil && rel != "" {
			return nil // Salt skips directories that it cannot read
		}
		if err != nil {
			return err
		}
		for _, d := range list {
			e := entry{rel: path.Join(rel, d.Name()), dir: d.IsDir(), link: d.Type()&fs.ModeSymlink != 0}
			matches := strings.HasPrefix(e.rel, prefix)
			if !matches && !strings.HasPrefix(prefix, e.rel+"/") {
				continue
			}
			full := filepath.Join(root, filepath.FromSlash(e.rel))
			var info fs.FileInfo
			if e.dir || e.link {
				if info, err = os.Stat(full); err == nil {
					e.dir = info.IsDir()
				}
			}
			if e.dir {
				list, err := os.ReadDir(full)
				e.empty = err == nil && len(list) == 0
			}
			if matches {
				visit(e)
			}
			// A link to a directory that contains the link would recurse forever.
			if !e.dir || info == nil || e.link && slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, info) }) {
				continue
			}
			if err := below(e.rel, append(above[:len(above):len(above)], info)); err != nil {
				return err
			}
		}
		return nil
	}
	info, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return below("", []fs.FileInfo{info})
}
