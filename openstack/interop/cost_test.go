//go:build openstack

package interop

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// cost is the cost of one kind of idle guest.
type cost struct {
	name      string
	memory    int64 // bytes, of all processes together, the mean over the window
	processes int
	requests  float64 // to heat-api, per hour
	image     int64   // bytes that the programs add to an image
	// first is the time from the start of the agent, with the network up, to the end of its first deployment.
	first time.Duration
}

// lessRequests is how many times fewer requests a guest in mode B must make than os-collect-config, and lessMemory
// how many times less memory a guest in either mode must need. goalFirstDone is the goal for the first deployment. It
// is only checked in the long window, since a busy machine is slower.
const (
	lessRequests  = 20
	lessMemory    = 10
	goalFirstDone = 3 * time.Second
)

// privateLab starts a lab that no other test uses.
func privateLab(t *testing.T, engines int) *lab.Lab {
	t.Helper()
	opts := labOptions()
	opts.Engines = engines
	return startLab(t, opts)
}

// startLab starts a lab that is stopped at the end of the test.
func startLab(t *testing.T, opts lab.Options) *lab.Lab {
	t.Helper()
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

// TestCost prints the cost of an idle guest in mode B, in mode A, and with os-collect-config as in images, and checks
// its memory and requests. The window is a minute, or five with BRINE_OPENSTACK=full; requests are extrapolated to an
// hour.
//
// The original programs are one process while idle: os-refresh-config and os-apply-config run after a change, and
// cfn-hup of heat-cfntools runs once per run of cron.
func TestCost(t *testing.T) {
	window := time.Minute
	if os.Getenv("BRINE_OPENSTACK") == "full" {
		window = 5 * time.Minute
	}
	l := privateLab(t, 1)
	ctx := testContext(t)
	name := stackOf(t, l, `
heat_template_version: 2018-08-31
resources:
  b: {type: OS::Salt::Minion}
  a: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  original: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  c: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: "#!/bin/sh\necho here\n"}}
  first: {type: OS::Salt::SoftwareDeployment, properties: {server: {get_resource: b}, config: {get_resource: c}}}
  second: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: a}, config: {get_resource: c}}}
  third: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: original}, config: {get_resource: c}}}
`, lab.StackArgs{})
	complete := func(deployment string) {
		t.Helper()
		if _, err := l.Heat.WaitResource(ctx, name, deployment, func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
			t.Fatal(err)
		}
	}
	data, err := userData(ctx, l, name, "b")
	if err != nil {
		t.Fatal(err)
	}
	a, b, original := guestOf(t, l, "a"), guestOf(t, l, "b"), guestOf(t, l, "original")
	conf := func(resource string) string {
		t.Helper()
		conf, err := collectConfig(ctx, l, name, resource)
		if err != nil {
			t.Fatal(err)
		}
		// both have os-collect-config's default interval
		return strings.Replace(conf, "polling_interval = 5", "polling_interval = 30", 1)
	}
	// boot starts the agent of a guest with a waiting deployment.
	boot := func(deployment string, start func() error) time.Duration {
		t.Helper()
		if _, err := l.Heat.WaitResource(ctx, name, deployment, func(r *lab.Resource) bool { return r != nil && r.PhysicalID != "" }); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := start(); err != nil {
			t.Fatal(err)
		}
		complete(deployment)
		took := time.Since(begin)
		t.Logf("the deployment %s was complete %.1f s after the start of its guest's agent", deployment, took.Seconds())
		return took
	}
	var pushed, polling, today cost
	pushed.first = boot("first", func() error {
		_, err := bootMinion(b, data, ours("brine-minion"))
		return err
	})
	if err := a.WriteFile("/etc/os-collect-config.conf", conf("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	polling.first = boot("second", func() error {
		_, err := a.Start("agent", nil, ours("heat-minion"), "minion", "-c", "/etc/salt")
		return err
	})
	set, theirs := originalSet(t), conf("original")
	today.first = boot("third", func() error {
		_, err := set.Start(original, theirs, "")
		return err
	})
	waitStack(t, l, name, "CREATE_COMPLETE")
	asked := func() map[string]int {
		n := map[string]int{}
		for _, guest := range []string{"a", "b", "original"} {
			n[guest] = requestsFor(t, l, "/"+guest+"/metadata")
		}
		return n
	}
	// After a change both poll every second, and double that pause up to the interval: the seventh poll from here is
	// an interval away.
	for settled := asked(); ; time.Sleep(200 * time.Millisecond) {
		n := asked()
		if n["a"] >= settled["a"]+6 && n["original"] >= settled["original"]+6 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("a guest does not poll: %s", l.LogsOf("heat-api", 3000))
		}
	}
	before := asked()
	// What is measured is an hour's idling in small. Most looks are at guests that sleep, some at guests that poll or prove to be alive.
	looks := 0
	for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(2 * time.Second) {
		looks++
		pushed.look(t, b)
		polling.look(t, a)
		today.look(t, original)
	}
	after := asked()
	hour := func(n int) float64 { return float64(n) * float64(time.Hour) / float64(window) }
	perHour := func(guest string) float64 { return hour(after[guest] - before[guest]) }
	size, err := set.Size()
	if err != nil {
		t.Fatal(err)
	}
	pushed.name, pushed.image, pushed.requests = "mode B, brine-minion", fileSize(t, ours("brine-minion")), perHour("b")
	polling.name, polling.image, polling.requests = "mode A, heat-minion", fileSize(t, ours("heat-minion")), perHour("a")
	today.name, today.image, today.requests = "today, os-collect-config", size, perHour("original")
	for _, c := range []*cost{&pushed, &polling, &today} {
		c.memory /= int64(looks)
	}
	t.Log("| guest | memory | processes | requests to heat-api an hour | added to the image | first deployment complete after |")
	for _, c := range []cost{pushed, polling, today} {
		t.Logf("| %s | %.1f MB | %d | %.0f | %.1f MB | %.1f s |", c.name, float64(c.memory)/1e6, c.processes, c.requests, float64(c.image)/1e6, c.first.Seconds())
	}
	for _, c := range []cost{pushed, polling} {
		t.Logf("%s has %.1f times less memory than os-collect-config", c.name, float64(today.memory)/float64(c.memory))
	}
	least := int64(lessMemory)
	if window < 5*time.Minute {
		least = lessMemory * 8 / 10 // in a minute, one-time work of the minion weighs five times as much
	}
	for _, c := range []cost{pushed, polling} {
		if window >= 5*time.Minute && c.first > goalFirstDone {
			t.Errorf("%s: the first deployment was complete after %v, the goal is %v", c.name, c.first, goalFirstDone)
		}
		if c.memory*least > today.memory {
			t.Errorf("%s: %.1f MB of memory are more than 1/%d of os-collect-config's %.1f", c.name, float64(c.memory)/1e6, least, float64(today.memory)/1e6)
		}
	}
	if pushed.requests*lessRequests > today.requests {
		t.Errorf("mode B asks Heat %.0f times an hour, os-collect-config %.0f times", pushed.requests, today.requests)
	}
	if polling.requests > today.requests+hour(1) { // the start of the window between two polls may cause a difference of one
		t.Errorf("mode A asks Heat %.0f times an hour, os-collect-config %.0f times", polling.requests, today.requests)
	}
	if today.requests < 20 {
		t.Errorf("os-collect-config asks Heat %.0f times an hour only: the comparison is not one", today.requests)
	}
}

// look adds the current memory of a guest.
func (c *cost) look(t *testing.T, g *lab.Guest) {
	t.Helper()
	procs, err := g.Processes()
	if err != nil || len(procs) == 0 {
		t.Fatalf("%s: nothing runs in the guest: %v", g.Name, err)
	}
	memory, err := g.Memory()
	if err != nil {
		t.Fatal(err)
	}
	c.memory += memory
	c.processes = max(c.processes, len(procs))
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// requestsFor returns the number of requests to heat-api whose path contains a text.
func requestsFor(t *testing.T, l *lab.Lab, path string) int {
	t.Helper()
	return countLines(t, l, "heat-api", path, `"GET `)
}

// requestsTo returns the number of requests to one of Heat's APIs.
func requestsTo(t *testing.T, l *lab.Lab, service string) int {
	t.Helper()
	return countLines(t, l, service, " HTTP/1.", `" `)
}

// countLines returns the number of lines in a service's log that contain all texts.
func countLines(t *testing.T, l *lab.Lab, service string, texts ...string) int {
	t.Helper()
	b, err := os.ReadFile(l.Service(service).Log)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			n++
		}
	}
	return n
}
