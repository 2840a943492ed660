package aptpkg

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

const debianSources = `# Debian
Types: deb deb-src
URIs: http://a.invalid/debian
Suites: trixie trixie-updates
Components: main contrib
Signed-By: /usr/share/keyrings/k.gpg

Types: deb
URIs: http://b.invalid/
Suites: stable
Components: main
Enabled: no
X-Note: one
 two
`

// host is a host with a file of the newer form.
func host(t *testing.T) (e *modules.Env, path string) {
	t.Helper()
	e = modulestest.Env(t)
	path = filepath.Join(e.Root, "etc/apt/sources.list.d/debian.sources")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(debianSources), 0o644); err != nil {
		t.Fatal(err)
	}
	e.Runner = modulestest.Runner(func(context.Context, modules.Command) (modules.CommandResult, error) {
		return modules.CommandResult{}, nil
	})
	return e, path
}

func run(t *testing.T, e *modules.Env, fun string, kw map[string]any, args ...any) any {
	t.Helper()
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kw})
	if res.Err != nil {
		t.Fatalf("%s: %v", fun, res.Err)
	}
	return res.Return
}

func TestStanzasKeepTheirText(t *testing.T) {
	a := &sources{stanzas: parseStanzas(debianSources, "f")}
	if text, changed := a.stanzaFile("f"); text != debianSources || changed {
		t.Errorf("%v: %s", changed, cmp.Diff(debianSources, text))
	}
}

func TestStanzasAreRepositories(t *testing.T) {
	e, _ := host(t)
	repos := run(t, e, "pkg.list_repos", nil).(map[string]any)
	if n := len(repos["http://a.invalid/debian"].([]any)); n != 4 {
		t.Errorf("%d repositories, want 4", n)
	}
	got := run(t, e, "pkg.get_repo", nil, "deb http://a.invalid/debian/ trixie-updates contrib")
	want := map[string]any{
		"file": "/etc/apt/sources.list.d/debian.sources", "comps": []any{"main", "contrib"}, "disabled": false, "enabled": true,
		"dist": "trixie-updates", "suites": []any{"trixie", "trixie-updates"}, "type": "deb", "types": []any{"deb", "deb-src"},
		"uri": "http://a.invalid/debian", "uris": []any{"http://a.invalid/debian"}, "architectures": []any{},
		"line":     "deb [signed-by=/usr/share/keyrings/k.gpg] http://a.invalid/debian trixie-updates main contrib",
		"signedby": "/usr/share/keyrings/k.gpg",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStanzasChange(t *testing.T) {
	e, path := host(t)
	text := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	line := "deb [signed-by=/k.gpg] http://b.invalid stable main"
	run(t, e, "pkg.mod_repo", map[string]any{"enabled": true, "refresh": false, "comps": "main,extra"}, line)
	all := parseStanzas(text(path), "f")
	if all[1].get("Enabled") != "" || all[1].get("Components") != "main extra" || all[1].get("Signed-By") != "/k.gpg" || all[1].get("X-Note") != "one\n two" {
		t.Errorf("the stanza is now %s", all[1])
	}
	file := "/etc/apt/sources.list.d/new.sources"
	run(t, e, "pkg.mod_repo", map[string]any{"refresh": false, "file": file}, "deb [signed-by=/k.gpg] http://c.invalid ./ x")
	if want, got := "Types: deb\nURIs: http://c.invalid\nSuites: ./\nComponents: x\nSigned-By: /k.gpg\n", text(e.Path(file)); got != want {
		t.Error(cmp.Diff(want, got))
	}
	run(t, e, "pkg.del_repo", nil, "deb http://a.invalid/debian trixie main contrib")
	run(t, e, "pkg.del_repo", nil, "deb http://a.invalid/debian trixie-updates contrib")
	all = parseStanzas(text(path), "f")
	if all[0].get("Suites") != "trixie-updates" || all[0].get("Components") != "main" {
		t.Errorf("the stanza is now %s", all[0])
	}
	run(t, e, "pkg.del_repo", nil, "deb http://c.invalid ./ x")
	if _, err := os.Stat(e.Path(file)); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}
