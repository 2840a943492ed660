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

// TestMakeDirIsReachable: the user can reach its directory below others that are new, too, whatever the umask is. Those that existed keep their
// modes.
func TestMakeDirIsReachable(t *testing.T) {
	prereq.Root(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	for _, umask := range []int{0o022, 0o027, 0o077} {
		old := filepath.Join(t.TempDir(), "old")
		if err := os.Mkdir(old, 0o700); err != nil {
			t.Fatal(err)
		}
		top := filepath.Join(old, "etc")
		above := filepath.Join(top, "pki")
		path := filepath.Join(above, "master")
		before := syscall.Umask(umask)
		err := MakeDir(path+"/", 0o700, "nobody")
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		for dir, want := range map[string]struct {
			mode  os.FileMode
			owner string
		}{old: {0o700, "0"}, top: {0o755, "0"}, above: {0o755, "0"}, path: {0o700, nobody.Uid}} {
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			owner := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid))
			if info.Mode().Perm() != want.mode || owner != want.owner {
				t.Errorf("umask %o: %s has the mode %o and the owner %s, not %o and %s", umask, dir, info.Mode().Perm(), owner, want.mode, want.owner)
			}
		}
	}
}

// TestMakeDirBelowLink: a directory above that is a link and exists is followed, and a link to nothing or a file is an error.
func TestMakeDirBelowLink(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"link": dir, "dangling": filepath.Join(dir, "nothing"), "file": ""} {
		path, err := filepath.Join(dir, name), error(nil)
		if to == "" {
			err = os.WriteFile(path, nil, 0o644)
		} else {
			err = os.Symlink(to, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = MakeDir(filepath.Join(path, "made"), 0o755, "nobody")
		if _, there := os.Stat(filepath.Join(dir, "made")); name == "link" && (err != nil || there != nil) || name != "link" && err == nil {
			t.Errorf("%s: %v, %v", name, err, there)
		}
	}
}

// TestMakeDirFollowsNoLink: a user who replaces the new directory by a link does not become the owner of the link's
// target, and one who replaces a new directory above does not change the mode of the target.
func TestMakeDirFollowsNoLink(t *testing.T) {
	prereq.Root(t)
	dir := t.TempDir()
	secret, path, aside := filepath.Join(dir, "secret"), filepath.Join(dir, "made"), filepath.Join(dir, "aside")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	above, aboveAside, secrets := filepath.Join(dir, "above"), filepath.Join(dir, "above-aside"), filepath.Join(dir, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
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
			if os.Rename(above, aboveAside) == nil {
				_ = os.Symlink(secrets, above)
			}
		}
	})
	for i := range 2000 {
		_ = MakeDir(path, 0o755, "nobody") // fails if it was replaced
		_ = os.Remove(aside)
		_ = os.Remove(path)
		if i%4 != 0 {
			continue
		}
		_ = MakeDir(filepath.Join(above, "made"), 0o755, "nobody")
		_ = os.RemoveAll(aboveAside)
		_ = os.RemoveAll(above)
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
	info, err = os.Stat(secrets)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory behind the link has the mode %o", info.Mode().Perm())
	}
}
