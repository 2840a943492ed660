package output

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/tagged"
	"github.com/brine-salt/brine/modules/pyobj"
)

type stockCase struct {
	out   string
	value any
	raw   string
	want  string
	o     Options
}

// stockCases returns the cases of testdata/stock.jsonl.gz, which gen/cases.py writes. Cases that raise an exception
// in Salt have no text to compare.
func stockCases(t *testing.T) (cases []stockCase) {
	t.Helper()
	f, err := os.Open("testdata/stock.jsonl.gz")
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
	for lines.Scan() {
		var c struct {
			Out             string
			V, Opts, Kwargs any
			Color           bool
			Want            any
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		opts := pyobj.Plain(tagged.Value(t, c.Opts)).(map[string]any)
		kwargs := pyobj.Plain(tagged.Value(t, c.Kwargs)).(map[string]any)
		o := OptionsFrom(opts, Options{Color: c.Color, Table: map[string]any{}})
		if n, ok := kwargs["_retcode"].(int64); ok {
			o.Retcode = int(n)
		}
		o.MultiKey = opts["__multi_key"] == true
		for k, v := range opts {
			if len(k) > 10 && k[:10] == "out.table." {
				o.Table[k[10:]] = v
			}
		}
		want := ""
		switch w := c.Want.(type) {
		case string:
			want = w
		case map[string]any:
			continue
		}
		cases = append(cases, stockCase{c.Out, pyobj.Plain(tagged.Value(t, c.V)), lines.Text(), want, o})
	}
	return cases
}

func TestStockOutputters(t *testing.T) {
	cases := stockCases(t)
	if len(cases) < 4000 {
		t.Errorf("%d cases", len(cases))
	}
	bad := map[string]int{}
	for _, c := range cases {
		got, err := Render(c.out, c.value, c.o)
		if err == nil && got == c.want {
			continue
		}
		if bad[c.out]++; bad[c.out] <= 5 {
			t.Errorf("%.600s\n got %q, %v\nwant %q", c.raw, got, err, c.want)
		}
	}
	for out, n := range bad {
		t.Errorf("%s: %d cases differ", out, n)
	}
}
