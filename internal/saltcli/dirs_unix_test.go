//go:build unix

package saltcli

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestMakePIDFile: root creates the pid file for a user if only root may write to the directory, and changes nothing
// if others may.
func TestMakePIDFile(t *testing.T) {
	prereq.Root(t)
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

// TestMakeDirIsReachable: the user can reach its directory below others that are new, too.
func TestMakeDirIsReachable(t *testing.T) {
	prereq.Root(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	above := filepath.Join(t.TempDir(), "pki")
	path := filepath.Join(above, "master")
	if err := MakeDir(path, 0o700, "nobody"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]struct {
		mode  os.FileMode
		owner string
	}{above: {0o755, "0"}, path: {0o700, nobody.Uid}} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		owner := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid))
		if info.Mode().Perm() != want.mode || owner != want.owner {
			t.Errorf("%s has the mode %o and the owner %s, not %o and %s", dir, info.Mode().Perm(), owner, want.mode, want.owner)
		}
	}
}

// TestMakeDirFollowsNoLink: a user who replaces the new directory by a link does not become the owner of the link's
// target.
func TestMakeDirFollowsNoLink(t *testing.T) {
	prereq.Root(t)
	dir := t.TempDir()
	secret, path, aside := filepath.Join(dir, "secret"), filepath.Join(dir, "made"), filepath.Join(dir, "aside")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(path, aside) == nil {
				_ = os.Symlink(secret, path)
			}
		}
	})
	for range 2000 {
		_ = MakeDir(path, 0o755, "nobody") // fails if it was replaced
		_ = os.Remove(aside)
		_ = os.Remove(path)
	}
	close(stop)
	wg.Wait()
	info, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("the file behind the link belongs to %d", uid)
	}
}
