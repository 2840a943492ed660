package trove

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/yaml"
)

// docPage returns a page of the documentation, and one of its snippets.
func docPage(t *testing.T, snippet string) (text, block string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/openstack/trove-guest.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```\\w+ " + snippet + "\n(.*?)```").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("trove-guest.md has no snippet %s", snippet)
	}
	return string(b), m[1]
}

// TestPage: the configuration on the page works, and the page names every option and every function.
func TestPage(t *testing.T) {
	text, block := docPage(t, "minion")
	v, err := yaml.Parse([]byte(block), "trove-guest.md")
	if err != nil {
		t.Fatal(err)
	}
	conf := v.(map[string]any)
	s, err := readSettings(conf["trove"])
	if err != nil || s.manager != "mariadb" || s.version != "10.11" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, ok := conf["beacons"].(map[string]any)["trove"].([]any); !ok {
		t.Errorf("the beacons are %v", conf["beacons"])
	}
	_, block = docPage(t, "container")
	if v, err = yaml.Parse([]byte(block), "trove-guest.md"); err != nil {
		t.Fatal(err)
	}
	if s, err := readSettings(v.(map[string]any)["trove"]); err != nil || !s.inContainer() || s.owner != "1001" || s.dockerSocket != "/var/run/docker.sock" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, o := range options() {
		if !strings.Contains(text, "`"+o.name+"`") {
			t.Errorf("the page does not name the option %s", o.name)
		}
	}
	for _, m := range Methods() {
		if !strings.Contains(text, "`"+m.Name+"`") {
			t.Errorf("the page does not name the function %s", m.Name)
		}
	}
}

// TestPageStores: the stores on the page can be configured; a store that connects only on first use says what it
// needs.
func TestPageStores(t *testing.T) {
	_, block := docPage(t, "stores")
	v, err := yaml.Parse([]byte(block), "trove-guest.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"directory": "", "s3": "",
		"swift": "cannot use the store swift: it has neither username nor application_credential_id, and the call has no token",
		"bad":   "cannot use the store: there is no acces_key"} {
		conf, _ := v.(map[string]any)[name].(map[string]any)
		if name == "bad" {
			conf = map[string]any{"type": "s3", "acces_key": "x"}
		}
		h := newHost(t, map[string]any{"datastore_manager": "mariadb", "store": conf})
		s, err := readSettings(h.env.Opts()["trove"])
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{settings: s, c: h.reg.NewCall(h.env, "trove.rpc_ping", "", nil)}
		if _, err := g.openStore(t.Context()); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInstall runs the page's installation in a directory.
func TestInstall(t *testing.T) {
	_, block := docPage(t, "install")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trove-minion"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-e", "-c", strings.ReplaceAll(block, "/usr/bin", bin))
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"salt-minion", "salt-call"} {
		if got, err := filepath.EvalSymlinks(filepath.Join(bin, name)); err != nil || filepath.Base(got) != "trove-minion" {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
}
