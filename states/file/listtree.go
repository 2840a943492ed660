//go:build unix

package file

import (
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pathpick"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// treeOptions describes what a recurse state takes from the file server, and where it goes.
type treeOptions struct {
	name                       string
	sources                    []treeSource
	keepSymlinks, includeEmpty bool
	includePat, excludePat     any
	maxDepth                   any
}

// tree holds the paths that a recurse state manages on this host.
type tree struct {
	*job
	treeOptions
	deep  int64 // how many directories deep, -1 for any
	files map[string]string
	dirs  map[string]bool
	links map[string]string
	keep  map[string]bool
	// all are all directories that files, links or directories are in, ignored those that were links which lost their target.
	all, ignored map[string]bool
}

// listTree implements _gen_recurse_managed_files of Salt 3008, which merges sources and does not touch links that are
// kept.
func (j *job) listTree(o treeOptions) (*tree, error) {
	t := &tree{job: j, treeOptions: o, deep: -1, files: map[string]string{}, dirs: map[string]bool{}, links: map[string]string{},
		keep: map[string]bool{}, all: map[string]bool{}, ignored: map[string]bool{}}
	if o.maxDepth != nil {
		n, err := modules.ToInt(o.maxDepth)
		if err != nil {
			return nil, &modules.TypeError{Msg: "'>' not supported between instances of 'int' and '" + modules.TypeName(o.maxDepth) + "'"}
		}
		t.deep = max(n, 0)
	}
	for _, s := range o.sources {
		if err := t.add(s); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// texts returns the paths that a function of cp lists.
func (t *tree) texts(fun string, s treeSource, root string) ([]string, error) {
	v, err := t.exec(fun, s.env, root)
	list, _ := v.([]any)
	names := make([]string, 0, len(list))
	for _, x := range list {
		if name := pytext.Str(x); strings.TrimSpace(name) != "" {
			names = append(names, name)
		}
	}
	return names, err
}

// wanted returns a path of the file server relative to the source. ok reports whether it belongs to the tree.
func (t *tree) wanted(path, root string) (rel string, ok bool, err error) {
	rel = posixpath.Rel(path, root)
	if strings.Contains("/"+rel+"/", "/../") || t.deep >= 0 && int64(strings.Count(strings.Trim(rel, "/"), "/")) > t.deep {
		return rel, false, nil
	}
	if ok, err = pathpick.Wanted(rel, t.includePat, t.excludePat); err != nil {
		err = modules.Errorf("%v", err)
	}
	return rel, ok, err
}

// occupied reports whether an earlier source has something at a path, or a file or link above it.
func (t *tree) occupied(path string) bool {
	if t.all[path] {
		return true
	}
	for {
		if _, ok := t.files[path]; ok {
			return true
		}
		if _, ok := t.links[path]; ok {
			return true
		}
		up := posixpath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// above notes the directories that a path is in.
func (t *tree) above(path string) {
	for up := posixpath.Dir(path); !t.all[up]; up = posixpath.Dir(up) {
		t.all[up] = true
	}
}

func (t *tree) dest(rel string) string { return posixpath.Join(t.name, posixpath.Norm(rel)) }

// add takes one source.
func (t *tree) add(s treeSource) error {
	root := s.path
	if !strings.HasSuffix(root, "/") {
		root += "/"
	}
	names, err := t.texts("cp.list_master", s, root)
	if err == nil && t.keepSymlinks {
		names, err = t.symlinks(s, root, names)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		rel, ok, err := t.wanted(name, root)
		if err != nil {
			return err
		}
		path := t.dest(rel)
		if !ok || t.occupied(path) {
			continue
		}
		t.keep[path] = true
		t.dirs[posixpath.Dir(path)] = true
		t.above(path)
		t.files[path] = "salt://" + name
		if s.env != "" {
			t.files[path] += "?saltenv=" + s.env
		}
	}
	switch {
	case t.includeEmpty:
		return t.empty(s, root)
	case t.keepSymlinks:
		return t.dropDangling(s, root)
	}
	return nil
}

// symlinks takes the links of a source, and gives the paths that are neither links nor behind one.
func (t *tree) symlinks(s treeSource, root string, names []string) ([]string, error) {
	v, err := t.exec("cp.list_master_symlinks", s.env, root)
	if err != nil {
		return nil, err
	}
	links := mapOf(v)
	wasDir := map[string]bool{} // the links that paths are behind
	names = slices.DeleteFunc(names, func(name string) bool {
		for end := 0; end < len(name); end++ {
			next := strings.IndexByte(name[end:], '/')
			if next < 0 {
				break
			}
			end += next
			if _, ok := links[name[:end]]; ok {
				wasDir[name[:end]] = true
				return true
			}
		}
		_, ok := links[name]
		return ok
	})
	for _, link := range slices.Sorted(maps.Keys(links)) {
		target, wasDir := pytext.Str(links[link]), wasDir[link]
		rel, ok, err := t.wanted(link, root)
		if err != nil {
			return nil, err
		}
		path := t.dest(rel)
		if !ok || t.occupied(path) {
			continue
		}
		to := posixpath.Norm(posixpath.Join(posixpath.Dir(path), target))
		if _, file := t.files[to]; file && wasDir {
			t.ignored[path] = true
			continue
		}
		if !wasDir && t.dirs[to] {
			continue
		}
		t.links[path] = target
		t.keep[path] = true
	}
	return names, nil
}

// empty takes the directories of a source, also those with nothing in them.
func (t *tree) empty(s treeSource, root string) error {
	names, err := t.texts("cp.list_master_dirs", s, root)
	if err != nil {
		return err
	}
	for _, name := range names {
		rel, ok, err := t.wanted(name, root)
		if err != nil {
			return err
		}
		path := t.dest(rel)
		if !ok || t.ignored[path] || t.occupied(path) && !t.all[path] {
			continue
		}
		t.dirs[path], t.all[path], t.keep[path] = true, true, true
	}
	return nil
}

// dropDangling forgets links to directories that are not taken because they are empty, and links to such links.
func (t *tree) dropDangling(s treeSource, root string) error {
	names, err := t.texts("cp.list_master_dirs", s, root)
	if err != nil {
		return err
	}
	isDir := make(map[string]bool, len(names))
	for _, name := range names {
		isDir[name] = true
	}
	for again := true; again; {
		again = false
		for link, target := range t.links {
			if !isDir[posixpath.Norm(posixpath.Join(root, target))] {
				continue
			}
			to := posixpath.Norm(t.dest(target))
			_, file := t.files[to]
			_, other := t.links[to]
			if !file && !other && !t.all[to] {
				delete(t.links, link)
				again = true
			}
		}
	}
	return nil
}
