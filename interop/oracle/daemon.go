package oracle

import (
	"context"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/schedule"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// Daemon is the part of our minion that manages schedule and beacons, as stock's is behind the bus of daemon.py.
type Daemon struct {
	modulestest.Agent
	env      *modules.Env
	conf     string
	schedule *schedule.Schedule
	beacons  *beacon.Engine
}

// NewDaemon is a daemon of a minion with its configuration below scratch. It has neither jobs nor beacons.
func NewDaemon(e *modules.Env, scratch string) *Daemon {
	d := &Daemon{env: e, conf: filepath.Join(scratch, "conf", "minion.d")}
	d.Reset()
	return d
}

// Reset discards all jobs and beacons.
func (d *Daemon) Reset() {
	d.schedule = schedule.New(schedule.Options{Persist: d.persist, Start: func(schedule.Run) {}})
	d.beacons = beacon.New(beacon.Options{Kinds: beacon.Kinds(), Host: func(context.Context) *beacon.Host { return &beacon.Host{Env: d.env} }})
}

func (d *Daemon) persist(jobs map[string]any) error {
	text, err := yaml.MarshalStyle(map[string]any{"schedule": jobs}, yaml.Style{Flow: yaml.FlowLeafs})
	if err == nil {
		if err = os.MkdirAll(d.conf, 0o755); err == nil {
			err = atomicfile.WriteFile(filepath.Join(d.conf, "_schedule.conf"), []byte(text), 0o644)
		}
	}
	return err
}

// Manage implements modules.Manager.
func (d *Daemon) Manage(ctx context.Context, tag string, data map[string]any, _ string) (map[string]any, bool) {
	switch tag {
	case "manage_beacons":
		return d.beacons.Manage(ctx, data), true
	case "manage_schedule":
		return d.schedule.Manage(data), true
	}
	return nil, true
}
