//go:build openstack

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/lab"
)

const cfnTemplate = `
heat_template_version: 2018-08-31
resources:
  handle_theirs: {type: AWS::CloudFormation::WaitConditionHandle}
  handle_ours: {type: AWS::CloudFormation::WaitConditionHandle}
  wait_theirs: {type: AWS::CloudFormation::WaitCondition, properties: {Handle: {get_resource: handle_theirs}, Timeout: 300}}
  wait_ours: {type: AWS::CloudFormation::WaitCondition, properties: {Handle: {get_resource: handle_ours}, Timeout: 300}}
  server:
    type: OS::Heat::DeployedServer
    properties: {software_config_transport: POLL_SERVER_CFN}
    metadata:
      signal_theirs: {get_resource: handle_theirs}
      signal_ours: {get_resource: handle_ours}
      AWS::CloudFormation::Init:
        config:
          groups: {lab: {gid: "4900"}}
          files:
            /opt/cfn/conf: {content: "a = ü\nb\n", mode: "000640", owner: root, group: lab}
          commands:
            01: {command: "stat -c '%a %u:%g %n' /opt/cfn/conf > /opt/cfn/seen; getent group lab >> /opt/cfn/seen"}
outputs:
  theirs: {value: {get_attr: [wait_theirs, Data]}}
  ours: {value: {get_attr: [wait_ours, Data]}}
`

// cfnChain does what user data in public templates does: cfn-init with the keys, the wait handle from the metadata,
// and the signal.
const cfnChain = `set -e
mkdir -p /var/lib/heat-cfntools /etc/cfn
printf '%%s' '%[1]s' > /var/lib/heat-cfntools/cfn-metadata-server
printf '[Boto]\ncfn_region_name = heat\ncfn_region_endpoint = 127.0.0.1\n' > /var/lib/heat-cfntools/cfn-boto-cfg
printf 'AWSAccessKeyId=%%s\nAWSSecretKey=%%s\n' '%[2]s' '%[3]s' > /etc/cfn/cfn-credentials
%[6]scfn-init -s '%[4]s' -r server --access-key '%[2]s' --secret-key '%[3]s'
url=$(%[6]scfn-get-metadata -s '%[4]s' -r server --credential-file /etc/cfn/cfn-credentials -k signal_%[5]s 2>/dev/null | tr -d '"')
%[6]scfn-signal -e $? -r 'it is up' -d 'data of the guest' -i guest-1 "$url"
cat /opt/cfn/conf /opt/cfn/seen
`

// TestCfnProgramsWithHeat runs heat-cfntools and brine's programs with the same server of a stack, and compares the
// metadata of the CFN API, its effects, and wait conditions.
func TestCfnProgramsWithHeat(t *testing.T) {
	ctx := testContext(t)
	name := newStack(t, cfnTemplate, lab.StackArgs{})
	if _, err := cloud.Heat.WaitResource(ctx, name, "server", func(r *lab.Resource) bool {
		return r != nil && r.Status == "CREATE_COMPLETE"
	}); err != nil {
		t.Fatal(err)
	}
	m, err := cloud.Heat.Metadata(ctx, name, "server")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := m["os-collect-config"].(map[string]any)
	keys, ok := all["cfn"].(map[string]any)
	if !ok {
		t.Fatalf("the metadata has no keys for the CFN API: %v", m)
	}
	text := func(key string) string { return fmt.Sprint(keys[key]) }
	api := strings.TrimSuffix(strings.TrimSuffix(text("metadata_url"), "/"), "/v1")
	var outputs []string
	for who, prefix := range map[string]string{"theirs": "/usr/bin/", "ours": ours("heat-minion") + " "} {
		g := newGuest(t, who)
		script := fmt.Sprintf(cfnChain, api, text("access_key_id"), text("secret_access_key"), text("stack_name"), who, prefix)
		out, err := g.Run(ctx, "sh", "-c", script)
		if err != nil {
			t.Errorf("%s: %v\n%s", who, err, out)
		}
		outputs = append(outputs, out)
	}
	const want = "a = ü\nb\n640 0:4900 /opt/cfn/conf\nlab:x:4900:\n"
	if outputs[0] != outputs[1] || outputs[0] != want {
		t.Errorf("one guest has %q\nthe other %q", outputs[0], outputs[1])
	}
	s := waitStack(t, cloud, name, "CREATE_COMPLETE")
	if got := s.Outputs(); got["ours"] != got["theirs"] || got["ours"] != `{"guest-1": "data of the guest"}` {
		t.Errorf("wait conditions got %v", got)
	}
}
