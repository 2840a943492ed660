//go:build unix

package file_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cpmod"
	filemod "github.com/brine-salt/brine/modules/file"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/file"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/statestest"
)

// host is a minion with files of its own (file_client: local) and a web server that has what web says.
type host struct {
	t       testing.TB
	env     *modules.Env
	dir     string
	web     map[string]string
	fetched int
}

func newHost(t testing.TB) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir(), web: map[string]string{}}
	h.write("srv/plain", "one\ntwo\n")
	h.write("srv/template", "{{ greeting }} {{ grains.os }} {{ list|join(',') }}\n")
	opts := map[string]any{"id": "minion", "cachedir": h.path("cache"), "hash_type": "sha256", "saltenv": "base", "file_client": "local", "user": "root"}
	h.env = &modules.Env{
		ID: "minion", Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return map[string]any{"os": "Debian", "kernel": "Linux"} },
		Runner: modulestest.Runner(nil), Templates: render.Render,
		Files: fileclient.New(fileclient.Options{Roots: map[string][]string{"base": {h.path("srv")}}, CacheDir: h.path("cache"),
			Fetch: func(_ context.Context, r fileclient.WebRequest, w io.Writer) (string, error) {
				h.fetched++
				text, ok := h.web[r.URL]
				if !ok {
					return "", errors.New("no such file")
				}
				_, err := io.WriteString(w, text)
				return "", err
			}}),
	}
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) write(name, text string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(h.path(name)), 0o755), os.WriteFile(h.path(name), []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// managed applies file.managed to the file f and gives result, comment and diff.
func (h *host) managed(t *testing.T, test bool, kwargs map[string]any) (result any, comment string, rec map[string]any) {
	t.Helper()
	kwargs["name"] = h.path("f")
	rec = statestest.Apply(t, h.env, file.Module, "file.managed", kwargs, test, filemod.Module, cpmod.Module)
	comment, _ = rec["comment"].(string)
	return rec["result"], strings.ReplaceAll(comment, h.dir+"/", ""), rec
}

func diffOf(rec map[string]any) any {
	changes, _ := rec["changes"].(map[string]any)
	return changes["diff"]
}

func TestManagedLocal(t *testing.T) {
	h := newHost(t)
	args := func() map[string]any { return map[string]any{"source": "salt://plain", "mode": "0600"} }
	if result, comment, _ := h.managed(t, true, args()); result != nil || !strings.HasPrefix(comment, "The file f is set to be changed") {
		t.Errorf("test: %v, %s", result, comment)
	}
	if result, comment, rec := h.managed(t, false, args()); result != true || comment != "File f updated" || diffOf(rec) != "New file" {
		t.Errorf("new: %v", rec)
	}
	if result, comment, rec := h.managed(t, false, args()); result != true || comment != "File f is in the correct state" || diffOf(rec) != nil {
		t.Errorf("again: %v", rec)
	}
	if h.read("f") != "one\ntwo\n" {
		t.Errorf("%q", h.read("f"))
	}
	_, _, rec := h.managed(t, false, map[string]any{"source": "salt://template", "template": "jinja", "context": map[string]any{"greeting": "hello"},
		"defaults": map[string]any{"greeting": "no", "list": []any{int64(1), int64(2)}}})
	if want := "--- \n+++ \n@@ -1,2 +1 @@\n-one\n-two\n+hello Debian 1,2\n"; diffOf(rec) != want {
		t.Errorf("template: %v", rec)
	}
}

func TestManagedWeb(t *testing.T) {
	const sum = "sha256=c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8" // of "one\ntwo\n"
	h := newHost(t)
	h.web["https://web/f"] = "other\n"
	args := func() map[string]any { return map[string]any{"source": "https://web/f", "source_hash": sum} }
	if result, comment, _ := h.managed(t, false, args()); result != false || !strings.Contains(comment, "does not match actual checksum") {
		t.Errorf("wrong hash: %v, %s", result, comment)
	}
	if _, err := os.Lstat(h.path("f")); err == nil {
		t.Error("a file with the wrong hash was put in place")
	}
	h.web["https://web/f"] = "one\ntwo\n"
	if result, comment, rec := h.managed(t, false, args()); result != true || h.read("f") != "one\ntwo\n" {
		t.Errorf("right hash: %v, %s, %v", result, comment, rec)
	}
	h.fetched = 0
	if result, comment, _ := h.managed(t, false, args()); result != true || comment != "File f exists with proper permissions. No changes made." {
		t.Errorf("again: %v, %s", result, comment)
	}
	if h.fetched != 0 {
		t.Error("a file that is right was fetched again")
	}
	if result, comment, _ := h.managed(t, false, map[string]any{"source": "https://web/f"}); result != false ||
		comment != "Unable to manage file: Unable to verify upstream hash of source file https://web/f, please set source_hash or set skip_verify to True" {
		t.Errorf("no hash: %v, %s", result, comment)
	}
	h.web["https://web/f"] = "three\n"
	if result, comment, _ := h.managed(t, false, map[string]any{"source": []any{"salt://none", "https://web/f"}, "skip_verify": true}); result != true || h.read("f") == "" {
		t.Errorf("no verification: %v, %s", result, comment)
	}
}

func TestManagedTolerance(t *testing.T) {
	for _, c := range []struct {
		title, have, want string
		args              map[string]any
		skip              bool
	}{
		{"nothing ignored", "a\nb\n", "b\na\n", nil, false},
		{"order", "a\nb\n", "b\na\n", map[string]any{"ignore_ordering": true}, true},
		{"order and more", "a\nb\n", "b\nc\n", map[string]any{"ignore_ordering": true}, false},
		{"space", "a\n", "  a\n", map[string]any{"ignore_whitespace": true}, true},
		{"comment", "a # b\n", "a # c\n", map[string]any{"ignore_comment_characters": "#"}, true},
	} {
		for _, test := range []bool{true, false} {
			h := newHost(t)
			h.write("f", c.have)
			args := map[string]any{"contents": c.want}
			for k, v := range c.args {
				args[k] = v
			}
			result, comment, rec := h.managed(t, test, args)
			if (result == nil) != test || result == false || (rec["skip_req"] == true) != c.skip || diffOf(rec) == nil {
				t.Errorf("%s: %v, %s, %v", c.title, result, comment, rec)
			}
			if !test && h.read("f") != c.want {
				t.Errorf("%s: %q", c.title, h.read("f"))
			}
		}
	}
}

func TestManagedNewFileDiff(t *testing.T) {
	for _, args := range []map[string]any{
		{"new_file_diff": true, "contents": "one\ntwo"}, {"new_file_diff": true, "source": "salt://plain"},
	} {
		h := newHost(t)
		for _, test := range []bool{true, false} {
			if _, _, rec := h.managed(t, test, args); diffOf(rec) != "--- \n+++ \n@@ -0,0 +1,2 @@\n+one\n+two\n" {
				t.Errorf("%v, test %v: %v", args, test, rec)
			}
		}
		h = newHost(t)
		args["show_changes"] = false
		if _, _, rec := h.managed(t, false, args); diffOf(rec) != "New file" {
			t.Errorf("%v: %v", args, rec)
		}
	}
}

// TestManagedFailures: nothing is left or changed where a state fails.
func TestManagedFailures(t *testing.T) {
	for _, c := range []struct {
		args    map[string]any
		comment string
	}{
		{map[string]any{"source": "salt://none"}, "Unable to manage file: Source file salt://none not found in saltenv 'base'"},
		{map[string]any{"source": "salt://template", "template": "jinja"}, "Unable to manage file: Jinja variable 'greeting' is undefined"},
		{map[string]any{"source": []any{"salt://none"}}, "Unable to manage file: none of the specified sources were found"},
		{map[string]any{"contents": "x", "check_cmd": "false"}, ""},
	} {
		h := newHost(t)
		h.write("f", "old\n")
		result, comment, _ := h.managed(t, false, c.args)
		if result != false || !strings.HasPrefix(comment, c.comment) || h.read("f") != "old\n" {
			t.Errorf("%v: %v, %s", c.args, result, comment)
		}
		entries, _ := os.ReadDir(h.dir)
		for _, e := range entries {
			if n := e.Name(); n != "f" && n != "srv" && n != "cache" {
				t.Errorf("%v: %s is left", c.args, n)
			}
		}
	}
}
