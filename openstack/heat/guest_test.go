package heat

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/standard"
	_ "github.com/brine-salt/brine/modules/cmdmod"
	_ "github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/modules/test"
	_ "github.com/brine-salt/brine/states/cmd"
	_ "github.com/brine-salt/brine/states/module"
	_ "github.com/brine-salt/brine/states/test"
)

// guest is a host below a directory, with a minion without a master.
type guest struct {
	t    *testing.T
	root string
	log  *testlog.Buffer
	m    *minion.Minion
	o    Options
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := &guest{t: t, root: t.TempDir(), log: &testlog.Buffer{}}
	opts := map[string]any{"id": "guest", "root_dir": g.root, "cachedir": filepath.Join(g.root, "cache"), "pki_dir": filepath.Join(g.root, "pki"),
		"file_client": "local", "master_type": "disable", "heat": map[string]any{"root": g.root}, "saltenv": "base", "grains": map[string]any{"shell": "/bin/sh"},
		"renderer": "jinja|yaml", "shell": "/bin/sh"}
	options, err := standard.Options(opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Grains = nil
	if g.m, err = minion.New(options); err != nil {
		t.Fatal(err)
	}
	s, err := NewSettings(opts)
	if err != nil {
		t.Fatal(err)
	}
	g.write("/proc/sys/kernel/random/boot_id", "first\n")
	g.o = Options{Settings: s, Log: slog.New(slog.NewTextHandler(g.log, nil)), Call: func(ctx context.Context, fun string, kwargs map[string]any) (any, error) {
		res, err := g.m.Call(ctx, minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true})
		if err == nil {
			err = res.Err
		}
		return res.Return, err
	}}
	return g
}

func (g *guest) path(name string) string { return filepath.Join(g.root, name) }

func (g *guest) write(name, text string) {
	g.t.Helper()
	if err := os.MkdirAll(filepath.Dir(g.path(name)), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(g.path(name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guest) read(name string) string {
	b, err := os.ReadFile(g.path(name))
	if err != nil {
		return ""
	}
	return string(b)
}

// local stores deployments for the collector local.
func (g *guest) local(deployments ...map[string]any) {
	g.t.Helper()
	if deployments == nil {
		deployments = []map[string]any{}
	}
	g.write("/var/lib/os-collect-config/local-data/md", string(encode(map[string]any{"deployments": deployments})))
	if err := os.Chmod(g.path("/var/lib/os-collect-config/local-data"), 0o700); err != nil {
		g.t.Fatal(err)
	}
}

// once polls, runs and signals once.
func (g *guest) once() {
	g.t.Helper()
	if _, err := New(g.o).Once(g.t.Context(), true); err != nil {
		g.t.Fatalf("%v\n%s", err, g.log)
	}
}

// sink receives signals.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any // guarded by mu
	sizes  []int            // guarded by mu
	paths  []string         // guarded by mu
	codes  []int            // guarded by mu; the next responses, then 200
	got    chan struct{}
}

func newSink(t *testing.T, codes ...int) *sink {
	t.Helper()
	s := &sink{codes: codes, got: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		code := http.StatusOK
		if len(s.codes) > 0 {
			code, s.codes = s.codes[0], s.codes[1:]
		}
		if code < 300 {
			var m map[string]any
			_ = json.Unmarshal(b.Bytes(), &m)
			s.bodies, s.sizes, s.paths = append(s.bodies, m), append(s.sizes, b.Len()), append(s.paths, r.Method+" "+r.URL.Path)
		}
		w.WriteHeader(code)
		s.got <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) last(t *testing.T) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) == 0 {
		t.Fatal("no signal arrived")
	}
	return s.bodies[len(s.bodies)-1]
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// deploymentTo returns a deployment that signals to the sink. more replaces keys.
func deploymentTo(s *sink, id, group string, config any, more map[string]any) map[string]any {
	d := map[string]any{"id": id, "name": "deploy", "group": group, "config": config, "options": map[string]any{}, "outputs": []any{},
		"creation_time": "2026-03-04T05:06:07Z", "inputs": []any{
			map[string]any{"name": "deploy_signal_id", "type": "String", "value": s.URL + "/v1/signal/x?Signature=canary"},
			map[string]any{"name": "deploy_signal_verb", "type": "String", "value": "POST"},
			map[string]any{"name": "deploy_action", "type": "String", "value": "CREATE"}}}
	if in, ok := more["inputs"].([]any); ok {
		more = maps.Clone(more)
		more["inputs"] = append(in, d["inputs"].([]any)...)
	}
	maps.Copy(d, more)
	return d
}

const id1 = "11111111-2222-3333-4444-555555555555"

// TestDeployment tests inputs, outputs, deployed ids and the signal. Nothing runs twice, other users cannot read any
// file, and no secret is logged.
func TestDeployment(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho \"hello $who\"; echo oops >&2; echo x >> count; printf 7 > $heat_outputs_path.answer\n",
		map[string]any{"inputs": []any{map[string]any{"name": "who", "type": "String", "value": "Ada"}},
			"outputs": []any{map[string]any{"name": "answer"}, map[string]any{"name": "problem", "error_output": true}}}))
	g.once()
	g.once()
	want := map[string]any{"deploy_stdout": "hello Ada\n", "deploy_stderr": "oops\n", "deploy_status_code": 0.0, "answer": "7"}
	if got := s.last(t); !maps.Equal(got, want) { // H10: no key "problem"
		t.Errorf("signal %v, want %v", got, want)
	}
	if n := g.read("/var/lib/heat-config/heat-config-script/count"); n != "x\n" || s.count() != 1 {
		t.Errorf("ran %q, %d signals, want one each", n, s.count())
	}
	var deployed map[string]any
	if err := json.Unmarshal([]byte(g.read("/var/lib/heat-config/deployed/"+id1+".json")), &deployed); err != nil || deployed["id"] != id1 {
		t.Errorf("deployed file: %v %v", deployed["id"], err)
	}
	if strings.Contains(g.log.String(), "canary") {
		t.Errorf("the signed address is in the log:\n%s", g.log)
	}
	_ = filepath.Walk(g.path("/var/lib"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && info.Name() != "count" {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return nil
	})
	status, err := ReadStatus(g.o.Paths)
	if err != nil {
		t.Fatal(err)
	}
	if d := status["deployments"].(map[string]any)[id1].(map[string]any); d["state"] != "done" || d["status_code"] != int64(0) {
		t.Errorf("status %v", d)
	}
}

// TestHeatH10ErrorOutput: a null output of a hook is left out, since Heat regards its presence as a failure.
func TestHeatH10ErrorOutput(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.write("/var/lib/heat-config/hooks/own", "#!/bin/sh\ncat >/dev/null\necho '{\"deploy_stdout\":\"a\",\"deploy_status_code\":0,\"problem\":null,\"x\":1}'\nexit 3\n")
	if err := os.Chmod(g.path("/var/lib/heat-config/hooks/own"), 0o755); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]any{"outputs": []any{map[string]any{"name": "problem", "error_output": true}}}
	g.local(deploymentTo(s, id1, "own", "", outputs))
	g.once()
	if got := s.last(t); !maps.Equal(got, map[string]any{"deploy_stdout": "a", "deploy_status_code": 0.0, "x": 1.0}) {
		t.Errorf("a hook's JSON became %v", got)
	}
}

