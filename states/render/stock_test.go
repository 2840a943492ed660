//go:build interop

package render

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/interop/oracle"
)

// TestStockFilters renders every filter, test and error of testdata/filters.txt with stock Salt and with this
// package, and compares the results.
func TestStockFilters(t *testing.T) {
	texts := filterTemplates(t)
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testsalt.Python(t), "testdata/filters.py", t.TempDir())
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var stock struct {
		Results                 [][2]*string
		Filters, Tests, Globals []string
	}
	if err := json.Unmarshal(out, &stock); err != nil {
		t.Fatal(err)
	}
	book := oracle.OpenBook(t, answers)
	names := strings.NewReplacer()
	for i, text := range texts {
		kept := oracle.Kept{Key: oracle.Key(text), Case: text}
		book.Know("filters", kept.Key)
		want := ""
		if stock.Results[i][0] != nil {
			want = *stock.Results[i][0]
		} else {
			want = "error: " + withoutTrace(*stock.Results[i][1])
		}
		kept.Stock = oracle.Pack(want, names)
		if got := rendered(t, text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
			continue
		}
		book.Keep(t, "filters", kept)
	}
	book.Save(t)
	all := strings.Join(texts, "\n")
	for _, name := range stock.Filters {
		if saltFilter(name) == nil && name != "indent" { // indent is one of Jinja's own filters
			t.Errorf("there is no filter %s", name)
		}
		if !strings.Contains(all, name) && name != "http_query" && name != "dns_check" && name != "indent" {
			t.Errorf("the filter %s has no case", name)
		}
	}
	for _, name := range append(stock.Tests, stock.Globals...) {
		if !strings.Contains(all, name) && name != "ifelse" {
			t.Errorf("%s has no case", name)
		}
	}
	t.Logf("%d templates, %d filters", len(texts), len(stock.Filters))
}

// withoutTrace removes Python's stack from the text of an unexpected error, because Go has no such stack.
func withoutTrace(s string) string {
	before, rest, ok := strings.Cut(s, "\nTraceback (most recent call last):\n")
	if !ok {
		return s
	}
	_, after, ok := strings.Cut(rest, "\n; line ")
	if !ok {
		return before
	}
	// The excerpt contains the stack, too.
	after, _, _ = strings.Cut(after, "\nTraceback (most recent call last):")
	return before + "; line " + after + "\n---"
}
