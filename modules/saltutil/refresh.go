package saltutil

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

func refreshPillar(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("wait") {
		limit, err := seconds(c, "timeout")
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return pillar(ctx, c, c.Bool("clean_cache"))
}

// pillar gets the pillar anew, clean one that its master has not kept, and tells whether that was possible.
func pillar(ctx context.Context, c *modules.Call, clean bool) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	if err := a.RefreshPillar(ctx, clean); err != nil {
		c.Logger().Error("cannot refresh pillar", "err", err)
		return false, nil
	}
	return true, nil
}

func refreshModules(ctx context.Context, c *modules.Call) (any, error) { return grains(ctx, c) }

// grains gathers the grains anew and lets the modules decide again which of them fit this host.
func grains(ctx context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	if err := a.RefreshGrains(ctx); err != nil {
		c.Logger().Error("cannot refresh grains", "err", err)
		return false, nil
	}
	c.Registry().Reset()
	return true, nil
}

func refreshGrains(ctx context.Context, c *modules.Call) (any, error) {
	var bad []string
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if !strings.HasPrefix(k, "__") && k != "refresh_pillar" && k != "clean_pillar_cache" {
			bad = append(bad, k+"="+pytext.Str(c.Keywords[k]))
		}
	}
	if bad != nil {
		return nil, modules.Usagef("The following keyword arguments are not valid: %s", strings.Join(bad, ", "))
	}
	ok, err := grains(ctx, c)
	if err != nil || ok != any(true) {
		return ok, err
	}
	if with, given := c.Keywords["refresh_pillar"]; !given || pytext.Truth(with) {
		return pillar(ctx, c, pytext.Truth(c.Keywords["clean_pillar_cache"]))
	}
	return true, nil
}

func refreshBeacons(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return a.FireLocal("beacons_refresh", map[string]any{}), nil
}

// refreshResources fires the event that stock 3008 has for it. Programs on the bus may look after resources; the minion has none.
func refreshResources(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return a.FireLocal("resource_refresh", map[string]any{}), nil
}

// refreshMatchers has nothing to do: matchers are part of the program.
func refreshMatchers(_ context.Context, c *modules.Call) (any, error) {
	if _, err := agent(c); err != nil {
		return nil, err
	}
	return true, nil
}

// refresh is what follows after code of some kind would have been brought.
type refresh func(ctx context.Context, c *modules.Call) (any, error)

// synced is the answer of the functions that bring code: none. The refresh that the caller may rely on is done.
func synced(ctx context.Context, c *modules.Call, after refresh) (any, error) {
	if after != nil && c.Bool("refresh") {
		if _, err := after(ctx, c); err != nil {
			return nil, err
		}
	}
	return []any{}, nil
}

func syncBeacons(ctx context.Context, c *modules.Call) (any, error) {
	return synced(ctx, c, refreshBeacons)
}
func syncResources(ctx context.Context, c *modules.Call) (any, error) {
	return synced(ctx, c, refreshResources)
}
func syncSdb(ctx context.Context, c *modules.Call) (any, error)    { return synced(ctx, c, nil) }
func syncGrains(ctx context.Context, c *modules.Call) (any, error) { return synced(ctx, c, both) }

// syncCode is the function for all kinds of code after which modules are refreshed.
func syncCode(ctx context.Context, c *modules.Call) (any, error) { return synced(ctx, c, grains) }

// both gathers grains and gets the pillar.
func both(ctx context.Context, c *modules.Call) (any, error) {
	if _, err := grains(ctx, c); err != nil {
		return nil, err
	}
	return pillarAfter(ctx, c)
}

// pillarAfter gets the pillar anew after something was brought.
func pillarAfter(ctx context.Context, c *modules.Call) (any, error) {
	return pillar(ctx, c, c.Bool("clean_pillar_cache"))
}

// masterless refuses what only a minion without master can do.
func masterless(c *modules.Call, what string) error {
	if c.Opt("file_client") == "local" {
		return nil
	}
	return modules.Errorf("%s modules can only be synced to masterless minions", what)
}

func syncPillar(ctx context.Context, c *modules.Call) (any, error) {
	if err := masterless(c, "Pillar"); err != nil {
		return nil, err
	}
	return synced(ctx, c, pillarAfter)
}

func syncTops(ctx context.Context, c *modules.Call) (any, error) {
	if err := masterless(c, "Master top"); err != nil {
		return nil, err
	}
	return synced(ctx, c, nil)
}

func syncWrapper(ctx context.Context, c *modules.Call) (any, error) {
	if err := masterless(c, "Wrapper"); err != nil {
		return nil, err
	}
	return synced(ctx, c, grains)
}

func syncAll(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{}
	for _, kind := range [...]string{"clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "output",
		"utils", "log_handlers", "executors", "proxymodules", "engines", "thorium", "serializers", "matchers"} {
		ret[kind] = []any{}
	}
	if c.Opt("file_client") == "local" {
		ret["tops"], ret["pillar"], ret["wrapper"] = []any{}, []any{}, []any{}
	}
	if c.Bool("refresh") {
		if _, err := both(ctx, c); err != nil {
			return nil, err
		}
	}
	return ret, nil
}
