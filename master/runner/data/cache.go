// Package data contains the runners that show and change a master's data: the cache of minions and its banks,
// the mine, pillars, and the file server. Salt's sources: salt/runners/cache.py, mine.py, pillar.py,
// fileserver.py.
package data

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Cache returns the runner cache.
func Cache(h *host.Host) *modules.Module { return funcs{h}.cacheModule() }

// Fileserver returns the runner fileserver.
func Fileserver(h *host.Host) *modules.Module { return funcs{h}.fileserverModule() }

// Pillar returns the runner pillar.
func Pillar(h *host.Host) *modules.Module { return funcs{h}.pillarModule() }

// Mine returns the runner mine.
func Mine(h *host.Host) *modules.Module { return funcs{h}.mineModule() }

// cache.cloud absent: it reads the cache of salt-cloud, which brine does not have.
// cache.clear_git_lock differs: there are locks of the file server's repositories only, each of one kind.

// cacheModule declares the runner cache (salt/runners/cache.py).
func (f funcs) cacheModule() *modules.Module {
	tgt := []modules.Param{{Name: "tgt", Optional: true}, {Name: "tgt_type", Default: "glob"}}
	m := &modules.Module{Name: "cache",
		Doc: "What the master remembers of minions, and data that others keep with it.",
		Funcs: []modules.Def{
			{Name: "grains", Doc: `The grains of minions as the master last saw them.

    salt-run cache.grains '*'`, Params: []modules.Param{{Name: "tgt"}, {Name: "tgt_type", Default: "glob"}}, Kwargs: "kwargs",
				Run: f.cached(func(d cache.Ordered) any { return orEmpty(d.Grains) })},
			{Name: "pillar", Doc: `The pillar of minions as the master last made it.

    salt-run cache.pillar '*'`, Params: tgt, Kwargs: "kwargs", Run: f.cached(func(d cache.Ordered) any { return orEmpty(d.Pillar) })},
			{Name: "mine", Doc: `The mine data of minions.

    salt-run cache.mine '*'`, Params: tgt, Kwargs: "kwargs", Run: f.cachedMine},
			{Name: "store", Doc: `Keep data under a key of a bank.

bank
    A path of names, such as mycache/hosts.
cachedir
    Another directory than the master's.

    salt-run cache.store mycache mykey 'some data'`, Params: []modules.Param{{Name: "bank"}, {Name: "key"}, {Name: "data"},
				{Name: "cachedir", Optional: true}}, Run: f.bankStore},
			{Name: "list", Python: "list_", Doc: `The keys of a bank.

    salt-run cache.list mycache`, Params: []modules.Param{{Name: "bank"}, {Name: "cachedir", Optional: true}}, Run: f.bankList},
			{Name: "fetch", Doc: `The data under a key of a bank, empty when there is none.

    salt-run cache.fetch mycache mykey`, Params: []modules.Param{{Name: "bank"}, {Name: "key"}, {Name: "cachedir", Optional: true}}, Run: f.bankFetch},
			{Name: "flush", Doc: `Forget a key of a bank, or the whole bank.

    salt-run cache.flush mycache mykey`, Params: []modules.Param{{Name: "bank"}, {Name: "key", Optional: true}, {Name: "cachedir", Optional: true}},
				Run: f.bankFlush},
		}}
	for name, what := range map[string]string{"clear_pillar": "pillar", "clear_grains": "grains",
		"clear_mine": "mine", "clear_all": "data"} {
		m.Funcs = append(m.Funcs,
			modules.Def{Name: name, Doc: "Forget the cached " + what +
				" of minions.\n\n    salt-run cache." + name + " '*'",
				Params: tgt, Run: f.clear(name)})
	}
	m.Funcs = append(m.Funcs, modules.Def{Name: "clear_git_lock", Doc: `Remove locks that keep git repositories from being updated.

role
    Whose they are: gitfs. Repositories of pillars (git_pillar) and of packages (winrepo) have none here.
remote
    A glob of addresses; all without it.
type
    Kinds of locks, of which there is one here: update.

    salt-run cache.clear_git_lock gitfs
    salt-run cache.clear_git_lock gitfs remote='*states*'`,
		Params: []modules.Param{{Name: "role"}, {Name: "remote", Optional: true}}, Kwargs: "kwargs",
		Run: f.clearGitLock})
	m.Funcs = append(m.Funcs, modules.Def{Name: "clear_mine_func", Doc: `Forget one function of the mine of minions.

    salt-run cache.clear_mine_func '*' clear_mine_func_flag='network.interfaces'`,
		Params: append(slices.Clone(tgt),
			modules.Param{Name: "clear_mine_func_flag", Optional: true}),
		Run: f.clear("clear_mine_func")})
	return m
}

