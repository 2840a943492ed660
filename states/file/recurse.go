//go:build unix

package file

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var recurseDef = states.Def{Name: "recurse", Params: []modules.Param{
	{Name: "name"}, {Name: "source"}, {Name: "keep_source", Default: true}, {Name: "clean", Default: false},
	{Name: "require", Optional: true}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
	{Name: "dir_mode", Optional: true}, {Name: "file_mode", Optional: true}, {Name: "sym_mode", Optional: true},
	{Name: "template", Optional: true}, {Name: "context", Optional: true}, {Name: "replace", Default: true},
	{Name: "defaults", Optional: true}, {Name: "include_empty", Default: false}, {Name: "backup", Default: ""},
	{Name: "include_pat", Optional: true}, {Name: "exclude_pat", Optional: true}, {Name: "maxdepth", Optional: true},
	{Name: "keep_symlinks", Default: false}, {Name: "force_symlinks", Default: false}, {Name: "win_owner", Optional: true},
	{Name: "win_perms", Optional: true}, {Name: "win_deny_perms", Optional: true}, {Name: "win_inheritance", Default: true},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return recurse(on(ctx, c)) }}

// recursion is one run of file.recurse.
type recursion struct {
	*job
	ret               *states.Result
	name              string
	user, group       any
	dirMode, fileMode any
	comments          map[string][]string
	paths             []string // the keys of comments in their order
	merging           bool
}

func recurse(j *job) (*states.Result, error) {
	r := &recursion{job: j, group: j.Value("group"), dirMode: modules.NormalMode(j.Value("dir_mode")), fileMode: j.Value("file_mode"),
		comments: map[string][]string{}, merging: pytext.Truth(j.Keywords["merge"])}
	r.name, r.ret = j.begin()
	r.user = j.testOwner(j.Value("user"))
	if _, ok := j.Keywords["mode"]; ok {
		return fail(r.ret, "'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.")
	}
	if s, ok := r.fileMode.(string); ok && strings.EqualFold(s, "keep") {
		r.fileMode = "keep"
	} else {
		r.fileMode = modules.NormalMode(r.fileMode)
	}
	wrong, err := j.checkUser(r.user, r.group)
	switch {
	case err != nil:
		return nil, err
	case wrong != "":
		return fail(r.ret, wrong)
	case !posixpath.IsAbs(r.name):
		return fail(r.ret, "Specified file "+r.name+" is not an absolute path")
	}
	sources, wrong, err := r.sources()
	switch {
	case err != nil:
		return nil, err
	case wrong != "":
		return fail(r.ret, wrong)
	}
	if !r.isDir(r.name) {
		if r.exists(r.name) {
			return fail(r.ret, "The path "+r.name+" exists and is not a directory")
		}
		if !r.Test() {
			if _, err := r.exec("file.makedirs_perms", r.name, r.user, r.group, r.dirMode); err != nil {
				return nil, err
			}
		}
	}
	tree, err := r.listTree(treeOptions{
		name: r.name, sources: sources, keepSymlinks: r.Bool("keep_symlinks"), includeEmpty: r.Bool("include_empty"),
		includePat: r.Value("include_pat"), excludePat: r.Value("exclude_pat"), maxDepth: r.Value("maxdepth"),
	})
	if err == nil {
		err = r.apply(tree)
	}
	if err == nil && r.Bool("clean") {
		err = r.clean(tree.keep)
	}
	if err != nil {
		return nil, err
	}
	r.comment()
	return r.ret, nil
}

// treeSource is a directory of the fileserver.
type treeSource struct{ path, env string }

// sources returns the directories to copy: the first of several that exists, or with merge all of them.
func (r *recursion) sources() (list []treeSource, wrong string, err error) {
	names := textList(r.Value("source"))
	for i, name := range names {
		names[i] = strings.TrimRight(name, "/")
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "salt://") {
			return nil, "Invalid source '" + name + "' (must be a salt:// URI)", nil
		}
	}
	if !r.merging {
		anys := make([]any, len(names))
		for i, name := range names {
			anys[i] = name
		}
		v, err := r.exec("file.source_list", anys, "", r.Saltenv())
		if isExec(err) {
			return nil, "Recurse failed: " + states.ErrorText(err), nil
		} else if err != nil {
			return nil, "", err
		}
		if pair, ok := v.([]any); ok && len(pair) == 2 {
			names = []string{pytext.Str(pair[0])}
		}
	}
	for _, name := range names {
		s := r.treeSource(name)
		ok, err := r.onMaster(s)
		if err != nil {
			return nil, "", err
		}
		if ok {
			list = append(list, s)
		} else if !r.merging {
			return nil, "The directory '" + s.path + "' does not exist on the salt fileserver in saltenv '" + s.env + "'", nil
		}
	}
	if list == nil {
		return nil, "Recurse failed: none of the specified sources were found", nil
	}
	return list, "", nil
}

// treeSource implements salt.utils.url.parse: it returns the path of an address, and the address's environment or
// that of the state.
func (j *job) treeSource(url string) treeSource {
	s := treeSource{strings.TrimPrefix(url, "salt://"), j.Saltenv()}
	if path, _, ok := strings.Cut(s.path, "?env="); ok {
		s.path = path
	} else if path, env, ok := strings.Cut(s.path, "?saltenv="); ok {
		s.path, s.env = path, env
	}
	return s
}

