package states

import (
	"context"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Pillar renews the pillar for a run. It gives one only where the run has another than the minion, because of its environment or
// of what the caller gave over it; else the minion's own has been renewed, but for salt-call, which has just compiled it.
func Pillar(ctx context.Context, c *modules.Call, opts map[string]any, override *pyobj.Dict) (*pyobj.Dict, error) {
	if (override == nil || override.Len() == 0) && text(opts["pillarenv"]) == text(c.Opt("pillarenv")) {
		if c.Agent == nil || c.Opt("__cli") == "salt-call" {
			return nil, nil
		}
		return nil, c.Agent.RefreshPillar(ctx, false)
	}
	var pillar *pyobj.Dict
	if c.FreshPillar != nil {
		var err error
		if pillar, err = c.FreshPillar(ctx, text(opts["saltenv"]), text(opts["pillarenv"]), override); err != nil {
			return nil, err
		}
	} else {
		pillar = pyobj.DeepCopy(c.OrderedPillar()).(*pyobj.Dict)
	}
	return nested.UpdateObject(pillar, override, pytext.Truth(opts["pillar_merge_lists"])), nil
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}
