//go:build openstack

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

var (
	// plainSteps are the groups of stackTemplate that any minion runs.
	plainSteps = []string{"script", "salt", "script", "salt", "script"}
	// allSteps has cfn-init as well, which heat-minion runs.
	allSteps = []string{"script", "salt", "cfn-init", "salt", "script"}
)

// stackTemplate returns a template with n servers, each with a deployment in order for each step. Scripts and states read what the
// last script before them left; each deployment appends its number to /var/lib/lab/order.
//
// server is the resource type of a server, deployment of a deployment.
func stackTemplate(n int, server, deployment string, steps []string) string {
	var b strings.Builder
	b.WriteString(`
heat_template_version: 2018-08-31
parameters:
  who: {type: string, default: world}
resources:
`)
	for i, group := range steps {
		i++
		switch group {
		case "script":
			fmt.Fprintf(&b, `
  c%[1]d:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      inputs: [{name: who}, {name: before}]
      outputs: [{name: sum}]
      config: |
        #!/bin/sh
        mkdir -p /var/lib/lab && echo %[1]d >>/var/lib/lab/order
        echo "step %[1]d for $who after $before"
        echo "warning %[1]d" >&2
        printf %%s "${before}%[1]d" >$heat_outputs_path.sum
`, i)
		case "cfn-init":
			fmt.Fprintf(&b, `
  c%[1]d:
    type: OS::Heat::SoftwareConfig
    properties:
      group: cfn-init
      config: |
        {"config": {"files": {"/var/lib/lab/cfn-%[1]d": {"content": "step %[1]d\n", "mode": "000640"}},
                    "commands": {"order": {"command": "echo %[1]d >>/var/lib/lab/order"}}}}
`, i)
		default:
			fmt.Fprintf(&b, `
  c%[1]d:
    type: OS::Heat::SoftwareConfig
    properties:
      group: salt
      inputs: [{name: who}, {name: before}]
      config: |
        order:
          cmd.run:
            - name: mkdir -p /var/lib/lab && echo %[1]d >>/var/lib/lab/order
        /var/lib/lab/salt-%[1]d:
          file.managed:
            - contents: "{{ pillar['heat']['who'] }} {{ pillar['heat']['before'] }}"
`, i)
		}
	}
	for s := range n {
		fmt.Fprintf(&b, "  s%d: {type: %s}\n", s, server)
		before := "start"
		for i, group := range steps {
			i++
			fmt.Fprintf(&b, `
  d%[1]d_%[2]d:
    type: %[3]s
    properties:
      server: {get_resource: s%[1]d}
      config: {get_resource: c%[2]d}
`, s, i, deployment)
			if group != "cfn-init" {
				fmt.Fprintf(&b, "      input_values: {who: {get_param: who}, before: %s}\n", before)
			}
			if group == "script" {
				before = fmt.Sprintf("{get_attr: [d%d_%d, sum]}", s, i)
			}
			if i > 1 {
				fmt.Fprintf(&b, "    depends_on: d%d_%d\n", s, i-1)
			}
		}
	}
	b.WriteString("outputs:\n")
	for s := range n {
		for i, group := range steps {
			i++
			for _, attr := range []string{"deploy_stdout", "deploy_stderr", "deploy_status_code"} {
				fmt.Fprintf(&b, "  d%d_%d_%s: {value: {get_attr: [d%d_%d, %s]}}\n", s, i, attr, s, i, attr)
			}
			if group == "script" {
				fmt.Fprintf(&b, "  d%d_%d_sum: {value: {get_attr: [d%d_%d, sum]}}\n", s, i, s, i)
			}
		}
	}
	return b.String()
}

// checkSteps holds what the deployments of stackTemplate leave: outputs in the stack, files in the guests.
func checkSteps(t *testing.T, s *lab.Stack, guests []*lab.Guest, steps []string) {
	t.Helper()
	out := s.Outputs()
	for i, g := range guests {
		sum, order := "start", ""
		for n, group := range steps {
			step := n + 1
			order += fmt.Sprintf("%d\n", step)
			want, file, content := map[string]string{"deploy_status_code": "0"}, "", ""
			switch group {
			case "script":
				want["deploy_stdout"] = fmt.Sprintf("step %d for world after %s\n", step, sum)
				want["deploy_stderr"] = fmt.Sprintf("warning %d\n", step)
				sum += fmt.Sprint(step)
				want["sum"] = sum
			case "salt":
				file, content = "salt", "world "+sum+"\n"
			case "cfn-init":
				file, content = "cfn", fmt.Sprintf("step %d\n", step)
			}
			for name, w := range want {
				key := fmt.Sprintf("d%d_%d_%s", i, step, name)
				if got := fmt.Sprint(out[key]); got != w {
					t.Errorf("output %s = %q, want %q", key, got, w)
				}
			}
			if file == "" {
				continue
			}
			if b, err := g.ReadFile(fmt.Sprintf("/var/lib/lab/%s-%d", file, step)); err != nil || string(b) != content {
				t.Errorf("guest %d: %s-%d = %q %v, want %q", i, file, step, b, err, content)
			}
		}
		if b, err := g.ReadFile("/var/lib/lab/order"); err != nil || string(b) != order {
			t.Errorf("guest %d: the deployments ran in the order %q %v", i, b, err)
		}
	}
}

// TestHeatH3 deploys in mode B: three servers with five consecutive deployments each. The guests start after the
// stack's creation. TestHeatModeA checks the same in mode A.
func TestHeatH3(t *testing.T) {
	name := newStack(t, stackTemplate(3, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment", allSteps), lab.StackArgs{})
	var guests []*lab.Guest
	for i := range 3 {
		guests = append(guests, joinMinion(t, cloud, name, fmt.Sprintf("s%d", i), ours("heat-minion")))
	}
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), guests, allSteps)
}
