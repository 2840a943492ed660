package murano

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/python/yaml"
)

// docPage returns docs/openstack/murano.md and a snippet in it.
func docPage(t *testing.T, snippet string) (page, block string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/openstack/murano.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```\\w+ " + snippet + "\n(.*?)```").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("murano.md has no snippet %s", snippet)
	}
	return string(b), m[1]
}

// TestPage follows the page: it creates the key, signs the plan with openssl, and compares the result that is shown.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	sh := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, script)
		}
		return string(out)
	}
	_, key := docPage(t, "key")
	sh(key)
	page, conf := docPage(t, "minion")
	v, err := yaml.Parse([]byte(strings.ReplaceAll(conf, "/etc/salt", dir)), "murano.md")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t)
	g.env.Opts()["murano"], g.env.Opts()["id"] = v.(map[string]any)["murano"], "db-7"
	_, plan := docPage(t, "plan")
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	_, run := docPage(t, "run")
	sh(`salt() { printf %s "${3#plan=}" >arg1; printf %s "${4#signature=}" >arg2; }` + "\n" + run)
	args := [2]string{}
	for i, name := range [...]string{"arg1", "arg2"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		args[i] = string(b)
	}
	res := g.call(args[0], args[1])
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	got := plainJSON(t, res.Return).(map[string]any)
	delete(got, "ID")
	delete(got, "Time")
	var want any
	_, shown := docPage(t, "result")
	if err := json.Unmarshal([]byte(shown), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, any(got)); d != "" {
		t.Error(d)
	}
	if said, _, _ := strings.Cut(bodyRefused, " Leave"); !strings.Contains(page, "> "+said) {
		t.Errorf("the page does not say %q", said)
	}
}

// TestPageOptions: the table of options matches the code.
func TestPageOptions(t *testing.T) {
	page, build := docPage(t, "build")
	source, err := os.ReadFile("trust.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\t\tcase \"(\\w+)\":").FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(page, "| `"+m[1]+"` |") {
			t.Errorf("the page has no option %s", m[1])
		}
	}
	words, err := shlex.Split(build)
	if err != nil || len(words) != 4 || words[0] != "make" || words[1] != "agent" || !strings.HasSuffix(words[3], " openstack/murano") {
		t.Errorf("%q %v", words, err)
	}
}
