package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// disabledRuns is the grain that keeps what is disabled.
const disabledRuns = "state_runs_disabled"

func disabledList(ctx context.Context, c *modules.Call) []any {
	v, err := c.Exec(ctx, "grains.get", disabledRuns)
	if err != nil {
		return nil
	}
	list, _ := v.([]any)
	return slices.Clone(list)
}

// disabledTexts returns the error texts for those of the SLS files that are disabled (_disabled).
func disabledTexts(ctx context.Context, c *modules.Call, mods []any) []any {
	var out []any
	off := textsOf(disabledList(ctx, c))
	for _, sls := range textsOf(mods) {
		for _, pattern := range off {
			if strings.Contains(pattern, ".*") {
				head, _, _ := strings.Cut(pattern, ".")
				if strings.HasPrefix(sls, head+".") {
					out = append(out, fmt.Sprintf(`The state file "%s" is currently disabled by "%s", to re-enable, run state.enable %s.`, sls, pattern, pattern))
				}
			} else if pattern == sls {
				out = append(out, fmt.Sprintf(`The state file "%s" is currently disabled, to re-enable, run state.enable %s.`, pattern, pattern))
			}
		}
	}
	return out
}

func disable(ctx context.Context, c *modules.Call) (any, error) { return toggle(ctx, c, true) }

func enable(ctx context.Context, c *modules.Call) (any, error) { return toggle(ctx, c, false) }

func toggle(ctx context.Context, c *modules.Call, off bool) (any, error) {
	list := disabledList(ctx, c)
	word := "enabled"
	if off {
		word = "disabled"
	}
	var lines []string
	changed := false
	for _, sls := range splitInput(c.Value("states")) {
		at := slices.Index(list, sls)
		if (at >= 0) == off {
			lines = append(lines, fmt.Sprintf("Info: %v state already %s.", sls, word))
			continue
		}
		lines = append(lines, fmt.Sprintf("Info: %v state %s.", sls, word))
		changed = true
		if off {
			list = append(list, sls)
		} else {
			list = slices.Delete(list, at, at+1)
		}
	}
	if changed {
		if list == nil {
			list = []any{}
		}
		if _, err := c.Exec(ctx, "grains.setval", disabledRuns, list); err != nil {
			return nil, err
		}
	}
	if _, err := c.Exec(ctx, "saltutil.refresh_modules"); err != nil {
		c.Logger().Warn("Cannot refresh modules", "err", err)
	}
	return map[string]any{"res": true, "msg": strings.Join(lines, "\n")}, nil
}

func listDisabled(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "grains.get", disabledRuns)
}
