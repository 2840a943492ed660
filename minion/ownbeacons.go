package minion

import (
	"context"
	"fmt"
	"sync"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
)

// ownBeacons are the beacons that the host's owner added as plug-ins. They share one job context that lasts
// while any of them is configured, because Salt's beacons keep their state in module variables.
type ownBeacons struct {
	mu   sync.Mutex
	job  *modules.Context // guarded by mu; beacons in use
	open map[string]bool  // guarded by mu; those that have looked
}

// findKind returns the kind of a name, or nil if it is missing or unusable on this host. reason is why it is
// unusable.
func (o *ownBeacons) findKind(h *beacon.Host, name string) (k *beacon.Kind, reason string) {
	m, reason := modules.FindIn(modules.KindBeacons, h.Env, name)
	if m == nil || m.Def("beacon") == nil {
		return nil, reason
	}
	return &beacon.Kind{Name: name,
		Validate: func(h *beacon.Host, config any) (bool, string) {
			if m.Def("validate") == nil {
				h.Logger().Warn(fmt.Sprintf("No validate function found for %s, running basic "+
					"beacon validation.", name))
				_, list := config.([]any)
				return list, "Configuration for beacon must be a list."
			}
			v, err := o.call(context.Background(), h, m, "validate", config)
			if err != nil {
				return false, err.Error()
			}
			pair, _ := v.([]any)
			if len(pair) < 2 {
				return pytext.Truth(v), ""
			}
			return pytext.Truth(pair[0]), pytext.Str(pair[1])
		},
		Look: func(ctx context.Context, h *beacon.Host, config []any) ([]map[string]any, error) {
			o.noteLookup(beaconName(config), true)
			v, err := o.call(ctx, h, m, "beacon", config)
			if err != nil {
				return nil, err
			}
			list, _ := v.([]any)
			found := make([]map[string]any, 0, len(list))
			for _, x := range list {
				d, ok := x.(map[string]any)
				if !ok {
					return nil, modules.Errorf("the beacon answered with %s where a dictionary "+
						"belongs", pytext.Repr(x))
				}
				found = append(found, d)
			}
			return found, nil
		},
		Close: func(h *beacon.Host, config []any) {
			if m.Def("close") != nil {
				if _, err := o.call(context.Background(), h, m, "close", config); err != nil {
					h.Logger().Debug("Failed to close a beacon", "beacon", name, "err", err)
				}
			}
			o.noteLookup(beaconName(config), false)
		},
	}, ""
}

// names returns the names of the usable beacons.
func (o *ownBeacons) names(h *beacon.Host) []string {
	var list []string
	for _, s := range modules.SourcesOf(modules.KindBeacons) {
		for _, m := range s.Modules(h.Functions, h.Env) {
			if k, _ := o.findKind(h, m.Called()); k != nil {
				list = append(list, m.Called())
			}
		}
	}
	return list
}

// call calls a function of a beacon with its configuration.
func (o *ownBeacons) call(ctx context.Context, h *beacon.Host, m *modules.Module, fun string,
	config any) (any, error) {
	o.mu.Lock()
	if o.job == nil {
		o.job = &modules.Context{}
		o.job.Keep()
	}
	job := o.job
	o.mu.Unlock()
	full := m.Called() + "." + fun
	c, err := h.Functions.NewCall(h.Env, full, "", job).Foreign(h.Env, nil, m.Def(fun), full,
		[]any{nested.Copy(config)}, nil)
	if err != nil {
		return nil, err
	}
	return m.Def(fun).Run(ctx, c)
}

// noteLookup records whether a beacon is in use. When the last one is not, the shared job context ends.
func (o *ownBeacons) noteLookup(name string, inUse bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if inUse {
		if o.open == nil {
			o.open = map[string]bool{}
		}
		o.open[name] = true
		return
	}
	delete(o.open, name)
	if len(o.open) == 0 && o.job != nil {
		o.job.Close()
		o.job = nil
	}
}

// beaconName returns the name that the engine adds to a beacon's configuration.
func beaconName(config []any) string {
	for _, x := range config {
		if m, ok := x.(map[string]any); ok && m["_beacon_name"] != nil {
			return pytext.Str(m["_beacon_name"])
		}
	}
	return ""
}
