// Package agent is the execution module "agent", which stock does not have: updates of the minion by brine-update, the program beside
// it. Keys, channel and switch are the host owner's; a master may name a version.
package agent

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules"
)

const program = "brine-update"

// Module is the module.
var Module = &modules.Module{Name: "agent", Doc: "Updates of this minion.", Available: available, Funcs: []modules.Def{
	{Name: "status", Doc: "Return what brine-update knows of this host.", Example: "salt '*' agent.status", Run: status},
	{Name: "update", Doc: "Install a version of the minion, by default the newest one of the host's channel. The minion restarts when the job has returned.", Example: "salt '*' agent.update 1.2.3", Params: []modules.Param{{Name: "version", Optional: true}}, Run: update},
}}

func init() { modules.Register(Module) }

func available(h *modules.Env) (bool, string) {
	return h.Which(program) != "", program + " is not installed"
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	return run(ctx, c, "status", "--json")
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	args := []string{"order", "--jid", c.JID}
	if v := c.Str("version"); v != "" {
		args = append(args, "--to", v)
	}
	v, err := run(ctx, c, args...)
	if m, ok := v.(map[string]any); ok && m["result"] != true {
		return nil, modules.Errorf("%v", m["comment"])
	}
	return v, err
}

// run returns what the program prints as JSON.
func run(ctx context.Context, c *modules.Call, args ...string) (any, error) {
	file, _ := c.Opt("conf_file").(string)
	dir := file[:strings.LastIndexByte(file, '/')+1]
	r, err := c.Cmd(ctx, modules.Command{Args: append([]string{c.Which(program), "--config-dir=" + dir}, args...)})
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(r.Stdout)
	if err != nil {
		return nil, modules.Errorf("cannot read the answer of %s: %s", program, r.Stderr)
	}
	return v, nil
}
