// Package bodyfuzz has the fuzz target of what unauthenticated peers send to the HTTP interface. It is a separate package because the fuzzer compares the
// counters of all code in the test program after each find: beside the clients and databases of restapi's other tests it would do little else.
package bodyfuzz

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// FuzzBodies sends no token with the paths from number strangers on.
const strangers = 128

// FuzzBodies: no body ends the interface or causes an internal error, with a token or without.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"client": "runner", "fun": "test.arg", "arg": [1], "kwarg": {"a": null}}`, `[{"client": "local_async", "tgt": ["x"], "fun": "test.ping"}]`,
		"client: wheel\nfun: key.list_all\n", "client=local&tgt=x&tgt_type=list&fun=test.ping&arg=1&arg=%5Ba", `{"username": "alice", "password": 1, "eauth": "file"}`,
	} {
		for kind := range byte(4) {
			f.Add(kind, kind, []byte(body))
			f.Add(kind, strangers+kind, []byte(body))
		}
	}
	f.Add(byte(4), byte(6), []byte("--x\r\nContent-Disposition: form-data; name=\"order\"\r\n\r\n{\"fun\": \"test.ping\", \"targets\": [\"x\"]}\r\n--x\r\n"+
		"Content-Disposition: form-data; name=\"file\"; filename=\"../a\"\r\n\r\nb\r\n--x--\r\n"))
	rest, token := serve(f)
	kinds := []string{"application/json", "application/x-yaml", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"}
	paths := []string{"/", "/run", "/login", "/token", "/minions", "/hook/x", "/v1/jobs", "/v1/minions"}
	f.Fuzz(func(t *testing.T, kind, path byte, body []byte) {
		// Without a server between them: a connection for each body would take longer than the rest.
		r := httptest.NewRequest("POST", paths[int(path)%len(paths)], bytes.NewReader(body))
		r.Header.Set("Content-Type", kinds[int(kind)%len(kinds)])
		if path < strangers {
			r.Header.Set("X-Auth-Token", token)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		rest.ServeHTTP(w, r.WithContext(ctx))
		if w.Code == 500 || ctx.Err() != nil {
			t.Fatalf("%d %s (%v)", w.Code, w.Body, ctx.Err())
		}
	})
}

// serve returns a master's interface, and the token of a user with all rights.
func serve(f *testing.F) (rest *restapi.Server, token string) {
	f.Helper()
	var network mem.Network
	m, err := master.New(master.Options{Network: master.NetworkOptions{Interface: "127.0.0.1",
		PublishPort: master.AnyPort, RetPort: master.AnyPort, Listen: network.Listen},
		Keys: master.KeyOptions{Size: 2048}})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	<-m.Ready()
	users := filepath.Join(f.TempDir(), "users")
	if err := os.WriteFile(users, []byte("alice:secret\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	auth, err := eauth.New(eauth.Options{Match: m.Match, Config: map[string]any{"file": map[string]any{"^filename": users, "alice": []any{".*", "@runner", "@wheel"}}}})
	if err != nil {
		f.Fatal(err)
	}
	host := runner.Embedded(m, "m_master", nil, f.TempDir(), nil)
	rest, err = restapi.New(restapi.Options{Master: m, Auth: auth, Runner: runner.NewClient(host), Wheel: runner.NewWheel(host), LoginRate: -1, OpenHooks: true, Timeout: 10 * time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(rest.Close)
	t, err := auth.Login(ctx, "file", "alice", "secret")
	if err != nil {
		f.Fatal(err)
	}
	return rest, t.ID
}

// open are the patterns that need no credential.
func open(pattern string) bool {
	switch pattern {
	case "GET /{$}", "GET /run", "GET /token", "GET /login", "POST /login", "POST /logout", "POST /hook", "POST /hook/{path...}",
		"GET /openapi.json", "GET /healthz", "GET /readyz":
		return true
	}
	return false
}

// FuzzHeads: no request without a credential, whatever its head, ends the interface, causes an internal error, or
// gets more than what is public.
func FuzzHeads(f *testing.F) {
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /minions/*?x=1 HTTP/1.1\r\nHost: x\r\nX-Auth-Token: 0\r\nAccept: application/x-yaml\r\n\r\n",
		"POST /hook/a/../b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
		"GET /ws/abc HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"GET /events?token=0&salt_token=1 HTTP/1.1\r\nHost: x\r\nCookie: session_id=%22; a=b\r\n\r\n",
		"OPTIONS /jobs HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\nSec-Fetch-Site: cross-site\r\n\r\n",
		"POST /run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-Forwarded-For: ::1\r\nAuthorization: Basic YTpi\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"DELETE /v1/jobs/%2e%2e HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nIf-None-Match: *\r\nRange: bytes=0-\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	rest, _ := serve(f)
	f.Fuzz(func(t *testing.T, head []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r.RemoteAddr = "192.0.2.1:1234"
		r = r.WithContext(ctx) // the multiplexer sets its Pattern
		w := httptest.NewRecorder()
		rest.ServeHTTP(w, r)
		if w.Code == 500 || ctx.Err() != nil {
			t.Fatalf("%d %s (%v)", w.Code, w.Body, ctx.Err())
		}
		if w.Code < 300 && r.Method != http.MethodOptions && !open(r.Pattern) {
			t.Fatalf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
		}
	})
}
