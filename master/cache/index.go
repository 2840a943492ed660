package cache

import (
	"os"
	"sync"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol/payload"
)

// Limits of an index: columns, cells in total, and bytes of their packed values, in total and of one. An unpacked
// value takes up to forty times as much.
const (
	maxColumns = 16
	maxCells   = 1 << 20
	maxValues  = 32 << 20
	maxIndexed = 4 << 10
)

// index caches single grains and pillar keys of all minions: those that targets use. Unpacking the data of
// 10,000 minions takes a second; checking whether it has changed takes some milliseconds.
//
//	target ─▶ Needs ─▶ a column for each key ─▶ a cell for each minion: stamp, value
//	                                             │ the data has another stamp
//	                                             ▼
//	                                            read, unpack the keys, cache
type index struct {
	mu      sync.Mutex // guards all
	columns map[columnKey]*column
	turn    uint64
	cells   int // of all columns
	bytes   int // of the packed values of all columns
}

// columnKey names a top-level key of grains or pillar.
type columnKey struct {
	pillar bool
	key    string
}

type column struct {
	used   uint64 // turn of the last use
	cells  map[string]cell
	values map[string]*indexed // by packed form: most minions have one of a few values
	bytes  int
}

// indexed is a value in a column, and how many cells have it.
type indexed struct {
	packed string
	value  any
	cells  int
}

// cell is one minion's value. known is false if the minion has no grains or no pillar. has is false if the key
// is missing.
type cell struct {
	stamp      stamp
	known, has bool
	value      any
	of         *indexed // counts the cell; nil outside of a column
}

// stamp changes whenever a minion's stored data does.
type stamp struct{ a, b, c int64 }

// fileStamp returns the stamp of a file.
func fileStamp(path string) (stamp, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stamp{info.ModTime().UnixNano(), info.Size(), int64(confined.Inode(info))}, true
}

// open returns the columns of keys for targets among n minions. If there are too many columns, the least
// recently used are dropped.
func (x *index) open(keys []columnKey, n int) []*column {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.columns == nil {
		x.columns = make(map[columnKey]*column)
	}
	x.turn++
	out := make([]*column, len(keys))
	for i, k := range keys {
		col := x.columns[k]
		if col != nil && len(col.cells) > 2*n+maxColumns { // most belong to minions that are gone
			x.drop(k)
			col = nil
		}
		if col == nil {
			col = &column{cells: make(map[string]cell), values: make(map[string]*indexed)}
			x.columns[k] = col
		}
		col.used, out[i] = x.turn, col
	}
	for len(x.columns) > max(maxColumns, len(keys)) {
		x.dropOldest()
	}
	return out
}

// drop removes a column. The caller holds mu.
func (x *index) drop(k columnKey) {
	col := x.columns[k]
	x.cells, x.bytes = x.cells-len(col.cells), x.bytes-col.bytes
	col.cells, col.values, col.bytes = nil, nil, 0 // a Reader may still hold it
	delete(x.columns, k)
}

// dropOldest removes the least recently used column. The caller holds mu.
func (x *index) dropOldest() {
	var oldest columnKey
	first := true
	for k, col := range x.columns {
		if first || col.used < x.columns[oldest].used {
			oldest, first = k, false
		}
	}
	x.drop(oldest)
}

// get returns a minion's cells in some columns, or false if one is missing or has another stamp.
func (x *index) get(cols []*column, id string, at stamp, cells []cell) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, col := range cols {
		c, ok := col.cells[id]
		if !ok || c.stamp != at {
			return false
		}
		cells[i] = c
	}
	return true
}

// put stores a cell and returns it with the value of packed, which is nil if the minion does not have the key. A
// value for which there is no room is returned only, and read again the next time.
func (x *index) put(col *column, id string, c cell, packed []byte) (cell, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var v *indexed
	if packed != nil {
		if v = col.values[string(packed)]; v == nil {
			value, err := payload.UnmarshalDisk(packed, payload.Limits{Bytes: MaxEntry})
			if err != nil {
				return c, err
			}
			v = &indexed{packed: string(packed), value: value}
		}
		c.has, c.value = true, v.value
	}
	if col.cells == nil {
		return c, nil
	}
	before, had := col.cells[id]
	// A minion has one value in a column: what it had before takes no room.
	// guard: indexed-values TestIndexIsBounded
	if had {
		x.remove(col, id, before)
	}
	// guard: indexed-values TestIndexIsBounded
	if len(packed) > maxIndexed {
		return c, nil
	}
	if x.cells >= maxCells || v != nil && v.cells == 0 && x.bytes+len(packed) > maxValues {
		return c, nil
	}
	if v != nil {
		if v.cells++; v.cells == 1 {
			col.values[v.packed] = v
			col.bytes, x.bytes = col.bytes+len(packed), x.bytes+len(packed)
		}
	}
	x.cells++
	kept := c
	kept.of = v
	col.cells[id] = kept
	return c, nil
}

// remove removes a cell, and its value if no other cell has it. The caller holds mu.
func (x *index) remove(col *column, id string, c cell) {
	delete(col.cells, id)
	x.cells--
	if c.of == nil {
		return
	}
	if c.of.cells--; c.of.cells == 0 {
		delete(col.values, c.of.packed)
		col.bytes, x.bytes = col.bytes-len(c.of.packed), x.bytes-len(c.of.packed)
	}
}
