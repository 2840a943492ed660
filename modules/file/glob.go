//go:build unix

package file

import (
	"strings"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/internal/posixpath"
)

func magic(s string) bool { return strings.ContainsAny(s, "*?[") }

// glob is glob.glob of Python, not recursive: names that begin with a dot only match a pattern that does. The order is that of
// the directories.
func (h *host) glob(pattern string) ([]string, error) {
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	dir, base := posixpath.Split(pattern)
	if !magic(pattern) {
		if base != "" && h.lexists(pattern) || base == "" && h.isDir(dir) {
			return []string{pattern}, nil
		}
		return nil, nil
	}
	dirs := []string{dir}
	if dir != pattern && magic(dir) {
		var err error
		if dirs, err = h.glob(dir); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, d := range dirs {
		if !magic(base) {
			if base == "" && h.isDir(d) || base != "" && h.lexists(posixpath.Join(d, base)) {
				found = append(found, posixpath.Join(d, base))
			}
			continue
		}
		names, err := h.names(orDot(d))
		if err != nil {
			continue
		}
		for _, n := range fnmatch.Filter(names, base) {
			if n[0] != '.' || base[0] == '.' {
				found = append(found, posixpath.Join(d, n))
			}
		}
	}
	return found, nil
}
