//go:build openstack

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/lab"
	"github.com/brine-salt/brine/protocol/transport/transporttest/certs"
)

// ownNetwork is the environment variable of a process that runs one test in its own network. Its value is the
// directory of brine's programs.
const ownNetwork = "BRINE_OPENSTACK_NETWORK"

// inOwnNetwork runs the calling test again in a process with its own network, since the test uses the addresses and
// ports of the documentation. It reports whether this is that process.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownNetwork) != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), ownNetwork+"="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// snippet returns the text of a snippet of docs/openstack/heat.md by the name behind its fence.
func snippet(t *testing.T, name string) string {
	t.Helper()
	return snippetOf(t, "heat.md", name)
}

// snippetOf is snippet for any page of docs/openstack.
func snippetOf(t *testing.T, file, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/openstack/" + file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^( *)```\\w+ " + name + "\n(.*?)^ *```$").FindStringSubmatch(string(page))
	if m == nil {
		t.Fatalf("%s has no snippet %s", file, name)
	}
	var b strings.Builder
	for line := range strings.Lines(m[2]) {
		b.WriteString(strings.TrimPrefix(line, m[1]))
	}
	return b.String()
}

// settings reads a snippet of heat.conf.
func settings(t *testing.T, name string, replace *strings.Replacer) map[string]map[string]string {
	t.Helper()
	out, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(snippet(t, name)) {
		line = strings.TrimSpace(line)
		if s, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(s, "]")
			out[section] = map[string]string{}
			continue
		}
		k, v, ok := strings.Cut(line, " = ")
		if !ok || section == "" {
			t.Fatalf("the snippet %s has the line %q", name, line)
		}
		out[section][k] = replace.Replace(v)
	}
	return out
}

// The addresses of the documentation: of two hosts with an engine each, and a virtual one before them.
var engineAddresses = []string{"192.0.2.11", "192.0.2.12"}

const virtualAddress = "192.0.2.10"

// An operation is a Heat of two engine hosts and what its operator does there. Paths of heat.md are below root.
type operation struct {
	*lab.Lab
	root  string
	paths *strings.Replacer
	net   *lab.Network
	// guests are the guests in the tenant's network, by name.
	guests map[string]*lab.Guest
}

// TestHeatOperator follows docs/openstack/heat.md with its snippets, on a Heat that always has stacks. Guests are in
// a tenant's network, behind a router that forwards only the documented connections.
func TestHeatOperator(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	o := startOperation(t, ctx)
	tables := o.tables(t, ctx)
	users := o.count(t, ctx, "select count(*) from keystone.user")
	began := time.Now()
	step := func(name string, f func(t *testing.T)) {
		t.Helper()
		ok := t.Run(name, f)
		t.Logf("%s: %.1f s", name, time.Since(began).Seconds())
		if began = time.Now(); !ok {
			t.FailNow()
		}
	}
	step("Before", func(t *testing.T) { o.before(t, ctx) })
	step("Install", func(t *testing.T) { o.install(t, ctx) })
	step("EarlierStack", func(t *testing.T) { o.earlierStack(t, ctx, users) })
	step("Upgrade", func(t *testing.T) { o.upgrade(t, ctx) })
	step("VirtualAddress", func(t *testing.T) { o.virtual(t, ctx) })
	step("TLS", func(t *testing.T) { o.tls(t, ctx) })
	step("Remove", func(t *testing.T) { o.remove(t, ctx, tables) })
}

