package fileclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeMaster is a file server that can misbehave.
type fakeMaster struct {
	mu     sync.Mutex
	files  map[string]string
	chunk  int
	gzip   bool
	damage int // how many chunks to damage
	hsum   string
	taken  bytes.Buffer
	refuse bool
	serves int
}

func (m *fakeMaster) request(_ context.Context, load map[string]any, raw bool) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, _ := load["path"].(string)
	text, ok := m.files[name]
	switch load["cmd"] {
	case "_file_hash":
		if !ok {
			return "", nil
		}
		sum := sha256.Sum256([]byte(text))
		if m.hsum != "" {
			return map[string]any{"hash_type": "sha256", "hsum": m.hsum}, nil
		}
		return map[string]any{"hash_type": "sha256", "hsum": hex.EncodeToString(sum[:])}, nil
	case "_file_find":
		return map[string]any{"path": "x", "rel": name, "stat": []any{int64(0o100644), int64(1)}}, nil
	case "_serve_file":
		if !raw {
			return nil, errors.New("file contents must be asked for in raw mode")
		}
		m.serves++
		at := int(load["loc"].(int64))
		data := []byte(text[min(at, len(text)):min(at+m.chunk, len(text))])
		if m.damage > 0 && len(data) > 0 {
			m.damage--
			data = bytes.Repeat([]byte("?"), len(data))
		}
		reply := map[string]any{"data": data, "dest": []byte(name)}
		if m.gzip && len(data) > 0 {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(data)
			_ = w.Close()
			reply["data"], reply["gzip"] = b.Bytes(), int64(9)
		}
		return reply, nil
	case "_file_list":
		return []any{"a", []byte("b")}, nil
	case "_file_recv":
		if m.refuse {
			return false, nil
		}
		if int64(m.taken.Len()) != load["loc"].(int64) {
			return nil, errors.New("chunks out of order")
		}
		m.taken.Write(load["data"].([]byte))
		return true, nil
	}
	return nil, errors.New("unexpected request")
}

func newFake(t *testing.T) (*fakeMaster, *Client) {
	m := &fakeMaster{chunk: 7, files: map[string]string{"a.txt": strings.Repeat("salt and brine ", 20), "empty": "", "d/e.txt": "deep"}}
	return m, New(Options{Request: m.request, CacheDir: t.TempDir()})
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCache(t *testing.T) {
	for name, prepare := range map[string]func(*fakeMaster){
		"chunks": func(*fakeMaster) {}, "gzip": func(m *fakeMaster) { m.gzip = true }, "one chunk": func(m *fakeMaster) { m.chunk = 1000 },
		"exact chunks": func(m *fakeMaster) { m.chunk = 15 }, "damaged once": func(m *fakeMaster) { m.damage = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			m, c := newFake(t)
			prepare(m)
			for path, want := range m.files {
				got, err := c.Cache(t.Context(), "salt://"+path, "base")
				if err != nil {
					t.Fatal(err)
				}
				if got != filepath.Join(c.CacheRoot(), "files", "base", path) || got != c.CachePath("salt://"+path, "base") {
					t.Errorf("%s was cached as %s", path, got)
				}
				if text := read(t, got); text != want {
					t.Errorf("%s has %q", path, text)
				}
				if info, _ := os.Stat(got); info.Mode() != 0o600 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
			}
			m.serves = 0
			if _, err := c.Cache(t.Context(), "salt://a.txt", "base"); err != nil || m.serves != 0 {
				t.Errorf("an unchanged file was fetched again: %d requests, %v", m.serves, err)
			}
			m.files["a.txt"] = "changed"
			got, err := c.Cache(t.Context(), "salt://a.txt", "base")
			if err != nil || read(t, got) != "changed" {
				t.Errorf("a changed file: %v", err)
			}
		})
	}
}

