package saltutil

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Events with which the minion reports that it has read something again.
const (
	pillarRefreshed  = "/salt/minion/minion_pillar_refresh_complete"
	modulesRefreshed = "/salt/minion/minion_mod_refresh_complete"
)

// tell fires an event for the running minion and awaits its answer, if that is not empty. A salt-call has renewed only what it
// has itself. The result reports whether there is a minion.
func tell(ctx context.Context, c *modules.Call, tag string, data map[string]any, answer string) bool {
	m, ok := c.Agent.(modules.Manager)
	if !ok {
		return true
	}
	_, told := m.Manage(ctx, tag, data, answer)
	return told
}

func refreshPillar(ctx context.Context, c *modules.Call) (any, error) {
	answer := ""
	if c.Bool("wait") {
		limit, err := seconds(c, "timeout")
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		answer = pillarRefreshed
	}
	return pillar(ctx, c, c.Bool("clean_cache"), answer)
}

// pillar reports whether the pillar was renewed, and in a salt-call whether there is a running minion, which does the same.
func pillar(ctx context.Context, c *modules.Call, clean bool, answer string) (any, error) {
	done, told, err := renewPillar(ctx, c, clean, answer)
	return done && told, err
}

// renewPillar gathers the grains and fetches the pillar again; with clean the master must not use its cached pillar.
// told is false in a salt-call on a host without a running minion.
func renewPillar(ctx context.Context, c *modules.Call, clean bool, answer string) (done, told bool, err error) {
	if done, err = ownGrains(ctx, c); err != nil {
		return false, false, err
	}
	if err := c.Agent.RefreshPillar(ctx, clean); err != nil {
		c.Logger().Error("Cannot refresh pillar", "err", err)
		done = false
	}
	return done, tell(ctx, c, "pillar_refresh", map[string]any{"clean_cache": clean}, answer), nil
}

// ownGrains gathers the grains again and resets the decisions about which modules suit this host.
func ownGrains(ctx context.Context, c *modules.Call) (bool, error) {
	a, err := agent(c)
	if err != nil {
		return false, err
	}
	if err := a.RefreshGrains(ctx); err != nil {
		c.Logger().Error("Cannot refresh grains", "err", err)
		return false, nil
	}
	c.Registry().Reset()
	return true, nil
}

func refreshModules(ctx context.Context, c *modules.Call) (any, error) {
	data, answer := map[string]any{}, ""
	if later, given := c.Keywords["async"]; given && !pytext.Truth(later) {
		data["notify"], answer = true, modulesRefreshed
	}
	done, told, err := renewGrains(ctx, c, data, answer)
	return done && told, err
}

// grains gathers the grains again, here and in the running minion.
func grains(ctx context.Context, c *modules.Call) (any, error) {
	done, _, err := renewGrains(ctx, c, map[string]any{}, "")
	return done, err
}

// renewGrains gathers the grains again. Its results are those of renewPillar.
func renewGrains(ctx context.Context, c *modules.Call, data map[string]any, answer string) (done, told bool, err error) {
	if done, err = ownGrains(ctx, c); err != nil {
		return false, false, err
	}
	return done, tell(ctx, c, "module_refresh", data, answer), nil
}

// refreshGrains does not return False merely because no minion is running, as in Salt.
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
	if with, given := c.Keywords["refresh_pillar"]; given && !pytext.Truth(with) {
		return grains(ctx, c)
	}
	done, _, err := renewPillar(ctx, c, pytext.Truth(c.Keywords["clean_pillar_cache"]), "")
	return done, err
}

func refreshBeacons(_ context.Context, c *modules.Call) (any, error) {
	return fire(c, "beacons_refresh")
}

// refreshResources fires the event that stock 3008 has for it. Programs on the bus may look after resources; the minion has none.
func refreshResources(_ context.Context, c *modules.Call) (any, error) {
	return fire(c, "resource_refresh")
}

// refreshMatchers fires an event that the minion itself does not need: matchers are part of the program.
func refreshMatchers(_ context.Context, c *modules.Call) (any, error) {
	return fire(c, "matchers_refresh")
}

