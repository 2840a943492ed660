//go:build unix

package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// swapper is the content of a file. While it is read, it replaces the temporary file by a link.
type swapper struct {
	t           *testing.T
	dir, secret string
	temporary   int
}

func (s *swapper) Read([]byte) (int, error) {
	found, err := filepath.Glob(filepath.Join(s.dir, ".file.*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, temp := range found {
		if err := os.Remove(temp); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Symlink(s.secret, temp); err != nil {
			s.t.Fatal(err)
		}
		s.temporary++
	}
	return 0, io.EOF
}

// TestReplaceFollowsNoLink: root replaces a file in a user's directory, and the user plants a link in place of the
// temporary file. The user gains no file.
func TestReplaceFollowsNoLink(t *testing.T) {
	prereq.Root(t)
	const user = 65534
	dir := t.TempDir()
	secret, path := filepath.Join(t.TempDir(), "secret"), filepath.Join(dir, "file")
	for _, name := range []string{secret, path} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(path, user, user); err != nil {
		t.Fatal(err)
	}
	s := &swapper{t: t, dir: dir, secret: secret}
	err := ReplaceFrom(path, s, 0o644)
	if s.temporary != 1 {
		t.Fatalf("%d temporary files, %v", s.temporary, err)
	}
	info, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("the file behind the link belongs to %d", uid)
	}
}

// TestOwnFollowsNoLink: a link that a user plants in place of a file that root gives away is not followed.
func TestOwnFollowsNoLink(t *testing.T) {
	prereq.Root(t)
	const user = 65534
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link, file, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Own(link, user, user, 0o644); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	for path, want := range map[string]struct {
		uid  uint32
		mode os.FileMode
	}{secret: {0, 0o600}, file: {user, 0o640}, pipe: {user, 0o640}} {
		if path != secret {
			if err := Own(path, user, -1, 0o640); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != want.uid || st.Gid != 0 || info.Mode().Perm() != want.mode {
			t.Errorf("%s has user %d, group %d, mode %o", path, st.Uid, st.Gid, info.Mode().Perm())
		}
	}
}

// TestReplaceInStaysInside: links in place of the file or of its directory are not followed.
func TestReplaceInStaysInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := ReplaceIn(root, "file", []byte("new"), 0o640, &Owner{-1, -1}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(dir, "file"))
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if b, err := os.ReadFile(secret); string(b) != "s" {
		t.Errorf("outside is %q, %v", b, err)
	}
	if names, err := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left over: %v, %v", names, err)
	}
}
