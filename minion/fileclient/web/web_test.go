package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/httpproxy"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
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
		if _, err := get(t.Context(), fileclient.WebRequest{URL: server.URL + path}, &b); err != nil || b.String() != want {
			t.Errorf("%s gave %q, %v", path, &b, err)
		}
	}
	var b bytes.Buffer
	if _, err := get(t.Context(), fileclient.WebRequest{URL: strings.Replace(server.URL, "//", "//me:pw@", 1) + "/secret"}, &b); err != nil || b.String() != "me/pw" {
		t.Errorf("with a password: %q, %v", &b, err)
	}
	if _, err := get(t.Context(), fileclient.WebRequest{URL: server.URL + "/nope"}, &b); err == nil || err.Error() != "HTTP 404: Not Found" {
		t.Errorf("missing: %v", err)
	}
	if _, err := New(Options{MaxBytes: 3})(t.Context(), fileclient.WebRequest{URL: server.URL + "/file"}, &b); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("too long: %v", err)
	}
	if _, err := get(t.Context(), fileclient.WebRequest{URL: "gopher://x/y"}, &b); err == nil {
		t.Error("gopher was fetched")
	}
}

// TestProxy covers the options proxy_host and no_proxy.
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
	if _, err := get(t.Context(), fileclient.WebRequest{URL: "http://files.example/x"}, &b); err != nil || b.String() != "by proxy" || asked != "http://files.example/x Basic bWU6cHc=" {
		t.Errorf("%q %q %v", &b, asked, err)
	}
	b.Reset()
	if _, err := get(t.Context(), fileclient.WebRequest{URL: direct.URL}, &b); err != nil || b.String() != "direct" {
		t.Errorf("of no_proxy: %q %v", &b, err)
	}
}

// TestT16_CertificatesAreVerified: a server that cannot prove its name is refused (CVE-2020-28972, CVE-2020-35662).
func TestT16_CertificatesAreVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = nil
	var b bytes.Buffer
	address := strings.Replace(server.URL, "//", "//me:hidden@", 1)
	_, err := New(Options{})(t.Context(), fileclient.WebRequest{URL: address}, &b)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	// The caller may accept any certificate (verify_ssl: False).
	if _, err := New(Options{})(t.Context(), fileclient.WebRequest{URL: address, AnyCertificate: true}, &b); err == nil || err.Error() != "HTTP 404: Not Found" {
		t.Errorf("with any certificate: %v", err)
	}
}

// TestETag: a file is sent again only if the server has another version.
func TestETag(t *testing.T) {
	version, sent := "1", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := `"v` + version + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		_, _ = w.Write([]byte("version " + version))
	}))
	defer server.Close()
	c := fileclient.New(fileclient.Options{CacheDir: t.TempDir(), Fetch: New(Options{})})
	for i, step := range []struct {
		version string
		etag    bool
		sent    int
	}{{"1", true, 1}, {"1", true, 1}, {"1", false, 2}, {"2", true, 3}, {"2", true, 3}, {"2", false, 4}} {
		version = step.version
		path, err := c.CacheWeb(t.Context(), server.URL+"/f", "base", modules.WebFile{ETag: step.etag})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "version "+step.version || sent != step.sent {
			t.Errorf("step %d: %q %v, sent %d times, not %d", i, b, err, sent, step.sent)
		}
	}
	path, err := c.CacheWeb(t.Context(), server.URL+"/f", "base", modules.WebFile{ETag: true})
	if err != nil || os.Remove(path) != nil {
		t.Fatal(err)
	}
	if _, err := c.CacheWeb(t.Context(), server.URL+"/f", "base", modules.WebFile{ETag: true}); err != nil || sent != 5 {
		t.Errorf("a file that was removed from the cache: %v, sent %d times", err, sent)
	}
}
