//go:build openstack

package interop

import (
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// actionsTemplate is a deployment for each of Heat's actions. With slow it lasts until the guest has a file.
const actionsTemplate = `
heat_template_version: 2018-08-31
parameters:
  slow: {type: string, default: "no"}
resources:
  s0: {type: OS::Salt::Minion}
  c:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      inputs: [{name: slow}]
      config: |
        #!/bin/sh
        mkdir -p /var/lib/lab
        echo "begin $deploy_action $slow" >>/var/lib/lab/actions
        while [ "$slow" = yes ] && [ ! -e /var/lib/lab/go ]; do sleep 0.1; done
        [ "$deploy_action" != DELETE ] || [ -e /var/lib/lab/may-go ] || { echo "still needed" >&2; exit 1; }
        echo "end $deploy_action" >>/var/lib/lab/actions
  d:
    type: OS::Salt::SoftwareDeployment
    properties:
      server: {get_resource: s0}
      config: {get_resource: c}
      input_values: {slow: {get_param: slow}}
      actions: [CREATE, UPDATE, SUSPEND, RESUME, DELETE]
`

// TestHeatActions: a deployment runs for a suspend, a resume and a delete. When an update is cancelled, Heat lets the deployment that runs
// come to its end, and then runs it again with the inputs from before. A delete that failed by its deployment runs it again.
func TestHeatActions(t *testing.T) {
	ctx := testContext(t)
	name := stackOf(t, cloud, actionsTemplate, lab.StackArgs{})
	g := joinMinion(t, cloud, name, "s0", ours("brine-minion"))
	waitStack(t, cloud, name, "CREATE_COMPLETE")
	for _, a := range []string{"suspend", "resume"} {
		if err := cloud.Heat.Action(ctx, name, a); err != nil {
			t.Fatal(err)
		}
		waitStack(t, cloud, name, strings.ToUpper(a)+"_COMPLETE")
	}
	if err := cloud.Heat.Update(ctx, name, actionsTemplate, lab.StackArgs{Parameters: map[string]any{"slow": "yes"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.WaitFile(ctx, "/var/lib/lab/actions", func(b []byte) bool { return strings.Contains(string(b), "begin UPDATE yes") }); err != nil {
		t.Fatal(err)
	}
	if err := cloud.Heat.Action(ctx, name, "cancel_update"); err != nil {
		t.Fatal(err)
	}
	waitStack(t, cloud, name, "ROLLBACK_IN_PROGRESS")
	if err := g.WriteFile("/var/lib/lab/go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	waitStack(t, cloud, name, "ROLLBACK_COMPLETE")
	// A delete fails by its deployment, and is tried again.
	if err := cloud.Heat.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := cloud.Heat.WaitGone(ctx, name); err == nil || !strings.Contains(err.Error(), "DELETE_FAILED") || !strings.Contains(err.Error(), "still needed") {
		t.Errorf("the delete whose deployment fails: %v", err)
	}
	if err := g.WriteFile("/var/lib/lab/may-go", "", 0o600); err != nil {
		t.Fatal(err)
	}
	deleteStack(t, cloud, name)
	b, err := g.ReadFile("/var/lib/lab/actions")
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for _, run := range []string{"CREATE no", "SUSPEND no", "RESUME no", "UPDATE yes", "UPDATE no"} {
		action, _, _ := strings.Cut(run, " ")
		want += "begin " + run + "\nend " + action + "\n"
	}
	want += "begin DELETE no\nbegin DELETE no\nend DELETE\n"
	if string(b) != want {
		t.Errorf("the scripts ran so:\n%s", b)
	}
}
