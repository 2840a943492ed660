package restapi_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/protocol/events"
)

// patience bounds waits for what happens at once.
const patience = 30 * time.Second

type site struct {
	t       testing.TB
	master  *master.Master
	options restapi.Options
	rest    *restapi.Server
	server  *httptest.Server
	token   string
	account testlog.Buffer // the audit log
}

// newSite is a master without minions and its HTTP interface; alice may do everything, bob runs jobs.*.
func newSite(t testing.TB, change func(*restapi.Options)) *site {
	t.Helper()
	return newSiteOf(t, master.Options{}, change)
}

// newSiteOf is newSite with a master of certain options.
func newSiteOf(t testing.TB, mo master.Options, change func(*restapi.Options)) *site {
	t.Helper()
	s := &site{t: t}
	mo.Audit, mo.Network.Interface, mo.Network.PublishPort, mo.Network.RetPort, mo.Keys.Size,
		mo.Network.Advertise = &s.account, "127.0.0.1", master.AnyPort, master.AnyPort, 2048,
		[]string{"salt.example"}
	m, err := master.New(mo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx) }()
	<-m.Ready()
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("alice:secret\nbob:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth, err := eauth.New(eauth.Options{Match: m.Match, Config: map[string]any{"file": map[string]any{"^filename": users,
		"alice": []any{".*", "@runner", "@wheel"}, "bob": []any{map[string]any{"@runner": []any{`jobs\..*`}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	host := runner.Embedded(m, "m_master", map[string]any{"color": "blue"}, t.TempDir(), nil)
	o := restapi.Options{Master: m, Auth: auth, Runner: runner.NewClient(host), Wheel: runner.NewWheel(host)}
	if change != nil {
		change(&o)
	}
	s.master, s.options = m, o
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.serve(o)
	s.token = s.login("alice")
	return s
}

// serve serves the interface with other options.
func (s *site) serve(o restapi.Options) {
	s.t.Helper()
	rest, err := restapi.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.rest, s.server = rest, httptest.NewServer(rest)
	s.t.Cleanup(func() {
		rest.Close()
		s.server.Close()
	})
}

// do sends a request and returns the status and the body.
func (s *site) do(method, path, contentType, body string, headers ...string) (int, string, http.Header) {
	s.t.Helper()
	// An answer that never ends is one that should have been refused.
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if s.token != "" {
		r.Header.Set("X-Auth-Token", s.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func (s *site) json(method, path string, body any) (int, map[string]any) {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	if body == nil {
		b = nil
	}
	code, text, _ := s.do(method, path, "application/json", string(b))
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		s.t.Fatalf("%s %s: %d %q: %v", method, path, code, text, err)
	}
	return code, v
}

func (s *site) login(user string) string {
	s.t.Helper()
	code, v := s.json("POST", "/login", map[string]any{"username": user, "password": "secret", "eauth": "file"})
	if code != 200 {
		s.t.Fatalf("log-in gave %d %v", code, v)
	}
	return v["return"].([]any)[0].(map[string]any)["token"].(string)
}

type m = map[string]any

func TestLogin(t *testing.T) {
	s := newSite(t, nil)
	code, v := s.json("POST", "/login", m{"username": "bob", "password": "secret", "eauth": "file"})
	r := v["return"].([]any)[0].(m)
	if code != 200 || len(r["token"].(string)) != 64 || r["user"] != "bob" || r["eauth"] != "file" || r["expire"].(float64)-r["start"].(float64) != 12*3600 {
		t.Errorf("%d %v", code, v)
	}
	if diff := cmp.Diff([]any{m{"@runner": []any{`jobs\..*`}}}, r["perms"]); diff != "" {
		t.Error(diff)
	}
	for name, creds := range map[string]m{
		"wrong password": {"username": "bob", "password": "x", "eauth": "file"}, "unknown name": {"username": "eve", "password": "secret", "eauth": "file"},
		"system that is off": {"username": "bob", "password": "secret", "eauth": "pam"}, "no system": {"username": "bob", "password": "secret"}, "nothing": {},
	} {
		if code, v := s.json("POST", "/login", creds); code != 401 || v["return"] != "Could not authenticate using provided credentials" {
			t.Errorf("%s: %d %v", name, code, v)
		}
	}
	if code, _ := s.json("GET", "/login", nil); code != 200 {
		t.Error(code)
	}
	if code, v := s.json("POST", "/logout", nil); code != 200 || v["return"] != "Your token has been cleared" {
		t.Error(code, v)
	}
	if code, _ := s.json("GET", "/jobs", nil); code != 401 {
		t.Errorf("a token that was cleared gave %d", code)
	}
}

// TestLoginsAreBounded: guessing passwords is slowed down.
func TestLoginsAreBounded(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.LoginBurst = 0.001, 3 })
	var codes []int
	for range 4 {
		code, _ := s.json("POST", "/login", m{"username": "bob", "password": "x", "eauth": "file"})
		codes = append(codes, code)
	}
	if want := []int{401, 401, 401, 429}; !slices.Equal(codes, want) { // the right one of newSite does not count
		t.Errorf("%v, want %v", codes, want)
	}
	// Another user at the same address, or behind the same proxy, is let in as often as they like.
	for range 10 {
		if code, v := s.json("POST", "/login", m{"username": "alice", "password": "secret", "eauth": "file"}); code != 200 {
			t.Fatalf("a right password: %d %v", code, v)
		}
	}
	// All names of one address together are bounded as well.
	last := 0
	for i := range 40 {
		last, _ = s.json("POST", "/login", m{"username": fmt.Sprint("guess", i), "password": "x", "eauth": "file"})
	}
	if last != 429 {
		t.Errorf("the 44th failure from one address: %d", last)
	}
}

func TestRequests(t *testing.T) {
	s := newSite(t, nil)
	if err := s.master.Keys().Preseed("web1", testKey(t, s)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		body         any
		code         int
		want         any
	}{
		{"GET", "/", nil, 200, m{"return": "Welcome", "clients": []any{"local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"}}},
		{"POST", "/", m{"client": "runner", "fun": "test.metasyntactic", "locality": "uk"}, 200, m{"return": []any{[]any{"wibble", "wobble", "wubble", "flob"}}}},
		{"POST", "/", []any{m{"client": "runner", "fun": "test.arg", "arg": []any{"a", "b=1"}, "kwarg": m{"c": 2}}, m{"client": "runner", "fun": "config.get", "key": "color"}}, 200,
			m{"return": []any{m{"args": []any{"a"}, "kwargs": m{"b": 1.0, "c": 2.0, "arg": nil}}, "blue"}}},
		{"POST", "/", m{"client": "local", "tgt": "nobody", "fun": "test.ping"}, 200, m{"return": []any{m{}}}},
		{"POST", "/", m{"client": "local_async", "tgt": "nobody", "fun": "test.ping"}, 200, m{"return": []any{m{}}}},
		{"POST", "/minions", m{"tgt": "nobody", "fun": "test.ping"}, 202, m{"return": []any{m{}}, "_links": m{"jobs": []any{}}}},
		{"GET", "/keys", nil, 200, m{"return": m{"local": []any{"master.pem", "master.pub"}, "minions": []any{"web1"}, "minions_pre": []any{}, "minions_rejected": []any{}, "minions_denied": []any{}}}},
		{"GET", "/jobs/20250102030405678901", nil, 200, m{"return": []any{m{}}, "info": []any{m{"jid": "20250102030405678901", "Result": m{}, "StartTime": "2025, Jan 02 03:04:05.678901",
			"Error": "Cannot contact returner or no job with this jid"}}}},
		{"POST", "/", m{"client": "ssh", "tgt": "*", "fun": "test.ping"}, 400, m{"status": 400.0, "return": "Invalid client specified: 'ssh'"}},
		{"POST", "/", m{"client": "runner", "fun": "no.such"}, 400, m{"status": 400.0, "return": "'no.such' is not available."}},
		{"POST", "/", m{"client": "runner_async", "fun": "no.such"}, 400, m{"status": 400.0, "return": "'no.such' is not available."}},
		{"POST", "/", m{"client": "runner"}, 400, m{"status": 400.0, "return": "runner takes at least 1 argument (0 given)"}},
		{"POST", "/", m{"client": "local", "fun": "test.ping"}, 400, m{"status": 400.0, "return": "tgt must be text or a list of names"}},
		{"POST", "/", m{"client": "local", "tgt": "x", "tgt_type": "nonsense", "fun": "test.ping"}, 400, nil},
		{"POST", "/", m{"client": "local_async", "tgt": "x", "fun": "test.ping", "jid": "../../etc"}, 400, m{"status": 400.0, "return": "jid must be a job id"}},
		{"POST", "/", "text", 400, m{"status": 400.0, "return": "Lowstates must be a list"}},
		{"POST", "/", []any{"text"}, 400, m{"status": 400.0, "return": "Lowstates must be a list of maps"}},
		{"POST", "/run", m{"client": "runner", "fun": "test.arg"}, 401, m{"status": 401.0, "return": "No authentication credentials given"}},
		{"POST", "/run", m{"client": "runner", "fun": "test.metasyntactic", "locality": "xx", "username": "alice", "password": "secret", "eauth": "file"}, 200, m{"return": []any{nil}}},
		{"POST", "/run", m{"client": "runner", "fun": "test.arg", "username": "alice", "password": "wrong", "eauth": "file"}, 401,
			m{"status": 401.0, "return": `Authentication failure of type "eauth" occurred for user alice.`}},
		{"POST", "/run", m{"client": "runner", "fun": "test.arg", "token": "00"}, 401, m{"status": 401.0, "return": `Authentication failure of type "token" occurred.`}},
		{"POST", "/run", m{"client": "local", "tgt": "*", "fun": "test.ping", "token": "00"}, 401, m{"status": 401.0, "return": "Authentication error occurred."}},
		{"POST", "/run", m{"client": "local", "tgt": "*", "fun": "test.ping", "token": "x"}, 401, m{"status": 401.0, "return": "Invalid token"}},
		{"GET", "/keys?mid=nobody", nil, 200, m{"return": m{}}},
		{"GET", "/keys?name=web1", nil, 404, m{"status": 404.0, "return": "Nothing matches the given URI"}},
		{"GET", "/no/such", nil, 404, m{"status": 404.0, "return": "The path '/no/such' was not found."}},
		{"PUT", "/jobs", nil, 405, m{"status": 405.0, "return": "Specified method is invalid for this resource"}},
		{"GET", "/jobs/..%2f..%2fetc", nil, 400, m{"status": 400.0, "return": "jid must be a job id"}},
	} {
		code, got := s.json(c.method, c.path, c.body)
		dropNil(got)
		if diff := cmp.Diff(dropNil(c.want), any(got)); code != c.code || c.want != nil && diff != "" {
			t.Errorf("%s %s %v: %d\n%s", c.method, c.path, c.body, code, diff)
		}
	}
}

// dropNil takes keys without a value out of maps, so that tables can be short.
func dropNil(v any) any {
	switch v := v.(type) {
	case m:
		maps.DeleteFunc(v, func(k string, x any) bool { return x == nil && k == "arg" })
		for k := range v {
			v[k] = dropNil(v[k])
		}
	case []any:
		for i := range v {
			v[i] = dropNil(v[i])
		}
	}
	return v
}

// testKey is a public key: the master's own, which is as good as any.
func testKey(t *testing.T, s *site) string {
	t.Helper()
	return s.master.PublicKey()
}

// TestRulesAreKept: bob may list jobs and do nothing else, by any endpoint.
func TestRulesAreKept(t *testing.T) {
	s := newSite(t, nil)
	s.token = s.login("bob")
	if code, v := s.json("GET", "/jobs", nil); code != 200 {
		t.Errorf("jobs: %d %v", code, v)
	}
	for name, c := range map[string]m{
		"local": {"client": "local", "tgt": "*", "fun": "test.ping"}, "async": {"client": "local_async", "tgt": "*", "fun": "test.ping"},
		"compound": {"client": "local", "tgt": "*", "fun": []any{"saltutil.find_job", "cmd.run"}, "arg": []any{[]any{"1"}, []any{"id"}}},
		"batch":    {"client": "local_batch", "tgt": "*", "fun": "cmd.run"}, "subset": {"client": "local_subset", "tgt": "*", "fun": "cmd.run"},
		"runner": {"client": "runner", "fun": "salt.execute", "kwarg": m{"tgt": "*", "fun": "cmd.run", "arg": "id"}}, "wheel": {"client": "wheel", "fun": "key.accept", "match": "*"},
		"async wheel": {"client": "wheel_async", "fun": "key.accept", "match": "*"}, "prefix": {"client": "runner", "fun": "jobsx.list_jobs"},
	} {
		if code, v := s.json("POST", "/", c); code != 401 || v["return"] != "Authorization error occurred." && v["return"] != `Authentication failure of type "token" occurred for user bob.` {
			t.Errorf("%s: %d %v", name, code, v)
		}
	}
	for _, path := range []string{"/minions", "/keys", "/keys/x"} {
		if code, _ := s.json("GET", path, nil); code != 401 {
			t.Errorf("%s: %d", path, code)
		}
	}
	s.token = ""
	for _, path := range []string{"/minions", "/keys", "/keys/x", "/jobs", "/jobs/20250102030405678901", "/stats", "/events", "/ws"} {
		if code, _, _ := s.do("GET", path, "", ""); code != 401 {
			t.Errorf("%s without a token: %d", path, code)
		}
	}
	for _, path := range []string{"/", "/minions", "/hook/x", "/logout", "/keys"} {
		if code, _, _ := s.do("POST", path, "application/json", `{"client": "runner", "fun": "test.arg", "mid": "x"}`); code != 401 {
			t.Errorf("POST %s without a token: %d", path, code)
		}
	}
}

// TestDisabledClients: a client that the administrator has not named does not exist.
func TestDisabledClients(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.Clients = []string{"runner"} })
	if code, v := s.json("POST", "/", m{"client": "local", "tgt": "*", "fun": "test.ping"}); code != 400 ||
		v["return"] != "Client disabled: 'local'. Add to 'netapi_enable_clients' master config option to enable." {
		t.Error(code, v)
	}
	if code, _ := s.json("POST", "/", m{"client": "runner", "fun": "test.arg"}); code != 200 {
		t.Error(code)
	}
	if _, err := restapi.New(restapi.Options{Master: s.master, Auth: &eauth.Auth{}, Clients: []string{"ssh"}}); err == nil {
		t.Error("an unknown client was accepted")
	}
}

