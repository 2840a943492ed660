//go:build openstack

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// stackTemplate returns a template with n servers, each with five deployments in order: script, salt, script, salt, script. Each
// reads what the one before it left, and appends its number to /var/lib/lab/order.
//
// server is the resource type of a server, deployment of a deployment.
func stackTemplate(n int, server, deployment string) string {
	var b strings.Builder
	b.WriteString(`
heat_template_version: 2018-08-31
parameters:
  who: {type: string, default: world}
resources:
`)
	for i := 1; i <= 5; i++ {
		if i%2 == 1 {
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
			continue
		}
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
	for s := range n {
		fmt.Fprintf(&b, "  s%d: {type: %s}\n", s, server)
		for i := 1; i <= 5; i++ {
			before := "start"
			if i%2 == 0 {
				before = fmt.Sprintf("{get_attr: [d%d_%d, sum]}", s, i-1)
			} else if i > 1 {
				before = fmt.Sprintf("{get_attr: [d%d_%d, sum]}", s, i-2)
			}
			fmt.Fprintf(&b, `
  d%[1]d_%[2]d:
    type: %[3]s
    properties:
      server: {get_resource: s%[1]d}
      config: {get_resource: c%[2]d}
      input_values: {who: {get_param: who}, before: %[4]s}
`, s, i, deployment, before)
			if i > 1 {
				fmt.Fprintf(&b, "    depends_on: d%d_%d\n", s, i-1)
			}
		}
	}
	b.WriteString("outputs:\n")
	for s := range n {
		for i := 1; i <= 5; i++ {
			for _, attr := range []string{"deploy_stdout", "deploy_stderr", "deploy_status_code"} {
				fmt.Fprintf(&b, "  d%d_%d_%s: {value: {get_attr: [d%d_%d, %s]}}\n", s, i, attr, s, i, attr)
			}
			if i%2 == 1 {
				fmt.Fprintf(&b, "  d%d_%d_sum: {value: {get_attr: [d%d_%d, sum]}}\n", s, i, s, i)
			}
		}
	}
	return b.String()
}

// checkSteps holds what the deployments of stackTemplate leave: outputs in the stack, files in the guests.
func checkSteps(t *testing.T, s *lab.Stack, guests []*lab.Guest) {
	t.Helper()
	out := s.Outputs()
	for i, g := range guests {
		sum := "start"
		for step := 1; step <= 5; step++ {
			key := fmt.Sprintf("d%d_%d_", i, step)
			want := map[string]string{"deploy_status_code": "0"}
			if step%2 == 1 {
				want["deploy_stdout"] = fmt.Sprintf("step %d for world after %s\n", step, sum)
				want["deploy_stderr"] = fmt.Sprintf("warning %d\n", step)
				sum += fmt.Sprint(step)
				want["sum"] = sum
			}
			for name, w := range want {
				if got := fmt.Sprint(out[key+name]); got != w {
					t.Errorf("output %s%s = %q, want %q", key, name, got, w)
				}
			}
			if b, err := g.ReadFile(fmt.Sprintf("/var/lib/lab/salt-%d", step)); step%2 == 0 && (err != nil || string(b) != "world "+sum+"\n") {
				t.Errorf("guest %d: salt-%d = %q %v, want %q", i, step, b, err, "world "+sum+"\n")
			}
		}
		if b, err := g.ReadFile("/var/lib/lab/order"); err != nil || string(b) != "1\n2\n3\n4\n5\n" {
			t.Errorf("guest %d: the deployments ran in the order %q %v", i, b, err)
		}
	}
}

// TestHeatH3 deploys in mode B: three servers with five deployments in order each. The guests come after the stack was asked for.
func TestHeatH3(t *testing.T) {
	name := newStack(t, stackTemplate(3, "OS::Salt::Minion", "OS::Salt::SoftwareDeployment"), lab.StackArgs{})
	var guests []*lab.Guest
	for i := range 3 {
		guests = append(guests, joinMinion(t, cloud, name, fmt.Sprintf("s%d", i), ours("brine-minion")))
	}
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), guests)
}
