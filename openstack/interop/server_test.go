//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/openstack/lab"
	nova "github.com/brine-salt/brine/openstack/lab/cloud"
)

// A novaLab is a lab with a Nova whose instances are guests.
type novaLab struct {
	*lab.Lab
	Nova *nova.Cloud
	// Socket is the Unix socket of the engine's master; ports are its ports for minions.
	Socket string
	ports  []int

	// port returns the network of an instance's guest; if it is nil, guests use the host's network.
	port func(ctx context.Context, i nova.Instance) (*lab.Port, error)

	mu     sync.Mutex
	guests map[string]*lab.Guest // by instance id
	n      int
}

// template returns a template from the directory templates.
func template(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("templates", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func startNovaLab(t *testing.T) *novaLab {
	t.Helper()
	return startNovaLabAt(t, "127.0.0.1", "127.0.0.1")
}

// startNovaLabAt is like startNovaLab, with a master that listens on one address and that minions reach at another.
func startNovaLabAt(t *testing.T, listen, advertise string) *novaLab {
	t.Helper()
	c, err := nova.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	plugin := "\"\"\"Salt resources.\"\"\"\nfrom brine_openstack.heat import resource_mapping  # noqa: F401\n"
	if err := os.WriteFile(filepath.Join(plugins, "salt_resources.py"), []byte(plugin), 0o644); err != nil {
		t.Fatal(err)
	}
	python, err := filepath.Abs("../python")
	if err != nil {
		t.Fatal(err)
	}
	ports := freeport.Ports(t, 2)
	master := filepath.Join(dir, "master")
	l := &novaLab{Nova: c, Socket: filepath.Join(master, "api.sock"), ports: ports, guests: map[string]*lab.Guest{}}
	l.Lab, err = lab.Start(t.Context(), lab.Options{Logf: log.Printf, Plugins: []string{plugins}, Endpoints: c.Endpoints(),
		EngineEnv: []string{"PYTHONPATH=" + python, "PYTHONDONTWRITEBYTECODE=1"},
		Heat: map[string]map[string]string{"brine": {"program": filepath.Join(bin, "brine-master"), "directory": master,
			"interface": listen, "publish_port": fmt.Sprint(ports[0]), "ret_port": fmt.Sprint(ports[1]),
			"advertise": fmt.Sprintf("%s:%d", advertise, ports[1])}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\n%s", l.LogsOf("engine-*", 12000), strings.Join(c.Unknown(), "\n"))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	c.OnBoot(l.boot)
	return l
}

// boot starts the guest of an instance. The test does cloud-init's part; the minion is ours.
func (l *novaLab) boot(ctx context.Context, i nova.Instance) (func(), error) {
	parts, err := nova.Parts(i.UserData)
	if err != nil {
		return nil, err
	}
	salt, err := nova.FindSaltMinion(parts)
	if err != nil || salt == nil {
		return nil, fmt.Errorf("the user data has no salt_minion: %v", err)
	}
	var port *lab.Port
	if l.port != nil {
		if port, err = l.port(ctx, i); err != nil {
			return nil, err
		}
	}
	g, err := l.StartGuestAt(ctx, l.newName(), port)
	if err != nil {
		return nil, err
	}
	files, err := salt.Files()
	if err != nil {
		return nil, err
	}
	for path, content := range files {
		if err := g.WriteFile(path, string(content), 0o600); err != nil {
			return g.Close, err
		}
	}
	if _, err := g.Start("minion", nil, filepath.Join(bin, "salt-minion"), "-l", "info"); err != nil {
		return g.Close, err
	}
	for n, p := range parts { // cloud-init's final stage
		if p.Kind != "text/x-shellscript" && !strings.HasPrefix(string(p.Content), "#!") {
			continue
		}
		path := fmt.Sprintf("/var/lib/cloud/part-%d", n)
		if err := g.WriteFile(path, string(p.Content), 0o700); err != nil {
			return g.Close, err
		}
		if _, err := g.Start(fmt.Sprintf("part-%d", n), []string{"PATH=" + bin + ":/usr/bin:/bin"}, path); err != nil {
			return g.Close, err
		}
	}
	l.keep(i, g)
	return g.Close, nil
}

func (l *novaLab) newName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return fmt.Sprintf("vm%d", l.n)
}

func (l *novaLab) keep(i nova.Instance, g *lab.Guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guests[i.ID] = g
}

func (l *novaLab) guest(t *testing.T, id string) *lab.Guest {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guests[id]
	if g == nil {
		t.Fatalf("there is no guest of the instance %s", id)
	}
	return g
}

// ask sends a request to the engine's master.
func (l *novaLab) ask(t *testing.T, path string) (int, map[string]any) {
	t.Helper()
	code, v, err := l.tryAsk(path)
	if err != nil {
		t.Fatal(err)
	}
	return code, v
}

func (l *novaLab) tryAsk(path string) (int, map[string]any, error) { return askSocket(l.Socket, path) }

// askSocket sends a request to the master on a unix socket.
func askSocket(socket, path string) (int, map[string]any, error) {
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	r, err := client.Get("http://localhost" + path)
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	var out map[string]any
	return r.StatusCode, out, json.NewDecoder(r.Body).Decode(&out)
}

func (l *novaLab) minions(t *testing.T) []any {
	t.Helper()
	code, v := l.ask(t, "/v1/minions")
	if code != 200 {
		t.Fatal(code, v)
	}
	list, _ := v["minions"].([]any)
	return list
}

// TestHeatServer: two lines of an environment make an unmodified template with OS::Nova::Server run through the
// embedded master. The machine gets its bootstrap in user data, signals, and is configured; an update changes only
// the differences; deleting the stack revokes the minion.
func TestHeatServer(t *testing.T) {
	l := startNovaLab(t)
	ctx := testContext(t)
	name := "TestHeatServer"
	args := lab.StackArgs{Environment: template(t, "server-env.yaml")}
	began := time.Now()
	if _, err := l.Heat.Create(ctx, name, template(t, "server.yaml"), args); err != nil {
		t.Fatal(err)
	}
	s := waitStack(t, l.Lab, name, "CREATE_COMPLETE")
	t.Logf("complete after %v", time.Since(began).Round(100*time.Millisecond))
	out := s.Outputs()
	server, err := l.Heat.Resource(ctx, name, "server")
	if err != nil {
		t.Fatal(err)
	}
	list := l.minions(t)
	if len(list) != 1 {
		t.Fatalf("minions: %v", list)
	}
	record := list[0].(map[string]any)
	id, _ := record["id"].(string)
	if id == server.PhysicalID || record["tenant"] == "" || record["present"] != true {
		t.Errorf("minion %v of the server %s", record, server.PhysicalID)
	}
	states := out["states"].(map[string]any)
	delete(out, "states")
	want := map[string]any{"data": `{"boot": "up"}`, "stdout": "hello world\n", "answer": "for world\n", "succeeded": []any{"motd", "note"},
		"job": map[string]any{id: "for world"}, "outcomes": map[string]any{id: "returned"}, "collect": map[string]any{}}
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
	if motd, _ := states["motd"].(map[string]any); motd["state"] != "file.managed" || motd["result"] != true || len(motd["changes"].(map[string]any)) == 0 {
		t.Errorf("states: %v", states)
	}
	l.noKeystone(t, name)

	t.Run("bootstrap", func(t *testing.T) {
		i := l.Nova.Instances()[0]
		parts, err := nova.Parts(i.UserData)
		if err != nil {
			t.Fatal(err)
		}
		last := parts[len(parts)-1]
		if last.Kind != "text/cloud-config" || len(last.Content) > 1024 || !strings.Contains(string(last.Content), "join_token") {
			t.Errorf("the last part is %s of %d bytes", last.Kind, len(last.Content))
		}
	})

	args.Parameters = map[string]any{"who": "brine"}
	if err := l.Heat.Update(ctx, name, template(t, "server.yaml"), args); err != nil {
		t.Fatal(err)
	}
	out = waitStack(t, l.Lab, name, "UPDATE_COMPLETE").Outputs()
	if out["stdout"] != "hello brine\n" || len(l.Nova.Instances()) != 1 || l.Nova.Instances()[0].ID != server.PhysicalID {
		t.Errorf("after the update: %v", out)
	}
	motd, err := l.guest(t, server.PhysicalID).ReadFile("/etc/motd.heat")
	if strings.TrimSpace(string(motd)) != "for brine" {
		t.Errorf("motd = %q %v", motd, err)
	}
	deleteStack(t, l.Lab, name)
	if left := l.minions(t); len(left) != 0 || len(l.Nova.Instances()) != 0 || l.Nova.Ports() != 0 {
		t.Errorf("left: minions %v, instances %v, %d ports", left, l.Nova.Instances(), l.Nova.Ports())
	}
	if u := l.Nova.Unknown(); len(u) != 0 {
		t.Logf("requests without an answer: %v", u)
	}

	t.Run("Examples", func(t *testing.T) { l.examples(t) })
	t.Run("SignalsSurvive", func(t *testing.T) { l.signalsSurvive(t) })
	t.Run("RunsOnce", func(t *testing.T) { l.runsOnce(t) })
	t.Run("Failures", func(t *testing.T) { l.failures(t) })
	t.Run("BadInput", func(t *testing.T) { l.badInput(t) })
}

// noKeystone checks that the stack has no user domain project, which means that Heat created no user for the server.
func (l *novaLab) noKeystone(t *testing.T, name string) {
	t.Helper()
	meta, err := l.Heat.Metadata(testContext(t), name, "server")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"os-collect-config"} {
		if v, ok := meta[key]; ok {
			t.Errorf("the server's metadata has %s: %v", key, v)
		}
	}
}

// failures: Heat's reason contains what fails on the machine, by name.
func (l *novaLab) failures(t *testing.T) {
	const head = `
heat_template_version: 2018-08-31
resources:
  server:
    type: OS::Salt::Server
    properties: {image: debian, flavor: small, networks: [{network: private}], user_data_format: RAW, user_data: "#!/bin/sh\nexit 0\n"}
  x:
    properties:
`
	for name, c := range map[string]struct{ kind, properties, want string }{
		"state":   {"OS::Salt::State", `{server: {get_resource: server}, sls: "broken: {cmd.run: [{name: exit 3}]}\nfine: {test.nop: []}"}`, `1 of 2 states failed: broken (cmd.run): Command "exit 3" run`},
		"compile": {"OS::Salt::State", `{server: {get_resource: server}, sls: "a: {{ nothing.at.all }}"}`, "the states do not compile: "},
		"job":     {"OS::Salt::Job", `{targets: [{get_resource: server}], function: no.such}`, "no.such succeeded on 0 of 1 minions, 1 are needed"},
		"wait":    {"OS::Salt::WaitCondition", `{server: {get_resource: server}, tag: never, timeout: 3}`, "0 of 1 received in 3 seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(head, "  x:\n    properties:\n", "  x:\n    type: "+c.kind+"\n    properties: "+c.properties+"\n", 1)
			stack := stackOf(t, l.Lab, text, lab.StackArgs{})
			if s := waitStack(t, l.Lab, stack, "CREATE_FAILED"); !strings.Contains(s.Reason, c.want) {
				t.Errorf("reason %q, want %q", s.Reason, c.want)
			}
		})
	}
}

// badInput: Heat refuses invalid properties before it creates anything.
func (l *novaLab) badInput(t *testing.T) {
	for name, c := range map[string][2]string{
		"unknown property": {`{type: OS::Salt::State, properties: {server: s, sls: x, color: red}}`, "Unknown Property color"},
		"no sls":           {`{type: OS::Salt::State, properties: {server: s}}`, "Property sls not assigned"},
		"function":         {`{type: OS::Salt::Job, properties: {targets: [s], function: rm -rf}}`, "does not match pattern"},
		"targets":          {`{type: OS::Salt::Job, properties: {function: test.ping}}`, "one of targets and target is required"},
		"count":            {`{type: OS::Salt::WaitCondition, properties: {server: s, tag: x, timeout: 5, count: 0}}`, "0 is out of range"},
		"both":             {`{type: OS::Salt::WaitCondition, properties: {server: s, servers: [s], tag: x, timeout: 5}}`, "at the same time"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Heat.Create(testContext(t), "bad", "heat_template_version: 2018-08-31\nresources:\n  r: "+c[0]+"\n", lab.StackArgs{})
			if err == nil {
				deleteStack(t, l.Lab, "bad")
			}
			if err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("%v, want %q", err, c[1])
			}
		})
	}
	if n := len(maps.Collect(maps.All(l.guests))); n == 0 {
		t.Error("no guest was ever booted")
	}
}
