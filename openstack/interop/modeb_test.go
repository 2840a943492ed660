//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/openstack/lab"
)

// lines are the stock releases that guests run in addition to brine.
var lines = []string{"3006", "3007", "3008"}

// TestHeatH4 is TestHeatH3 with stock minions of three release lines in the guests, which get their keys through user
// data.
func TestHeatH4(t *testing.T) {
	for _, line := range lines {
		if os.Getenv("BRINE_SALT_"+line) == "" {
			t.Fatalf("BRINE_SALT_%s is not set: run this through make openstack", line)
		}
	}
	name := newStack(t, stackTemplate(len(lines), "OS::Salt::Minion, properties: {stock: true}", "OS::Salt::SoftwareDeployment", plainSteps),
		lab.StackArgs{})
	var guests []*lab.Guest
	for i, line := range lines {
		program := filepath.Join(os.Getenv("BRINE_SALT_"+line), "bin", "salt-minion")
		guests = append(guests, joinMinion(t, cloud, name, fmt.Sprintf("s%d", i), program))
	}
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), guests, plainSteps)
}

// TestHeatUnmodified runs a template that names only Heat's own deployments: an environment maps them.
func TestHeatUnmodified(t *testing.T) {
	name := newStack(t, stackTemplate(1, "OS::Salt::Minion", "OS::Heat::SoftwareDeployment", plainSteps), lab.StackArgs{
		Environment: "resource_registry: {'OS::Heat::SoftwareDeployment': 'OS::Salt::SoftwareDeployment'}"})
	g := joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), []*lab.Guest{g}, plainSteps)
}

// TestHeatTwoEngines has two engines, each with its own master, which share a database: Heat's MariaDB, or a
// PostgreSQL named in heat.conf. If an engine is killed, the other one completes an order of the first one's master.
func TestHeatTwoEngines(t *testing.T) {
	t.Run("mariadb", func(t *testing.T) { twoEngines(t, "service", "mysql:") })
	t.Run("postgresql", func(t *testing.T) {
		twoEngines(t, "postgresql+psycopg2://postgres@127.0.0.1:"+testserver.Postgres(t)+"/postgres", "postgres:")
	})
}

