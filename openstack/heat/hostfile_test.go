//go:build unix

package heat

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteHostFile(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "etc", "app", "conf.json")
	mode := func(path string) os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	write := func(path, text string) {
		t.Helper()
		if err := writeHostFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "one")
	if a, b := mode(filepath.Join(root, "etc")), mode(filepath.Dir(path)); a&0o055 != 0o055 || b != 0o700 || mode(path) != 0o644 {
		t.Errorf("modes %o %o %o", a, b, mode(path))
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 65534, 65533); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	write(link, "two")
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "two" || mode(path) != 0o640 {
		t.Errorf("%q %o %v", text, mode(path), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if uid, ok := owner(info); os.Getuid() == 0 && (!ok || uid != 65534) {
		t.Errorf("owner %d", uid)
	}
}
