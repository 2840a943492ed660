package vendordata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/handshakes"
	"github.com/brine-salt/brine/master/vendordata"
)

type site struct {
	t      *testing.T
	master *master.Master
	data   *vendordata.Server
	url    string
	log    testlog.Buffer
	audit  testlog.Buffer
}

func newSite(t *testing.T, o vendordata.Options) *site {
	t.Helper()
	s := &site{t: t}
	m, err := master.New(master.Options{Network: master.NetworkOptions{Interface: "127.0.0.1",
		PublishPort: master.AnyPort, RetPort: master.AnyPort, Advertise: []string{"salt.example"}},
		Audit: &s.audit, Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-m.Ready()
	if o.Check == nil {
		o.Check = func(_ context.Context, token string) error {
			if token != "good" {
				return vendordata.ErrDenied
			}
			return nil
		}
	}
	o.Master, o.Log = m, slog.New(slog.NewTextHandler(&s.log, nil))
	v, err := vendordata.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	s.master, s.data, s.url = m, v, server.URL
	return s
}

func (s *site) post(path, token, body string) (int, string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
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

// instance is what Nova 2023 to 2025 sends (nova/api/metadata/vendordata_dynamic.py).
const instance = `{"project-id": "9dd7b1a0c2f04f3eb2a5a3c4f6a1b2c3", "instance-id": "0ad5c5c2-6d6c-4d55-9c0b-3bb8c6b3f9a1", "image-id": "5f3e7b1e-0f0a-4ab0-8a51-6c9a2f4f6c11",
 "user-data": null, "hostname": "db-7", "metadata": {"role": "db", "id": "root"}, "boot-roles": "member,reader"}`

// TestHandshakesOfProvenClients: requests with a valid token may each open a connection. Those of others are limited.
func TestHandshakesOfProvenClients(t *testing.T) {
	s := newSite(t, vendordata.Options{})
	server := httptest.NewUnstartedServer(nil)
	server.Config, server.Listener = s.data.HTTP(), handshakes.Space(server.Listener, 1e-9, 2)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	send := func(token string) (int, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+vendordata.Path, strings.NewReader(instance))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", token)
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	for i := range 6 {
		if code, err := send("good"); code != 200 || err != nil {
			t.Fatalf("request %d: %d %v", i+1, code, err)
		}
	}
	for i := range 3 {
		if code, err := send("bad"); i < 2 && (code != 401 || err != nil) || i == 2 && err == nil {
			t.Errorf("request %d with a bad token: %d %v", i+1, code, err)
		}
	}
}

// TestVendordata: an instance is announced as a minion of its project, a repeated request gets the same token, and
// all formats contain it.
func TestVendordata(t *testing.T) {
	s := newSite(t, vendordata.Options{TokenTTL: time.Hour})
	code, first, h := s.post(vendordata.Path, "good", instance)
	if code != 200 || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" {
		t.Fatal(code, first, h)
	}
	var answer struct {
		Salt map[string]any `json:"salt"`
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatal(err)
	}
	doc := answer.Salt
	token, _ := doc["join_token"].(string)
	config, _ := doc["config"].(map[string]any)
	if doc["v"] != 1. || doc["id"] != "0ad5c5c2-6d6c-4d55-9c0b-3bb8c6b3f9a1" || doc["tenant"] != "9dd7b1a0c2f04f3eb2a5a3c4f6a1b2c3" || len(token) < 40 ||
		config["join_token"] != token || config["master"] != "salt.example" || cmp.Diff([]any{"salt.example"}, doc["master"]) != "" {
		t.Errorf("%+v", doc)
	}
	grains := map[string]any{"openstack": map[string]any{"project_id": "9dd7b1a0c2f04f3eb2a5a3c4f6a1b2c3", "instance_id": "0ad5c5c2-6d6c-4d55-9c0b-3bb8c6b3f9a1",
		"image_id": "5f3e7b1e-0f0a-4ab0-8a51-6c9a2f4f6c11", "hostname": "db-7", "metadata": map[string]any{"role": "db", "id": "root"},
		"boot_roles": []any{"member", "reader"}}}
	if d := cmp.Diff(grains, doc["grains"]); d != "" {
		t.Error(d)
	}
	if code, again, _ := s.post(vendordata.Path, "good", instance); code != 200 || again != first {
		t.Error(code, cmp.Diff(first, again))
	}
	for form, begin := range map[string]string{"salt": `{"salt":{`, "document": "{\n", "cloud_config": `"#cloud-config\n`, "cloud_config_files": `"#cloud-config\n`} {
		code, text, _ := s.post(vendordata.Path+"?form="+form, "good", instance)
		if code != 200 || !strings.HasPrefix(text, begin) || !json.Valid([]byte(text)) || form != "cloud_config_files" && !strings.Contains(text, token) {
			t.Error(form, code, text)
		}
	}
	list, err := s.master.Announced(t.Context(), "9dd7b1a0c2f04f3eb2a5a3c4f6a1b2c3")
	if err != nil || len(list) != 1 || list[0].ID != "0ad5c5c2-6d6c-4d55-9c0b-3bb8c6b3f9a1" {
		t.Errorf("%+v %v", list, err)
	}
	if code, text, _ := s.post(vendordata.Path, "good", strings.Replace(instance, "9dd7", "0000", 1)); code != 409 {
		t.Error("another project takes the instance", code, text)
	}
	if strings.Contains(s.log.String()+s.audit.String(), token) {
		t.Error("the join token is in a log")
	}
	if n := strings.Count(s.audit.String(), `"kind":"vendordata","tgt":"0ad5c5c2`); n != 7 {
		t.Error(n, s.audit.String())
	}
}

// TestBadRequests: each is refused for its reason, and nothing is announced.
func TestBadRequests(t *testing.T) {
	s := newSite(t, vendordata.Options{FailureRate: -1})
	with := func(field, value string) string {
		return `{"project-id": "p", "instance-id": "i", "` + field + `": ` + value + `}`
	}
	entries := make([]string, 300)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"k%d": "v"`, i)
	}
	large := make([]string, 200)
	for i := range large {
		large[i] = fmt.Sprintf(`"%s%d": "%s"`, strings.Repeat("k", 1000), i, strings.Repeat("v", 1000))
	}
	for _, c := range []struct {
		name, path, token, body string
		code                    int
		text                    string
	}{
		{"no token", "", "", instance, 401, "not good"},
		{"a wrong token", "", "bad", instance, 401, "not good"},
		{"a token without end", "", strings.Repeat("x", 10_000), instance, 401, "not good"},
		{"a wrong token before a wrong body", "", "bad", "{", 401, "not good"},
		{"no body", "", "good", "", 400, "JSON object"},
		{"half a body", "", "good", `{"project-id": "p"`, 400, "JSON object"},
		{"two bodies", "", "good", `{} {}`, 400, "JSON object"},
		{"a list", "", "good", `[]`, 400, "JSON object"},
		{"null", "", "good", `null`, 400, "instance-id"},
		{"no instance", "", "good", `{"project-id": "p"}`, 400, "instance-id"},
		{"no project", "", "good", `{"instance-id": "i"}`, 400, "project-id"},
		{"an instance that is a path", "", "good", with("instance-id", `"../x"`), 400, "instance-id"},
		{"a number for an instance", "", "good", with("instance-id", `7`), 400, "instance-id must not be a JSON number"},
		{"a project with a slash", "", "good", with("project-id", `"a/b"`), 400, "project-id"},
		{"a project without end", "", "good", with("project-id", `"`+strings.Repeat("a", 100)+`"`), 400, "project-id"},
		{"metadata that is a list", "", "good", with("metadata", `[]`), 400, "metadata must not be a JSON array"},
		{"metadata in metadata", "", "good", with("metadata", `{"a": {}}`), 400, "metadata must be texts"},
		{"a large value", "", "good", with("metadata", `{"a": "`+strings.Repeat("x", 2000)+`"}`), 400, "metadata must be texts"},
		{"many values", "", "good", with("metadata", "{"+strings.Join(entries, ",")+"}"), 400, "too large"},
		{"a hostname without end", "", "good", with("hostname", `"`+strings.Repeat("x", 2000)+`"`), 400, "too large"},
		{"deep nesting", "", "good", with("x", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), 400, "JSON object"},
		{"a large body", "", "good", with("user-data", `"`+strings.Repeat("x", 1_100_000)+`"`), 413, "more than 1048576 bytes"},
		{"more metadata than grains may have", "", "good", with("metadata", "{"+strings.Join(large, ",")+"}"), 413, "metadata of the instance is too large"},
		{"an unknown form", "?form=env", "good", instance, 400, "form"},
		{"an unknown parameter", "?token=good", "good", instance, 400, "no parameter"},
		{"another path", "/x", "good", instance, 404, "Not found"},
	} {
		if code, text, _ := s.post(vendordata.Path+c.path, c.token, c.body); code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s", c.name, code, text)
		}
	}
	resp, err := http.Get(s.url + vendordata.Path)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Error(resp.Status)
	}
	if resp, err = http.Get(s.url + "/healthz"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	if list, err := s.master.Announced(t.Context(), ""); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if strings.Contains(s.log.String(), "bad\"") || strings.Contains(s.log.String(), "panic") {
		t.Error(s.log.String())
	}
}

// TestLimits: requests and bad tokens are few for each address, and good tokens are not counted as bad ones.
func TestLimits(t *testing.T) {
	s := newSite(t, vendordata.Options{FailureRate: 0.001, FailureBurst: 3})
	var codes []int
	for _, token := range []string{"good", "good", "good", "good", "bad", "bad", "bad", "bad", "good"} {
		code, _, h := s.post(vendordata.Path, token, instance)
		if (code == 429) != (h.Get("Retry-After") != "") {
			t.Error(h)
		}
		codes = append(codes, code)
	}
	if d := cmp.Diff([]int{200, 200, 200, 200, 401, 401, 401, 429, 429}, codes); d != "" {
		t.Error(d)
	}
	s = newSite(t, vendordata.Options{Rate: 0.001, Burst: 2})
	codes = nil
	for range 3 {
		code, _, _ := s.post(vendordata.Path, "good", instance)
		codes = append(codes, code)
	}
	if d := cmp.Diff([]int{200, 200, 429}, codes); d != "" {
		t.Error(d)
	}
}

// TestProgram: exit codes, the program's input, its time limit, and its output.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "check")
	script := "#!/bin/sh\nread token\ncase $token in\ngood) [ $# = 1 ] && [ \"$1\" = 'a b; exit 1' ] ;;\nbad) exit 1 ;;\nslow) exec sleep 60 ;;\n" +
		"loud) i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; echo 0123456789; i=$((i+1)); done; echo \"the end of loud\" >&2; exit 3 ;;\nesac\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	check, err := vendordata.Program(path, "a b; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	within := func(d time.Duration, token string) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return check(ctx, token)
	}
	if err := within(time.Minute, "good"); err != nil {
		t.Error(err)
	}
	if err := within(time.Minute, "bad"); !errors.Is(err, vendordata.ErrDenied) {
		t.Error(err)
	}
	if err := within(time.Minute, "loud"); err == nil || errors.Is(err, vendordata.ErrDenied) || !strings.HasSuffix(err.Error(), "the end of <token>") || len(err.Error()) > 5000 {
		t.Error(err)
	}
	start := time.Now()
	if err := within(300*time.Millisecond, "slow"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 20*time.Second {
		t.Error(err, time.Since(start))
	}
	for _, args := range [][]string{nil, {filepath.Join(dir, "none")}} {
		if _, err := vendordata.Program(args...); err == nil {
			t.Error(args)
		}
	}
	s := newSite(t, vendordata.Options{CheckTime: 300 * time.Millisecond, Check: check, FailureRate: -1})
	for token, want := range map[string]int{"slow": 503, "loud": 503, "bad": 401} {
		if code, text, _ := s.post(vendordata.Path, token, instance); code != want {
			t.Error(token, code, text)
		}
	}
}

// TestChecks: a system of external_auth decides, and good tokens are remembered for a while, bad ones not.
func TestChecks(t *testing.T) {
	auth, err := eauth.New(eauth.Options{Config: map[string]any{"sharedsecret": map[string]any{}}, Systems: map[string]eauth.System{"sharedsecret": eauth.SharedSecret{Secret: "good"}}})
	if err != nil {
		t.Fatal(err)
	}
	check := vendordata.EAuth(auth, "sharedsecret", "nova")
	if err := check(t.Context(), "good"); err != nil {
		t.Error(err)
	}
	if err := check(t.Context(), "bad"); !errors.Is(err, vendordata.ErrDenied) {
		t.Error(err)
	}
	asked := 0
	remembered := vendordata.Remember(func(ctx context.Context, token string) error {
		asked++
		return check(ctx, token)
	}, time.Hour)
	for range 3 {
		if remembered(t.Context(), "good") != nil || remembered(t.Context(), "bad") == nil {
			t.Error("wrong")
		}
	}
	if asked != 4 {
		t.Error("asked", asked)
	}
}
