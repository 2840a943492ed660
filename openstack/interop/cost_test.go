//go:build openstack

package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// cost is what one kind of guest costs while it idles.
type cost struct {
	name      string
	pss       int64
	processes int
	requests  float64 // to heat-api and heat-api-cfn, per hour
	image     int64   // bytes of the program, 0 for packages
}

// privateLab starts a lab whose services nobody else asks.
func privateLab(t *testing.T, engines int) *lab.Lab {
	t.Helper()
	opts := labOptions()
	opts.Engines = engines
	l, err := lab.Start(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.LogsOf("engine-*", 12000))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestCost prints what an idle guest costs: in mode B, in mode A, and with os-collect-config. The window is a minute, five with
// BRINE_OPENSTACK=full, and requests are extrapolated to an hour.
func TestCost(t *testing.T) {
	window := time.Minute
	if os.Getenv("BRINE_OPENSTACK") == "full" {
		window = 5 * time.Minute
	}
	ctx := testContext(t)
	l := privateLab(t, 1)
	name := stackOf(t, l, `
heat_template_version: 2018-08-31
resources:
  b: {type: OS::Salt::Minion}
  a: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  original: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  c: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: "#!/bin/sh\necho here\n"}}
  first: {type: OS::Salt::SoftwareDeployment, properties: {server: {get_resource: b}, config: {get_resource: c}}}
`, lab.StackArgs{})
	data, err := userData(ctx, l, name, "b")
	if err != nil {
		t.Fatal(err)
	}
	b := guestOf(t, l, "b")
	begin := time.Now()
	if _, err := bootMinion(b, data, ours("brine-minion")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Heat.WaitResource(ctx, name, "first", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
		t.Fatal(err)
	}
	first := time.Since(begin)
	waitStack(t, l, name, "CREATE_COMPLETE")
	collect := func(resource string, argv ...string) *lab.Guest {
		t.Helper()
		conf, err := collectConfig(ctx, l, name, resource)
		if err != nil {
			t.Fatal(err)
		}
		g := guestOf(t, l, resource)
		// The same interval for both, os-collect-config's default.
		conf = strings.Replace(conf, "command = os-refresh-config\npolling_interval = 5", "command = true\npolling_interval = 30", 1)
		if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Start("agent", nil, argv...); err != nil {
			t.Fatal(err)
		}
		return g
	}
	a := collect("a", ours("heat-minion"), "minion", "-c", "/etc/salt")
	original := collect("original", originalSet(t).Program("os-collect-config"), "--config-file", "/etc/os-collect-config.conf")
	// Both have polled once when Heat was asked again: the first request was this test's.
	for requestsFor(t, l, "/a/metadata") < 2 || requestsFor(t, l, "/original/metadata") < 2 {
		if ctx.Err() != nil {
			t.Fatalf("a guest does not poll: %s", l.LogsOf("heat-api", 3000))
		}
		time.Sleep(100 * time.Millisecond)
	}
	before := map[string]int{"a": requestsFor(t, l, "/a/metadata"), "original": requestsFor(t, l, "/original/metadata")}
	time.Sleep(window) // what is measured is an hour's idling in small
	perHour := func(n int) float64 { return float64(n) * float64(time.Hour) / float64(window) }
	costs := []cost{
		measure(t, "mode B, brine-minion", b, ours("brine-minion"), 0),
		measure(t, "mode A, heat-minion", a, ours("heat-minion"), perHour(requestsFor(t, l, "/a/metadata")-before["a"])),
		measure(t, "os-collect-config", original, "", perHour(requestsFor(t, l, "/original/metadata")-before["original"])),
	}
	t.Logf("first deployment complete %.1f s after the start of the guest's minion (mode B)", first.Seconds())
	for _, c := range costs {
		t.Logf("%-22s %6.1f MB PSS  %d processes  %6.0f requests/h to heat-api (from %v)  program %.1f MB", c.name, float64(c.pss)/1e6, c.processes,
			c.requests, window, float64(c.image)/1e6)
	}
	if costs[1].requests > costs[2].requests+perHour(1) {
		t.Errorf("mode A asks Heat %.0f times an hour, os-collect-config %.0f times", costs[1].requests, costs[2].requests)
	}
	if costs[2].requests < 20 {
		t.Errorf("os-collect-config asks Heat %.0f times an hour only: the comparison is not one", costs[2].requests)
	}
}

func measure(t *testing.T, name string, g *lab.Guest, program string, requests float64) cost {
	t.Helper()
	procs, err := g.Processes()
	if err != nil || len(procs) == 0 {
		t.Fatalf("%s: nothing runs in the guest: %v", name, err)
	}
	c := cost{name: name, requests: requests, processes: len(procs)}
	for _, p := range procs {
		c.pss += p.PSS
	}
	if program != "" {
		st, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		c.image = st.Size()
	}
	return c
}

// requestsFor counts the requests to heat-api whose path contains a text. Of the two lines of a request in the log, one has a quote.
func requestsFor(t *testing.T, l *lab.Lab, path string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("%s/log/heat-api.log", l.Dir))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, path) && strings.Contains(line, `"GET `) {
			n++
		}
	}
	return n
}
