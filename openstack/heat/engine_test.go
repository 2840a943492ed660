package heat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSignalIsNotLost: heat-config-notify drops a signal that the service did not accept; this engine retries it,
// also after a restart.
func TestSignalIsNotLost(t *testing.T) {
	g, s := newGuest(t), newSink(t, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusForbidden)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho once\n", nil))
	g.once()
	g.once() // it tries before and after its poll
	if s.count() != 0 || g.read("/var/lib/heat-config/brine/signals/"+id1+".json") == "" {
		t.Fatalf("%d signals, spool %q", s.count(), g.read("/var/lib/heat-config/brine/signals/"+id1+".json"))
	}
	g.once()
	if got := s.last(t); got["deploy_stdout"] != "once\n" || s.count() != 1 {
		t.Errorf("signal %v", got)
	}
	if g.read("/var/lib/heat-config/brine/signals/"+id1+".json") != "" {
		t.Error("a signal that was taken is still in the spool")
	}
}

// TestSignalIsRenewed: a signal whose URL has expired is sent to the URL that Heat has signed since.
func TestSignalIsRenewed(t *testing.T) {
	g, old, s := newGuest(t), newSink(t, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden), newSink(t)
	g.local(deploymentTo(old, id1, "script", "#!/bin/sh\necho once\n", nil))
	g.once()
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho once\n", nil))
	g.once()
	if got := s.last(t); got["deploy_stdout"] != "once\n" {
		t.Errorf("signal %v", got)
	}
}

// TestSpoolLimits: signals that are too old, or whose target no longer exists, are dropped. A damaged signal does not
// affect others.
func TestSpoolLimits(t *testing.T) {
	g := newGuest(t)
	s := newSink(t, http.StatusNotFound, http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	e := New(g.o)
	now := time.Now()
	e.spool.now = func() time.Time { return now }
	put := func(id string) {
		d, err := NewDeployment(any(deploymentTo(s, id, "script", "", nil)))
		if err == nil {
			err = e.spool.put(d, Result{keyStatus: int64(0)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("gone")
	g.write("/var/lib/heat-config/brine/signals/damaged.json", "{")
	e.spool.flush(t.Context(), true)
	if ids := e.spool.ids(); len(ids) != 1 || ids[0] != "gone" {
		t.Fatalf("waiting: %v", ids)
	}
	now = now.Add(DefaultSignalTTL + time.Hour)
	e.spool.flush(t.Context(), true)
	if ids := e.spool.ids(); len(ids) != 0 {
		t.Errorf("still waiting: %v", ids)
	}
	if !exists(g.path("/var/lib/heat-config/brine/signals/damaged.json.damaged")) {
		t.Error("the damaged signal is gone")
	}
}

// TestTimeout: an endless script is stopped with all its processes, and the failure names the cause.
func TestTimeout(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho begun\nsleep 1001 & echo $! > pid\nwhile :; do sleep 0.1; done\n",
		map[string]any{"options": map[string]any{"timeout": 1}}))
	g.once()
	got := s.last(t)
	if got["deploy_stdout"] != "begun\n" || got["deploy_status_code"] == 0.0 || !strings.Contains(fmt.Sprint(got["deploy_stderr"]), "longer than its timeout") {
		t.Errorf("signal %v", got)
	}
	pid := strings.TrimSpace(g.read("/var/lib/heat-config/heat-config-script/pid"))
	if b, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(b), "1001") {
		t.Errorf("process %s is still there", pid)
	}
}

// TestWithdrawn: a deployment that Heat withdraws while it runs is stopped within seconds, with all its processes.
func TestWithdrawn(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.write("/etc/os-collect-config.conf", "[DEFAULT]\nmin_polling_interval = 0.05\npolling_interval = 0.05\n")
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\nsleep 1002 & echo $! > pid\ntouch started\nwait\n", nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- New(g.o).Run(ctx) }()
	waitFor(t, func() bool { return exists(g.path("/var/lib/heat-config/heat-config-script/started")) })
	begin := time.Now()
	g.local()
	waitFor(t, func() bool { return s.count() == 1 })
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
	pid := strings.TrimSpace(g.read("/var/lib/heat-config/heat-config-script/pid"))
	if b, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(b), "1002") {
		t.Errorf("process %s is still there", pid)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestBadInput: a deployment that cannot run has failed with the cause in deploy_stderr, and the agent continues.
func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"missing hook":     {map[string]any{"group": "nosuch"}, `there is no hook for the group "nosuch"`},
		"damaged inputs":   {map[string]any{"options": "text"}, "damaged metadata: options must be a map, not text"},
		"damaged outputs":  {map[string]any{"outputs": "x"}, "damaged metadata: outputs must be a list, not text"},
		"damaged config":   {map[string]any{"config": 5}, "damaged metadata: config must be text or a map, not a number"},
		"output elsewhere": {map[string]any{"outputs": []any{map[string]any{"name": "../x"}}}, "output 1 has no name that can be used"},
		"no interpreter":   {map[string]any{"config": "#!/no/such/program\n"}, "or the interpreter of its first line, is missing"},
		"hiera elsewhere":  {map[string]any{"group": "hiera", "config": map[string]any{"datafiles": map[string]any{"../x": 1}}}, "leads out of"},
		"damaged state":    {map[string]any{"group": "salt", "config": "a: [\n"}, "Rendering SLS"},
		"chef run list":    {map[string]any{"group": "chef", "config": "{"}, "must be a run list"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := newGuest(t), newSink(t)
			good := deploymentTo(s, "good", "script", "#!/bin/sh\necho fine\n", nil)
			g.local(deploymentTo(s, id1, "script", "#!/bin/sh\n", c.change), good)
			g.once()
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.bodies) != 2 || !strings.Contains(fmt.Sprint(s.bodies[0]["deploy_stderr"]), c.want) || s.bodies[0]["deploy_status_code"] == 0.0 {
				t.Fatalf("signals %v", s.bodies)
			}
			if s.bodies[1]["deploy_stdout"] != "fine\n" {
				t.Errorf("the next deployment: %v", s.bodies[1])
			}
		})
	}
}