func TestFormats(t *testing.T) {
	s := newSite(t, nil)
	want := `{"return": [{"args": ["a", 1], "kwargs": {"b": [1]}}]}`
	for _, c := range []struct{ contentType, body string }{
		{"application/json", `{"client": "runner", "fun": "test.arg", "arg": ["a", 1, "b=[1]"]}`},
		{"application/x-yaml", "client: runner\nfun: test.arg\narg: [a, 1]\nkwarg: {b: [1]}\n"},
		{"text/yaml", "- client: runner\n  fun: test.arg\n  arg: [a, 1, 'b=[1]']\n"},
		{"text/plain", `[{"client": "runner", "fun": "test.arg", "arg": ["a", 1, "b=[1]"]}]`},
		{"application/x-www-form-urlencoded", url.Values{"client": {"runner"}, "fun": {"test.arg"}, "arg": {"a", "1", "b=[1]"}}.Encode()},
	} {
		if code, got, _ := s.do("POST", "/", c.contentType, c.body); code != 200 || got != want {
			t.Errorf("%s: %d %s", c.contentType, code, got)
		}
	}
	code, got, h := s.do("POST", "/", "application/json", `{"client": "runner", "fun": "test.arg"}`, "Accept", "application/x-yaml")
	if code != 200 || got != "return:\n- args: []\n  kwargs: {}\n" || h.Get("Content-Type") != "application/x-yaml" {
		t.Errorf("yaml: %d %q", code, got)
	}
	for _, c := range []struct {
		contentType, body, accept string
		code                      int
	}{
		{"application/json", `{"client"`, "*/*", 400}, {"text/yaml", "a: b: c", "*/*", 400}, {"application/x-www-form-urlencoded", "%zz", "*/*", 400},
		{"image/png", "x", "*/*", 406}, {"application/json", "{}", "image/png", 406}, {"application/json", `"` + strings.Repeat("x", 1<<20) + `"`, "*/*", 413},
		{"application/json", strings.Repeat("[", 100000), "*/*", 400},
	} {
		if code, got, h := s.do("POST", "/", c.contentType, c.body, "Accept", c.accept); code != c.code || !strings.Contains(got, fmt.Sprint(c.code)) ||
			!strings.HasPrefix(h.Get("Content-Type"), "text/html") {
			t.Errorf("%s %.20q for %s: %d %q", c.contentType, c.body, c.accept, code, got)
		}
	}
	for accept, want := range map[string]string{"application/json;q=0.2, application/x-yaml;q=0.5": "application/x-yaml", "text/html, application/*;q=0.1": "application/json",
		"application/x-yaml, */*": "application/x-yaml", "application/json;q=0, */*": "application/json"} {
		if code, _, h := s.do("GET", "/", "", "", "Accept", accept); code != 200 || h.Get("Content-Type") != want {
			t.Errorf("%s: %d %q", accept, code, h.Get("Content-Type"))
		}
	}
	code, _, h = s.do("OPTIONS", "/", "", "", "Origin", "https://ui.example", "Access-Control-Request-Method", "POST")
	if code != 200 || h.Get("Access-Control-Allow-Origin") != "https://ui.example" || h.Get("Access-Control-Allow-Headers") != "Content-Type, X-Auth-Token, X-Requested-With" {
		t.Errorf("options: %d %v", code, h)
	}
}

