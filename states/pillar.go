package states

import (
	"context"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Pillar is the pillar for a run: compiled anew, with what the caller gave over it. salt-call has just compiled its own.
func Pillar(ctx context.Context, c *modules.Call, opts map[string]any, override map[string]any) (map[string]any, error) {
	pillar := c.PillarData()
	switch {
	case len(override) == 0 && text(opts["pillarenv"]) == text(c.Opt("pillarenv")):
		if c.Agent == nil || c.Opt("__cli") == "salt-call" {
			return pillar, nil
		}
		// The minion's own is renewed rather than a copy fetched, because it keeps the order of its source.
		if err := c.Agent.RefreshPillar(ctx); err != nil {
			return nil, err
		}
		return c.PillarData(), nil
	case c.Master != nil:
		fresh, err := c.Master.Pillar(ctx, text(opts["saltenv"]), text(opts["pillarenv"]), override)
		if err != nil {
			return nil, err
		}
		pillar = fresh
	}
	return nested.Update(nested.CopyMap(pillar), override, pytext.Truth(opts["pillar_merge_lists"])), nil
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}
