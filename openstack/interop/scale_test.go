//go:build openstack

package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/heat"
	"github.com/brine-salt/brine/openstack/lab"
)

const (
	// largestStack is the maximum number of servers in one stack.
	largestStack = 100
	// steps is the number of deployments, in order, for each server.
	steps = 5
	// engines is the number of engines of the servers' Heat.
	engines = 2
)

// A kind is a way in which servers receive their deployments.
type kind struct {
	name string
	// server is the type of a server; attribute is the attribute with the data for its guest.
	server, attribute string
	deployment        string
	program           string
	// lay writes the files that the guest needs below its own root.
	lay func(g *lab.Guest, root string, attribute any) error
}

var (
	// pushed is mode B.
	pushed = kind{name: "pushed", server: "OS::Salt::Minion", attribute: "user_data", deployment: "OS::Salt::SoftwareDeployment",
		program: "brine-minion", lay: func(g *lab.Guest, root string, v any) error {
			return g.ApplySaltMinionAt(root, fmt.Sprint(v))
		}}
	// polled is Heat without the plugin, with its default transports: servers poll heat-api-cfn, and signal there. The
	// agent is ours, because so many original agents would need the memory and the processors that Heat has here. It
	// polls as often as the original.
	polled = kind{name: "polled", server: "OS::Heat::DeployedServer", attribute: "os_collect_config", deployment: "OS::Heat::SoftwareDeployment",
		program: "heat-minion", lay: func(g *lab.Guest, root string, v any) error {
			conf := heat.FromMetadata(map[string]any{"os-collect-config": v})
			if conf == nil {
				return fmt.Errorf("%v is no configuration of os-collect-config", v)
			}
			return errors.Join(g.WriteFile(root+"/etc/os-collect-config.conf", conf.Text(), 0o600),
				g.WriteFile(root+"/etc/salt/minion", fmt.Sprintf("root_dir: %[1]s\nheat: {root: %[1]s}\n", root), 0o600))
		}}
)

// A crowd is many servers of a kind. The agents are processes in one guest, each with its own configuration.
type crowd struct {
	kind
	lab     *lab.Lab
	guest   *lab.Guest
	servers []string // ids
}

// startCrowd creates n servers in stacks, and starts their agents.
func startCrowd(t *testing.T, ctx context.Context, l *lab.Lab, k kind, n int) *crowd {
	t.Helper()
	c := &crowd{kind: k, lab: l, guest: guestOf(t, l, k.name)}
	for first := 0; first < n; first += largestStack {
		last := min(first+largestStack, n)
		var resources, data, ids strings.Builder
		// Heat sleeps a second after each resource of a stack without dependencies. So the servers depend on one
		// resource.
		resources.WriteString("  before: {type: OS::Heat::Value, properties: {value: 0}}\n")
		for i := first; i < last; i++ {
			fmt.Fprintf(&resources, "  s%d: {type: %s, depends_on: before}\n", i, k.server)
			fmt.Fprintf(&data, "    - {get_attr: [s%d, %s]}\n", i, k.attribute)
			fmt.Fprintf(&ids, "    - {get_resource: s%d}\n", i)
		}
		stack := fmt.Sprintf("%s-servers-%d", k.name, first)
		if _, err := l.Heat.Create(ctx, stack, "heat_template_version: 2018-08-31\nresources:\n"+resources.String()+
			"outputs:\n  data:\n    value:\n"+data.String()+"  ids:\n    value:\n"+ids.String(), lab.StackArgs{}); err != nil {
			t.Fatal(err)
		}
		s, err := l.Heat.Wait(ctx, stack, "CREATE_COMPLETE")
		if err != nil {
			t.Fatal(err)
		}
		attributes, _ := s.Outputs()["data"].([]any)
		servers, _ := s.Outputs()["ids"].([]any)
		if len(attributes) != last-first || len(servers) != last-first {
			t.Fatalf("%d servers have %d ids and %d times data", last-first, len(servers), len(attributes))
		}
		for i, v := range attributes {
			if err := k.lay(c.guest, fmt.Sprintf("/srv/%d", first+i), v); err != nil {
				t.Fatal(err)
			}
			c.servers = append(c.servers, fmt.Sprint(servers[i]))
		}
	}
	// Start as many at a time as there are processors, because each generates its key.
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s minion -c /srv/$i/etc/salt & i=$((i+1)); [ $((i%%%d)) -ne 0 ] || sleep 0.1; done; wait",
		n, ours(k.program), runtime.NumCPU())
	if _, err := c.guest.Start("agents", nil, "sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	return c
}

