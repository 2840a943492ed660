//go:build unix

package saltcli

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestMakePIDFile: root leaves a pid file for a user where only root may write, and touches nothing where others may.
func TestMakePIDFile(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this test needs root")
		}
		t.Skip("this test needs root")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	owner := func(path string) int {
		info, err := os.Lstat(path)
		if err != nil {
			return -1
		}
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	try := func(what string, mode os.FileMode, before func(path string), want int, bad bool) {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "pid")
		before(path)
		if err := MakePIDFile(path, "nobody"); (err != nil) != bad {
			t.Errorf("%s: %v", what, err)
		}
		if got := owner(path); got != want {
			t.Errorf("%s: the file belongs to %d, not to %d", what, got, want)
		}
	}
	had := func(path string) {
		if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	had(secret)
	try("no file", 0o755, func(string) {}, uid, false)
	try("an old file", 0o755, had, uid, false)
	try("a link", 0o755, func(path string) { _ = os.Symlink(secret, path) }, 0, true)
	try("no file, others may write", 0o777, func(string) {}, -1, false)
	try("a file, others may write", 0o777, func(path string) { _ = os.Link(secret, path) }, 0, false)
	if got := owner(secret); got != 0 {
		t.Errorf("another file was given away, to %d", got)
	}
}
