//go:build interop

package states_test

import (
	"context"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/schedule"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// daemon is the part of our minion that manages schedule and beacons, as stock's is behind the bus of daemon.py.
type daemon struct {
	modulestest.Agent
	schedule *schedule.Schedule
	beacons  *beacon.Engine
}

// newDaemon has neither jobs nor beacons; it keeps its schedule in dir.
func newDaemon(e *modules.Env, dir string) *daemon {
	persist := func(jobs map[string]any) error {
		text, err := yaml.MarshalStyle(map[string]any{"schedule": jobs}, yaml.Style{Flow: yaml.FlowLeafs})
		if err == nil {
			if err = os.MkdirAll(dir, 0o755); err == nil {
				err = atomicfile.WriteFile(filepath.Join(dir, "_schedule.conf"), []byte(text), 0o644)
			}
		}
		return err
	}
	return &daemon{
		schedule: schedule.New(schedule.Options{Persist: persist, Start: func(schedule.Run) {}}),
		beacons:  beacon.New(beacon.Options{Kinds: beacon.Kinds(), Host: func(context.Context) *beacon.Host { return &beacon.Host{Env: e} }}),
	}
}

// Manage implements modules.Manager.
func (d *daemon) Manage(ctx context.Context, tag string, data map[string]any, _ string) (map[string]any, bool) {
	if tag == "manage_beacons" {
		return d.beacons.Manage(ctx, data), true
	}
	return d.schedule.Manage(data), true
}
