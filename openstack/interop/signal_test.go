//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/lab"
)

// signalTemplate has a handle of each kind, and a condition for those whose signals Debian's Heat 19 reads. It does
// not read ZAQAR_SIGNAL (docs/openstack/guest.md). It fails a condition with TEMP_URL_SIGNAL because of its own first
// object, "in progress", which it compares as text with bytes. With NO_SIGNAL there is nothing to wait for.
func signalTemplate() string {
	var b strings.Builder
	b.WriteString("heat_template_version: 2018-08-31\nresources:\n")
	outputs := "outputs:\n"
	for _, kind := range []string{"TOKEN", "CFN", "TEMP_URL", "HEAT", "ZAQAR", "NO"} {
		fmt.Fprintf(&b, "  h_%[1]s: {type: OS::Heat::WaitConditionHandle, properties: {signal_transport: %[1]s_SIGNAL}}\n", kind)
		if kind == "TEMP_URL" || kind == "ZAQAR" || kind == "NO" {
			continue
		}
		fmt.Fprintf(&b, "  w_%[1]s: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: h_%[1]s}, count: 2, timeout: 230}}\n", kind)
		outputs += fmt.Sprintf("  %[1]s: {value: {get_attr: [w_%[1]s, data]}}\n", kind)
	}
	b.WriteString(`
  h_AWS: {type: AWS::CloudFormation::WaitConditionHandle}
  w_AWS: {type: AWS::CloudFormation::WaitCondition, properties: {Handle: {get_resource: h_AWS}, Count: 2, Timeout: 230}}
  m: {type: OS::Salt::Minion}
  other: {type: OS::Salt::Minion}
  h_SALT: {type: OS::Salt::WaitConditionHandle}
  w_SALT: {type: OS::Salt::WaitCondition, properties: {handle: {get_resource: h_SALT}, server: {get_resource: m}, count: 2, timeout: 230}}
`)
	return b.String() + outputs + `  AWS: {value: {get_attr: [w_AWS, Data]}}
  SALT: {value: {get_attr: [w_SALT, data]}}
  url: {value: {get_resource: h_AWS}}
`
}

// TestHeatSignal signals real handles of each kind with heat.signal: twice, in each form in which a template provides
// the handle. What another minion fires with the tag of OS::Salt::WaitCondition does not count.
func TestHeatSignal(t *testing.T) {
	ctx := testContext(t)
	name := newStack(t, signalTemplate(), lab.StackArgs{})
	attributes := func(kind string) map[string]any {
		t.Helper()
		r, err := cloud.Heat.WaitResource(ctx, name, "h_"+kind, func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" })
		if err != nil {
			t.Fatal(err)
		}
		return r.Attributes
	}
	address := func() string { // get_resource of the CFN handle
		t.Helper()
		attributes("AWS")
		for {
			s, err := cloud.Heat.Show(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if u, _ := s.Outputs()["url"].(string); u != "" {
				return u
			}
			select {
			case <-ctx.Done():
				t.Fatal("the handle has no address")
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	minion, other := joinMinion(t, cloud, name, "m", ours("heat-minion")), joinMinion(t, cloud, name, "other", ours("heat-minion"))
	salt := attributes("SALT")["signal"]
	send := func(g *lab.Guest, handle any, transport, id string, more ...string) {
		t.Helper()
		text, ok := handle.(string)
		if !ok {
			b, err := json.Marshal(handle)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		args := []string{ours("heat-minion"), "call", "--out=json"}
		if transport != "salt" {
			args = append(args, "--local")
		}
		out, err := g.Run(ctx, append(append(args, "heat.signal", text, "id="+id, "data=of "+id, "reason=because"), more...)...)
		if err != nil {
			t.Errorf("%s: %v\n%s", transport, err, out)
			return
		}
		var v struct{ Local map[string]any }
		if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &v); err != nil {
			t.Errorf("%s: %v\n%s", transport, err, out)
		} else if v.Local["result"] != true || v.Local["transport"] != transport {
			t.Errorf("%s: heat.signal returned %v", transport, v.Local)
		}
	}
	send(other, salt, "salt", "stolen", "status=FAILURE")
	token := attributes("TOKEN")
	for _, c := range []struct {
		transport   string
		first, then any
	}{
		{"token", token["curl_cli"], map[string]any{"token": token["token"], "endpoint": token["endpoint"]}},
		{"url", attributes("CFN")["signal"], attributes("CFN")["signal"]},
		{"tempurl", attributes("TEMP_URL")["signal"], attributes("TEMP_URL")["signal"]},
		{"heat", attributes("HEAT")["signal"], attributes("HEAT")["signal"]},
		{"zaqar", attributes("ZAQAR")["signal"], attributes("ZAQAR")["signal"]},
		{"none", attributes("NO")["signal"], "NO_SIGNAL"},
		{"url", address(), address()},
		{"salt", salt, salt},
	} {
		send(minion, c.first, c.transport, "one")
		send(minion, c.then, c.transport, "two")
	}
	out := waitStack(t, cloud, name, "CREATE_COMPLETE").Outputs()
	for _, kind := range []string{"TOKEN", "CFN", "HEAT", "AWS", "SALT"} {
		var data map[string]any
		text, _ := out[kind].(string)
		if err := json.Unmarshal([]byte(text), &data); err != nil || cmp.Diff(map[string]any{"one": "of one", "two": "of two"}, data) != "" {
			t.Errorf("the wait condition %s got %q", kind, text)
		}
	}
}

// TestHeatSignalFailure fails a wait condition with the guest's reason.
func TestHeatSignalFailure(t *testing.T) {
	ctx := testContext(t)
	name := newStack(t, `
heat_template_version: 2018-08-31
resources:
  h: {type: OS::Heat::WaitConditionHandle, properties: {signal_transport: HEAT_SIGNAL}}
  w: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: h}, timeout: 200}}
`, lab.StackArgs{})
	r, err := cloud.Heat.WaitResource(ctx, name, "h", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" })
	if err != nil {
		t.Fatal(err)
	}
	handle, _ := r.Attributes["signal"].(string)
	g := newGuest(t, "guest")
	if out, err := callIn(ctx, g, "heat.signal", handle, "status=FAILURE", "reason=the disk is full"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s := waitStack(t, cloud, name, "CREATE_FAILED"); !strings.Contains(s.Reason, "the disk is full") {
		t.Errorf("the stack failed by %q", s.Reason)
	}
}

// callIn runs a function in a guest with salt-call --local.
func callIn(ctx context.Context, g *lab.Guest, fun string, args ...string) (string, error) {
	return g.Run(ctx, append([]string{ours("heat-minion"), "call", "--local", "--out=json", fun}, args...)...)
}
