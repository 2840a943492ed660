package main

import (
	"log/slog"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
)

// pillarFiles returns the pillars of pillar_roots and ext_pillar. As with stock's master, templates may call all
// execution modules, which run on this host as this program's user.
func pillarFiles(c *conf.Config, log *slog.Logger) *pillar.Roots {
	return pillar.NewRoots(pillar.RootsOptions{Opts: shownOptions(c), Version: version.Salt,
		Log: log, Env: modules.Env{
			Log: log, Runner: &runcmd.Runner{}, Files: localFiles(c, log),
		}})
}

// localFiles returns a file client for the master's own file_roots.
func localFiles(c *conf.Config, log *slog.Logger) modules.Files {
	return fileclient.New(fileclient.Options{Roots: roots(c, "file_roots"),
		CacheDir: c.String("cachedir"), HashType: c.String("hash_type"), Log: log})
}
