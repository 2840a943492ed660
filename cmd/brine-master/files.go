package main

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/fileserver/gitfs"
)

// fileBackends returns the file server backends in the order of the option fileserver_backend, and the backend for
// git repositories or nil. changed is called after a repository has new files; it may be nil.
func fileBackends(c *conf.Config, log *slog.Logger, changed func()) ([]fileserver.Backend,
	*gitfs.FS, error) {
	var list []fileserver.Backend
	var repos *gitfs.FS
	for _, name := range c.Strings("fileserver_backend") {
		switch name {
		case "roots", "file":
			list = append(list, fileserver.NewRoots(fileserver.RootsOptions{Roots: roots(c,
				"file_roots"),
				FollowSymlinks: c.Bool("fileserver_followsymlinks"),
				IgnoreSymlinks: c.Bool("fileserver_ignoresymlinks")}))
		case "git", "gitfs":
			if repos != nil {
				continue
			}
			o, err := gitfs.FromOpts(c.Opts)
			if err != nil {
				return nil, nil, err
			}
			o.CacheDir = filepath.Join(c.String("cachedir"), "gitfs")
			o.Log, o.Changed = log, changed
			if repos, err = gitfs.New(o); err != nil {
				return nil, nil, err
			}
			list = append(list, repos)
		}
	}
	return list, repos, nil
}

// listCache returns the option fileserver_list_cache_time, or a negative duration if lists must not be cached.
func listCache(c *conf.Config) time.Duration {
	if d := c.Duration("fileserver_list_cache_time", time.Second); d > 0 {
		return d
	}
	return -1
}
