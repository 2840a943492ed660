//go:build openstack

package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

const (
	// largestStack is how many servers one stack has at most.
	largestStack = 100
	// steps is how many deployments in order each server gets.
	steps = 5
)

// A crowd is many minions, each a process of brine-minion with a configuration and key of its own, in one guest.
type crowd struct {
	lab     *lab.Lab
	guest   *lab.Guest
	servers []string // ids, which are the minions'
}

// startCrowd announces n minions by stacks, boots them and returns when all are connected.
func startCrowd(t *testing.T, ctx context.Context, l *lab.Lab, n int) *crowd {
	t.Helper()
	c := &crowd{lab: l, guest: guestOf(t, l, "crowd")}
	for first := 0; first < n; first += largestStack {
		last := min(first+largestStack, n)
		var resources, boot, ids strings.Builder
		for i := first; i < last; i++ {
			fmt.Fprintf(&resources, "  s%d: {type: OS::Salt::Minion}\n", i)
			fmt.Fprintf(&boot, "    - {get_attr: [s%d, user_data]}\n", i)
			fmt.Fprintf(&ids, "    - {get_resource: s%d}\n", i)
		}
		stack := fmt.Sprintf("servers-%d", first)
		if _, err := l.Heat.Create(ctx, stack, "heat_template_version: 2018-08-31\nresources:\n"+resources.String()+
			"outputs:\n  boot:\n    value:\n"+boot.String()+"  ids:\n    value:\n"+ids.String(), lab.StackArgs{}); err != nil {
			t.Fatal(err)
		}
		s, err := l.Heat.Wait(ctx, stack, "CREATE_COMPLETE")
		if err != nil {
			t.Fatal(err)
		}
		data, _ := s.Outputs()["boot"].([]any)
		servers, _ := s.Outputs()["ids"].([]any)
		if len(data) != last-first || len(servers) != last-first {
			t.Fatalf("%d servers have %d ids and %d times user data", last-first, len(servers), len(data))
		}
		for i, d := range data {
			if err := c.guest.ApplySaltMinionAt(fmt.Sprintf("/srv/minion-%d", first+i), fmt.Sprint(d)); err != nil {
				t.Fatal(err)
			}
			c.servers = append(c.servers, fmt.Sprint(servers[i]))
		}
	}
	// As many start at the same time as there are processors: each makes its key.
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s minion -c /srv/minion-$i/etc/salt & i=$((i+1)); [ $((i%%%d)) -ne 0 ] || sleep 0.1; done; wait",
		n, ours("brine-minion"), runtime.NumCPU())
	if _, err := c.guest.Start("minions", nil, "sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	awaitPresent(t, ctx, l.MasterSocket(0), n)
	return c
}

