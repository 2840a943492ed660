//go:build unix

package saltlog

import (
	"os"
	"path/filepath"
	"strings"
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
