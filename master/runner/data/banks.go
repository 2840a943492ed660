package data

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/payload"
)

// bank returns the directory of a bank (salt/cache/localfs.py). It must not lead out of the cache.
func (f funcs) bank(c *modules.Call) (string, error) {
	dir := host.Text(c, "cachedir")
	if dir == "" {
		dir = f.CacheDir
	}
	if dir == "" {
		return "", host.Needs("cache directory")
	}
	bank := filepath.FromSlash(c.Str("bank"))
	if bank == "" || !filepath.IsLocal(bank) {
		return "", modules.Errorf("cannot use the bank %q: it is not below the cache directory",
			c.Str("bank"))
	}
	return filepath.Join(dir, bank), nil
}

// bankKey returns the file of a key.
func (f funcs) bankKey(c *modules.Call) (string, error) {
	dir, err := f.bank(c)
	if err != nil {
		return "", err
	}
	key := c.Str("key")
	if key == "" || key != filepath.Base(key) || !filepath.IsLocal(key) ||
		strings.ContainsRune(key, 0) {
		return "", modules.Errorf("cannot use the key %q: it is not a valid name", key)
	}
	return filepath.Join(dir, key+".p"), nil
}

// bankStore is cache.store, which writes one value of a bank in the format of salt/cache/localfs.py, msgpack. The
// directories are for the master's user alone, since pillar data may be in them.
func (f funcs) bankStore(_ context.Context, c *modules.Call) (any, error) {
	if b, ok := f.minionBank(c); ok {
		return nil, modules.Errorf("cannot store in the bank %q: it is in the masters' database, which only masters change",
			b.name)
	}
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	b, err := payload.Marshal(c.Value("data"))
	if err != nil {
		return nil, modules.Errorf("cannot store %s: %s", c.Str("key"), err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, modules.OSError(err)
	}
	if err := atomicfile.WriteFile(file, b, 0o600); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, nil
}

// bankList is cache.list, which returns the keys of a bank, an empty list for a bank that does not exist.
func (f funcs) bankList(_ context.Context, c *modules.Call) (any, error) {
	if b, ok := f.minionBank(c); ok {
		return b.list()
	}
	dir, err := f.bank(c)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []any{}, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	out := []any{}
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".p"))
	}
	return out, nil
}

// maxBank is the maximum size in bytes of one value in a bank.
const maxBank = 64 << 20

// bankFetch is cache.fetch, which returns one value of a bank, and as in Salt an empty dictionary if it is missing.
func (f funcs) bankFetch(_ context.Context, c *modules.Call) (any, error) {
	if b, ok := f.minionBank(c); ok {
		return b.fetch(c.Str("key"))
	}
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err == nil && info.Size() > maxBank {
		return nil, modules.Errorf("cannot fetch %s: it has more than %d bytes", c.Str("key"),
			maxBank)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, modules.OSError(err)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{Bytes: maxBank})
	if err != nil {
		return nil, modules.Errorf("cannot fetch %s: %s", c.Str("key"), err)
	}
	return v, nil
}

// bankFlush is cache.flush, which deletes one key, or without a key the whole bank. It reports whether there was
// anything to delete.
func (f funcs) bankFlush(_ context.Context, c *modules.Call) (any, error) {
	if b, ok := f.minionBank(c); ok {
		return b.flush(host.Text(c, "key"))
	}
	if c.Value("key") == nil {
		dir, err := f.bank(c)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			return false, nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, modules.OSError(err)
		}
		return true, nil
	}
	file, err := f.bankKey(c)
	if err != nil {
		return nil, err
	}
	err = os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}

// minionBank is a bank of minion data in a cluster's database, under the names of the directories in which a
// single master has it: minions and minions/<id> of Salt 3006 and 3007; grains, pillar and mine of 3008.
type minionBank struct {
	cache *cache.Cache
	name  string
	id    string // of minions/<id>
}

// minionBank returns the bank of a call if it is in the cluster's database. Other banks are directories on this
// host.
func (f funcs) minionBank(c *modules.Call) (b minionBank, ok bool) {
	if f.Cache == nil || !f.Cache.Shared() || host.Text(c, "cachedir") != "" {
		return b, false
	}
	b.cache, b.name = f.Cache, strings.Trim(path.Clean(c.Str("bank")), "/")
	if id, ok := strings.CutPrefix(b.name, "minions/"); ok {
		b.id = id
		return b, true
	}
	return b, slices.Contains([]string{"minions", "grains", "pillar", "mine"}, b.name)
}

// entry returns the cached data of one minion under a name, or nil.
func (b minionBank) entry(name, id string) any {
	if name == "mine" {
		if m := b.cache.Mine(id); len(m) > 0 {
			return m
		}
		return nil
	}
	d, ok := b.cache.Ordered(id)
	switch {
	case !ok:
		return nil
	case name == "grains":
		return orEmpty(d.Grains)
	case name == "pillar":
		return orEmpty(d.Pillar)
	}
	return map[string]any{"grains": orEmpty(d.Grains), "pillar": orEmpty(d.Pillar)}
}

// list returns the ids of minions or, for minions/<id>, the names of the minion's data.
func (b minionBank) list() (any, error) {
	if b.id != "" {
		out := []any{}
		for _, name := range []string{"data", "mine"} {
			if b.entry(name, b.id) != nil {
				out = append(out, name)
			}
		}
		return out, nil
	}
	ids, err := b.cache.IDs()
	if err != nil {
		return nil, err
	}
	return nested.Anys(ids), nil
}

// fetch returns one value, or an empty dictionary if it is missing, as in Salt.
func (b minionBank) fetch(key string) (any, error) {
	name, id := b.name, key
	if b.id != "" {
		name, id = key, b.id
	}
	if name != "minions" {
		if v := b.entry(name, id); v != nil {
			return v, nil
		}
	}
	return map[string]any{}, nil
}

// flush deletes the data of a minion, of all, or a part of a minion's data. It reports whether there was any.
func (b minionBank) flush(key string) (any, error) {
	ids := []string{key}
	part := b.name
	switch {
	case b.id != "":
		ids, part = []string{b.id}, key
	case key == "":
		var err error
		if ids, err = b.cache.IDs(); err != nil {
			return nil, err
		}
	}
	had := false
	for _, id := range ids {
		ok, err := b.forget(part, id)
		if err != nil {
			return nil, err
		}
		had = had || ok
	}
	return had, nil
}

// forget deletes a part of a minion's data: grains, pillar, data (both) or mine; "minions" and "" mean all.
func (b minionBank) forget(part, id string) (had bool, err error) {
	d, known := b.cache.Ordered(id)
	switch part {
	case "", "minions":
		had = known || len(b.cache.Mine(id)) > 0
		return had, b.cache.Delete(id)
	case "mine":
		err = b.cache.ChangeMine(id, func(m map[string]any) bool {
			had = len(m) > 0
			clear(m)
			return had
		})
		return had, err
	case "data":
		d = cache.Ordered{}
	case "grains":
		d.Grains = nil
	case "pillar":
		d.Pillar = nil
	default:
		return false, nil
	}
	if !known {
		return false, nil
	}
	return true, b.cache.Store(id, d)
}
