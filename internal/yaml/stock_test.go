package yaml

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stockCase is one document with the answer of Salt's own loader (testdata/README.md has the format).
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

// decodeWant turns the tagged JSON of the cases into the values of ParseOrdered.
func decodeWant(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return untag(t, v)
}

func untag(t *testing.T, v any) any {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	switch m["t"] {
	case "i":
		n, ok := new(big.Int).SetString(m["v"].(string), 10)
		if !ok {
			t.Fatalf("bad integer %v", m["v"])
		}
		return fromBig(n)
	case "f":
		f, err := strconv.ParseFloat(m["v"].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case "b":
		b, err := base64.StdEncoding.DecodeString(m["v"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return b
	case "l", "t", "set":
		list := []any{}
		for _, e := range m["v"].([]any) {
			list = append(list, untag(t, e))
		}
		return list
	case "d":
		items := Map{}
		for _, e := range m["v"].([]any) {
			kv := e.([]any)
			key := untag(t, kv[0])
			if b, ok := key.([]byte); ok {
				key = string(b) // bytes are no key in Go
			}
			items = append(items, Item{key, untag(t, kv[1])})
		}
		return items
	}
	t.Fatalf("unknown value %v", m)
	return nil
}

// sameFloats lets NaN equal itself.
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
				if d := cmp.Diff(decodeWant(t, c.Want), got, sameFloats); d != "" {
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
