package brine_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownDirs matches the directories of a test run, of a build and of the programs that tests install. Recordings must have a name in their
// place, since they differ from machine to machine.
var ownDirs = regexp.MustCompile(`/root/\.cache/|/home/\w+/\.cache/|/Test[A-Za-z]+\d{4,}/|/tmp/go-build`)

// TestRecordingsNameNoMachine reads all that is recorded below testdata, packed files too.
func TestRecordingsNameNoMachine(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || path == "bin") {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || !strings.Contains(filepath.ToSlash(path), "/testdata/") {
			return nil
		}
		files++
		text, err := recorded(path)
		if err == nil && ownDirs.Match(text) {
			t.Errorf("%s contains %q", path, ownDirs.Find(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Fatalf("only %d files were looked at", files)
	}
}

// recorded returns the content of a file, unpacked.
func recorded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if filepath.Ext(path) != ".gz" {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
