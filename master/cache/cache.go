// Package cache caches what a master knows about its minions: the grains and the pillar of the last pillar
// request, which targets match, and the mine. On disk it has the layout of Salt 3006 and 3007
// (minions/<id>/data.p and mine.p below cachedir), which salt-run reads, plus copies in the layout of 3008
// (banks.go), whose tools look nowhere else. Without a directory it is in memory, packed. Salt's source:
// salt/cache/localfs.py, salt/daemons/masterapi.py.
package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// MaxEntry is the maximum size in bytes of a packed entry, so that one minion cannot fill the disk with grains
// or a mine.
const MaxEntry = 16 << 20

const (
	dataFile = "data.p"
	mineFile = "mine.p"
)

// Data is the data of a minion's last pillar request. A part that is missing is nil.
type Data struct {
	Grains, Pillar map[string]any
}

// Ordered returns the data with its keys sorted.
func (d Data) Ordered() (o Ordered) {
	o.Grains, _ = payload.Ordered(d.Grains)
	o.Pillar, _ = payload.Ordered(d.Pillar)
	return o
}

// Ordered is [Data] in the key order of the minion's grains and of the pillar files. Runners show it in this order, and
// pillar files see it, as with a stock master.
type Ordered struct {
	Grains, Pillar payload.OrderedMap
}

// Plain returns the data without its order. Top-level keys that are not strings are left out.
func (o Ordered) Plain() Data { return Data{plain(o.Grains), plain(o.Pillar)} }

func plain(m payload.OrderedMap) map[string]any {
	if m == nil {
		return nil
	}
	return payload.PlainMap(m.Map())
}

// Cache holds the data of many minions. Its methods are safe for concurrent use. Invalid ids have no data.
type Cache struct {
	dir  *confined.Dir // nil if in memory or in a database
	db   store.Shared  // nil for a single master
	seed maphash.Seed
	mine [64]sync.Mutex // by hash of id; serialises changes of a mine

	index index // of the keys that targets use

	mu     sync.Mutex // guards memory
	memory map[string][]byte
}

// Open opens the cache below a cachedir. If dir is empty, the cache is in memory.
func Open(dir string) (*Cache, error) {
	c := &Cache{seed: maphash.MakeSeed()}
	if dir == "" {
		c.memory = make(map[string][]byte)
		return c, nil
	}
	d, err := confined.Open(dir, 0o750)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{"minions"}, banks[:]...) {
		if err := d.Mkdir(name, 0o700); err != nil {
			d.Close()
			return nil, fmt.Errorf("cannot create minion cache: %w", err)
		}
	}
	c.dir = d
	return c, nil
}

// OpenShared opens the cache of a cluster in its database.
func OpenShared(db store.Shared) *Cache { return &Cache{db: db, seed: maphash.MakeSeed()} }

// sharedTime limits a read of the database.
const sharedTime = 2 * time.Minute

// maxSwaps is how often a change of a mine is retried after a peer master's change.
const maxSwaps = 100

// Close closes the directory.
func (c *Cache) Close() error {
	if c.dir == nil {
		return nil
	}
	return c.dir.Close()
}

func (c *Cache) write(id, file string, v any) error {
	// guard: CVE-2025-22238 TestCVE_2025_22238_CacheTraversal
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	b, err := pack(v)
	if err != nil {
		return err
	}
	if c.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		defer cancel()
		if old, _, err := c.db.Datum(ctx, file, id); err != nil || bytes.Equal(old, b) {
			return err // most data is unchanged
		}
		_, err := c.db.SetDatum(ctx, file, id, b, -1)
		return err
	}
	if c.dir == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.memory[id+"/"+file] = b
		return nil
	}
	return c.put("minions/"+id, file, b)
}

// put writes a file unless its content is unchanged, which it mostly is. It creates a missing directory.
func (c *Cache) put(dir, file string, b []byte) error {
	old, _, err := c.dir.Read(dir+"/"+file, int64(len(b)))
	if err == nil && bytes.Equal(old, b) {
		return nil
	}
	// guard: CVE-2015-8034 master:TestT8ModesOfFiles instead: err = c.dir.Write(dir+"/"+file, b, 0o644, false)
	err = c.dir.Write(dir+"/"+file, b, 0o600, false)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.dir.Mkdir(dir, 0o700); err == nil {
			err = c.dir.Write(dir+"/"+file, b, 0o600, false)
		}
	}
	return err
}

func pack(v any) ([]byte, error) {
	b, err := payload.MarshalBin(v)
	if err == nil && len(b) > MaxEntry {
		err = fmt.Errorf("%d bytes are more than %d", len(b), MaxEntry)
	}
	return b, err
}

// read returns an entry, or nil if it is missing.
func (c *Cache) read(id, file string) (map[string]any, error) {
	if protocol.ValidID(id) != nil {
		return nil, nil
	}
	if c.db != nil {
		m, _, err := c.shared(id, file)
		return m, err
	}
	b, err := c.packed(id, file)
	if err != nil || b == nil {
		return nil, err
	}
	return unpack(b)
}

