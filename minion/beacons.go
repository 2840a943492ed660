package minion

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
)

// newBeacons creates the beacon engine. Start it once the pillar is known, because the pillar may configure
// beacons.
func (m *Minion) newBeacons() *beacon.Engine {
	s := m.settings()
	own := &ownBeacons{}
	return beacon.New(beacon.Options{
		Kinds: m.allowedBeacons(), Own: own.findKind, OwnNames: own.names,
		Beacons: s.dict("beacons"), Pillar: m.currentPillar,
		Loop: s.span("loop_interval", time.Second),
		Host: m.beaconHost, StateRunning: m.jobs.stateRunning, Log: m.log,
		Spawn: func(run func()) { m.wg.Go(m.waitedFor(run)) },
		Send: func(events []any) {
			m.localEvent("__beacons_return",
				map[string]any{"beacons": events})
		},
		Fire: func(tag string, data map[string]any) { m.bus.bus.Publish(tag, data) }})
}

// beaconHost returns the environment in which beacons run: that of a minion without a job.
func (m *Minion) beaconHost(ctx context.Context) *beacon.Host {
	l := m.firstLink()
	e := m.jobEnvironment(ctx, l, nil)
	refuse := func(ctx context.Context,
		fun string) error {
		return m.dispatch.refuseFunction(ctx, l, nil, fun)
	}
	return &beacon.Host{Env: e, Refuse: refuse,
		Exec: func(ctx context.Context, fun string, args []any, kwargs map[string]any) (any,
			error) {
			res := m.o.Registry.Run(ctx, e, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
			return res.Return, res.Err
		}}
}

// stateRunning reports whether a function of the state module is running.
func (t *jobTable) stateRunning() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.running {
		for _, f := range j.Fun {
			if strings.HasPrefix(f, "state") {
				return true
			}
		}
	}
	return false
}
