package testserver

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// echo starts a web server that answers with the request: method, path, Content-Type, X-Test, Authorization,
// User-Agent and body. Some pages have another type or status, or redirect.
func echo(t testing.TB) (port string) {
	s := httptest.NewServer(http.HandlerFunc(answerEcho))
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':')+1:]
}

func answerEcho(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	header := func(name string) string { return cmp.Or(r.Header.Get(name), "-") }
	code, kind := http.StatusOK, "text/plain"
	out := fmt.Sprintf("%s %s %s %s %s %s %s", r.Method, r.RequestURI, header("Content-Type"), header("X-Test"),
		header("Authorization"), header("User-Agent"), body)
	switch page, _, _ := strings.Cut(r.URL.Path[1:], "/"); page {
	case "json":
		kind, out = "application/json", `{"a": [1, 2.5, null], "b": {"c": "d"}}`
	case "yaml":
		kind, out = "text/yaml", "a: yes\nb: [1, x]\n"
	case "xml":
		kind, out = "application/xml", "<r><a>1</a><b><c>2</c><c>3</c><d/></b><b x='y'>t</b></r>"
	case "latin":
		kind, out = "text/plain; charset=ISO-8859-1", "\xe9"
	case "missing":
		code, out = http.StatusNotFound, "nothing here"
	case "broken":
		code, out = http.StatusServiceUnavailable, "later"
	case "empty":
		code, out = http.StatusNoContent, ""
	case "once":
		code = http.StatusFound
		w.Header().Set("Location", "/json")
	case "loop":
		code = http.StatusFound
		w.Header().Set("Location", "/loop")
	}
	w.Header()["Date"] = nil
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, out) // the client may have gone
}