func fire(c *modules.Call, tag string) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return a.FireLocal(tag, map[string]any{}), nil
}

// refresh is the refresh that would follow the distribution of some kind of code.
type refresh func(ctx context.Context, c *modules.Call) (any, error)

// synced returns the result of the functions that distribute code. brine distributes none: the result names each file
// of the kind that the master has and this host does not run. The refresh still takes place.
func synced(ctx context.Context, c *modules.Call, after refresh, kind string) (any, error) {
	list, err := notRun(ctx, c, []string{kind})
	if err != nil {
		return nil, err
	}
	if after != nil && c.Bool("refresh") {
		if _, err := after(ctx, c); err != nil {
			return nil, err
		}
	}
	return list[kind], nil
}

// notRun are, by kind, lines that name what the master distributes and the host does not run.
func notRun(ctx context.Context, c *modules.Call, kinds []string) (map[string]any, error) {
	lines := map[string]any{}
	for _, kind := range kinds {
		lines[kind] = []any{}
	}
	if c.Files == nil {
		return lines, nil
	}
	envs := []string{"base"}
	if v := c.Value("saltenv"); pytext.Truth(v) {
		envs = strings.Split(pytext.Str(v), ",")
	} else if v := c.Opt("saltenv"); pytext.Truth(v) {
		envs = []string{pytext.Str(v)}
	}
	var all []owncode.File
	for _, env := range envs {
		files, err := owncode.List(ctx, c.Env, c.Files, strings.TrimSpace(env), kinds)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			list, _ := lines[f.Kind].([]any)
			lines[f.Kind] = append(list, "not run: "+f.Path+" ("+f.Cure()+")")
		}
		all = append(all, files...)
	}
	if len(all) > 0 {
		c.Logger().Warn(owncode.Notice(all))
	}
	return lines, nil
}

func syncBeacons(ctx context.Context, c *modules.Call) (any, error) {
	return synced(ctx, c, refreshBeacons, modules.KindBeacons)
}
func syncResources(ctx context.Context, c *modules.Call) (any, error) {
	return synced(ctx, c, refreshResources, "resources")
}
func syncSdb(ctx context.Context, c *modules.Call) (any, error) { return synced(ctx, c, nil, "sdb") }
func syncGrains(ctx context.Context, c *modules.Call) (any, error) {
	return synced(ctx, c, pillarAfter, modules.KindGrains)
}

// syncCode is for the kinds of code after which modules are refreshed.
func syncCode(ctx context.Context, c *modules.Call, kind string) (any, error) {
	return synced(ctx, c, grains, kind)
}

// pillarAfter gathers the grains and fetches the pillar again, for the functions that sync code.
func pillarAfter(ctx context.Context, c *modules.Call) (any, error) {
	return pillar(ctx, c, c.Bool("clean_pillar_cache"), "")
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
	return synced(ctx, c, pillarAfter, "pillar")
}

func syncTops(ctx context.Context, c *modules.Call) (any, error) {
	if err := masterless(c, "Master top"); err != nil {
		return nil, err
	}
	return synced(ctx, c, nil, "tops")
}

func syncWrapper(ctx context.Context, c *modules.Call) (any, error) {
	if err := masterless(c, "Wrapper"); err != nil {
		return nil, err
	}
	return synced(ctx, c, grains, "wrapper")
}

func syncAll(ctx context.Context, c *modules.Call) (any, error) {
	kinds := []string{"clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "outputters",
		"utils", "log_handlers", "executors", "proxy", "engines", "thorium", "serializers", "matchers"}
	if c.Opt("file_client") == "local" {
		kinds = append(kinds, "tops", "pillar", "wrapper")
	}
	list, err := notRun(ctx, c, kinds)
	if err != nil {
		return nil, err
	}
	for kind, name := range map[string]string{"outputters": "output", "proxy": "proxymodules"} { // as the answer calls them
		list[name] = list[kind]
		delete(list, kind)
	}
	if c.Bool("refresh") {
		if _, err := pillarAfter(ctx, c); err != nil {
			return nil, err
		}
	}
	return list, nil
}
