package check_test

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion/check"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all"
	"github.com/brine-salt/brine/states/render"
)

var update = flag.Bool("update", false, "rewrite the reports of the trees")

// A tree is a file of testdata/trees: a comment, its files, and the report of a check of it. "apply: true" in the
// comment means that the tree changes nothing outside @DIR@.

const reportFile = "report"

type tree struct {
	path, name string
	apply      bool
	archive    *txtar.Archive
	report     string
}

func loadTrees(t *testing.T) []*tree {
	t.Helper()
	paths, err := filepath.Glob("testdata/trees/*.txtar")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d trees, %v", len(paths), err)
	}
	var list []*tree
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		tr := &tree{path: p, name: strings.TrimSuffix(filepath.Base(p), ".txtar"), apply: strings.Contains(string(a.Comment), "apply: true"), archive: a}
		for _, f := range a.Files {
			if f.Name == reportFile {
				tr.report = string(f.Data)
			}
		}
		list = append(list, tr)
	}
	return list
}

// plant writes the files below root, and replaces @DIR@ with dir.
func (tr *tree) plant(t *testing.T, root, dir string) {
	t.Helper()
	for _, f := range tr.archive.Files {
		if f.Name == reportFile {
			continue
		}
		path := filepath.Join(root, f.Name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, bytes.ReplaceAll(f.Data, []byte("@DIR@"), []byte(dir)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkTree(t *testing.T, root string, grains map[string]any) *check.Report {
	t.Helper()
	c := &conf.Config{Opts: conf.MinionDefaults(), Given: map[string]bool{}}
	c.Opts["file_client"] = "local"
	log := slog.New(slog.DiscardHandler)
	scratch := t.TempDir()
	env := &modules.Env{ID: "host", Log: log, Templates: render.Render, Opts: func() map[string]any { return c.Opts }, Grains: func() map[string]any { return grains },
		Pillar: func() map[string]any { return map[string]any{} }, OrderedPillar: func() *pyobj.Dict { return pyobj.NewDict() }}
	r, err := check.Run(t.Context(), check.Options{Registry: modules.Default(), States: states.Default(), Config: c, Trees: []string{root}, Env: env, Files: func(roots map[string][]string) modules.Files {
		return fileclient.New(fileclient.Options{Roots: roots, CacheDir: scratch, HashType: "sha256", Log: log})
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func debian() map[string]any {
	return map[string]any{"os": "Debian", "os_family": "Debian", "kernel": "Linux", "id": "host", "osarch": "amd64"}
}

// TestReports: the check of every tree yields the report in its file, with file and line.
func TestReports(t *testing.T) {
	for _, tr := range loadTrees(t) {
		t.Run(tr.name, func(t *testing.T) {
			root := t.TempDir()
			tr.plant(t, root, "/nosuch")
			var b bytes.Buffer
			checkTree(t, root, debian()).Write(&b)
			got := strings.ReplaceAll(b.String(), root+"/", "")
			if *update {
				tr.archive.Files = slices.DeleteFunc(tr.archive.Files, func(f txtar.File) bool { return f.Name == reportFile })
				tr.archive.Files = append(tr.archive.Files, txtar.File{Name: reportFile, Data: []byte(got)})
				if err := os.WriteFile(tr.path, txtar.Format(tr.archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(tr.report, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOtherGrains: branches are evaluated with the given grains.
func TestOtherGrains(t *testing.T) {
	for _, tr := range loadTrees(t) {
		if tr.name != "branches" {
			continue
		}
		root := t.TempDir()
		tr.plant(t, root, "/nosuch")
		if r := checkTree(t, root, debian()); !r.Fine {
			t.Errorf("Debian: %s", r.Verdict)
		}
		r := checkTree(t, root, map[string]any{"os": "Windows", "os_family": "Windows"})
		var failures []string
		for _, f := range r.Findings {
			if f.Level == check.Failure {
				failures = append(failures, f.Name)
			}
		}
		if diff := cmp.Diff([]string{"chocolatey.installed", "reg.present"}, failures); diff != "" {
			t.Errorf("Windows: %s", diff)
		}
	}
}

// TestUsageIsNamed: the trees contain every name that public trees use.
func TestUsageIsNamed(t *testing.T) {
	var all strings.Builder
	for _, tr := range loadTrees(t) {
		for _, f := range tr.archive.Files {
			if f.Name != reportFile {
				all.Write(f.Data)
			}
		}
	}
	text := all.String()
	b, err := os.ReadFile("testdata/usage.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(b)) {
		kind, names, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "# ") {
			continue
		}
		for _, name := range strings.Fields(names) {
			seen++
			pattern := `[^a-z_]` + regexp.QuoteMeta(name) + `\b`
			switch mod, fun, _ := strings.Cut(name, "."); kind {
			case "states":
				pattern = `(?m)\b` + regexp.QuoteMeta(name) + `\b|^  ` + mod + `:\n    - ` + fun + `$`
			case "filters":
				pattern = `\| ` + name + `\b`
			case "tests":
				pattern = `is ` + name + `\b`
			case "renderers":
				pattern = `(?m)^` + name + `\b`
			}
			if !regexp.MustCompile(pattern).MatchString(text) {
				t.Errorf("no tree has the %s %s", strings.TrimSuffix(kind, "s"), name)
			}
		}
	}
	if seen < 250 {
		t.Errorf("only %d names", seen)
	}
}

// TestLargeTree: a thousand files are checked within seconds, and nothing is written into the tree.
func TestLargeTree(t *testing.T) {
	root := t.TempDir()
	text := "{% from 'map.jinja' import m with context %}\n{% for i in range(10) %}\n{{ sls }}-{{ i }}-{{ m }}:\n  file.managed:\n    - name: /x/{{ i }}\n{% endfor %}\n"
	for i := range 1000 {
		dir := filepath.Join(root, "d"+string(rune('a'+i%26)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "s"+strings.Repeat("x", i/26)+".sls"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "map.jinja"), []byte("{% set m = salt['grains.get']('os') %}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	r := checkTree(t, root, debian())
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if !r.Fine || r.Rendered != 1000 || r.Files != 1001 {
		t.Errorf("%+v", r)
	}
	n := 0
	err := filepath.WalkDir(root, func(_ string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil || n != 1001 {
		t.Errorf("%d files afterwards, %v", n, err)
	}
}

// TestConfiguration: each part of a configuration that cannot work is reported with its place.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "minion")
	text := `id: host
mastr: example.org
file_client: local
cython_enable: true
schedule:
  good: {function: test.ping, minutes: 5}
  bad: {function: nosuch.job, minutes: 5}
  __master_alive_127.0.0.1: {function: status.master, seconds: 0}
mine_functions:
  test.ping: []
  nosuch.mine: []
  renamed:
    - mine_function: nosuch.renamed
beacons:
  load: []
  nosuch_beacon: []
return: nosuch_returner
engines:
  - logstash: {}
fileserver_backend: [roots, git]
ext_pillar:
  - vault: path
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := conf.LoadMinion(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(t.Context(), check.Options{Registry: modules.Default(), States: states.Default(), Config: c, Configuration: true, Env: &modules.Env{}, Beacons: []string{"load", "diskusage"}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r.Write(&b)
	want := `minion:7: failure: the function nosuch.job of schedule is missing
minion:11: failure: the function nosuch.mine of mine_functions is missing
minion:13: failure: the function nosuch.renamed of mine_functions is missing
minion:16: failure: the beacon nosuch_beacon is missing
minion:17: failure: the returner nosuch_returner is missing
minion:19: failure: engines are not run: logstash; run it as a service of the host
minion:20: failure: a minion without a master has files from file_roots only, not from gitfs
minion:22: failure: the external pillar vault is missing
minion:2: warning: the option mastr is unknown; did you mean master?
minion:4: warning: the option cython_enable has no effect
minion:8: note: the job __master_alive_127.0.0.1 is stock's own; it is not run
not fine: some of it will not work (1 file, 8 failures, 2 warnings; 0 state files rendered)
`
	if diff := cmp.Diff(want, strings.ReplaceAll(b.String(), dir+"/", "")); diff != "" {
		t.Error(diff)
	}
}

// TestDeclaredOptions: an option that a module declares is not reported.
func TestDeclaredOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "minion")
	if err := os.WriteFile(file, []byte("id: host\nfile_client: local\nshop: {place: here}\nship: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := conf.LoadMinion(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := modules.NewRegistry()
	registry.AddOptions("shop", "storehouse")
	r, err := check.Run(t.Context(), check.Options{Registry: registry, States: states.Default(), Config: c,
		Configuration: true, Env: &modules.Env{}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Text)
	}
	if diff := cmp.Diff([]string{"the option ship is unknown; did you mean shop?"}, got); diff != "" {
		t.Error(diff)
	}
}
