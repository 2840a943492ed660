package cache

import (
	"cmp"
	"context"
	"slices"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// readAhead is how many minions' entries a Reader reads from a database at once.
const readAhead = 256

// A Reader reads the data of many minions, one after another. In a cluster it reads the entries of several
// hundred ids at once. It is not safe for concurrent use.
type Reader struct {
	c    *Cache
	file string
	ids  []string          // not read yet
	read map[string][]byte // nil for ids without an entry
	err  error

	parts *parts // nil for all keys
}

// parts are the keys that a Reader returns.
type parts struct {
	grains, pillar []string
	columns        []*column // of the grains, then of the pillar
	epochs         map[string]int64
	found          []cell
	data           Data // last result of Data
}

// Reader returns a Reader of minions' data. Call it in the order of ids; ids may be left out.
func (c *Cache) Reader(ids []string) *Reader { return &Reader{c: c, file: dataFile, ids: ids} }

// Parts returns a Reader of those keys of grains and pillar that a target needs, among the accepted minions. It
// is much faster than a Reader of all keys. The result of Data is valid until the next call.
func (c *Cache) Parts(accepted []string, n target.Needs) *Reader {
	r := c.Reader(accepted)
	if n.AllGrains || n.AllPillar || n.Nothing() {
		return r
	}
	p := &parts{grains: n.Grains, pillar: n.Pillar}
	r.parts = p
	p.found = make([]cell, len(p.grains)+len(p.pillar))
	p.data = Data{Grains: make(map[string]any, len(p.grains)),
		Pillar: make(map[string]any, len(p.pillar))}
	if c.memory != nil {
		return r
	}
	keys := make([]columnKey, 0, len(p.found))
	for _, k := range p.grains {
		keys = append(keys, columnKey{false, k})
	}
	for _, k := range p.pillar {
		keys = append(keys, columnKey{true, k})
	}
	p.columns = c.index.open(keys, len(accepted))
	if c.db == nil {
		return r
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	if p.epochs, r.err = c.db.DataEpochs(ctx, dataFile); r.err != nil {
		return r
	}
	// Only entries that are not in the index are read ahead.
	var unknown []string
	for _, id := range accepted {
		if e, ok := p.epochs[id]; ok && !c.index.get(p.columns, id, stamp{a: e}, p.found) {
			unknown = append(unknown, id)
		}
	}
	r.ids = unknown
	return r
}

// MineReader returns a Reader of mines. Call it in the order of ids; ids may be left out.
func (c *Cache) MineReader(ids []string) *Reader { return &Reader{c: c, file: mineFile, ids: ids} }

// Err returns the error of reading the database. Results of Data and Mine since then are incomplete.
func (r *Reader) Err() error { return r.err }

// Data is Cache.Data.
func (r *Reader) Data(id string) (Data, bool) {
	if r.parts != nil {
		return r.partsOf(id)
	}
	o, ok := r.Ordered(id)
	return o.Plain(), ok
}

// Ordered is Cache.Ordered. It reads the whole entry, also for a Reader of some keys.
func (r *Reader) Ordered(id string) (Ordered, bool) {
	if r.c.db == nil {
		return r.c.Ordered(id)
	}
	m := r.entry(id)
	if m == nil {
		return Ordered{}, false
	}
	return orderedOf(m), true
}

// Mine is Cache.Mine.
func (r *Reader) Mine(id string) map[string]any {
	if r.c.db == nil {
		return r.c.Mine(id)
	}
	m := r.entry(id)
	if m == nil {
		return map[string]any{}
	}
	return m
}

// partsOf is Data for some keys.
func (r *Reader) partsOf(id string) (Data, bool) {
	p := r.parts
	var at stamp
	switch {
	case r.err != nil || protocol.ValidID(id) != nil:
		return Data{}, false
	case p.epochs != nil:
		e, ok := p.epochs[id]
		if !ok {
			return Data{}, false
		}
		at.a = e
	case p.columns != nil:
		var ok bool
		if at, ok = fileStamp(r.c.dir.Path() + "/minions/" + id + "/" + dataFile); !ok {
			return Data{}, false
		}
	}
	if p.columns == nil || !r.c.index.get(p.columns, id, at, p.found) {
		b := r.packed(id)
		if b == nil {
			return Data{}, false
		}
		if err := r.findParts(id, at, b); err != nil {
			return Data{}, false // like an unreadable entry
		}
	}
	n := len(p.grains)
	return Data{Grains: fill(p.data.Grains, p.grains, p.found[:n]),
		Pillar: fill(p.data.Pillar, p.pillar, p.found[n:])}, true
}

// fill returns m with the values of some keys, or nil if the minion has no data.
func fill(m map[string]any, keys []string, cells []cell) map[string]any {
	clear(m)
	for i, k := range keys {
		if !cells[i].known {
			return nil
		}
		if cells[i].has {
			m[k] = cells[i].value
		}
	}
	return m
}

// findParts unpacks the keys of an entry into p.found and stores them in the index.
func (r *Reader) findParts(id string, at stamp, b []byte) error {
	p := r.parts
	top, err := payload.Fields(b, "grains", "pillar")
	if err != nil {
		return err
	}
	for i := range p.found {
		name, key := "grains", ""
		if i < len(p.grains) {
			key = p.grains[i]
		} else {
			name, key = "pillar", p.pillar[i-len(p.grains)]
		}
		all := top[name]
		c := cell{stamp: at, known: len(all) > 0 && all[0] != packedNil}
		var of map[string][]byte
		if c.known {
			if of, err = payload.Fields(all, key); err != nil {
				return err
			}
		}
		value := of[key]
		if p.columns != nil {
			c, err = r.c.index.put(p.columns[i], id, c, value)
		} else if value != nil {
			c.has = true
			c.value, err = payload.UnmarshalDisk(value, payload.Limits{Bytes: MaxEntry})
		}
		if err != nil {
			return err
		}
		p.found[i] = c
	}
	return nil
}

// packedNil is nil, packed.
const packedNil = 0xc0

// entry returns an entry of the database, or nil if it is missing or cannot be read.
func (r *Reader) entry(id string) map[string]any {
	b := r.packed(id)
	if b == nil {
		return nil
	}
	m, err := unpack(b)
	if err != nil {
		return nil
	}
	return m
}

// packed returns an entry, or nil if it is missing. It sets err if the database fails.
func (r *Reader) packed(id string) []byte {
	if r.c.db == nil {
		b, err := r.c.packed(id, r.file)
		if err != nil {
			return nil // like an unreadable entry
		}
		return b
	}
	b, ok := r.read[id]
	if !ok {
		i := slices.Index(r.ids, id)
		if i < 0 { // called out of order
			ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
			defer cancel()
			b, _, err := r.c.db.Datum(ctx, r.file, id)
			r.err = cmp.Or(r.err, err)
			return b
		}
		n := min(i+readAhead, len(r.ids))
		ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
		defer cancel()
		read, err := r.c.db.Data(ctx, r.file, r.ids[i:n])
		if err != nil {
			r.err = err
			return nil
		}
		for _, id := range r.ids[i:n] {
			if _, ok := read[id]; !ok {
				read[id] = nil
			}
		}
		r.read, r.ids = read, r.ids[n:]
		b = read[id]
	}
	return b
}
