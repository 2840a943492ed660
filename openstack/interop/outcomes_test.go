//go:build openstack

package interop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestHeatOutcomes: the event of a deployment's resource says how the deployment ended, and why.
func TestHeatOutcomes(t *testing.T) {
	const forever = "#!/bin/sh\nmkdir -p /var/lib/lab && touch /var/lib/lab/runs\nwhile :; do sleep 0.2; done\n"
	join := func(t *testing.T, name string) *lab.Guest {
		return joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	}
	running := func(t *testing.T, ctx context.Context, g *lab.Guest) {
		t.Helper()
		if _, err := g.WaitFile(ctx, "/var/lib/lab/runs", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, config string
		timeout      time.Duration
		act          func(t *testing.T, ctx context.Context, name string)
		status, want string // of the event; want is a regular expression
	}{
		{"undeliverable", "#!/bin/sh\n", time.Minute, func(*testing.T, context.Context, string) {},
			"CREATE_FAILED", "undeliverable: the minion did not take the job"},
		{"timed out", forever, time.Minute, func(t *testing.T, ctx context.Context, name string) { running(t, ctx, join(t, name)) },
			"CREATE_FAILED", "timed out: the minion did not return before the deadline"},
		{"cancelled", forever, 0, func(t *testing.T, ctx context.Context, name string) {
			running(t, ctx, join(t, name))
			cancelOrders(t, ctx, name)
		}, "CREATE_FAILED", "cancelled: "},
		{"refused", "#!/bin/sh\n", 0, func(t *testing.T, ctx context.Context, name string) {
			data, err := userData(ctx, cloud, name, "s0")
			if err != nil {
				t.Fatal(err)
			}
			g := newGuest(t, "s0")
			if err := g.WriteFile("/etc/salt/minion.d/policy.conf", "minion_allow_functions: [test.ping]\n", 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := bootMinion(g, data, ours("brine-minion")); err != nil {
				t.Fatal(err)
			}
		}, "CREATE_FAILED", "refused: .*cmd.script"},
		{"lost", forever, 0, func(t *testing.T, ctx context.Context, name string) {
			// The guest returns with its key, but without the disk on which the minion records its jobs.
			g := join(t, name)
			running(t, ctx, g)
			if err := g.Reboot(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Run(ctx, "rm", "-r", "/var/cache/salt", "/var/lib/lab"); err != nil {
				t.Fatal(err)
			}
			if _, err := startMinion(g, ours("brine-minion")); err != nil {
				t.Fatal(err)
			}
		}, "CREATE_FAILED", "lost: the minion took the job and does not know of it any more .*the minion knows nothing of it"},
		{"returned an interruption", forever, 0, func(t *testing.T, ctx context.Context, name string) {
			// The guest returns with its disk: the minion knows which job was running.
			g := join(t, name)
			running(t, ctx, g)
			if err := g.Reboot(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := startMinion(g, ours("brine-minion")); err != nil {
				t.Fatal(err)
			}
		}, "CREATE_FAILED", "interrupted"},
		{"returned", "#!/bin/sh\n", 0, func(t *testing.T, _ context.Context, name string) { join(t, name) }, "CREATE_COMPLETE", "^state changed$"},
		{"returned a failure", "#!/bin/sh\necho out of cheese >&2; exit 3\n", 0, func(t *testing.T, _ context.Context, name string) { join(t, name) },
			"CREATE_FAILED", "non-zero status code: 3, deploy_stderr : out of cheese"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			name := newStack(t, oneDeployment("script", c.config, "[]"), lab.StackArgs{Timeout: c.timeout})
			c.act(t, ctx, name)
			s, err := cloud.Heat.Wait(ctx, name, c.status)
			if err != nil {
				t.Fatal(err)
			}
			events, err := cloud.Heat.Events(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			for _, e := range events {
				if e.Resource == "d" && e.Status == c.status {
					reasons = append(reasons, e.Reason)
				}
			}
			if len(reasons) != 1 || !regexp.MustCompile(c.want).MatchString(reasons[0]) {
				t.Errorf("the events %s of the deployment say %q, want %q; the stack: %s", c.status, reasons, c.want, s.Reason)
			}
		})
	}
}

// TestHeatJobWithoutOne runs a function on two minions, one of which never connects: "success" decides whether that
// is enough, and the outcome on each minion is an attribute.
func TestHeatJobWithoutOne(t *testing.T) {
	const template = `
heat_template_version: 2018-08-31
resources:
  s0: {type: OS::Salt::Minion}
  absent: {type: OS::Salt::Minion}
  any:
    type: OS::Salt::Job
    properties: {function: test.ping, targets: [{get_resource: s0}, {get_resource: absent}], success: any, timeout: 15}
  all:
    type: OS::Salt::Job
    properties: {function: test.ping, targets: [{get_resource: s0}, {get_resource: absent}], timeout: 15}
outputs:
  here: {value: {get_resource: s0}}
  absent: {value: {get_resource: absent}}
  succeeded: {value: {get_attr: [any, succeeded]}}
  failed: {value: {get_attr: [any, failed]}}
  outcomes: {value: {get_attr: [any, outcomes]}}
`
	ctx := testContext(t)
	name := newStack(t, template, lab.StackArgs{})
	joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	if _, err := cloud.Heat.WaitResource(ctx, name, "any", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
		t.Fatal(err)
	}
	r, err := cloud.Heat.WaitResource(ctx, name, "all", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_FAILED" })
	if err != nil {
		t.Fatal(err)
	}
	if want := "test.ping succeeded on 1 of 2 minions, 2 are needed"; !strings.Contains(r.Reason, want) || !strings.Contains(r.Reason, "undeliverable: ") {
		t.Errorf("the job on all failed by %q, want %q and undeliverable", r.Reason, want)
	}
	out := waitStack(t, cloud, name, "CREATE_FAILED").Outputs()
	here, absent := fmt.Sprint(out["here"]), fmt.Sprint(out["absent"])
	if d := cmp.Diff([]any{here}, out["succeeded"]) + cmp.Diff([]any{absent}, out["failed"]); d != "" {
		t.Error(d)
	}
	outcomes, _ := out["outcomes"].(map[string]any)
	if outcomes[here] != "returned" || !strings.HasPrefix(fmt.Sprint(outcomes[absent]), "undeliverable: ") {
		t.Errorf("outcomes %v", outcomes)
	}
}

// cancelOrders cancels the orders of a stack at the engine's master, as an operator does.
func cancelOrders(t *testing.T, ctx context.Context, stack string) {
	t.Helper()
	s, err := cloud.Heat.Show(ctx, stack)
	if err != nil {
		t.Fatal(err)
	}
	l := &novaLab{Lab: cloud, Socket: cloud.MasterSocket(0)}
	_, v := l.ask(t, "/v1/jobs?metadata.heat_stack="+s.ID)
	jobs, _ := v["jobs"].([]any)
	if len(jobs) != 1 {
		t.Fatalf("the stack has the orders %v, want one", v)
	}
	id := fmt.Sprint(jobs[0].(map[string]any)["id"])
	q, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://localhost/v1/jobs/"+url.PathEscape(id), nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.Socket)
	}}}
	defer client.CloseIdleConnections()
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode/100 != 2 {
		t.Fatalf("the order %s cannot be cancelled: %s", id, r.Status)
	}
}
