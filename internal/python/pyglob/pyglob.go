// Package pyglob implements Python's glob.glob without recursion. A name that begins with a dot only matches a
// pattern that does too. The names of a directory are not sorted.
package pyglob

import (
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/posixpath"
)

// HasMagic reports whether a text is a pattern.
func HasMagic(s string) bool { return strings.ContainsAny(s, "*?[") }

// Glob returns the paths that match a pattern. path converts a path in the pattern to a local path.
func Glob(path func(string) string, pattern string) []string {
	dir, base := posixpath.Split(pattern)
	if !HasMagic(pattern) {
		if base != "" && exists(path(pattern)) || base == "" && isDir(path(dir)) {
			return []string{pattern}
		}
		return nil
	}
	dirs := []string{dir}
	if dir != pattern && HasMagic(dir) {
		dirs = Glob(path, dir)
	}
	var found []string
	for _, d := range dirs {
		if !HasMagic(base) {
			if base == "" && isDir(path(d)) || base != "" && exists(path(posixpath.Join(d, base))) {
				found = append(found, posixpath.Join(d, base))
			}
			continue
		}
		list := d
		if list == "" {
			list = "."
		}
		for _, n := range fnmatch.Filter(names(path(list)), base) {
			if n[0] != '.' || base[0] == '.' {
				found = append(found, posixpath.Join(d, n))
			}
		}
	}
	return found
}

func names(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.Readdirnames(-1) // after an error, use the names that were read
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
