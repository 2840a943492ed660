package cliargs

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/tagged"
	"github.com/brine-salt/brine/modules/pyobj"
)

// TestStockArguments compares with the results of salt.utils.args.parse_input; gen/cases.py writes the cases.
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
		if d := cmp.Diff(pyobj.Plain(tagged.Value(t, c.Out)), any(args), sameFloats); d != "" {
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
