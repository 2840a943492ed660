package pillar

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Cache caches compiled pillars, as Salt's pillar_cache. The files are those of Salt's own master and salt-run
// (salt/utils/cache.py: CacheDisk), one per minion below cachedir/pillar_cache; or the cache is in memory. A
// minion's pillars are cached by pillarenv; their age counts from the newest one. Methods are safe for
// concurrent use.
type Cache struct {
	ttl  time.Duration
	dir  *confined.Dir // nil if in memory
	log  *slog.Logger
	seed maphash.Seed
	busy [64]sync.Mutex // by hash of id; serialises access to a minion's entry

	mu     sync.Mutex // guards memory
	memory map[string][]byte
}

// maxCached is the maximum size in bytes of one minion's entry. Larger pillars are compiled each time.
const maxCached = 64 << 20

// maxEnvs is the maximum number of environments cached per minion, because a minion may ask for any name.
const maxEnvs = 32

// OpenCache opens the cache in a directory, which is created for the master alone. If dir is empty, the cache
// is in memory.
func OpenCache(dir string, ttl time.Duration, log *slog.Logger) (*Cache, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{ttl: ttl, log: log, seed: maphash.MakeSeed()}
	if dir == "" {
		c.memory = make(map[string][]byte)
		return c, nil
	}
	var err error
	if c.dir, err = confined.Open(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot open pillar cache: %w", err)
	}
	return c, nil
}

// Close closes the directory.
func (c *Cache) Close() error {
	if c.dir == nil {
		return nil
	}
	return c.dir.Close()
}

// Fetch returns a minion's pillar of an environment; "" means that none was chosen. It calls compile unless the
// cached one is recent enough. A pillar with _errors is not cached, so that a fix takes effect at once.
func (c *Cache) Fetch(id, pillarenv string,
	compile func() (payload.OrderedMap, error)) (payload.OrderedMap, error) {
	if err := protocol.ValidID(id); err != nil {
		return nil, err
	}
	lock := c.lockMinion(id)
	lock.Lock()
	envs, at := c.readMinion(id)
	lock.Unlock()
	if c.isOld(at) {
		envs = nil
	}
	if have, ok := pillarOf(envs, pillarenv).(payload.OrderedMap); ok {
		return have, nil
	}
	made, err := compile()
	if err != nil {
		return nil, err
	}
	if _, bad := made.Get("_errors"); bad {
		return made, nil
	}
	lock.Lock()
	defer lock.Unlock()
	if envs, at = c.readMinion(id); c.isOld(at) {
		envs = nil
	}
	if err := c.writeMinion(id, putPillar(envs, pillarenv, made)); err != nil {
		c.log.Warn("Cannot cache a pillar", "minion", id, "err", err)
	}
	return made, nil
}

// Shown returns the cached pillar of a minion's environment at any age, nil if only others are cached, and
// whether anything is cached.
func (c *Cache) Shown(id, pillarenv string) (any, bool) {
	if protocol.ValidID(id) != nil {
		return nil, false
	}
	lock := c.lockMinion(id)
	lock.Lock()
	defer lock.Unlock()
	envs, _ := c.readMinion(id)
	return payload.Plain(pillarOf(envs, pillarenv)), len(envs) > 0
}

// Clear removes a minion's pillars from the cache.
func (c *Cache) Clear(id string) error {
	if err := protocol.ValidID(id); err != nil {
		return err
	}
	lock := c.lockMinion(id)
	lock.Lock()
	defer lock.Unlock()
	if c.dir != nil {
		return c.dir.Remove(id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, id)
	return nil
}

func (c *Cache) lockMinion(id string) *sync.Mutex {
	return &c.busy[maphash.String(c.seed, id)%uint64(len(c.busy))]
}

// isOld reports whether an entry of this time has expired.
func (c *Cache) isOld(at time.Time) bool { return time.Since(at) > c.ttl }

// envKey returns an environment's key in the file; no environment is None.
func envKey(pillarenv string) any {
	if pillarenv == "" {
		return nil
	}
	return pillarenv
}

// pillarOf returns the pillar of an environment, or nil.
func pillarOf(envs payload.OrderedMap, pillarenv string) any {
	for _, p := range envs {
		if p.Key == envKey(pillarenv) {
			return p.Value
		}
	}
	return nil
}

// putPillar sets an environment's pillar. If there are too many, it replaces the oldest one.
func putPillar(envs payload.OrderedMap, pillarenv string,
	data payload.OrderedMap) payload.OrderedMap {
	for i := range envs {
		if envs[i].Key == envKey(pillarenv) {
			envs[i].Value = data
			return envs
		}
	}
	if len(envs) >= maxEnvs {
		envs = envs[len(envs)-maxEnvs+1:]
	}
	return append(envs, payload.Pair{Key: envKey(pillarenv), Value: data})
}

// The two parts of a file.
const (
	dataKey = "CacheDisk_data"
	timeKey = "CacheDisk_cachetime"
)

// readMinion returns a minion's pillars and the time of the newest one. An unreadable entry counts as missing.
func (c *Cache) readMinion(id string) (payload.OrderedMap, time.Time) {
	var b []byte
	if c.dir == nil {
		c.mu.Lock()
		b = c.memory[id]
		c.mu.Unlock()
	} else {
		var err error
		if b, _, err = c.dir.Read(id, maxCached); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("Cannot read cached pillars", "minion", id, "err", err)
		}
	}
	if len(b) == 0 {
		return nil, time.Time{}
	}
	v, err := payload.UnmarshalOrdered(b, payload.Limits{Bytes: maxCached})
	if err != nil {
		c.log.Debug("Kept pillars are unreadable", "minion", id, "err", err)
		return nil, time.Time{}
	}
	m, _ := v.(payload.OrderedMap)
	part := func(name string) any {
		v, _ := m.Get(name)
		m, _ := v.(payload.OrderedMap)
		v, _ = m.Get(id)
		return v
	}
	envs, _ := part(dataKey).(payload.OrderedMap)
	sec, _ := part(timeKey).(float64)
	return envs, time.UnixMicro(int64(sec * 1e6))
}

func (c *Cache) writeMinion(id string, envs payload.OrderedMap) error {
	sec := float64(time.Now().UnixMicro()) / 1e6
	b, err := payload.MarshalBin(payload.OrderedMap{
		{Key: dataKey, Value: payload.OrderedMap{{Key: id, Value: envs}}},
		{Key: timeKey, Value: payload.OrderedMap{{Key: id, Value: sec}}},
	})
	if err != nil {
		return err
	}
	if len(b) > maxCached {
		return fmt.Errorf("%d bytes are more than %d", len(b), maxCached)
	}
	if c.dir != nil {
		return c.dir.Write(id, b, 0o600, false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory[id] = b
	return nil
}
