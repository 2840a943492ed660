package states

import (
	"context"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Pillar is the pillar for a run: compiled anew by the master, or the minion's own, with what the caller gave over it.
func Pillar(ctx context.Context, c *modules.Call, opts map[string]any, override map[string]any) (map[string]any, error) {
	pillar := c.PillarData()
	if c.Master != nil {
		fresh, err := c.Master.Pillar(ctx, text(opts["saltenv"]), text(opts["pillarenv"]), override)
		if err != nil {
			return nil, err
		}
		pillar = fresh
	}
	if len(override) == 0 {
		return pillar, nil
	}
	return nested.Update(nested.CopyMap(pillar), override, pytext.Truth(opts["pillar_merge_lists"])), nil
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}
