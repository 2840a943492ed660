package oracle

import (
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/yaml"
)

// ParseTree parses a tree of files that is one text: a head in YAML, then files after lines "-- path --". name is for
// errors, which end the test.
func ParseTree(t testing.TB, name, text string) (head map[string]any, files map[string]string) {
	t.Helper()
	files = map[string]string{}
	var top strings.Builder
	file := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --\n") {
			file = strings.TrimSuffix(strings.TrimPrefix(line, "-- "), " --\n")
			files[file] = ""
		} else if file != "" {
			files[file] += line
		} else {
			top.WriteString(line)
		}
	}
	v, err := yaml.Parse([]byte(top.String()), name)
	if err != nil {
		t.Fatalf("%v in %s", err, top.String())
	}
	head, _ = v.(map[string]any)
	return head, files
}
