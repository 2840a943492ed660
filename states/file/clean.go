//go:build unix

package file

import (
	"errors"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pathpick"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// keepFiles implements _gen_keep_files: it returns the paths that the file states required by a directory manage in
// it. levels is the directory's content, if known.
func (j *job) keepFiles(name string, require any, levels []level) (map[string]bool, error) {
	keep := map[string]bool{}
	list, _ := require.([]any)
	for _, req := range list {
		want, ok := mapOf(req)["file"]
		if !ok {
			continue
		}
		id := pytext.Str(want)
		for _, low := range j.Lowstate() {
			if low.Name() != id && low.ID() != id {
				continue
			}
			if err := j.keepOf(keep, name, low, levels); err != nil {
				return nil, err
			}
		}
	}
	return keep, nil
}

// keepOf adds what one state has in the directory.
func (j *job) keepOf(keep map[string]bool, name string, low *states.Low, levels []level) error {
	path := low.Name()
	switch {
	case !j.isDir(path):
		keep[path] = true
	case !j.below(path, name):
	case low.Fun() == "recurse":
		source, senv, err := j.recurseSource(low.Value("source"))
		if err != nil {
			return err
		}
		if source == "" {
			return nil
		}
		tree, err := j.listTree(treeOptions{
			name: path, sources: []treeSource{{source, senv}}, keepSymlinks: low.Truth("keep_symlinks"), includeEmpty: low.Truth("include_empty"),
			includePat: low.Value("include_pat"), excludePat: low.Value("exclude_pat"), maxDepth: low.Value("maxdepth"),
		})
		if err != nil {
			return err
		}
		for path := range tree.keep {
			keep[path] = true
		}
	case levels != nil:
		for _, l := range levels {
			if l.dir == path || strings.HasPrefix(l.dir, strings.TrimSuffix(path, "/")+"/") {
				keepLevel(keep, l)
			}
		}
	default:
		return j.walk(path, func(dir string, dirs, files []string) error {
			keepLevel(keep, level{dir, dirs, files})
			return nil
		})
	}
	return nil
}

func keepLevel(keep map[string]bool, l level) {
	keep[l.dir] = true
	for _, list := range [...][]string{l.files, l.dirs} {
		for _, name := range list {
			keep[posixpath.Join(l.dir, name)] = true
		}
	}
}

// below reports whether a path is a directory or in it.
func (j *job) below(path, dir string) bool {
	return !strings.HasPrefix(posixpath.Rel(posixpath.Norm(path), posixpath.Norm(dir)), "..")
}

// cleanDir implements _clean_dir: it removes everything from a directory except what keep lists, the directories
// around that, and what a pattern excludes.
func (j *job) cleanDir(root string, keep map[string]bool, exclude any) ([]any, error) {
	real := map[string]bool{root: true}
	for path := range keep {
		if !posixpath.IsAbs(path) {
			continue
		}
		for path = posixpath.Norm(path); !real[path]; path = posixpath.Dir(path) {
			real[path] = true
		}
	}
	var removed []any
	err := j.walk(root, func(dir string, dirs, files []string) error {
		for _, list := range [...][]string{dirs, files} {
			for _, name := range list {
				path := posixpath.Join(dir, name)
				if real[path] {
					continue
				}
				ok, err := pathpick.Wanted(posixpath.Rel(path, root), nil, exclude)
				if err != nil {
					return modules.Errorf("%v", err)
				}
				if !ok {
					continue
				}
				removed = append(removed, path)
				if j.Test() {
					continue
				}
				if err := j.unlink(path); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return removed, err
}

// unlink removes a file, or a directory with all that is in it.
func (j *job) unlink(path string) error {
	info, err := os.Lstat(j.Path(path))
	if err == nil && !info.IsDir() {
		if err = os.Remove(j.Path(path)); err == nil {
			return nil
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err = j.exec("file.remove", path)
	return err
}
