// Package saltutil is Salt's execution module "saltutil": managing the minion and its jobs. Salt's source:
// salt/modules/saltutil.py. Functions that would bring Python code from the master say that nothing was brought, since there is
// no Python to run it.
package saltutil

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// saltutil.cmd differs: the configuration of the master is the one beside the minion's; an answer of a batch has its return code, too; there is no ssh.
// saltutil.cmd_iter differs: as saltutil.cmd; salt-call shows the answers, not a generator.
// saltutil.runner differs: the master on this host runs it, which must be running; it knows the call as one of the user that the minion runs as.
// saltutil.wheel differs: as saltutil.runner.
// saltutil.sync_* differ: Python code is not brought to the minion, there is nothing there to run it; the list is empty always.
// saltutil.refresh_* differ: the answer comes when the data is there, and is False if it could not be had. In a salt-call it is False as in Salt when no minion runs on the host, but for refresh_grains.
// saltutil.refresh_resources, saltutil.sync_resources are added: Salt 3008 has them.
// saltutil.refresh_beacons differs: the answer reports whether the minion has an event bus.
// saltutil.clear_cache differs: it keeps running jobs and returns that no master has yet.
// saltutil.regen_keys differs: the minion makes new keys by restarting.
// saltutil.update differs: it is agent.update where brine-update is installed; else it answers as stock.
// saltutil.mmodule differs: it calls the minion's own function.

// agent returns the running minion, or an error outside of one.
func agent(c *modules.Call) (modules.Agent, error) {
	if c.Agent == nil {
		return nil, modules.Errorf("cannot run %s: this program is no running minion", c.Fun)
	}
	return c.Agent, nil
}

func running(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return jobs(a.Running(), ""), nil
}

func isRunning(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return jobs(a.Running(), c.Str("fun")), nil
}

// jobs returns the jobs whose function matches a pattern; "" matches all.
func jobs(list []map[string]any, pattern string) []any {
	out := []any{}
	for _, j := range list {
		fun, _ := j["fun"].(string)
		if pattern == "" || fnmatch.Match(pattern, fun) {
			out = append(out, j)
		}
	}
	return out
}

func findJob(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	if j := a.Job(c.Str("jid")); j != nil {
		return j, nil
	}
	return map[string]any{}, nil
}

func findCachedJob(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	jid := c.Str("jid")
	if data := a.Cached(jid); data != nil {
		return data, nil
	}
	dir, _ := c.Opt("cachedir").(string)
	if dir != "" {
		dir = filepath.Join(dir, "minion_jobs") + "/" + jid
	}
	if info, err := os.Stat(c.Path(dir)); err == nil && info.IsDir() {
		return nil, nil // what is in it is no return
	}
	if !pytext.Truth(c.Opt("cache_jobs")) {
		return "Local jobs cache directory not found; you may need to enable cache_jobs on this minion", nil
	}
	return "Local jobs cache directory " + dir + " not found", nil
}

// The signals of kill and term. They are numbers here since jobs may run on any system.
const (
	sigKill = 9
	sigTerm = 15
)

func signalJob(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	if a.Job(c.Str("jid")) == nil {
		return "", nil
	}
	sig, ok := c.Value("sig").(int64)
	if !ok || sig < 0 || sig > 64 {
		return nil, modules.Usagef("sig must be the number of a signal, not %s", pytext.Repr(c.Value("sig")))
	}
	return a.Signal(c.Str("jid"), int(sig)), nil
}

func killJob(_ context.Context, c *modules.Call) (any, error) { return one(c, sigKill) }
func termJob(_ context.Context, c *modules.Call) (any, error) { return one(c, sigTerm) }

func one(c *modules.Call, sig int) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	return a.Signal(c.Str("jid"), sig), nil
}

func killAllJobs(_ context.Context, c *modules.Call) (any, error) { return all(c, sigKill) }
func termAllJobs(_ context.Context, c *modules.Call) (any, error) { return all(c, sigTerm) }

func all(c *modules.Call, sig int) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, j := range a.Running() {
		list = append(list, a.Signal(pytext.Str(j["jid"]), sig))
	}
	return list, nil
}

// inUse are the parts of the cache directory that are not a cache: the running minion's records of jobs in progress.
var inUse = [...]string{"job_journal", "return_spool", "proc"}

