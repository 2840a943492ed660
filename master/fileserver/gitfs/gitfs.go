// Package gitfs is the file server's back end for git repositories, through the git program: branches, tags and commits are
// environments. It keeps bare copies of the repositories and reads files out of them when they are asked for; nothing is checked
// out. Salt's sources: salt/utils/gitfs.py, salt/fileserver/gitfs.py.
package gitfs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/master/fileserver"
)

// Env changes what an environment of a remote is; nil leaves it as it is for the remote.
type Env struct {
	Ref, Root, Mountpoint *string
}

// Remote is one repository. URL is needed, and Base where one of the environments is to be called base.
type Remote struct {
	URL string
	// Name names the copy below the cache directory; empty makes a name of the URL.
	Name string
	// Base is the branch, tag or commit that is the environment base.
	Base string
	// Root is a directory of the repository that is served in place of the whole; Mountpoint is where that appears.
	Root, Mountpoint string
	// Envs changes single environments; All is one branch, tag or commit for all of them.
	Envs map[string]Env
	All  string
	// Allow and Deny are globs or regular expressions of environments (saltenv_whitelist, saltenv_blacklist).
	Allow, Deny []string
	// RefTypes says what may be an environment: branch, tag, sha. nil is all of them.
	RefTypes []string
	// Fallback stands in for environments that the repository does not have.
	Fallback string
	// NoMapping makes environments only of base and of what Envs names (disable_saltenv_mapping).
	NoMapping bool
	// Refspecs are what is fetched; nil is branches and tags.
	Refspecs []string
	// Interval is how often Run fetches; 0 is a minute.
	Interval time.Duration

	// User and Password are for HTTP; Insecure allows them without TLS, and NoVerify does not look at the server's certificate.
	User, Password     string
	Insecure, NoVerify bool
	// PrivateKey is a file for SSH.
	PrivateKey string
}

// Options of a FS.
type Options struct {
	Remotes []Remote
	// Envs changes environments of all remotes that say nothing of them (gitfs_saltenv).
	Envs map[string]Env
	// CacheDir is where the copies are kept.
	CacheDir string
	// Program is git's; empty is "git". Timeout bounds one fetch; 0 is 10 minutes.
	Program string
	Timeout time.Duration
	// Changed is called after a fetch that brought something.
	Changed func()
	Log     *slog.Logger
}

// FS serves repositories. Its methods may be called from many goroutines.
type FS struct {
	opts  Options
	repos []*repo
}

var _ fileserver.Source = (*FS)(nil)

