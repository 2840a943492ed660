//go:build interop

package render

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// stockPython is the Python of the Salt that is the reference.
func stockPython(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BRINE_SALT_3007")
	if dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("BRINE_SALT_3007 is not set")
		}
		t.Skip("BRINE_SALT_3007 is not set; see interop/fetch-salt.sh")
	}
	return filepath.Join(dir, "bin", "python")
}

// TestFiltersAgainstStock renders every filter, test and error of testdata/filters.txt with stock Salt and with ours.
func TestFiltersAgainstStock(t *testing.T) {
	b, err := os.ReadFile("testdata/filters.txt")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			texts = append(texts, strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), stockPython(t), "testdata/filters.py", t.TempDir())
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
	c := modules.NewRegistry().NewCall(&modules.Env{Opts: func() map[string]any { return map[string]any{} }}, "test", "", nil)
	for i, text := range texts {
		v, err := Render(t.Context(), c, modules.Template{Text: text, Pipe: "jinja", Engine: true, SaltEnv: "base"})
		want, got := "", ""
		if stock.Results[i][0] != nil {
			want = *stock.Results[i][0]
		} else {
			want = "error: " + withoutTrace(*stock.Results[i][1])
		}
		if err != nil {
			got = "error: " + err.Error()
		} else {
			got, _ = v.(string)
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	all := string(b)
	for _, name := range stock.Filters {
		if saltFilter(name) == nil && name != "indent" { // indent is Jinja's own
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

// withoutTrace takes Python's stack out of the text of an unexpected error; we have none.
func withoutTrace(s string) string {
	before, rest, ok := strings.Cut(s, "\nTraceback (most recent call last):\n")
	if !ok {
		return s
	}
	_, after, ok := strings.Cut(rest, "\n; line ")
	if !ok {
		return before
	}
	// The stack is a part of the excerpt, too.
	after, _, _ = strings.Cut(after, "\nTraceback (most recent call last):")
	return before + "; line " + after + "\n---"
}