func clearCache(ctx context.Context, c *modules.Call) (any, error) {
	root, err := cacheDir(c)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return nil // gone meanwhile, or not readable: Python's walk passes over it
		case slices.ContainsFunc(inUse[:], func(keep string) bool { return strings.HasPrefix(name, filepath.Join(root, keep)) }):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return done(ctx, c, err)
}

// done returns the result of functions that remove something: false if the system refused.
func done(ctx context.Context, c *modules.Call, err error) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		c.Logger().Error("Cannot clear cache", "err", err)
		return false, nil
	}
	return true, nil
}

func cacheDir(c *modules.Call) (string, error) {
	dir, _ := c.Opt("cachedir").(string)
	if dir == "" {
		return "", modules.Errorf("cannot clear the cache: there is no cachedir")
	}
	return c.Path(dir), nil
}

func clearJobCache(ctx context.Context, c *modules.Call) (any, error) {
	root, err := cacheDir(c)
	if err != nil {
		return nil, err
	}
	hours, ok := number(c.Value("hours"))
	if !ok {
		return nil, &modules.TypeError{Msg: "unsupported operand type(s) for -: 'float' and '" + modules.TypeName(c.Value("hours")) + "'"}
	}
	before := float64(c.Now().UnixNano())/1e9 - hours*3600
	root = filepath.Join(root, "minion_jobs")
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	for _, d := range list {
		if ctx.Err() != nil {
			break
		}
		info, ierr := d.Info()
		if ierr != nil || !d.IsDir() || float64(info.ModTime().UnixNano())/1e9 >= before {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(root, d.Name())))
	}
	return done(ctx, c, err)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func revokeAuth(ctx context.Context, c *modules.Call) (any, error) {
	if c.Master == nil {
		return nil, modules.Errorf("cannot run %s: this program has no master", c.Fun)
	}
	load := map[string]any{"cmd": "revoke_auth", "id": c.ID, "preserve_minion_cache": c.Value("preserve_minion_cache")}
	if _, err := c.Master.Request(ctx, load); err != nil {
		c.Logger().Error("Cannot revoke the minion's key", "err", err)
		return false, nil
	}
	return true, nil
}

func regenKeys(_ context.Context, c *modules.Call) (any, error) {
	a, err := agent(c)
	if err != nil {
		return nil, err
	}
	dir, _ := c.Opt("pki_dir").(string)
	if dir == "" {
		return nil, modules.Errorf("cannot make new keys: there is no pki_dir")
	}
	list, err := os.ReadDir(c.Path(dir))
	if err != nil {
		return nil, modules.OSError(err)
	}
	for _, d := range list {
		if !d.IsDir() {
			if err := os.Remove(filepath.Join(c.Path(dir), d.Name())); err != nil {
				c.Logger().Error("Cannot remove key", "err", err)
			}
		}
	}
	return nil, a.Restart()
}

func listExtmods(_ context.Context, c *modules.Call) (any, error) {
	root, err := cacheDir(c)
	if err != nil {
		return nil, err
	}
	root = filepath.Join(root, "extmods")
	kinds, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, modules.OSError(err)
	}
	ret := map[string]any{}
	for _, k := range kinds {
		names := []string{}
		err := filepath.WalkDir(filepath.Join(root, k.Name()), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _, _ := strings.Cut(d.Name(), ".")
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, modules.OSError(err)
		}
		slices.Sort(names)
		list := []any{}
		for _, n := range slices.Compact(names) {
			list = append(list, n)
		}
		ret[k.Name()] = list
	}
	return ret, nil
}

func mmodule(ctx context.Context, c *modules.Call) (any, error) {
	kwargs := map[string]any{}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kwargs[k] = v
		}
	}
	return c.ExecKw(ctx, c.Str("fun"), c.Extra, kwargs)
}

// update runs agent.update. Without brine-update it answers like a stock minion built without Esky, as all present
// ones are.
func update(ctx context.Context, c *modules.Call) (any, error) {
	if c.Which("brine-update") != "" {
		v, err := c.Exec(ctx, "agent.update", c.Value("version"))
		var missing *modules.NotAvailableError
		if !errors.As(err, &missing) {
			return v, err
		}
	}
	return map[string]any{"_error": "Esky not available as import"}, nil
}

// seconds returns an argument that is a duration in seconds.
func seconds(c *modules.Call, name string) (time.Duration, error) {
	f, err := c.Float(name)
	return time.Duration(f * float64(time.Second)), err
}