// TestHeatH7LargeOutput: an output of 5 MiB is truncated, but its beginning and end are sent.
func TestHeatH7LargeOutput(t *testing.T) {
	for group, wrap := range map[string]string{"script": "", "own": "cat >/dev/null; "} {
		t.Run(group, func(t *testing.T) {
			g, s := newGuest(t), newSink(t)
			script := "#!/bin/sh\n" + wrap + "echo the begin; head -c 5242880 /dev/zero | tr '\\0' '\"'; echo the end; echo small >&2\n"
			g.write("/usr/libexec/heat-config/hooks/own", script)
			if err := os.Chmod(g.path("/usr/libexec/heat-config/hooks/own"), 0o755); err != nil {
				t.Fatal(err)
			}
			g.local(deploymentTo(s, id1, group, script, nil))
			g.once()
			got := s.last(t)
			out, _ := got["deploy_stdout"].(string)
			if !strings.HasPrefix(out, "the begin\n") || !strings.HasSuffix(out, "the end\n") || !strings.Contains(out, "bytes left out") {
				t.Errorf("the output is %.40q … %q", out, out[max(0, len(out)-40):])
			}
			if s.sizes[0] > MaxSignal || s.sizes[0] < MaxSignal*9/10 || got["deploy_stderr"] != "small\n" || got["deploy_status_code"] != 0.0 {
				t.Errorf("%d bytes, stderr %v, status %v", s.sizes[0], got["deploy_stderr"], got["deploy_status_code"])
			}
		})
	}
}

// TestHeatH6Interrupted: a deployment that was running when the host or the agent ended is reported at the next start.
func TestHeatH6Interrupted(t *testing.T) {
	for name, c := range map[string]struct{ boot, want string }{
		"reboot": {"second\n", "interrupted: the host was restarted"},
		"crash":  {"first\n", "interrupted: the agent ended"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := newGuest(t), newSink(t)
			g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho x >> count; touch started; exec sleep 1000\n", nil))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- New(g.o).Run(ctx) }()
			waitFor(t, func() bool {
				return g.read("/var/lib/heat-config/brine/run/"+id1+".json") != "" && exists(g.path("/var/lib/heat-config/heat-config-script/started"))
			})
			cancel() // no more writes, as after a crash
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if s.count() != 0 {
				t.Fatal("the end of the agent was signalled")
			}
			g.write("/proc/sys/kernel/random/boot_id", c.boot)
			begin := time.Now()
			g.once()
			got := s.last(t)
			if text, _ := got["deploy_stderr"].(string); !strings.HasPrefix(text, c.want) || got["deploy_status_code"] != 1.0 {
				t.Errorf("signal %v", got)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if n := g.read("/var/lib/heat-config/heat-config-script/count"); n != "x\n" {
				t.Errorf("it ran again: %q", n)
			}
		})
	}
}

// TestHeatH6Resume: with the option resume, a script that exits with 194 continues after the reboot, and signals
// once.
func TestHeatH6Resume(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	rebooted := 0
	g.o.Command = func(_ context.Context, shell string, _ []string) error {
		if shell == "shutdown -r now" {
			rebooted++
		}
		return nil
	}
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho part $heat_resume_count\n[ $heat_resume_count = 2 ] || exit 194\n",
		map[string]any{"options": map[string]any{"resume": true}}))
	for range 2 {
		g.once()
		if s.count() != 0 {
			t.Fatalf("signalled before the end: %v", s.last(t))
		}
	}
	g.once()
	if got := s.last(t); got["deploy_stdout"] != "part 0\npart 1\npart 2\n" || got["deploy_status_code"] != 0.0 || rebooted != 2 || s.count() != 1 {
		t.Errorf("signal %v, %d reboots", got, rebooted)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen in 20 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
