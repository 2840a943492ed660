//go:build openstack

package interop

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// slowTemplate is a minion with one deployment that writes a line when it starts, one when it ends, and lasts until the file
// /var/lib/lab/go is there.
const slowTemplate = `
heat_template_version: 2018-08-31
resources:
  s0: {type: OS::Salt::Minion}
  c:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: |
        #!/bin/sh
        mkdir -p /var/lib/lab && echo run >>/var/lib/lab/runs
        n=0
        while [ ! -e /var/lib/lab/go ] && [ $n -lt 1200 ]; do sleep 0.1; n=$((n+1)); done
        echo end >>/var/lib/lab/runs
        echo finished
  d:
    type: OS::Salt::SoftwareDeployment
    properties: {server: {get_resource: s0}, config: {get_resource: c}}
outputs:
  stdout: {value: {get_attr: [d, deploy_stdout]}}
`

// TestHeatH5 kills the engine, and with it its master, in each state of a delivery. An operator's update of the stack
// must then end COMPLETE with the output of the single execution, and Heat must have been signalled once.
func TestHeatH5(t *testing.T) {
	for _, state := range []string{"before lease", "sent", "running", "returned", "stored", "signalled"} {
		t.Run(state, func(t *testing.T) { killEngineIn(t, cloud, state) })
	}
}

func killEngineIn(t *testing.T, l *lab.Lab, state string) {
	ctx := testContext(t)
	name := stackOf(t, l, slowTemplate, lab.StackArgs{})
	keepEngine(t)
	made, err := l.Heat.Show(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	var g *lab.Guest
	kill := func() {
		t.Helper()
		if err := l.StopEngine(ctx, 0, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	placed := func() {
		t.Helper()
		if _, err := l.Heat.WaitResource(ctx, name, "d", func(r *lab.Resource) bool {
			return r != nil && r.PhysicalID != "" && r.Status == "CREATE_IN_PROGRESS"
		}); err != nil {
			t.Fatal(err)
		}
		waitOrder(t, l, made.ID)
	}
	started := func() {
		t.Helper()
		if _, err := g.WaitFile(ctx, "/var/lib/lab/runs", nil); err != nil {
			t.Fatal(err)
		}
	}
	finish := func() {
		t.Helper()
		if err := g.WriteFile("/var/lib/lab/go", "", 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := g.WaitFile(ctx, "/var/lib/lab/runs", func(b []byte) bool { return strings.Contains(string(b), "end") }); err != nil {
			t.Fatal(err)
		}
	}
	switch state {
	case "before lease":
		placed() // there is no minion yet
		data, err := userData(ctx, l, name, "s0")
		if err != nil {
			t.Fatal(err)
		}
		kill()
		g = guestOf(t, l, "s0")
		if _, err := bootMinion(g, data, ours("brine-minion")); err != nil {
			t.Fatal(err)
		}
		if err := l.StartEngine(ctx, 0); err != nil {
			t.Fatal(err)
		}
	case "sent":
		g = joinMinion(t, l, name, "s0", ours("brine-minion"))
		placed()
		kill() // at once: the job may have arrived or not
	case "running":
		g = joinMinion(t, l, name, "s0", ours("brine-minion"))
		started()
		kill()
	case "returned":
		g = joinMinion(t, l, name, "s0", ours("brine-minion"))
		started()
		kill()
		finish() // nobody takes the return: the minion keeps it
	case "stored":
		g = joinMinion(t, l, name, "s0", ours("brine-minion"))
		started()
		// The engine is stopped so that it cannot act on the return, which the master stores; then it dies.
		if err := l.Engine(0).Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		finish()
		waitReturned(t, l, made.ID)
		kill()
	case "signalled":
		g = joinMinion(t, l, name, "s0", ours("brine-minion"))
		started()
		finish()
		waitSQL(t, l, made.ID, "signalled")
		kill() // the resource may be complete already, or not
	}
	if l.Engine(0) == nil {
		if err := l.StartEngine(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := l.Heat.Show(ctx, name); err != nil {
		t.Fatal(err)
	} else if s.Status != "CREATE_COMPLETE" {
		if err := l.Heat.Update(ctx, name, slowTemplate, lab.StackArgs{}); err != nil {
			t.Fatal(err)
		}
	}
	started()
	finish()
	s, err := l.Heat.Wait(ctx, name, "")
	if err != nil || !strings.HasSuffix(s.Status, "_COMPLETE") {
		t.Fatalf("stack: %+v %v", s, err)
	}
	if out := s.Outputs()["stdout"]; out != "finished\n" {
		t.Errorf("output = %q, want %q", out, "finished\n")
	}
	if b, err := g.ReadFile("/var/lib/lab/runs"); err != nil || string(b) != "run\nend\n" {
		t.Errorf("the script ran so: %q %v, want once", b, err)
	}
	if n := completions(t, l, name); n != 1 {
		t.Errorf("%d events say that the deployment is complete, want 1", n)
	}
}

// waitOrder waits until the order of the deployment is in the masters' database.
func waitOrder(t *testing.T, l *lab.Lab, stackID string) { waitSQL(t, l, stackID, "") }

// waitReturned waits until the return of the order is there.
func waitReturned(t *testing.T, l *lab.Lab, stackID string) { waitSQL(t, l, stackID, "returned") }

func waitSQL(t *testing.T, l *lab.Lab, stackID, state string) {
	t.Helper()
	ctx := testContext(t)
	for {
		n, err := countOrders(ctx, l, stackID, state)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no order of %s is %q: %v", stackID, state, ctx.Err())
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// completions returns the number of Heat's events about the deployment's successful end.
func completions(t *testing.T, l *lab.Lab, stack string) int {
	t.Helper()
	events, err := l.Heat.Events(testContext(t), stack)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Resource == "d" && (e.Status == "CREATE_COMPLETE" || e.Status == "UPDATE_COMPLETE") {
			n++
		}
	}
	return n
}

// countOrders returns the number of a stack's orders in the masters' database, in all states or in one.
func countOrders(ctx context.Context, l *lab.Lab, stackID, state string) (int, error) {
	q := fmt.Sprintf("select count(*) from heat.orders o where o.id like 'heat-%s-%%'", stackID)
	switch state {
	case "signalled":
		q = fmt.Sprintf("select count(*) from heat.software_deployment d join heat.resource r on r.nova_instance = d.id "+
			"where d.status = 'COMPLETE' and r.stack_id = '%s'", stackID)
	case "returned":
		q = fmt.Sprintf("select count(*) from heat.orders o join heat.ret r on o.jid = r.jid where o.id like 'heat-%s-%%'", stackID)
	}
	out, err := l.SQL(ctx, q)
	if err != nil && strings.Contains(err.Error(), "ERROR 1146") {
		return 0, nil // the master creates its tables when it starts
	}
	if err != nil {
		return 0, err
	}
	n := 0
	_, err = fmt.Sscan(out, &n)
	return n, err
}
