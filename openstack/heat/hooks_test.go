//go:build linux

package heat_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/standard"
	_ "github.com/brine-salt/brine/modules/file"
	"github.com/brine-salt/brine/openstack/heat"
	"github.com/brine-salt/brine/openstack/internal/hooktest"
	_ "github.com/brine-salt/brine/states/file"
)

// TestHeatH2Hooks: the cases of testdata/hooks have the inputs of the hooks' own tests. They must result in the
// signals recorded from heat-agents, call the tools in the same way and write the same files. Cases for the real
// ansible and puppet need a host with these.
func TestHeatH2Hooks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cases that change the host need root: they run in namespaces of their own")
	}
	if !privatehost.Inside() {
		privatehost.Enter(t, "-test.run=^TestHeatH2Hooks$")
		return
	}
	host := privatehost.New(t)
	defer host.Undo(t)
	recorded := hooktest.Recorded(t, "testdata/hooks")
	for _, c := range hooktest.Load(t, "testdata/hooks") {
		t.Run(c.Name, func(t *testing.T) {
			if tool := realTool[c.Name]; tool != "" {
				if _, err := exec.LookPath(tool); err != nil || !realTools {
					t.Skipf("needs %s, and the build tag openstack", tool)
				}
			}
			got := c.Comparable(c.Run(t, host, ours))
			if diff := cmp.Diff(c.Expected(t, recorded[c.Name]), got); diff != "" {
				t.Errorf("heat-agents (-) and ours (+):\n%s", diff)
			}
		})
	}
}

// realTool maps cases to the installed program that they need.
var realTool = map[string]string{"ansible/for real": "ansible-playbook", "ansible/for real and fails": "ansible-playbook",
	"puppet/for real": "puppet", "puppet/for real and fails": "puppet"}

// ours runs a case as heat-minion does: the deployment is in the local metadata.
func ours(t *testing.T, c *hooktest.Case) map[string]any {
	t.Helper()
	dir := "/var/lib/os-collect-config/local-data"
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "md"), slices.Concat([]byte(`{"deployments": [`), c.JSON(t), []byte("]}")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	opts := map[string]any{"id": "guest", "cachedir": "/var/cache/salt/minion", "pki_dir": "/etc/salt/pki/minion", "file_client": "local",
		"master_type": "disable", "saltenv": "base", "renderer": "jinja|yaml"}
	options, err := standard.Options(opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Grains = nil
	m, err := minion.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := heat.NewSettings(opts)
	if err != nil {
		t.Fatal(err)
	}
	e := heat.New(heat.Options{Settings: s, Call: func(ctx context.Context, fun string, kwargs map[string]any) (any, error) {
		res, err := m.Call(ctx, minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true})
		if err == nil {
			err = res.Err
		}
		return res.Return, err
	}})
	if _, err := e.Once(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/var/lib/heat-config/deployed/" + c.ID() + ".notify.json")
	if os.IsNotExist(err) {
		return nil
	}
	var signal map[string]any
	if err == nil {
		err = json.Unmarshal(text, &signal)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signal
}
