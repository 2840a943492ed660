package brine_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// borrowed matches a port that the kernel chose and that is released for another program, in Go and in Python.
var borrowed = regexp.MustCompile(`= [^\n]*\.Addr\(\)[^\n]*\n\s*(_ = )?\w+\.Close\(\)|\.bind\(\(['"][^'"]*['"], 0\)\)\n\s*return s\.getsockname`)

// TestNoPortOfTheKernelIsReleased: the kernel gives such a port to another connection before the program that needs it
// can bind it. Package freeport finds ports outside the kernel's range.
func TestNoPortOfTheKernelIsReleased(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".py" || path == "freeports_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if at := borrowed.FindIndex(text); at != nil {
			t.Errorf("%s:%d: a port of the kernel is released; use package freeport", path, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Fatalf("only %d files were read", files)
	}
}
