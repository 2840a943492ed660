package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states"
)

// TestHouseRules tests every module of the program.
func TestHouseRules(t *testing.T) {
	n := 0
	for _, m := range modules.Default().All() {
		modulestest.House(t, m)
		n++
	}
	if n < 90 {
		t.Errorf("%d modules only", n)
	}
}

// TestDocumentedFunctions: each heading of a docs.txt names a function of the program.
func TestDocumentedFunctions(t *testing.T) {
	known := map[string]bool{}
	for _, m := range append(modules.Default().All(), states.Default().Declared()...) {
		for name := range m.Names() {
			known[m.Called()+"."+name] = true
		}
	}
	n := 0
	for _, wing := range []string{"modules", "states"} {
		files, err := filepath.Glob("../../" + wing + "/*/docs.txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				name, heading := strings.CutPrefix(strings.TrimSpace(line), "# ")
				if !heading || line[0] != '#' {
					continue
				}
				n++
				if !known[name] {
					t.Errorf("%s describes %s, which is no function", path, name)
				}
			}
		}
	}
	if n < 300 {
		t.Errorf("%d functions only", n)
	}
}