func twoEngines(t *testing.T, database, kind string) {
	opts := labOptions()
	opts.Engines = 2
	opts.Heat = map[string]map[string]string{"brine": {"database": database}}
	l := startLab(t, opts)
	ctx := testContext(t)
	name := stackOf(t, l, stackTemplate(4, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment", plainSteps), lab.StackArgs{})
	var guests []*lab.Guest
	for i := range 4 {
		guests = append(guests, joinMinion(t, l, name, fmt.Sprintf("s%d", i), ours("brine-minion")))
	}
	checkSteps(t, waitStack(t, l, name, "CREATE_COMPLETE"), guests, plainSteps)
	for n := range 2 {
		awaitPresent(t, ctx, l.MasterSocket(n), 4)
		b, err := os.ReadFile(filepath.Join(filepath.Dir(l.MasterSocket(n)), "conf", "master"))
		if err != nil || !strings.Contains(string(b), `"shared_database": "`+kind) {
			t.Errorf("the master of engine %d has no database of %s: %v", n, kind, err)
		}
	}
	// Every minion of the first master goes to the second.
	if err := l.StopEngine(ctx, 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitPresent(t, ctx, l.MasterSocket(1), 4)
	if err := l.Heat.Update(ctx, name, stackTemplate(4, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment", plainSteps),
		lab.StackArgs{Parameters: map[string]any{"who": "everyone"}}); err != nil {
		t.Fatal(err)
	}
	out := waitStack(t, l, name, "UPDATE_COMPLETE").Outputs()
	for i := range 4 {
		if got := out[fmt.Sprintf("d%d_5_deploy_stdout", i)]; got != "step 5 for everyone after start13\n" {
			t.Errorf("after the end of an engine server %d says %q", i, got)
		}
	}
}

// TestHeatH8 deletes a stack while its deployment runs. All its processes must be gone within five seconds after Heat
// began.
func TestHeatH8(t *testing.T) {
	ctx := testContext(t)
	name := newStack(t, strings.Replace(slowTemplate, "n=0", "sh -c 'sleep 4321 & sleep 4322 & wait' & n=0", 1), lab.StackArgs{})
	g := joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	running := func(procs []lab.Proc) (n int) {
		for _, p := range procs {
			if strings.Contains(p.Command, "sleep 432") || strings.Contains(p.Command, "heat-config/brine") {
				n++
			}
		}
		return n
	}
	if err := g.WaitProcesses(ctx, func(p []lab.Proc) bool { return running(p) >= 4 }); err != nil {
		t.Fatal(err)
	}
	if err := cloud.Heat.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := g.WaitProcesses(ctx, func(p []lab.Proc) bool { return running(p) == 0 }); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("the process tree was gone after %v, want 5 s at most", d)
	} else {
		t.Logf("the process tree was gone after %v", d)
	}
	if err := cloud.Heat.WaitGone(ctx, name); err != nil {
		t.Error(err)
	}
}

// oneDeployment is a template with a minion and one deployment of a group.
func oneDeployment(group, config, outputs string) string {
	b, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`
heat_template_version: 2018-08-31
resources:
  s0: {type: OS::Salt::Minion}
  c:
    type: OS::Heat::SoftwareConfig
    properties: {group: %s, outputs: %s, config: %s}
  d:
    type: OS::Salt::SoftwareDeployment
    properties: {server: {get_resource: s0}, config: {get_resource: c}}
outputs:
  stdout: {value: {get_attr: [d, deploy_stdout]}}
  stderr: {value: {get_attr: [d, deploy_stderr]}}
  code: {value: {get_attr: [d, deploy_status_code]}}
`, group, outputs, b)
}

// TestHeatLargeOutput has a script print 5 MiB; Heat must get the beginning and the end of it (H7 in mode B).
func TestHeatLargeOutput(t *testing.T) {
	name := newStack(t, oneDeployment("script", "#!/bin/sh\necho begin; head -c 5242880 /dev/zero | tr '\\0' x; echo; echo end\n", "[]"),
		lab.StackArgs{})
	joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	out, _ := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()["stdout"].(string)
	if b, _ := json.Marshal(out); len(b) > 950002 || len(b) < 900000 {
		t.Errorf("deploy_stdout has %d bytes as JSON, want 950000 or a little less", len(b)-2)
	}
	if !strings.HasPrefix(out, "begin\nxxx") || !strings.HasSuffix(out, "xxx\nend\n") {
		t.Errorf("deploy_stdout = %.30q … %q, want head and tail", out, out[max(0, len(out)-30):])
	}
}

// TestHeatBadInput gives invalid input. Heat must show the cause, and the guest must continue.
func TestHeatBadInput(t *testing.T) {
	ctx := testContext(t)
	_, err := cloud.Heat.Create(ctx, t.Name(), strings.Replace(oneDeployment("script", "true", "[]"), "{type: OS::Salt::Minion}",
		"{type: OS::Salt::Minion, properties: {wait: 7x, colour: red}}", 1), lab.StackArgs{})
	if h := (*lab.HTTPError)(nil); !errors.As(err, &h) || h.Status != http.StatusBadRequest || !strings.Contains(h.Body, "colour") {
		t.Errorf("a template with a wrong property: %v, want status 400 that names it", err)
	}
	for _, tt := range []struct{ name, group, config, outputs, want string }{
		{"damaged metadata", "cfn-init", "{", "[]", "the configuration"},
		{"failed metadata", "cfn-init", `{"config": {"commands": {"a": {"command": "echo no >&2; exit 3"}}}}`, "[]", "exit 3"},
		{"missing hook", "no-such-hook", "x", "[]", `there is no hook for the group "no-such-hook" in /usr/libexec/heat-config/hooks`},
		{"exit code", "script", "#!/bin/sh\necho out of cheese >&2; exit 3\n", "[]", "out of cheese"},
		{"no agent for hooks", "another-hook", "x", "[]", "heat.hook"},
		{"no group", "'a b'", "x", "[]", "no function for the group"},
		{"bad sls", "salt", "a: [b", "[]", ""},
		{"no interpreter", "script", "#!/no/such/program\n", "[]", "config"},
		{"error output", "script", "#!/bin/sh\necho broken >$heat_outputs_path.bad\n", "[{name: bad, error_output: true}]", "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			name := newStack(t, oneDeployment(tt.group, tt.config, tt.outputs), lab.StackArgs{})
			program := "heat-minion"
			if strings.Contains(tt.want, "heat.hook") {
				program = "brine-minion"
			}
			joinMinion(t, cloud, name, "s0", ours(program))
			s, err := cloud.Heat.Wait(ctx, name, "CREATE_FAILED")
			if err != nil {
				t.Fatal(err)
			}
			r, err := cloud.Heat.Resource(ctx, name, "d")
			if err != nil {
				t.Fatal(err)
			}
			if said := fmt.Sprint(s.Reason, r.Reason, s.Outputs()["stderr"]); !strings.Contains(said, tt.want) {
				t.Errorf("reasons and deploy_stderr = %q, want %q in it", said, tt.want)
			}
			// The guest goes on: the same stack with a good config is complete.
			if err := cloud.Heat.Update(ctx, name, oneDeployment("script", "#!/bin/sh\necho fine\n", "[{name: bad, error_output: true}]"),
				lab.StackArgs{}); err != nil {
				t.Fatal(err)
			}
			if s, err = cloud.Heat.Wait(ctx, name, "UPDATE_COMPLETE"); err != nil {
				t.Fatal(err)
			}
			if out := s.Outputs()["stdout"]; out != "fine\n" {
				t.Errorf("after the update deploy_stdout = %q", out)
			}
		})
	}
}

// TestHeatForeignToken gives a guest the token of another stack's minion: it is refused under the name that it claims, the deployment waits,
// and the guest with the right token gets it.
func TestHeatForeignToken(t *testing.T) {
	ctx := testContext(t)
	const template = `
heat_template_version: 2018-08-31
resources: {s0: {type: OS::Salt::Minion}}
`
	name, other := newStack(t, oneDeployment("script", "#!/bin/sh\nhostname\n", "[]"), lab.StackArgs{}), t.Name()+"-other"
	if _, err := cloud.Heat.Create(ctx, other, template, lab.StackArgs{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteStack(t, cloud, other) })
	data, err := userData(ctx, cloud, name, "s0")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := userData(ctx, cloud, other, "s0")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`"?join_token"?: *"?([^"\s,}]+)`)
	ours1, theirs := token.FindStringSubmatch(data), token.FindStringSubmatch(foreign)
	if ours1 == nil || theirs == nil || ours1[1] == theirs[1] {
		t.Fatalf("no two tokens in %q and %q", data, foreign)
	}
	if _, err := cloud.Heat.WaitResource(ctx, name, "d", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_IN_PROGRESS" }); err != nil {
		t.Fatal(err)
	}
	thief := newGuest(t, "thief")
	p, err := bootMinion(thief, strings.ReplaceAll(data, ours1[1], theirs[1]), ours("brine-minion"))
	if err != nil {
		t.Fatal(err)
	}
	if err := waitLog(ctx, p, "The Salt Master has cached the public key for this node"); err != nil {
		t.Fatal(err)
	}
	r, err := cloud.Heat.Resource(ctx, name, "d")
	if err != nil || r.Status != "CREATE_IN_PROGRESS" {
		t.Errorf("the deployment is %+v %v, want that it waits", r, err)
	}
	g := newGuest(t, "s0")
	if _, err := bootMinion(g, data, ours("brine-minion")); err != nil {
		t.Fatal(err)
	}
	if out := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()["stdout"]; out != g.Name+"\n" {
		t.Errorf("the deployment ran on %q, want %s", out, g.Name)
	}
}

