package openstack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSnippets: a test uses every snippet of docs/openstack. A block has a name, and a test that contains the page's
// name, or its own snippet function, contains that name. Templates on the page for authors are files that tests run.
// A block that no test can run follows a comment <!-- not run: why -->.
func TestSnippets(t *testing.T) {
	tests := map[string]string{} // by path
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(d.Name(), "test_") {
			return err
		}
		b, err := os.ReadFile(path)
		tests[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/openstack/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages %v %v", pages, err)
	}
	fence := regexp.MustCompile("(?m)^ *```(\\w*) ?(.*)$")
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		blocks := fence.FindAllSubmatchIndex(b, -1)
		for i := 0; i+1 < len(blocks); i += 2 {
			m := blocks[i]
			before, snippet := strings.TrimSpace(string(b[:m[0]])), string(b[m[4]:m[5]])
			last := before[strings.LastIndex(before, "\n")+1:]
			if strings.HasSuffix(last, ", which the tests run:") || strings.HasPrefix(last, "<!-- not run: ") {
				continue
			}
			if snippet == "" {
				t.Errorf("%s: the block after %q has no name", name, last)
				continue
			}
			if !used(tests, name, snippet) {
				t.Errorf("%s: no test uses the snippet %s", name, snippet)
			}
		}
	}
}

// used reports whether a test that reads a page contains the name of a snippet.
func used(tests map[string]string, page, snippet string) bool {
	for path, text := range tests {
		// The tests of one package share the function that reads the page.
		reads := strings.Contains(text, page) || filepath.Dir(path) == "interop" && page == "heat.md"
		if reads && (strings.Contains(text, `"`+snippet+`"`) || strings.Contains(text, " "+snippet+`\n(`)) {
			return true
		}
	}
	return false
}
