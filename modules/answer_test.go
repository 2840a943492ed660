package modules

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnswer: a failure answers no value, not even an empty one; a list of texts is one of any, never nil.
func TestAnswer(t *testing.T) {
	failure := errors.New("no disk")
	for _, tt := range []struct {
		got  func() (any, error)
		want any
		err  error
	}{
		{func() (any, error) { return Answer("x", nil) }, "x", nil},
		{func() (any, error) { return Answer(map[string]any{}, failure) }, nil, failure},
		{func() (any, error) { return AnswerList([]string{"a"}, nil) }, []any{"a"}, nil},
		{func() (any, error) { return AnswerList(nil, nil) }, []any{}, nil},
		{func() (any, error) { return AnswerList(nil, failure) }, nil, failure},
		{func() (any, error) { return Answer(Text("x", "split")) }, "x", nil},
	} {
		got, err := tt.got()
		if diff := cmp.Diff(tt.want, got); diff != "" || err != tt.err {
			t.Errorf("%v: %s", err, diff)
		}
	}
	if _, err := Text(nil, "split"); err == nil ||
		ExceptionText(err) != "'NoneType' object has no attribute 'split'" {
		t.Error(err)
	}
}

// TestIsFile: below the root of the host, directories and what is missing are no files, links to files are.
func TestIsFile(t *testing.T) {
	e := &Env{Root: t.TempDir()}
	if err := os.WriteFile(filepath.Join(e.Root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(e.Root, "link")); err != nil {
		t.Skip("no symbolic links:", err)
	}
	for path, want := range map[string]bool{"/file": true, "/link": true, "/": false, "/missing": false} {
		if got := e.IsFile(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