// onMaster reports whether the fileserver has a directory.
func (j *job) onMaster(s treeSource) (bool, error) {
	v, err := j.exec("cp.list_master_dirs", s.env, s.path+"/")
	dirs, _ := v.([]any)
	return slices.Contains(dirs, any(s.path)), err
}

// recurseSource returns the first existing source of another recurse state, or "" if none exists.
func (j *job) recurseSource(source any) (path, env string, err error) {
	for _, name := range textList(source) {
		s := j.treeSource(strings.TrimRight(name, "/"))
		if ok, err := j.onMaster(s); ok || err != nil {
			return s.path, s.env, err
		}
	}
	return "", "", nil
}

// apply makes links, directories and files.
func (r *recursion) apply(t *tree) error {
	for _, link := range slices.Sorted(maps.Keys(t.links)) {
		ret, err := r.State(r.ctx, "file.symlink", map[string]any{
			"name": link, "target": t.links[link], "makedirs": true, "force": r.Value("force_symlinks"), "user": r.user, "group": r.group,
			"mode": r.Value("sym_mode"),
		})
		if err != nil {
			return err
		}
		r.merge(link, ret)
	}
	for _, dir := range slices.Sorted(maps.Keys(t.dirs)) {
		if err := r.directory(dir); err != nil {
			return err
		}
	}
	for _, file := range slices.Sorted(maps.Keys(t.files)) {
		if err := r.file(file, t.files[file]); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the answer of a state inside of this one.
func (r *recursion) merge(path string, ret *states.Result) {
	if ret.Result == states.False || r.ret.Result == states.True {
		r.ret.Result = ret.Result
	}
	if ret.Result != states.True && ret.Comment != "" {
		r.addComment(path, ret.Comment)
	}
	if ret.Changed() {
		r.ret.Changes[path] = ret.Changes
	}
}

func (r *recursion) addComment(path string, list ...string) {
	if _, ok := r.comments[path]; !ok {
		r.paths = append(r.paths, path)
	}
	r.comments[path] = append(r.comments[path], list...)
}

// replaced makes way for something of another kind, and reports whether that is all in test mode.
func (r *recursion) replaced(path, would, did string) (done bool, err error) {
	ret := &states.Result{Name: r.name, Result: states.True, Changes: map[string]any{}}
	if r.Test() {
		ret.Result, ret.Comment = states.None, would
		r.merge(path, ret)
		return true, nil
	}
	if _, err := r.exec("file.remove", path); err != nil {
		return false, err
	}
	ret.Changes["diff"] = did
	r.merge(path, ret)
	return false, nil
}

func (r *recursion) directory(path string) error {
	if posixpath.Base(path) == ".." {
		return nil
	}
	if r.Bool("clean") && r.exists(path) && !r.isDir(path) {
		if done, err := r.replaced(path, "Replacing "+path+" with a directory", "Replaced file with a directory"); done || err != nil {
			return err
		}
	}
	ret, err := r.State(r.ctx, "file.directory", map[string]any{
		"name": path, "user": r.user, "group": r.group, "recurse": []any{}, "dir_mode": r.dirMode, "file_mode": nil, "makedirs": true,
		"clean": false, "require": nil,
	})
	if err == nil {
		r.merge(path, ret)
	}
	return err
}

func (r *recursion) file(path, source string) error {
	if r.Bool("clean") && r.isDir(path) && r.Bool("replace") {
		if done, err := r.replaced(path, "Replacing directory "+path+" with a file", "Replaced directory with a new file"); done || err != nil {
			return err
		}
	}
	kw := map[string]any{}
	for k, v := range r.Keywords {
		if k != "mode" && k != "makedirs" && k != "merge" && k != "env" {
			kw[k] = r.orderedOf(k, v)
		}
	}
	maps.Copy(kw, map[string]any{
		"name": path, "source": source, "keep_source": r.Value("keep_source"), "user": r.user, "group": r.group, "mode": r.fileMode, "attrs": nil,
		"template": r.Value("template"), "makedirs": true, "replace": r.Value("replace"), "context": r.ordered("context"),
		"defaults": r.ordered("defaults"), "backup": r.Value("backup"),
	})
	ret, err := r.State(r.ctx, "file.managed", kw)
	if err == nil {
		r.merge(path, ret)
	}
	return err
}

// clean removes everything that is not from the file server.
func (r *recursion) clean(keep map[string]bool) error {
	more, err := r.keepFiles(r.name, r.Value("require"), nil)
	if err != nil {
		return err
	}
	maps.Copy(keep, more)
	removed, err := r.cleanDir(r.name, keep, r.Value("exclude_pat"))
	if err != nil || len(removed) == 0 {
		return err
	}
	if !r.Test() {
		r.ret.Changes["removed"] = removed
		return nil
	}
	if r.ret.Result == states.True {
		r.ret.Result = states.None
	}
	for _, path := range removed {
		r.addComment("removed", pytext.Str(path))
	}
	return nil
}

// comment joins the comments about all paths.
func (r *recursion) comment() {
	parts := make([]string, len(r.paths))
	for i, path := range r.paths {
		parts[i] = "\n#### " + path + " ####\n" + strings.Join(r.comments[path], "\n")
	}
	r.ret.Comment = strings.TrimSpace(strings.Join(parts, "\n"))
	if r.ret.Comment == "" {
		r.ret.Comment = "Recursively updated " + r.name
	}
	if !r.ret.Changed() && r.ret.Result == states.True {
		r.ret.Comment = "The directory " + r.name + " is in the correct state"
	}
}