// New opens the copies of the repositories, or prepares empty ones; Update or Run fills them.
func New(o Options) (*FS, error) {
	if o.Program == "" {
		o.Program = "git"
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.CacheDir == "" {
		return nil, errors.New("gitfs: a cache directory is needed")
	}
	g := &FS{opts: o}
	names := map[string]string{}
	for _, remote := range o.Remotes {
		r, err := newRepo(o, remote)
		if err != nil {
			return nil, fmt.Errorf("gitfs: remote %q: %w", remote.URL, err)
		}
		// guard: CVE-2023-20898 TestCVE_2023_20898_CopiesDoNotCollide
		if other, ok := names[r.dir]; ok {
			return nil, fmt.Errorf("gitfs: the remotes %q and %q are the same; give one of them a name", other, remote.URL)
		}
		names[r.dir] = remote.URL
		g.repos = append(g.repos, r)
	}
	return g, nil
}

// Name implements fileserver.Backend.
func (g *FS) Name() string { return "git" }

// Envs implements fileserver.Backend.
func (g *FS) Envs() []string {
	var out []string
	for _, r := range g.repos {
		out = append(out, r.envs()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// HasEnv implements fileserver.Backend.
func (g *FS) HasEnv(env string) bool {
	return slices.ContainsFunc(g.repos, func(r *repo) bool { return r.serves(env) }) || slices.Contains(g.Envs(), env)
}

// each calls f with the tree of an environment in each remote until it says that it is done.
func (g *FS) each(ctx context.Context, env string, f func(r *repo, t *tree) (done bool, err error)) error {
	known := slices.Contains(g.Envs(), env)
	for _, r := range g.repos {
		if !known && !r.serves(env) {
			continue
		}
		t, err := r.tree(ctx, env)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if done, err := f(r, t); done || err != nil {
			return err
		}
	}
	return nil
}

// find looks a file up; ErrNotFound.
func (g *FS) find(env, name string) (*repo, entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var at *repo
	var found entry
	err := g.each(ctx, env, func(r *repo, t *tree) (bool, error) {
		inside, ok := r.inside(env, name)
		if !ok {
			return false, nil
		}
		e, ok, err := t.file(ctx, r, inside)
		if ok {
			at, found = r, e
		}
		return ok, err
	})
	if err == nil && at == nil {
		err = fileserver.ErrNotFound
	}
	return at, found, err
}

// Find implements fileserver.Backend.
func (g *FS) Find(env, name string) (fileserver.Found, error) {
	_, e, err := g.find(env, name)
	if err != nil {
		return fileserver.Found{}, err
	}
	// Where stock's copy would be; ours is kept by its contents.
	shown := filepath.Join(g.opts.CacheDir, "refs", filepath.FromSlash(env), filepath.FromSlash(name))
	return fileserver.Found{Path: shown, Info: fileInfo{e, filepath.Base(name)}}, nil
}

// Open implements fileserver.Backend.
func (g *FS) Open(env, name string) (fileserver.Handle, error) {
	r, e, err := g.find(env, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return r.blob(ctx, e)
}

// List implements fileserver.Backend.
func (g *FS) List(ctx context.Context, env string) (fileserver.Listing, error) {
	out := fileserver.Listing{Links: map[string]string{}}
	linked := isHex(env) || slices.Contains(g.Envs(), env) // as stock, which has no links where an environment is a fallback
	err := g.each(ctx, env, func(r *repo, t *tree) (bool, error) {
		root, mount := r.root(env), r.mountpoint(env)
		if root != "" && !t.isDir(root) {
			return false, nil
		}
		if mount != "" {
			out.Dirs = append(out.Dirs, mount)
		}
		for _, e := range t.entries {
			rel := e.path
			if root != "" {
				var below bool
				if rel, below = strings.CutPrefix(rel, root+"/"); !below {
					continue
				}
			}
			if mount != "" {
				rel = mount + "/" + rel
			}
			switch e.mode {
			case modeDir:
				out.Dirs = append(out.Dirs, rel)
			case modeLink:
				out.Files = append(out.Files, rel)
				if linked {
					to, err := r.link(ctx, e)
					if err != nil {
						return false, err
					}
					out.Links[rel] = to
				}
			case modeFile, modeProgram:
				out.Files = append(out.Files, rel)
			}
		}
		return false, nil
	})
	return out, err
}

// Update fetches all remotes, or those whose URL or name is one of some, and says whether something changed. A remote that cannot be
// reached does not keep others from being fetched.
func (g *FS) Update(ctx context.Context, remotes ...string) (changed bool, err error) {
	for _, r := range g.repos {
		if len(remotes) > 0 && !slices.Contains(remotes, r.o.URL) && (r.o.Name == "" || !slices.Contains(remotes, r.o.Name)) {
			continue
		}
		c, ferr := r.fetch(ctx)
		changed = changed || c
		if ferr != nil {
			err = errors.Join(err, fmt.Errorf("cannot fetch %s: %w", redacted(r.o.URL), ferr))
		}
	}
	if changed && g.opts.Changed != nil {
		g.opts.Changed()
	}
	return changed, err
}

// Run fetches every remote now and in its interval, until ctx ends.
func (g *FS) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, r := range g.repos {
		interval := r.o.Interval
		if interval <= 0 {
			interval = time.Minute
		}
		wg.Go(func() {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for {
				changed, err := r.fetch(ctx)
				if err != nil && ctx.Err() == nil {
					g.opts.Log.Error("cannot fetch", "remote", redacted(r.o.URL), "err", err)
				}
				if changed && g.opts.Changed != nil {
					g.opts.Changed()
				}
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	wg.Wait()
}

// Clear deletes all copies; they are fetched anew with the next update.
func (g *FS) Clear() error {
	var errs []error
	for _, r := range g.repos {
		errs = append(errs, r.clear())
	}
	errs = append(errs, os.RemoveAll(filepath.Join(g.opts.CacheDir, "blobs")))
	return errors.Join(errs...)
}

// Lock keeps remotes from being fetched until Unlock, those whose URL a glob means ("" is all). It gives a line for each, and errors.
func (g *FS) Lock(glob string) (done, failed []string) { return g.locks(glob, (*repo).lock) }

// Unlock removes locks, also those that a process left which has died.
func (g *FS) Unlock(glob string) (done, failed []string) { return g.locks(glob, (*repo).unlock) }

func (g *FS) locks(glob string, f func(*repo) (string, error)) (done, failed []string) {
	for _, r := range g.repos {
		if glob != "" && !fnmatch.Match(glob, r.o.URL) {
			continue
		}
		text, err := f(r)
		if err != nil {
			failed = append(failed, err.Error())
		} else if text != "" {
			done = append(done, text)
		}
	}
	return done, failed
}
