package runner

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// TestDocs: the page of the master names every runner there is, and those that it calls missing are missing.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/master.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## salt-run\n")
	text, _, _ = strings.Cut(text, "\n## ")
	has, lacks, ok := strings.Cut(text, "\n- These are missing")
	if !ok {
		t.Fatal("no list of what is missing")
	}
	lacks, _, _ = strings.Cut(lacks, "They answer")
	h, _ := newHost(t)
	h.Exec = func(context.Context, modules.Request) (any, error) { return nil, nil }
	c := NewClient(h)
	there := map[string]bool{}
	for _, fun := range c.registry.Functions(c.env) {
		module, _, _ := strings.Cut(fun, ".")
		there[fun], there[module+".*"] = true, true
		if !strings.Contains(has, "`"+fun+"`") && !strings.Contains(has, "`"+module+".") {
			t.Errorf("docs/master.md does not name %s", fun)
		}
	}
	missing := regexp.MustCompile("`([a-z_]+\\.[a-z_*]+)`").FindAllStringSubmatch(lacks, -1)
	if len(missing) < 10 || len(there) < 100 {
		t.Errorf("found %d missing and %d present", len(missing), len(there))
	}
	for _, m := range missing {
		if there[m[1]] {
			t.Errorf("%s is there", m[1])
		}
	}
}