func startOperation(t *testing.T, ctx context.Context) *operation {
	t.Helper()
	root := t.TempDir()
	plugins, site := filepath.Join(root, "usr/lib/heat"), filepath.Join(root, "usr/local/lib/python3.11/dist-packages")
	for _, dir := range []string{plugins, site, filepath.Join(root, "usr/bin"), filepath.Join(root, "etc/heat")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := &operation{root: root, guests: map[string]*lab.Guest{}, paths: strings.NewReplacer("/usr/", root+"/usr/", "/etc/", root+"/etc/")}
	var err error
	o.Lab, err = lab.Start(ctx, lab.Options{Logf: t.Logf, Engines: 2, Plugins: []string{plugins},
		EngineEnv: []string{"PYTHONPATH=" + site, "PATH=" + filepath.Join(root, "usr/bin") + ":/usr/bin:/bin"},
		// Both are on one host here.
		EngineHeat: func(n int) map[string]map[string]string {
			return map[string]map[string]string{"brine": {"interface": engineAddresses[n], "directory": filepath.Join(root, fmt.Sprint("home-", n))}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(o.LogsOf("engine-*", 12000))
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	if o.net, err = o.StartNetwork(ctx, engineAddresses...); err != nil {
		t.Fatal(err)
	}
	return o
}

// heatPlain is a template of Heat's own types that runs a script on two servers that are there already.
const heatPlain = `
heat_template_version: 2018-08-31
parameters:
  one: {type: string}
  two: {type: string}
resources:
  c:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: "#!/bin/sh\nmkdir -p /var/lib/lab; echo run >>/var/lib/lab/runs; hostname\n"}
  d1: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_param: one}, config: {get_resource: c}}}
  d2: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_param: two}, config: {get_resource: c}}}
outputs:
  one: {value: {get_attr: [d1, deploy_stdout]}}
  two: {value: {get_attr: [d2, deploy_stdout]}}
`

// twoServers are servers of which nothing but the minions is made here.
const twoServers = `
heat_template_version: 2018-08-31
resources:
  s1: {type: OS::Salt::Minion}
  s2: {type: OS::Salt::Minion}
outputs:
  one: {value: {get_resource: s1}}
  two: {value: {get_resource: s2}}
`

// pair creates a stack of two servers, boots them in the tenant's network, and deploys to them by a stack of Heat's own types.
func (o *operation) pair(t *testing.T, ctx context.Context, name string, prepare func(g *lab.Guest)) (servers, stack string, guests []*lab.Guest) {
	t.Helper()
	servers, stack = name+"-servers", name
	o.create(t, ctx, servers, twoServers, nil)
	s := o.complete(t, ctx, servers)
	for _, r := range []string{"s1", "s2"} {
		guests = append(guests, o.boot(t, ctx, servers, r, prepare))
	}
	o.create(t, ctx, stack, heatPlain, s.Outputs())
	want := map[string]any{"one": guests[0].Name + "\n", "two": guests[1].Name + "\n"}
	if d := cmp.Diff(want, o.complete(t, ctx, stack).Outputs()); d != "" {
		t.Error(d)
	}
	return servers, stack, guests
}

func (o *operation) create(t *testing.T, ctx context.Context, name, template string, parameters map[string]any) {
	t.Helper()
	if _, err := o.Heat.Create(ctx, name, template, lab.StackArgs{Parameters: parameters}); err != nil {
		t.Fatal(err)
	}
}

func (o *operation) complete(t *testing.T, ctx context.Context, name string) *lab.Stack {
	t.Helper()
	s, err := o.Heat.Wait(ctx, name, "CREATE_COMPLETE")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (o *operation) delete(t *testing.T, ctx context.Context, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := o.Heat.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if err := o.Heat.WaitGone(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
}

// boot boots a guest in the tenant's network.
func (o *operation) boot(t *testing.T, ctx context.Context, stack, resource string, prepare func(*lab.Guest)) *lab.Guest {
	t.Helper()
	data, err := userData(ctx, o.Lab, stack, resource)
	if err != nil {
		t.Fatal(err)
	}
	port, err := o.net.Port(ctx, fmt.Sprintf("10.0.0.%d", 21+len(o.guests)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := o.StartGuestAt(ctx, stack+"-"+resource, port)
	if err != nil {
		t.Fatal(err)
	}
	o.guests[g.Name] = g
	if prepare != nil {
		prepare(g)
	}
	if _, err := bootMinion(g, data, ours("brine-minion")); err != nil {
		t.Fatal(err)
	}
	return g
}

// configure changes heat.conf by a snippet and restarts the engines.
func (o *operation) configure(t *testing.T, ctx context.Context, snippet string) {
	t.Helper()
	if err := o.Configure(settings(t, snippet, o.paths)); err != nil {
		t.Fatal(err)
	}
	o.restart(t, ctx)
}

// restart restarts the engines, as after a change of heat.conf.
func (o *operation) restart(t *testing.T, ctx context.Context) {
	t.Helper()
	errs := make([]error, len(engineAddresses))
	var wg sync.WaitGroup
	for n := range errs {
		wg.Go(func() { errs[n] = o.RestartEngine(ctx, n, syscall.SIGTERM) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// shell runs a snippet in a directory with what the operator has: the program and the sources. It returns what the snippet printed.
func (o *operation) shell(t *testing.T, ctx context.Context, name string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	sources, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"brine-master": ours("brine-master"), "openstack": sources} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", o.paths.Replace(snippet(t, name)))
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), o.Env()...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the snippet %s: %v\n%s", name, err, out)
	}
	return string(out)
}

func (o *operation) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (o *operation) plugin() string { return filepath.Join(o.root, "usr/lib/heat/salt.py") }

func (o *operation) mapping() string { return filepath.Join(o.EnvironmentDir(), "salt.yaml") }

func (o *operation) socket(n int) string {
	return filepath.Join(o.root, fmt.Sprint("home-", n), "api.sock")
}

func (o *operation) count(t *testing.T, ctx context.Context, q string) int {
	t.Helper()
	out, err := o.SQL(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (o *operation) tables(t *testing.T, ctx context.Context) []string {
	t.Helper()
	out, err := o.SQL(ctx, "select table_name from information_schema.tables where table_schema = 'heat' order by 1")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)
}

func (o *operation) knows(t *testing.T, ctx context.Context, kind string) bool {
	t.Helper()
	types, err := o.Heat.ResourceTypes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(types, kind)
}

// masters returns the processes of brine-master.
func (o *operation) masters(t *testing.T) (pids []int) {
	t.Helper()
	for _, pid := range lab.Marked(o.Dir) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && strings.Contains(exe, "/brine-master") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitProgram waits until every engine has a master that is not of old and runs the installed program.
func (o *operation) awaitProgram(t *testing.T, ctx context.Context, old []int) {
	t.Helper()
	want, err := os.Stat(filepath.Join(o.root, "usr/bin/brine-master"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		n, pids := 0, o.masters(t)
		for _, pid := range pids {
			if got, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(got, want) && !slices.Contains(old, pid) {
				n++
			}
		}
		if n == len(engineAddresses) && len(pids) == n {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of the masters %v run the new program: %v; before there were %v", n, pids, ctx.Err(), old)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// usedOnly checks that guests connected to these addresses and tried no others.
func (o *operation) usedOnly(t *testing.T, ctx context.Context, addresses ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, a := range addresses {
		want[a+":4505"], want[a+":4506"] = true, true
	}
	used, err := o.net.Used(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, a := range used {
		got[a] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("where guests connected to:\n%s", d)
	}
	if dropped, err := o.net.Dropped(ctx); err != nil || len(dropped) > 0 {
		t.Errorf("the router dropped %v %v", dropped, err)
	}
}

// earlierTemplate is deployed by Heat's own transports before the plugin is installed.
const earlierTemplate = `
heat_template_version: 2018-08-31
resources:
  s: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  c: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: "#!/bin/sh\necho run >>/var/lib/runs\n"}}
  d: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: s}, config: {get_resource: c}}}
`

// before creates a stack of Heat's own types, with a polling agent.
func (o *operation) before(t *testing.T, ctx context.Context) {
	if o.knows(t, ctx, "OS::Salt::Minion") {
		t.Fatal("the plugin is there already")
	}
	o.create(t, ctx, "earlier", earlierTemplate, nil)
	conf, err := collectConfig(ctx, o.Lab, "earlier", "s")
	if err != nil {
		t.Fatal(err)
	}
	g, err := o.StartGuest(ctx, "earlier")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Start("agent", nil, ours("heat-minion"), "minion", "-c", "/etc/salt"); err != nil {
		t.Fatal(err)
	}
	o.complete(t, ctx, "earlier")
}

// install follows the steps of "Install". Then a stack of Heat's own types runs through the master, which guests
// reach as "Network" says.
func (o *operation) install(t *testing.T, ctx context.Context) {
	o.shell(t, ctx, "install")
	o.write(t, o.plugin(), snippet(t, "heat-plugin"))
	o.write(t, o.mapping(), snippet(t, "heat-environment"))
	o.configure(t, ctx, "heat-conf")
	if types := o.shell(t, ctx, "types"); !strings.Contains(types, "| OS::Salt::Minion ") || strings.Contains(types, "OS::Heat::") {
		t.Fatalf("the engines have these of the plugin's types:\n%s", types)
	}
	var allowed []string
	for _, a := range engineAddresses {
		allowed = append(allowed, a+":4505", a+":4506")
	}
	if err := o.net.Allow(ctx, allowed...); err != nil {
		t.Fatal(err)
	}
	_, _, guests := o.pair(t, ctx, "live", nil)
	for n := range engineAddresses {
		awaitPresent(t, ctx, o.socket(n), len(guests))
	}
	o.usedOnly(t, ctx, engineAddresses...)
}

// earlierStack: the stack from before the installation is updated and deleted as usual.
func (o *operation) earlierStack(t *testing.T, ctx context.Context, users int) {
	if n := o.count(t, ctx, "select count(*) from keystone.user"); n <= users {
		t.Errorf("keystone has %d users, had %d before the stack: it has no credentials", n, users)
	}
	o.shell(t, ctx, "update-again", "STACK=earlier")
	if _, err := o.Heat.Wait(ctx, "earlier", "UPDATE_COMPLETE"); err != nil {
		t.Fatal(err)
	}
	if n := o.count(t, ctx, "select count(*) from heat.orders where id like 'heat-%-d-%'"); n != 0 {
		t.Errorf("an update that changes nothing placed %d orders", n)
	}
	o.delete(t, ctx, "earlier")
	if n := o.count(t, ctx, "select count(*) from keystone.user"); n != users {
		t.Errorf("keystone has %d users, had %d before the stack: credentials are left", n, users)
	}
}

// upgrade replaces the program of the masters while a deployment runs. The deployment continues, and runs once.
func (o *operation) upgrade(t *testing.T, ctx context.Context) {
	const template = `
heat_template_version: 2018-08-31
parameters: {server: {type: string}}
resources:
  c:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: |
        #!/bin/sh
        echo run >>/var/lib/upgrade
        while [ ! -e /var/lib/go ]; do sleep 0.1; done
        echo went on
  d: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_param: server}, config: {get_resource: c}}}
outputs:
  said: {value: {get_attr: [d, deploy_stdout]}}
`
	s, err := o.Heat.Show(ctx, "live-servers")
	if err != nil {
		t.Fatal(err)
	}
	g := o.guests["live-servers-s1"]
	o.create(t, ctx, "running", template, map[string]any{"server": s.Outputs()["one"]})
	if _, err := g.WaitFile(ctx, "/var/lib/upgrade", nil); err != nil {
		t.Fatal(err)
	}
	old := o.masters(t)
	if len(old) != len(engineAddresses) {
		t.Fatalf("%d masters run", len(old))
	}
	o.shell(t, ctx, "upgrade")
	begin := time.Now()
	paths := o.paths
	for n := range engineAddresses {
		o.paths = strings.NewReplacer("/var/lib/heat/.brine/heat", filepath.Join(o.root, fmt.Sprint("home-", n)))
		o.shell(t, ctx, "end-master")
	}
	o.paths = paths
	o.awaitProgram(t, ctx, old)
	for n := range engineAddresses {
		awaitPresent(t, ctx, o.socket(n), 2)
	}
	t.Logf("after %.1f s both minions were connected to both new masters", time.Since(begin).Seconds())
	if err := g.WriteFile("/var/lib/go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	if out := o.complete(t, ctx, "running").Outputs(); out["said"] != "went on\n" {
		t.Errorf("outputs %v", out)
	}
	if b, err := g.ReadFile("/var/lib/upgrade"); err != nil || string(b) != "run\n" {
		t.Errorf("the script ran so: %q %v", b, err)
	}
	o.delete(t, ctx, "running")
}

// virtual: guests receive a virtual address and use no other. A guest without a route to it gets no deployments, and
// Heat says so.
func (o *operation) virtual(t *testing.T, ctx context.Context) {
	if err := o.net.Virtual(ctx, virtualAddress, []int{4505, 4506}, engineAddresses...); err != nil {
		t.Fatal(err)
	}
	if err := o.net.Allow(ctx, virtualAddress+":4505", virtualAddress+":4506"); err != nil {
		t.Fatal(err)
	}
	o.configure(t, ctx, "heat-conf-virtual")
	// The earlier guests know the engines' addresses and would use them.
	for _, g := range o.guests {
		g.PowerOff()
	}
	if err := o.net.Forget(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Heat.Create(ctx, "lonely", oneDeployment("script", "#!/bin/sh\n", "[]"), lab.StackArgs{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	data, err := userData(ctx, o.Lab, "lonely", "s0")
	if err != nil {
		t.Fatal(err)
	}
	port, err := o.net.PortWithoutRoute(ctx, "10.0.1.1")
	if err != nil {
		t.Fatal(err)
	}
	lonely, err := o.StartGuestAt(ctx, "lonely", port)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bootMinion(lonely, data, ours("brine-minion")); err != nil {
		t.Fatal(err)
	}
	_, _, guests := o.pair(t, ctx, "virtual", nil)
	for n := range engineAddresses {
		awaitPresent(t, ctx, o.socket(n), len(guests))
	}
	o.usedOnly(t, ctx, virtualAddress)
	s, err := o.Heat.Wait(ctx, "lonely", "CREATE_FAILED")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Reason, "undeliverable: ") {
		t.Errorf("without a route the stack's reason is %q", s.Reason)
	}
	o.delete(t, ctx, "lonely")
}

// tls: the same with TLS. A guest gets no deployments until it trusts the certificate.
func (o *operation) tls(t *testing.T, ctx context.Context) {
	good := certs.For(t, append(slices.Clone(engineAddresses), virtualAddress)...)
	for from, to := range map[string]string{"server.pem": "etc/heat/salt.pem", "server.key": "etc/heat/salt.key"} {
		b, err := os.ReadFile(filepath.Join(good, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.root, to), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	authority := func(dir string) func(*lab.Guest) {
		b, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return func(g *lab.Guest) {
			if err := g.WriteFile("/etc/ssl/salt-ca.pem", string(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	conf := settings(t, "heat-conf-tls", strings.NewReplacer("/etc/heat/", o.root+"/etc/heat/"))
	if err := o.Configure(conf); err != nil {
		t.Fatal(err)
	}
	o.restart(t, ctx)
	o.create(t, ctx, "doubtful", twoServers, nil)
	o.complete(t, ctx, "doubtful")
	g := o.boot(t, ctx, "doubtful", "s1", authority(certs.For(t, virtualAddress)))
	_, _, guests := o.pair(t, ctx, "tls", authority(good))
	awaitPresent(t, ctx, o.socket(0), len(guests))
	if err := waitLog(ctx, o.Service("guest-"+g.Name+"-minion"), "certificate signed by unknown authority"); err != nil {
		t.Fatal(err)
	}
	authority(good)(g)
	if err := g.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := startMinion(g, ours("brine-minion")); err != nil {
		t.Fatal(err)
	}
	awaitPresent(t, ctx, o.socket(0), len(guests)+1)
}

// remove follows the steps of "Remove the plugin with live stacks".
func (o *operation) remove(t *testing.T, ctx context.Context, tables []string) {
	if err := os.Remove(o.mapping()); err != nil {
		t.Fatal(err)
	}
	o.restart(t, ctx)
	// 1. Mapped stacks become Heat's own again.
	r, err := o.Heat.Resource(ctx, "live", "d1")
	if err != nil || r.Type != "OS::Heat::SoftwareDeployment" || r.Status != "CREATE_COMPLETE" {
		t.Errorf("a deployment that was mapped is %+v %v", r, err)
	}
	o.delete(t, ctx, "live", "virtual")
	// 2. Stacks with the plugin's types still need it.
	o.delete(t, ctx, "virtual-servers", "tls-servers", "doubtful")
	// 3. Remove the plugin. "tls" was mapped and is deleted without it; "live-servers" was forgotten.
	if err := os.Remove(o.plugin()); err != nil {
		t.Fatal(err)
	}
	o.restart(t, ctx)
	if o.knows(t, ctx, "OS::Salt::Minion") {
		t.Error("the engines still know the plugin's types")
	}
	if pids := o.masters(t); len(pids) != 0 {
		t.Errorf("masters run without the plugin: %v", pids)
	}
	o.delete(t, ctx, "tls")
	if err := o.Heat.Delete(ctx, "live-servers"); err == nil || !strings.Contains(err.Error(), "The Resource Type (OS::Salt::Minion) could not be found") {
		t.Errorf("without the plugin, deleting a stack of its types: %v", err)
	}
	if n := o.count(t, ctx, "select count(*) from heat.stack where name = 'live-servers' and deleted_at is null"); n != 1 {
		t.Error("without the plugin a stack of its types is gone, whose minions nobody revoked")
	}
	// Install it again for the forgotten stack.
	o.write(t, o.plugin(), snippet(t, "heat-plugin"))
	o.restart(t, ctx)
	o.delete(t, ctx, "live-servers")
	if err := os.Remove(o.plugin()); err != nil {
		t.Fatal(err)
	}
	o.restart(t, ctx)
	if _, err := o.SQL(ctx, "use heat;\n"+snippet(t, "remove-tables")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tables, o.tables(t, ctx)); d != "" {
		t.Errorf("tables before the installation and after the removal:\n%s", d)
	}
	o.create(t, ctx, "after", "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::RandomString}}\n", nil)
	o.complete(t, ctx, "after")
	o.delete(t, ctx, "after")
	if pids := o.masters(t); len(pids) != 0 {
		t.Errorf("masters run without the plugin: %v", pids)
	}
}
