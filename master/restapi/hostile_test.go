package restapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
)

// endpoints are the requests there are, by the served description.
func (s *site) endpoints() [][2]string {
	s.t.Helper()
	_, doc := s.json("GET", "/openapi.json", nil)
	var out [][2]string
	for path, ops := range doc["paths"].(m) {
		for method := range ops.(m) {
			out = append(out, [2]string{strings.ToUpper(method), path})
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) })
	if len(out) < 15 {
		s.t.Fatal("so few:", out)
	}
	return out
}

// filled puts values in the place of a path's parameters.
func filled(path string) string {
	return strings.NewReplacer("{mid}", "x", "{jid}", "20250102030405678901", "{token}", "x", "{path}", "x", "{id}", "x").Replace(path)
}

// TestCVE_2020_25592_EveryCommandNeedsACredential: a caller without a valid credential runs, reads and changes
// nothing, whichever client the command names and however the caller tries to log in (also CVE-2019-17361,
// CVE-2020-16846, CVE-2021-3197 and, for wheel_async, CVE-2021-25281).
func TestCVE_2020_25592_EveryCommandNeedsACredential(t *testing.T) {
	var log testlog.Buffer
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.Log = -1, slog.New(slog.NewTextHandler(&log, nil)) })
	open := []string{"GET /", "GET /run", "GET /token", "GET /login", "GET /openapi.json", "GET /healthz", "GET /readyz"}
	s.token = ""
	for _, e := range s.endpoints() {
		for _, token := range []string{"", "x", strings.Repeat("0", 64), "../../etc/passwd", "None", "null"} {
			body := ""
			if e[0] == "POST" {
				body = `{"client": "runner", "fun": "test.metasyntactic", "mid": "x"}`
			}
			code, text, _ := s.do(e[0], filled(e[1]), "application/json", body, "X-Auth-Token", token, "Cookie", "session_id="+token)
			if slices.Contains(open, e[0]+" "+e[1]) {
				if code != 200 {
					t.Errorf("%s %s: %d %s", e[0], e[1], code, text)
				}
				continue
			}
			if code != 401 && (e[1] != "/token" || code != 400) && (e[1] != "/metrics" || code != 404) {
				t.Errorf("%s %s with token %q: %d %s", e[0], e[1], token, code, text)
			}
		}
	}
	for _, client := range append(restapi.Clients(), "ssh", "ssh_async", "wheel_sync", "__init__", "cmd") {
		for name, creds := range map[string]m{
			"nothing": {}, "a dead token": {"token": "x"}, "an empty token": {"token": ""}, "a list as token": {"token": []any{"x"}}, "true as token": {"token": true},
			"no password": {"username": "alice", "eauth": "file"}, "a wrong one": {"username": "alice", "password": "x", "eauth": "file"},
			"another system": {"username": "alice", "password": "secret", "eauth": "pam"}, "no system": {"username": "alice", "password": "secret"},
			"a list": {"username": []any{"alice"}, "password": "secret", "eauth": "file"}, "auto": {"username": "alice", "password": "", "eauth": "auto"},
			"the root key": {"key": "x", "user": "root"}, "a sudo user": {"username": "sudo_alice", "user": "root", "eauth": "file", "password": "secret"},
		} {
			low := m{"client": client, "fun": "key.accept_all", "tgt": "*", "match": "*"}
			for k, v := range creds {
				low[k] = v
			}
			want := 401
			if !slices.Contains(restapi.Clients(), client) {
				want = 400
			}
			if code, v := s.json("POST", "/run", low); code != want {
				t.Errorf("%s with %s: %d %v", client, name, code, v)
			}
		}
	}
	if text := log.String(); strings.Contains(text, "password=") || strings.Contains(text, "secret") {
		t.Errorf("the log has what was shown:\n%s", text)
	}
}

