//go:build openstack

package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// collectConfig waits for a server of a stack and returns its os-collect-config.conf.
func collectConfig(ctx context.Context, l *lab.Lab, stack, server string) (string, error) {
	if _, err := l.Heat.WaitResource(ctx, stack, server, func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
		return "", err
	}
	m, err := l.Heat.Metadata(ctx, stack, server)
	if err != nil {
		return "", err
	}
	all, ok := m["os-collect-config"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("the metadata of %s has no os-collect-config: %v", server, m)
	}
	var b strings.Builder
	b.WriteString("[DEFAULT]\ncommand = os-refresh-config\npolling_interval = 5\n")
	// One line for each: os-collect-config takes no lists.
	collectors, _ := all["collectors"].([]any)
	for _, c := range collectors {
		fmt.Fprintf(&b, "collectors = %v\n", c)
	}
	for _, section := range slices.Sorted(maps.Keys(all)) {
		values, ok := all[section].(map[string]any)
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "[%s]\n", section)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(&b, "%s = %v\n", name, values[name])
		}
	}
	return b.String(), nil
}

// TestHeatModeA is H3 in mode A: unmodified Heat, and heat-minion alone in each guest, with one server for each way to poll.
// What the deployments leave is the same as in mode B.
func TestHeatModeA(t *testing.T) {
	ctx := testContext(t)
	template := stackTemplate(3, "OS::Heat::DeployedServer", "OS::Heat::SoftwareDeployment")
	for i, transport := range []string{"POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL"} {
		template = strings.Replace(template, fmt.Sprintf("s%d: {type: OS::Heat::DeployedServer", i),
			fmt.Sprintf("s%d: {type: OS::Heat::DeployedServer, properties: {software_config_transport: %s}", i, transport), 1)
	}
	name := newStack(t, template, lab.StackArgs{})
	var guests []*lab.Guest
	for i := range 3 {
		conf, err := collectConfig(ctx, cloud, name, fmt.Sprintf("s%d", i))
		if err != nil {
			t.Fatal(err)
		}
		g := newGuest(t, fmt.Sprintf("s%d", i))
		if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Start("heat-minion", nil, ours("heat-minion"), "minion", "-c", "/etc/salt"); err != nil {
			t.Fatal(err)
		}
		guests = append(guests, g)
	}
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), guests)
}
