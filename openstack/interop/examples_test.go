//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/lab"
)

// examples runs the templates of docs/openstack/resources.md and servers.md.
func (l *novaLab) examples(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, out map[string]any){
		"example-state.yaml": func(t *testing.T, out map[string]any) {
			if summary, _ := out["summary"].(string); strings.Contains(summary, "s3cret") || !strings.HasSuffix(summary, "1 states, 1 succeeded, 0 failed") {
				t.Errorf("summary %q", summary)
			}
			if d := cmp.Diff([]any{"/etc/database.conf"}, out["succeeded"]); d != "" {
				t.Error(d)
			}
		},
		"example-job.yaml": func(t *testing.T, out map[string]any) {
			codes, _ := out["codes"].(map[string]any)
			pings, _ := out["pings"].(map[string]any)
			if len(codes) != 2 || len(pings) != 2 {
				t.Errorf("codes %v, pings %v", codes, pings)
			}
			for id, code := range codes {
				if code != float64(0) || pings[id] != true {
					t.Errorf("%s: %v %v", id, code, pings[id])
				}
			}
		},
		"example-waitcondition.yaml": func(t *testing.T, out map[string]any) {
			var data map[string]any
			text, _ := out["data"].(string)
			if err := json.Unmarshal([]byte(text), &data); err != nil || cmp.Diff(map[string]any{"disk": "formatted", "network": "up"}, data) != "" {
				t.Errorf("data %q", text)
			}
		},
		"example-minion.yaml": func(t *testing.T, out map[string]any) {
			if out["one"] != "hello world\n" || cmp.Diff(map[string]any{"web": "hello everyone\n"}, out["all"]) != "" {
				t.Errorf("outputs %v", out)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			stack := stackOf(t, l.Lab, template(t, name), lab.StackArgs{})
			check(t, waitStack(t, l.Lab, stack, "CREATE_COMPLETE").Outputs())
		})
	}
}

// signalsSurvive: signals that arrive while the engine is dead, at a master that then dies too, are counted; no other minion's are.
func (l *novaLab) signalsSurvive(t *testing.T) {
	ctx := testContext(t)
	const text = `
heat_template_version: 2018-08-31
resources:
  a: &server
    type: OS::Salt::Server
    properties: {image: debian, flavor: small, networks: [{network: private}], user_data_format: RAW}
  other: *server
  wait:
    type: OS::Salt::WaitCondition
    properties: {server: {get_resource: a}, tag: survives, count: 2, timeout: 200}
outputs:
  data: {value: {get_attr: [wait, data]}}
`
	stack := stackOf(t, l.Lab, text, lab.StackArgs{})
	progress := func(r *lab.Resource) bool { return r.Status == "CREATE_IN_PROGRESS" }
	if _, err := l.Heat.WaitResource(ctx, stack, "wait", progress); err != nil {
		t.Fatal(err)
	}
	var ids [2]string
	for n, name := range []string{"a", "other"} {
		r, err := l.Heat.WaitResource(ctx, stack, name, func(r *lab.Resource) bool { return r.Status == "CREATE_COMPLETE" })
		if err != nil {
			t.Fatal(err)
		}
		ids[n] = r.PhysicalID
	}
	fire := func(id, data string) {
		t.Helper()
		if out, err := l.guest(t, id).Run(ctx, bin+"/salt-call", "event.send", "heat/signal/survives", data); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	l.awaitMinions(t, ctx, 2)
	fire(ids[0], `{"id": "first", "data": 1}`)
	fire(ids[1], `{"id": "stolen", "status": "FAILURE"}`)
	// The engine is killed, and its master ends with it: what it acknowledged is in the database.
	if err := l.RestartEngine(ctx, 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Heat looks at the stack again when it is updated; the second signal comes after that, to another master.
	if err := l.Heat.Update(ctx, stack, text, lab.StackArgs{}); err != nil {
		t.Fatal(err)
	}
	l.awaitMinions(t, ctx, 2)
	fire(ids[0], `{"id": "second", "data": 2}`)
	out := waitStack(t, l.Lab, stack, "UPDATE_COMPLETE").Outputs()
	var data map[string]any
	said, _ := out["data"].(string)
	if err := json.Unmarshal([]byte(said), &data); err != nil || cmp.Diff(map[string]any{"first": 1.0, "second": 2.0}, data) != "" {
		t.Errorf("data %q", said)
	}
}

// awaitMinions waits until n minions are connected to the engine's master, which starts with the engine's first
// request to it.
func (l *novaLab) awaitMinions(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	awaitPresent(t, ctx, l.Socket, n)
}

// awaitPresent waits until n minions are connected to the master on a unix socket.
func awaitPresent(t *testing.T, ctx context.Context, socket string, n int) {
	t.Helper()
	for {
		present := 0
		code, v, err := askSocket(socket, "/v1/minions")
		if err == nil && code == http.StatusOK {
			list, _ := v["minions"].([]any)
			for _, m := range list {
				if m.(map[string]any)["present"] == true {
					present++
				}
			}
			if present == n {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d minions are connected: %d %v", present, n, code, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// runsOnce kills the engine while a state runs. The operator's update takes over the order, and the state must have
// run once.
func (l *novaLab) runsOnce(t *testing.T) {
	ctx := testContext(t)
	const text = `
heat_template_version: 2018-08-31
resources:
  server:
    type: OS::Salt::Server
    properties: {image: debian, flavor: small, networks: [{network: private}], user_data_format: RAW}
  state:
    type: OS::Salt::State
    properties:
      server: {get_resource: server}
      sls: |
        once:
          cmd.run:
            - name: echo ran >>/var/lib/once; while [ ! -e /var/lib/go ]; do sleep 0.1; done
outputs:
  succeeded: {value: {get_attr: [state, succeeded]}}
`
	stack := stackOf(t, l.Lab, text, lab.StackArgs{})
	r, err := l.Heat.WaitResource(ctx, stack, "server", func(r *lab.Resource) bool { return r.Status == "CREATE_COMPLETE" })
	if err != nil {
		t.Fatal(err)
	}
	g := l.guest(t, r.PhysicalID)
	lines := func(b []byte) bool { return len(b) > 0 }
	if _, err := g.WaitFile(ctx, "/var/lib/once", lines); err != nil {
		t.Fatal(err)
	}
	if err := l.RestartEngine(ctx, 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := l.Heat.Update(ctx, stack, text, lab.StackArgs{}); err != nil {
		t.Fatal(err)
	}
	l.awaitMinions(t, ctx, 1)
	if err := g.WriteFile("/var/lib/go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	out := waitStack(t, l.Lab, stack, "UPDATE_COMPLETE").Outputs()
	once, err := g.ReadFile("/var/lib/once")
	if string(once) != "ran\n" || cmp.Diff([]any{"once"}, out["succeeded"]) != "" {
		t.Errorf("the state ran %q %v, outputs %v", once, err, out)
	}
}
