package pyglob

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "d", "e"), 0o755), os.Mkdir(filepath.Join(dir, "d2"), 0o755))
	for _, f := range []string{"a1", "a2", ".h", "d/x", "d2/x", "d/e/y"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	below := func(p string) string { return filepath.Join(dir, p) }
	for pattern, want := range map[string][]string{
		"/a?": {"/a1", "/a2"}, "/*": {"/a1", "/a2", "/d", "/d2"}, "/.*": {"/.h"}, "/d*/x": {"/d/x", "/d2/x"}, "/d/": {"/d/"},
		"/[d]/e/*": {"/d/e/y"}, "/nosuch": nil, "/a1": {"/a1"}, "/*/": {"/d/", "/d2/"}, "/a1/*": nil,
	} {
		got := Glob(below, pattern)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
