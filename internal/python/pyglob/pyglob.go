// Package pyglob is Python's glob.glob, not recursive: names that begin with a dot only match a pattern that does, and the
// order is that of the directories.
package pyglob

import (
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/posixpath"
)

// HasMagic reports whether a text is a pattern.
func HasMagic(s string) bool { return strings.ContainsAny(s, "*?[") }

// Glob returns the paths that match a pattern. path converts a path of the pattern to one of this machine.
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
	list, _ := d.Readdirnames(-1) // what can be read of a directory that cannot be read to its end
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