// first returns the first n servers of a crowd as another crowd, which shares the guest.
func (c *crowd) first(n int) *crowd {
	part := *c
	part.servers = c.servers[:n]
	return &part
}

// count returns a number from the database.
func (c *crowd) count(ctx context.Context, q string) (int, error) {
	out, err := c.lab.SQL(ctx, q)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// await waits until a count in the database is at least want, and reads the meter meanwhile. It queries the database,
// because requests to Heat would add to the measured load of the engine.
func (c *crowd) await(t *testing.T, ctx context.Context, m *meter, q string, want int) {
	t.Helper()
	for {
		n, err := c.count(ctx, q)
		m.look(t)
		if err == nil && n >= want {
			return
		}
		select {
		case <-ctx.Done():
			left, _ := c.lab.SQL(context.WithoutCancel(ctx), "select s.name, r.name, r.action, r.status, r.engine_id, r.status_reason from heat.resource r "+
				"join heat.stack s on s.id = r.stack_id where r.status <> 'COMPLETE' or r.action = 'INIT'")
			t.Fatalf("%s is %d, want %d: %v %v\nnot complete:\n%s\n%s", q, n, want, ctx.Err(), err, left, c.lab.LogsOf("engine-*", 6000))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// deployments returns the templates of stacks that deploy to all servers, in order on each.
func (c *crowd) deployments(run string, pause time.Duration) []string {
	var templates []string
	for first := 0; first < len(c.servers); first += largestStack {
		var b strings.Builder
		b.WriteString("heat_template_version: 2018-08-31\nresources:\n")
		for step := 1; step <= steps; step++ {
			fmt.Fprintf(&b, "  c%[1]d:\n    type: OS::Heat::SoftwareConfig\n    properties:\n      group: script\n      inputs: [{name: who}]\n"+
				"      config: |\n        #!/bin/sh\n        mkdir -p /var/lib/lab && echo %[1]d >>/var/lib/lab/%[2]s-$who && sleep %[3]g && echo step %[1]d of $who\n",
				step, run, pause.Seconds())
		}
		for i := first; i < min(first+largestStack, len(c.servers)); i++ {
			for step := 1; step <= steps; step++ {
				fmt.Fprintf(&b, "  d%[1]d_%[2]d:\n    type: %[3]s\n    properties:\n      server: %[4]s\n"+
					"      config: {get_resource: c%[2]d}\n      input_values: {who: '%[1]d'}\n", i, step, c.deployment, c.servers[i])
				if step > 1 {
					fmt.Fprintf(&b, "    depends_on: d%d_%d\n", i, step-1)
				}
			}
		}
		templates = append(templates, b.String())
	}
	return templates
}

// A load is the cost of a run.
type load struct {
	name     string
	servers  int
	complete int // deployments
	wall     time.Duration
	used     map[string]time.Duration // processor time, by the names of the meter
	rows     map[string]int           // in databases, by the names of tallies
	asks     int                      // requests to heat-api and heat-api-cfn
}

// A bill measures the cost while a load runs.
type bill struct {
	crowd *crowd
	meter *meter
	begin time.Time
	load  load
}

// open starts the bill of a load.
func (c *crowd) open(t *testing.T, ctx context.Context, name string) *bill {
	t.Helper()
	b := &bill{crowd: c, meter: &meter{lab: c.lab, used: map[string]time.Duration{}}}
	b.meter.look(t)
	b.load = load{name: name, servers: len(c.servers), used: maps.Clone(b.meter.used), rows: c.rows(t, ctx), asks: c.asks(t)}
	b.begin = time.Now()
	return b
}

// close ends the bill and returns the load's cost.
func (b *bill) close(t *testing.T, ctx context.Context) load {
	t.Helper()
	l, begun, rows := b.load, b.load.used, b.load.rows
	l.wall = time.Since(b.begin)
	b.meter.look(t)
	l.used, l.rows = map[string]time.Duration{}, map[string]int{}
	for who, used := range b.meter.used {
		name, _, _ := strings.Cut(who, " ")
		l.used[name] += used - begun[who]
	}
	for name, n := range b.crowd.rows(t, ctx) {
		l.rows[name] = n - rows[name]
	}
	l.asks = b.crowd.asks(t) - l.asks
	printLoads(t, l)
	return l
}

const (
	// completeOf returns the number of deployments in complete stacks.
	completeOf = "select count(*) from heat.resource where stack_id in (%s) and name like 'd%%' and action = 'CREATE' and status = 'COMPLETE'"
	// completeStacks returns the number of complete stacks.
	completeStacks = "select count(*) from heat.stack where id in (%s) and status = 'COMPLETE' and action = 'CREATE'"
)

// run creates the stacks of all deployments and waits until they are complete. When half of the deployments are
// complete, it calls middle. Each deployment lasts at least pause.
func (c *crowd) run(t *testing.T, ctx context.Context, name string, pause time.Duration, middle func() error) load {
	t.Helper()
	templates, ids := c.deployments(name, pause), []string{}
	b := c.open(t, ctx, name)
	for i, template := range templates {
		id, err := c.lab.Heat.Create(ctx, fmt.Sprintf("%s-%d", name, i), template, lab.StackArgs{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, "'"+id+"'")
	}
	in := strings.Join(ids, ",")
	end := make(chan error, 1)
	if middle == nil {
		end <- nil
	} else {
		c.await(t, ctx, b.meter, fmt.Sprintf(completeOf, in), len(c.servers)*steps/2)
		go func() { end <- middle() }()
	}
	c.await(t, ctx, b.meter, fmt.Sprintf(completeStacks, in), len(ids))
	b.load.complete = len(c.servers) * steps
	l := b.close(t, ctx)
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	c.check(t, ctx, name, in)
	return l
}

// attempt is like run, for a Heat that may be overloaded: it retries a stack that Heat refuses, and after the limit
// it returns the load although deployments are incomplete.
func (c *crowd) attempt(t *testing.T, ctx context.Context, name string, pause, limit time.Duration) load {
	t.Helper()
	b := c.open(t, ctx, name)
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stack, all := fmt.Sprintf("select id from heat.stack where name like '%s-deployments-%%'", name), len(c.servers)*steps
	for i, template := range c.deployments(name, pause) {
		for short.Err() == nil {
			one := fmt.Sprintf("%s-deployments-%d", name, i)
			_, err := c.lab.Heat.Create(short, one, template, lab.StackArgs{})
			if err == nil {
				break
			}
			t.Logf("%s: after %.0f s Heat has no answer to the creation of a stack: %v", name, time.Since(b.begin).Seconds(), err)
			// It may have created the stack despite the error.
			if n, err := c.count(short, "select count(*) from heat.stack where name = '"+one+"'"); err == nil && n > 0 {
				break
			}
		}
	}
	for b.load.complete < all {
		b.meter.look(t)
		if n, err := c.count(short, fmt.Sprintf(completeOf, stack)); err == nil {
			b.load.complete = n
		}
		select {
		case <-short.Done():
			return b.close(t, ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
	return b.close(t, ctx)
}

// check checks that each deployment ran once, in order, on its server, and that Heat shows it so.
func (c *crowd) check(t *testing.T, ctx context.Context, run, stacks string) {
	t.Helper()
	var want strings.Builder
	for step := 1; step <= steps; step++ {
		fmt.Fprintln(&want, step)
	}
	for i := range c.servers {
		if b, err := c.guest.ReadFile(fmt.Sprintf("/var/lib/lab/%s-%d", run, i)); err != nil || string(b) != want.String() {
			t.Errorf("%s: on server %d the deployments ran so: %q %v", run, i, b, err)
		}
	}
	all := len(c.servers) * steps
	queries := map[string]int{
		completeOf: all,
		"select count(*) from heat.resource where stack_id in (%s) and status <> 'COMPLETE'":                                   0,
		"select count(*) from heat.event where stack_id in (%s) and resource_name like 'd%%' and resource_status = 'COMPLETE'": all,
	}
	if c.name == pushed.name {
		queries["select count(*) from heat.orders o join heat.stack s on o.id like concat('heat-', s.id, '-%%') where s.id in (%s)"] = all
	}
	for q, want := range queries {
		if n, err := c.count(ctx, fmt.Sprintf(q, stacks)); err != nil || n != want {
			t.Errorf("%s: "+q+" is %d %v, want %d", run, stacks, n, err, want)
		}
	}
}

// A meter adds up processor time. The engines and their masters may be replaced between two readings.
type meter struct {
	lab  *lab.Lab
	used map[string]time.Duration // by name and process id
}

func (m *meter) look(t *testing.T) {
	t.Helper()
	add := func(name string, pid int) {
		if used, err := lab.CPU(pid); err == nil { // it may have ended
			m.used[fmt.Sprint(name, " ", pid)] = used
		}
	}
	for name, services := range map[string][]string{"apis": {"heat-api", "heat-api-cfn"}, "keystone": {"keystone"}, "mariadb": {"mariadb"}} {
		for _, s := range services {
			add(name, m.lab.Service(s).Pid())
		}
	}
	for n := range engines {
		if p := m.lab.Engine(n); p != nil {
			add("engines", p.Pid())
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(m.lab.MasterSocket(n)), "pid"))
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && perr == nil {
			add("masters", pid)
		}
	}
}

// tallies are groups of database tables whose rows are counted together.
var tallies = map[string]string{
	"heat":     "table_schema = 'heat' and not " + ofMaster,
	"master":   "table_schema = 'heat' and not " + messages + " and " + ofMaster,
	"keystone": "table_schema = 'keystone'",
}

// ofMaster are the tables of the masters. Their messages to each other are not counted: they are removed after ten minutes, so a run also
// sees those of the run before go.
const (
	ofMaster = "(table_name in ('job', 'ret', 'orders', 'delivery', 'minion') or table_name like 'brine\\_%')"
	messages = "table_name = 'brine_relay'"
)

func (c *crowd) rows(t *testing.T, ctx context.Context) map[string]int {
	t.Helper()
	rows := map[string]int{}
	for name, where := range tallies {
		tables, err := c.lab.SQL(ctx, "select concat('(select count(*) from ', table_schema, '.`', table_name, '`)') from information_schema.tables where "+where)
		if err != nil {
			t.Fatal(err)
		}
		if rows[name], err = c.count(ctx, "select "+strings.Join(splitLines(tables), " + ")); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func splitLines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

// asks returns the number of requests to heat-api and heat-api-cfn.
func (c *crowd) asks(t *testing.T) int {
	t.Helper()
	return requestsTo(t, c.lab, "heat-api") + requestsTo(t, c.lab, "heat-api-cfn")
}

func printLoads(t *testing.T, loads ...load) {
	t.Helper()
	t.Logf("%d deployments in order on each server, two engines:", steps)
	t.Log("| run | servers | deployments complete | wall time | engines CPU | masters CPU | APIs CPU | keystone CPU | MariaDB CPU | requests to the APIs | rows of Heat | of the masters | of keystone |")
	for _, l := range loads {
		s := func(name string) float64 { return l.used[name].Seconds() }
		t.Logf("| %s | %d | %d | %.1f s | %.1f s | %.1f s | %.1f s | %.1f s | %.1f s | %d | %d | %d | %d |", l.name, l.servers, l.complete, l.wall.Seconds(),
			s("engines"), s("masters"), s("apis"), s("keystone"), s("mariadb"), l.asks, l.rows["heat"], l.rows["master"], l.rows["keystone"])
	}
}
