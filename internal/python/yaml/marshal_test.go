package yaml

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/tagged"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestMarshalStock compares with Salt's texts for the same values, which gen/dump.py writes.
func TestMarshalStock(t *testing.T) {
	f, err := os.Open("testdata/dump.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	count := 0
	for ; lines.Scan(); count++ {
		var c struct {
			V                       json.RawMessage
			Block, Auto, Flow, Four string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		v := unordered(wanted(tagged.Parse(t, c.V)))
		for _, s := range []struct {
			name, want string
			style      Style
		}{{"block", c.Block, Style{}}, {"auto", c.Auto, Style{Flow: FlowLeafs}}, {"flow", c.Flow, Style{Flow: FlowAll}}, {"four", c.Four, Style{Indent: 4}}} {
			got, err := MarshalStyle(v, s.style)
			if err != nil {
				t.Fatalf("%s: %v", c.V, err)
			}
			if got != s.want {
				t.Errorf("%s of %s:\n got %q\nwant %q", s.name, c.V, got, s.want)
			}
		}
	}
	if count < 1000 {
		t.Errorf("%d cases", count)
	}
}

// unordered converts every payload.OrderedMap to a Go map.
func unordered(v any) any {
	switch v := v.(type) {
	case payload.OrderedMap:
		m := map[any]any{}
		text := map[string]any{}
		for _, it := range v {
			m[it.Key] = unordered(it.Value)
			if k, ok := it.Key.(string); ok {
				text[k] = m[it.Key]
			}
		}
		if len(text) == len(m) {
			return text
		}
		return m
	case []any:
		for i := range v {
			v[i] = unordered(v[i])
		}
	}
	return v
}
