package pillar_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/pillar"
)

// compileTree compiles the pillar of a minion that has only a file tree. The second result is the log.
func compileTree(t *testing.T, id string, args map[string]any) (*pyobj.Dict, string) {
	t.Helper()
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	c := pillar.New(pillar.Options{Registry: modules.NewRegistry(), Env: modules.Env{Log: l}, Log: l,
		Opts: map[string]any{"ext_pillar": []any{map[string]any{"file_tree": args}}}})
	out, err := c.Compile(context.Background(), pillar.Request{ID: id, Saltenv: "base"})
	if err != nil {
		t.Fatal(err)
	}
	return out, log.String()
}

// TestFileTreeLinks checks that links to directories become empty dicts unless they are followed, and that a circle
// of links results in an error.
func TestFileTreeLinks(t *testing.T) {
	root := t.TempDir()
	host := filepath.Join(root, "hosts", "m")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(host, "real"), 0o755),
		os.WriteFile(filepath.Join(host, "real", "f"), []byte("text\n"), 0o644),
		os.Symlink("real", filepath.Join(host, "link")),
		os.Symlink("nowhere", filepath.Join(host, "broken")),
		os.Symlink("real/f", filepath.Join(host, "file")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	real := map[string]any{"f": []byte("text")}
	for _, c := range []struct {
		follow bool
		link   map[string]any
	}{{false, map[string]any{}}, {true, real}} {
		out, log := compileTree(t, "m", map[string]any{"root_dir": root, "follow_dir_links": c.follow})
		want := map[string]any{"real": real, "link": c.link, "file": []byte("text")}
		if diff := cmp.Diff(want, pyobj.PlainMap(out)); diff != "" {
			t.Errorf("follow_dir_links %v: %s", c.follow, diff)
		}
		if want := filepath.Join(host, "broken") + ": not a regular file"; !strings.Contains(log, want) {
			t.Errorf("the log does not say %q: %s", want, log)
		}
	}
	if err := os.Symlink(".", filepath.Join(host, "real", "circle")); err != nil {
		t.Fatal(err)
	}
	out, _ := compileTree(t, "m", map[string]any{"root_dir": root, "follow_dir_links": true})
	if got := pyobj.Repr(out.Value("_errors")); !strings.Contains(got, "more than 40 directories in each other") {
		t.Errorf("links in a circle: %s", got)
	}
}

// TestFileTreeStaysInside checks that an id that is a path reads no files.
func TestFileTreeStaysInside(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"hosts/m", "secret"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "secret", "f"), []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../secret", "m/../../secret", "..", "."} {
		out, _ := compileTree(t, id, map[string]any{"root_dir": root})
		if got := pyobj.Repr(out); strings.Contains(got, "hunter2") || !strings.Contains(got, "it is no file name") {
			t.Errorf("%s: %s", id, got)
		}
	}
}
