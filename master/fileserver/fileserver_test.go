package fileserver_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/fileserver"
)

// plant creates files below dir, with content by path. A path that ends in "/" is a directory, and content "-> x"
// is a link.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if err == nil {
			if target, link := strings.CutPrefix(content, "-> "); link {
				err = os.Symlink(target, p)
			} else if strings.HasSuffix(name, "/") {
				err = os.MkdirAll(p, 0o755)
			} else {
				err = os.WriteFile(p, []byte(content), 0o640)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func serve(t *testing.T, o fileserver.Options) *fileserver.Server {
	t.Helper()
	if o.ListCache == 0 {
		o.ListCache = -1
	}
	s, err := fileserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func roots(o fileserver.RootsOptions) fileserver.Options {
	return fileserver.Options{Backends: []fileserver.Backend{fileserver.NewRoots(o)}}
}

func TestFindAndRead(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	plant(t, a, map[string]string{"top.sls": "base:\n", "only-a": "a", "dir/f": "in dir"})
	plant(t, b, map[string]string{"top.sls": "shadowed", "only-b": "b", "|odd?name": "odd", "empty": ""})
	dev := t.TempDir()
	plant(t, dev, map[string]string{"only-dev": "dev"})
	s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a, b, "/does/not/exist"}, "dev": {dev}}}))
	for _, c := range []struct{ name, env, want, dest string }{
		{"top.sls", "base", "base:\n", "top.sls"},
		{"only-a", "base", "a", "only-a"},
		{"only-b", "base", "b", "only-b"},
		{"dir/f", "base", "in dir", "dir/f"},
		{"dir//f", "base", "in dir", "dir/f"},
		{"./dir/./f", "base", "in dir", "dir/f"},
		{"only-dev?saltenv=dev", "base", "dev", "only-dev"},
		{"only-dev?x=1&saltenv=dev", "base", "dev", "only-dev"},
		{"||odd?name", "base", "odd", "|odd?name"},
		{"empty", "base", "", "empty"},
	} {
		chunk, err := s.Read(c.name, c.env, 0, 0)
		if err != nil || string(chunk.Data) != c.want || chunk.Dest != c.dest || chunk.Gzip != 0 {
			t.Errorf("%s: %q %q %v", c.name, chunk.Data, chunk.Dest, err)
		}
		f, err := s.Find(c.name, c.env)
		if err != nil || f.Rel != c.dest || f.Back != "roots" || filepath.Base(f.Path) != filepath.Base(c.dest) {
			t.Errorf("%s: %+v %v", c.name, f, err)
		}
	}
	for _, c := range [][2]string{{"only-dev", "base"}, {"only-a", "dev"}, {"nope", "base"}, {"dir", "base"}, {"top.sls", "prod"}, {"", "base"}, {".", "base"}, {"dir/f/x", "base"}} {
		if _, err := s.Read(c[0], c[1], 0, 0); !errors.Is(err, fileserver.ErrNotFound) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if d := cmp.Diff([]string{"base", "dev"}, s.Envs()); d != "" {
		t.Error(d)
	}
}

func TestStat(t *testing.T) {
	a := t.TempDir()
	plant(t, a, map[string]string{"f": "12345"})
	s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a}}}))
	f, err := s.Find("f", "base")
	if err != nil {
		t.Fatal(err)
	}
	st := f.Stat()
	if len(st) != 10 || st[0] != int64(0o100640) || st[6] != int64(5) || st[8] != f.Info.ModTime().Unix() {
		t.Fatal(st)
	}
}

func TestChunksAndGzip(t *testing.T) {
	a := t.TempDir()
	content := strings.Repeat("0123456789", 250) // 2500 bytes in chunks of 1000
	plant(t, a, map[string]string{"f": content})
	o := roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a}}})
	o.BufferSize = 1000
	s := serve(t, o)
	for _, level := range []int{0, 5, 99} {
		var got []byte
		var sizes []int
		for {
			c, err := s.Read("f", "base", int64(len(got)), level)
			if err != nil {
				t.Fatal(err)
			}
			if c.Dest != "f" {
				t.Fatalf("dest %q", c.Dest)
			}
			data := c.Data
			if c.Gzip != 0 {
				if c.Gzip != level || len(data) >= 1000 {
					t.Fatalf("gzip %d, %d bytes", c.Gzip, len(data))
				}
				z, err := gzip.NewReader(bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				if data, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			}
			if len(data) == 0 {
				break
			}
			sizes = append(sizes, len(data))
			got = append(got, data...)
		}
		if string(got) != content || !cmp.Equal(sizes, []int{1000, 1000, 500}) {
			t.Errorf("level %d: %d bytes in %v", level, len(got), sizes)
		}
	}
	for _, offset := range []int64{2500, 1 << 40, 1<<63 - 1} {
		if c, err := s.Read("f", "base", offset, 0); err != nil || len(c.Data) != 0 {
			t.Errorf("at %d: %d bytes %v", offset, len(c.Data), err)
		}
	}
	if _, err := s.Read("f", "base", -1, 0); err == nil {
		t.Error("negative offset was read")
	}
}

