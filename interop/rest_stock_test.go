//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// restCase is a request of rest_stock.yaml.
type restCase struct {
	Request string            `yaml:"request"` // method and path
	As      string            `yaml:"as"`      // the user of the session; alice if empty, "nobody" without a session
	Headers map[string]string `yaml:"headers"`
	JSON    any               `yaml:"json"` // the body, as JSON
	Form    string            `yaml:"form"` // the body, as a form
	Body    string            `yaml:"body"` // the body, unchanged; Content-Type is among the headers
	// The parts that are not compared: status, type, body, or the name of a header. Why has the reason.
	Ignore []string `yaml:"ignore"`
	// Ours is the answer of brine's master where it differs: status and text.
	Ours struct {
		Status int    `yaml:"status"`
		Text   string `yaml:"text"` // part of the body
	} `yaml:"ours"`
	Why string `yaml:"why"`
}

// api is an HTTP interface under test.
type api struct {
	t      *testing.T
	name   string
	url    string
	client *http.Client
	tokens map[string]string
	known  []string // pairs of a text that may differ and its name for both
	saved  map[string]string
}

// answer is the compared part of an answer.
type answer struct {
	Status int
	Type   string
	Header map[string]string
	Body   any
}

// TestRestAsStock sends the same requests to stock's salt-api (rest_cherrypy) of a stock master, and to brine's. Each
// master has a stock minion. The status, the type and the content of the answers must be the same; cases that may
// differ give the reason.
func TestRestAsStock(t *testing.T) {
	inTurn(t)
	t.Parallel()
	text, err := os.ReadFile("rest_stock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []restCase
	if err := yaml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	theirs, mine := stockAPI(t), ourAPI(t)
	equal, excused := 0, 0
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d %s", i, c.Request), func(t *testing.T) {
			theirs.t, mine.t = t, t
			var want, got answer
			var both sync.WaitGroup
			both.Go(func() { want = theirs.do(c) })
			both.Go(func() { got = mine.do(c) })
			both.Wait()
			if t.Failed() {
				return
			}
			if (len(c.Ignore) > 0 || c.Ours.Status != 0) && c.Why == "" {
				t.Fatal("the table gives no reason for the difference")
			}
			if c.Ours.Status != 0 {
				if cmp.Diff(want, got) == "" {
					t.Error("nothing is different any more")
				}
				body, _ := json.Marshal(got.Body)
				if got.Status != c.Ours.Status || !strings.Contains(string(body), c.Ours.Text) {
					t.Errorf("answered %d %s (stock %d %v)", got.Status, body, want.Status, want.Body)
				}
				excused++
				return
			}
			for _, part := range c.Ignore {
				switch part {
				case "status":
					want.Status, got.Status = 0, 0
				case "type":
					want.Type, got.Type = "", ""
				case "body":
					want.Body, got.Body = nil, nil
				default:
					delete(want.Header, part)
					delete(got.Header, part)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stock +ours)\n%s", diff)
				return
			}
			if c.Why == "" {
				equal++
			} else {
				excused++
			}
		})
	}
	t.Logf("%d requests, %d equal, %d excused", len(cases), equal, excused)
}

const restUsers = "alice:secret\nbob:secret\ncarol:secret\n"

// restConfig returns the configuration of both masters.
func restConfig(dir string, port int) string {
	return fmt.Sprintf(`
auto_accept: true
rest_cherrypy: {port: %d, host: 127.0.0.1, disable_ssl: true, debug: false, thread_pool: 10, collect_stats: true}
netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel]
sharedsecret: between us
timeout: 60
gather_job_timeout: 60
nodegroups: {ours: 'web1'}
external_auth:
  file:
    ^filename: %s/users
    alice: ['.*', '@runner', '@wheel', '@jobs']
    bob:
      - 'web*': ['test.ping', 'test.echo']
      - '@runner': ['jobs.list_jobs']
    dave: ['.*']
    '*': ['test.version', '@jobs', {'db*': ['test.ping']}]
  sharedsecret:
    alice: ['.*', '@wheel']
  auto:
    anybody: ['test.*']
`, port, dir)
}

// stockAPI starts a stock master, minion and salt-api.
func stockAPI(t *testing.T) *api {
	port := freeport.Port(t)
	s := newSite(t, "zeromq", "")
	write(t, s.dir+"/users", restUsers)
	more(t, s.config(), restConfig(s.dir, port))
	m := &stockMaster{site: s, t: t, root: t, line: "3007"}
	m.up()
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "web1", ""))
	start(t, stock(t, "3007", "salt-api"), "-c", filepath.Dir(s.config()))
	m.bus.wait(mark, "salt/minion/web1/start")
	await(t, "salt-api listens", func() bool { return listening(port) })
	return newAPI(t, "stock", s.dir, port)
}

// ourAPI starts brine's master with its HTTP interface, and a stock minion.
func ourAPI(t *testing.T) *api {
	port := freeport.Port(t)
	s := newSite(t, "zeromq", "")
	write(t, s.dir+"/users", restUsers)
	more(t, s.config(), restConfig(s.dir, port))
	m := &ourMaster{site: s, t: t, root: t, line: "3007", id: "web1"}
	m.up()
	mark := m.bus.mark()
	start(t, stock(t, "3007", "salt-minion"), "-c", m.minion(t, "web1", ""))
	m.bus.wait(mark, "salt/minion/web1/start")
	return newAPI(t, "ours", s.dir, port)
}

// more appends a text to a file.
func more(t *testing.T, file, text string) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(old)+text)
}