// orEmpty returns m, or an empty map if m is nil.
func orEmpty(m payload.OrderedMap) payload.OrderedMap {
	if m == nil {
		return payload.OrderedMap{}
	}
	return m
}

// cached returns a function that returns one part of the cached data of each targeted minion. Minions without
// cached data are left out, as in Salt.
func (f funcs) cached(part func(cache.Ordered) any) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		ids, err := f.Meant(c)
		if err != nil {
			return nil, err
		}
		out := make(map[string]any, len(ids))
		known := f.Cache.Reader(ids)
		for _, id := range ids {
			if d, ok := known.Ordered(id); ok {
				out[id] = part(d)
			}
		}
		return out, known.Err()
	}
}

// cachedMine is cache.mine, which returns the mine data of minions, an empty dictionary for one that has none.
func (f funcs) cachedMine(_ context.Context, c *modules.Call) (any, error) {
	ids, err := f.Meant(c)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(ids))
	mines := f.Cache.MineReader(ids)
	for _, id := range ids {
		out[id] = mines.Mine(id)
	}
	return out, mines.Err()
}

// clear returns a function that deletes cached data. Without a target it does nothing and returns false,
// because Salt requires one.
func (f funcs) clear(name string) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		if c.Value("tgt") == nil {
			return false, nil
		}
		ids, err := f.Meant(c)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := f.forget(name, id, host.Text(c, "clear_mine_func_flag")); err != nil {
				return nil, err
			}
		}
		return len(ids) > 0, nil
	}
}

// clearGitLock is cache.clear_git_lock, which removes the locks of repositories. The lock of a master that was
// killed during an update remains and prevents further updates until it is removed.
func (f funcs) clearGitLock(_ context.Context, c *modules.Call) (any, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Keywords)) {
		if name != "type" && !strings.HasPrefix(name, "__") {
			return nil, modules.Usagef("The following keyword arguments are not valid: %s=%s", name,
				pytext.Str(c.Keywords[name]))
		}
	}
	switch role := c.Str("role"); role {
	case "gitfs", "git_pillar", "winrepo":
		out := map[string]any{}
		for _, b := range f.backendsOf(role) {
			done, failed := b.Unlock(host.Text(c, "remote"))
			if len(done) > 0 {
				out["cleared"] = nested.Anys(done)
			}
			if len(failed) > 0 {
				out["errors"] = nested.Anys(failed)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
		return "No locks were removed", nil
	default:
		return nil, modules.Usagef("Invalid role '%s'", role)
	}
}

// backendsOf returns the file server's repositories, for the role gitfs.
func (f funcs) backendsOf(role string) []fileserver.Source {
	var out []fileserver.Source
	if f.Files == nil || role != "gitfs" {
		return nil
	}
	for _, b := range f.Files.Backends() {
		if s, ok := b.(fileserver.Source); ok && b.Name() == "git" {
			out = append(out, s)
		}
	}
	return out
}

// forget deletes one part of a minion's cached data. It creates no record for an unknown minion.
func (f funcs) forget(name, id, fun string) error {
	d, known := f.Cache.Ordered(id)
	switch name {
	case "clear_pillar":
		d.Pillar = nil
	case "clear_grains":
		d.Grains = nil
	case "clear_all":
		d = cache.Ordered{}
	}
	if known && !strings.HasPrefix(name, "clear_mine") {
		if err := f.Cache.Store(id, d); err != nil {
			return err
		}
	}
	switch name {
	case "clear_mine", "clear_all":
		return f.Cache.ChangeMine(id, func(m map[string]any) bool { clear(m); return true })
	case "clear_mine_func":
		return f.Cache.ChangeMine(id, func(m map[string]any) bool {
			_, had := m[fun]
			delete(m, fun)
			return had
		})
	}
	return nil
}
