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

// Minions is what masters know of their minions. Clients use it in place of the files below pki_dir and cachedir, which
// are those of a master alone.
type Minions interface {
	// Accepted lists the ids with an accepted key, sorted.
	Accepted() ([]string, error)
	// Known returns what is known of some minions: a function that returns the grains and the pillar of one, with those
	// keys at least that are needed, to be called in the order of ids, and one that returns the error that kept it from
	// knowing. What the first returns is valid until its next call.
	Known(ids []string, needs target.Needs) (cached func(id string) (grains, pillar map[string]any),
		failed func() error)
	// Close is called when the client is closed.
	Close() error
}

// known is Minions.Known of where this client looks.
func (c *Client) known(ids []string, needs target.Needs) (
	cached func(id string) (grains, pillar map[string]any), failed func() error) {
	if c.o.Minions != nil {
		return c.o.Minions.Known(ids, needs)
	}
	return c.Cached, func() error { return nil }
}

// maxCacheFile bounds what is read from the master's cache in one piece.
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

// jobDir is a job's place in the job cache.
func (c *Client) jobDir(jid string) string {
	return filepath.Join(c.o.CacheDir, "jobs",
		filepath.FromSlash(protocol.JobDir(jid, c.o.HashType)))
}

// cachedIDs lists the minions whose returns the job cache (salt/returners/local_cache.py) has, though their events may
// have been missed.
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

// cachedReturn reads a return from the job cache. The minion's directory is made before its files are, so there may be
// none yet.
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

// Cached is what a master alone remembers of a minion: its grains, and its pillar when the master keeps it. Both are
// nil when nothing is known. Stock Salt 3006 and 3007 keep minions/<id>/data.p, 3008 one bank for each.
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

// cachedMinions lists the minions that Cached may know something about.
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

// Accepted lists the ids with an accepted key, sorted.
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

// CleanMinionCache removes what the master remembers of minions that keep does not name (salt/key.py:
// check_minion_cache).
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

// DropFile asks the master for a new shared key (salt/crypt.py: dropfile). Masters of 3007 and later want their own id
// in the file; others do not read it.
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
