package gitfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/fileserver"
)

// work is a repository that is written to.
type work struct {
	t   testing.TB
	dir string
}

func newWork(t testing.TB) *work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("git is not installed")
	}
	w := &work{t, t.TempDir()}
	w.git("init", "--quiet", "--initial-branch=master")
	return w
}

func (w *work) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, links ("->" before the target) and programs ("#!") and commits everything.
func (w *work) commit(files map[string]string) string {
	w.t.Helper()
	for name, text := range files {
		file := filepath.Join(w.dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		os.Remove(file)
		if to, link := strings.CutPrefix(text, "->"); link {
			err = errors.Join(err, os.Symlink(to, file))
		} else {
			mode := fs.FileMode(0o644)
			if strings.HasPrefix(text, "#!") {
				mode = 0o755
			}
			err = errors.Join(err, os.WriteFile(file, []byte(text), mode))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message=x")
	return w.git("rev-parse", "HEAD")
}

// sample is a repository with branches, a tag and links.
func sample(t testing.TB) (w *work, first string) {
	w = newWork(t)
	first = w.commit(map[string]string{"top.sls": "base", "states/web/init.sls": "web", "states/web/run.sh": "#!/bin/sh\n", "states/link.sls": "->web/init.sls",
		"states/up.sls": "->../top.sls", "states/out": "->../../../../etc/passwd", "states/abs": "->/etc/passwd", "states/loop": "->loop", "states/dir": "->web",
		"empty": "", "name with space/ü.txt": "ü"})
	w.git("tag", "v1")
	w.git("tag", "--annotate", "--message=x", "v1.1")
	w.git("checkout", "--quiet", "-b", "dev")
	w.commit(map[string]string{"top.sls": "dev", "only.dev": "x"})
	w.git("checkout", "--quiet", "-b", "feature/x", "master")
	w.commit(map[string]string{"feature": "x"})
	w.git("checkout", "--quiet", "master")
	return w, first
}

func open(t testing.TB, remotes ...Remote) (*FS, *fileserver.Server) {
	t.Helper()
	g, err := New(Options{Remotes: remotes, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{g}, ListCache: -1})
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

// read is the text of a file, or its error.
func read(s *fileserver.Server, name, env string) string {
	c, err := s.Read(name, env, 0, 0)
	if err != nil {
		return err.Error()
	}
	return string(c.Data)
}

func TestFiles(t *testing.T) {
	w, first := sample(t)
	_, s := open(t, Remote{URL: "file://" + w.dir, Base: "master"})
	if d := cmp.Diff([]string{"base", "dev", "feature/x", "v1", "v1.1"}, s.Envs()); d != "" {
		t.Error(d)
	}
	const none = "file not found"
	for _, c := range [][3]string{
		{"top.sls", "base", "base"}, {"top.sls", "dev", "dev"}, {"top.sls", "v1", "base"}, {"top.sls", "v1.1", "base"}, {"top.sls", first, "base"},
		{"top.sls", first[:10], "base"}, {"feature", "feature/x", "x"}, {"only.dev", "base", none}, {"only.dev", "dev", "x"}, {"empty", "base", ""},
		{"states/link.sls", "base", "web"}, {"states/up.sls", "base", "base"}, {"name with space/ü.txt", "base", "ü"},
		{"states/out", "base", none}, {"states/abs", "base", none}, {"states/loop", "base", none}, {"states/dir", "base", none}, {"states/dir/init.sls", "base", none},
		{"states", "base", none}, {"top.sls", "nothing", none}, {"top.sls", "master", none}, {"top.sls", "0000000000", none}, {"top.sls", "HEAD", none},
		{"top.sls", "--output=x", none}, {"top.sls", "../base", none}, {"../config", "base", none}, {"top.sls", first + "^{commit}", none},
	} {
		if got := read(s, c[0], c[1]); got != c[2] {
			t.Errorf("%s of %s: %q", c[0], c[1], got)
		}
	}
	f, err := s.Find("states/web/run.sh", "base")
	if err != nil || f.Info.Mode() != 0o755 || f.Back != "git" || f.Rel != "states/web/run.sh" {
		t.Error(f, err)
	}
	l, err := s.List(t.Context(), "base")
	if err != nil {
		t.Fatal(err)
	}
	want := fileserver.Listing{Files: []string{"empty", "name with space/ü.txt", "states/abs", "states/dir", "states/link.sls", "states/loop", "states/out", "states/up.sls",
		"states/web/init.sls", "states/web/run.sh", "top.sls"}, Dirs: []string{"name with space", "states", "states/web"},
		Links: map[string]string{"states/link.sls": "web/init.sls", "states/up.sls": "../top.sls", "states/out": "../../../../etc/passwd", "states/abs": "/etc/passwd",
			"states/loop": "loop", "states/dir": "web"}}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
}

func TestChangesArrive(t *testing.T) {
	w, _ := sample(t)
	remote := Remote{URL: "file://" + w.dir, Base: "master"}
	dir := t.TempDir()
	changes := 0
	g, err := New(Options{Remotes: []Remote{remote}, CacheDir: dir, Changed: func() { changes++ }})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(Options{Remotes: []Remote{remote}, CacheDir: dir}) // as another process
	if err != nil {
		t.Fatal(err)
	}
	s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{other}, ListCache: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Envs(); len(got) != 0 {
		t.Error("before the first update:", got)
	}
	update := func(want bool) {
		t.Helper()
		if changed, err := g.Update(t.Context()); err != nil || changed != want {
			t.Fatal(changed, err)
		}
	}
	update(true)
	update(false)
	if got := read(s, "top.sls", "base"); got != "base" {
		t.Error(got)
	}
	w.commit(map[string]string{"top.sls": "new"})
	w.git("branch", "--quiet", "-D", "dev")
	w.git("tag", "-d", "v1")
	w.git("tag", "--force", "v1.1")
	update(true)
	if got := read(s, "top.sls", "base"); got != "new" {
		t.Error(got)
	}
	if got := read(s, "top.sls", "v1.1"); got != "new" {
		t.Error("a tag that moved:", got)
	}
	if d := cmp.Diff([]string{"base", "feature/x", "v1.1"}, s.Envs()); d != "" {
		t.Error(d)
	}
	if changes != 2 {
		t.Error(changes, "changes were told")
	}
	if err := g.Clear(); err != nil {
		t.Fatal(err)
	}
	update(true)
	if got := read(s, "top.sls", "base"); got != "new" {
		t.Error("after clear:", got)
	}
}

func TestRun(t *testing.T) {
	w, _ := sample(t)
	told := make(chan struct{}, 1)
	g, err := New(Options{Remotes: []Remote{{URL: "file://" + w.dir, Base: "master"}}, CacheDir: t.TempDir(), Changed: func() { told <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("nothing was fetched")
	}
	cancel()
	<-done
}

func TestLocks(t *testing.T) {
	w, _ := sample(t)
	g, _ := open(t, Remote{URL: "file://" + w.dir, Base: "master"})
	if done, failed := g.Lock("*none*"); len(done)+len(failed) != 0 {
		t.Error(done, failed)
	}
	if done, failed := g.Lock(""); len(done) != 1 || len(failed) != 0 {
		t.Error(done, failed)
	}
	if _, failed := g.Lock(""); len(failed) != 1 {
		t.Error("locked twice")
	}
	if _, err := g.Update(t.Context()); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Error(err)
	}
	if done, failed := g.Unlock(""); len(done) != 1 || len(failed) != 0 {
		t.Error(done, failed)
	}
	// One that a dead process left does not count.
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.repos[0].lockFile(), []byte(strconv.Itoa(dead.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCVE_2023_20898_CopiesDoNotCollide: two remotes never share a copy, however their addresses look (T17).
func TestCVE_2023_20898_CopiesDoNotCollide(t *testing.T) {
	seen := map[string]string{}
	for _, u := range []string{"file:///a", "file:///a/", "file:///a.git", "file:///A", "https://h/a", "https://h/a?b", "https://h//a", "git@h:a", "git@h:a/"} {
		g, err := New(Options{Remotes: []Remote{{URL: u}}, CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(u, err)
		}
		name := filepath.Base(g.repos[0].dir)
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share %s", other, u, name)
		}
		seen[name] = u
	}
	dir := t.TempDir()
	for _, pair := range [][2]Remote{{{URL: "file:///a"}, {URL: "file:///a"}}, {{URL: "file:///a", Name: "x"}, {URL: "file:///b", Name: "x"}}} {
		if _, err := New(Options{Remotes: pair[:], CacheDir: dir}); err == nil {
			t.Errorf("%v share a copy", pair)
		}
	}
	if _, err := New(Options{Remotes: []Remote{{URL: "file:///a"}, {URL: "file:///a", Name: "x"}}, CacheDir: dir}); err != nil {
		t.Error(err)
	}
}

// TestCVE_2025_22237_NoProgramsInAddresses: an address never makes git run a program, and neither a repository's
// path nor an environment's name leads out of the cache (CVE-2025-22240).
func TestCVE_2025_22237_NoProgramsInAddresses(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	for _, r := range []Remote{
		{URL: "ext::sh -c touch% " + marker}, {URL: "--upload-pack=touch " + marker}, {URL: "fd::17"}, {URL: "file::ext::x"}, {URL: ""}, {URL: "relative/path"},
		{URL: "ftp://h/x"}, {URL: "file:///x\x00y"}, {URL: "https://ext::x/"}, {URL: "file:///x", Name: "../x"}, {URL: "file:///x", Name: ".."}, {URL: "file:///x", Name: "a/b"},
		{URL: "file:///x", Refspecs: []string{"--upload-pack=x"}}, {URL: "file:///x", Refspecs: []string{"refs/heads/*"}}, {URL: "file:///x", RefTypes: []string{"blob"}},
		{URL: "http://h/x", User: "u", Password: "p"},
	} {
		if g, err := New(Options{Remotes: []Remote{r}, CacheDir: t.TempDir()}); err == nil {
			t.Errorf("%+v is taken: %v", r, g)
		}
	}
	w, _ := sample(t)
	hook := filepath.Join(w.dir, ".git", "hooks", "post-checkout")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	g, err := New(Options{Remotes: []Remote{{URL: "file://" + w.dir, Base: "master", Fallback: "master"}}, CacheDir: filepath.Join(cache, "gitfs")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{g}})
	if err != nil {
		t.Fatal(err)
	}
	for _, env := range []string{"../../x", "/tmp/x", "..", ".", "a/../../b", "x\x00", strings.Repeat("a", 5000), "", "a//b", "feature/../../x"} {
		if got := read(s, "top.sls", env); got != "file not found" {
			t.Errorf("environment %q: %q", env, got)
		}
	}
	if got := read(s, "top.sls", "whatever"); got != "base" {
		t.Errorf("a fallback: %q", got)
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 || entries[0].Name() != "gitfs" {
		t.Error(entries, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
}

// TestPasswordsNeedTLS: a password is sent over http only with gitfs_insecure_auth, and a certificate is verified unless gitfs_ssl_verify is
// False.
func TestPasswordsNeedTLS(t *testing.T) {
	for _, c := range []struct {
		url      string
		insecure any
		taken    bool
	}{
		{"http://127.0.0.1:1/a.git", nil, false}, {"http://127.0.0.1:1/a.git", false, false}, {"http://127.0.0.1:1/a.git", true, true},
		{"https://127.0.0.1:1/a.git", false, true},
	} {
		opts := map[string]any{"cachedir": t.TempDir(), "gitfs_remotes": []any{c.url}, "gitfs_user": "u", "gitfs_password": "p"}
		if c.insecure != nil {
			opts["gitfs_insecure_auth"] = c.insecure
		}
		o, err := FromOpts(opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(o); (err == nil) != c.taken {
			t.Errorf("%s, gitfs_insecure_auth %v: %v", c.url, c.insecure, err)
		}
	}
	asked := make(chan string, 10)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.NotFound(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer srv.Close()
	for _, verify := range []any{nil, true, false} {
		opts := map[string]any{"cachedir": t.TempDir(), "gitfs_remotes": []any{srv.URL + "/a.git"}}
		if verify != nil {
			opts["gitfs_ssl_verify"] = verify
		}
		updateFails(t, opts)
		if trusted := len(asked) > 0; trusted != (verify == false) {
			t.Errorf("gitfs_ssl_verify %v: a request came through a certificate that nobody vouches for: %v", verify, trusted)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}

func TestFromOpts(t *testing.T) {
	type m = map[string]any
	o, err := FromOpts(m{"cachedir": "/c", "gitfs_base": "main", "gitfs_root": "srv", "gitfs_update_interval": int64(30), "gitfs_ref_types": []any{"Branch"},
		"gitfs_saltenv": []any{m{"prod": []any{m{"ref": "v1"}, m{"mountpoint": "salt://p"}}}},
		"gitfs_remotes": []any{"https://h/a.git", m{"https://h/b.git": []any{m{"base": "x"}, m{"saltenv": []any{m{"dev": []any{m{"root": "d"}}}}}, m{"name": "b"},
			m{"saltenv_whitelist": "a, b"}, m{"all_saltenvs": "main"}, m{"disable_saltenv_mapping": true}}}}})
	if err != nil {
		t.Fatal(err)
	}
	v1, p, d := "v1", "salt://p", "d"
	want := Options{CacheDir: "/c/gitfs", Envs: map[string]Env{"prod": {Ref: &v1, Mountpoint: &p}}, Remotes: []Remote{
		{URL: "https://h/a.git", Base: "main", Root: "srv", Interval: 30 * time.Second, RefTypes: []string{"branch"}},
		{URL: "https://h/b.git", Name: "b", Base: "x", Root: "srv", Interval: 30 * time.Second, RefTypes: []string{"branch"}, Allow: []string{"a", "b"}, All: "main",
			NoMapping: true, Envs: map[string]Env{"dev": {Root: &d}}}}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []m{
		{"gitfs_remotes": "https://h/a"}, {"gitfs_remotes": []any{int64(1)}}, {"gitfs_remotes": []any{m{"https://h/a": nil}}},
		{"gitfs_remotes": []any{m{"https://h/a": []any{m{"bse": "x"}}}}}, {"gitfs_remotes": []any{m{"https://h/a": []any{m{"a": 1, "b": 2}}}}},
		{"gitfs_remotes": []any{m{"https://h/a": []any{m{"saltenv": []any{m{"dev": []any{m{"x": "y"}}}}}}}}},
		{"gitfs_saltenv": "x"}, {"gitfs_passphrase": "x", "gitfs_remotes": []any{"https://h/a"}}, {"gitfs_update_interval": "x", "gitfs_remotes": []any{"https://h/a"}},
	} {
		if o, err := FromOpts(bad); err == nil {
			t.Errorf("%v is taken: %+v", bad, o)
		}
	}
}

func TestRedacted(t *testing.T) {
	if got := redacted("https://u:secret@h/x"); strings.Contains(got, "secret") || !strings.Contains(got, "h/x") {
		t.Error(got)
	}
	g, err := New(Options{Remotes: []Remote{{URL: "file:///nowhere/at/all", Password: "secret"}}, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if !slices.Equal(g.Envs(), []string{}) && g.Envs() != nil {
		t.Error(g.Envs())
	}
}

// TestProxy: requests go to the proxy of gitfs_proxy, or to that of the remote, which 3008 has, as it has depth.
func TestProxy(t *testing.T) {
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Host
		http.NotFound(w, r)
	}))
	defer proxy.Close()
	for name, opts := range map[string]map[string]any{
		"for all": {"gitfs_proxy": proxy.URL, "gitfs_depth": int64(1), "gitfs_remotes": []any{"http://git.test.invalid/a.git"}},
		"its own": {"gitfs_proxy": "http://127.0.0.1:1", "gitfs_remotes": []any{map[string]any{"http://git.test.invalid/a.git": []any{
			map[string]any{"proxy": proxy.URL}, map[string]any{"depth": int64(2)}}}}},
	} {
		opts["cachedir"] = t.TempDir()
		updateFails(t, opts)
		select {
		case host := <-asked:
			if host != "git.test.invalid" {
				t.Errorf("%s: the proxy was asked for %q", name, host)
			}
		default:
			t.Errorf("%s: the proxy was not asked", name)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}

// updateFails updates the remotes of the options, which have no repository.
func updateFails(t *testing.T, opts map[string]any) {
	t.Helper()
	o, err := FromOpts(opts)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(t.Context()); err == nil {
		t.Errorf("%v: there is no repository, and no error", opts)
	}
}
