package keys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/protocol/crypt"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

var shared = sync.OnceValues(func() (*crypt.PrivateKey, error) { return crypt.GenerateKey(2048) })

func key(t *testing.T) *crypt.PrivateKey {
	t.Helper()
	k, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestT8ModesOfNewKeys: others cannot read what the minion creates, whatever the umask (CVE-2020-17490,
// CVE-2015-8034).
func TestT8ModesOfNewKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "pki")
	s := open(t, dir)
	k, err := s.Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700, PrivateFile: 0o400, PublicFile: 0o644} {
		if got := mode(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s has mode %04o, want %04o", name, got, want)
		}
	}
	again, err := open(t, dir).Identity()
	if err != nil || !again.Public().Equal(k.Public()) {
		t.Errorf("another key the second time: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("files are left over: %v", list)
	}
	pub, err := os.ReadFile(filepath.Join(dir, PublicFile))
	if err != nil || string(pub) != string(k.Public().PEM()) || !strings.HasSuffix(string(pub), "-----END PUBLIC KEY-----\n") {
		t.Errorf("public file: %v %q", err, pub)
	}
}

func TestPreseededPair(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	k := key(t)
	for name, pem := range map[string][]byte{PrivateFile: k.PEM(), PublicFile: k.Public().PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), pem, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open(t, dir).Identity()
	if err != nil || !got.Public().Equal(k.Public()) {
		t.Fatalf("the pair was not used: %v", err)
	}
	if mode(t, dir) != 0o700 || mode(t, filepath.Join(dir, PrivateFile))&0o077 != 0 {
		t.Errorf("modes %04o, %04o", mode(t, dir), mode(t, filepath.Join(dir, PrivateFile)))
	}
}

// TestT18PlantedFiles: files that others could have planted are refused (CVE-2021-22004).
func TestT18PlantedFiles(t *testing.T) {
	cases := map[string]func(t *testing.T, dir string) error{
		"directory writable by all":   func(t *testing.T, dir string) error { return os.Chmod(dir, 0o777) },
		"directory writable by group": func(t *testing.T, dir string) error { return os.Chmod(dir, 0o770) },
		"key writable by all":         func(t *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, PrivateFile), 0o666) },
		"foreign directory": func(t *testing.T, dir string) error {
			prereq.Root(t)
			return os.Chown(dir, 12345, 12345)
		},
		"foreign key": func(t *testing.T, dir string) error {
			prereq.Root(t)
			return os.Chown(filepath.Join(dir, PrivateFile), 12345, 12345)
		},
		"foreign link": func(t *testing.T, dir string) error {
			prereq.Root(t)
			other := filepath.Join(t.TempDir(), "x")
			if err := errors.Join(os.WriteFile(other, key(t).PEM(), 0o600), os.Chown(other, 12345, 12345)); err != nil {
				return err
			}
			path := filepath.Join(dir, PrivateFile)
			return errors.Join(os.Remove(path), os.Symlink(other, path))
		},
	}
	for name, plant := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, PrivateFile), key(t).PEM(), 0o400); err != nil {
				t.Fatal(err)
			}
			if err := plant(t, dir); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Options{Dir: dir})
			if err == nil {
				_, err = s.Identity()
			}
			if !errors.Is(err, ErrUnsafe) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPermissive(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Permissive: true}); err != nil {
		t.Errorf("permissive_pki_access: %v", err)
	}
	os.Chmod(dir, 0o777)
	if _, err := Open(Options{Dir: dir, Permissive: true}); !errors.Is(err, ErrUnsafe) {
		t.Errorf("writable by all: %v", err)
	}
}

func TestBadKeyFiles(t *testing.T) {
	weak := "-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n"
	for name, content := range map[string]string{"empty": "", "rubbish": "hello", "short": weak, "huge": strings.Repeat("x", maxFile+1)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			os.Chmod(dir, 0o700)
			path := filepath.Join(dir, PrivateFile)
			if err := os.WriteFile(path, []byte(content), 0o400); err != nil {
				t.Fatal(err)
			}
			if _, err := open(t, dir).Identity(); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v does not name the file", err)
			}
			if b, _ := os.ReadFile(path); string(b) != content {
				t.Error("the file was changed")
			}
			os.WriteFile(filepath.Join(dir, MasterFile), []byte(content), 0o644)
			if _, err := open(t, dir).Master(); err == nil {
				t.Error("a bad master key was taken")
			}
		})
	}
}

func TestMismatchedPair(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	other, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, PrivateFile), key(t).PEM(), 0o400)
	os.WriteFile(filepath.Join(dir, PublicFile), other.Public().PEM(), 0o644)
	if _, err := open(t, dir).Identity(); err == nil || !strings.Contains(err.Error(), "does not belong to") {
		t.Errorf("got %v", err)
	}
}

func TestMasterKey(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	s := open(t, dir)
	if k, err := s.Master(); k != nil || err != nil {
		t.Errorf("Master = %v, %v", k, err)
	}
	if err := s.SaveMaster(key(t).Public()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, MasterFile)
	b, _ := os.ReadFile(path)
	if mode(t, path) != 0o644 || strings.HasSuffix(string(b), "\n") || len(b) != 450 {
		t.Errorf("mode %04o, %d bytes", mode(t, path), len(b))
	}
	if k, err := s.Master(); err != nil || !k.Equal(key(t).Public()) {
		t.Errorf("Master: %v", err)
	}
	// Salt's file may have other line endings.
	os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "\n", "\r\n")+"\r\n"), 0o644)
	if k, err := s.Master(); err != nil || !k.Equal(key(t).Public()) {
		t.Errorf("with CRLF: %v", err)
	}
	for _, name := range []string{"", "../x", "a/b"} {
		if _, err := s.Signing(name); err == nil {
			t.Errorf("master_sign_key_name %q was taken", name)
		}
	}
}

func TestTwoProcessesGenerateOneKey(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	got := make(chan string, 4)
	for range cap(got) {
		go func() {
			k, err := open(t, dir).Identity()
			if err != nil {
				got <- err.Error()
				return
			}
			got <- k.Public().Text()
		}()
	}
	first := <-got
	for range cap(got) - 1 {
		if other := <-got; other != first {
			t.Errorf("two keys, or an error: %.60q %.60q", first, other)
		}
	}
}

// TestUnfinishedKeysAreRemoved: half-written key files from a crash are removed when the directory is opened again.
func TestUnfinishedKeysAreRemoved(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	old := time.Now().Add(-time.Minute)
	for _, name := range []string{".minion.pem.AAAAAAAAAA", ".minion.pub.AAAAAAAAAA", ".minion_master.pub.AAAAAAAAAA", ".other.pub.AAAAAAAAAA"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".other.pub.AAAAAAAAAA" {
		t.Errorf("left %v, %v", entries, err)
	}
}
