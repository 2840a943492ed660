package runlock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTake: a second process gets the id of the holder, and the lock once it is released, whatever the file contains.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, []byte("123456789012 of an old process"), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Take(path); !errors.As(err, &held) || held.PID != os.Getpid() || held.Path != path {
		t.Fatalf("%v, %+v", err, held)
	}
	release()
	if release, err = Take(path); err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := Take(filepath.Join(path, "no", "directory")); err == nil || errors.As(err, &held) {
		t.Error(err)
	}
}
