//go:build unix

package saltlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestForeignLink: where a user owns the directory of logs, a link of that user makes root write to no other file, neither at the start
// nor when the link comes later; a link of root's own is followed.
func TestForeignLink(t *testing.T) {
	prereq.Root(t)
	const user = 65534
	dir := t.TempDir()
	target, path := filepath.Join(t.TempDir(), "target"), filepath.Join(dir, "minion")
	link := func(uid int) {
		t.Helper()
		_ = os.Remove(path)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	written := func() string {
		t.Helper()
		b, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	link(user)
	if _, err := New(Options{File: path, FileLevel: "info"}); err == nil || !strings.Contains(err.Error(), path+" is a link of another user") {
		t.Errorf("a link of another user: %v", err)
	}
	link(0)
	log := openTest(t, Options{File: path})
	log.Info("one")
	link(user)
	log.Info("two")
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(path, user, user); err != nil {
		t.Fatal(err)
	}
	log.Info("three")
	if b, err := os.ReadFile(other); err != nil || len(b) > 0 {
		t.Errorf("root wrote %q to a file that another user named, %v", b, err)
	}
	if got := written(); got != "one\n" && got != "one\ntwo\n" {
		t.Errorf("the file has %q", got)
	}
}

// TestSwappedLink: the owner and the target are those of one link, and what is no link any more is refused; links in a row and relative
// ones are followed, links in a circle are not.
func TestSwappedLink(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o600), os.Symlink("file", at("one")), os.Symlink(at("one"), at("two")),
		os.Symlink("circle", at("circle"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readLink(at("file")); err == nil {
		t.Error("a file was read as a link")
	}
	if target, uid, err := readLink(at("one")); target != "file" || uid != os.Geteuid() || err != nil {
		t.Error(target, uid, err)
	}
	f, err := openAppend(at("two"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); errors.Join(err, f.Close()) != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(at("file")); string(b) != "x" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if _, err := openAppend(at("circle")); !errors.Is(err, syscall.ELOOP) {
		t.Error(err)
	}
}

// TestPipeAsLog: a pipe in place of the log file does not stop the process, with or without a reader; a device is a log file.
func TestPipeAsLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAppend(path); err == nil {
		t.Error("a pipe without a reader was opened")
	}
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := openAppend(path); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Error(err)
	}
	for _, name := range []string{os.DevNull, "/dev/stdout"} {
		f, err := openAppend(name)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = f.Close()
	}
}
