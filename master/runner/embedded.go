package runner

import (
	"context"
	"errors"
	"log/slog"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/target"
)

// Embedded returns the host of a master in this process. opts are its options under Salt's names, for functions
// that show them. cacheDir is the directory of cache.store and similar functions, or "".
func Embedded(m *master.Master, id string, opts map[string]any, cacheDir string,
	log *slog.Logger) *host.Host {
	h := &host.Host{ID: id, Opts: opts, Log: log, CacheDir: cacheDir, PublicKey: m.PublicKey(),
		Keys: m.Keys(), Cache: m.Cache(), Jobs: m.Store(), Files: m.Files(), Pillar: m.Pillar,
		KeptPillars: m.KeptPillars(), Match: m.Match,
		Connected: func(context.Context) ([]string, error) { return m.Present(), nil },
		Addresses: func(ids []string) (map[string]string, error) {
			out := make(map[string]string, len(ids))
			known := m.Cache().Parts(ids, target.Needs{Grains: []string{"ipv4", "ipv6"}})
			for _, id := range ids {
				d, _ := known.Data(id)
				out[id] = minionAddress(d.Grains)
			}
			return out, known.Err()
		},
		Clones: func(ctx context.Context) (map[string]any, error) {
			list, err := m.Clones(ctx)
			out := make(map[string]any, len(list))
			for _, c := range list {
				out[c.ID] = c.Map()
			}
			return out, err
		},
		Listen: func(_ context.Context, node, _ string) (modules.EventStream, error) {
			if node != "master" {
				return nil, modules.Errorf("cannot follow the bus of node %q: only the master's "+
					"is here", node)
			}
			return stream{m.Events().Subscribe(events.SubscribeOptions{}), log}, nil
		},
		Key: m.LocalKey("root"),
		Fire: func(_ context.Context, tag string, data map[string]any) error {
			m.Events().Publish(tag, data)
			return nil
		},
	}
	h.Run = func(ctx context.Context, j host.Job) (map[string]host.Answer, error) {
		res, err := m.Run(ctx,
			master.Job{Fun: j.Fun, Args: j.Args, Kwargs: j.Kwargs, Tgt: j.Tgt,
				TgtType: j.TgtType, JID: j.JID, Ret: j.Ret, User: h.User,
				Timeout: j.Timeout, GatherTimeout: j.Gather, Extra: j.Extra})
		var none *master.NoMinionsError
		if err != nil && !errors.As(err, &none) {
			return nil, err
		}
		out := make(map[string]host.Answer, len(res))
		for id, r := range res {
			switch {
			case r.Status == master.Returned:
				jid, _ := r.Load["jid"].(string)
				out[id] = host.Answer{Value: r.Return, Ordered: r.Ordered, Retcode: r.Retcode,
					Out: r.Out, JID: jid, Data: r.Load}
			case j.Expect:
				out[id] = host.Answer{Failed: true}
			}
		}
		return out, nil
	}
	return h
}

// stream implements modules.EventStream on the master's bus.
type stream struct {
	sub *events.Subscription
	log *slog.Logger
}

// Next returns the next event. A gap is logged, because the callers' answers have no place for it.
func (s stream) Next(ctx context.Context) (string, map[string]any, error) {
	for {
		e, err := s.sub.Next(ctx)
		if err != nil || e.Missed == 0 {
			return e.Tag, e.Data, err
		}
		s.log.Warn("A function that follows the event bus is behind and missed events", "events",
			e.Missed)
	}
}

// Close ends the subscription.
func (s stream) Close() error {
	s.sub.Close()
	return nil
}

// minionAddress returns an address of a minion from its grains, or "" if they have no address.
func minionAddress(grains map[string]any) string {
	for _, key := range [...]string{"ipv4", "ipv6"} {
		list, _ := grains[key].([]any)
		for _, v := range list {
			if s, ok := v.(string); ok && s != "127.0.0.1" && s != "::1" {
				return s
			}
		}
	}
	return ""
}