// count asks the database for a number.
func (c *crowd) count(ctx context.Context, q string) (int, error) {
	out, err := c.lab.SQL(ctx, q)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// await waits until the database has at least want of something. It asks the database, because requests to Heat would cost the engine
// what is measured.
func (c *crowd) await(t *testing.T, ctx context.Context, q string, want int) {
	t.Helper()
	for n := 0; ; {
		var err error
		if n, err = c.count(ctx, q); err == nil && n >= want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is %d, want %d: %v %v\n%s", q, n, want, ctx.Err(), err, c.lab.LogsOf("engine-*", 6000))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// deployments returns the templates of stacks that deploy to all servers, in order on each.
func (c *crowd) deployments(run string) []string {
	var templates []string
	for first := 0; first < len(c.servers); first += largestStack {
		var b strings.Builder
		b.WriteString("heat_template_version: 2018-08-31\nresources:\n")
		for step := 1; step <= steps; step++ {
			fmt.Fprintf(&b, "  c%[1]d:\n    type: OS::Heat::SoftwareConfig\n    properties:\n      group: script\n      inputs: [{name: who}]\n"+
				"      config: |\n        #!/bin/sh\n        mkdir -p /var/lib/lab && echo %[1]d >>/var/lib/lab/%[2]s-$who && echo step %[1]d of $who\n",
				step, run)
		}
		for i := first; i < min(first+largestStack, len(c.servers)); i++ {
			for step := 1; step <= steps; step++ {
				fmt.Fprintf(&b, "  d%[1]d_%[2]d:\n    type: OS::Salt::SoftwareDeployment\n    properties:\n      server: %[3]s\n"+
					"      config: {get_resource: c%[2]d}\n      input_values: {who: '%[1]d'}\n", i, step, c.servers[i])
				if step > 1 {
					fmt.Fprintf(&b, "    depends_on: d%d_%d\n", i, step-1)
				}
			}
		}
		templates = append(templates, b.String())
	}
	return templates
}

// A load is what a run cost.
type load struct {
	name string
	wall time.Duration
	// Processor time of the engine, of the APIs with keystone, and of the engine's master.
	engine, apis, master time.Duration
	// Rows of the database.
	heat, brine int
}

// run creates the stacks of all deployments and waits until they are complete.
func (c *crowd) run(t *testing.T, ctx context.Context, name string) load {
	t.Helper()
	l := load{name: name}
	heatRows, brineRows := c.rows(t, ctx)
	apis := c.apis(t)
	engine, master := c.cpu(t)
	var ids []string
	begin := time.Now()
	for i, template := range c.deployments(name) {
		id, err := c.lab.Heat.Create(ctx, fmt.Sprintf("%s-%d", name, i), template, lab.StackArgs{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, "'"+id+"'")
	}
	in := strings.Join(ids, ",")
	c.await(t, ctx, fmt.Sprintf("select count(*) from heat.stack where id in (%s) and status = 'COMPLETE' and action = 'CREATE'", in), len(ids))
	l.wall = time.Since(begin)
	e, m := c.cpu(t)
	l.engine, l.master = e-engine, m-master
	l.apis = c.apis(t) - apis
	h, b := c.rows(t, ctx)
	l.heat, l.brine = h-heatRows, b-brineRows
	c.check(t, ctx, name, in)
	return l
}

// check holds that each deployment ran once, in order, on its server, and that Heat has it so.
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
	for q, want := range map[string]int{
		"select count(*) from heat.resource where stack_id in (%s) and name like 'd%%' and action = 'CREATE' and status = 'COMPLETE'": all,
		"select count(*) from heat.resource where stack_id in (%s) and status <> 'COMPLETE'":                                          0,
		"select count(*) from heat.orders o join heat.stack s on o.id like concat('heat-', s.id, '-%%') where s.id in (%s)":           all,
	} {
		if n, err := c.count(ctx, fmt.Sprintf(q, stacks)); err != nil || n != want {
			t.Errorf("%s: "+q+" is %d %v, want %d", run, stacks, n, err, want)
		}
	}
}

// apis returns the processor time of heat-api, heat-api-cfn and keystone.
func (c *crowd) apis(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, name := range []string{"heat-api", "heat-api-cfn", "keystone"} {
		used, err := c.lab.Service(name).CPU()
		if err != nil {
			t.Fatal(err)
		}
		sum += used
	}
	return sum
}

// cpu returns the processor time of the engine that runs and of its master.
func (c *crowd) cpu(t *testing.T) (engine, master time.Duration) {
	t.Helper()
	engine, err := c.lab.Engine(0).CPU()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(c.lab.MasterSocket(0)), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if master, err = lab.CPU(pid); err != nil {
		t.Fatal(err)
	}
	return engine, master
}

// rows counts the rows of Heat's database, those of Heat and those of the masters.
func (c *crowd) rows(t *testing.T, ctx context.Context) (heat, brine int) {
	t.Helper()
	out, err := c.lab.SQL(ctx, "select table_name from information_schema.tables where table_schema = 'heat'")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Fields(out) {
		n, err := c.count(ctx, "select count(*) from heat."+table)
		if err != nil {
			t.Fatal(err)
		}
		switch table {
		case "job", "ret", "orders", "delivery", "minion":
			brine += n
		default:
			if strings.HasPrefix(table, "brine_") {
				brine += n
			} else {
				heat += n
			}
		}
	}
	return heat, brine
}

func printLoads(t *testing.T, servers int, loads ...load) {
	t.Helper()
	t.Logf("%d servers, %d deployments in order on each:", servers, steps)
	t.Log("| run | wall time | engine CPU | APIs and keystone CPU | master CPU | rows of Heat | rows of the master |")
	for _, l := range loads {
		t.Logf("| %s | %.1f s | %.1f s | %.1f s | %.1f s | %d | %d |", l.name, l.wall.Seconds(), l.engine.Seconds(), l.apis.Seconds(),
			l.master.Seconds(), l.heat, l.brine)
	}
}

// TestHeatScale deploys to 50 servers, or to 500 with BRINE_OPENSTACK=full, through one engine: each deployment runs once, in order, and
// is one order.
func TestHeatScale(t *testing.T) {
	servers, patience := 50, 8*time.Minute
	if os.Getenv("BRINE_OPENSTACK") == "full" {
		servers, patience = 500, 40*time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := privateLab(t, 1)
	begin := time.Now()
	c := startCrowd(t, ctx, l, servers)
	t.Logf("%d minions are connected after %.1f s", servers, time.Since(begin).Seconds())
	printLoads(t, servers, c.run(t, ctx, "pushed"))
}
