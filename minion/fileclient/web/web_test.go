package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/httpproxy"
)

func TestFetch(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			_, _ = w.Write([]byte("content"))
		case "/moved":
			http.Redirect(w, r, "/file", http.StatusFound)
		case "/secret":
			user, password, _ := r.BasicAuth()
			_, _ = w.Write([]byte(user + "/" + password))
		default:
			http.NotFound(w, r)
		}
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	get := New(Options{MaxBytes: 20})
	for path, want := range map[string]string{"/file": "content", "/moved": "content"} {
		var b bytes.Buffer
		if err := get(t.Context(), server.URL+path, &b); err != nil || b.String() != want {
			t.Errorf("%s gave %q, %v", path, &b, err)
		}
	}
	var b bytes.Buffer
	if err := get(t.Context(), strings.Replace(server.URL, "//", "//me:pw@", 1)+"/secret", &b); err != nil || b.String() != "me/pw" {
		t.Errorf("with a password: %q, %v", &b, err)
	}
	if err := get(t.Context(), server.URL+"/nope", &b); err == nil || err.Error() != "HTTP 404: Not Found" {
		t.Errorf("missing: %v", err)
	}
	if err := New(Options{MaxBytes: 3})(t.Context(), server.URL+"/file", &b); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("too long: %v", err)
	}
	if err := get(t.Context(), "gopher://x/y", &b); err == nil {
		t.Error("gopher was fetched")
	}
}

// TestProxy is options proxy_host and no_proxy.
func TestProxy(t *testing.T) {
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String() + " " + r.Header.Get("Proxy-Authorization")
		_, _ = w.Write([]byte("by proxy"))
	}))
	defer proxy.Close()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	direct := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("direct")) }))
	defer direct.Close()
	get := New(Options{Proxy: httpproxy.Through(u.Hostname(), port, "me", "pw", []string{"127.0.0.1"})})
	var b bytes.Buffer
	if err := get(t.Context(), "http://files.example/x", &b); err != nil || b.String() != "by proxy" || asked != "http://files.example/x Basic bWU6cHc=" {
		t.Errorf("%q %q %v", &b, asked, err)
	}
	b.Reset()
	if err := get(t.Context(), direct.URL, &b); err != nil || b.String() != "direct" {
		t.Errorf("of no_proxy: %q %v", &b, err)
	}
}

// A server that cannot prove its name is refused (CVE-2020-28972, CVE-2020-35662).
func TestT16_CertificatesAreVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = nil
	var b bytes.Buffer
	err := New(Options{})(t.Context(), strings.Replace(server.URL, "//", "//me:hidden@", 1), &b)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}
