//go:build openstack

package heat

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/privatehost"
	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/runcmd"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/openstack/internal/hooktest"
	_ "github.com/brine-salt/brine/states/all"
	"github.com/brine-salt/brine/states/render"
)

// TestH2Hooks: the groups that need no hook answer as the hooks of heat-agents, which was recorded (TestH2Upstream).
func TestH2Hooks(t *testing.T) {
	if !privatehost.Inside() {
		privatehost.Enter(t, "-test.run=^TestH2Hooks$")
		return
	}
	const dir = "testdata/hooks"
	host, recorded := privatehost.New(t), hooktest.Recorded(t, dir)
	defer host.Undo(t)
	for _, c := range hooktest.Load(t, dir) {
		t.Run(c.Name, func(t *testing.T) {
			got := c.Comparable(c.Run(t, host, native))
			if diff := cmp.Diff(c.Expected(t, recorded[c.Name]), got); diff != "" {
				t.Errorf("heat-agents (-) and ours (+):\n%s", diff)
			}
		})
	}
}

// native runs a deployment as the engine does, without its state on disk.
func native(t *testing.T, c *hooktest.Case) map[string]any {
	v, err := pyjson.Parse(c.JSON(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDeployment(v)
	if err != nil {
		return failed("%v", err)
	}
	if err := d.resolve(); err != nil {
		t.Log(err)
		return nil
	}
	if d.Ungrouped() {
		return nil
	}
	opts := map[string]any{"id": "guest", "cachedir": t.TempDir(), "file_client": "local", "renderer": "jinja|yaml", "hash_type": "sha256", "test": false}
	e := &modules.Env{
		ID: "guest", Runner: &runcmd.Runner{}, Agent: &modulestest.Agent{}, Templates: render.Render,
		Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return map[string]any{"id": "guest"} },
		Files: fileclient.New(fileclient.Options{CacheDir: opts["cachedir"].(string), HashType: "sha256"}),
	}
	var r Result
	registry := modules.Default()
	registry.Reset()
	one := modules.NewRegistry(append(registry.All(), &modules.Module{Name: "hooktest", Funcs: []modules.Def{{
		Name: "run", Run: func(ctx context.Context, call *modules.Call) (any, error) {
			r = (&groupRun{Call: call, d: d}).run(ctx, nil)
			return nil, nil
		}}}})...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res := one.Run(ctx, e, modules.Request{Fun: "hooktest.run"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	var out map[string]any
	if err := json.Unmarshal(encode(r), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
