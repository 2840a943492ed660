//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/internal/hooktest"
	"github.com/brine-salt/brine/openstack/lab"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// hookCases are the deployments whose answers by heat-agents are recorded.
const hookCases = "../heat/testdata/hooks"

// TestHeatGroups deploys cases of heat-agents' hooks in mode B. Heat must get the same streams, status code and
// outputs as from the hooks, and the tools must be called in the same way. ansible and puppet are Debian's. Debian 12
// has neither chef nor the docker-compose that the hook calls; fake programs that record their calls replace these.
func TestHeatGroups(t *testing.T) {
	recorded := hooktest.Recorded(t, hookCases)
	agents, err := original.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*hooktest.Case{}
	for _, c := range hooktest.Load(t, hookCases) {
		cases[c.Name] = c
	}
	for _, name := range [...]string{"ansible/for real", "ansible/for real and fails", "apply-config/applies", "chef/fails", "chef/options",
		"docker-compose/fails", "docker-compose/map", "puppet/for real", "puppet/for real and fails", "salt/fails", "salt/succeeds",
		"script/fails", "script/values"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployCase(t, cases[name], recorded[name], nil)
		})
	}
	t.Run("hook of heat-agents", func(t *testing.T) {
		t.Parallel()
		const name = "ansible/for real"
		deployCase(t, cases[name], recorded[name], map[string]string{
			"/etc/salt/minion.d/heat.conf": "heat: {prefer_hooks: [ansible]}\n",
			"/usr/libexec/heat-config/hooks/ansible": "#!/bin/sh\ntouch /run/original\nexec /usr/bin/python3 " +
				filepath.Join(agents.Agents(), "heat-config-ansible", "install.d", "hook-ansible.py") + "\n",
		}, "/run/original")
	})
}

// deployCase runs a case as a stack with one minion and one deployment. files are written to the guest first; after
// are paths that must exist at the end.
func deployCase(t *testing.T, c *hooktest.Case, recorded hooktest.Answer, files map[string]string, after ...string) {
	ctx := testContext(t)
	stack := newStack(t, caseTemplate(t, c), lab.StackArgs{})
	data, err := userData(ctx, cloud, stack, "s0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, "s0")
	for _, more := range [...]map[string]string{c.ToolFiles(), files} {
		for path, content := range more {
			if err := g.WriteFile(path, content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.Setup != "" {
		if out, err := g.Run(ctx, "sh", "-c", c.Setup); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if _, err := bootMinion(g, data, ours("heat-minion")); err != nil {
		t.Fatal(err)
	}
	row := waitDeployment(t, ctx, stack)
	// A stack that is deleted in the moment of its failure stays as it is, in Heat 19.
	if _, err := cloud.Heat.Wait(ctx, stack, ""); err != nil {
		t.Fatal(err)
	}
	got := hooktest.Answer{Signal: row.Outputs}
	if code, ok := row.Outputs["deploy_status_code"].(string); ok { // Heat's column is a text
		n, err := strconv.ParseFloat(code, 64)
		if err != nil {
			t.Errorf("deploy_status_code = %q", code)
		}
		got.Signal["deploy_status_code"] = n
	}
	// The id of the derived config is in paths.
	lines := func(text string) []string { return hooktest.Lines(strings.ReplaceAll(text, row.Config, c.ID())) }
	ran, err := g.ReadFile(hooktest.ToolLog)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	got.Ran = lines(string(ran))
	want := c.Expected(t, recorded)
	switch c.Group() {
	case "salt": // the states are JSON, not YAML
		delete(got.Signal, "deploy_stdout")
		delete(want.Signal, "deploy_stdout")
	case "puppet": // the recorded host had no network
		stderr, _ := want.Signal["deploy_stderr"].(string)
		want.Signal["deploy_stderr"] = regexp.MustCompile(`(?m)^Warning: .*serverip6 fact\n`).ReplaceAllString(stderr, "")
	}
	if c.Check != "" {
		out, err := g.Run(ctx, "sh", "-c", c.Check)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		got.Check = lines(out)
	}
	if diff := cmp.Diff(want, c.Comparable(got)); diff != "" {
		t.Errorf("heat-agents (-) and mode B (+):\n%s", diff)
	}
	if status := map[bool]string{true: "COMPLETE", false: "FAILED"}[want.Signal["deploy_status_code"] == 0.0]; row.Status != status {
		t.Errorf("the deployment is %s, want %s", row.Status, status)
	}
	for _, path := range after {
		if _, err := g.ReadFile(path); err != nil {
			t.Error(err)
		}
	}
}

// caseTemplate returns the template of a stack that deploys a case.
func caseTemplate(t *testing.T, c *hooktest.Case) string {
	t.Helper()
	d := c.Deployment
	var inputs []any
	values := map[string]any{}
	list, _ := d["inputs"].([]any)
	for _, v := range list {
		in := v.(map[string]any)
		name := in["name"].(string)
		if strings.HasPrefix(name, "deploy_") {
			continue // Heat adds them
		}
		inputs = append(inputs, map[string]any{"name": name, "type": in["type"]})
		values[name] = in["value"]
	}
	kind := "Software"
	if _, ok := d["config"].(map[string]any); ok {
		kind = "Structured"
	}
	ref := func(name string) any { return map[string]any{"get_resource": name} }
	config := map[string]any{"group": d["group"], "config": d["config"], "outputs": d["outputs"], "options": d["options"]}
	if inputs != nil {
		config["inputs"] = inputs
	}
	text, err := json.Marshal(map[string]any{"heat_template_version": "2018-08-31", "resources": map[string]any{
		"s0": map[string]any{"type": "OS::Salt::Minion"},
		"c":  map[string]any{"type": "OS::Heat::" + kind + "Config", "properties": config},
		"d": map[string]any{"type": "OS::Salt::" + kind + "Deployment", "properties": map[string]any{
			"name": d["name"], "server": ref("s0"), "config": ref("c"), "input_values": values}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A deploymentRow is Heat's data about a software deployment.
type deploymentRow struct {
	Status  string         `json:"status"`
	Reason  string         `json:"status_reason"`
	Config  string         `json:"config_id"`
	Outputs map[string]any `json:"output_values"`
}

// waitDeployment waits for the end of the deployment d of a stack.
func waitDeployment(t *testing.T, ctx context.Context, stack string) deploymentRow {
	t.Helper()
	r, err := cloud.Heat.WaitResource(ctx, stack, "d", func(r *lab.Resource) bool { return r != nil && r.PhysicalID != "" })
	if err != nil {
		t.Fatal(err)
	}
	for {
		var out struct {
			Row deploymentRow `json:"software_deployment"`
		}
		if err := cloud.Heat.Call(ctx, "GET", "/software_deployments/"+r.PhysicalID, nil, &out); err != nil {
			t.Fatal(err)
		}
		if out.Row.Status != "IN_PROGRESS" {
			return out.Row
		}
		select {
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("the deployment is %s: %w", out.Row.Status, ctx.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
