//go:build interop

package gitfs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/master/fileserver"
)

// TestStock compares environments, listings and files with those of stock's gitfs (over GitPython) for the same
// configurations.
func TestStock(t *testing.T) {
	type m = map[string]any
	w, first := sample(t)
	w.git("branch", "feed", "dev") // a name that is a number as well
	second := newWork(t)
	second.commit(map[string]string{"top.sls": "second", "second.sls": "x", "sub/deep/x": "x"})
	one, two := "file://"+w.dir, "file://"+second.dir
	envs := []string{"base", "dev", "feature/x", "v1", "prod", "none", "feed", first, "dead"}
	files := []string{"top.sls", "states/web/run.sh", "states/link.sls", "states/loop", "states", "web/init.sls", "mnt/top.sls", "a/b/second.sls", "only.dev"}
	with := func(url string, params ...any) any { return m{url: params} }
	configs := map[string]m{
		"plain":                {"gitfs_remotes": []any{one}},
		"base of another name": {"gitfs_remotes": []any{one}, "gitfs_base": "dev"},
		"base is a tag":        {"gitfs_remotes": []any{with(one, m{"base": "v1.1"})}},
		"base is a commit":     {"gitfs_remotes": []any{with(one, m{"base": first})}},
		"two remotes":          {"gitfs_remotes": []any{two, one}},
		"root":                 {"gitfs_remotes": []any{one}, "gitfs_root": "states"},
		"root of two parts":    {"gitfs_remotes": []any{with(one, m{"root": "states/web/"})}},
		"root is missing":      {"gitfs_remotes": []any{with(one, m{"root": "nothing"}), two}},
		"mountpoint":           {"gitfs_remotes": []any{with(one, m{"root": "states"}, m{"mountpoint": "salt://mnt"}), two}},
		"deep mountpoint":      {"gitfs_remotes": []any{with(two, m{"mountpoint": "salt://a/b/"}), one}},
		"own environments":     {"gitfs_remotes": []any{with(one, m{"saltenv": []any{m{"prod": []any{m{"ref": "v1"}}}, m{"base": []any{m{"ref": "dev"}}}, m{"dev": []any{m{"mountpoint": "salt://mnt"}}}}})}},
		"common environments":  {"gitfs_remotes": []any{one, two}, "gitfs_saltenv": []any{m{"prod": []any{m{"ref": "dev"}}}, m{"v1": []any{m{"root": "states"}}}}},
		"all environments":     {"gitfs_remotes": []any{one, with(two, m{"all_saltenvs": "master"})}},
		"only branches":        {"gitfs_remotes": []any{one}, "gitfs_ref_types": []any{"branch"}},
		"only commits":         {"gitfs_remotes": []any{with(one, m{"ref_types": []any{"sha"}})}},
		"fallback":             {"gitfs_remotes": []any{one}, "gitfs_fallback": "dev"},
		"no mapping":           {"gitfs_remotes": []any{with(one, m{"disable_saltenv_mapping": true}, m{"saltenv": []any{m{"prod": []any{m{"ref": "v1"}}}}})}},
		"allowed":              {"gitfs_remotes": []any{one}, "gitfs_saltenv_whitelist": []any{"base", "v.*"}},
		"denied":               {"gitfs_remotes": []any{one}, "gitfs_saltenv_blacklist": []any{"v1*", "de."}},
		"allowed and denied":   {"gitfs_remotes": []any{with(one, m{"saltenv_whitelist": "v*,base"}, m{"saltenv_blacklist": "v1"})}},
		"the same twice":       {"gitfs_remotes": []any{one, one}},
		"unknown parameter":    {"gitfs_remotes": []any{with(one, m{"nonsense": 1})}},
		"unknown ref type":     {"gitfs_remotes": []any{one}, "gitfs_ref_types": []any{"blob"}},
	}
	var names []string
	for name := range configs {
		names = append(names, name)
	}
	slices.Sort(names)
	var cases []any
	for i, name := range names {
		opts := m{"cachedir": filepath.Join(t.TempDir(), fmt.Sprint(i))}
		for k, v := range configs[name] {
			opts[k] = v
		}
		cases = append(cases, m{"opts": opts, "envs": envs, "files": files})
	}
	t.Setenv("HOME", t.TempDir())
	var answers []any
	testsalt.Ask(t, cases, &answers, "testdata/stock.py")
	if len(answers) != len(names) {
		t.Fatalf("%d answers", len(answers))
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			opts := m{"gitfs_base": "master"}
			for k, v := range configs[name] {
				opts[k] = v
			}
			opts["cachedir"] = t.TempDir()
			got := ourAnswer(t, opts, envs, files)
			// For a commit that one of several remotes lacks, stock raises an exception; ours continues with the
			// next remote.
			if want, ok := answers[i].(m); ok && got["error"] == nil && want["error"] == nil {
				for _, part := range []string{"list", "read"} {
					for key, v := range want[part].(m) {
						if env, _, _ := strings.Cut(key, " "); v == "raises" && isHex(env) {
							want[part].(m)[key] = got[part].(m)[key]
						}
					}
				}
			}
			if diff := cmp.Diff(answers[i], any(got)); diff != "" {
				t.Errorf("(-stock +ours):\n%s", diff)
			}
		})
	}
}

// ourAnswer returns our back end's answer for a configuration, in the form of stock's.
func ourAnswer(t *testing.T, opts map[string]any, envs, files []string) map[string]any {
	refused := map[string]any{"error": "FileserverConfigError"}
	o, err := FromOpts(opts)
	if err != nil {
		return refused
	}
	g, err := New(o)
	if err != nil {
		return refused
	}
	if _, err := g.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := fileserver.New(fileserver.Options{Backends: []fileserver.Backend{g}, ListCache: -1})
	if err != nil {
		t.Fatal(err)
	}
	list, text := map[string]any{}, map[string]any{}
	for _, env := range envs {
		l, err := s.List(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		links := map[string]any{}
		for k, v := range l.Links {
			links[k] = v
		}
		list[env] = []any{nested.Anys(l.Files), nested.Anys(l.Dirs), links, nested.Anys(l.EmptyDirs)}
		for _, name := range files {
			text[env+" "+name] = nil
			if f, err := s.Find(name, env); err == nil {
				text[env+" "+name] = []any{read(s, name, env), fmt.Sprintf("0o%o", f.Info.Mode().Perm()), f.Rel}
			}
		}
	}
	return map[string]any{"envs": nested.Anys(s.Envs()), "list": list, "read": text}
}