// TestDamagedMetadata: metadata that cannot be parsed is logged with its source; nothing runs and nothing is lost.
func TestDamagedMetadata(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho fine\n", nil))
	for _, text := range []string{"{", `{"deployments": {}}`, `{"deployments": [7, {"id": "../../etc/passwd", "group": "script"}]}`, strings.Repeat("[", 100000)} {
		g.write("/var/lib/os-collect-config/local-data/md", text)
		if _, err := New(g.o).Once(t.Context(), true); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho fine\n", nil))
	g.once()
	if s.last(t)["deploy_stdout"] != "fine\n" {
		t.Error("the guest does not go on")
	}
	for _, want := range []string{"is not JSON", "deployments must be a list", "cannot be used"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, g.log)
		}
	}
}

// TestSaltGroup tests cases in which heat-config-salt fails: inputs that replace options, outputs that are null,
// states that do not compile.
func TestSaltGroup(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	sls := `
say {{ pillar['heat']['who'] }}:
  cmd.run:
    - name: printf file > $heat_outputs_path.written
out:
  module.run:
    - heat.output:
      - name: address
      - value: "{{ opts['file_roots']['base'][0] }}"
`
	d := deploymentTo(s, id1, "salt", sls, map[string]any{"inputs": []any{map[string]any{"name": "who", "value": "Ada"},
		map[string]any{"name": "file_roots", "value": "/nowhere"}},
		"outputs": []any{map[string]any{"name": "address"}, map[string]any{"name": "written"}, map[string]any{"name": "problem", "error_output": true}}})
	g.local(d)
	g.once()
	got := s.last(t)
	if _, has := got["problem"]; has || got["deploy_status_code"] != 0.0 || got["written"] != "file" ||
		got["address"] != g.path("/var/lib/heat-config/heat-config-salt") || !strings.Contains(fmt.Sprint(got["deploy_stdout"]), "say Ada") {
		t.Errorf("signal %v", got)
	}
}

// TestCrashBeforeDeployed: after a crash, a record without a deployed file is a deployment that was not started.
func TestCrashBeforeDeployed(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\necho fine\n", nil))
	if err := g.o.writeRecord(id1, record{State: stateRunning, Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	g.once()
	if got := s.last(t); got["deploy_stdout"] != "fine\n" {
		t.Errorf("signal %v\n%s", got, g.log)
	}
}

// TestOtherAgent: two agents never run a host's deployments at the same time, and those that heat-config ran do not
// run again.
func TestOtherAgent(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\n", nil))
	g.write("/var/lib/heat-config/deployed/"+id1+".json", "{}")
	g.once()
	if s.count() != 0 {
		t.Errorf("a deployment of heat-config ran again")
	}
	unlock, err := New(g.o).lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := New(g.o).Once(t.Context(), true); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("a second agent: %v", err)
	}
}

// TestCommandOfTheImage: a command other than os-refresh-config runs after a change, with the list of files.
func TestCommandOfTheImage(t *testing.T) {
	g, s := newGuest(t), newSink(t)
	g.write("/etc/os-collect-config.conf", "[DEFAULT]\ncommand = own-refresh --all\n")
	var ran []string
	g.o.Command = func(_ context.Context, shell string, env []string) error {
		ran = append(ran, shell+" "+strings.Join(env, " "))
		return nil
	}
	g.local(deploymentTo(s, id1, "script", "#!/bin/sh\n", nil))
	e := New(g.o)
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := e.poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	want := "own-refresh --all OS_CONFIG_FILES=" + g.path("/var/lib/os-collect-config/md.json")
	if len(ran) != 1 || ran[0] != want {
		t.Errorf("ran %q, want %q once", ran, want)
	}
	var files []string
	if err := json.Unmarshal([]byte(g.read("/var/lib/os-collect-config/os_config_files.json")), &files); err != nil || len(files) != 1 {
		t.Errorf("list of files %v: %v", files, err)
	}
}
