//go:build openstack

package interop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestLabStack creates and deletes a stack that needs no guest.
func TestLabStack(t *testing.T) {
	name := newStack(t, `
heat_template_version: 2018-08-31
resources:
  text: {type: OS::Heat::RandomString, properties: {length: 12}}
outputs:
  text: {value: {get_attr: [text, value]}}
`, lab.StackArgs{})
	s := waitStack(t, cloud, name, "CREATE_COMPLETE")
	if v, _ := s.Outputs()["text"].(string); len(v) != 12 {
		t.Errorf("output text = %q, want 12 characters", v)
	}
}

// TestLabGuest: guests see neither each other's changes nor each other's processes, and the host sees neither. A
// guest's changes survive a reboot, except those in /run; its processes do not.
func TestLabGuest(t *testing.T) {
	ctx := testContext(t)
	a, b := newGuest(t, "a"), newGuest(t, "b")
	for _, name := range []string{"/etc/lab-canary", "/var/lib/lab-canary", "/usr/libexec/lab-canary", "/run/lab-canary"} {
		if _, err := a.Run(ctx, "sh", "-c", "mkdir -p $(dirname "+name+") && echo a >"+name); err != nil {
			t.Fatal(err)
		}
		if _, err := b.ReadFile(name); !os.IsNotExist(err) {
			t.Errorf("guest b sees %s: %v", name, err)
		}
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("the host sees %s: %v", name, err)
		}
	}
	p, err := a.Start("sleep", nil, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WaitProcesses(ctx, func(procs []lab.Proc) bool {
		return len(procs) == 1 && procs[0].Command == "sleep 1000" && procs[0].PSS > 0
	}); err != nil {
		t.Errorf("want one sleep: %v", err)
	}
	if out, err := b.Run(ctx, "ps", "ax"); err != nil || strings.Contains(out, "sleep 1000") {
		t.Errorf("guest b sees a process of a: %v\n%s", err, out)
	}
	if err := a.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("a process outlived a reboot")
	}
	if out, err := a.ReadFile("/etc/lab-canary"); err != nil || string(out) != "a\n" {
		t.Errorf("after a reboot /etc/lab-canary = %q %v", out, err)
	}
	if _, err := a.ReadFile("/run/lab-canary"); !os.IsNotExist(err) {
		t.Errorf("/run stayed over a reboot: %v", err)
	}
	if out, err := a.Run(ctx, "hostname"); err != nil || strings.TrimSpace(out) != a.Name {
		t.Errorf("hostname = %q %v, want %s", out, err, a.Name)
	}
}

// TestLabTypes: the engine has loaded the plugin's types in addition to Heat's own.
func TestLabTypes(t *testing.T) {
	types, err := cloud.Heat.ResourceTypes(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"OS::Heat::DeployedServer", "OS::Heat::SoftwareDeployment", "OS::Salt::Minion", "OS::Salt::SoftwareDeployment"} {
		if !slices.Contains(types, want) {
			t.Errorf("the engine does not know %s", want)
		}
	}
}
