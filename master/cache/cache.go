// Package cache is what a master remembers about its minions between their visits: the grains and the pillar of the
// last pillar request, by which jobs are targeted, and the mine. On disk it has the layout of Salt 3006 and 3007
// (minions/<id>/data.p and mine.p below cachedir), which salt-run reads, and beside it copies in the layout of 3008
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

// MaxEntry is the largest packed entry in bytes: one minion cannot fill the disk with grains or a mine.
const MaxEntry = 16 << 20

const (
	dataFile = "data.p"
	mineFile = "mine.p"
)

// Data is what a minion's last pillar request showed.
type Data struct {
	Grains, Pillar map[string]any
}

// Cache holds the data of many minions. Methods may be called from many goroutines; ids that are not valid have no
// data.
type Cache struct {
	dir  *confined.Dir // nil in memory and in a database
	db   store.Shared  // nil if masters share nothing
	seed maphash.Seed
	mine [64]sync.Mutex // by hash of id: one change of a mine at a time

	index index // of what targets ask for

	mu     sync.Mutex // guards memory
	memory map[string][]byte
}

// Open opens the cache below a cachedir, or one in memory when dir is empty.
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

// OpenShared opens the cache of several masters in their database.
func OpenShared(db store.Shared) *Cache { return &Cache{db: db, seed: maphash.MakeSeed()} }

// sharedTime bounds one look at the database.
const sharedTime = 2 * time.Minute

// maxSwaps is how often a change of a mine is begun anew because another master changed it meanwhile.
const maxSwaps = 100

// Close gives the directory back.
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
			return err // most of what comes is what was there
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

// put writes a file unless that is what it holds, as most of the time; its directory is made when it is not there (any
// more).
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

// packed returns an entry of a master alone, or nil if it is missing.
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

// shared returns an entry of the database with its epoch, nil and 0 when there is none.
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

// Store keeps a minion's grains and pillar.
func (c *Cache) Store(id string, d Data) error {
	err := c.write(id, dataFile, map[string]any{"grains": d.Grains, "pillar": d.Pillar})
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

// Data returns what is known of a minion; ok is false when nothing is, or nothing readable.
func (c *Cache) Data(id string) (d Data, ok bool) {
	m, err := c.read(id, dataFile)
	if err != nil || m == nil {
		return Data{}, false
	}
	return dataOf(m), true
}

// dataOf is the data of an entry.
func dataOf(m map[string]any) (d Data) {
	d.Grains, _ = payload.Map(payload.Plain(m["grains"]))
	d.Pillar, _ = payload.Map(payload.Plain(m["pillar"]))
	return d
}

// Mine returns what a minion put into its mine, by function, with maps as payload.OrderedMap. It is never nil and the
// caller's own.
func (c *Cache) Mine(id string) map[string]any {
	m, err := c.read(id, mineFile)
	if err != nil || m == nil {
		return map[string]any{}
	}
	return m
}

// ChangeMine lets f change a minion's mine. When f returns false nothing is stored.
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

// swapMine is ChangeMine where other masters may change the mine, too.
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
	return errors.New("others change it all the time")
}

// Delete forgets a minion.
func (c *Cache) Delete(id string) error {
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	if c.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		defer cancel()
		for _, f := range []string{dataFile, mineFile} {
			if _, err := c.db.SetDatum(ctx, f, id, nil, -1); err != nil {
				return fmt.Errorf("cannot forget minion %q: %w", id, err)
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
			return fmt.Errorf("cannot forget minion %q: %w", id, err)
		}
	}
	// The directory stays when the minion pushed files (cp.push): they are the operator's.
	c.dir.Remove("minions/" + id)
	return nil
}

// Shared reports whether several masters have this cache in their database.
func (c *Cache) Shared() bool { return c.db != nil }

// IDs lists the minions that something is known about, sorted.
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
			ids = append(ids, k[:len(k)-len("/data.p")]) // both names are of one length
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
