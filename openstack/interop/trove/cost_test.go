//go:build openstack && trove

package trove

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// cost is what an agent costs an instance.
type cost struct {
	name      string
	memory    int64 // bytes, of all processes of the agent together, the mean over the window
	processes int
	image     int64         // bytes that the agent adds to an image
	answered  time.Duration // from its start until it answers a call that was sent before
}

// lessMemory is how many times less memory our agent must have than Trove's. idleMemory is the most that it may have.
const (
	lessMemory = 10
	idleMemory = 8 << 20
)

// TestTroveCost prints what an idle agent costs an instance, and holds ours: trove-minion, and Trove's own agent as Debian has it. Both report
// the state of the database every 30 s, which is Trove's default. The window is a minute, five with BRINE_OPENSTACK=full.
//
// Trove's agent also wants a Docker daemon in the instance. It gets one that has no container, whose memory is not counted.
func TestTroveCost(t *testing.T) {
	window := time.Minute
	if os.Getenv("BRINE_OPENSTACK") == "full" {
		window = 5 * time.Minute
	}
	ours, theirs := create(t, "ours", "10.11"), create(t, "theirs", broker)
	healthy(t, ours)
	healthy(t, theirs)
	a, b := guestOf(t, "ours"), guestOf(t, "theirs")

	a.end(t)
	must(t, a.WriteFile("/etc/salt/minion", image(30), 0o600))
	b.end(t)
	standIn := b.argv
	b.argv = []string{"/usr/bin/python3", "/usr/bin/trove-guestagent", "--config-dir=/etc/trove/conf.d"}
	must(t, b.WriteFile("/etc/trove/conf.d/lab.conf", "[mariadb]\ndevice_path = volume\nmount_point = /var/lib/mysql\n", 0o600))
	must(t, b.WriteFile("/opt/trove-guestagent/.guestagent.prepare.end", "", 0o600))
	program, err := os.ReadFile("testdata/docker.py")
	must(t, err)
	must(t, b.WriteFile("/opt/docker.py", string(program), 0o755))
	docker, err := b.Start("docker", nil, "/usr/bin/python3", "/opt/docker.py", "/run/docker.sock")
	must(t, err)
	defer func() { // what Trove deletes must answer
		b.end(t)
		must(t, docker.Signal(syscall.SIGTERM))
		b.argv = standIn
		must(t, b.run())
	}()

	small := cost{name: "trove-minion", image: sizeOf(t, filepath.Join(bin, "trove-minion")), answered: answers(t, a, pingByOrder(t, ours))}
	today := cost{name: "Trove's agent in Python", image: packagesOf(t, "trove-common", "python3-trove"), answered: answers(t, b, pingByBroker(t, theirs))}
	time.Sleep(30 * time.Second) // both have sent a heartbeat, and ours has given back what its start needed
	looks := int64(0)
	for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(2 * time.Second) {
		looks++
		small.look(t, a)
		today.look(t, b)
	}
	heartbeat(t, ours)
	heartbeat(t, theirs)
	t.Log("| agent | memory | processes | added to the image | answers after its start |")
	for _, c := range []*cost{&small, &today} {
		c.memory /= looks
		t.Logf("| %s | %.1f MB | %d | %.0f MB | %.1f s |", c.name, float64(c.memory)/1e6, c.processes, float64(c.image)/1e6, c.answered.Seconds())
	}
	t.Logf("trove-minion has %.1f times less memory", float64(today.memory)/float64(small.memory))
	if small.memory > idleMemory {
		t.Errorf("%.1f MB of memory are more than %.1f", float64(small.memory)/1e6, float64(idleMemory)/1e6)
	}
	if small.memory*lessMemory > today.memory {
		t.Errorf("%.1f MB of memory are more than 1/%d of %.1f", float64(small.memory)/1e6, lessMemory, float64(today.memory)/1e6)
	}
	if small.answered > today.answered {
		t.Errorf("trove-minion answers after %s, Trove's agent after %s", small.answered, today.answered)
	}
}

