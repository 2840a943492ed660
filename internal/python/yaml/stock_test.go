package yaml

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/tagged"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
)

// stockCase is a document with the result of Salt's loader (testdata/README.md describes the format).
type stockCase struct {
	ID, Src string
	Want    json.RawMessage
	Err     string
	Line    int
}

func stockCases(t *testing.T, path string) []stockCase {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []stockCase
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c stockCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// wanted converts a value of the cases to the types of ParseOrdered.
func wanted(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return fromBig(v)
	case *pyobj.List:
		return wantedList(v.Items)
	case pyobj.Tuple:
		return wantedList(v)
	case *pyobj.Set:
		return wantedList(v.Members())
	case *pyobj.Dict:
		items := payload.OrderedMap{}
		for k, x := range v.All() {
			key := wanted(k)
			if b, ok := key.([]byte); ok {
				key = string(b) // bytes cannot be a key in Go
			}
			items = append(items, payload.Pair{Key: key, Value: wanted(x)})
		}
		return items
	}
	return v
}

func wantedList(items []any) []any {
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = wanted(x)
	}
	return out
}

// sameFloats treats NaN as equal to NaN.
var sameFloats = cmp.Comparer(func(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
})

func TestStockCases(t *testing.T) {
	cases := stockCases(t, "testdata/stock.jsonl.gz")
	if len(cases) < 700 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			got, err := ParseOrdered([]byte(c.Src), "<unicode string>")
			if c.Err == "" {
				if err != nil {
					t.Fatalf("%q: %v", c.Src, err)
				}
				if d := cmp.Diff(wanted(tagged.Parse(t, c.Want)), got, sameFloats); d != "" {
					t.Fatalf("%q: %s", c.Src, d)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: got %v, %v; want %s", c.Src, got, err, c.Err)
			}
			g := e.Class + ": " + e.Problem
			if w := fmt.Sprintf("%s (%d)", c.Err, c.Line); fmt.Sprintf("%s (%d)", g, e.Line) != w {
				t.Errorf("%q:\n got %s (%d)\nwant %s", c.Src, g, e.Line, w)
			}
		})
	}
}
