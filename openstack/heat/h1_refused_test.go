package heat

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// services respond to requests with the files of testdata/recorded, which openstack/lab/record wrote: by method and
// path, each list in order, with the last response repeated. Users get the tokens that were recorded for them.
type services struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string][]exchange // guarded by mu
	sent    []*http.Request       // guarded by mu
	bodies  []string              // guarded by mu; of sent
}

// usedRecordings are the files that the tests have read. TestHeatH1Refused checks that every file is used.
var usedRecordings = map[string]bool{}

func recording(t *testing.T, name string) exchange {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var e exchange
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	usedRecordings[name] = true
	return e
}

func newServices(t *testing.T) *services { return &services{t: t, answers: map[string][]exchange{}} }

// key returns the key for finding a request's response.
func (e exchange) key() string {
	path, _, _ := strings.Cut(e.Request.Path, "?")
	var login struct {
		Auth struct {
			Identity struct {
				Password struct{ User struct{ ID string } }
			}
		}
	}
	_ = json.Unmarshal([]byte(e.Request.Body), &login) // other bodies have no user
	return e.Request.Method + " " + path + " " + login.Auth.Identity.Password.User.ID
}

// will sets the next responses for the request that they were recorded for.
func (s *services) will(answers ...exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[answers[0].key()] = answers
}

func (s *services) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	e := exchange{Request: message{Method: q.Method, Path: q.URL.EscapedPath(), Body: string(body)}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.bodies = append(s.sent, q), append(s.bodies, string(body))
	list := s.answers[e.key()]
	if len(list) == 0 {
		s.t.Errorf("a request without an answer: %s", e.key())
		list = []exchange{{Response: message{Status: http.StatusNotFound}}}
	} else if len(list) > 1 {
		s.answers[e.key()] = list[1:]
	}
	r := list[0].Response
	res := &http.Response{StatusCode: r.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.Body)), Request: q}
	for k, v := range r.Headers {
		res.Header.Set(k, v)
	}
	return res, nil
}

// count returns how many requests matched a recording's request.
func (s *services) count(e exchange) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i, q := range s.sent {
		if (exchange{Request: message{Method: q.Method, Path: q.URL.EscapedPath(), Body: s.bodies[i]}}).key() == e.key() {
			n++
		}
	}
	return n
}

