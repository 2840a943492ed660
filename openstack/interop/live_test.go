//go:build openstack

package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/openstack/lab"
)

// liveHook is a hook that reports its progress on standard error, and waits as slowTemplate's script.
const liveHook = `#!/bin/sh
cat >/dev/null
echo "the hook has begun" >&2
while [ ! -e /var/lib/lab/go ]; do sleep 0.1; done
echo '{"deploy_stdout": "done by a hook", "deploy_stderr": "", "deploy_status_code": 0}'
`

// TestHeatLiveOutput: what a script or a hook prints is shown as events of its deployment while it runs.
func TestHeatLiveOutput(t *testing.T) {
	for _, c := range []struct{ name, template, want, stdout string }{
		{"script", strings.Replace(slowTemplate, "n=0", "echo the script has begun; n=0", 1), "the script has begun", "the script has begun\nfinished\n"},
		{"hook", oneDeployment("lab", "any", "[]"), "the hook has begun", "done by a hook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			name := newStack(t, c.template, lab.StackArgs{})
			data, err := userData(ctx, cloud, name, "s0")
			if err != nil {
				t.Fatal(err)
			}
			g := newGuest(t, "s0")
			if err := g.WriteFile("/usr/libexec/heat-config/hooks/lab", liveHook, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := bootMinion(g, data, ours("heat-minion")); err != nil {
				t.Fatal(err)
			}
			for {
				live := liveEvents(t, name)
				if len(live) > 0 {
					if live[0] != c.want {
						t.Errorf("the event is %q, want %q", live[0], c.want)
					}
					break
				}
				select {
				case <-ctx.Done():
					t.Fatal("no event has the output of what runs")
				case <-time.After(100 * time.Millisecond):
				}
			}
			if err := g.WriteFile("/var/lib/lab/go", "", 0o600); err != nil {
				t.Fatal(err)
			}
			if out := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()["stdout"]; out != c.stdout {
				t.Errorf("deploy_stdout = %q, want %q", out, c.stdout)
			}
		})
	}
}

// TestHeatLiveFlood has a script print more than 50 MiB: Heat gets event_limit events (20) and one that says so, and the deployment ends as
// if it had printed little.
func TestHeatLiveFlood(t *testing.T) {
	ctx := testContext(t)
	// It prints on until the events have ended: the flood itself may be over before two of the reports, which come each second.
	const flood = "#!/bin/sh\nyes 'a line of a flood' | head -c 55000000\necho\n" +
		"while [ ! -e /var/lib/lab/go ]; do yes 'a line after it' | head -n 100; sleep 0.1; done\necho the end\n"
	name := newStack(t, oneDeployment("script", flood, "[]"), lab.StackArgs{})
	g := joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	const last = "more output is not shown until the deployment has ended"
	for {
		if live := liveEvents(t, name); len(live) > 0 && live[len(live)-1] == last {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the events do not end: %q", liveEvents(t, name))
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err := g.WriteFile("/var/lib/lab/go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()["stdout"].(string)
	if !strings.HasSuffix(out, "\nthe end\n") || len(out) > 1<<20 {
		t.Errorf("deploy_stdout has %d bytes and ends with %q", len(out), out[max(0, len(out)-30):])
	}
	live := liveEvents(t, name)
	if len(live) != 21 || live[20] != last {
		t.Errorf("%d events with output, want 21, the last of them %q: %q", len(live), last, live)
	}
	for _, text := range live {
		if len(text) > 255 {
			t.Errorf("an event has %d characters: %.60q", len(text), text)
		}
	}
}

// liveEvents returns the reasons of the events with output of the deployment d, in their order.
func liveEvents(t *testing.T, stack string) []string {
	t.Helper()
	events, err := cloud.Heat.Events(testContext(t), stack)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range events {
		if e.Resource == "d" && e.Status == "CREATE_IN_PROGRESS" && e.Reason != "state changed" {
			texts = append(texts, e.Reason)
		}
	}
	return texts
}