func TestKeyPair(t *testing.T) {
	s := newSite(t, nil)
	code, body, h := s.do("POST", "/keys", "application/json", `{"mid": "new1"}`)
	if code != 200 || h.Get("Content-Type") != "application/x-tar" || h.Get("Content-Disposition") != `attachment; filename="saltkeys-new1.tar"` {
		t.Fatal(code, body, h)
	}
	files := map[string]string{}
	for tr := tar.NewReader(bytes.NewReader([]byte(body))); ; {
		f, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name], _, _ = strings.Cut(string(b), "\n")
	}
	want := map[string]string{"minion.pub": "-----BEGIN PUBLIC KEY-----", "minion.pem": "-----BEGIN RSA PRIVATE KEY-----"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	if _, err := s.master.Keys().Accepted("new1"); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"../x", "a/b", "", ".."} {
		if code, _, _ := s.do("POST", "/keys", "application/json", fmt.Sprintf(`{"mid": %q}`, id)); code != 400 {
			t.Errorf("id %q: %d", id, code)
		}
	}
}

// stream reads server-sent events.
func (s *site) stream(ctx context.Context, last string) *bufio.Reader {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", s.token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		s.t.Fatal(resp, err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return bufio.NewReader(resp.Body)
}

// next reads lines until one begins with the prefix, and returns the rest of that line.
func next(t *testing.T, r *bufio.Reader, prefix string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("no line with %q: %v", prefix, err)
		}
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSuffix(rest, "\n")
		}
	}
}

