package oracle

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Absent reads "<function> is absent: <reason>" in the comments of Go files, and "<function> is added: <reason>" for those that
// a later Salt has. A function without module belongs to the module that is called so.
func Absent(t testing.TB, called string, files ...string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	said := regexp.MustCompile(`(?m)^// ([a-z0-9_.]+(?:, [a-z0-9_.]+)*) (?:is|are) (?:absent|added): .+$`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range said.FindAllStringSubmatch(string(text), -1) {
			for _, fun := range strings.Split(found[1], ", ") {
				if !strings.Contains(fun, ".") {
					fun = called + "." + fun
				}
				out[fun] = true
			}
		}
	}
	return out
}

// Sources are the Go files of the packages that declare a module, in a file that matches a pattern.
func Sources(t testing.TB, pattern, module string) []string {
	t.Helper()
	declarations, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range declarations {
		text, err := os.ReadFile(d)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `Name: "`+module+`"`) {
			files, _ := filepath.Glob(filepath.Dir(d) + "/*.go")
			list = append(list, files...)
		}
	}
	return list
}