// waitLog waits until the log of a process contains a text.
func waitLog(ctx context.Context, p *lab.Process, text string) error {
	for {
		b, err := os.ReadFile(p.Log)
		if err != nil || strings.Contains(string(b), text) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%q is not in the log of %s: %w\n%s", text, p.Name, ctx.Err(), b)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestHeatEngineRestart restarts the only engine with TERM while a deployment runs. Heat leaves what the engine worked on IN_PROGRESS, as
// after a kill: its resources send requests to the engine, which takes none any more. An update with the same template takes it over, and
// nothing runs twice.
func TestHeatEngineRestart(t *testing.T) {
	ctx, l := testContext(t), cloud
	template := stackTemplate(2, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment", plainSteps)
	name := stackOf(t, l, template, lab.StackArgs{})
	keepEngine(t)
	guests := []*lab.Guest{joinMinion(t, l, name, "s0", ours("brine-minion")), joinMinion(t, l, name, "s1", ours("brine-minion"))}
	if _, err := guests[0].WaitFile(ctx, "/var/lib/lab/order", nil); err != nil {
		t.Fatal(err)
	}
	if err := l.RestartEngine(ctx, 0, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := l.Heat.Update(ctx, name, template, lab.StackArgs{}); err != nil {
		t.Fatal(err)
	}
	s := waitStack(t, l, name, "UPDATE_COMPLETE")
	checkSteps(t, s, guests, plainSteps)
}
