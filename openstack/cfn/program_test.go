package cfn

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// guest is a host in a directory.
type guest struct {
	root     string
	out, err strings.Builder
	calls    []string
	kwargs   map[string]any
	result   modules.Result
	callErr  error
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := &guest{root: t.TempDir()}
	g.write(t, "/var/log/.keep", "")
	return g
}

func (g *guest) write(t *testing.T, name, text string) {
	t.Helper()
	p := filepath.Join(g.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (g *guest) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (g *guest) run(t *testing.T, name string, args ...string) int {
	t.Helper()
	g.out.Reset()
	g.err.Reset()
	return Main(name, args, Env{Context: t.Context(), Stdout: &g.out, Stderr: &g.err, Root: g.root,
		Call: func(_ context.Context, fun string, kwargs map[string]any) (modules.Result, error) {
			g.calls, g.kwargs = append(g.calls, fun), kwargs
			return g.result, g.callErr
		}})
}

func TestInitPassesItsOptionsAndReportsTheFailedStep(t *testing.T) {
	g := newGuest(t)
	g.result = modules.Result{Return: map[string]any{"result": true, "steps": []any{}, "warnings": []any{"config.x has no effect"}}}
	if code := g.run(t, "cfn-init", "-s", "stack", "--reso", "server", "--access-key=a", "--secret-key", "s", "-ca,b", "--region", "r"); code != 0 {
		t.Fatalf("exit code %d: %s", code, g.err.String())
	}
	for key, want := range map[string]string{"stack": "stack", "resource": "server", "access_key": "a", "secret_key": "s", "configsets": "a,b"} {
		if g.kwargs[key] != want {
			t.Errorf("%s is %v, want %s", key, g.kwargs[key], want)
		}
	}
	if log := g.read(t, "/var/log/cfn-init.log"); !strings.Contains(log, "WARNING [") || !strings.Contains(log, "config.x has no effect") {
		t.Errorf("log: %s", log)
	}
	g.result = modules.Result{Return: map[string]any{"result": false, "failed": "files /x: broken", "warnings": []any{},
		"steps": []any{map[string]any{"config": "config", "section": "files", "name": "/x", "result": false, "comment": "broken"}}}}
	if code := g.run(t, "cfn-init"); code != 1 || g.err.String() != "cfn-init: files /x: broken\n" || g.out.String() != "" {
		t.Errorf("exit code %d, out %q, err %q", code, g.out.String(), g.err.String())
	}
	g.callErr = errors.New("no minion")
	if code := g.run(t, "cfn-init"); code != 1 || g.err.String() != "cfn-init: no minion\n" {
		t.Errorf("exit code %d, err %q", code, g.err.String())
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"cfn-signal", nil, "cfn-signal: error: the following arguments are required: url"},
		{"cfn-signal", []string{"a", "b"}, "cfn-signal: error: unrecognized arguments: b"},
		{"cfn-signal", []string{"-e"}, "cfn-signal: error: argument -e/--exit-code: expected one argument"},
		{"cfn-signal", []string{"-e", "-x", "u"}, "cfn-signal: error: argument -e/--exit-code: expected one argument"},
		{"cfn-signal", []string{"--insecure=1", "u"}, "cfn-signal: error: argument -k/--insecure: ignored explicit argument '1'"},
		{"cfn-init", []string{"--s"}, "cfn-init: error: ambiguous option: --s could match --stack, --secret-key"},
		{"cfn-init", []string{"-x"}, "cfn-init: error: unrecognized arguments: -x"},
		{"cfn-get-metadata", nil, "cfn-get-metadata: error: the following arguments are required: -s/--stack, -r/--resource"},
		{"cfn-push-stats", nil, "cfn-push-stats: no such program; there are cfn-init, cfn-hup, cfn-signal, cfn-get-metadata"},
	} {
		g := newGuest(t)
		code := g.run(t, tc.name, tc.args...)
		lines := strings.Split(strings.TrimSpace(g.err.String()), "\n")
		if code != 2 || lines[len(lines)-1] != tc.want {
			t.Errorf("%s %v: code %d, %q", tc.name, tc.args, code, lines[len(lines)-1])
		}
	}
}

// sink is a server that records requests.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string        // guarded by mu
	reqs   []*http.Request // guarded by mu
	answer func(n int) int // status by number of request, from 1
	body   func() string
}

