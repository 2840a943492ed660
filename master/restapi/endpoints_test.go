package restapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/keys"
)

// endpoint is a request as the served description has it.
type endpoint struct {
	method, path string
	query        []string // parameters
	body         m        // one that is good in its form, by the schema; nil for none
}

// described are all endpoints, with bodies made of their schemas: what is served later is tried as well.
func (s *site) described() []endpoint {
	s.t.Helper()
	_, doc := s.json("GET", "/openapi.json", nil)
	schemas := doc["components"].(m)["schemas"].(m)
	var out []endpoint
	for path, ops := range doc["paths"].(m) {
		for method, op := range ops.(m) {
			e := endpoint{method: strings.ToUpper(method), path: path}
			params, _ := op.(m)["parameters"].([]any)
			for _, p := range params {
				if p.(m)["in"] == "query" {
					e.query = append(e.query, p.(m)["name"].(string))
				}
			}
			if body, ok := op.(m)["requestBody"].(m); ok {
				content := body["content"].(m)["application/json"].(m)
				e.body = example(content["schema"].(m), schemas).(m)
			}
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b endpoint) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return out
}

// example is a value that a schema describes. Of several it is the first.
func example(schema, all m) any {
	if ref, ok := schema["$ref"].(string); ok {
		schema = all[strings.TrimPrefix(ref, "#/components/schemas/")].(m)
	}
	if list, ok := schema["oneOf"].([]any); ok {
		return example(list[0].(m), all)
	}
	if list, ok := schema["enum"].([]any); ok {
		return list[0]
	}
	switch schema["type"] {
	case "object":
		out := m{}
		properties, _ := schema["properties"].(m)
		for name, x := range properties {
			out[name] = example(x.(m), all)
		}
		return out
	case "array":
		return []any{}
	case "number", "integer":
		return 1
	case "boolean":
		return false
	}
	return "x"
}

// look sends a request and reads its answer, of a stream only how it begins.
func (s *site) look(method, path string, headers m, body string) (int, string, http.Header) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("X-Auth-Token", s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, v := range headers {
		r.Header.Set(name, fmt.Sprint(v))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %.200s: %v", method, path, err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil || line != "retry: 400\n" {
			s.t.Errorf("%s %.200s: the stream begins with %q, %v", method, path, line, err)
		}
		return resp.StatusCode, "{}", resp.Header
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %.200s: %v", method, path, err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// TestEveryEndpointBearsBadInput sends every endpoint of the description every field of its body missing, of a
// wrong type and hostile, malformed bodies, and hostile paths, queries and headers. The callers are an operator, a
// tenant's user, who learns nothing about other tenants, and an unauthenticated peer. Each answer names the error,
// and the interface keeps serving.
func TestEveryEndpointBearsBadInput(t *testing.T) {
	var log testlog.Buffer
	s := tenants(t)
	o := s.options
	o.Metrics, o.MaxBody, o.Timeout, o.Log = true, 200_000, time.Second, slog.New(slog.NewTextHandler(&log, nil))
	s.serve(o)
	s.token = ""
	s.token = s.login("blue")
	for _, id := range []string{"x", "canary-1"} { // minions of blue's
		if code, v := s.json("POST", "/v1/minions", m{"id": id, "grains": m{"secret": "canary"}}); code != 200 {
			t.Fatal(code, v)
		}
	}
	if code, v := s.json("POST", "/v1/jobs", m{"id": "x", "tgt": []any{"canary-1"}, "fun": "test.ping", "arg": []any{"canary"}}); code != 202 {
		t.Fatal(code, v)
	}
	long := strings.Repeat("a", 10_000)
	parts := []string{"*", "x%00", "..%2f..%2fetc%2fpasswd", "%2e%2e", "%ff%fe", long, "a%0d%0aSet-Cookie:%20x=y", "%7b%7b7*7%7d%7d", "blue%2fx", "%3Cscript%3E"}
	headers := []m{{"X-Auth-Token": "x\x80y"}, {"X-Auth-Token": long}, {"Cookie": "session_id=" + long}, {"Accept": "image/png"}, {"Accept": long}, {"Accept": "application/json;q=x"},
		{"Content-Type": "text/nonsense"}, {"Content-Type": "application/json; charset=utf-16"}, {"Content-Type": ";;"}, {"Content-Encoding": "gzip"}, {"Last-Event-ID": long}, {"Last-Event-ID": "-1"},
		{"Range": "bytes=5-1"}, {"Origin": "http://evil.example\"><x>"}, {"X-HTTP-Method-Override": "DELETE"}, {"Expect": "nonsense"}, {"Transfer-Encoding": "x"}, {"Authorization": "Bearer x"}}
	users := map[string]string{"operator": "alice", "of a tenant": "red", "stranger": ""}
	requests := 0
	for _, name := range slices.Sorted(maps.Keys(users)) {
		become := func() {
			if s.token = ""; users[name] != "" {
				s.token = s.login(users[name])
			}
		}
		become()
		try := func(what string, e endpoint, path string, headers m, body string) (code int) {
			t.Helper()
			requests++
			code, text, h := s.look(e.method, path, headers, body)
			if e.path == "/logout" && code == 200 {
				become()
			}
			what = fmt.Sprintf("%s: %s %.80s with %.80s", name, e.method, path, what)
			if h.Get("Set-Cookie") != "" && code != 200 {
				t.Errorf("%s sets a cookie: %s", what, h.Get("Set-Cookie"))
			}
			if name == "operator" {
				text = strings.ReplaceAll(text, "canary", "") // who sees everything
			}
			switch kind := h.Get("Content-Type"); {
			case strings.HasPrefix(kind, "application/json"):
			case code == 200 && (e.path == "/metrics" || e.path == "/healthz" || e.path == "/readyz" || kind == "application/x-tar" || kind == "text/event-stream;charset=utf-8"), code == 426, code == 417,
				code/100 == 4 && headers["Accept"] != nil: // no JSON by intent
				text = jsonText(t, text)
			}
			clearAnswer(t, what, code, text)
			return code
		}
		for _, e := range s.described() {
			path := filled(e.path)
			for _, h := range headers {
				try(fmt.Sprint(h), e, path, h, jsonText(t, e.body))
			}
			for _, part := range parts {
				if i := strings.IndexByte(e.path, '{'); i >= 0 {
					try("a hostile path", e, e.path[:i]+part, m{}, jsonText(t, e.body))
				}
				for _, q := range append(e.query, "x", "token") {
					try("a hostile query", e, path+"?"+q+"="+part, m{}, jsonText(t, e.body))
				}
			}
			if e.method != "POST" {
				continue
			}
			for kind, bodies := range map[string][]string{
				"application/json":                  {"", "{", "[", "null", "7", "[[]]", "[{}]", "{}", "\x00", "\xff\xfe", strings.Repeat("[", 50_000), `{"a":` + strings.Repeat(" ", 200_000) + "1}", `{"fun": 1e999}`},
				"application/x-yaml":                {"a: [", "!!python/object/apply:os.system [id]", "- &a [*a]", "? {a: b}\n: c", refs(), "x: " + long, "\t"},
				"application/x-www-form-urlencoded": {"%zz", "a=%00", "arg=%5Ba&arg=%7B", "kwarg=%21%21x", strings.Repeat("a=b&", 10_000), ";"},
				"text/plain":                        {"x", long},
				"multipart/form-data; boundary=x":   {"--x\r\n", "--x--"},
				"application/octet-stream":          {"\x00\x01"},
			} {
				for _, body := range bodies {
					code := try("a body of "+kind+" "+body[:min(20, len(body))], e, path, m{"Content-Type": kind}, body)
					if len(body) > 200_000 && code != 413 && code != 401 && code != 406 {
						t.Errorf("%s: a body of %d bytes: %d", e.path, len(body), code)
					}
				}
			}
			values := append(hostileValues(), missing{})
			if e.path == "/keys" {
				values = slices.DeleteFunc(values, func(v any) bool { return v == nil || v == true }) // a key pair each
				if name != "operator" {
					values = values[:3]
				}
			}
			for _, field := range append(slices.Sorted(maps.Keys(e.body)), "more") {
				for i, v := range values {
					body := maps.Clone(e.body)
					if body == nil {
						body = m{}
					}
					if e.path == "/keys" {
						body["mid"] = "x"
					}
					if body[field] = v; v == (missing{}) {
						delete(body, field)
					}
					try(fmt.Sprintf("%s number %d", field, i), e, path, m{}, jsonText(t, body))
				}
			}
			accepted, err := s.master.Keys().List(keys.Accepted)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range accepted { // that nobody waits for minions which are not there
				if err := s.master.Keys().Delete(id); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if text := log.String(); strings.Contains(text, "panic") {
		t.Errorf("the log has a panic:\n%.3000s", text)
	}
	s.token = ""
	s.token = s.login("alice")
	if code, v := s.json("POST", "/", m{"client": "runner", "fun": "test.metasyntactic"}); code != 200 {
		t.Error("afterwards:", code, v)
	}
	t.Log(requests, "requests")
}
