package exchange

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMarshal: answers look like those of Python's json.dumps, which scripts that take them apart by text rely on.
func TestMarshal(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{map[string]any{"return": []any{map[string]any{"a": true, "b": nil}}}, `{"return": [{"a": true, "b": null}]}`},
		{[]any{"a,b:c", `q",:"`, `\`, `\",`, "<é>&", 1.5, []any{}, map[string]any{}}, `["a,b:c", "q\",:\"", "\\", "\\\",", "<é>&", 1.5, [], {}]`},
		{"a:b", `"a:b"`},
	} {
		got, err := Marshal(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%v:\n%s, %v; want\n%s", c.in, got, err, c.want)
		}
	}
}

// TestErrorPages: as CherryPy's, they escape what would be markup, and no quotes.
func TestErrorPages(t *testing.T) {
	w := httptest.NewRecorder()
	Fail(w, httptest.NewRequest("GET", "/", nil), NewError(http.StatusNotFound, `The path '/<b>"&' was not found.`))
	if !strings.Contains(w.Body.String(), `<p>The path '/&lt;b&gt;"&amp;' was not found.</p>`) {
		t.Error(w.Body.String())
	}
}

// TestLongAccepts: only the beginning of an Accept header is read.
func TestLongAccepts(t *testing.T) {
	const yaml, other = "application/x-yaml", "text/plain;q=0.9,"
	for n, want := range map[int]string{0: yaml, 10: yaml, maxAccept / len(other): "", 4000: ""} {
		header := strings.Repeat(other, n) + yaml
		if got := Negotiate(header); got != want || Accepts(header, yaml) != (want != "") {
			t.Errorf("after %d other types: %q, want %q", n, got, want)
		}
	}
}
