//go:build openstack

package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	return collectConfigOf(all)
}

// collectConfigOf returns the os-collect-config.conf for what a server's metadata has of it.
func collectConfigOf(all map[string]any) (string, error) {
	if len(all) == 0 {
		return "", errors.New("the metadata has no os-collect-config")
	}
	var b strings.Builder
	b.WriteString("[DEFAULT]\ncommand = os-refresh-config\npolling_interval = 5\n")
	// one line each, since os-collect-config accepts no lists
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
	template := stackTemplate(3, "OS::Heat::DeployedServer", "OS::Heat::SoftwareDeployment", allSteps)
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
	checkSteps(t, waitStack(t, cloud, name, "CREATE_COMPLETE"), guests, allSteps)
}

// TestHeatBadInputModeA gives invalid input to a guest of unmodified Heat. Either the deployment fails with the
// cause, or the guest waits. Then the guest must continue.
func TestHeatBadInputModeA(t *testing.T) {
	const template = `
heat_template_version: 2018-08-31
resources:
  server: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_HEAT}}
  c: {type: OS::Heat::SoftwareConfig, properties: {group: %s, config: %q, options: {timeout: 5}, outputs: [{name: bad, error_output: true}]}}
  d: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: server}, config: {get_resource: c}}}
outputs:
  stdout: {value: {get_attr: [d, deploy_stdout]}}
  stderr: {value: {get_attr: [d, deploy_stderr]}}
`
	const fine = "#!/bin/sh\necho fine\n"
	other := newStack(t, fmt.Sprintf(template, "script", fine), lab.StackArgs{})
	foreign, err := collectConfig(testContext(t), cloud, other, "server")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, group, config string
		want                string // in deploy_stderr; nothing where the deployment is to succeed
		prepare             func(t *testing.T, g *lab.Guest, conf string) string
		log                 string // what the guest says before it goes on
	}{
		{"endless script", "script", "#!/bin/sh\nwhile :; do sleep 0.2; done\n", "stopped: the deployment took longer than its timeout", nil, ""},
		{"missing hook", "no-such-hook", "x", `there is no hook for the group "no-such-hook"`, nil, ""},
		{"exit code", "script", "#!/bin/sh\necho out of cheese >&2; exit 3\n", "out of cheese", nil, ""},
		{"damaged configuration", "cfn-init", "{", "the configuration", nil, ""},
		{"5 MiB", "script", "#!/bin/sh\nhead -c 5242880 /dev/zero | tr '\\0' x; echo; echo fine\n", "", nil, ""},
		{"damaged metadata", "script", fine, "", func(t *testing.T, g *lab.Guest, conf string) string {
			if err := g.WriteFile("/var/lib/os-collect-config/local-data/md", "{", 0o600); err != nil {
				t.Fatal(err)
			}
			return strings.Replace(conf, "[DEFAULT]\n", "[DEFAULT]\ncollectors = local\n", 1)
		}, "is not JSON"},
		// The user of one stack asks for the metadata of another.
		{"foreign token", "script", fine, "", func(_ *testing.T, _ *lab.Guest, conf string) string {
			for _, key := range []string{"user_id", "password", "project_id"} {
				line := regexp.MustCompile("(?m)^" + key + " = .*$")
				conf = line.ReplaceAllLiteralString(conf, line.FindString(foreign))
			}
			return conf
		}, "A source of metadata is not available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			name := newStack(t, fmt.Sprintf(template, c.group, c.config), lab.StackArgs{})
			conf, err := collectConfig(ctx, cloud, name, "server")
			if err != nil {
				t.Fatal(err)
			}
			g, first := newGuest(t, "guest"), conf
			if c.prepare != nil {
				first = c.prepare(t, g, conf)
			}
			boot := func(conf string) *lab.Process {
				t.Helper()
				if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
					t.Fatal(err)
				}
				p, err := g.Start("heat-minion", nil, ours("heat-minion"), "minion", "-c", "/etc/salt", "-l", "info")
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			p := boot(first)
			if c.log != "" {
				if err := waitLog(ctx, p, c.log); err != nil {
					t.Fatal(err)
				}
			}
			if c.name == "foreign token" {
				if r, err := cloud.Heat.Resource(ctx, name, "d"); err != nil || r.Status != "CREATE_IN_PROGRESS" {
					t.Errorf("the deployment is %+v %v, want that it waits", r, err)
				}
				if err := g.Reboot(ctx); err != nil {
					t.Fatal(err)
				}
				boot(conf)
			}
			status := "CREATE_COMPLETE"
			if c.want != "" {
				status = "CREATE_FAILED"
			}
			out := waitStack(t, cloud, name, status).Outputs()
			if said, _ := out["stderr"].(string); !strings.Contains(said, c.want) {
				t.Errorf("deploy_stderr = %q, want %q in it", said, c.want)
			}
			if said, _ := out["stdout"].(string); c.want == "" && !strings.HasSuffix(said, "fine\n") || len(said) > 950000 {
				t.Errorf("deploy_stdout has %d bytes and ends with %q", len(said), said[max(0, len(said)-20):])
			}
			if c.want == "" {
				return
			}
			// The guest goes on.
			if err := cloud.Heat.Update(ctx, name, fmt.Sprintf(template, "script", fine), lab.StackArgs{}); err != nil {
				t.Fatal(err)
			}
			if out := waitStack(t, cloud, name, "UPDATE_COMPLETE").Outputs()["stdout"]; out != "fine\n" {
				t.Errorf("after the update deploy_stdout = %q", out)
			}
		})
	}
}