func newSink(t *testing.T, answer func(n int) int, body func() string) *sink {
	s := &sink{answer: answer, body: body}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies, s.reqs = append(s.bodies, string(b)), append(s.reqs, r)
		n := len(s.reqs)
		s.mu.Unlock()
		w.WriteHeader(s.answer(n))
		if s.body != nil {
			io.WriteString(w, s.body())
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func always(code int) func(int) int { return func(int) int { return code } }

func TestSignalSendsWhatHeatExpects(t *testing.T) {
	s := newSink(t, func(n int) int {
		if n == 1 {
			return 503
		}
		return 200
	}, nil)
	g := newGuest(t)
	g.write(t, "/handle", s.URL+"/v1/waitcondition?a=b\n")
	if code := g.run(t, "cfn-signal", "-e", "1", "-r", "wärum", "-d", `"x"`, "-i", "id1", "file:///handle"); code != 0 {
		t.Fatalf("exit code %d: %s", code, g.err.String())
	}
	const want = `{"Status": "FAILURE", "Reason": "w\u00e4rum", "UniqueId": "id1", "Data": "\"x\""}`
	if len(s.bodies) != 2 || s.bodies[0] != want || s.bodies[1] != want {
		t.Errorf("bodies %q", s.bodies)
	}
	r := s.reqs[0]
	if r.Method != "PUT" || r.URL.RawQuery != "a=b" || r.Header.Get("Content-Type") != "" {
		t.Errorf("%s %s, content type %q", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
}

func TestSignalStatusByItsOptions(t *testing.T) {
	s := newSink(t, always(200), nil)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "SUCCESS"}, {[]string{"-s", "true"}, "SUCCESS"}, {[]string{"-s", "True"}, "FAILURE"}, {[]string{"-s", "false"}, "FAILURE"},
		{[]string{"-e0"}, "SUCCESS"}, {[]string{"-e", "-1"}, "FAILURE"}, {[]string{"--exit", "0", "-s", "false"}, "SUCCESS"},
		{[]string{"-e", ""}, "SUCCESS"}, {[]string{"-e", "00"}, "FAILURE"},
	} {
		g := newGuest(t)
		g.write(t, novaFile, `{"uuid": "server-1"}`)
		if code := g.run(t, "cfn-signal", append(tc.args, s.URL)...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", tc.args, code, g.err.String())
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(s.bodies[len(s.bodies)-1]), &got); err != nil {
			t.Fatal(err)
		}
		if got["Status"] != tc.want || got["UniqueId"] != "server-1" || got["Reason"] != "Configuration Complete" {
			t.Errorf("%v: %v, want %s", tc.args, got, tc.want)
		}
	}
}

func TestSignalThatCannotArrive(t *testing.T) {
	s := newSink(t, always(403), func() string { return "signature\nwrong" })
	g := newGuest(t)
	if code := g.run(t, "cfn-signal", "-i", "x", s.URL+"/?Signature=secret"); code != exitHTTP || len(s.bodies) != 1 {
		t.Errorf("exit code %d after %d requests", code, len(s.bodies))
	}
	if got := g.err.String(); !strings.Contains(got, "403 Forbidden: signature wrong") || strings.Contains(got, "Signature=secret") {
		t.Errorf("error %q", got)
	}
	if code := g.run(t, "cfn-signal", "-i", "x", "ftp://x/"); code != exitUsageURL {
		t.Errorf("exit code %d", code)
	}
	if code := curlCode(&net.OpError{Op: "dial", Err: errors.New("refused")}); code != exitNoConnect {
		t.Errorf("refused connection: %d", code)
	}
	if code := curlCode(&net.DNSError{}); code != exitNoHost {
		t.Errorf("unknown host: %d", code)
	}
}

func TestCredentialFiles(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"cfn", "AWSAccessKeyId=abc\nAWSSecretKey = d=e/f\n", ""},
		{"boto", "[Credentials]\naws_access_key_id = abc\naws_secret_access_key = d=e/f\n", ""},
		{"no key", "AWSSecretKey=x\n", "credentials file f has no AWSAccessKeyId (or aws_access_key_id)"},
		{"no secret", "AWSAccessKeyId=x\n", "credentials file f has no AWSSecretKey (or aws_secret_access_key)"},
	} {
		c, err := parseCredentials(tc.text, "f")
		if tc.want != "" {
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil || c.Access != "abc" || c.Secret != "d=e/f" {
			t.Errorf("%s: %v %v", tc.name, c, err)
		}
	}
}

func TestGetMetadata(t *testing.T) {
	answer := `{"DescribeStackResourceResponse": {"DescribeStackResourceResult": {"StackResourceDetail": {"Metadata": ` +
		`"{\"a\": {\"b.c\": [1, \"\u00e9\"]}}"}}}}`
	s := newSink(t, always(200), func() string { return answer })
	g := newGuest(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	g.write(t, serverFile, "http://heat.invalid:"+port+"/v1/\n")
	g.write(t, botoFile, "[Boto]\ncfn_region_endpoint = 127.0.0.1\n")
	g.write(t, "/cred", "AWSAccessKeyId=ak\nAWSSecretKey=sk\n")
	args := []string{"-s", "stack 1", "-r", "server", "--credential-file", "/cred"}
	if code := g.run(t, "cfn-get-metadata", args...); code != 0 || g.out.String() != `{"a": {"b.c": [1, "\u00e9"]}}`+"\n" {
		t.Fatalf("exit code %d, out %q, err %q", code, g.out.String(), g.err.String())
	}
	q := s.reqs[0].URL.Query()
	if q.Get("StackName") != "stack 1" || q.Get("LogicalResourceId") != "server" || q.Get("AWSAccessKeyId") != "ak" || s.reqs[0].URL.Path != "/v1/" {
		t.Errorf("request %s", s.reqs[0].URL)
	}
	for _, name := range []string{lastMetadata, lastMetadata + "_server"} {
		if got := g.read(t, name); got != `{"a": {"b.c": [1, "\u00e9"]}}` {
			t.Errorf("%s holds %s", name, got)
		}
		if st, err := os.Stat(filepath.Join(g.root, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	for key, want := range map[string]string{"a.'b.c'": `[1, "\u00e9"]` + "\n", "a.b": "", "a.'b": ""} {
		if code := g.run(t, "cfn-get-metadata", append(args, "-k", key)...); code != 0 || g.out.String() != want {
			t.Errorf("key %s: exit code %d, out %q", key, code, g.out.String())
		}
	}
	s.answer = always(500)
	if code := g.run(t, "cfn-get-metadata", args...); code != 0 || !strings.Contains(g.out.String(), `"b.c"`) {
		t.Errorf("away: exit code %d, out %q", code, g.out.String())
	}
	s.answer, s.body = always(403), func() string { return "AccessDenied" }
	if code := g.run(t, "cfn-get-metadata", args...); code != 1 || !strings.Contains(g.err.String(), "403 Forbidden: AccessDenied") {
		t.Errorf("refused: exit code %d, err %q", code, g.err.String())
	}
}

func TestMetadataThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"<x/>", "the answer of the CFN API is not JSON: Expecting value: line 1 column 1 (char 0)"},
		{`{"DescribeStackResourceResponse": {}}`, "the answer of the CFN API has no DescribeStackResourceResponse.DescribeStackResourceResult"},
		{`{"DescribeStackResourceResponse": {"DescribeStackResourceResult": {"StackResourceDetail": {"Metadata": "{"}}}}`,
			"the metadata in the answer of the CFN API is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
	} {
		if _, err := resourceMetadata([]byte(tc.body)); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v", tc.body, err)
		}
	}
	g := newGuest(t)
	g.write(t, initData, "{")
	if code := g.run(t, "cfn-get-metadata", "-s", "s", "-r", "r"); code != 1 || !strings.Contains(g.err.String(), initData+" is not JSON") {
		t.Errorf("exit code %d, err %q", code, g.err.String())
	}
}

func TestHupPrograms(t *testing.T) {
	g := newGuest(t)
	g.result = modules.Result{Return: map[string]any{"result": true, "actions": []any{}, "interval": int64(1)}}
	for _, args := range [][]string{nil, {"-f"}, {"-fv"}, {"--no-daemon", "--verbose"}} {
		if code := g.run(t, "cfn-hup", args...); code != 0 || g.kwargs["config"] != hooksDir {
			t.Errorf("%v: exit code %d, %v", args, code, g.kwargs)
		}
	}
	g.result = modules.Result{Return: map[string]any{"result": false, "actions": []any{map[string]any{"hook": "h", "event": "post.update",
		"result": false, "comment": "exit status 3"}}}}
	if code := g.run(t, "cfn-hup", "-c", "/x"); code != 1 || g.kwargs["config"] != "/x" ||
		g.err.String() != "cfn-hup: event post.update, hook: h, comment: exit status 3\n" {
		t.Errorf("exit code %d, %v, err %q", code, g.kwargs, g.err.String())
	}
	g.result = modules.Result{Return: pytext.Str("ERROR: none"), Retcode: 1}
	if code := g.run(t, "cfn-hup"); code != 1 {
		t.Errorf("exit code %d", code)
	}
}
