//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/openstack/lab"
)

// twoControllersTemplate is a server of mode A with a deployment that prints until the file /var/lib/lab/go exists.
const twoControllersTemplate = `
heat_template_version: 2018-08-31
parameters:
  round: {type: number, default: 1}
resources:
  server: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  c:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      inputs: [{name: round}]
      config: |
        #!/bin/sh
        while [ ! -e /var/lib/lab/go ]; do echo waiting; sleep 0.3; done
        echo "round $round"
  d:
    type: OS::Heat::SoftwareDeployment
    properties: {server: {get_resource: server}, config: {get_resource: c}, input_values: {round: {get_param: round}}}
outputs:
  stdout: {value: {get_attr: [d, deploy_stdout]}}
`

// TestHeatBesideSaltMaster uses a guest with two controllers: unmodified Heat and a stock salt-master. Both work at
// once, and each continues while the other is down. TestHeatModeA has guests with Heat alone, TestHeatH3 guests with
// a master alone.
func TestHeatBesideSaltMaster(t *testing.T) {
	ctx := testContext(t)
	m := newStockMaster(t)
	m.start(t)
	name := newStack(t, twoControllersTemplate, lab.StackArgs{})
	keepEngine(t)
	conf, err := collectConfig(ctx, cloud, name, "server")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, "guest")
	for path, content := range map[string]string{"/etc/os-collect-config.conf": conf,
		"/etc/salt/minion": fmt.Sprintf("master: 127.0.0.1\nmaster_port: %d\npublish_port: %d\nid: beside\n", m.ports[1], m.ports[0])} {
		if err := g.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := startMinion(g, ours("heat-minion")); err != nil {
		t.Fatal(err)
	}
	update := func(round int) {
		t.Helper()
		if err := cloud.Heat.Update(testContext(t), name, twoControllersTemplate, lab.StackArgs{Parameters: map[string]any{"round": round}}); err != nil {
			t.Fatal(err)
		}
		if out := waitStack(t, cloud, name, "UPDATE_COMPLETE").Outputs()["stdout"]; out != fmt.Sprintf("round %d\n", round) {
			t.Errorf("round %d printed %q", round, out)
		}
	}

	// Both at once: the deployment runs, its output reaches the master as events, and the master's jobs run at the
	// same time.
	tag := m.event(t, "heat/progress/*")
	if !strings.Contains(tag, "heat/progress/") || !strings.Contains(tag, "waiting") {
		t.Errorf("the master's event is %q, want the output of the deployment", tag)
	}
	m.ping(t)
	// Stop the master.
	m.host.PowerOff()
	if err := g.WriteFile("/var/lib/lab/go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()["stdout"].(string); !strings.HasSuffix(out, "waiting\nround 1\n") {
		t.Errorf("round 1 printed %q", out)
	}
	update(2)
	// Stop Heat's engine.
	if err := cloud.StopEngine(testContext(t), 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := m.host.Boot(testContext(t)); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	m.ping(t)
	// Both run again.
	if err := cloud.StartEngine(testContext(t), 0); err != nil {
		t.Fatal(err)
	}
	update(3)
	m.ping(t)
}

// A stockMaster is stock Salt's master, version 3007, on its own machine.
type stockMaster struct {
	dir   string
	ports []int // for jobs and for requests
	host  *lab.Guest
}

func newStockMaster(t *testing.T) *stockMaster {
	t.Helper()
	if os.Getenv("BRINE_SALT_3007") == "" {
		t.Fatal("BRINE_SALT_3007 is not set: run this through make openstack")
	}
	dir, err := os.MkdirTemp("", "brine-master-") // short, because it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &stockMaster{dir: dir, ports: freeport.Ports(t, 2), host: newGuest(t, "master")}
	text := fmt.Sprintf("interface: 127.0.0.1\npublish_port: %d\nret_port: %d\nuser: root\nroot_dir: %[3]s\npki_dir: %[3]s/pki\n"+
		"sock_dir: %[3]s/run\ncachedir: %[3]s/cache\nlog_file: %[3]s/log\nauto_accept: true\nworker_threads: 2\n", m.ports[0], m.ports[1], dir)
	if err := os.WriteFile(filepath.Join(dir, "master"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *stockMaster) program(name string) string {
	return filepath.Join(os.Getenv("BRINE_SALT_3007"), "bin", name)
}

func (m *stockMaster) start(t *testing.T) {
	t.Helper()
	if _, err := m.host.Start("master", nil, m.program("salt-master"), "-c", m.dir); err != nil {
		t.Fatal(err)
	}
}

// event waits for an event with a tag and returns Salt's output for it.
func (m *stockMaster) event(t *testing.T, tag string) string {
	t.Helper()
	out, err := m.host.Run(testContext(t), m.program("salt-run"), "-c", m.dir, "state.event", tag, "count=1")
	if err != nil {
		t.Fatalf("no event %s: %v\n%s", tag, err, out)
	}
	return out
}

// ping waits until the minion answers the master.
func (m *stockMaster) ping(t *testing.T) {
	t.Helper()
	ctx := testContext(t)
	for {
		out, err := m.host.Run(ctx, m.program("salt"), "-c", m.dir, "beside", "test.ping", "--out=json", "--static", "-t", "20")
		var v map[string]any
		if err == nil && json.Unmarshal([]byte(out), &v) == nil && v["beside"] == true {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the minion does not answer: %v %v\n%s", context.Cause(ctx), err, out)
		}
	}
}
