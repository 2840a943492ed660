package etcdmod

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// gateway answers as etcd's gateway does, by path. What it was asked is kept as "path body".
type gateway struct {
	answers map[string]string
	asked   []string
	began   chan struct{} // closed when a watch begins
	change  chan string   // what the watch says then
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.asked = append(g.asked, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
	if strings.HasSuffix(r.URL.Path, "/watch") {
		_, _ = io.WriteString(w, `{"result": {"created": true}}`+"\n")
		w.(http.Flusher).Flush()
		close(g.began)
		select {
		case text := <-g.change:
			_, _ = io.WriteString(w, text+"\n")
		case <-r.Context().Done():
		}
		return
	}
	answer, ok := g.answers[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	status, text, _ := strings.Cut(answer, " ")
	code, _ := strconv.Atoi(status)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// runAt calls a function with a server.
func runAt(t *testing.T, server string, conf map[string]any, fun string, args ...any) modules.Result {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	opts := map[string]any{"etcd.require_v2": false, "etcd.host": u.Hostname(), "etcd.port": port}
	for k, v := range conf {
		opts[k] = v
	}
	e := &modules.Env{Opts: func() map[string]any { return opts }}
	return modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
}

func kvs(pairs ...string) string {
	var list []map[string]string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]string{"key": base64.StdEncoding.EncodeToString([]byte(pairs[i])),
			"value": base64.StdEncoding.EncodeToString([]byte(pairs[i+1])), "mod_revision": "7"})
	}
	b, _ := json.Marshal(map[string]any{"kvs": list})
	return "200 " + string(b)
}

// TestGatewayOfOlderServer: a log-in brings a token, and a server of the line 3.3 is asked below /v3beta.
func TestGatewayOfOlderServer(t *testing.T) {
	g := &gateway{answers: map[string]string{"/v3beta/auth/authenticate": `200 {"token": "tok"}`, "/v3beta/kv/range": kvs("/a", "\x05")}}
	s := httptest.NewServer(g)
	defer s.Close()
	res := runAt(t, s.URL, map[string]any{"etcd.username": "ada", "etcd.password": "pw"}, "etcd.get", "/a")
	if res.Err != nil || res.Return != int64(5) {
		t.Fatalf("%v, %v", res.Return, res.Err)
	}
	if len(g.asked) != 3 || g.asked[0] != `/v3/auth/authenticate  {"name": "ada", "password": "pw"}` ||
		!strings.HasPrefix(g.asked[2], "/v3beta/kv/range tok ") {
		t.Errorf("asked %q", g.asked)
	}
}

// TestGatewayErrors: what a server says in place of an answer, and where there is none.
func TestGatewayErrors(t *testing.T) {
	const denied = `403 {"error": "etcdserver: permission denied", "code": 7}`
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct{ answer, fun, want string }{
		{denied, "etcd.get", ""}, // as with Salt: the log tells
		{denied, "etcd.rm", "etcd3.errors.go_etcd_rpctypes_error.ErrPermissionDenied: <ErrPermissionDenied error:'etcdserver: permission denied', code:7>"},
		{`500 {"error": "something new", "code": 2}`, "etcd.rm", "etcd3.errors.go_etcd_rpctypes_error.ErrUnknownError: <ErrUnknownError error:'something new', code:2>"},
		{"502 <html>", "etcd.rm", `cannot read the answer of etcd, status 502: "<html>"`},
		{"200 [1]", "etcd.get", `cannot read the answer of etcd, status 200: "[1]"`},
		{kvs("/a/b", "\xc1"), "etcd.get", ""}, // no msgpack: the log tells
		{kvs("/a", "\x01", "/a/b", "\x02", "/a/b/c", "\x03"), "etcd.tree", "cannot show b as a directory: it is a key with a value, and there are keys below it"},
		{"", "etcd.get", "cannot reach etcd at "},
	} {
		g := &gateway{answers: map[string]string{"/v3/kv/range": c.answer, "/v3/kv/deleterange": c.answer}}
		s := httptest.NewServer(g)
		at := s.URL
		if c.answer == "" {
			at = closed.URL
		}
		res := runAt(t, at, nil, c.fun, "/a")
		s.Close()
		got := ""
		if res.Err != nil {
			got = res.Err.Error()
		}
		if c.want == "" && (res.Err != nil || res.Return != nil) || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s with %q: %v, %q; want %q", c.fun, c.answer, res.Return, got, c.want)
		}
	}
}

// TestPutPacks: what is written is msgpack, collections too; with a time to live it has a lease.
func TestPutPacks(t *testing.T) {
	g := &gateway{answers: map[string]string{"/v3/lease/grant": `200 {"ID": "77"}`, "/v3/kv/put": "200 {}", "/v3/kv/range": kvs("/a", "\x91\xc0")}}
	s := httptest.NewServer(g)
	defer s.Close()
	res := runAt(t, s.URL, nil, "etcd.set", "/a", []any{nil}, nil, int64(5))
	if res.Err != nil || fmt.Sprint(res.Return) != "[<nil>]" {
		t.Fatalf("%v, %v", res.Return, res.Err)
	}
	want := []string{`/v3/lease/grant  {"ID": 0, "TTL": 5}`, `/v3/kv/put  {"key": "L2E=", "lease": "77", "value": "kcA="}`, `/v3/kv/range  {"key": "L2E="}`}
	if fmt.Sprint(g.asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", g.asked, want)
	}
}

// TestWatchWithoutEnd: a timeout of 0 waits for the change.
func TestWatchWithoutEnd(t *testing.T) {
	g := &gateway{began: make(chan struct{}), change: make(chan string)}
	s := httptest.NewServer(g)
	defer s.Close()
	go func() {
		<-g.began
		g.change <- `{"result": {"events": [{"kv": {"key": "L3c=", "value": "BQ==", "mod_revision": "9"}}]}}`
	}()
	res := runAt(t, s.URL, nil, "etcd.watch", "/w")
	want := map[string]any{"key": "/w", "value": int64(5), "mIndex": int64(9), "changed": true, "dir": false}
	if fmt.Sprint(res.Return) != fmt.Sprint(want) || res.Err != nil {
		t.Errorf("%v, %v; want %v", res.Return, res.Err, want)
	}
}
