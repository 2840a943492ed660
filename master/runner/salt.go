package runner

import (
	"context"
	"errors"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// saltModule declares the runner salt (salt/runners/salt.py): execution functions on the master.
func (f funcs) saltModule() *modules.Module {
	m := &modules.Module{Name: "salt", Doc: "Execution functions, from the master.",
		Funcs: []modules.Def{
			{Name: "execute", Doc: `Run a function on minions and return what they return.

tgt, fun, arg, kwarg, tgt_type, ret, jid
    As for the program salt.
timeout
    How long to wait, in seconds.

    salt-run salt.execute '*' cmd.run arg='["uptime"]'`, Params: []modules.Param{{Name: "tgt"}, {Name: "fun"}, {Name: "arg", Default: []any{}},
				{Name: "timeout", Optional: true}, {Name: "tgt_type", Default: "glob"},
				{Name: "ret", Default: ""}, {Name: "jid", Default: ""},
				{Name: "kwarg", Optional: true}}, Kwargs: "kwargs", Run: f.executeHere},
		}}
	if f.Exec != nil {
		m.Funcs = append(m.Funcs, modules.Def{Name: "cmd", Doc: `Run an execution function on the master's host.

fun
    The function. Further arguments are its own; with_pillar is not among them, the master has no pillar of its own here.

    salt-run salt.cmd test.ping`, Params: []modules.Param{{Name: "fun"}}, Args: "args", Kwargs: "kwargs", Run: f.cmdHere})
	}
	return m
}

// cmdHere is salt.cmd.
func (f funcs) cmdHere(ctx context.Context, c *modules.Call) (any, error) {
	kw := map[string]any{}
	for k := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			kw[k] = c.KeywordInOrder(k)
		}
	}
	v, err := f.Exec(ctx, modules.Request{Fun: c.Str("fun"), JID: c.JID, Args: c.Extra, Kwargs: kw})
	var absent *modules.NotAvailableError
	if errors.As(err, &absent) && absent.Fun == c.Str("fun") {
		return "'" + c.Str("fun") + "' is not available.", nil
	}
	return v, err
}

// executeHere is salt.execute, which runs a function on minions and waits for their returns.
func (f funcs) executeHere(ctx context.Context, c *modules.Call) (any, error) {
	j := host.Job{Tgt: c.Value("tgt"), TgtType: c.Str("tgt_type"), Fun: c.Str("fun"),
		Ret: c.Str("ret"), JID: c.Str("jid")}
	if j.JID != "" && !protocol.ValidJID(j.JID) {
		return nil, modules.Usagef("jid %q is not a job id", j.JID)
	}
	if err := j.Take(c); err != nil {
		return nil, err
	}
	return f.Values(ctx, j)
}
