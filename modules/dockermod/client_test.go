package dockermod

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// daemon is a server on a socket that answers by a handler; DOCKER_HOST names it.
func daemon(t *testing.T, handle http.HandlerFunc) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: handle}}
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close(); os.RemoveAll(dir) })
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	t.Setenv("DOCKER_CONFIG", dir)
	return socket
}

// call calls a function on the real host, without a mine.
func call(ctx context.Context, t *testing.T, fun string, args []any, kwargs map[string]any) (any, error) {
	t.Helper()
	e := modulestest.Env(t)
	e.Root, e.Runner = "", &runcmd.Runner{}
	e.Opts = func() map[string]any { return map[string]any{"docker.update_mine": false} }
	res := modules.NewRegistry(Module).Run(ctx, e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	return res.Return, res.Err
}

// inCall runs f within a call that has the parameters of docker.run.
func inCall(t *testing.T, args []any, f func(c *modules.Call)) {
	t.Helper()
	if args == nil {
		args = []any{"web", "true"}
	}
	probe := &modules.Module{Name: "probe", Doc: "Probe.", Funcs: []modules.Def{{Name: "run", Params: runParams, Run: func(_ context.Context, c *modules.Call) (any, error) {
		f(c)
		return nil, nil
	}}}}
	if res := modules.NewRegistry(probe).Run(t.Context(), modulestest.Env(t), modules.Request{Fun: "probe.run", Args: args}); res.Err != nil {
		t.Fatal(res.Err)
	}
}

func TestNoDaemon(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	_, err := call(t.Context(), t, "docker.ps", nil, nil)
	var python *modules.PythonError
	want := "cannot GET /containers/json of Docker at unix:///nowhere/docker.sock: dial unix /nowhere/docker.sock: connect: no such file or directory"
	if !errors.As(err, &python) || python.Type != "docker.errors.DockerException" || python.Msg != want {
		t.Errorf("got %v", err)
	}
	// A container of which nothing is known does not count as one that is not there.
	if v, err := call(t.Context(), t, "docker.exists", []any{"x"}, nil); err == nil {
		t.Errorf("got %v", v)
	}
}

func TestAddresses(t *testing.T) {
	for host, want := range map[string]string{
		"":                         "http://localhost unix:///var/run/docker.sock",
		"unix://":                  "http://localhost unix:///var/run/docker.sock",
		"unix:///x/y":              "http://localhost unix:///x/y",
		"unix://x/y":               "http://localhost unix:///x/y",
		"http+unix://x/y":          "http://localhost unix:///x/y",
		"tcp://192.0.2.1:2375":     "http://192.0.2.1:2375 tcp://192.0.2.1:2375",
		"192.0.2.1:2375":           "http://192.0.2.1:2375 192.0.2.1:2375",
		"tcp://:2375":              "http://127.0.0.1:2375 tcp://:2375",
		"https://docker:2376/base": "https://docker:2376/base https://docker:2376/base",
		"tcp://[2001:db8::1]:2375": "http://[2001:db8::1]:2375 tcp://[2001:db8::1]:2375",
		"tcp://":                   "Invalid bind address format: tcp://",
		"tcp://docker":             "Invalid bind address format: port is required: tcp://docker",
		"tcp://a:b@docker:1":       "Invalid bind address format: tcp://a:b@docker:1",
		"ssh://docker":             "Invalid bind address protocol: ssh://docker",
		"npipe:////x":              "Invalid bind address protocol: npipe:////x",
		"docker":                   "Invalid bind address format: port is required: docker",
	} {
		t.Setenv("DOCKER_CONFIG", t.TempDir())
		var d *client
		var err error
		inCall(t, nil, func(c *modules.Call) {
			d = &client{Call: c}
			err = d.dial(host)
		})
		got := d.base + " " + d.where
		var python *modules.PythonError
		if errors.As(err, &python) {
			got = python.Msg
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, `{"message":"who are you?"}`, http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"Version":"20.10.24+x","ApiVersion":"1.41"}`)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	write := func(name, kind string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("DOCKER_HOST", strings.Replace(s.URL, "https", "tcp", 1))
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	t.Setenv("DOCKER_CERT_PATH", dir)
	if _, err := call(t.Context(), t, "docker.version", nil, nil); err == nil || !strings.Contains(err.Error(), "cannot read the authority of Docker's certificate") {
		t.Errorf("without an authority: %v", err)
	}
	write("ca.pem", "CERTIFICATE", s.Certificate().Raw)
	if _, err := call(t.Context(), t, "docker.version", nil, nil); err == nil || err.Error() != "Error 403: who are you?" {
		t.Errorf("without a certificate: %v", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write("cert.pem", "CERTIFICATE", s.Certificate().Raw)
	write("key.pem", "PRIVATE KEY", key)
	v, err := call(t.Context(), t, "docker.version", nil, nil)
	want := map[string]any{"Version": "20.10.24+x", "ApiVersion": "1.41", "VersionInfo": []any{int64(20), int64(10), int64(24)}, "ApiVersionInfo": []any{int64(1), int64(41)}}
	if err != nil || !cmp.Equal(want, v) {
		t.Errorf("%v, %s", err, cmp.Diff(want, v))
	}
	t.Setenv("DOCKER_CERT_PATH", "")
	t.Setenv("DOCKER_TLS_VERIFY", "")
	t.Setenv("DOCKER_HOST", s.URL) // https verifies by the host's authorities
	if _, err := call(t.Context(), t, "docker.version", nil, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
}

// TestHostileDaemon: no answer makes the minion take more memory or time than it allows.
func TestHostileDaemon(t *testing.T) {
	flood := func(w io.Writer, text string, size int) {
		b := []byte(strings.Repeat(text, 1<<16/len(text)))
		for n := 0; n < size; n += len(b) {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	frame := func(kind byte, size uint32) []byte {
		return binary.BigEndian.AppendUint32([]byte{kind, 0, 0, 0}, size)
	}
	socket := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/info":
			flood(w, " ", maxBody*2)
		case path == "/containers/json":
			fmt.Fprint(w, strings.Repeat("[", 100000))
		case path == "/images/json":
			fmt.Fprint(w, `[1, {"Id": 5}]`)
		case path == "/volumes":
			w.WriteHeader(http.StatusTeapot)
			flood(w, "x", maxBody)
		case path == "/images/create":
			flood(w, "x", maxEvent*4)
		case path == "/images/long/push":
			flood(w, "{\"status\":\"x\"}\n", maxBody*2)
		case path == "/networks":
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		case strings.HasSuffix(path, "/logs"):
			_, _ = w.Write(frame(1, 0xffffffff))
			flood(w, "x", maxOutput*2)
		case path == "/containers/web/json":
			fmt.Fprint(w, `{"Id":"web","Config":{"Tty":false}}`)
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		fun, want string
		args      []any
	}{
		{"docker.info", fmt.Sprintf("Unable to perform info: the answer of Docker at unix://%s is larger than %d bytes", socket, maxBody), nil},
		{"docker.ps", "Unable to perform containers: cannot read JSON: nested more than 500 deep", nil},
		{"docker.images", "Unable to perform images: the answer of Docker at unix://" + socket + " is no list of dictionaries", nil},
		{"docker.volumes", "Error 418: x", nil},
		{"docker.pull", "a line is longer than 1048576 bytes", []any{"x"}},
		{"docker.push", "does not stop to send events", []any{"long"}},
		{"docker.networks", "Error 301: ", nil},
		{"docker.logs", "cannot read the log from Docker at unix://" + socket + ": unexpected EOF", []any{"web"}},
	} {
		_, err := call(t.Context(), t, c.fun, c.args, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v", c.fun, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 20*maxBody {
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

func TestOutputIsBounded(t *testing.T) {
	daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/json") {
			fmt.Fprint(w, `{"Id":"web","Config":{"Tty":true}}`)
			return
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), maxOutput+5))
	})
	v, err := call(t.Context(), t, "docker.logs", []any{"web"}, nil)
	if s, _ := v.(string); err != nil || len(s) != maxOutput {
		t.Errorf("%d bytes, %v", len(s), err)
	}
}

func TestSilentDaemon(t *testing.T) {
	socket := daemon(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	want := "docker.errors.DockerException: cannot GET /images/x/json of Docker at unix://" + socket + ": no answer within 50ms"
	if _, err := call(t.Context(), t, "docker.create", []any{"x"}, map[string]any{"client_timeout": 0.05}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCancelled(t *testing.T) {
	arrived := make(chan struct{}, 10)
	daemon(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	for _, c := range []struct {
		fun  string
		args []any
	}{{"docker.info", nil}, {"docker.pull", []any{"x"}}, {"docker.wait", []any{"x"}}, {"docker.run", []any{"x", "true"}}} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := call(ctx, t, c.fun, c.args, nil)
			done <- err
		}()
		<-arrived
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", c.fun, err)
			}
		case <-time.After(modulestest.Patience):
			t.Errorf("%s goes on", c.fun)
		}
	}
}

// TestSaveCompressed: stock never comes to an end here, so that no case shows it.
func TestSaveCompressed(t *testing.T) {
	const text = "an archive, more or less\n"
	daemon(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/images/app:1/json":
			fmt.Fprint(w, `{"Id":"sha256:x","RepoTags":["app:1"]}`)
		case "/images/app:1/get":
			fmt.Fprint(w, text)
		}
	})
	dir := t.TempDir()
	v, err := call(t.Context(), t, "docker.save", []any{"app:1", dir + "/a.tar.gz"}, nil)
	m, _ := v.(map[string]any)
	if err != nil || m["Path"] != dir+"/a.tar.gz" {
		t.Fatalf("%v, %v", v, err)
	}
	b, err := os.ReadFile(dir + "/a.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != text || m["Size"] != int64(len(b)) {
		t.Errorf("%q, %v, size %v", got, err, m["Size"])
	}
	if left, _ := filepath.Glob(dir + "/.docker*"); left != nil {
		t.Errorf("%v are left", left)
	}
}

func TestWords(t *testing.T) {
	for cmd, want := range map[string][]string{
		`ls -l /etc`:                     {"ls", "-l", "/etc"},
		`sh -c 'ls | wc -l > $HOME; a*'`: {"sh", "-c", "ls | wc -l > $HOME; a*"},
		`echo "a b" c\ d`:                {"echo", "a b", "c d"},
		`echo a#b a~ "#" '~'`:            {"echo", "a#b", "a~", "#", "~"},
		`echo \$HOME \* "\""`:            {"echo", "$HOME", "*", `"`},
		`ls | wc`:                        nil,
		`ls > /tmp/x`:                    nil,
		`a; b`:                           nil,
		`a && b`:                         nil,
		`echo "\$X"`:                     nil,
		`echo $HOME`:                     nil,
		`sh -c "echo $HOME"`:             nil,
		"echo `id`":                      nil,
		`ls *`:                           nil,
		`cat ~/x`:                        nil,
		`a # comment`:                    nil,
		"a\nb":                           nil,
	} {
		var got []string
		var err error
		inCall(t, []any{"web", cmd}, func(c *modules.Call) { got, err = (&client{Call: c}).words(c.Str("cmd")) })
		if (err != nil) != (want == nil) || !cmp.Equal(want, got) {
			t.Errorf("%s: got %q, %v", cmd, got, err)
		}
	}
}

func TestPack(t *testing.T) {
	root := t.TempDir()
	long := strings.Repeat("directory/", 15) + strings.Repeat("f", 120)
	for name, text := range map[string]string{"Dockerfile": "FROM x\n", "a.log": "x", "keep/b.log": "keep", "keep/c.log": "x", "sub/deep/d.LOG": "x", "sub/e.txt": strings.Repeat("e", 1000),
		"only/x": "x", "only/y": "y", long: "long", ".dockerignore": "# comment\n**/*.log\n!keep/b.log\nonly\n!only/y\n /sub/none/ \n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(long, filepath.Join(root, "link")), os.Chmod(filepath.Join(root, "sub/e.txt"), 0o755|os.ModeSetuid)); err != nil {
		t.Skip(err)
	}
	ignored, err := ignorePatterns(root, "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pack(&out, root, ignored); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeDir {
			got[h.Name] = fmt.Sprintf("%o %s%s", h.Mode, h.Linkname, text)
		}
	}
	want := map[string]string{"Dockerfile": "640 FROM x\n", "keep/b.log": "640 keep", "sub/e.txt": "4755 " + strings.Repeat("e", 1000), "only/y": "640 y", long: "640 long",
		"link": "777 " + long, ".dockerignore": got[".dockerignore"]}
	if !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.log", "a.log", true}, {"*.log", "x/a.log", false}, {"**/*.log", "a.log", true}, {"**/*.log", "x/y/a.log", true}, {"x/**", "x/a/b", true}, {"x/**", "y/a", false},
		{"x/**/z", "x/z", true}, {"x/**/z", "x/a/b/z", true}, {"x/**/z", "x/a/b/y", false}, {"a?c", "abc", true}, {"a?c", "a/c", false}, {"[ab]", "a", true}, {"[", "[", false},
		{"**", "x/y", true}, {"*/b", "a/b", true}, {"*/b", "a/c/b", false},
	} {
		if got := fitsPattern(c.pattern, c.name); got != c.want {
			t.Errorf("%s and %s: %v", c.pattern, c.name, got)
		}
	}
}
