//go:build openstack

package interop

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

// TestGuestPage follows docs/openstack/guest.md for builders of images, with its snippets, in a guest of unmodified
// Heat.
func TestGuestPage(t *testing.T) {
	ctx := testContext(t)
	name := newStack(t, `
heat_template_version: 2018-08-31
resources:
  server: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_CFN}}
  c: {type: OS::Heat::SoftwareConfig, properties: {group: script, config: "#!/bin/sh\necho here\n"}}
  d: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: server}, config: {get_resource: c}}}
  h: {type: OS::Heat::WaitConditionHandle}
  w: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: h}, timeout: 230}}
outputs:
  stdout: {value: {get_attr: [d, deploy_stdout]}}
  data: {value: {get_attr: [w, data]}}
`, lab.StackArgs{})
	conf, err := collectConfig(ctx, cloud, name, "server")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, "guest")
	program, err := os.ReadFile(ours("heat-minion"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFile("/root/image/heat-minion", string(program), 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(snippet string, env ...string) string {
		t.Helper()
		out, err := g.Run(ctx, append(append([]string{"env", "--chdir=/root/image"}, env...), "sh", "-ec", snippetOf(t, "guest.md", snippet))...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// An image without these programs, whatever the host has.
	if _, err := g.Run(ctx, "sh", "-ec", "cd /usr/bin; rm -f heat-minion salt-minion salt-call os-collect-config cfn-*"); err != nil {
		t.Fatal(err)
	}
	sh("install")
	if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Start("agent", nil, "/usr/bin/os-collect-config"); err != nil { // as the unit of an image does
		t.Fatal(err)
	}
	if _, err := cloud.Heat.WaitResource(ctx, name, "d", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
		t.Fatal(err)
	}
	if look := sh("look"); !strings.Contains(look, "done") || !strings.Contains(look, "echo here") {
		t.Errorf("the snippet look shows\n%s", look)
	}
	h, err := cloud.Heat.Resource(ctx, name, "h")
	if err != nil {
		t.Fatal(err)
	}
	handle, err := json.Marshal(map[string]any{"token": h.Attributes["token"], "endpoint": h.Attributes["endpoint"]})
	if err != nil {
		t.Fatal(err)
	}
	sh("signal", "HANDLE="+string(handle))
	out := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()
	var data map[string]any
	text, _ := out["data"].(string)
	if err := json.Unmarshal([]byte(text), &data); err != nil || len(data) != 1 || data["1"] != "up" || out["stdout"] != "here\n" {
		t.Errorf("outputs %v", out)
	}
}
