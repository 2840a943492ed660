package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBuild builds an agent with four modules, which contains these modules only.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	a := agent{root: "../../..", name: "small-minion", dir: dir, out: &out}
	if err := a.run(words([]string{"sys test,saltutil", "modules/hashutil"})); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^an agent without modules +\d+\.\d\d MB\n  sys +\n  test +\n  saltutil +\n  modules/hashutil +\n.*/small-minion +\d+\.\d\d MB\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte("id: small\nroot_dir: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := exec.CommandContext(t.Context(), filepath.Join(dir, "small-minion"), "call", "-c", dir, "--local", "--out=json", "sys.list_modules").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Local []string }
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"hashutil", "saltutil", "sys", "test"}, got.Local); d != "" {
		t.Error(d)
	}
	if left, err := filepath.Glob("../../agent-*"); err != nil || len(left) > 0 {
		t.Errorf("left in the tree: %v %v", left, err)
	}
}

// TestTroveMinion: the list in docs/build-your-own.md results in the main.go of trove-minion.
func TestTroveMinion(t *testing.T) {
	page, err := os.ReadFile("../../../docs/build-your-own.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)make agent NAME=my-trove-minion MODULES="(.*?)"`).FindSubmatch(page)
	if m == nil {
		t.Fatal("the page does not build trove-minion")
	}
	var out strings.Builder
	a := agent{root: "../../..", name: "my-trove-minion", print: true, out: &out}
	if err := a.run(strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " "))); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../../openstack/cmd/trove-minion/main.go")
	if err != nil {
		t.Fatal(err)
	}
	// The text after the comment is exactly the same.
	after := func(text string) string { return text[strings.Index(text, "package main"):] }
	if d := cmp.Diff(after(string(want)), after(out.String())); d != "" {
		t.Error(d)
	}
	if !strings.Contains(string(page), after(string(want))) {
		t.Error("the page does not show trove-minion's main.go")
	}
}

func TestPackages(t *testing.T) {
	a := agent{root: "../../.."}
	for word, want := range map[string][]string{"cmd": {"cmdmod"}, "cmdmod": {"cmdmod"}, "test": {"test"}, "service": {"debianservice", "systemdservice"}} {
		got, err := a.packages(word)
		if err != nil {
			t.Errorf("%s: %v", word, err)
		}
		for _, name := range want {
			if !slices.Contains(got, ours+"/modules/"+name) {
				t.Errorf("%s: %v lacks %s", word, got, name)
			}
		}
	}
	for word, want := range map[string]string{"nothing": "no module has this name", "states/nothing": "no Go package", "../../x/": "no Go package"} {
		if _, err := a.packages(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
	for name, list := range map[string][]string{"../x": {"test"}, "": {"test"}, "x": nil} {
		if err := (&agent{root: a.root, name: name}).run(list); err == nil {
			t.Errorf("%q %v is built", name, list)
		}
	}
}