// TestHeatH1Refused: if services refuse the guest's credentials, for example those of another stack, or return
// damaged metadata, the agent continues. It runs nothing, logs the reason, keeps its signals, and recovers with the
// right responses. The responses were recorded from the real services.
func TestHeatH1Refused(t *testing.T) {
	for _, c := range []struct {
		name, metadata, refusal, signal, why string
		// logins are the tokens for the metadata and the signal.
		logins []string
		polls  int // requests of a refused poll
	}{
		{"cfn", "heat-api-cfn/metadata", "heat-api-cfn/metadata-wrong-secret", "heat-api-cfn/signal", "403 Forbidden", nil, 1},
		{"heat", "heat-api/metadata", "heat-api/metadata-wrong-token", "heat-api/signal", "401 Unauthorized",
			[]string{"keystone/token-heat", "keystone/token-heat-signal"}, 2}, // again with a new token
		{"request", "swift-proxy/metadata", "swift-proxy/metadata-wrong-signature", "swift-proxy/signal", "401 Unauthorized", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := newGuest(t), newServices(t)
			g.o.Transport = s
			metadata, refusal, signal := recording(t, c.metadata), recording(t, c.refusal), recording(t, c.signal)
			for _, name := range c.logins {
				s.will(recording(t, name))
			}
			s.will(signal)
			g.write("/etc/os-collect-config.conf", configIn(metadata.Response.Body).Text())

			refusal.Request.Path = metadata.Request.Path
			s.will(refusal)
			g.once()
			if n := s.count(metadata); n != c.polls {
				t.Errorf("%d requests for metadata that is refused, want %d", n, c.polls)
			}
			g.idle(c.why)

			for _, body := range damaged(metadata.Response.Body) {
				bad := metadata
				bad.Response.Body = body
				s.will(bad)
				g.once()
				g.idle("damaged")
			}

			s.will(metadata)
			g.once()
			if n := s.count(signal); n != 1 {
				t.Fatalf("%d signals, want 1\n%s", n, g.log)
			}
			if got := s.bodies[len(s.bodies)-1]; !sameJSON([]byte(got), []byte(signal.Request.Body)) {
				t.Errorf("signalled %s, recorded was %s", got, signal.Request.Body)
			}
		})
	}
	t.Run("signal", testSignalRefused)
	t.Run("queue", testQueue)
	t.Run("unchanged", testUnchanged)
	t.Run("handles", testHandles)
	err := filepath.WalkDir("testdata/recorded", func(path string, d fs.DirEntry, err error) error {
		name, _ := strings.CutPrefix(strings.TrimSuffix(filepath.ToSlash(path), ".json"), "testdata/recorded/")
		if err == nil && !d.IsDir() && !usedRecordings[name] {
			t.Errorf("no test uses the recording %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// idle checks that nothing was started, and that the log contains the reason but no secret.
func (g *guest) idle(why string) {
	g.t.Helper()
	if _, err := os.Stat(g.path("/var/lib/heat-config/deployed")); !os.IsNotExist(err) {
		g.t.Fatalf("something was deployed: %v\n%s", err, g.log)
	}
	if log := g.log.String(); !strings.Contains(log, why) || strings.Contains(log, "Signature=") || strings.Contains(log, "temp_url_sig=") {
		g.t.Errorf("the log should have %q and no signature:\n%s", why, log)
	}
}

// damaged returns damaged forms of metadata.
func damaged(body string) []string {
	list := []string{"", "null", "[]", `"text"`, strings.ReplaceAll(body, `"deployments": [`, `"deployments": [[`), strings.ReplaceAll(body, ": ", "= ")}
	for i := 1; i < 8; i++ {
		list = append(list, body[:len(body)*i/8])
	}
	return append(list, body[:len(body)-1])
}

// testSignalRefused: a refused signal is kept, and sent again unchanged.
func testSignalRefused(t *testing.T) {
	g, s := newGuest(t), newServices(t)
	g.o.Transport = s
	metadata, signal, refusal := recording(t, "heat-api-cfn/metadata"), recording(t, "heat-api-cfn/signal"), recording(t, "heat-api-cfn/signal-wrong-signature")
	g.write("/etc/os-collect-config.conf", configIn(metadata.Response.Body).Text())
	s.will(metadata)
	s.will(refusal)
	g.once()
	status, err := ReadStatus(g.o.Paths)
	if waiting, _ := status["signals_waiting"].([]any); err != nil || len(waiting) != 1 {
		t.Fatalf("a refused signal is not kept: %v %v\n%s", status, err, g.log)
	}
	if log := g.log.String(); !strings.Contains(log, "403 Forbidden") || strings.Contains(log, "Signature=") {
		t.Errorf("the log:\n%s", log)
	}
	s.will(signal)
	g.once()
	status, err = ReadStatus(g.o.Paths)
	if waiting, _ := status["signals_waiting"].([]any); err != nil || len(waiting) != 0 {
		t.Errorf("the signal still waits: %v %v", status, err)
	}
	for i, q := range s.sent {
		if strings.Contains(q.URL.Path, "/signal/") && !sameJSON([]byte(s.bodies[i]), []byte(signal.Request.Body)) {
			t.Errorf("signalled %s, want %s", s.bodies[i], signal.Request.Body)
		}
	}
}

// testQueue: the last message of a queue is used, and the queue is read to its end.
func testQueue(t *testing.T) {
	g, s := newGuest(t), newServices(t)
	g.o.Transport = s
	first, second, empty := recording(t, "zaqar-server/pop-1"), recording(t, "zaqar-server/pop-2"), recording(t, "zaqar-server/pop-3")
	signal := recording(t, "zaqar-server/signal")
	for _, name := range []string{"keystone/token-zaqar", "keystone/token-zaqar-signal"} {
		s.will(recording(t, name))
	}
	s.will(signal)
	g.write("/etc/os-collect-config.conf", configIn(first.Response.Body).Text())
	s.will(empty)
	g.once()
	if _, err := os.Stat(g.path("/var/lib/os-collect-config/zaqar.json")); !os.IsNotExist(err) {
		t.Errorf("an empty queue became metadata: %v", err)
	}
	s.will(first, second, empty)
	g.once()
	if n := s.count(signal); n != 1 || !sameJSON([]byte(s.bodies[len(s.bodies)-1]), []byte(signal.Request.Body)) {
		t.Errorf("%d signals, the last request was %s\n%s", n, s.bodies[len(s.bodies)-1], g.log)
	}
}

// testUnchanged: requests to Swift have the validators of its last response.
func testUnchanged(t *testing.T) {
	s := newServices(t)
	metadata := recording(t, "swift-proxy/metadata")
	conf := configIn(metadata.Response.Body)
	if conf == nil {
		t.Fatal("the metadata has no configuration")
	}
	c := newCollectors(conf, Paths{}, newGuest(t).o.Log, &keystone{})
	c.via, c.have = s, func(string) bool { return true }
	s.will(metadata)
	if docs, err := c.one(t.Context(), "request"); err != nil || len(docs) != 1 {
		t.Fatalf("%v %v", docs, err)
	}
	for name, header := range map[string]string{"swift-proxy/metadata-etag": "If-None-Match", "swift-proxy/metadata-since": "If-Modified-Since"} {
		e := recording(t, name)
		s.will(e)
		if docs, err := c.one(t.Context(), "request"); err != errUnchanged {
			t.Errorf("%s: %v %v, want %v", name, docs, err, errUnchanged)
		}
		if got, want := s.sent[len(s.sent)-1].Header.Get(header), e.Request.Headers[header]; got != want {
			t.Errorf("%s is %q, recorded was %q", header, got, want)
		}
	}
}

// testHandles: signals to wait conditions are the recorded ones.
func testHandles(t *testing.T) {
	token, signed := recording(t, "heat-api/handle"), recording(t, "heat-api-cfn/handle")
	const host = "http://127.0.0.1"
	for _, c := range []struct {
		e      exchange
		handle any
	}{
		{token, map[string]any{"endpoint": host + token.Request.Path, "token": token.Request.Headers["X-Auth-Token"]}},
		{signed, map[string]any{"alarm_url": host + signed.Request.Path}},
	} {
		s, to := newServices(t), newSignaler(&keystone{})
		to.web.via = s
		s.will(c.e)
		h, err := ParseHandle(c.handle)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.signal(t.Context(), h, WaitSignal{Reason: "booted", Data: "up", ID: "1"}); err != nil {
			t.Fatal(err)
		}
		q := s.sent[0]
		if !sameJSON([]byte(s.bodies[0]), []byte(c.e.Request.Body)) || q.URL.RequestURI() != c.e.Request.Path ||
			q.Header.Get("X-Auth-Token") != c.e.Request.Headers["X-Auth-Token"] {
			t.Errorf("%s %s %s\nrecorded %+v", q.Method, q.URL, s.bodies[0], c.e.Request)
		}
	}
}
