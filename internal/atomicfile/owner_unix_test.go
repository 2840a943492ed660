//go:build unix

package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// swapper is the content of a file. While it is read, a link takes the place of the temporary file.
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

// TestReplaceFollowsNoLink: a user in whose directory root replaces a file puts a link in the place of the temporary
// one, and owns nothing by that.
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
