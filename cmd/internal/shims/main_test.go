package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

const root = "../../.."

// TestShims: the directories contain what the generator writes. "make shims" updates them.
func TestShims(t *testing.T) {
	for _, w := range wings {
		want, err := w.shims(root)
		if err != nil {
			t.Fatal(err)
		}
		if len(want) < 10 {
			t.Errorf("%s: %d shims", w.all, len(want))
		}
		got := map[string]string{}
		list, err := os.ReadDir(filepath.Join(root, w.all))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Name() == "all.go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, w.all, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got[e.Name()] = string(text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-wanted +found):\n%s", w.all, diff)
		}
	}
}

// TestDocs: each docs.txt.gz has the text of docs.txt. "make shims" writes it again.
func TestDocs(t *testing.T) {
	list, err := docsFiles(root)
	if err != nil || len(list) < 10 {
		t.Fatalf("%d texts, %v", len(list), err)
	}
	for _, path := range list {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpack(path + ".gz")
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s.gz is older than the text, run make shims (-wanted +found):\n%s", path, diff)
		}
	}
}

// TestPackDocs: only a text that changed is written again.
func TestPackDocs(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, "modules/thing")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "docs.txt")
	for _, text := range []string{"# thing.list\n\nList.\n", "# thing.list\n\nList all.\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := packDocs(work); err != nil {
			t.Fatal(err)
		}
		if got, err := unpack(path + ".gz"); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	before := time.Unix(1e9, 0)
	if err := os.Chtimes(path+".gz", before, before); err != nil {
		t.Fatal(err)
	}
	if err := packDocs(work); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path + ".gz"); err != nil || !after.ModTime().Equal(before) {
		t.Errorf("written again: %v, %v", after, err)
	}
}

const stockModule = `"""
Work with a thing
"""
__virtualname__ = "thing"
__func_alias__ = {"list_": "list"}

def __virtual__():
    return __virtualname__

def list_(name, deep=False, *args, **kwargs):
    pass

def set(name, value, *, limit=3, rate=0.5, how=None, kinds=("a", "b"), where={"x": 1}, at=time.time()):
    pass

def _hidden():
    pass
`

// TestBegin: a new module contains stock's declarations, and compiles.
func TestBegin(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		prereq.Missing(t, "python3")
	}
	salt, work := t.TempDir(), t.TempDir()
	for _, wing := range []string{"modules", "states"} {
		dir := filepath.Join(salt, wing)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "thing_mod.py"), []byte(stockModule), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(work, wing, "testdata/stock"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []string{"modules/thing_mod", "states/thing_mod"} {
		if err := beginModule(work, at, salt); err != nil {
			t.Fatal(err)
		}
		if err := beginModule(work, at, salt); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("begun twice: %v", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(work, "modules/thing_mod/thing_mod.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Name: "thing_mod", Virtual: "thing"`, `{Name: "list", Python: "list_", Args: "args", Kwargs: "kwargs"`,
		`{Name: "deep", Default: false}`, `{Name: "limit", Default: int64(3), KeywordOnly: true}`,
		`{Name: "rate", Default: 0.5, KeywordOnly: true}`, `{Name: "how", Optional: true, KeywordOnly: true}`,
		`{Name: "kinds", Default: []any{"a", "b"}, KeywordOnly: true}`,
		`{Name: "where", Default: map[string]any{"x": int64(1)}, KeywordOnly: true}`,
		`{Name: "at", Optional: true /* stock: time.time() */, KeywordOnly: true}`,
		`"cannot run thing.set: it is not written yet"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("without %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hidden") {
		t.Errorf("a private function:\n%s", text)
	}
	cases, err := os.ReadFile(filepath.Join(work, "modules/testdata/stock/thing_mod.yaml"))
	if want := "- {fun: thing.list, args: [x]}\n- {fun: thing.set, args: [x, x]}\n"; err != nil || string(cases) != want {
		t.Errorf("cases %q, %v", cases, err)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for _, file := range []string{"modules/thing_mod/thing_mod.go", "modules/thing_mod/thing_mod_test.go",
		"states/thing_mod/thing_mod.go", "states/thing_mod/thing_mod_test.go"} {
		abs, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][abs] = filepath.Join(work, file)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"./modules/thing_mod", "./states/thing_mod"} {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", filepath.Join(work, "test"), "-overlay", path, dir)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s does not compile: %v\n%s", dir, err, out)
		}
	}
}

// TestBadBeginnings: no files are written for a module that cannot be begun.
func TestBadBeginnings(t *testing.T) {
	for at, want := range map[string]string{
		"modules/Thing":   "must be modules/NAME or states/NAME",
		"modules/../x":    "must be modules/NAME or states/NAME",
		"runners/thing":   "must be modules/NAME or states/NAME",
		"modules/missing": "cannot find the module in Salt's source",
	} {
		work := t.TempDir()
		if err := beginModule(work, at, work); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
		if list, _ := os.ReadDir(work); len(list) > 0 {
			t.Errorf("%s left %v", at, list)
		}
	}
}
