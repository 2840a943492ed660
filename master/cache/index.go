package cache

import (
	"os"
	"sync"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol/payload"
)

// The bounds of an index: of its columns, of the cells of all, and of the bytes of the packed values that they have.
const (
	maxColumns = 16
	maxCells   = 1 << 20
	maxValues  = 32 << 20
)

// index remembers single grains and keys of pillars of all minions, those that targets ask for. To unpack all that is
// known of 10,000 minions takes a second; to look whether it is still what it was takes some milliseconds.
//
//	target ─▶ Needs ─▶ a column for each key ─▶ a cell for each minion: stamp, value
//	                                             │ the stamp of its data is another one
//	                                             ▼
//	                                            read, unpack the keys, remember
type index struct {
	mu      sync.Mutex // guards all
	columns map[columnKey]*column
	turn    uint64
	cells   int // of all columns
	bytes   int // of the packed values of all columns
}

// columnKey names a key of the outermost level of grains or pillar.
type columnKey struct {
	pillar bool
	key    string
}

type column struct {
	used   uint64 // the turn of its last use
	cells  map[string]cell
	values map[string]any // by their packed form: most minions have one of a few
	bytes  int
}

// cell is what one minion has. known is false if nothing is known of its grains, or its pillar; has is false if it does
// not have the key.
type cell struct {
	stamp      stamp
	known, has bool
	value      any
}

// stamp changes when what is stored of a minion does.
type stamp struct{ a, b, c int64 }

// fileStamp is the stamp of a file.
func fileStamp(path string) (stamp, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stamp{info.ModTime().UnixNano(), info.Size(), int64(confined.Inode(info))}, true
}

// open returns the columns of some keys for targets among n minions. Those that were not used for the longest time make
// room.
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
		if col != nil && len(col.cells) > 2*n+maxColumns { // most are of minions that are gone
			x.drop(k)
			col = nil
		}
		if col == nil {
			col = &column{cells: make(map[string]cell), values: make(map[string]any)}
			x.columns[k] = col
		}
		col.used, out[i] = x.turn, col
	}
	for len(x.columns) > max(maxColumns, len(keys)) {
		x.dropOldest()
	}
	return out
}

// drop forgets a column. The caller holds mu.
func (x *index) drop(k columnKey) {
	col := x.columns[k]
	x.cells, x.bytes = x.cells-len(col.cells), x.bytes-col.bytes
	col.cells, col.values, col.bytes = nil, nil, 0 // a Reader may have it
	delete(x.columns, k)
}

// dropOldest forgets the column that was not used for the longest time. The caller holds mu.
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

// get returns the cells of a minion in some columns, and false if one is missing or has another stamp.
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

// put remembers a cell, and returns it with the value of packed, which is nil if the minion does not have the key.
func (x *index) put(col *column, id string, c cell, packed []byte) (cell, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if packed != nil {
		v, seen := col.values[string(packed)]
		if !seen {
			var err error
			if v, err = payload.UnmarshalDisk(packed, payload.Limits{Bytes: MaxEntry}); err != nil {
				return c, err
			}
		}
		c.has, c.value = true, v
		if !seen && col.values != nil && x.bytes+len(packed) <= maxValues {
			col.values[string(packed)] = v
			col.bytes, x.bytes = col.bytes+len(packed), x.bytes+len(packed)
			seen = true
		}
		if !seen { // there is no room: it is read again the next time
			return c, nil
		}
	}
	if col.cells == nil {
		return c, nil
	}
	if _, had := col.cells[id]; !had {
		if x.cells >= maxCells {
			return c, nil
		}
		x.cells++
	}
	col.cells[id] = c
	return c, nil
}
