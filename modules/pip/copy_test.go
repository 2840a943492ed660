//go:build unix

package pip

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestCopiesFollowNoLink: a user who already has the directory of its copies puts a link in the place of the next one, and
// neither overwrites nor gets what it leads to.
func TestCopiesFollowNoLink(t *testing.T) {
	prereq.Root(t)
	e := modulestest.Env(t)
	if err := os.MkdirAll(filepath.Join(e.Root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(e.Root, "secret")
	for path, text := range map[string]string{"etc/passwd": "alice:x:65534:65534::/home/alice:/bin/sh\n", "req.txt": "pep8\n", "secret": "s"} {
		if err := os.WriteFile(filepath.Join(e.Root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &builder{temp: t.TempDir()}
	if err := os.Symlink(secret, filepath.Join(b.temp, "req.txt")); err != nil {
		t.Fatal(err)
	}
	copied := &modules.Module{Name: "copied", Funcs: []modules.Def{{Name: "of", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		b.c = c
		return b.copyFor(ctx, "alice", "/req.txt")
	}}}}
	res := modules.NewRegistry(copied).Run(t.Context(), e, modules.Request{Fun: "copied.of"})
	path, ok := res.Return.(string)
	if !ok || res.Err != nil {
		t.Fatal(res.Return, res.Err)
	}
	for path, want := range map[string]string{secret: "0 s", path: "65534 pep8\n"} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if got := info.Sys().(*syscall.Stat_t).Uid; err != nil || want != map[uint32]string{0: "0 ", 65534: "65534 "}[got]+string(text) {
			t.Errorf("%s belongs to %d and has %q, %v", path, got, text, err)
		}
	}
}
