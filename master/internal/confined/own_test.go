//go:build unix

package confined

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestOwnFollowsNoLink: if a link is in the place of a file that is to be given to a user, the link's target keeps
// its owner.
func TestOwnFollowsNoLink(t *testing.T) {
	prereq.Root(t)
	path := t.TempDir()
	secret := filepath.Join(path, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(path, "link")); err != nil {
		t.Fatal(err)
	}
	dir, err := Open(path, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	owner := func() uint32 {
		info, err := os.Stat(secret)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid
	}
	if err := dir.Own("link", 65534, -1); err != nil || owner() != 0 {
		t.Errorf("behind the link: owner %d, %v", owner(), err)
	}
	if err := dir.Own("secret", 65534, -1); err != nil || owner() != 65534 {
		t.Errorf("owner %d, %v", owner(), err)
	}
}