func TestHash(t *testing.T) {
	a := t.TempDir()
	plant(t, a, map[string]string{"f": "one"})
	s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a}}}))
	for _, content := range []string{"one", "two", "one"} { // the same size: time or inode must tell
		plant(t, a, map[string]string{"f2": content})
		if err := os.Rename(filepath.Join(a, "f2"), filepath.Join(a, "f")); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(content))
		if got, f, err := s.Hash("f", "base"); err != nil || got != hex.EncodeToString(sum[:]) || f.Rel != "f" {
			t.Fatalf("%s: %s %v", content, got, err)
		}
	}
	if _, _, err := s.Hash("nope", "base"); !errors.Is(err, fileserver.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := fileserver.New(fileserver.Options{HashType: "crc32"}); err == nil {
		t.Fatal("unknown hash was taken")
	}
}

func TestHashIsKeptUntilTheFileChanges(t *testing.T) {
	var opened atomic.Int32
	old := time.Now().Add(-time.Hour)
	m := fstest.MapFS{"f": {Data: []byte("x"), ModTime: old}}
	s := serve(t, fileserver.Options{Backends: []fileserver.Backend{fileserver.NewFS("base", countingFS{m, &opened})}})
	reads := func() int32 {
		t.Helper()
		before := opened.Load()
		if _, _, err := s.Hash("f", "base"); err != nil {
			t.Fatal(err)
		}
		return opened.Load() - before
	}
	first := reads()
	if again := reads(); first != 1 || again != 0 {
		t.Fatalf("read %d and %d times", first, again)
	}
	m["f"] = &fstest.MapFile{Data: []byte("y"), ModTime: old.Add(time.Second)}
	if reads() != 1 {
		t.Fatal("a changed file was not read again")
	}
}

// countingFS counts reads of content.
type countingFS struct {
	fs.FS
	reads *atomic.Int32
}

type countingFile struct {
	fs.File
	reads *atomic.Int32
	once  bool
}

func (c countingFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingFile{File: f, reads: c.reads}, nil
}

func (f *countingFile) Read(b []byte) (int, error) {
	if !f.once {
		f.once = true
		f.reads.Add(1)
	}
	return f.File.Read(b)
}

