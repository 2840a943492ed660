package saltutil

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// orchestrations are the runners that get the job id of the orchestration which calls them.
var orchestrations = [...]string{"state.orchestrate", "state.orch", "state.sls"}

// runner runs a runner of the master on this host.
func runner(ctx context.Context, c *modules.Call) (any, error) {
	kwargs, err := keywords(c)
	if err != nil {
		return nil, modules.Usagef("kwarg must be formatted as a dictionary")
	}
	args := []any{}
	if v, _ := c.InOrder("arg"); v != nil {
		l, ok := v.(*pyobj.List)
		if !ok {
			return nil, modules.Usagef("arg must be formatted as a list/tuple")
		}
		args = l.Items
	}
	jid, saltenv := c.Keywords["__orchestration_jid__"], c.Value("saltenv")
	if jid == nil {
		jid = c.Value("jid")
	}
	return onMaster(ctx, c, request{kind: "runner", args: args, kwargs: kwargs, jid: jid, saltenv: saltenv, full: pytext.Truth(c.Value("full_return"))})
}

// wheel runs a wheel function of the master on this host.
func wheel(ctx context.Context, c *modules.Call) (any, error) {
	return onMaster(ctx, c, request{kind: "wheel", args: c.Extra, kwargs: map[string]any{}, jid: c.Keywords["__orchestration_jid__"], saltenv: "base", full: true})
}

// request is a call of either.
type request struct {
	kind         string
	args         []any
	kwargs       map[string]any
	jid, saltenv any
	full         bool
}

func onMaster(ctx context.Context, c *modules.Call, q request) (any, error) {
	if c.MasterHost == nil {
		return nil, errNoMaster()
	}
	name, user := c.Str("name"), "UNKNOWN"
	if v, ok := c.Keywords["__env__"]; ok {
		q.saltenv = v
	}
	if v, ok := c.Keywords["__pub_user"]; ok && q.kind == "runner" {
		user = pytext.Str(v)
	}
	for k := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			q.kwargs[k] = c.KeywordInOrder(k)
		}
	}
	if q.kind == "runner" && slices.Contains(orchestrations[:], name) {
		q.kwargs["orchestration_jid"] = q.jid
	}
	if pytext.Truth(q.jid) {
		data := map[string]any{"type": q.kind, "name": name, "args": q.args, "kwargs": q.kwargs}
		if q.kind == "wheel" {
			data = map[string]any{"type": q.kind, "name": name, "args": q.kwargs}
		}
		if err := c.MasterHost.Fire(ctx, "salt/run/"+pytext.Str(q.jid)+"/args", data); err != nil {
			c.Logger().Warn("Failed to fire args event", "err", err)
		}
	}
	args, named := cliargs.Values(q.args, c.Opt("no_parse"))
	maps.Copy(named, q.kwargs)
	data, err := c.MasterHost.Call(ctx, modules.MasterCall{Kind: q.kind, Fun: name, Args: args, Kwargs: named, Saltenv: q.saltenv, User: user})
	var missing *modules.NotAvailableError
	switch {
	case errors.Is(err, modules.ErrNoMasterHere):
		return nil, errNoMaster()
	case errors.As(err, &missing):
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	case err != nil:
		return nil, err
	case q.full:
		return data, nil
	}
	return data["return"], nil
}

func errNoMaster() error {
	return modules.Errorf("This command can only be executed on a minion that is located on the master.")
}
