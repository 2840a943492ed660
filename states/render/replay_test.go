package render

import (
	"os"
	"strings"
	"testing"

	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
)

// answers is the file of stock's answers to the templates of testdata/filters.txt, one on each line. `make answers`
// asks stock again.
const answers = "testdata/stock/answers"

// filterTemplates returns the templates of testdata/filters.txt. There is one for every filter, test and error.
func filterTemplates(t *testing.T) (texts []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/filters.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			texts = append(texts, strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	return texts
}

// rendered returns the output of a template, or "error: " and the reason.
func rendered(t *testing.T, text string) string {
	t.Helper()
	opts := func() map[string]any { return map[string]any{} }
	c := modules.NewRegistry().NewCall(&modules.Env{Opts: opts}, "test", "", nil)
	v, err := Render(t.Context(), c, modules.Template{Text: text, Pipe: "jinja", Engine: true, SaltEnv: "base"})
	if err != nil {
		return "error: " + err.Error()
	}
	out, _ := v.(string)
	return out
}

// TestReplay renders every template of testdata/filters.txt and compares the output with stock's recorded answer.
func TestReplay(t *testing.T) {
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, text := range filterTemplates(t) {
		key := oracle.Key(text)
		book.Know("filters", key)
		kept, ok := book.Find("filters", key)
		if !match.MatchString(text) || !tally.Count(t, text, kept, ok) {
			continue
		}
		if got := rendered(t, text); got != kept.Stock {
			t.Errorf("%s\n got %s\nwant %s", text, got, kept.Stock)
			book.Suspect("filters", kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}
