package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/payload"
)

// TestIndexIsBounded: a minion whose grains change all the time uses the memory of one value, and a value that is
// too large is not indexed.
func TestIndexIsBounded(t *testing.T) {
	var x index
	col := x.open([]columnKey{{false, "role"}}, 2)[0]
	put := func(id string, at int64, v any) {
		t.Helper()
		c, err := x.put(col, id, cell{stamp: stamp{a: at}, known: true}, mustPack(t, v))
		if err != nil || !c.has || !cmp.Equal(c.value, v) {
			t.Fatalf("%v %v, want %v", c, err, v)
		}
	}
	found := make([]cell, 1)
	put("other", 1, "db")
	for i := range int64(1000) {
		put("m", i, fmt.Sprint("role ", i))
		if !x.get([]*column{col}, "m", stamp{a: i}, found) || found[0].value != fmt.Sprint("role ", i) {
			t.Fatalf("turn %d: %v", i, found)
		}
	}
	if x.cells != 2 || len(col.values) != 2 || x.bytes > 16 || x.bytes != col.bytes {
		t.Errorf("%d cells, %d values and %d bytes of two minions", x.cells, len(col.values), x.bytes)
	}
	put("m", 1001, "db") // the other's value
	put("m", 1002, strings.Repeat("x", maxIndexed))
	if x.cells != 1 || len(col.values) != 1 || x.get([]*column{col}, "m", stamp{a: 1002}, found) {
		t.Errorf("%d cells and %d values after a large one", x.cells, len(col.values))
	}
	put("m", 1003, "db")
	put("other", 2, "db")
	if x.cells != 2 || len(col.values) != 1 || col.values[string(mustPack(t, "db"))].cells != 2 {
		t.Errorf("%d cells, values %v", x.cells, col.values)
	}
}

func mustPack(t *testing.T, v any) []byte {
	t.Helper()
	b, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
