package cliargs

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func untag(t *testing.T, raw any) any {
	t.Helper()
	m, ok := raw.(map[string]any)
	if !ok {
		return raw
	}
	switch m["t"] {
	case "i":
		n, ok := new(big.Int).SetString(m["v"].(string), 10)
		switch {
		case !ok:
			t.Fatalf("bad integer %v", m)
		case n.IsInt64():
			return n.Int64()
		case n.IsUint64():
			return n.Uint64()
		}
		return m["v"] // beyond 64 bits Salt sends text
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
	case "l":
		list := []any{}
		for _, e := range m["v"].([]any) {
			list = append(list, untag(t, e))
		}
		return list
	case "d":
		texts, others := map[string]any{}, map[any]any{}
		for _, e := range m["v"].([]any) {
			k, v := untag(t, e.([]any)[0]), untag(t, e.([]any)[1])
			if s, ok := k.(string); ok {
				texts[s] = v
			}
			others[k] = v
		}
		if len(texts) == len(others) {
			return texts
		}
		return others
	}
	t.Fatalf("unknown value %v", m)
	return nil
}

// TestStockArguments compares with salt.utils.args.parse_input; gen/cases.py writes the cases.
func TestStockArguments(t *testing.T) {
	f, err := os.Open("testdata/stock.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sameFloats := cmp.Comparer(func(a, b float64) bool {
		return a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
	})
	count := 0
	lines := bufio.NewScanner(f)
	for ; lines.Scan(); count++ {
		var c struct {
			In      []string
			NoParse []string `json:"no_parse"`
			Out     any
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		args, kwargs := Parse(c.In, c.NoParse)
		if len(kwargs) > 0 {
			kwargs["__kwarg__"] = true
			args = append(args, kwargs)
		}
		if d := cmp.Diff(untag(t, c.Out), any(args), sameFloats); d != "" {
			t.Errorf("%q: %s", c.In, d)
		}
	}
	if count < 300 {
		t.Errorf("%d cases", count)
	}
}

func TestNoParse(t *testing.T) {
	if d := cmp.Diff([]string{"a", "b"}, NoParse("a, b")); d != "" || NoParse("") != nil {
		t.Error(d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a=[1, {b: c}]")
	f.Add("!!int 0_")
	f.Fuzz(func(t *testing.T, s string) {
		args, kwargs := Parse([]string{s}, nil)
		if len(args)+len(kwargs) != 1 {
			t.Errorf("%q gave %v, %v", s, args, kwargs)
		}
	})
}
