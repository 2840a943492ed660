package states

import (
	"context"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Pillar refreshes the pillar for a run. It returns nil if the run uses the minion's own pillar, which it then
// refreshes; with salt-call that is not necessary, since it was compiled a moment ago. It returns a pillar of the
// run's own if the run has another environment or overrides values.
func Pillar(ctx context.Context, c *modules.Call, opts map[string]any, override *pyobj.Dict) (*pyobj.Dict, error) {
	if (override == nil || override.Len() == 0) && textOf(opts["pillarenv"]) == textOf(c.Opt("pillarenv")) {
		if c.Agent == nil || c.Opt("__cli") == "salt-call" {
			return nil, nil
		}
		return nil, c.Agent.RefreshPillar(ctx, false)
	}
	var pillar *pyobj.Dict
	if c.FreshPillar != nil {
		var err error
		if pillar, err = c.FreshPillar(ctx, textOf(opts["saltenv"]), textOf(opts["pillarenv"]), override); err != nil {
			return nil, err
		}
	} else {
		pillar = pyobj.DeepCopy(c.OrderedPillar()).(*pyobj.Dict)
	}
	return nested.UpdateObject(pillar, override, pytext.Truth(opts["pillar_merge_lists"])), nil
}

// textOf returns an option as text, "" for nil.
func textOf(v any) string {
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}
