// Package minionmod is Salt's execution module "minion": the keys of a master on the same host, and the minion's own end and
// restart. Salt's source: salt/modules/minion.py.
package minionmod

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// minion.kill differs: it answers when the signal is sent, since the job ends with the minion that runs it.
// minion.restart differs: outside of systemd the minion ends with exit code 99 for its supervisor to start it again; minion_restart_command is run without killing the minion first.

// exitSoftware is Salt's EX_SOFTWARE.
const exitSoftware = 70

func list(_ context.Context, c *modules.Call) (any, error) {
	dir, _ := c.Opt("pki_dir").(string)
	dir = strings.ReplaceAll(dir, "minion", "master")
	found := map[string]any{}
	for _, sub := range [...]string{"minions", "minions_pre", "minions_rejected", "minions_denied"} {
		names := []any{}
		entries, _ := os.ReadDir(c.Path(dir + "/" + sub))
		sorting.Stable(entries, func(a, b os.DirEntry) int {
			return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name()))
		})
		for _, e := range entries {
			info, err := os.Stat(c.Path(dir + "/" + sub + "/" + e.Name()))
			if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
		found[sub] = names
	}
	return found, nil
}

func kill(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{"killed": nil, "retcode": int64(1)}
	pid := c.Grain("pid")
	if !pytext.Truth(pid) {
		ret["comment"], ret["retcode"] = []any{`Unable to find "pid" in grains`}, int64(exitSoftware)
		return ret, nil
	}
	if _, err := c.Registry().Lookup("ps.kill_pid", c.Env); err != nil {
		ret["comment"], ret["retcode"] = []any{"Missing command: ps.kill_pid"}, int64(exitSoftware)
		return ret, nil
	}
	sent, err := c.Exec(ctx, "ps.kill_pid", pid)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(sent) {
		ret["comment"] = []any{"ps.kill_pid failed"}
		return ret, nil
	}
	ret["killed"], ret["retcode"] = pid, int64(0)
	return ret, nil
}

func restart(ctx context.Context, c *modules.Call) (any, error) {
	ret := map[string]any{"killed": nil, "restart": map[string]any{}, "service_restart": map[string]any{}, "retcode": int64(0)}
	command, _ := c.Opt("minion_restart_command").([]any)
	switch {
	case len(command) > 0:
		return restartByCommand(ctx, c, ret, command)
	case c.Bool("systemd") && isSystemd(c):
		comment := []any{"Using systemctl to restart salt-minion"}
		service, comment, code := restartService(ctx, c, comment)
		ret["service_restart"], ret["comment"], ret["retcode"] = service, comment, code
		return ret, nil
	case c.Agent == nil:
		return nil, modules.Errorf("this program is no minion")
	}
	if err := c.Agent.Restart(); err != nil {
		return nil, modules.Errorf("%s", err)
	}
	ret["killed"], ret["comment"] = int64(os.Getpid()), []any{"The minion ends and leaves it to its supervisor to start it again"}
	return ret, nil
}

func restartByCommand(ctx context.Context, c *modules.Call, ret map[string]any, command []any) (any, error) {
	comment := []any{"Using configuration minion_restart_command:"}
	for _, x := range command {
		comment = append(comment, "    "+pytext.Str(x))
	}
	v, err := c.Exec(ctx, "cmd.run_all", command)
	if err != nil {
		return nil, err
	}
	res, _ := v.(map[string]any)
	if code := res["retcode"]; pytext.Truth(code) {
		comment = append(comment, "Restart failed")
		ret["retcode"] = code
	}
	delete(res, "pid")
	delete(res, "retcode")
	ret["restart"], ret["comment"] = res, comment
	return ret, nil
}

func isSystemd(c *modules.Call) bool {
	info, err := os.Stat(c.Path("/run/systemd/system"))
	return c.Grain("kernel") == "Linux" && err == nil && info.IsDir()
}

// restartService has systemd restart the minion, and try again later if that is asked for.
func restartService(ctx context.Context, c *modules.Call, comment []any) (service map[string]any, _ []any, code int64) {
	service = map[string]any{}
	failed := func(what string, err error) (map[string]any, []any, int64) {
		service["result"], service["stderr"] = false, err.Error()
		return service, append(comment, what), exitSoftware
	}
	if c.Bool("schedule_retry") {
		service["schedule_retry"] = map[string]any{}
		delay, err := c.Int("retry_delay")
		if err != nil {
			return failed("Adding scheduled retry failed", modules.Errorf("Invalid retry_delay value: %s. Must be a number of seconds.", c.Str("retry_delay")))
		}
		res, err := c.Cmd(ctx, modules.Command{Args: []string{"systemd-run", "--on-active=" + strconv.FormatInt(delay, 10), "/bin/sh", "-c",
			"systemctl is-active salt-minion || systemctl start salt-minion"}})
		if err == nil && res.ExitCode != 0 {
			c.SetRetcode(res.ExitCode) // as Salt's cmd.run_all does
			err = modules.Errorf("%s", strings.TrimSpace(string(res.Stderr)))
		}
		if err != nil {
			return failed("Adding scheduled retry failed", err)
		}
		service["schedule_retry"] = map[string]any{"detail": strings.TrimRight(string(res.Stderr), "\n"), "delay": c.Value("retry_delay")}
		comment = append(comment, "Scheduled retry for minion restart in "+c.Str("retry_delay")+" seconds")
	}
	done, err := c.ExecKw(ctx, "service.restart", []any{"salt-minion"}, map[string]any{"no_block": true})
	if err != nil {
		return failed("Service restart failed", err)
	}
	service["result"] = done
	return service, append(comment, "Service restart successful"), 0
}
