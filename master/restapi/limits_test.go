package restapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/handshakes"
	"github.com/brine-salt/brine/master/restapi"
)

// sender is a connection that announces a body and asks whether it may send it.
type sender struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// announce sends the head of a request. length is its Content-Length, or "chunked".
func (s *site) announce(path, length, token string) *sender {
	s.t.Helper()
	c, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	head := "Content-Length: " + length
	if length == "chunked" {
		head = "Transfer-Encoding: chunked"
	}
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nX-Auth-Token: %s\r\n%s\r\n\r\n", path, token, head)
	return &sender{c, s.t, bufio.NewReader(c)}
}

// status reads an answer; 100 means that the server waits for the body.
func (c *sender) status() int {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != 100 {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if (resp.Header.Get("Retry-After") != "") != (resp.StatusCode == 503 || resp.StatusCode == 429) {
			c.t.Error(resp.StatusCode, resp.Header)
		}
	}
	return resp.StatusCode
}

// TestStrangersShareTheirMemory: large bodies of unauthenticated callers are read until their share of memory is
// used up; further ones are refused before the body is sent. Authenticated callers and small bodies are still
// served.
func TestStrangersShareTheirMemory(t *testing.T) {
	const large = "1000000"
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.Strangers = -1, 2_500_000 })
	is := func(what string, c *sender, want int) *sender {
		t.Helper()
		if got := c.status(); got != want {
			t.Errorf("%s: %d", what, got)
		}
		return c
	}
	first := is("the first", s.announce("/login", large, ""), 100)
	second := is("the second", s.announce("/run", large, "0bad"), 100)
	for _, path := range []string{"/login", "/run", "/token", "/keys", "/hook", "/"} {
		is("over the share, "+path, s.announce(path, large, ""), 503)
		is("without a length, "+path, s.announce(path, "chunked", ""), 503)
		is("more than any request, "+path, s.announce(path, "1099511627776", ""), 413)
	}
	is("with a token", s.announce("/", large, s.token), 100)
	is("with a token, too large", s.announce("/", "1048577", s.token), 413)
	is("small", s.announce("/login", "65536", ""), 100)
	if s.login("bob") == "" {
		t.Error("nobody can log in meanwhile")
	}
	// A caller that sends the whole body, or disconnects, frees its share.
	fmt.Fprint(first, padded("secret"))
	is("the first, sent", first, 200)
	is("behind the first", s.announce("/login", large, ""), 100)
	second.Close()
	for { // the server needs a moment to see that it left
		c := s.announce("/login", large, "")
		if c.status() == 100 {
			break
		}
		c.Close()
	}
}

// TestOwnBodiesAreShared: one caller with a token gets memory for half of the large bodies, in requests or uploads; another caller still
// gets its part, and what has ended is free again.
func TestOwnBodiesAreShared(t *testing.T) {
	const large = "1000000"
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	fill := func(token string) (sent []*sender) {
		t.Helper()
		for {
			c := s.announce("/", large, token)
			sent = append(sent, c)
			if got := c.status(); got == 503 {
				return sent
			} else if got != 100 || len(sent) > 200 {
				t.Fatal(len(sent), got)
			}
		}
	}
	other := s.login("bob")
	alice, bob := fill(s.token), fill(other)
	if len(alice) != 68 || len(bob) != 35 {
		t.Errorf("the first caller got %d bodies, the second %d", len(alice)-1, len(bob)-1)
	}
	if got := s.announce("/", "65536", s.token).status(); got != 100 {
		t.Errorf("a small body: %d", got)
	}
	if code, v := s.upload(part{`form-data; name="order"`, `{"id": "up", "fun": "test.ping", "tgt": ["d1"]}`}); code != 503 {
		t.Errorf("an upload: %d %v", code, v)
	}
	alice[0].Close()
	alice[1].Close()
	for { // the server needs a moment to see that they left
		c := s.announce("/", large, other)
		if c.status() == 100 {
			break
		}
		c.Close()
	}
}

// TestLimit: connections beyond the limit of an address are closed, beyond the limit of all they wait.
func TestLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := restapi.Limit(inner, 3, 2)
	accepted, ended := make(chan net.Conn, 10), make(chan error, 1)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	dial := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * patience))
		return c
	}
	closed := func(c net.Conn) {
		t.Helper()
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "timeout") {
			t.Error("not closed:", err)
		}
	}
	dial("127.0.0.1")
	dial("127.0.0.1")
	one, two := <-accepted, <-accepted
	closed(dial("127.0.0.1")) // the third of its address
	one.Close()
	one.Close()       // counts once
	dial("127.0.0.1") // has the place of the first
	three := <-accepted
	dial("127.0.0.2")
	four := <-accepted
	dial("127.0.0.2") // there is no place for it, but for its address there is
	select {
	case c := <-accepted:
		t.Error("one too many:", c.RemoteAddr())
	default:
	}
	two.Close()
	five := <-accepted
	if got := five.RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.2" {
		t.Error(got)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, c := range []net.Conn{three, four, five} {
		c.Close()
	}
}

