package trove

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.RegisterSourceOf(modules.KindBeacons, beacons{}) }

// beacons is the source of the beacon trove, the heartbeat of Trove's guest agent. Its events have the tag
// salt/beacon/<id>/trove/heartbeat. There are none until prepare has ended
// (trove.guestagent.datastore.manager.Manager.update_status).
type beacons struct{}

var _ modules.Source = beacons{}

// Find returns the beacon by its name.
func (beacons) Find(_ *modules.Registry, _ *modules.Env, called string) []*modules.Module {
	if called != beacon.Name {
		return nil
	}
	return []*modules.Module{beacon}
}

// Modules returns the beacon.
func (beacons) Modules(*modules.Registry, *modules.Env) []*modules.Module {
	return []*modules.Module{beacon}
}

// Reset does nothing: there is no cache.
func (beacons) Reset() {}

var beacon = &modules.Module{Name: "trove", Doc: "The heartbeat of Trove's guest.", Funcs: []modules.Def{
	{Name: "validate", Doc: "Check the beacon's configuration.", Params: []modules.Param{{Name: "config"}}, Run: validateBeacon},
	{Name: "beacon", Doc: "Return the state of the database.", Params: []modules.Param{{Name: "config"}}, Run: beat},
}}

func validateBeacon(_ context.Context, c *modules.Call) (any, error) {
	if _, ok := c.Value("config").([]any); !ok {
		return []any{false, "Configuration for the trove beacon must be a list."}, nil
	}
	if _, err := readSettings(c.Opt("trove")); err != nil {
		return []any{false, err.Error()}, nil
	}
	return []any{true, "Valid beacon configuration"}, nil
}

// beat returns a heartbeat, or an empty list before the instance is prepared.
func beat(ctx context.Context, c *modules.Call) (any, error) {
	s, err := readSettings(c.Opt("trove"))
	if err != nil {
		return nil, err
	}
	if !isPrepared(c.Env, s) {
		return []any{}, nil
	}
	g := &guest{settings: s, c: c}
	g.openDatastore()
	defer g.db.close()
	if err := g.db.maintain(); err != nil {
		c.Logger().Warn("Cannot maintain the datastore", "err", err)
	}
	data := heartbeat(c.Env, g.databaseStatus(ctx))
	data["tag"] = heartbeatTag
	return []any{data}, nil
}
