// Package agent is the execution module "agent", which stock does not have: the state of the minion's process, and updates of the
// minion by brine-update, the program beside it. Keys, channel and switch of updates are the host owner's; a master may name a version.
package agent

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
)

const program = "brine-update"

// Module is the module.
var Module = &modules.Module{Name: "agent", Doc: "The minion's own process, and its updates.", Funcs: []modules.Def{
	{Name: "diagnostics", Doc: "Return the version of the minion, and of its process the size of the table of descriptors, threads and memory (in KiB).", Example: "salt '*' agent.diagnostics", Run: diagnostics},
	{Name: "status", Doc: "Return what brine-update knows of this host.", Example: "salt '*' agent.status", Run: status},
	{Name: "update", Doc: "Install a version of the minion, by default the newest one of the host's channel. The minion restarts when the job has returned.", Example: "salt '*' agent.update 1.2.3", Params: []modules.Param{{Name: "version", Optional: true}}, Run: update},
}}

func init() { modules.Register(Module) }

// processStatus is what the kernel reports of this process.
const processStatus = "/proc/self/status"

func diagnostics(context.Context, *modules.Call) (any, error) {
	b, err := os.ReadFile(processStatus)
	if err != nil {
		return nil, modules.Errorf("cannot read %s: %v", processStatus, err)
	}
	out := map[string]any{"version": version.Brine()}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		key := diagnosis(name)
		words := strings.Fields(value)
		if key == "" || len(words) == 0 {
			continue
		}
		n, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return nil, modules.Errorf("cannot read %s: %s is %s", processStatus, name, value)
		}
		out[key] = n
	}
	return out, nil
}

// diagnosis returns the key of a value of the process, or "" for a value that is left out.
func diagnosis(name string) string {
	switch name {
	case "FDSize":
		return "fd_size"
	case "VmSize":
		return "vm_size"
	case "VmPeak":
		return "vm_peak"
	case "VmRSS":
		return "vm_rss"
	case "VmHWM":
		return "vm_hwm"
	case "Threads":
		return "threads"
	}
	return ""
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
	if c.Which(program) == "" {
		return nil, modules.Errorf("cannot run %s: %s is not installed", c.Fun, program)
	}
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
