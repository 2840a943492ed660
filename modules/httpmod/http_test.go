package httpmod

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/missing":
		http.Error(w, "nothing here", http.StatusNotFound)
		return
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"a": [1, 2.5, null]}`)
		return
	case "/yaml":
		w.Header().Set("Content-Type", "text/yaml")
		fmt.Fprint(w, "a: yes\n")
		return
	case "/xml":
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprint(w, `<r xmlns="x"><a>1</a><b><c>2</c><c>3</c><d/></b></r>`)
		return
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, "packed")
		z.Close()
		return
	case "/latin":
		w.Header().Set("Content-Type", "text/plain; charset=ISO-8859-1")
		_, _ = w.Write([]byte{0xe9})
		return
	case "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
		return
	case "/once":
		http.Redirect(w, r, "/", http.StatusFound)
		return
	}
	user, password, _ := r.BasicAuth()
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s %s%stype=%s x=%s agent=%s body=%s", r.Method, r.URL.RequestURI(), user, password, r.Header.Get("Content-Type"), r.Header.Get("X-Test"),
		r.Header.Get("User-Agent"), b)
}

func call(t *testing.T, fun string, args []any, kwargs map[string]any) modules.Result {
	t.Helper()
	e := modulestest.Env(t)
	return modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
}

type m = map[string]any

func TestQuery(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echo))
	defer s.Close()
	const agent = " agent=Salt/3007.16 http.query() body="
	for _, c := range []struct {
		path   string
		kwargs m
		want   m
	}{
		{"/", nil, m{"body": "GET / type= x=" + agent}},
		{"/?a=b", m{"params": m{"c": "d e"}, "status": true}, m{"body": "GET /?a=b&c=d+e type= x=" + agent, "status": int64(200)}},
		{"/", m{"method": "POST", "data": "x=y", "username": "u", "password": "p"}, m{"body": "POST / uptype=application/x-www-form-urlencoded x=" + agent + "x=y"}},
		{"/", m{"method": "PUT", "data": m{"k": int64(1)}, "header_dict": m{"Content-Type": "t/x"}, "header_list": []any{"X-Test: a:b"}},
			m{"body": "PUT / type=t/x x=a:b" + agent + "k=1"}},
		{"/", m{"agent": "mine", "text": true}, m{"body": "GET / type= x= agent=mine body=", "text": "GET / type= x= agent=mine body="}},
		{"/missing", nil, m{"body": "nothing here\n", "error": "HTTP 404: Not Found", "status": int64(404)}},
		{"/missing", m{"raise_error": false, "status": true}, m{"body": "nothing here\n", "status": int64(404)}},
		{"/json", m{"decode": true}, m{"body": `{"a": [1, 2.5, null]}`, "dict": m{"a": []any{int64(1), 2.5, nil}}}},
		{"/yaml", m{"decode": true}, m{"body": "a: yes\n", "dict": m{"a": true}}},
		{"/xml", m{"decode": true}, m{"body": `<r xmlns="x"><a>1</a><b><c>2</c><c>3</c><d/></b></r>`,
			"dict": []any{m{"a": "1"}, m{"c": []any{"2", m{"c": "3"}}, "d": nil}}}},
		{"/latin", m{"decode": true}, m{"body": "é", "text": "é"}},
		{"/json", m{"decode": true, "decode_type": "bad"}, m{"body": `{"a": [1, 2.5, null]}`,
			"error": "Invalid decode_type specified. Valid decode types are: ('json', 'xml', 'yaml', 'plain')"}},
		{"/gzip", nil, m{"body": "packed"}},
		{"/latin", m{"decode_body": false}, m{"body": []byte{0xe9}}},
		{"/once", nil, m{"body": "GET / type= x=" + agent}},
		{"/loop", nil, m{"body": "<a href=\"/loop\">Found</a>.\n\n", "error": "HTTP 302: Found", "status": int64(302)}},
		{"/", m{"test": true}, m{}},
		{"/missing", m{"test": true, "test_url": s.URL + "/gzip"}, m{"body": "packed", "test": true}},
	} {
		res := call(t, "http.query", []any{s.URL + c.path}, c.kwargs)
		if diff := cmp.Diff(any(c.want), res.Return); diff != "" || res.Err != nil {
			t.Errorf("%s %v: %v\n%s", c.path, c.kwargs, res.Err, diff)
		}
	}
	s.Close()
	if res := call(t, "http.query", []any{s.URL}, m{"status": true}); !cmp.Equal(res.Return, any(m{"error": "[Errno 111] Connection refused", "status": int64(0)})) {
		t.Error(res.Return)
	}
}

// TestRefused: what cannot be sent is an error before anything is.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		url    string
		kwargs m
		want   string
	}{
		{"file:///etc/passwd", nil, "Unsupported url scheme: file:///etc/passwd"}, {"http://", nil, "Unsupported url scheme: http://"},
		{"http://127.0.0.1:1", m{"header_dict": m{"A": "b\r\nC: d"}}, `cannot send the header "A": it has a line end in it, or no name`},
		{"http://127.0.0.1:1", m{"cookies": true}, "http.query cannot do cookies here"}, {"http://127.0.0.1:1", m{"formdata": true}, "formdata_fieldname is required when formdata=True"},
		{"http://127.0.0.1:1", m{"cert": "/nothing"}, "The client-side certificate path that was passed is not valid"},
	} {
		res := call(t, "http.query", []any{c.url}, c.kwargs)
		if res.Err == nil || !strings.Contains(res.Err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.url, c.kwargs, res.Err)
		}
	}
}

func TestWaitForSuccess(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "now")
	}))
	defer s.Close()
	if res := call(t, "http.wait_for_successful_query", []any{s.URL}, m{"request_interval": 0.001}); !cmp.Equal(res.Return, any(m{"body": "now"})) || n != 3 {
		t.Error(n, res.Return)
	}
	n = -1000
	if res := call(t, "http.wait_for_successful_query", []any{s.URL, int64(0)}, nil); res.Return.(m)["error"] != "HTTP 503: Service Unavailable" {
		t.Error(res.Return)
	}
}

func TestUpdateBundle(t *testing.T) {
	const pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
	body := pem
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer s.Close()
	e := modulestest.Env(t)
	e.Root = t.TempDir()
	target := filepath.Join(e.Root, "bundle.pem")
	for name, text := range map[string]string{"bundle.pem": "old", "more.pem": "more"} {
		if err := os.WriteFile(filepath.Join(e.Root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func() modules.Result {
		return modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: "http.update_ca_bundle",
			Kwargs: m{"target": "/bundle.pem", "source": s.URL, "merge_files": "/more.pem"}})
	}
	body = "no certificate"
	if res := run(); res.Err == nil {
		t.Error("anything replaces the bundle")
	}
	if b, _ := os.ReadFile(target); string(b) != "old" {
		t.Errorf("%q", b)
	}
	body = pem
	if res := run(); res.Err != nil {
		t.Error(res.Err)
	}
	if b, _ := os.ReadFile(target); string(b) != pem+"\nmore" {
		t.Errorf("%q", b)
	}
}

// TestSeconds: an option that is not set, or no number, counts as in the table of options; the argument opts goes over it.
func TestSeconds(t *testing.T) {
	for _, tt := range []struct {
		opts map[string]any
		over map[string]any
		want time.Duration
	}{
		{nil, nil, 20 * time.Second},
		{map[string]any{"http_connect_timeout": "soon"}, nil, 20 * time.Second},
		{map[string]any{"http_connect_timeout": int64(3)}, nil, 3 * time.Second},
		{map[string]any{"http_connect_timeout": 0.5}, map[string]any{"http_connect_timeout": 1.5}, 1500 * time.Millisecond},
		{map[string]any{"http_connect_timeout": int64(-1)}, nil, 0},
	} {
		q := &query{c: &modules.Call{Env: &modules.Env{Opts: func() map[string]any { return tt.opts }}}, args: map[string]any{}}
		if tt.over != nil {
			q.args["opts"] = tt.over
		}
		if got := q.seconds("http_connect_timeout"); got != tt.want {
			t.Errorf("%v, %v: %s, not %s", tt.opts, tt.over, got, tt.want)
		}
	}
}