func TestLists(t *testing.T) {
	a, b, out := t.TempDir(), t.TempDir(), t.TempDir()
	plant(t, out, map[string]string{"o/secret": "x"})
	plant(t, a, map[string]string{"top.sls": "", "d/x.sls": "", "d/e/": "", "l.sls": "-> top.sls", "ld": "-> d", "dead": "-> nowhere",
		"loop": "-> .", "outside": "-> " + out, "abs": "-> " + filepath.Join(a, "top.sls"), "skip.pyc": ""})
	plant(t, b, map[string]string{"top.sls": "", "y/z": ""})
	for _, c := range []struct {
		name string
		o    fileserver.RootsOptions
		want fileserver.Listing
	}{
		{"confined", fileserver.RootsOptions{}, fileserver.Listing{
			Files:     []string{"abs", "d/x.sls", "dead", "l.sls", "top.sls", "y/z"},
			Dirs:      []string{"d", "d/e", "ld", "loop", "outside", "y"},
			EmptyDirs: []string{"d/e"},
			Links: map[string]string{"l.sls": "top.sls", "ld": "d", "dead": "nowhere", "loop": ".", "outside": out,
				"abs": filepath.Join(a, "top.sls")},
		}},
		{"following", fileserver.RootsOptions{FollowSymlinks: true}, fileserver.Listing{
			Files:     []string{"abs", "d/x.sls", "dead", "l.sls", "ld/x.sls", "outside/o/secret", "top.sls", "y/z"},
			Dirs:      []string{"d", "d/e", "ld", "ld/e", "loop", "outside", "outside/o", "y"},
			EmptyDirs: []string{"d/e", "ld/e"},
			Links:     map[string]string{"l.sls": "top.sls", "ld": "d", "dead": "nowhere", "loop": ".", "abs": filepath.Join(a, "top.sls")},
		}},
		{"no links", fileserver.RootsOptions{FollowSymlinks: true, IgnoreSymlinks: true}, fileserver.Listing{
			Files:     []string{"d/x.sls", "ld/x.sls", "outside/o/secret", "top.sls", "y/z"}, // links are not listed, what is behind them is
			Dirs:      []string{"d", "d/e", "ld/e", "outside/o", "y"},
			EmptyDirs: []string{"d/e", "ld/e"},
			Links:     map[string]string{},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Roots = map[string][]string{"base": {a, b}}
			o := roots(c.o)
			var err error
			if o.Ignore, err = fileserver.NewIgnore([]string{`\.pyc$`}, nil); err != nil {
				t.Fatal(err)
			}
			s := serve(t, o)
			got, err := s.List(t.Context(), "base")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if _, err := s.Find("skip.pyc", "base"); !errors.Is(err, fileserver.ErrNotFound) {
				t.Error("an ignored file was found")
			}
			if _, err := s.Find("outside/o/secret", "base"); (err == nil) != c.o.FollowSymlinks {
				t.Errorf("file outside: %v", err)
			}
		})
	}
}

func TestAnyEnvironment(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"envs/prod/f": "prod", "base/f": "base", "secret/f": "secret"})
	s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{
		"base": {filepath.Join(dir, "base")}, "__env__": {filepath.Join(dir, "envs/__env__")}}}))
	for env, want := range map[string]string{"base": "base", "prod": "prod"} {
		if c, err := s.Read("f", env, 0, 0); err != nil || string(c.Data) != want {
			t.Errorf("%s: %q %v", env, c.Data, err)
		}
	}
	for _, env := range []string{"../secret", "..", ".", "", "prod/../../secret", "a\x00b", "stage", "__env__"} {
		if c, err := s.Read("f", env, 0, 0); !errors.Is(err, fileserver.ErrNotFound) {
			t.Errorf("%q: %q %v", env, c.Data, err)
		}
		if l, err := s.List(t.Context(), env); err != nil || len(l.Files) != 0 {
			t.Errorf("%q: %v %v", env, l, err)
		}
	}
}

