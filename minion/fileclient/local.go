package fileclient

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// find gives the path of a file in the first root that has it, "" if none has.
func (c *Client) find(p place) (string, error) {
	if _, err := p.local(); err != nil {
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

// copyLocal brings a file of the roots into the cache, where stock puts files of its own roots as well.
func (c *Client) copyLocal(p place) (string, error) {
	name, err := p.local()
	if err != nil {
		return "", err
	}
	source, err := c.find(p)
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
	w, err := c.create(name)
	if err != nil {
		return "", err
	}
	defer w.discard()
	if _, err := io.Copy(w.file, in); err != nil {
		return "", fmt.Errorf("cannot cache file %q: %w", p.path, err)
	}
	return w.commit()
}

// localHash is the hash of a file of this host, nil if it is none.
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

// localList lists the roots of an environment as the master's file server would.
func (c *Client) localList(cmd, saltenv, prefix string) ([]string, error) {
	found := map[string]bool{}
	for _, root := range c.o.Roots[saltenv] {
		err := c.walk(root, prefix, func(rel string, d fs.DirEntry, empty bool) {
			switch {
			case cmd == "_file_list" && !d.IsDir(), cmd == "_dir_list" && d.IsDir(), cmd == "_file_list_emptydirs" && d.IsDir() && empty:
				found[rel] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// localLinks are the symbolic links below the roots.
func (c *Client) localLinks(saltenv, prefix string) (map[string]string, error) {
	links := map[string]string{}
	for _, root := range c.o.Roots[saltenv] {
		err := c.walk(root, prefix, func(rel string, d fs.DirEntry, _ bool) {
			if d.Type()&fs.ModeSymlink == 0 {
				return
			}
			if to, err := os.Readlink(filepath.Join(root, rel)); err == nil {
				links[rel] = to
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return links, nil
}

// walk visits everything below a root whose relative path begins with prefix. A root that does not exist is empty.
func (c *Client) walk(root, prefix string, visit func(rel string, d fs.DirEntry, empty bool)) error {
	prefix = strings.TrimPrefix(prefix, "/")
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !strings.HasPrefix(rel, prefix) || rel == "." {
			return nil
		}
		empty := false
		if d.IsDir() {
			list, err := os.ReadDir(name)
			empty = err == nil && len(list) == 0
		}
		visit(rel, d, empty)
		return nil
	})
}
