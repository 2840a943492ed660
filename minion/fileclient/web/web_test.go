package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