// look adds the memory that a guest's agent has now.
func (c *cost) look(t *testing.T, g *guest) {
	t.Helper()
	procs := g.agents(t)
	if len(procs) == 0 {
		t.Fatalf("%s does not run:\n%s", c.name, cloudL.LogsOf("guest-*-agent", 3000))
	}
	memory, err := lab.MemoryOf(procs)
	must(t, err)
	c.memory += memory
	c.processes = max(c.processes, len(procs))
}

// answers starts an agent and returns how long it takes until the call that ping waits for is answered.
func answers(t *testing.T, g *guest, ping func()) time.Duration {
	t.Helper()
	begin := time.Now()
	must(t, g.run())
	ping()
	return time.Since(begin)
}

// pingByOrder sends a call for an agent that does not run, and returns what waits for the answer.
func pingByOrder(t *testing.T, id string) func() {
	t.Helper()
	const name = "cost-ping"
	if code, answer := request(t, "POST", "/v1/jobs", map[string]any{"id": name, "tgt": []string{id}, "fun": "trove.rpc_ping", "ttl": 240}); code >= 300 {
		t.Fatalf("HTTP %d: %s", code, answer)
	}
	return func() { awaitOrder(t, name, id) }
}

// pingByBroker is pingByOrder for an agent on the message broker.
func pingByBroker(t *testing.T, id string) func() {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-W", "ignore", "testdata/ping.py", filepath.Join(cloudL.Dir, "trove", "trove.conf"), id)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the caller says %q, want %q: %v", lines.Text(), want, lines.Err())
		}
	}
	next("calling")
	time.Sleep(2 * time.Second) // until the call is in the guest's queue
	return func() {
		next("answered")
		must(t, cmd.Wait())
	}
}

func sizeOf(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	return info.Size()
}

// packagesOf returns how many bytes some Debian packages have with all that they depend on, but for what every Debian has.
func packagesOf(t *testing.T, names ...string) int64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "dpkg-query", "-W", "-f",
		"${db:Status-Abbrev}\t${Package}\t${Priority}\t${Installed-Size}\t${Pre-Depends},${Depends}\t${Provides}\n").Output()
	must(t, err)
	type pkg struct {
		size    int64
		base    bool
		depends string
	}
	installed := map[string]*pkg{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 6 || !strings.HasPrefix(f[0], "ii") {
			continue
		}
		kib, err := strconv.ParseInt(f[3], 10, 64)
		must(t, err)
		p := &pkg{kib << 10, slices.Contains([]string{"required", "important", "standard"}, f[2]), f[4]}
		installed[f[1]] = p
		for _, name := range packageNames(f[5], ",") {
			if installed[name] == nil {
				installed[name] = p
			}
		}
	}
	seen, sum := map[*pkg]bool{}, int64(0)
	var add func(name string) bool
	add = func(name string) bool {
		p := installed[name]
		if p == nil {
			return false
		}
		if seen[p] || p.base {
			return true
		}
		seen[p] = true
		sum += p.size
		for _, either := range strings.Split(p.depends, ",") {
			if slices.ContainsFunc(packageNames(either, "|"), add) {
				continue
			}
			if strings.TrimSpace(either) != "" {
				t.Errorf("%s needs %s, which is not installed", name, either)
			}
		}
		return true
	}
	for _, name := range names {
		if !add(name) {
			t.Fatalf("the package %s is not installed", name)
		}
	}
	return sum
}

// packageNames are the names in a relation of packages, without versions and architectures.
func packageNames(relation, separator string) []string {
	var names []string
	for _, one := range strings.Split(relation, separator) {
		if f := strings.Fields(one); len(f) > 0 {
			name, _, _ := strings.Cut(f[0], ":")
			names = append(names, name)
		}
	}
	return names
}

// awaitOrder waits until an order has returned, and fails the test unless it succeeded.
func awaitOrder(t *testing.T, name, id string) any {
	t.Helper()
	var out order
	for end := time.Now().Add(patience); !out.Done && time.Now().Before(end); {
		code, answer := request(t, "GET", "/v1/jobs/"+name+"?wait=15", nil)
		if code >= 300 {
			t.Fatalf("HTTP %d: %.500s", code, answer)
		}
		must(t, json.Unmarshal(answer, &out))
	}
	if r := out.Minions[id]; r.Status != "returned" || !r.Success {
		t.Fatalf("%s: %+v", name, out)
	}
	return out.Minions[id].Return
}
