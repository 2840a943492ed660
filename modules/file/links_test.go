//go:build unix

package file

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestPermsFollowNoLink: where links are not to be followed, one that a user puts in the place of a file after root has
// looked at it changes neither the owner nor the mode of what it leads to.
func TestPermsFollowNoLink(t *testing.T) {
	prereq.Root(t)
	e := modulestest.Env(t)
	secret, path := filepath.Join(e.Root, "secret"), filepath.Join(e.Root, "file")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	h := on(t.Context(), &modules.Call{Env: e})
	if _, err := h.chownFile("/file", int64(65534), int64(65534)); err != nil {
		t.Error(err)
	}
	if err := h.chmodFile("/file", 0o644); err == nil {
		t.Error("the mode of a link was set")
	}
	info, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || st.Gid != 0 || info.Mode() != 0o600 {
		t.Errorf("behind the link: %d:%d %v", st.Uid, st.Gid, info.Mode())
	}
	if err := h.chmodFile("/secret", 0o640); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}
