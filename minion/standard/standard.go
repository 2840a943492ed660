// Package standard assembles a whole minion: every transport, the grains, the file client, programs, renderers,
// states and beacons. It does not choose execution modules; a program imports those that it wants. With the
// build tag custom it contains only the parts whose tags are set.
package standard

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/grains"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
	"github.com/brine-salt/brine/states"
)

// Options returns the options of a minion. The configuration opts must contain "id". It returns an error if the
// option ssl cannot be used. The caller may change any field before passing the result to minion.New.
func Options(opts map[string]any, log *slog.Logger) (minion.Options, error) {
	return SealedOptions(opts, log, nil)
}

// SealedOptions returns Options for a sealed minion. seal may be nil.
func SealedOptions(opts map[string]any, log *slog.Logger,
	seal *policy.Seal) (minion.Options, error) {
	opts = seal.Options(opts)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	wrap, err := TLS(opts)
	if err != nil {
		return minion.Options{}, err
	}
	return minion.Options{
		Opts: opts, Seal: seal, Log: log, Dialers: Dialers(), Wrap: wrap,
		Grains: gatherGrains(log, seal), Files: fileClient(log),
		Runner: &runcmd.Runner{Permit: seal.Permit()}, Version: version.Brine(),
		Templates: templateRenderer(), Others: otherModules, Beacons: beacons(),
	}, nil
}

// Dialers returns the transports, by the value of the option transport.
func Dialers() map[string]transport.Dialer {
	all := map[string]transport.Dialer{"zeromq": zeromq.New(), "tcp": tcp.New()}
	addWS(all)
	return all
}

// gatherGrains returns a function that gathers the grains. It uses the cache of the option grains_cache only
// for the first call; later calls are refreshes.
func gatherGrains(log *slog.Logger,
	seal *policy.Seal) func(context.Context, map[string]any) map[string]any {
	var again atomic.Bool
	return func(ctx context.Context, opts map[string]any) map[string]any {
		refresh := again.Swap(true) || pytext.Truth(opts["refresh_grains_cache"])
		return grains.GatherOrdered(ctx,
			grains.Options{Opts: opts, Log: log, SaltVersion: version.Salt,
				Version: version.Brine(), Refresh: refresh,
				Permit: seal.Permit(), Custom: ownGrains(opts, log)}).Map()
	}
}

// ownGrainsTimeout is the deadline for the grains of the host's owner. Salt has no limit.
const ownGrainsTimeout = 2 * time.Minute

// ownGrains returns the sources of grains that the host's owner has installed.
func ownGrains(opts map[string]any, log *slog.Logger) []grains.Source {
	id, _ := opts["id"].(string)
	var list []grains.Source
	for _, s := range modules.SourcesOf(modules.KindGrains) {
		e := &modules.Env{ID: id, Log: log, Runner: &runcmd.Runner{},
			Opts: func() map[string]any { return opts }}
		for _, m := range s.Modules(nil, e) {
			d := m.Def("gather")
			list = append(list, grains.Source{Name: m.Name, Timeout: ownGrainsTimeout,
				Gather: func(ctx context.Context, found map[string]any) (map[string]any, error) {
					e.Grains = func() map[string]any { return found }
					job := &modules.Context{}
					defer job.Close()
					v, err := d.Run(ctx,
						(&modules.Registry{}).NewCall(e, "grains."+m.Name, "", job))
					if err != nil {
						return nil, err
					}
					wire, _ := ordered.ToWire(v).(payload.OrderedMap)
					return wire.Map(), nil
				}})
		}
	}
	return list
}

// fileClient returns a constructor of file clients: for the master's files, or for file_roots without a master.
func fileClient(log *slog.Logger) func(map[string]any, minion.FileRequest) modules.Files {
	return func(opts map[string]any, request minion.FileRequest) modules.Files {
		cacheDir, _ := opts["cachedir"].(string)
		hashType, _ := opts["hash_type"].(string)
		return fileclient.New(fileclient.Options{Request: request, Roots: fileRoots(opts),
			CacheDir: cacheDir, HashType: hashType,
			Fetch: webFetcher(opts), Log: log})
	}
}

// fileRoots returns the option file_roots: directories by environment.
func fileRoots(opts map[string]any) map[string][]string {
	all, _ := opts["file_roots"].(map[string]any)
	roots := make(map[string][]string, len(all))
	for env, v := range all {
		list, _ := v.([]any)
		for _, dir := range list {
			roots[env] = append(roots[env], pytext.Str(dir))
		}
	}
	return roots
}

// otherModules returns the modules of other kinds than execution modules, for sys.list_state_functions and
// similar functions.
func otherModules(kind string) []*modules.Module {
	switch kind {
	case "states":
		return states.Default().Declared()
	case "returners":
		return returners.All()
	}
	return nil
}