// TestCVE_2021_3144_TokensExpire: a token is looked at before it is used, also for the first time after its end.
func TestCVE_2021_3144_TokensExpire(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	s := newSite(t, nil)
	auth, err := eauth.New(eauth.Options{Match: s.master.Match, Systems: map[string]eauth.System{"sharedsecret": eauth.SharedSecret{Secret: "secret"}},
		Config: m{"sharedsecret": m{"alice": []any{".*", "@runner", "@wheel"}}}, TokenLife: time.Hour,
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth, o.LoginRate = auth, -1
	s.serve(o)
	token := func() string {
		s.token = ""
		code, v := s.json("POST", "/login", m{"username": "alice", "password": "secret", "eauth": "sharedsecret"})
		if code != 200 {
			t.Fatal(code, v)
		}
		return v["return"].([]any)[0].(m)["token"].(string)
	}
	step := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	for _, e := range s.endpoints() {
		if strings.HasPrefix(e[1], "/login") || e[1] == "/" && e[0] == "GET" || strings.HasPrefix(e[1], "/openapi") || e[1] == "/healthz" || e[1] == "/readyz" || e[1] == "/token" || e[1] == "/metrics" || e[1] == "/run" && e[0] == "GET" {
			continue
		}
		s.token = token()
		step(time.Hour)
		path := strings.Replace(filled(e[1]), "/ws/x", "/ws/"+s.token, 1)
		body := ""
		if e[0] == "POST" {
			body = `{"client": "wheel_async", "fun": "key.list_all", "mid": "x", "token": "` + s.token + `"}`
		}
		code, text, _ := s.do(e[0], path, "application/json", body)
		if hint := "the token is unknown or has expired: log in again"; code != 401 ||
			e[0] == "GET" && e[1] != "/keys" && e[1] != "/keys/{mid}" && !strings.Contains(text, hint) {
			t.Errorf("%s %s: %d %s", e[0], e[1], code, text)
		}
	}
	s.token = token()
	if code, _ := s.json("POST", "/", m{"client": "runner", "fun": "test.metasyntactic"}); code != 200 {
		t.Error("a living token:", code)
	}
	step(-2 * time.Hour) // the clock is set back: the token is no older for it
	if code, _ := s.json("POST", "/", m{"client": "runner", "fun": "test.metasyntactic"}); code != 200 {
		t.Error("a living token, with the clock set back:", code)
	}
}

// TestCVE_2021_25283_NoTemplatesInRequests: what a request brings is data: it is not rendered (25283), and there are no wheel
// functions that write or read files by their path (25282).
func TestCVE_2021_25283_NoTemplatesInRequests(t *testing.T) {
	s := newSite(t, nil)
	for _, text := range []string{"{{ 7*7 }}", "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}", "#!py\ndef run(): return 1", "${7*7}", "!!python/object/apply:os.system [id]"} {
		code, v := s.json("POST", "/", m{"client": "runner", "fun": "test.arg", "arg": []any{text}, "kwarg": m{"b": text}})
		if code != 200 {
			t.Fatal(code, v)
		}
		out := v["return"].([]any)[0].(m)
		args, _ := out["args"].([]any)
		kwargs, _ := out["kwargs"].(m)
		if len(args) != 1 || args[0] != text || kwargs["b"] != text {
			t.Errorf("%q came back as %v", text, out)
		}
	}
	for _, fun := range []string{"file_roots.write", "file_roots.read", "pillar_roots.write", "pillar_roots.read", "config.apply", "config.update_config"} {
		code, v := s.json("POST", "/", m{"client": "wheel", "fun": fun, "kwarg": m{"data": "x", "path": "../../../tmp/x", "file_name": "../x", "yaml_contents": "x: 1"}})
		if code != 200 {
			continue // refused before it was looked for
		}
		data, _ := v["return"].([]any)[0].(m)["data"].(m)
		if text, _ := data["return"].(string); data["success"] != false || !strings.Contains(text, "is not available") {
			t.Errorf("%s: %v", fun, v)
		}
	}
}

// TestCVE_2024_38825_NoLoginByCertificateAlone: certificates are public, so a certificate without its key is no
// proof of identity.
func TestCVE_2024_38825_NoLoginByCertificateAlone(t *testing.T) {
	if _, ok := eauth.Systems()["pki"]; ok {
		t.Fatal("there is a system pki: it must ask for a signature over a challenge")
	}
	s := newSite(t, nil)
	if _, err := eauth.New(eauth.Options{Match: s.master.Match, Config: m{"pki": m{"ca_file": "/ca.crt", "your_user": []any{".*"}}}}); err == nil {
		t.Error("pki can be configured")
	}
	s.token = ""
	if code, v := s.json("POST", "/login", m{"username": "your_user", "password": "-----BEGIN CERTIFICATE-----\n", "eauth": "pki"}); code != 401 {
		t.Error(code, v)
	}
}

// TestCVE_2025_47287_BodiesAreBounded: what is too large, of many parts or of another kind is refused by its head, and does not
// fill the log (also CVE-2025-13836 and CVE-2023-28370).
func TestCVE_2025_47287_BodiesAreBounded(t *testing.T) {
	var log testlog.Buffer
	s := newSite(t, func(o *restapi.Options) { o.MaxBody, o.Log = 10_000, slog.New(slog.NewTextHandler(&log, nil)) })
	parts := "multipart/form-data; boundary=x"
	for _, c := range []struct {
		name, kind, body string
		code             int
	}{
		{"broken parts", parts, strings.Repeat("--x\r\nbroken\r\n", 700), 406},
		{"nearly too large", "application/json", `{"client": "runner", "fun": "test.arg", "arg": "` + strings.Repeat("x", 9_900) + `"}`, 200},
		{"too large", "application/json", `{"client": "runner", "fun": "test.arg", "arg": "` + strings.Repeat("x", 10_000) + `"}`, 413},
		{"too large a form", "application/x-www-form-urlencoded", "client=runner&fun=test.arg&arg=" + strings.Repeat("x", 10_000), 413},
		{"many fields", "application/x-www-form-urlencoded", "client=runner&fun=test.metasyntactic" + strings.Repeat("&a", 4_000), 200},
		{"deep", "application/json", strings.Repeat("[", 9_999), 400},
		{"deep YAML", "application/x-yaml", strings.Repeat("[", 9_999), 400},
		{"many commands", "application/json", "[" + strings.Repeat("{},", 2_000) + "{}]", 400}, // said below to be too many
		{"references", "application/x-yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n" + refs(), 400},
	} {
		code, text, _ := s.do("POST", "/", c.kind, c.body)
		if code != c.code || c.name == "many commands" && !strings.Contains(text, "too many commands") {
			t.Errorf("%s: %d %.200s", c.name, code, text)
		}
	}
	// The head announces too large a body, so the server does not wait for it.
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-Auth-Token: %s\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n", s.token)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 413 ") {
		t.Errorf("a head that announces too much: %q %v", line, err)
	}
	// A body without a length that never ends is cut off as well.
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.server.URL+"/", io.LimitReader(zeros{}, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Auth-Token", s.token)
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Error("an endless body:", resp.StatusCode)
		}
	}
	for range 300 {
		s.do("POST", "/", parts, "--x\r\nbroken")
	}
	if n := strings.Count(log.String(), "\n"); n > 20 {
		t.Errorf("%d lines in the log", n)
	}
	for _, path := range []string{"//evil.example/..", "//evil.example/", "//evil.example/login/", "/\\evil.example/"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = path
		resp, err := http.DefaultTransport.RoundTrip(r) // which follows nothing
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if strings.Contains(resp.Header.Get("Location"), "evil.example") {
			t.Errorf("%s redirects to a stranger: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// refs is a bomb: each line has nine times what the line before it has.
func refs() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	return b.String()
}

// hostileValues are what a field must bear.
func hostileValues() []any {
	deep := any("x")
	for range 40 {
		deep = []any{deep}
	}
	return []any{nil, true, 0, -1, 1.5, 1e308, "", " ", "*", "x\x00y", "../../etc/passwd", "a/b", "{{ 7*7 }}", "'; id #", strings.Repeat("A", 70_000), "\ufeff\u202e\U0001f600",
		[]any{}, []any{nil}, []any{[]any{}}, []any{m{}}, m{}, m{"": nil}, m{"__kwarg__": true}, deep, "20250102030405678901", "999999999999999999999999", "1e400", "nan", "-inf"}
}

// clearAnswer checks that an answer says what is wrong and reveals nothing internal.
func clearAnswer(t *testing.T, what string, code int, text string) {
	t.Helper()
	var v any
	if code/100 == 5 && code != 503 || json.Unmarshal([]byte(text), &v) != nil {
		t.Errorf("%s: %d %.300s", what, code, text)
	}
	for _, inside := range []string{"goroutine ", "runtime error", ".go:", "panic", "canary"} {
		if strings.Contains(text, inside) {
			t.Errorf("%s shows the inside, or another's: %.300s", what, text)
		}
	}
}

// TestHostileFields: whatever value a field of a command has, the answer names the error and the interface keeps
// serving. TestEveryEndpointBearsBadInput has the other requests.
func TestHostileFields(t *testing.T) {
	var log testlog.Buffer
	s := newSite(t, func(o *restapi.Options) {
		o.LoginRate, o.Timeout, o.Log = -1, 2*time.Second, slog.New(slog.NewTextHandler(&log, nil))
	})
	bases := []m{
		{"client": "local", "tgt": "x", "fun": "test.ping", "arg": []any{}, "kwarg": m{}, "tgt_type": "list", "timeout": 1, "ret": "", "jid": "", "full_return": false, "metadata": m{}},
		{"client": "local_async", "tgt": "x", "fun": []any{"test.ping", "test.echo"}, "arg": []any{[]any{}, []any{"a"}}, "tgt_type": "list"},
		{"client": "local_batch", "tgt": "x", "fun": "test.ping", "batch": "1", "batch_wait": 0, "failhard": false, "tgt_type": "list"},
		{"client": "local_subset", "tgt": "x", "fun": "test.ping", "subset": 1, "sub": 1, "cli": false, "tgt_type": "list"},
		{"client": "runner", "fun": "jobs.list_job", "jid": "20250102030405678901", "arg": []any{}, "kwarg": m{}, "full_return": false},
		{"client": "runner", "fun": "cache.grains", "tgt": "*", "tgt_type": "glob"},
		{"client": "wheel", "fun": "key.finger", "match": "*"},
		{"client": "wheel", "fun": "key.accept", "match": "x", "include_rejected": false},
	}
	send := func(what string, body any) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		code, text, _ := s.do("POST", "/", "application/json", string(b))
		clearAnswer(t, what, code, text)
	}
	for _, base := range bases {
		for field := range base {
			for i, v := range append(hostileValues(), missing{}) {
				low := m{}
				for k, v := range base {
					low[k] = v
				}
				low[field] = v
				if _, gone := v.(missing); gone {
					delete(low, field)
				}
				send(fmt.Sprintf("%v %v with %s number %d", base["client"], base["fun"], field, i), low)
			}
		}
	}
	if text := log.String(); strings.Contains(text, "panic") {
		t.Errorf("the log has a panic:\n%.3000s", text)
	}
	if code, v := s.json("POST", "/", m{"client": "runner", "fun": "test.metasyntactic"}); code != 200 {
		t.Error("afterwards:", code, v)
	}
}

type missing struct{}

// TestOthersMinionsAreNotShown: a user who may command some minions learns nothing about the others, by any
// endpoint.
func TestOthersMinionsAreNotShown(t *testing.T) {
	s := newSite(t, nil)
	match := func(kind string, tgt any) ([]string, error) {
		switch fmt.Sprint(tgt) {
		case "web1", "web*", "[web1]":
			return []string{"web1"}, nil
		}
		return []string{"db1", "web1"}, nil
	}
	auth, err := eauth.New(eauth.Options{Match: match, Systems: map[string]eauth.System{"sharedsecret": eauth.SharedSecret{Secret: "secret"}},
		Config: m{"sharedsecret": m{"bob": []any{m{"web*": []any{"grains.items", "test.*"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth, o.LoginRate = auth, -1
	o.Runner = runner.NewClient(runner.Embedded(s.master, "m_master", nil, t.TempDir(), nil))
	s.serve(o)
	s.token = ""
	_, v := s.json("POST", "/login", m{"username": "bob", "password": "secret", "eauth": "sharedsecret"})
	s.token = v["return"].([]any)[0].(m)["token"].(string)
	for _, path := range []string{"/minions", "/minions/db1", "/minions/*", "/jobs", "/jobs/20250102030405678901", "/keys", "/keys/db1", "/keys/web1"} {
		if code, v := s.json("GET", path, nil); code != 401 {
			t.Errorf("%s: %d %v", path, code, v)
		}
	}
	for _, low := range []m{
		{"client": "local", "tgt": "db1", "fun": "grains.items"},
		{"client": "local", "tgt": []any{"web1", "db1"}, "fun": "grains.items"},
		{"client": "local", "tgt": "web1 or db1", "tgt_type": "compound", "fun": "grains.items"},
		{"client": "local", "tgt": "os:Debian", "tgt_type": "grain", "fun": "grains.items"},
		{"client": "local_async", "tgt": "*", "fun": "test.ping"},
		{"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": "1"},
		{"client": "local_subset", "tgt": "*", "fun": "test.ping", "subset": 1},
		{"client": "local", "tgt": "web1", "fun": "cmd.run", "arg": "id"},
		{"client": "local", "tgt": "web1", "fun": []any{"test.ping", "cmd.run"}, "arg": []any{[]any{}, []any{"id"}}},
		{"client": "runner", "fun": "cache.grains", "tgt": "web1"},
		{"client": "runner", "fun": "cache.pillar", "tgt": "web1"},
		{"client": "runner", "fun": "salt.execute", "arg": []any{"db1", "cmd.run", "id"}},
		{"client": "wheel", "fun": "key.list_all"},
	} {
		if code, v := s.json("POST", "/", low); code != 401 {
			t.Errorf("%v: %d %v", low, code, v)
		}
	}
}

// TestCVE_2017_5200_NoSSHClient: no client starts a program on the master, even for a user with all rights and with
// any options (also CVE-2020-16846).
func TestCVE_2017_5200_NoSSHClient(t *testing.T) {
	s := newSite(t, nil)
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	for _, client := range []string{"ssh", "ssh_async", "ssh_sync", "thorium", "cloud", "caller"} {
		for name, extra := range map[string]m{"nothing": {}, "raw": {"raw_shell": true, "arg": "touch " + made}, "a key": {"ssh_priv": "|touch " + made, "priv": made},
			"options": {"ssh_options": []any{"ProxyCommand=touch " + made}}, "a port": {"ssh_port": "22 -oProxyCommand='touch " + made + "'"}, "a roster": {"roster_file": "/etc/passwd", "rosters": []any{"/etc"}}} {
			low := m{"client": client, "tgt": "*", "fun": "test.ping"}
			maps.Copy(low, extra)
			for _, path := range []string{"/", "/run"} {
				if path == "/run" {
					low["token"] = s.token
				}
				if code, v := s.json("POST", path, low); code != 400 || v["return"] != "Invalid client specified: '"+client+"'" {
					t.Errorf("%s with %s at %s: %d %v", client, name, path, code, v)
				}
			}
		}
	}
	if _, err := os.Lstat(made); err == nil {
		t.Error("a program ran")
	}
}

// TestCVE_2018_15750_PathsTellNothing: no part of a request becomes a path. The answers for the names of existing
// and missing files are equal.
func TestCVE_2018_15750_PathsTellNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(dir, "static")
	if err := os.Mkdir(static, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "there"), filepath.Join(static, "out")); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.Pages = -1, restapi.Pages{Static: static} })
	token := s.token
	requests := map[string]func(path string) (int, string, http.Header){
		"token in a header": func(p string) (int, string, http.Header) { return s.do("GET", "/jobs", "", "", "X-Auth-Token", p) },
		"token in a cookie": func(p string) (int, string, http.Header) {
			return s.do("GET", "/jobs", "", "", "Cookie", "session_id="+p)
		},
		"token in a command": func(p string) (int, string, http.Header) {
			return s.do("POST", "/run", "application/json", jsonText(t, m{"client": "local", "tgt": "*", "fun": "test.ping", "token": p}))
		},
		"token of a websocket": func(p string) (int, string, http.Header) { return s.do("GET", "/ws/"+url.PathEscape(p), "", "") },
		"minion":               func(p string) (int, string, http.Header) { return s.do("GET", "/minions/"+url.PathEscape(p), "", "") },
		"key":                  func(p string) (int, string, http.Header) { return s.do("GET", "/keys/"+url.PathEscape(p), "", "") },
		"job":                  func(p string) (int, string, http.Header) { return s.do("GET", "/jobs/"+url.PathEscape(p), "", "") },
		"order":                func(p string) (int, string, http.Header) { return s.do("GET", "/v1/jobs/"+url.PathEscape(p), "", "") },
		"page":                 func(p string) (int, string, http.Header) { return s.do("GET", "/static/"+url.PathEscape(p), "", "") },
		"page of a path": func(p string) (int, string, http.Header) {
			return s.do("GET", "/static/%2e%2e/"+filepath.Base(p), "", "")
		},
		"system": func(p string) (int, string, http.Header) {
			return s.do("POST", "/login", "application/json", jsonText(t, m{"username": p, "password": p, "eauth": p}))
		},
	}
	for name, ask := range requests {
		for _, form := range []string{dir + "/%s", "../../../../../../../../.." + dir + "/%s", "../%s"} {
			s.token = token
			if strings.HasPrefix(name, "token") {
				s.token = ""
			}
			there, missing := fmt.Sprintf(form, "there"), fmt.Sprintf(form, "nowhr")
			code, text, _ := ask(there)
			code2, text2, _ := ask(missing)
			if code != code2 || strings.ReplaceAll(text, "there", "nowhr") != text2 || strings.Contains(text, "canary") {
				t.Errorf("%s %s: %d %.200s, but for what is not there %d %.200s", name, form, code, text, code2, text2)
			}
			if code == 200 && name != "minion" && name != "key" {
				t.Errorf("%s %s: %d %.200s", name, form, code, text)
			}
		}
	}
	if code, text, _ := s.do("GET", "/static/out", "", ""); code != 404 || strings.Contains(text, "canary") {
		t.Errorf("a link that leads out: %d %s", code, text)
	}
}

// TestCVE_2018_15751_CommandsBringCredentials: at /run every client refuses a command without a log-in system and
// without a token. The session's token does not count there. Credentials that are not text are refused, and so are
// those of one user beside another's token.
func TestCVE_2018_15751_CommandsBringCredentials(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	bob := s.login("bob")
	for _, client := range restapi.Clients() {
		for name, creds := range map[string]m{
			"the session alone": {}, "a name": {"username": "alice", "password": "secret"}, "no system": {"username": "alice", "password": "secret", "eauth": nil},
			"a number": {"username": "alice", "password": "secret", "eauth": 1}, "a list": {"username": "alice", "password": "secret", "eauth": []any{"file"}},
			"a map as name": {"username": m{"alice": "secret"}, "password": "secret", "eauth": "file"},
			"token of bob":  {"username": "alice", "password": "secret", "eauth": "file", "token": bob},
		} {
			low := m{"client": client, "tgt": "*", "match": "*", "fun": "key.list_all"}
			maps.Copy(low, creds)
			// Authentication comes first: without it no rules are consulted.
			if code, v := s.json("POST", "/run", low); code != 401 || v["return"] == "Authorization error occurred." && creds["token"] == nil {
				t.Errorf("%s with %s: %d %v", client, name, code, v)
			}
		}
	}
}
