//go:build openstack

package interop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestHeatOutcomes: a deployment ends in one of six ways, and the event of its resource says which, with the cause in words.
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
			"CREATE_FAILED", "timed out: "},
		{"cancelled", forever, 0, func(t *testing.T, ctx context.Context, name string) {
			running(t, ctx, join(t, name))
			cancelOrders(t, ctx, name)
		}, "CREATE_FAILED", "cancelled: "},
		{"lost", forever, 0, func(t *testing.T, ctx context.Context, name string) {
			g := join(t, name)
			running(t, ctx, g)
			if err := g.Reboot(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := startMinion(g, ours("brine-minion")); err != nil {
				t.Fatal(err)
			}
		}, "CREATE_FAILED", "lost: the minion took the job and does not know of it any more"},
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

// cancelOrders cancels the orders of a stack as an operator does, at the engine's master.
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
