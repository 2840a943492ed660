package httppost

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

type m = map[string]any

// receiver is a server that keeps what it gets and gives the wanted answers, the last of them for ever.
type receiver struct {
	mu      sync.Mutex
	answers []int
	got     []*http.Request // guarded by mu
	bodies  []string        // guarded by mu
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got, r.bodies = append(r.got, req), append(r.bodies, string(b))
	code := r.answers[min(len(r.got), len(r.answers))-1]
	if code == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte("s3cret of the server"))
}

func (r *receiver) all() ([]*http.Request, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got, r.bodies
}

func aReturn(more m) m {
	ret := m{"id": "web1", "jid": "20261121100000000001", "fun": "test.echo", "fun_args": []any{"ü"}, "success": true, "return": m{"a": int64(1)}, "retcode": int64(0)}
	for k, v := range more {
		ret[k] = v
	}
	return ret
}

const asJSON = `{"fun": "test.echo", "fun_args": ["ü"], "id": "web1", "jid": "20261121100000000001", "retcode": 0, "return": {"a": 1}, "success": true}`

// give hands a return to the returner and gives its error's text and the log.
func give(t *testing.T, opts, ret m) (failure, log string) {
	t.Helper()
	var text strings.Builder
	e := modulestest.Env(t)
	e.Opts = func() m { return opts }
	e.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if pem, ok := opts["write"].([]byte); ok {
		if err := os.WriteFile(filepath.Join(e.Root, "ca.pem"), pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reg := modules.NewRegistry(module(time.Millisecond))
	if res := reg.Run(t.Context(), e, modules.Request{Fun: "http_post.returner", Args: []any{ret}}); res.Err != nil {
		failure = res.Err.Error()
	}
	return failure, text.String()
}

func TestReturner(t *testing.T) {
	r := &receiver{answers: []int{http.StatusOK}}
	s := httptest.NewServer(r)
	defer s.Close()
	opts := m{"returner.http_post.url": s.URL + "/in?token=s3cret", "returner.http_post": m{"headers": m{"X-Key": "k", "Host": "named.example"}},
		"returner.http_post.username": "ada", "returner.http_post.password": "s3cret"}
	if failure, _ := give(t, opts, aReturn(m{"ret_kwargs": m{"timeout": int64(60)}, "ret_config": "other"})); failure != "" {
		t.Fatal(failure)
	}
	reqs, bodies := r.all()
	req := reqs[0]
	user, password, _ := req.BasicAuth()
	shown := []string{req.Method, req.URL.String(), req.Host, req.Header.Get("Content-Type"), req.Header.Get("X-Key"), user, password, bodies[0]}
	if diff := cmp.Diff([]string{"POST", "/in?token=s3cret", "named.example", "application/json", "k", "ada", "s3cret", asJSON}, shown); diff != "" {
		t.Error(diff)
	}
}

// Configured secrets go to the configured server only.
func TestJobThatNamesTheServerGetsNoSecrets(t *testing.T) {
	r := &receiver{answers: []int{http.StatusOK}}
	s := httptest.NewServer(r)
	defer s.Close()
	own := m{"url": s.URL, "headers": m{"X-Key": "s3cret"}, "username": "ada", "password": "s3cret"}
	for _, more := range []m{{"url": s.URL}, {"verify_ssl": false}, {"url": s.URL, "username": "bob", "headers": m{"X-Other": "o"}}} {
		if failure, _ := give(t, m{"returner.http_post": own}, aReturn(m{"ret_kwargs": more})); failure != "" {
			t.Fatal(failure)
		}
	}
	got, bodies := r.all()
	for _, req := range got[:2] {
		if req.Header.Get("X-Key") != "" || req.Header.Get("Authorization") != "" {
			t.Errorf("sent %v", req.Header)
		}
	}
	second := got[2].Header
	if user, password, _ := got[2].BasicAuth(); second.Get("X-Key") != "" || second.Get("X-Other") != "o" || user != "bob" || password != "" {
		t.Errorf("sent %v", second)
	}
	for _, b := range bodies {
		if b != asJSON {
			t.Errorf("sent %s", b)
		}
	}
}

func TestAttempts(t *testing.T) {
	for _, c := range []struct {
		answers []int
		retries any
		want    int
		failure string
	}{
		{[]int{503, 429, 500, 204}, nil, 4, ""},
		{[]int{502}, "2", 3, "the server answers 502 Bad Gateway"},
		{[]int{500}, int64(0), 1, "the server answers 500 Internal Server Error"},
		{[]int{403}, nil, 1, "the server answers 403 Forbidden"},
		{[]int{302}, nil, 1, "the server answers 302 Found"},
	} {
		r := &receiver{answers: c.answers}
		s := httptest.NewServer(r)
		opts := m{"returner.http_post.url": strings.Replace(s.URL, "//", "//me:s3cret@", 1) + "/s3cret", "returner.http_post.headers": m{"X": "s3cret"}}
		if c.retries != nil {
			opts["returner.http_post.retries"] = c.retries
		}
		failure, log := give(t, opts, aReturn(nil))
		if want := "cannot send the return to " + s.URL + ": " + c.failure; c.failure != "" && failure != want || c.failure == "" && failure != "" {
			t.Errorf("%v: %s", c.answers, failure)
		}
		if got, _ := r.all(); len(got) != c.want {
			t.Errorf("%v: %d attempts", c.answers, len(got))
		}
		if strings.Contains(failure+log, "s3cret") {
			t.Errorf("a secret is told: %s\n%s", failure, log)
		}
		s.Close()
	}
}

func TestServerThatIsSilentOrGone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	failure, _ := give(t, m{"returner.http_post": m{"url": s.URL + "/s3cret", "timeout": int64(1), "retries": int64(0)}}, aReturn(nil))
	if !strings.HasPrefix(failure, "cannot send the return to "+s.URL+": ") || strings.Contains(failure, "s3cret") {
		t.Error(failure)
	}
	s.Close()
	failure, log := give(t, m{"returner.http_post": m{"url": s.URL + "/s3cret", "retries": int64(1)}}, aReturn(nil))
	if !strings.HasPrefix(failure, "cannot send the return to "+s.URL+": dial tcp") || strings.Count(log, "will be sent again") != 1 || strings.Contains(failure+log, "s3cret") {
		t.Errorf("%s\n%s", failure, log)
	}
}

func TestCertificates(t *testing.T) {
	r := &receiver{answers: []int{http.StatusOK}}
	s := httptest.NewUnstartedServer(r)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for _, c := range []struct {
		opts    m
		failure string
	}{
		{m{}, "certificate"},
		{m{"verify_ssl": false}, ""},
		{m{"ca_bundle": "/ca.pem"}, ""},
		{m{"ca_bundle": "/none.pem"}, "No such file or directory"},
	} {
		c.opts["url"] = s.URL
		failure, log := give(t, m{"returner.http_post": c.opts, "write": ca}, aReturn(nil))
		if c.failure == "" && failure != "" || !strings.Contains(failure, c.failure) || strings.Contains(log, "again") {
			t.Errorf("%v: %s\n%s", c.opts, failure, log)
		}
	}
	if got, _ := r.all(); len(got) != 2 {
		t.Errorf("the server was asked %d times", len(got))
	}
}

func TestBadOptions(t *testing.T) {
	for want, opts := range map[string]m{
		"the option returner.http_post.url is missing":                         {},
		"returner.http_post.url is no http or https address":                   {"url": "ftp://s3cret"},
		"returner.http_post.headers must be a dictionary":                      {"url": "http://127.0.0.1:1", "headers": "X: s3cret"},
		"returner.http_post.retries must be a number from 0 to 10":             {"url": "http://127.0.0.1:1", "retries": int64(11)},
		"returner.http_post.timeout must be a number of seconds from 1 to 240": {"url": "http://127.0.0.1:1", "timeout": "s3cret"},
	} {
		if failure, log := give(t, m{"returner.http_post": opts}, aReturn(nil)); failure != "cannot send the return: "+want || strings.Contains(log, "s3cret") {
			t.Errorf("%v: %s\n%s", opts, failure, log)
		}
	}
	failure, log := give(t, m{"returner.http_post": m{"url": "http://127.0.0.1:1", "headers": m{"X": "s3cret\r\n"}, "retries": int64(0)}}, aReturn(nil))
	if !strings.Contains(failure, "invalid header") || strings.Contains(failure+log, "s3cret") {
		t.Errorf("%s\n%s", failure, log)
	}
	res := modules.NewRegistry(Module()).Run(t.Context(), modulestest.Env(t), modules.Request{Fun: "http_post.returner", Args: []any{"text"}})
	if res.Err == nil {
		t.Error("a text is no return")
	}
}