// TestHandshakesOfProvenClients: clients that log in or have a token open as many connections as they like. Those of others are limited.
func TestHandshakesOfProvenClients(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	server := httptest.NewUnstartedServer(nil)
	server.Config, server.Listener = s.rest.HTTP(), handshakes.Space(server.Listener, 1e-9, 3)
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.DisableKeepAlives = true
	send := func(path, body, token string) (int, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Auth-Token", token)
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	const command, creds = `{"client": "runner", "fun": "jobs.list_jobs"`, `"username": "alice", "eauth": "file", "password": "secret"`
	for range 5 {
		for _, c := range [][3]string{
			{"/", command + "}", s.token}, {"/login", "{" + creds + "}", ""}, {"/run", command + ", " + creds + "}", ""},
			{"/run", command + `, "token": "` + s.token + `"}`, ""},
		} {
			if code, err := send(c[0], c[1], c[2]); code != 200 || err != nil {
				t.Fatalf("%s: %d %v", c[0], code, err)
			}
		}
	}
	for i := range 4 {
		code, err := send("/run", command+"}", "")
		if i < 3 && (code != 401 || err != nil) || i == 3 && err == nil {
			t.Errorf("request %d that proves nothing: %d %v", i+1, code, err)
		}
	}
}

// TestRequestsOfOneUser: a user who sends too many requests is told to retry later, by any endpoint and token;
// others are served.
func TestRequestsOfOneUser(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.RequestRate, o.RequestBurst = -1, 1e-9, 5 })
	alice, again := s.token, ""
	s.token = ""
	again = s.login("alice")
	for i := range 5 {
		s.token = []string{alice, again}[i%2]
		if code, v := s.json("GET", "/v1/minions", nil); code != 200 {
			t.Fatal(i, code, v)
		}
	}
	for _, c := range []struct {
		method, path, token string
		body                any
	}{
		{"GET", "/v1/minions", alice, nil}, {"GET", "/jobs", again, nil}, {"POST", "/", alice, m{"client": "runner", "fun": "test.arg"}},
		{"POST", "/run", "", m{"client": "runner", "fun": "test.arg", "token": alice}}, {"POST", "/v1/jobs", alice, m{"tgt": []any{"x"}, "fun": "test.ping"}},
		{"GET", "/events", alice, nil}, {"POST", "/hook/x", again, m{}},
	} {
		s.token = c.token
		text := ""
		if c.body != nil {
			text = jsonText(t, c.body)
		}
		code, got, h := s.do(c.method, c.path, "application/json", text)
		if code != 429 || h.Get("Retry-After") == "" || got != `{"return": "Too many requests", "status": 429}` {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, code, got, h)
		}
	}
	s.token = ""
	s.token = s.login("bob")
	for i := range 5 {
		if code, v := s.json("POST", "/", []any{m{"client": "runner", "fun": "jobs.list_jobs"}, m{"client": "runner", "fun": "jobs.active"}}); code != 200 {
			t.Error("bob:", i, code, v)
		}
	}
	if code, _ := s.json("GET", "/jobs", nil); code != 429 {
		t.Error("bob's sixth:", code)
	}
}

// TestRefusalsArePaced: a client that exceeds the rate gets the answer about that after a delay; other answers come
// at once.
func TestRefusalsArePaced(t *testing.T) {
	const pause = 250 * time.Millisecond
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.LoginBurst = 0.001, 2 })
	wrong := map[string]any{"username": "bob", "password": "wrong", "eauth": "file"}
	for i, want := range []int{401, 401, 429, 429} {
		begun := time.Now()
		code, _ := s.json("POST", "/login", wrong)
		if took := time.Since(begun); code != want || code == 429 && took < pause {
			t.Errorf("log-in %d: %d after %v, want %d", i, code, took, want)
		}
	}
}

// TestLargeBodiesOfOneAddress: one address may send a limited number of bytes in large bodies without a token. More
// is refused before the body is sent.
func TestLargeBodiesOfOneAddress(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.Strangers = -1, 1<<30 })
	taken := 0
	var last int
	for range 40 {
		if last = s.announce("/run", "1000000", "").status(); last != 100 {
			break
		}
		taken++
	}
	if last != 429 || taken < 4 || taken > 12 {
		t.Errorf("after %d bodies of a megabyte: %d", taken, last)
	}
	if got := s.announce("/", "1000000", s.token).status(); got != 100 {
		t.Errorf("with a token: %d", got)
	}
	if got := s.announce("/login", "1000", "").status(); got != 100 {
		t.Errorf("a small one: %d", got)
	}
}