// packed returns a single master's entry, or nil if it is missing.
func (c *Cache) packed(id, file string) ([]byte, error) {
	if c.dir == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.memory[id+"/"+file], nil
	}
	b, _, err := c.dir.Read("minions/"+id+"/"+file, MaxEntry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func unpack(b []byte) (map[string]any, error) {
	v, err := payload.UnmarshalDiskOrdered(b, payload.Limits{Bytes: MaxEntry})
	if err != nil {
		return nil, err
	}
	m, ok := payload.Map(v)
	if !ok {
		return nil, fmt.Errorf("it is %T, not a map", v)
	}
	return m, nil
}

// shared returns an entry of the database with its epoch, or nil and 0 if it is missing.
func (c *Cache) shared(id, file string) (map[string]any, int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	b, epoch, err := c.db.Datum(ctx, file, id)
	if err != nil || b == nil {
		return nil, 0, err
	}
	m, err := unpack(b)
	return m, epoch, err
}

// Store stores a minion's grains and pillar.
func (c *Cache) Store(id string, d Ordered) error {
	entry := map[string]any{"grains": nil, "pillar": nil}
	if d.Grains != nil {
		entry["grains"] = d.Grains
	}
	if d.Pillar != nil {
		entry["pillar"] = d.Pillar
	}
	err := c.write(id, dataFile, entry)
	if err == nil {
		err = c.copyTo("grains", id, d.Grains)
	}
	if err == nil {
		err = c.copyTo("pillar", id, d.Pillar)
	}
	if err != nil {
		return fmt.Errorf("cannot cache data of minion %q: %w", id, err)
	}
	return nil
}

// Data returns a minion's data; ok is false if it is missing or unreadable.
func (c *Cache) Data(id string) (d Data, ok bool) {
	o, ok := c.Ordered(id)
	return o.Plain(), ok
}

// Ordered is Data in its order.
func (c *Cache) Ordered(id string) (o Ordered, ok bool) {
	m, err := c.read(id, dataFile)
	if err != nil || m == nil {
		return Ordered{}, false
	}
	return orderedOf(m), true
}

// orderedOf returns the data in an entry.
func orderedOf(m map[string]any) (o Ordered) {
	o.Grains, _ = payload.Ordered(m["grains"])
	o.Pillar, _ = payload.Ordered(m["pillar"])
	return o
}

// Mine returns a minion's mine by function, with maps as payload.OrderedMap. The map is never nil and belongs
// to the caller.
func (c *Cache) Mine(id string) map[string]any {
	m, err := c.read(id, mineFile)
	if err != nil || m == nil {
		return map[string]any{}
	}
	return m
}

// ChangeMine changes a minion's mine by calling f. If f returns false, nothing is stored.
func (c *Cache) ChangeMine(id string, f func(mine map[string]any) bool) error {
	lock := &c.mine[maphash.String(c.seed, id)%uint64(len(c.mine))]
	lock.Lock()
	defer lock.Unlock()
	if c.db != nil {
		if err := c.swapMine(id, f); err != nil {
			return fmt.Errorf("cannot store mine of minion %q: %w", id, err)
		}
		return nil
	}
	m := c.Mine(id)
	if !f(m) {
		return nil
	}
	err := c.write(id, mineFile, m)
	if err == nil {
		err = c.copyTo("mine", id, m)
	}
	if err != nil {
		return fmt.Errorf("cannot store mine of minion %q: %w", id, err)
	}
	return nil
}

// swapMine is ChangeMine in a cluster, where peers may change the mine at the same time.
func (c *Cache) swapMine(id string, f func(mine map[string]any) bool) error {
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	for range maxSwaps {
		m, epoch, err := c.shared(id, mineFile)
		if err != nil {
			return err
		}
		if m == nil {
			m = make(map[string]any)
		}
		if !f(m) {
			return nil
		}
		b, err := pack(m)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		ok, err := c.db.SetDatum(ctx, mineFile, id, b, epoch)
		cancel()
		if err != nil || ok {
			return err
		}
	}
	return errors.New("another process changed it at every attempt")
}

// Delete deletes a minion's data.
func (c *Cache) Delete(id string) error {
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	if c.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		defer cancel()
		for _, f := range []string{dataFile, mineFile} {
			if _, err := c.db.SetDatum(ctx, f, id, nil, -1); err != nil {
				return fmt.Errorf("cannot remove minion %q: %w", id, err)
			}
		}
		return nil
	}
	if c.dir == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.memory, id+"/"+dataFile)
		delete(c.memory, id+"/"+mineFile)
		return nil
	}
	names := []string{"minions/" + id + "/" + dataFile, "minions/" + id + "/" + mineFile}
	for _, bank := range banks {
		names = append(names, bank+"/"+id+".p")
	}
	for _, name := range names {
		if err := c.dir.Remove(name); err != nil {
			return fmt.Errorf("cannot remove minion %q: %w", id, err)
		}
	}
	// The directory remains if it contains files that the minion pushed (cp.push), because those are the
	// operator's.
	c.dir.Remove("minions/" + id)
	return nil
}

// Shared reports whether the cache is in a cluster's database.
func (c *Cache) Shared() bool { return c.db != nil }

// IDs returns the ids of minions with data, sorted.
func (c *Cache) IDs() ([]string, error) {
	var ids []string
	if c.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		defer cancel()
		for _, f := range []string{dataFile, mineFile} {
			some, err := c.db.DatumIDs(ctx, f)
			if err != nil {
				return nil, fmt.Errorf("cannot list minion cache: %w", err)
			}
			ids = append(ids, some...)
		}
	} else if c.dir == nil {
		c.mu.Lock()
		for k := range maps.Keys(c.memory) {
			ids = append(ids, k[:len(k)-len("/data.p")]) // both suffixes have the same length
		}
		c.mu.Unlock()
	} else {
		entries, err := c.dir.List("minions")
		if err != nil {
			return nil, fmt.Errorf("cannot list minion cache: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() && protocol.ValidID(e.Name()) == nil {
				ids = append(ids, e.Name())
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
