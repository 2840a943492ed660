//go:build interop

package fileserver_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/master/fileserver"
)

// TestStockRoots compares listings and files of directories with links and with what is ignored with those of stock's roots.
func TestStockRoots(t *testing.T) {
	type m = map[string]any
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one/top.sls": "one", "one/web/init.sls": "web", "one/web/files/a b": "x", "one/web/.hidden": "h", "one/web/init.sls~": "old", "one/.svn/entries": "x",
		"one/é/ü.sls": "u", "one/deep/a/b/c.sls": "deep", "two/top.sls": "two", "two/only.sls": "two", "two/web/more.sls": "more", "out/secret": "s", "out/sub/x": "x",
		"any/dev/top.sls": "dev", "any/x.y/top.sls": "x.y",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one/empty", "one/nested/empty", "two/empty"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"one/same.sls": "top.sls", "one/web/up.sls": "../top.sls", "one/web/dir": "files", "one/web/updir": "../deep", "one/dead": "nothing",
		"one/out.txt": "../out/secret", "one/outdir": "../out", "one/web/out": "../../out/secret", "one/abs": filepath.Join(dir, "one/top.sls"), "one/absout": filepath.Join(dir, "out/secret"),
		"one/chain": "same.sls", "one/toempty": "empty", "one/sibling": "../two/only.sls",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(names ...string) (out []any) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	configs := []m{
		{"file_roots": m{"base": at("one", "two")}},
		{"file_roots": m{"base": at("two", "one", "none")}, "fileserver_followsymlinks": false},
		{"file_roots": m{"base": at("one")}, "fileserver_ignoresymlinks": true},
		{"file_roots": m{"base": at("one")}, "fileserver_ignoresymlinks": true, "fileserver_followsymlinks": false},
		{"file_roots": m{"base": at("one"), "dev": at("two", "one")}, "file_ignore_glob": []any{"*.sls~", ".svn/*", "*/.hidden"}},
		{"file_roots": m{"base": at("one")}, "file_ignore_regex": []any{`/\.svn($|/)`, `(?i)WEB/[^/]*$`, `^top`, `~$`}},
		{"file_roots": m{"base": at("one")}, "file_ignore_glob": []any{"web", "deep/*", "[é]/*"}},
		{"file_roots": m{"base": at("one")}, "file_ignore_glob": []any{filepath.Join(dir, "one/web/*")}},
		{"file_roots": m{"base": at("one"), "__env__": at("any/__env__", "two")}},
	}
	envs := []string{"base", "dev", "x.y", "none"}
	files := []string{"top.sls", "only.sls", "web/init.sls", "web/files/a b", "web/.hidden", "web/up.sls", "web/dir/a b", "web/updir/a/b/c.sls", "dead", "empty", "out.txt",
		"outdir/secret", "outdir/sub/x", "web/out", "abs", "absout", "chain", "sibling", "é/ü.sls", "web", ".svn/entries", "web/init.sls~", "../out/secret", "web/../top.sls", "/top.sls", "./top.sls", "web//init.sls"}
	var cases []any
	for i, c := range configs {
		opts := m{"cachedir": filepath.Join(dir, "cache", fmt.Sprint(i)), "fileserver_backend": []any{"roots"}}
		for k, v := range c {
			opts[k] = v
		}
		cases = append(cases, m{"opts": opts, "envs": envs, "files": files})
	}
	var answers []m
	testsalt.Ask(t, cases, &answers, "gitfs/testdata/stock.py")
	if len(answers) != len(configs) {
		t.Fatalf("%d answers", len(answers))
	}
	for i, c := range configs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ro := fileserver.RootsOptions{Roots: map[string][]string{}, FollowSymlinks: c["fileserver_followsymlinks"] != false, IgnoreSymlinks: c["fileserver_ignoresymlinks"] == true}
			for env, dirs := range c["file_roots"].(m) {
				for _, d := range dirs.([]any) {
					ro.Roots[env] = append(ro.Roots[env], d.(string))
				}
			}
			strs := func(key string) (out []string) {
				list, _ := c[key].([]any)
				for _, x := range list {
					out = append(out, x.(string))
				}
				return out
			}
			ignore, err := fileserver.NewIgnore(strs("file_ignore_regex"), strs("file_ignore_glob"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{fileserver.NewRoots(ro)}, Ignore: ignore, ListCache: -1})
			if err != nil {
				t.Fatal(err)
			}
			lists, texts := m{}, m{}
			for _, env := range envs {
				l, err := s.List(t.Context(), env)
				if err != nil {
					t.Fatal(err)
				}
				links := m{}
				for k, v := range l.Links {
					links[k] = v
				}
				lists[env] = []any{nested.Anys(l.Files), nested.Anys(l.Dirs), links, nested.Anys(l.EmptyDirs)}
				for _, name := range files {
					texts[env+" "+name] = nil
					if f, err := s.Find(name, env); err == nil {
						texts[env+" "+name] = []any{content(t, s, name, env), fmt.Sprintf("0o%o", f.Info.Mode().Perm()), f.Rel}
					}
				}
			}
			follows := ro.FollowSymlinks
			for _, env := range envs {
				// What is ignored is not served: stock asks with the whole path there, which ours does beside.
				for _, name := range files {
					if key := env + " " + name; ignore.Match(path.Clean(name)) && texts[key] == nil {
						answers[i]["read"].(m)[key] = nil
					}
				}
				if follows {
					continue
				}
				// Where links are not followed the kernel resolves names below the root: what an absolute link, or one that
				// leads out, is cannot be seen.
				answers[i]["read"].(m)[env+" abs"] = nil
			}
			if d := cmp.Diff(answers[i], m{"envs": nested.Anys(s.Envs()), "list": lists, "read": texts}); d != "" {
				t.Errorf("%v (-stock +ours):\n%s", c, d)
			}
		})
	}
}

// content reads a file of the server.
func content(t *testing.T, s *fileserver.Server, name, env string) string {
	t.Helper()
	c, err := s.Read(name, env, 0, 0)
	if err != nil {
		t.Error(name, err)
	}
	return string(c.Data)
}