// TestRefusedBodiesCountMore: a large body whose log-in fails counts eight times in the share of its address, and one that is let in once.
// So does one that the master fails to serve, and one of a user who sends too many requests.
func TestRefusedBodiesCountMore(t *testing.T) {
	for name, c := range map[string]struct {
		path, body  string
		change      func(*restapi.Options)
		code, taken int
	}{
		"let in":      {"/login", padded("secret"), nil, 200, 4},
		"refused":     {"/login", padded("wrong"), nil, 401, 1},
		"master full": {"/login", padded("secret"), noTokens(t), 500, 4},
		"user's rate": {"/run", "", func(o *restapi.Options) { o.RequestRate, o.RequestBurst = 1e-9, 1 }, 429, 4},
	} {
		s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
		if c.change != nil {
			c.change(&s.options)
			s.serve(s.options)
		}
		if c.body == "" {
			s.json("GET", "/jobs", nil) // the one request of the user
			c.body = spaced(`{"client": "runner", "fun": "test.arg", "token": "` + s.token + `"}`)
		}
		taken := 0
		for taken < 8 {
			q := s.announce(c.path, "1000000", "")
			if code := q.status(); code == 429 {
				break
			} else if code != 100 {
				t.Fatal(name, code)
			}
			taken++
			fmt.Fprint(q, c.body)
			if code := q.status(); code != c.code {
				t.Fatalf("%s: %d", name, code)
			}
		}
		if taken < c.taken || taken > 2*c.taken { // more come in while it waits
			t.Errorf("%s: %d bodies of a megabyte were taken", name, taken)
		}
	}
}