func TestEvents(t *testing.T) {
	s := newSiteOf(t, master.Options{Events: master.EventOptions{History: events.LogLimits{Events: 3}}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := s.stream(ctx, "")
	next(t, r, "retry: 400")
	fire := func(n int) {
		if code, v := s.json("POST", fmt.Sprintf("/hook/n/%d", n), m{"n": n}); code != 200 || v["success"] != true {
			t.Fatal(code, v)
		}
	}
	fire(1)
	first := next(t, r, "id: ")
	if tag := next(t, r, "tag: "); tag != "salt/netapi/hook/n/1" {
		t.Error(tag)
	}
	var data struct {
		Tag  string
		Data struct {
			Body    string
			Post    m
			Headers m
			Stamp   string `json:"_stamp"`
		}
	}
	if err := json.Unmarshal([]byte(next(t, r, "data: ")), &data); err != nil {
		t.Fatal(err)
	}
	if data.Tag != "salt/netapi/hook/n/1" || data.Data.Body != `{"n":1}` || data.Data.Post["n"] != 1.0 || data.Data.Stamp == "" || data.Data.Headers["X-Auth-Token"] != nil ||
		data.Data.Headers["Content-Type"] != "application/json" {
		t.Errorf("%+v", data)
	}
	// A client that reconnects gets the events it missed, or a message that they are gone.
	fire(2)
	again := s.stream(ctx, first)
	if tag := next(t, again, "tag: "); tag != "salt/netapi/hook/n/2" {
		t.Error(tag)
	}
	for n := range 5 {
		fire(n + 3)
	}
	next(t, again, "tag: salt/netapi/hook/n/7")
	late := s.stream(ctx, first)
	next(t, late, ": events before this one are lost")
	if tag := next(t, late, "tag: "); tag != "salt/netapi/hook/n/5" {
		t.Error(tag)
	}
	next(t, s.stream(ctx, "other-5"), ": events before this one are lost")
	if code, _, _ := s.do("GET", "/events?token="+s.token, "", ""); code != 400 {
		t.Errorf("a token in the query gave %d", code)
	}
	// The end of a token is the end of its streams.
	if code, _ := s.json("POST", "/logout", nil); code != 200 {
		t.Fatal(code)
	}
	s.token = s.login("alice")
	fire(8)
	for {
		if _, err := again.ReadString('\n'); err != nil {
			break
		}
	}
}

// TestWebSocket: events come after the message that Salt's clients begin with; it and others are answered.
func TestWebSocket(t *testing.T) {
	s := newSite(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, s.server.URL+"/ws/"+s.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	say := func(text string) {
		t.Helper()
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		if _, b, err := c.Read(ctx); err != nil || string(b) != want {
			t.Fatalf("%q, %v; want %q", b, err, want)
		}
	}
	fire := func(tag string) {
		s.master.Events().Publish(tag, map[string]any{"n": int64(1), "_stamp": "now"})
	}
	say("hello")
	hear("server received message")
	fire("not/yet")
	say("websocket client ready")
	hear("server received message")
	fire("my/tag")
	hear(`data: {"data": {"_stamp": "now", "n": 1}, "tag": "my/tag"}` + "\n\n")
	say("hello again")
	hear("server received message")
	fire("my/other")
	hear(`data: {"data": {"_stamp": "now", "n": 1}, "tag": "my/other"}` + "\n\n")
}

// TestWebSocketOfMinionsAndJobs: with format_events a client receives minions and jobs instead of events.
func TestWebSocketOfMinionsAndJobs(t *testing.T) {
	s := newSite(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, s.server.URL+"/ws/"+s.token+"?format_events", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte("websocket client ready")); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		_, b, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(); got != "server received message" {
		t.Fatal(got)
	}
	s.master.Events().Publish("my/tag", m{"n": int64(1)})
	s.master.Events().Publish("salt/key", m{"act": "accept", "id": "web1", "result": true})
	s.master.Events().Publish("salt/job/20260101000000000000/new", m{"jid": "20260101000000000000", "_stamp": "now", "minions": []any{"web1"}, "fun": "test.ping", "tgt": "web1", "tgt_type": "glob"})
	for _, want := range []string{`{"minions": [{"id": "web1"}]}`,
		`{"jobs": {"20260101000000000000": {"fun": "test.ping", "jid": "20260101000000000000", "minions": {"web1": {"success": false}}, "start_time": "now", "state": "running", "tgt": "web1", "tgt_type": "glob"}}}`} {
		if got := read(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
