//go:build interop || bench

package interop

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// sideBySide is the table of calls: side_by_side.yaml.
type sideBySide struct {
	Calls []struct {
		Fun    string         `yaml:"fun"`
		Arg    []any          `yaml:"arg"`
		Kwarg  map[string]any `yaml:"kwarg"`
		Ignore []string       `yaml:"ignore"` // keys of a returned map that are not compared
		Shape  bool           `yaml:"shape"`  // only the type is compared
		Line   bool           `yaml:"line"`   // only the first line is compared
		Sort   bool           `yaml:"sort"`   // lists are compared without order
		Broken bool           `yaml:"broken"` // stock fails, brine must not
		Why    string         `yaml:"why"`    // the reason for one of the fields above
	} `yaml:"calls"`
}

// TestSideBySide runs a table of calls on a stock minion and one of brine under one stock master, and compares the
// returned values. Calls that may differ give the reason.
func TestSideBySide(t *testing.T) {
	inTurn(t)
	text, err := os.ReadFile("side_by_side.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table sideBySide
	if err := yaml.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\npeer: {'.*': ['.*']}")
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "stock", ""))
	start(t, ours("salt-minion"), "-c", m.minion(t, "ours", ""))
	m.bus.wait(mark, "salt/minion/stock/start")
	m.bus.wait(mark, "salt/minion/ours/start")
	count := map[string]int{}
	for i, c := range table.Calls {
		t.Run(fmt.Sprintf("%d %s", i, c.Fun), func(t *testing.T) {
			saved := m.retarget(t)
			defer m.retarget(saved)
			if (c.Shape || c.Line || c.Sort || c.Broken || c.Ignore != nil) && c.Why == "" {
				t.Fatal("the table gives no reason for the exception")
			}
			got := m.run(query{"tgt": "*", "fun": c.Fun, "arg": c.Arg, "kwarg": c.Kwarg})
			if len(got) != 2 {
				t.Fatalf("answers came from %d minions: %v", len(got), got)
			}
			a, b := got["stock"], got["ours"]
			a.Ret, b.Ret = withoutKeys(a.Ret, c.Ignore), withoutKeys(neutral(b.Ret), c.Ignore)
			switch {
			case c.Shape:
				a.Ret, b.Ret = fmt.Sprintf("%T", a.Ret), fmt.Sprintf("%T", b.Ret)
			case c.Line:
				a.Ret, b.Ret = firstLine(a.Ret), firstLine(b.Ret)
			case c.Sort:
				a.Ret, b.Ret = sorted(a.Ret), sorted(b.Ret)
			case c.Broken:
				if a.Retcode == 0.0 || b.Retcode != 0.0 {
					t.Errorf("stock's return code is %v, ours %v: %v", a.Retcode, b.Retcode, b.Ret)
				}
				b = a
			}
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("%s %v %v (-stock +ours):\n%s", c.Fun, c.Arg, c.Kwarg, diff)
				return
			}
			if c.Why == "" {
				count["equal"]++
			} else {
				count["equal but for listed exceptions"]++
			}
		})
	}
	t.Run("states", func(t *testing.T) {
		saved := m.retarget(t)
		defer m.retarget(saved)
		statesSideBySide(t, m)
	})
	kinds := make([]string, 0, len(count))
	for kind, n := range count {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	sort.Strings(kinds)
	t.Logf("%d calls: %s", len(table.Calls), strings.Join(kinds, ", "))
}

// neutral replaces brine's minion with the stock minion in a return, because both answer with their own id and paths.
func neutral(v any) any {
	switch v := v.(type) {
	case string:
		if v == "ours" {
			return "stock"
		}
		return strings.ReplaceAll(v, "/ours/", "/stock/")
	case []any:
		for i := range v {
			v[i] = neutral(v[i])
		}
	case map[string]any:
		for k, x := range v {
			delete(v, k)
			v[neutral(k).(string)] = neutral(x)
		}
	}
	return v
}

func withoutKeys(v any, keys []string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, k := range keys {
		delete(m, k)
	}
	return m
}

func firstLine(v any) any {
	text, _ := v.(string)
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func sorted(v any) []string {
	list, _ := v.([]any)
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = fmt.Sprint(x)
	}
	sort.Strings(texts)
	return texts
}
