package runner

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Here returns the host for its own functions: requests of saltutil to the master stay in this process.
func Here(h *host.Host, runners, wheels *Client) modules.MasterHost {
	return here{h, map[string]*Client{"runner": runners, "wheel": wheels}}
}

type here struct {
	host    *host.Host
	clients map[string]*Client
}

// Fire implements modules.MasterHost.
func (h here) Fire(ctx context.Context, tag string, data map[string]any) error {
	if h.host.Fire == nil {
		return host.Needs("event bus")
	}
	return h.host.Fire(ctx, tag, ordered.ToWire(data).(map[string]any))
}

// Run implements modules.MasterHost. Even if it fails it reports the returns received.
func (h here) Run(ctx context.Context, q modules.MasterJob, each func(modules.MasterAnswer)) error {
	args, kwargs := onWire(q.Args, q.Kwargs)
	answers, err := h.host.Command(ctx,
		host.Job{Tgt: q.Tgt, TgtType: q.TgtType, Fun: q.Fun, Args: args, Kwargs: kwargs, Ret: q.Ret,
			Timeout: q.Timeout, Gather: q.Gather, Extra: q.Extra, Expect: q.Expect})
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		a := answers[id]
		each(modules.MasterAnswer{ID: id, Value: a.Value, Retcode: a.Retcode, Out: a.Out,
			JID: a.JID, Data: a.Data, Failed: a.Failed})
	}
	return err
}

// onWire converts arguments, which may hold ordered values, to wire types.
func onWire(args []any, kwargs map[string]any) ([]any, map[string]any) {
	list, _ := ordered.ToWire(args).([]any)
	named, _ := ordered.ToWire(kwargs).(map[string]any)
	return list, named
}

// Call implements modules.MasterHost.
func (h here) Call(ctx context.Context, q modules.MasterCall) (map[string]any, error) {
	client := h.clients[q.Kind]
	if client == nil {
		return nil, host.Needs(q.Kind + " functions")
	}
	args, kwargs := onWire(q.Args, q.Kwargs)
	res := client.Call(ctx,
		Request{Fun: q.Fun, Args: args, Kwargs: kwargs, Saltenv: q.Saltenv, User: q.User})
	if res.Missing {
		return nil, &modules.NotAvailableError{Fun: q.Fun}
	}
	out := maps.Clone(payload.PlainMap(res.Data))
	if _, ok := out["_stamp"]; !ok {
		out["_stamp"] = protocol.Stamp(time.Now())
	}
	return out, nil
}
