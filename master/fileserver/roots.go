package fileserver

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// anyEnv is Salt's name for roots that serve every environment that is not listed. The word in a path stands for
// the environment's name.
const anyEnv = "__env__"

// RootsOptions of a Roots backend.
type RootsOptions struct {
	// Roots maps environments to directories, searched in order: file_roots.
	Roots map[string][]string
	// FollowSymlinks allows links to lead out of the directories, as Salt does by default
	// (fileserver_followsymlinks). Otherwise links work only within a directory, and absolute ones not at all.
	FollowSymlinks bool
	// IgnoreSymlinks leaves links out of listings (fileserver_ignoresymlinks).
	IgnoreSymlinks bool
}

// Roots serves directories.
type Roots struct{ opts RootsOptions }

var _ Backend = (*Roots)(nil)

// NewRoots returns a backend for directories. They may appear and disappear later.
func NewRoots(o RootsOptions) *Roots { return &Roots{o} }

// Name implements Backend.
func (r *Roots) Name() string { return "roots" }

// Envs implements Backend. As in Salt, __env__ is listed under this name.
func (r *Roots) Envs() []string {
	out := make([]string, 0, len(r.opts.Roots))
	for env := range r.opts.Roots {
		out = append(out, env)
	}
	slices.Sort(out)
	return out
}

// HasEnv implements Backend.
func (r *Roots) HasEnv(env string) bool { return r.envDirs(env) != nil }

func (r *Roots) envDirs(env string) []string {
	if dirs, ok := r.opts.Roots[env]; ok && env != anyEnv {
		return dirs
	}
	dirs, ok := r.opts.Roots[anyEnv]
	// guard: CVE-2025-22240 @served-env master:TestCVE_2025_22240_NamesOfEnvironments
	// it becomes the name of one directory
	if !ok || !ValidEnv(env) || strings.ContainsRune(env, '/') || strings.HasPrefix(env, ".") {
		return nil
	}
	out := make([]string, len(dirs))
	for i, d := range dirs {
		out[i] = strings.ReplaceAll(d, anyEnv, env)
	}
	return out
}

func (r *Roots) openTree(dir string) (tree, error) {
	if r.opts.FollowSymlinks {
		return openFollowing(filepath.Clean(dir))
	}
	// guard: CVE-2020-11652 TestT14Traversal,TestT14LinkSwap instead: return openFollowing(filepath.Clean(dir))
	return openConfined(filepath.Clean(dir))
}

// eachTree calls f with the trees of an environment until it returns something other than ErrNotFound.
func (r *Roots) eachTree(env string, f func(tree) error) error {
	for _, dir := range r.envDirs(env) {
		t, err := r.openTree(dir)
		if err != nil {
			continue // a root that does not exist has no files, as in Salt
		}
		err = f(t)
		t.close()
		if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return ErrNotFound
}

// Find implements Backend.
func (r *Roots) Find(env, name string) (found Found, err error) {
	err = r.eachTree(env, func(t tree) error {
		found, err = findRegular(t, name)
		return err
	})
	return found, err
}

// Open implements Backend.
func (r *Roots) Open(env, name string) (h Handle, err error) {
	err = r.eachTree(env, func(t tree) error {
		h, err = t.open(name)
		if err != nil {
			return ErrNotFound
		}
		return nil
	})
	return h, err
}

// List implements Backend.
func (r *Roots) List(ctx context.Context, env string) (Listing, error) {
	out := Listing{Links: make(map[string]string)}
	err := r.eachTree(env, func(t tree) error {
		if err := listTree(ctx, t, r.opts.IgnoreSymlinks, &out); err != nil {
			return err
		}
		return ErrNotFound // continue with the next root
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Listing{}, err
	}
	return out, nil
}

// FS serves one environment from any fs.FS: an embed.FS, a zip file, a program's own.
type FS struct {
	env  string
	tree fsTree
}

var _ Backend = (*FS)(nil)

// NewFS returns a backend that serves fsys as an environment, usually "base". It does not close fsys.
func NewFS(env string, fsys fs.FS) *FS {
	return &FS{env, fsTree{fsys: fsys, name: "fs"}}
}

// Name implements Backend.
func (f *FS) Name() string { return "fs" }

// Envs implements Backend.
func (f *FS) Envs() []string { return []string{f.env} }

// HasEnv implements Backend.
func (f *FS) HasEnv(env string) bool { return env == f.env }

// Find implements Backend.
func (f *FS) Find(_, name string) (Found, error) { return findRegular(&f.tree, name) }

// Open implements Backend.
func (f *FS) Open(_, name string) (Handle, error) {
	h, err := f.tree.open(name)
	if err != nil {
		return nil, ErrNotFound
	}
	return h, nil
}

// List implements Backend.
func (f *FS) List(ctx context.Context, _ string) (Listing, error) {
	var out Listing
	err := listTree(ctx, &f.tree, false, &out)
	return out, err
}