// noTokens has no log-in succeed: all tokens are another user's.
func noTokens(t *testing.T) func(*restapi.Options) {
	return func(o *restapi.Options) {
		users := filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(users, []byte("alice:secret\nbob:secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		auth, err := eauth.New(eauth.Options{MaxTokens: 1, Config: m{"file": m{"^filename": users, "alice": []any{".*"}, "bob": []any{".*"}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := auth.Login(t.Context(), "file", "bob", "secret"); err != nil {
			t.Fatal(err)
		}
		o.Auth = auth
	}
}

// TestClientsThatLeaveCountOnce: a large body counts once if its client disconnects while its command runs.
func TestClientsThatLeaveCountOnce(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	if status, text, _ := s.do("POST", "/keys", "application/json", `{"mid":"new1"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text) // a minion that does not answer
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := spaced(`{"client": "local", "tgt": "*", "fun": "test.ping", "username": "alice", "eauth": "file", "password": "secret"}`)
	for taken := range 4 {
		r := httptest.NewRequestWithContext(ctx, "POST", "/run", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.rest.ServeHTTP(w, r); w.Body.Len() > 0 {
			t.Fatalf("after %d bodies: %d %s", taken, w.Code, w.Body)
		}
	}
}

// TestRefusedSmallBodies: decoding a body takes up to 40 milliseconds, so an address that has many of them refused is not served
// for a while. Log-ins, and callers with a token, still are. Bodies of requests that succeed cost nothing.
func TestRefusedSmallBodies(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	token := s.token
	s.token = ""
	yaml := strings.Repeat("- a: 1\n", 8000)
	// Invalid JSON is refused at once, so that the rate does not matter, however slow the machine is.
	invalid := strings.Repeat("x", len(yaml))
	const rate, burst, each, atOnce = 1 << 20, 4 << 20, 8 * 56_000, 10
	begun, taken := time.Now(), new(atomic.Int32)
	paths := []string{"/login", "/run", "/", "/keys", "/minions", "/token", "/hook", "/hook/x", "/logout"}
	var wg sync.WaitGroup
	for first := range atOnce {
		wg.Go(func() {
			for i := first; i < 60; i += atOnce {
				path := paths[i%len(paths)]
				code, _, _ := s.do("POST", path, "application/json", invalid)
				if code == 429 {
					return
				}
				if taken.Add(1); code < 400 {
					t.Errorf("%s: %d", path, code)
				}
			}
		})
	}
	wg.Wait()
	if most := (burst+int(time.Since(begun).Seconds()*rate))/each + atOnce; int(taken.Load()) > most || taken.Load() < burst/each {
		t.Errorf("%d bodies were refused before the address was, want %d to %d", taken.Load(), burst/each, most)
	}
	var code int
	if code, _ = s.json("POST", "/login", m{"username": "alice", "eauth": "file", "password": "secret"}); code != 200 {
		t.Errorf("a log-in: %d", code)
	}
	if code, _, _ = s.do("POST", "/", "application/x-yaml", yaml, "X-Auth-Token", token); code == 429 {
		t.Errorf("with a token: %d", code)
	}

	// The debt of a large body lasts for seconds.
	s = newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	s.token = ""
	if code, _, _ := s.do("POST", "/run", "application/json", strings.Repeat("x", 1_000_000)); code != 400 {
		t.Errorf("a large invalid body: %d", code)
	}
	if code, _, _ := s.do("POST", "/run", "application/x-yaml", yaml); code != 429 {
		t.Errorf("a body that takes long to decode: %d", code)
	}

	// Aliases in 2 KiB of YAML stand for thousands of values. The last of these bodies is refused for what the others cost.
	for _, kind := range []string{"application/x-yaml", "application/x-www-form-urlencoded"} {
		s = newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
		s.token = ""
		aliases := "a: &a {" + strings.Repeat("b: 1, ", 20) + "c: 1}\nd: [" + strings.Repeat("*a, ", 100) + "]\n"
		if strings.Contains(kind, "form") {
			aliases = "kwarg={a: %26a {c: 1}, d: [" + strings.Repeat("*a, ", 100) + "]}"
		}
		var codes []int
		for range 10 {
			code, _, _ := s.do("POST", "/run", kind, aliases)
			codes = append(codes, code)
		}
		if codes[0] == 429 || codes[9] != 429 {
			t.Errorf("%s with aliases: %d", kind, codes)
		}
		for kind, body := range map[string]string{"application/json": `{"username": "alice", "eauth": "file", "password": "secret"}`,
			"application/x-yaml":                "username: alice\neauth: file\npassword: secret\n",
			"application/x-www-form-urlencoded": "username=alice&eauth=file&password=secret"} {
			if code, text, _ := s.do("POST", "/login", kind, body); code != 200 {
				t.Errorf("a log-in, %s: %d %s", kind, code, text)
			}
		}
	}

	s = newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	s.token = ""
	for i := range 100 {
		if code, text, _ := s.do("POST", "/login", "application/x-yaml", "x: &a [1]\ny: *a\nusername: alice\neauth: file\npassword: secret\n"); code != 200 {
			t.Fatalf("log-in %d with an alias: %d %s", i, code, text)
		}
	}
	large := padded("secret")[:60_000]
	for i := range 200 {
		if code, text, _ := s.do("POST", "/login", "application/json", large); code != 200 {
			t.Fatalf("log-in %d: %d %s", i, code, text)
		}
	}
}

// TestUndecodedBodiesCostNothing: a body that is refused before it is decoded, for what its decoding costs, leaves the share of
// its address as it was.
func TestUndecodedBodiesCostNothing(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.LoginRate = -1 })
	s.rest.FakeBodies(3_000_000)
	s.token = ""
	yaml := spaced("username: alice\neauth: file\npassword: secret\n")
	var codes []int
	for _, c := range []struct{ kind, body string }{
		{"application/x-yaml", yaml}, {"application/x-yaml", yaml}, {"application/json", padded("secret")}, {"application/json", padded("secret")},
		{"application/x-yaml", yaml}, {"application/json", padded("secret")}, {"application/json", padded("secret")},
	} {
		code, _, _ := s.do("POST", "/login", c.kind, c.body)
		codes = append(codes, code)
	}
	if want := []int{429, 429, 200, 200, 429, 200, 429}; !slices.Equal(codes, want) {
		t.Errorf("got %d, want %d", codes, want)
	}
}

// TestPriceIsCapped: a body that may be sent can be decoded, however large max_request_body_size is.
func TestPriceIsCapped(t *testing.T) {
	for kind, body := range map[string]string{
		"application/x-yaml":                "username: alice\neauth: file\npassword: secret\n" + strings.Repeat(" ", 1_200_000),
		"application/x-www-form-urlencoded": "username=alice&eauth=file&password=secret&arg=%09" + strings.Repeat("x", 1_200_000),
	} {
		s := newSite(t, func(o *restapi.Options) { o.LoginRate, o.MaxBody = -1, 2<<20 })
		s.token = ""
		if code, text, _ := s.do("POST", "/login", kind, body); code != 200 {
			t.Errorf("%s: %d %s", kind, code, text)
		}
	}
}

// padded is a log-in of a million bytes.
func padded(password string) string {
	return spaced(`{"username": "alice", "eauth": "file", "password": "` + password + `"}`)
}

// spaced is a body of a million bytes.
func spaced(body string) string { return body + strings.Repeat(" ", 1_000_000-len(body)) }
