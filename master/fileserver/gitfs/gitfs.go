// Package gitfs is the file server's backend for git repositories, through the git program. Branches, tags and
// commits are environments.
//
//	Run ─▶ git fetch ─▶ bare copy in CacheDir
//	                      │ environment ─▶ ref ─▶ commit ─▶ tree (kept in memory)
//	                      └ file ─▶ blob, copied to disk under its hash when it is requested
//
// Nothing is checked out, so an update never shows half of a commit. Salt's sources: salt/utils/gitfs.py,
// salt/fileserver/gitfs.py.
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

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/master/fileserver"
)

// Env changes an environment of a remote; a nil field leaves it as it is for the remote.
type Env struct {
	Ref, Root, Mountpoint *string
}

// A Remote is one repository. URL is required, and Base if one of the environments is to be called base.
type Remote struct {
	URL string
	// Name names the copy below the cache directory; empty derives a name from the URL.
	Name string
	// Base is the branch, tag or commit that is the environment base.
	Base string
	// Root is a directory of the repository that is served in place of the whole. Mountpoint is where it appears.
	Root, Mountpoint string
	// Envs changes single environments. All is one branch, tag or commit for all of them.
	Envs map[string]Env
	All  string
	// Allow and Deny are globs or regular expressions of environments (saltenv_whitelist, saltenv_blacklist).
	Allow, Deny []string
	// RefTypes are the kinds of refs that may be environments: branch, tag, sha. nil means all.
	RefTypes []string
	// Fallback replaces environments that the repository does not have.
	Fallback string
	// NoMapping makes environments only of base and of those in Envs (disable_saltenv_mapping).
	NoMapping bool
	// Refspecs are what is fetched; nil means branches and tags.
	Refspecs []string
	// Interval is how often Run fetches; 0 means a minute.
	Interval time.Duration

	// User and Password are for HTTP. Insecure allows them without TLS, and NoVerify skips the check of the
	// server's certificate.
	User, Password     string
	Insecure, NoVerify bool
	// Proxy is the URL of the proxy for HTTP and HTTPS; "" leaves it to git's configuration and the environment.
	Proxy string
	// PrivateKey is a key file for SSH.
	PrivateKey string
}

// Options of an FS.
type Options struct {
	Remotes []Remote
	// Envs changes environments of all remotes that do not change them themselves (gitfs_saltenv).
	Envs map[string]Env
	// CacheDir is the directory of the copies.
	CacheDir string
	// Program is the git program; empty means "git". Timeout limits one fetch; 0 means 10 minutes.
	Program string
	Timeout time.Duration
	// Changed is called after a fetch that changed something.
	Changed func()
	Log     *slog.Logger
}

// An FS serves repositories. Its methods may be called from many goroutines.
type FS struct {
	opts  Options
	repos []*repo
}

var _ fileserver.Source = (*FS)(nil)

// New opens the copies of the repositories, or prepares empty ones. Update or Run fills them.
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
		out = append(out, r.listEnvs()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// HasEnv implements fileserver.Backend.
func (g *FS) HasEnv(env string) bool {
	return slices.ContainsFunc(g.repos, func(r *repo) bool { return r.servesEnv(env) }) || slices.Contains(g.Envs(), env)
}

// eachTree calls f with the tree of an environment in each remote until f returns done.
func (g *FS) eachTree(ctx context.Context, env string, f func(r *repo, t *tree) (done bool, err error)) error {
	known := slices.Contains(g.Envs(), env)
	for _, r := range g.repos {
		if !known && !r.servesEnv(env) {
			continue
		}
		t, err := r.treeOf(ctx, env)
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

// findFile looks a file up; it returns ErrNotFound if the file is missing.
func (g *FS) findFile(env, name string) (*repo, entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var at *repo
	var found entry
	err := g.eachTree(ctx, env, func(r *repo, t *tree) (bool, error) {
		inside, ok := r.repoPath(env, name)
		if !ok {
			return false, nil
		}
		e, ok, err := t.findEntry(ctx, r, inside)
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
	_, e, err := g.findFile(env, name)
	if err != nil {
		return fileserver.Found{}, err
	}
	// Where stock's copy would be; ours is stored under its hash.
	shown := filepath.Join(g.opts.CacheDir, "refs", filepath.FromSlash(env), filepath.FromSlash(name))
	return fileserver.Found{Path: shown, Info: fileInfo{e, filepath.Base(name)}}, nil
}

// Open implements fileserver.Backend.
func (g *FS) Open(env, name string) (fileserver.Handle, error) {
	r, e, err := g.findFile(env, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return r.openBlob(ctx, e)
}

// List implements fileserver.Backend.
func (g *FS) List(ctx context.Context, env string) (fileserver.Listing, error) {
	out := fileserver.Listing{Links: map[string]string{}}
	linked := isHex(env) || slices.Contains(g.Envs(), env) // as in stock, which lists no links where an environment is a fallback
	err := g.eachTree(ctx, env, func(r *repo, t *tree) (bool, error) {
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
					to, err := r.readLink(ctx, e)
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

// Update fetches all remotes, or those whose URL or name is given. It reports whether anything changed. If it cannot
// reach a remote, it still fetches the others.
func (g *FS) Update(ctx context.Context, remotes ...string) (changed bool, err error) {
	for _, r := range g.repos {
		if len(remotes) > 0 && !slices.Contains(remotes, r.o.URL) && (r.o.Name == "" || !slices.Contains(remotes, r.o.Name)) {
			continue
		}
		c, ferr := r.fetchRefs(ctx)
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

// Run fetches every remote now and at its interval, until ctx ends.
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
				changed, err := r.fetchRefs(ctx)
				if err != nil && ctx.Err() == nil {
					g.opts.Log.Error("Cannot fetch", "remote", redacted(r.o.URL), "err", err)
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

// Clear deletes all copies; the next update fetches them again.
func (g *FS) Clear() error {
	var errs []error
	for _, r := range g.repos {
		errs = append(errs, r.clear())
	}
	errs = append(errs, os.RemoveAll(filepath.Join(g.opts.CacheDir, "blobs")))
	return errors.Join(errs...)
}

// Lock keeps remotes from being fetched until Unlock: those whose URL matches a glob ("" means all). It returns a
// line for each, and errors.
func (g *FS) Lock(glob string) (done, failed []string) { return g.eachLock(glob, (*repo).lock) }

// Unlock removes locks, also those of a process that died.
func (g *FS) Unlock(glob string) (done, failed []string) { return g.eachLock(glob, (*repo).unlock) }

func (g *FS) eachLock(glob string, f func(*repo) (string, error)) (done, failed []string) {
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
