package docs

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// TestGettersOfCalls: each c.NAME in the tables of what functions and states get is a method or field of the Call, and
// every getter of an argument is there.
func TestGettersOfCalls(t *testing.T) {
	name := regexp.MustCompile("`c\\.([A-Z]\\w*)")
	for page, call := range map[string]reflect.Type{
		"modules.md": reflect.TypeFor[*modules.Call](), "states.md": reflect.TypeFor[*states.Call](),
	} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, m := range name.FindAllStringSubmatch(line, -1) {
				named[m[1]] = true
				_, method := call.MethodByName(m[1])
				_, field := call.Elem().FieldByName(m[1])
				if !method && !field {
					t.Errorf("%s: there is no c.%s", page, m[1])
				}
			}
		}
		if len(named) < 10 {
			t.Errorf("%s: only %v", page, named)
		}
		if page == "modules.md" {
			for _, getter := range []string{"Value", "Str", "Bool", "Strings", "Int", "Float", "Seconds", "Map", "Given", "InOrder"} {
				if !named[getter] {
					t.Errorf("%s: c.%s is missing", page, getter)
				}
			}
		}
	}
}

// TestVerbsOfTheMaster: the table of the ways to send a job names methods of a master only, and all of them.
func TestVerbsOfTheMaster(t *testing.T) {
	b, err := os.ReadFile("embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n| method | returns when |")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile("\n\\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
		if _, ok := reflect.TypeFor[*master.Master]().MethodByName(m[1]); !ok {
			t.Errorf("a master has no %s", m[1])
		}
	}
	for _, verb := range []string{"Publish", "Submit", "Run", "PlaceOrder"} {
		if !slices.Contains(named, verb) {
			t.Errorf("%s is missing in %q", verb, named)
		}
	}
}
