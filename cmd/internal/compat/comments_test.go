package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemarks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "modules")
	if err := os.MkdirAll(filepath.Join(dir, "x509_v2"), 0o755); err != nil {
		t.Fatal(err)
	}
	src := `// Package x509_v2 is one.
package x509_v2

// Compatibility.
//
// x509.one differs: it goes on
// here.
// x509.two, x509.three and x509.one differ: too.
// x509.four is added: Salt 3008 has it.
// That is no remark.
// x509.* differ: all of them.

// Wrap is something else.
`
	if err := os.WriteFile(filepath.Join(dir, "x509_v2", "x.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := remarksIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	var notes map[string]string
	general := addRemarks(&notes, list)
	want := map[string]string{"x509.one": "it goes on here. too.", "x509.two": "too.", "x509.three": "too."}
	if diff := cmp.Diff(want, notes) + cmp.Diff([]string{"`x509.*`: all of them."}, general); diff != "" {
		t.Error(diff)
	}
}
