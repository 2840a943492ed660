package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, mode := range []os.FileMode{0o600, 0o644, 0o400, 0o666} {
		if err := WriteFile(path, []byte(mode.String()), mode); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(b) != mode.String() || info.Mode().Perm() != mode {
			t.Errorf("mode %v: %v %q %v", mode, err, b, info.Mode())
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left over: %v", list)
	}
}

func TestLinkIsReplacedNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, path)); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a link: %v", err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the link's target holds %q", b)
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if err := WriteFile(filepath.Join(dir, "no", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left over: %v", list)
	}
}

func TestCreateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	won := make(chan int, 16)
	for i := range cap(won) {
		wg.Go(func() {
			err := Create(path, fmt.Append(nil, i), 0o400)
			if err == nil {
				won <- i
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	var winners []int
	for i := range won {
		winners = append(winners, i)
	}
	b, err := os.ReadFile(path)
	if err != nil || len(winners) != 1 || string(b) != fmt.Sprint(winners[0]) {
		t.Errorf("winners %v, file %q, %v", winners, b, err)
	}
}

// TestRemoveUnfinished: temporary files that a crash left behind are removed, whatever the clock shows. A file that
// is being written, and files with other names, stay.
func TestRemoveUnfinished(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "minion.pem")
	for _, f := range []struct {
		name string
		age  time.Duration
	}{
		{".minion.pem.ABCDEFGH27", time.Minute}, {".minion.pem.BBBBBBBBBB", -time.Hour}, {".minion.pem.CCCCCCCCCC", 0}, {".minion.pem.DDDDDDDDDDD", time.Hour},
		{".minion.pem.abcdefghij", time.Hour}, {".minion.pub.EEEEEEEEEE", time.Hour}, {"minion.pem", time.Hour}, {"minion.pem.FFFFFFFFFF", time.Hour},
	} {
		name, at := filepath.Join(dir, f.name), time.Now().Add(-f.age)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".minion.pem.GGGGGGGGGG"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := RemoveUnfinished(path); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{".minion.pem.CCCCCCCCCC", ".minion.pem.DDDDDDDDDDD", ".minion.pem.GGGGGGGGGG", ".minion.pem.abcdefghij", ".minion.pub.EEEEEEEEEE",
		"minion.pem", "minion.pem.FFFFFFFFFF"}
	if !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}

	// The names have the form of real temporary files.
	f, err := create(path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Minute)
	if err := errors.Join(f.Close(), os.Chtimes(f.Name(), at, at), RemoveUnfinished(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Name()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", f.Name(), err)
	}
	if err := RemoveUnfinished(filepath.Join(dir, "no", "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is missing: %v", err)
	}
}

// TestBrokenReader: if the data ends with an error, the old file stays and no temporary file is left.
func TestBrokenReader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := ReplaceFrom(path, strings.NewReader("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("new"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := ReplaceFrom(path, broken, 0o640); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	b, err := os.ReadFile(path)
	if entries, _ := os.ReadDir(dir); err != nil || string(b) != "old" || len(entries) != 1 {
		t.Errorf("%q %v, %d files", b, err, len(entries))
	}
}
