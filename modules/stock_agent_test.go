//go:build interop

package modules_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/yaml"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/schedule"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/beacons"
	"github.com/brine-salt/brine/modules/cpmod"
	"github.com/brine-salt/brine/modules/data"
	"github.com/brine-salt/brine/modules/defaults"
	"github.com/brine-salt/brine/modules/environ"
	"github.com/brine-salt/brine/modules/event"
	"github.com/brine-salt/brine/modules/hashutil"
	"github.com/brine-salt/brine/modules/matchmod"
	"github.com/brine-salt/brine/modules/minemod"
	"github.com/brine-salt/brine/modules/minionmod"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/publish"
	"github.com/brine-salt/brine/modules/random"
	"github.com/brine-salt/brine/modules/ret"
	"github.com/brine-salt/brine/modules/saltutil"
	schedulemod "github.com/brine-salt/brine/modules/schedule"
	"github.com/brine-salt/brine/modules/slsutil"
	"github.com/brine-salt/brine/modules/status"
)

// agentModules are the modules that ask the minion and its master rather than the host.
func agentModules() []*modules.Module {
	return []*modules.Module{beacons.Module, minionmod.Module, publish.Module, ret.Module, schedulemod.Module, cpmod.Module, data.Module, defaults.Module, environ.Module, event.Module, hashutil.Module, matchmod.Module, minemod.Module, random.Module, saltutil.Module, slsutil.Module, status.Module}
}

// agentParts gives our side a file client on the same roots and the same cache as stock's.
func (s *stock) agentParts(t *testing.T, e *modules.Env) {
	t.Helper()
	roots := map[string][]string{}
	for env, list := range s.opts["file_roots"].(map[string]any) {
		for _, dir := range list.([]any) {
			roots[env] = append(roots[env], dir.(string))
		}
	}
	d := &daemon{s: s, e: e}
	e.Agent = d
	s.newJob = d.start
	e.Files = fileclient.New(fileclient.Options{Roots: roots, CacheDir: filepath.Join(s.scratch, "cache"), HashType: s.opts["hash_type"].(string)})
}

// daemon is the part of our minion that manages schedule and beacons, as stock's is behind the bus of daemon.py.
type daemon struct {
	modulestest.Agent
	s        *stock
	e        *modules.Env
	schedule *schedule.Schedule
	beacons  *beacon.Engine
}

// start begins anew, with neither jobs nor beacons.
func (d *daemon) start() {
	persist := func(jobs map[string]any) error {
		dir := filepath.Join(d.s.scratch, "conf", "minion.d")
		text, err := yaml.MarshalStyle(map[string]any{"schedule": jobs}, yaml.Style{Flow: yaml.FlowLeafs})
		if err == nil {
			if err = os.MkdirAll(dir, 0o755); err == nil {
				err = atomicfile.WriteFile(filepath.Join(dir, "_schedule.conf"), []byte(text), 0o644)
			}
		}
		return err
	}
	d.schedule = schedule.New(schedule.Options{Persist: persist, Start: func(schedule.Run) {}})
	d.beacons = beacon.New(beacon.Options{Kinds: beacon.Kinds(), Host: func(context.Context) *beacon.Host { return &beacon.Host{Env: d.e} }})
}

// Manage implements modules.Manager.
func (d *daemon) Manage(ctx context.Context, tag string, data map[string]any, _ string) (map[string]any, bool) {
	if tag == "manage_beacons" {
		return d.beacons.Manage(ctx, data), true
	}
	return d.schedule.Manage(data), true
}
