package archive

import (
	"errors"
	"io/fs"
	"os"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// own sets the owner of the unpacked files.
func (j *job) own() error {
	user, group := j.Value("user"), j.Value("group")
	var recurse []any
	if pytext.Truth(user) {
		recurse = append(recurse, "user")
	}
	if pytext.Truth(group) {
		recurse = append(recurse, "group")
	}
	if recurse == nil {
		return nil
	}
	dirs, files := j.contents.topDirs, append(append([]string{}, j.contents.topFiles...), j.contents.topLinks...)
	place := func(name string) string { return posixpath.Join(j.name, inside(name)) }
	if on, ok := j.Value("enforce_ownership_on").(string); ok && on != "" {
		place = func(name string) string { return name }
		if dirs, files = nil, []string{on}; j.isDir(on) {
			dirs, files = files, nil
		}
	}
	for _, name := range dirs {
		path := place(name)
		if name[len(name)-1] == '/' && path[len(path)-1] != '/' {
			path += "/"
		}
		if !j.isDir(path) {
			if !j.Test() {
				j.ownless = append(j.ownless, path)
			}
			continue
		}
		res, err := j.State(j.ctx, "file.directory", map[string]any{"name": path, "user": user, "group": group, "recurse": recurse})
		if err != nil {
			return err
		}
		if res.Changed() {
			j.ret.Changes["updated ownership"] = true
		}
		if res.Result != states.True {
			j.unowned = append(j.unowned, path)
		}
	}
	for _, name := range files {
		j.ownOne(name, place(name))
	}
	return nil
}

func (j *job) ownOne(name, path string) {
	info, err := os.Lstat(j.Path(path))
	if err != nil {
		if !j.Test() {
			if errors.Is(err, fs.ErrNotExist) {
				j.ownless = append(j.ownless, path)
			}
			j.unowned = append(j.unowned, path)
		}
		return
	}
	uid, gid := owner(info)
	if (j.uid == -1 || j.uid == uid) && (j.gid == -1 || j.gid == gid) {
		return
	}
	if !j.Test() {
		if err := os.Lchown(j.Path(path), int(j.uid), int(j.gid)); err != nil {
			j.unowned = append(j.unowned, name)
			return
		}
	}
	j.ret.Changes["updated ownership"] = true
}