func newAPI(t *testing.T, name, dir string, port int) *api {
	a := &api{t: t, name: name, url: fmt.Sprintf("http://127.0.0.1:%d", port), tokens: map[string]string{}, saved: map[string]string{},
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, known: []string{dir, "<dir>", fmt.Sprint(port), "<port>"}}
	for _, user := range []string{"alice", "bob"} {
		got := a.do(restCase{Request: "POST /login", As: "nobody", JSON: map[string]any{"username": user, "password": "secret", "eauth": "file"}})
		a.tokens[user] = a.saved["token"]
		if got.Status != 200 || a.saved["token"] == "" {
			t.Fatalf("%s: %s cannot log in: %v", name, user, got)
		}
		a.known = append(a.known, a.saved["token"], "<"+user+"'s token>")
	}
	return a
}

// do sends the request of a case.
func (a *api) do(c restCase) answer {
	a.t.Helper()
	method, path, _ := strings.Cut(c.Request, " ")
	body, kind := c.Body, ""
	switch {
	case c.JSON != nil:
		b, err := json.Marshal(c.JSON)
		if err != nil {
			a.t.Error(err)
			return answer{}
		}
		body, kind = string(b), "application/json"
	case c.Form != "":
		body, kind = c.Form, "application/x-www-form-urlencoded"
	}
	fill := strings.NewReplacer("<alice>", a.tokens["alice"], "<bob>", a.tokens["bob"], "<jid>", a.saved["jid"], "<token>", a.saved["own"])
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+fill.Replace(path), strings.NewReader(fill.Replace(body)))
	if err != nil {
		a.t.Error(err)
		return answer{}
	}
	r.Header.Set("Accept", "application/json")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	switch c.As {
	case "nobody":
	case "":
		r.Header.Set("X-Auth-Token", a.tokens["alice"])
	default:
		r.Header.Set("X-Auth-Token", a.tokens[c.As])
	}
	for k, v := range c.Headers {
		if v = fill.Replace(v); v == "" {
			r.Header[http.CanonicalHeaderKey(k)] = nil
			continue
		}
		r.Header.Set(k, v)
	}
	resp, err := a.client.Do(r)
	if err != nil {
		a.t.Errorf("%s: %v", a.name, err)
		return answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Errorf("%s: %v", a.name, err)
		return answer{}
	}
	got := answer{Status: resp.StatusCode, Header: map[string]string{}}
	got.Type, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Allow-Credentials", "Access-Control-Allow-Methods",
		"Access-Control-Allow-Headers", "Access-Control-Max-Age", "Content-Disposition", "Www-Authenticate", "Location"} {
		if v := resp.Header.Get(name); v != "" {
			got.Header[name] = a.neutral(v)
		}
	}
	a.remember(text, resp.Header)
	got.Body = a.content(got, text)
	if got.Status >= 400 {
		// Stock answers with a page. Brine answers with a page or, for clients that accept it, with JSON. Only the
		// text is compared.
		got.Type = ""
	}
	return got
}

var (
	restJID   = regexp.MustCompile(`\b20\d{18}\b`)
	restToken = regexp.MustCompile(`\b[0-9a-f]{40,64}\b`)
	restOwn   = regexp.MustCompile(`"token": ?"([0-9a-f]+)"`)
	restTime  = regexp.MustCompile(`\b20\d\d, \w{3} \d\d \d\d:\d\d:\d\d\.\d{6}|\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}`)
	restText  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	restTight = regexp.MustCompile(`[,:](?:[^ ]|  )| [,:]`)
	restPage  = regexp.MustCompile(`(?s)<h2>(.*?)</h2>\s*<p>(.*?)</p>`)
	restKey   = regexp.MustCompile(`([0-9a-f]{2}:){15,}[0-9a-f]{2}`)
)

// remember stores the newest job id, session and token of an answer for the next requests.
func (a *api) remember(text []byte, h http.Header) {
	if jid := restJID.Find(text); jid != nil {
		a.saved["jid"] = string(jid)
	}
	if own := restOwn.FindSubmatch(text); own != nil {
		a.saved["own"] = string(own[1])
	}
	if t := h.Get("X-Auth-Token"); t != "" {
		a.saved["token"] = t
	}
}

// neutral replaces the parts of a text that differ between two runs of the same program.
func (a *api) neutral(s string) string {
	s = strings.NewReplacer(a.known...).Replace(s)
	s = restJID.ReplaceAllString(s, "<jid>")
	s = restToken.ReplaceAllString(s, "<token>")
	s = restKey.ReplaceAllString(s, "<fingerprint>")
	return restTime.ReplaceAllString(s, "<time>")
}

// content parses an answer: JSON and YAML become values, errors their text.
func (a *api) content(got answer, text []byte) any {
	var v any
	switch {
	case got.Type == "application/json" && json.Unmarshal(text, &v) == nil:
		if outside := restText.ReplaceAll(text, []byte(`""`)); restTight.Match(outside) {
			a.t.Errorf("%s: JSON without blanks, or with more: %s", a.url, text)
		}
		if m, ok := v.(map[string]any); ok && got.Status >= 400 {
			return a.neutral(fmt.Sprint(m["return"]))
		}
	case got.Type == "application/x-yaml" && yaml.Unmarshal(text, &v) == nil:
	case got.Status >= 400:
		if m := restPage.FindSubmatch(text); m != nil {
			return a.neutral(string(m[2]))
		}
		return a.neutral(string(text))
	case got.Type == "application/x-tar":
		return len(text) > 1000
	default:
		return a.neutral(string(text))
	}
	return a.values(v)
}

// values applies neutral to all texts of a value.
func (a *api) values(v any) any {
	switch v := v.(type) {
	case string:
		return a.neutral(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = a.values(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			switch k {
			case "start", "expire":
				x = "<" + k + ">"
			case "pub", "priv":
				x = "<key>"
			}
			out[a.neutral(k)] = a.values(x)
		}
		return out
	case int:
		return float64(v)
	}
	return v
}
