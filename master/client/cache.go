package client

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Minions provides minion data from a cluster. Without it clients read the files below pki_dir and cachedir,
// which belong to a single master.
type Minions interface {
	// Accepted returns the ids with an accepted key, sorted.
	Accepted() ([]string, error)
	// Known returns two functions. The first returns the grains and pillar of a minion, with at least the keys
	// in needs; call it in the order of ids. Its result is valid until the next call. The second returns the
	// error that made results incomplete.
	Known(ids []string, needs target.Needs) (cached func(id string) (grains, pillar map[string]any),
		failed func() error)
	// Close is called when the client is closed.
	Close() error
}

// known is Minions.Known for this client's source of data.
func (c *Client) known(ids []string, needs target.Needs) (
	cached func(id string) (grains, pillar map[string]any), failed func() error) {
	if c.o.Minions != nil {
		return c.o.Minions.Known(ids, needs)
	}
	return c.Cached, func() error { return nil }
}

// maxCacheFile is the maximum size in bytes of a file read from the master's cache.
const maxCacheFile = 128 << 20

// readPacked reads a msgpack file of the master's cache.
func readPacked(path string) (any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCacheFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxCacheFile {
		return nil, fmt.Errorf("cannot read %q: it has more than %d bytes", path, maxCacheFile)
	}
	return payload.UnmarshalDisk(b, payload.Limits{Bytes: maxCacheFile}, "return")
}

// jobDir returns a job's directory in the job cache.
func (c *Client) jobDir(jid string) string {
	return filepath.Join(c.o.CacheDir, "jobs",
		filepath.FromSlash(protocol.JobDir(jid, c.o.HashType)))
}

// cachedIDs returns the minions with a return in the job cache (salt/returners/local_cache.py), whose events
// may have been missed.
func (c *Client) cachedIDs(jid string) []string {
	if c.o.CacheDir == "" {
		return nil
	}
	entries, err := os.ReadDir(c.jobDir(jid))
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// cachedReturn reads a return from the job cache. The minion's directory is created before its files, so they
// may be missing.
func (c *Client) cachedReturn(jid, id string) (map[string]any, bool) {
	dir := filepath.Join(c.jobDir(jid), id)
	v, err := readPacked(filepath.Join(dir, "return.p"))
	if err != nil {
		return nil, false
	}
	data := map[string]any{"id": id, "jid": jid}
	m, _ := payload.Map(v)
	if _, ok := m["return"]; !ok {
		return nil, false
	}
	for k, x := range m {
		data[k] = x
	}
	if out, err := readPacked(filepath.Join(dir, "out.p")); err == nil {
		data["out"] = out
	}
	return data, true
}

// Cached returns a single master's cached data of a minion: its grains, and its pillar if the master caches it.
// Both are nil if nothing is cached. Stock Salt 3006 and 3007 use minions/<id>/data.p, 3008 one bank for each.
func (c *Client) Cached(id string) (grains, pillar map[string]any) {
	if c.o.CacheDir == "" || protocol.ValidID(id) != nil {
		return nil, nil
	}
	if v, err := readPacked(filepath.Join(c.o.CacheDir, "minions", id, "data.p")); err == nil {
		if m, ok := payload.Map(v); ok {
			grains, _ = payload.Map(m["grains"])
			pillar, _ = payload.Map(m["pillar"])
			return grains, pillar
		}
	}
	if v, err := readPacked(filepath.Join(c.o.CacheDir, "grains", id+".p")); err == nil {
		grains, _ = payload.Map(v)
	}
	if v, err := readPacked(filepath.Join(c.o.CacheDir, "pillar", id+".p")); err == nil {
		pillar, _ = payload.Map(v)
	}
	return grains, pillar
}

// cachedMinions returns the minions for which Cached may have data.
func (c *Client) cachedMinions() []string {
	var ids []string
	dirs, _ := os.ReadDir(filepath.Join(c.o.CacheDir, "minions"))
	for _, e := range dirs {
		ids = append(ids, e.Name())
	}
	files, _ := os.ReadDir(filepath.Join(c.o.CacheDir, "grains"))
	for _, e := range files {
		if id, ok := strings.CutSuffix(e.Name(), ".p"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Accepted returns the ids with an accepted key, sorted.
func (c *Client) Accepted() ([]string, error) {
	if c.o.Minions != nil {
		return c.o.Minions.Accepted()
	}
	entries, err := os.ReadDir(filepath.Join(c.o.PKIDir, "minions"))
	if err != nil {
		return nil, fmt.Errorf("cannot list accepted keys: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") &&
			protocol.ValidID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// CleanMinionCache removes the cached data of minions that are not in keep (salt/key.py: check_minion_cache).
func CleanMinionCache(cacheDir string, keep map[string]bool) error {
	dirs, err := os.ReadDir(filepath.Join(cacheDir, "minions"))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot clean minion cache: %w", err)
	}
	for _, e := range dirs {
		if !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(cacheDir, "minions", e.Name())); err != nil {
				return fmt.Errorf("cannot clean minion cache: %w", err)
			}
		}
	}
	for _, bank := range []string{"grains", "pillar", "mine"} {
		files, _ := os.ReadDir(filepath.Join(cacheDir, bank))
		for _, e := range files {
			if id, ok := strings.CutSuffix(e.Name(), ".p"); ok && !keep[id] {
				if err := os.Remove(filepath.Join(cacheDir, bank, e.Name())); err != nil {
					return fmt.Errorf("cannot clean minion cache: %w", err)
				}
			}
		}
	}
	return nil
}

// DropFile requests a new shared key from the master (salt/crypt.py: dropfile). Masters of 3007 and later
// require their own id in the file; others ignore it.
func DropFile(cacheDir, masterID string) error {
	path, temp := filepath.Join(cacheDir, ".dfn"), filepath.Join(cacheDir, ".dfn-next")
	fail := func(err error) error { return fmt.Errorf("cannot ask for a new key: %w", err) }
	if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
		return fail(err)
	}
	if err := os.WriteFile(temp, []byte(masterID), 0o400); err != nil {
		return fail(err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fail(err)
	}
	return nil
}
