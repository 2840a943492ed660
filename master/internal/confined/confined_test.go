package confined_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/master/internal/confined"
)

func open(t *testing.T) *confined.Dir {
	t.Helper()
	d, err := confined.Open(filepath.Join(t.TempDir(), "d"), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestWriteReplacesInOneStep(t *testing.T) {
	d := open(t)
	for _, text := range []string{"one", "two"} {
		if err := d.Write("f", []byte(text), 0o640, true); err != nil {
			t.Fatal(err)
		}
		b, info, err := d.Read("f", 10)
		if err != nil || string(b) != text || info.Mode().Perm() != 0o640 {
			t.Fatalf("read %q %v %v", b, info, err)
		}
	}
	list, _ := d.List(".")
	if len(list) != 1 {
		t.Fatalf("leftovers: %v", list)
	}
}

func TestReadLimit(t *testing.T) {
	d := open(t)
	if err := d.Write("f", make([]byte, 11), 0o600, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Read("f", 10); err == nil {
		t.Fatal("11 bytes were read with a limit of 10")
	}
}

func TestNamesCannotLeave(t *testing.T) {
	d := open(t)
	outside := filepath.Join(filepath.Dir(d.Path()), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(d.Path(), "rel")); err != nil {
		prereq.Missing(t, "symbolic links")
	}
	os.Symlink(outside, filepath.Join(d.Path(), "abs"))
	for _, name := range []string{"../secret", "/etc/passwd", "rel", "abs", "x/../../secret",
		outside} {
		if b, _, err := d.Read(name, 100); err == nil {
			t.Errorf("%q was read: %q", name, b)
		}
		if f, _, err := d.OpenFile(name); err == nil {
			f.Close()
			t.Errorf("%q was opened", name)
		}
		if err := d.WriteAt(name, []byte("y"), 0, false, 0o600); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if b, _ := os.ReadFile(outside); string(b) != "x" {
		t.Fatalf("the file outside changed: %q", b)
	}
}

func TestPipeIsNotWaitedFor(t *testing.T) {
	d := open(t)
	if err := mkfifo(filepath.Join(d.Path(), "pipe")); err != nil {
		prereq.Missing(t, "named pipes")
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := d.OpenFile("pipe")
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, confined.ErrNotRegular) {
			t.Fatalf("error %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("opening a pipe blocks")
	}
}

func TestCreateOnlyOnce(t *testing.T) {
	d := open(t)
	if made, err := d.Create("f", []byte("1"), 0o600); !made || err != nil {
		t.Fatal(made, err)
	}
	if made, err := d.Create("f", []byte("2"), 0o600); made || err != nil {
		t.Fatal(made, err)
	}
	if b, _, _ := d.Read("f", 9); string(b) != "1" {
		t.Fatalf("content %q", b)
	}
	if _, err := d.Stat("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestWriteAtLeavesNoHoles(t *testing.T) {
	d := open(t)
	if err := d.WriteAt("f", []byte("abc"), 0, true, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteAt("f", []byte("def"), 3, false, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteAt("f", []byte("x"), 7, false, 0o600); err == nil {
		t.Fatal("a hole was written")
	}
	if b, _, _ := d.Read("f", 9); string(b) != "abcdef" {
		t.Fatalf("content %q", b)
	}
}