func TestFS(t *testing.T) {
	m := fstest.MapFS{
		"top.sls":  {Data: []byte("base: {}"), Mode: 0o644},
		"d/f":      {Data: []byte("file"), Mode: 0o600},
		"d/e/g":    {Data: []byte("g")},
		"emptydir": {Mode: fs.ModeDir | 0o755},
	}
	other := fstest.MapFS{"f": {Data: []byte("dev")}}
	s := serve(t, fileserver.Options{Backends: []fileserver.Backend{fileserver.NewFS("base", m), fileserver.NewFS("dev", other)}})
	if c, err := s.Read("d/f", "base", 2, 0); err != nil || string(c.Data) != "le" {
		t.Fatalf("%q %v", c.Data, err)
	}
	if c, err := s.Read("f", "dev", 0, 0); err != nil || string(c.Data) != "dev" {
		t.Fatalf("%q %v", c.Data, err)
	}
	for _, offset := range []int64{3, 4, 1 << 40} { // as embed.FS, its files refuse an offset behind their end
		if c, err := s.Read("f", "dev", offset, 0); err != nil || len(c.Data) != 0 || c.Dest != "f" {
			t.Errorf("offset %d: %q %v", offset, c.Data, err)
		}
	}
	got, err := s.List(t.Context(), "base")
	want := fileserver.Listing{Files: []string{"d/e/g", "d/f", "top.sls"}, Dirs: []string{"d", "d/e", "emptydir"},
		EmptyDirs: []string{"emptydir"}, Links: map[string]string{}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	if _, err := s.Find("d", "base"); !errors.Is(err, fileserver.ErrNotFound) {
		t.Fatal(err)
	}
}

// TestT14Traversal: nothing outside the roots is read, however the path is spelled (CVE-2020-11652, CVE-2024-22232).
func TestT14Traversal(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"root/f": "public", "secret": "SECRET", "root/d/x": "x", "rootish/f": "SECRET"})
	secret := filepath.Join(dir, "secret")
	plant(t, dir, map[string]string{"root/rel": "-> ../secret", "root/abs": "-> " + secret, "root/up": "-> ..", "root/d/up2": "-> ../.."})
	parts := []string{"..", "../", "./..", "d/..", "d/../..", "..//", "...", "..;", "%2e%2e", "..%2f", `..\`, "\u2025", "．．", ".. ", "\x00..",
		"up", "d/up2", "rel/..", "|..", "?..", "..?", "//", "/"}
	var paths []string
	for _, a := range parts {
		for _, b := range parts {
			for _, tail := range []string{"secret", "/secret", "rootish/f", "etc/passwd"} {
				paths = append(paths, a+b+tail, a+"/"+b+"/"+tail)
			}
		}
	}
	paths = append(paths, secret, "/etc/passwd", "rel", "abs", "up/secret", "d/up2/secret", "file://"+secret, "salt://../secret",
		url.PathEscape("../secret"), strings.Repeat("../", 5000)+"etc/passwd", strings.Repeat("a/", 3000), "f\x00", "f\xff")
	if len(paths) < 2000 {
		t.Fatalf("only %d paths", len(paths))
	}
	strict := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {filepath.Join(dir, "root")}}}))
	for _, p := range paths {
		for _, name := range []string{p, "|" + p, p + "?saltenv=base"} {
			if c, err := strict.Read(name, "base", 0, 0); err == nil && string(c.Data) != "public" && string(c.Data) != "x" {
				t.Fatalf("%.80q gave %q", name, c.Data)
			}
			if _, f, err := strict.Hash(name, "base"); err == nil && f.Info.Size() == int64(len("SECRET")) && f.Rel != "f" {
				t.Fatalf("%.80q was hashed", name)
			}
		}
	}
	// With links followed, as Salt does by default, the links of the operator count, the dots of a minion do not.
	following := serve(t, roots(fileserver.RootsOptions{FollowSymlinks: true, Roots: map[string][]string{"base": {filepath.Join(dir, "root")}}}))
	for _, p := range paths {
		if strings.Contains(p, "up") || strings.HasPrefix(p, "rel") || strings.HasPrefix(p, "abs") {
			continue
		}
		if c, err := following.Read(p, "base", 0, 0); err == nil && string(c.Data) == "SECRET" {
			t.Fatalf("%.80q gave %q", p, c.Data)
		}
	}
}

// TestT14LinkSwap: a link that changes between look-up and opening does not lead out either.
func TestT14LinkSwap(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"root/good": "public", "secret": "SECRET"})
	s := serve(t, roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {filepath.Join(dir, "root")}}}))
	name := filepath.Join(dir, "root", "f")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := []string{"good", "../secret"}[i%2]
			os.Symlink(target, name+".new")
			os.Rename(name+".new", name)
		}
	}()
	read := 0
	for range 3000 {
		c, err := s.Read("f", "base", 0, 0)
		if err == nil && string(c.Data) == "SECRET" {
			t.Error("read the file outside")
			break
		}
		if err == nil {
			read++
		}
	}
	close(stop)
	<-done
	if read == 0 {
		t.Log("the link was never seen on its good target")
	}
}

func TestListingsAreKeptForAWhile(t *testing.T) {
	a := t.TempDir()
	plant(t, a, map[string]string{"one": ""})
	o := roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a}}})
	o.ListCache = time.Hour
	s := serve(t, o)
	count := func() int {
		l, err := s.List(t.Context(), "base")
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Files)
	}
	first := count()
	plant(t, a, map[string]string{"two": ""})
	second := count()
	s.Forget()
	if third := count(); first != 1 || second != 1 || third != 2 {
		t.Fatal(first, second, third)
	}
}

func BenchmarkRead(b *testing.B) {
	a := b.TempDir()
	if err := os.WriteFile(filepath.Join(a, "f"), make([]byte, 64<<10), 0o644); err != nil {
		b.Fatal(err)
	}
	s, err := fileserver.New(roots(fileserver.RootsOptions{Roots: map[string][]string{"base": {a}}}))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if c, err := s.Read("f", "base", 0, 0); err != nil || len(c.Data) != 64<<10 {
			b.Fatal(fmt.Sprint(len(c.Data), err))
		}
	}
}
