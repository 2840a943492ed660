package cache

import (
	"cmp"
	"context"
	"slices"
)

// readAhead is how many minions' entries of a database a Reader reads at once.
const readAhead = 256

// A Reader reads the data of many minions, one after the other. Where masters share a database it reads those of the
// next some hundred ids at once. It is for one goroutine.
type Reader struct {
	c    *Cache
	file string
	ids  []string          // those that were not read yet
	read map[string][]byte // nil for ids without an entry
	err  error
}

// Reader returns a Reader of the data of minions. Ask it in the order of ids; ids may be left out.
func (c *Cache) Reader(ids []string) *Reader { return &Reader{c: c, file: dataFile, ids: ids} }

// MineReader returns a Reader of mines. Ask it in the order of ids; ids may be left out.
func (c *Cache) MineReader(ids []string) *Reader { return &Reader{c: c, file: mineFile, ids: ids} }

// Err returns why the database could not be read. What Data and Mine returned since is unknown.
func (r *Reader) Err() error { return r.err }

// Data is Cache.Data.
func (r *Reader) Data(id string) (Data, bool) {
	if r.c.db == nil {
		return r.c.Data(id)
	}
	m := r.entry(id)
	if m == nil {
		return Data{}, false
	}
	return dataOf(m), true
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

// entry returns an entry of the database, nil when there is none, or none that can be read.
func (r *Reader) entry(id string) map[string]any {
	b, ok := r.read[id]
	if !ok {
		i := slices.Index(r.ids, id)
		if i < 0 { // asked out of order
			m, err := r.c.read(id, r.file)
			r.err = cmp.Or(r.err, err)
			return m
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
	if b == nil {
		return nil
	}
	m, err := unpack(b)
	if err != nil {
		return nil
	}
	return m
}