func TestCacheOfMissingFile(t *testing.T) {
	_, c := newFake(t)
	if got, err := c.Cache(t.Context(), "salt://nope", "base"); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestCVE_2022_22936_ReplayedChunks: an earlier chunk that is sent again does not end up in a file (CVE-2022-22936),
// because the whole file is verified.
func TestCVE_2022_22936_ReplayedChunks(t *testing.T) {
	m, c := newFake(t)
	m.damage = 1 << 30
	if got, err := c.Cache(t.Context(), "salt://a.txt", "base"); got != "" || err == nil || !strings.Contains(err.Error(), "announced") {
		t.Errorf("got %q, %v", got, err)
	}
	var left []string
	_ = filepath.WalkDir(c.CacheRoot(), func(name string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			left = append(left, name)
		}
		return nil
	})
	if left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func TestT14_NoPathLeavesTheCache(t *testing.T) {
	m, c := newFake(t)
	outside := filepath.Join(filepath.Dir(c.CacheRoot()), "victim")
	for _, address := range []string{
		"salt://../victim", "salt://a/../../victim", "salt://a\x00b", "salt://..", "salt:///../victim", "salt://|../victim",
		"salt://x?saltenv=../..", "salt://x?saltenv=a/b", "salt://x?saltenv=..", "salt://x?saltenv=.",
	} {
		m.files[strings.TrimPrefix(address, "salt://")] = "evil"
		if got, err := c.Cache(t.Context(), address, "base"); got != "" && !strings.HasPrefix(got, c.CacheRoot()+"/files/base/") {
			t.Errorf("%q was cached as %q, %v", address, got, err)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file was written outside of the cache")
	}
	// A planted link does not lead out of the cache either.
	dir := filepath.Join(c.CacheRoot(), "files", "base")
	target := t.TempDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Cache(t.Context(), "salt://d/e.txt", "base"); err == nil {
		t.Errorf("written through a link as %q", got)
	}
}

// TestT17_ExternalNamesDoNotCollide: two addresses never share a cached file (CVE-2021-21996).
func TestT17_ExternalNamesDoNotCollide(t *testing.T) {
	c := New(Options{CacheDir: t.TempDir(), Fetch: func(_ context.Context, r WebRequest, w io.Writer) (string, error) {
		_, err := io.WriteString(w, r.URL)
		return "", err
	}})
	seen := map[string]string{}
	for _, address := range []string{
		"https://a.example/x", "https://b.example/x", "https://a.example/x?y", "https://a.example:81/x", "https://a.example/y/x",
		"https://a.example/" + strings.Repeat("n", 300) + "1", "https://a.example/" + strings.Repeat("n", 300) + "2",
	} {
		got, err := c.Cache(t.Context(), address, "base")
		if err != nil || read(t, got) != address {
			t.Fatalf("%s: %v", address, err)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s are both cached as %s", address, other, got)
		}
		seen[got] = address
	}
	for _, address := range []string{"https://a.example/../../x", "https://../x", "https://a.example", "https://a.example/a/%2e%2e/x"} {
		if got, err := c.Cache(t.Context(), address, "base"); err == nil {
			t.Errorf("%s was cached as %s", address, got)
		}
	}
	if _, err := New(Options{CacheDir: t.TempDir()}).Cache(t.Context(), "https://a.example/x", "base"); err == nil {
		t.Error("a client without Fetch fetched")
	}
}

func TestHash(t *testing.T) {
	_, c := newFake(t)
	sum, stat, err := c.HashAndStat(t.Context(), "salt://d/e.txt", "base")
	deep := sha256.Sum256([]byte("deep"))
	want := map[string]any{"hash_type": "sha256", "hsum": hex.EncodeToString(deep[:])}
	if diff := cmp.Diff(want, sum); diff != "" || err != nil || len(stat) != 2 {
		t.Errorf("%v %v %s", err, stat, diff)
	}
	local := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(local, []byte("deep"), 0o640); err != nil {
		t.Fatal(err)
	}
	sum, stat, err = c.HashAndStat(t.Context(), local, "base")
	if diff := cmp.Diff(want, sum); diff != "" || err != nil || stat[0] != int64(0o100640) || stat[6] != int64(4) {
		t.Errorf("%v %v %s", err, stat, diff)
	}
	if sum, err := c.Hash(t.Context(), "/does/not/exist", "base"); sum != nil || err != nil {
		t.Errorf("a missing file has %v, %v", sum, err)
	}
}

func TestSend(t *testing.T) {
	m, c := newFake(t)
	content := strings.Repeat("x", sendChunk) + "end"
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Send(t.Context(), file, "/a/f"); !ok || err != nil || m.taken.String() != content {
		t.Errorf("%v, %v, %d bytes", ok, err, m.taken.Len())
	}
	m.refuse = true
	if ok, err := c.Send(t.Context(), file, "f"); ok || err != nil {
		t.Errorf("refused: %v, %v", ok, err)
	}
	if _, err := c.Send(t.Context(), filepath.Dir(file), "d"); err == nil {
		t.Error("a directory was sent")
	}
}

func TestLocal(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{one + "/a": "first", two + "/a": "second", two + "/d/b": "b"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{one + "/none", two + "/d/none"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", one+"/link"); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	c := New(Options{CacheDir: cache, Roots: map[string][]string{"base": {one, two, one + "/missing"}, "dev": nil}})
	got := map[string]any{}
	got["envs"], _ = c.Envs(t.Context())
	got["files"], _ = c.List(t.Context(), "base", "")
	got["below"], _ = c.List(t.Context(), "base", "d/")
	got["dirs"], _ = c.Dirs(t.Context(), "base", "")
	got["empty"], _ = c.EmptyDirs(t.Context(), "base", "")
	got["links"], _ = c.Symlinks(t.Context(), "base", "")
	got["a"], _ = c.Cache(t.Context(), "salt://a", "base")
	got["none"], _ = c.Cache(t.Context(), "salt://a", "dev")
	want := map[string]any{
		"envs": []string{"base", "dev"}, "files": []string{"a", "d/b", "link"}, "below": []string{"d/b"},
		"dirs": []string{"d", "d/none", "none"}, "empty": []string{"d/none", "none"},
		"links": map[string]string{"link": "a"}, "a": filepath.Join(cache, "files", "base", "a"), "none": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Cache(t.Context(), "salt://../"+filepath.Base(two)+"/a", "base"); err == nil {
		t.Error("a path left the roots")
	}
}
