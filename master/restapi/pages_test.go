package restapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master/restapi"
)

func TestPages(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"gui/index.html": "<title>gui</title>", "gui/static/a.js": "let a", "gui/static/sub/b.css": "p {}", "gui/icon.png": "\x89PNG", "secret": "secret",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": filepath.Join(dir, "secret"), "up": "../../secret", "in.js": "a.js"} {
		if err := os.Symlink(to, filepath.Join(dir, "gui/static", link)); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, func(o *restapi.Options) {
		o.Pages = restapi.Pages{App: dir + "/gui/index.html", Static: dir + "/gui/static", Favicon: dir + "/gui/icon.png"}
	})
	s.token = ""
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct {
		path, accept string
		code         int
		kind, body   string
	}{
		{"/", browser, 200, "text/html; charset=utf-8", "<title>gui</title>"},
		{"/minions", browser, 200, "text/html; charset=utf-8", "<title>gui</title>"},
		{"/app", "*/*", 200, "text/html; charset=utf-8", "<title>gui</title>"},
		{"/app/jobs/1", "*/*", 200, "text/html; charset=utf-8", "<title>gui</title>"},
		{"/apple", "*/*", 404, "", ""},
		{"/", "*/*", 200, "application/json", ""},
		{"/", "application/json, text/plain, */*", 200, "application/json", ""},
		{"/healthz", browser, 200, "text/plain; charset=utf-8", "ok\n"},
		{"/favicon.ico", "*/*", 200, "image/png", "\x89PNG"},
		{"/static/a.js", "*/*", 200, "text/javascript; charset=utf-8", "let a"},
		{"/static/in.js", "*/*", 200, "text/javascript; charset=utf-8", "let a"},
		{"/static/sub/b.css", "*/*", 200, "text/css; charset=utf-8", "p {}"},
		{"/static/none.txt", "text/plain", 404, "", ""},
		{"/static/sub", browser, 404, "", ""},
		{"/static", "*/*", 404, "", ""},
		{"/static/out", "*/*", 404, "", ""},
		{"/static/up", "*/*", 404, "", ""},
		{"/static/..%2f..%2fsecret", "*/*", 404, "", ""},
		{"/static/sub/%2e%2e/%2e%2e/%2e%2e/secret", "*/*", 404, "", ""},
		{"/static/a.js%00", "*/*", 404, "", ""},
		{"/static//etc/passwd", "*/*", 404, "", ""},
	} {
		code, body, h := s.do("GET", c.path, "", "", "Accept", c.accept)
		if code != c.code || c.kind != "" && h.Get("Content-Type") != c.kind || c.body != "" && body != c.body {
			t.Errorf("%s for %s: %d %s %q", c.path, c.accept, code, h.Get("Content-Type"), body)
		}
		if strings.Contains(body, "secret") && !strings.Contains(c.path, "secret") || body == "secret" {
			t.Errorf("%s shows %q", c.path, body)
		}
	}
	if code, _, _ := s.do("POST", "/static/a.js", "application/json", "{}"); code != http.StatusNotFound {
		t.Errorf("POST of a page: %d", code)
	}
}

func TestPagesThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, nil)
	for _, p := range []restapi.Pages{{App: dir}, {App: dir + "/none"}, {Static: dir + "/none"}, {Favicon: dir}} {
		o := s.options
		o.Pages = p
		if r, err := restapi.New(o); err == nil {
			r.Close()
			t.Errorf("%+v is taken", p)
		}
	}
}

func TestAddresses(t *testing.T) {
	const login = `{"username": "alice", "password": "secret", "eauth": "file"}`
	s := newSite(t, nil)
	for _, c := range []struct {
		name  string
		rules restapi.Addresses
		code  int
	}{
		{"no rules", restapi.Addresses{}, 200},
		{"an address", restapi.Addresses{Authorized: []string{"10.0.0.1", "::ffff:127.0.0.1"}}, 200},
		{"other addresses", restapi.Addresses{Authorized: []string{"10.0.0.1", "::1"}}, 403},
		{"a user's address", restapi.Addresses{Users: map[string][]string{"alice": {"127.0.0.1"}}}, 200},
		{"a user's other address", restapi.Addresses{Users: map[string][]string{"alice": {"127.0.0.2"}, "*": {"*"}}}, 401},
		{"everybody's address", restapi.Addresses{Users: map[string][]string{"bob": {"127.0.0.2"}, "*": {"127.0.0.1"}}}, 200},
		{"every address", restapi.Addresses{Users: map[string][]string{"alice": {"*"}}}, 200},
		{"nobody's rule", restapi.Addresses{Users: map[string][]string{"bob": {"*"}}}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := s.options
			o.Addresses, o.LoginRate = c.rules, -1
			s.serve(o)
			s.token = ""
			for _, path := range []string{"/login", "/token"} {
				if code, text, _ := s.do("POST", path, "application/json", login); code != c.code {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			if code, v := s.json("POST", "/run", m{"client": "runner", "fun": "test.metasyntactic", "username": "alice", "password": "secret", "eauth": "file"}); code != c.code {
				t.Errorf("/run: %d %v", code, v)
			}
		})
	}
	for _, a := range []restapi.Addresses{{Authorized: []string{"*"}}, {Authorized: []string{"localhost"}}, {Users: map[string][]string{"x": {"10.0.0.0/8"}}}} {
		o := s.options
		o.Addresses = a
		if r, err := restapi.New(o); err == nil {
			r.Close()
			t.Errorf("%+v is taken", a)
		}
	}
}
