package minion

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Call runs one function as salt-call does (salt/cli/caller.py), with pillar and files from the master or, if
// q.Local, from this host. A function that fails is a Result; an error means that the function was not run.
func (m *Minion) Call(ctx context.Context, q CallOptions) (modules.Result, error) {
	s := m.settings()
	local := q.Local || s.masterType == typeDisable
	l := &link{m: m, log: m.log, local: true, owner: !q.ForMaster}
	if q.SkipGrains {
		m.grains.set(map[string]any{})
	}
	started := time.Now()
	if local && !s.truth("use_master_when_local") {
		if err := makeCacheDir(s.cacheDir); err != nil {
			m.log.Warn("The cache cannot be used", "err", err)
		}
		if err := m.restrict(); err != nil {
			return modules.Result{}, err
		}
		l.localOnly(ctx)
	} else {
		var err error
		if l, err = m.callLink(ctx, !q.ForMaster); err != nil {
			return modules.Result{}, err
		}
		defer l.close()
		m.logStage("Signed in", started, "master", l.masterName())
		if err := l.refreshPillar(ctx, false); err != nil {
			return modules.Result{}, &ExitError{Code: 1, Err: err}
		}
	}
	jid := protocol.JID(q.JID)
	if jid == "" {
		jid = m.jids.Next(m.now())
	}
	defer m.noteCall(q, jid)()
	env := m.jobEnvironment(ctx, l, nil)
	env.OnState = q.OnState
	began := time.Now()
	res := m.callFunction(ctx, env, q, jid)
	m.logStage("The function has ended", began, "fun", q.Fun, "retcode", res.Retcode)
	began = time.Now()
	m.afterCall(ctx, l, q, jid, res, local)
	m.logStage("The result was sent and kept", began)
	return res, nil
}

// logStage logs at debug level how long a step took.
func (m *Minion) logStage(what string, began time.Time, args ...any) {
	m.log.Debug(what, append(args, "ms", time.Since(began).Milliseconds())...)
}

func (m *Minion) callFunction(ctx context.Context, env *modules.Env, q CallOptions,
	jid protocol.JID) modules.Result {
	pub := map[string]any{"fun": q.Fun, "jid": string(jid), "tgt": "salt-call",
		"pid": int64(os.Getpid())}
	if !q.Direct {
		// As in salt/cli/caller.py, BaseCaller.call.
		if _, err := executors(nil, m.settings()); err != nil {
			return failedResult(q.Fun, err)
		}
	}
	return m.o.Registry.Run(ctx, env,
		modules.Request{Fun: q.Fun, JID: string(jid), Args: q.Args, Kwargs: q.Kwargs,
			Pub: pub, Progress: q.Progress})
}

// callLink signs in at the first master that accepts the minion. It does not subscribe to publishes.
func (m *Minion) callLink(ctx context.Context, owner bool) (*link, error) {
	s := m.settings()
	if m.o.Dialers[s.transport] == nil {
		return nil, &ExitError{Code: 1,
			Err: fmt.Errorf("cannot connect: transport %q is not available", s.transport)}
	}
	if err := m.openKeys(); err != nil {
		return nil, err
	}
	if err := makeCacheDir(s.cacheDir); err != nil {
		return nil, unusableConfig(err)
	}
	if err := m.restrict(); err != nil {
		return nil, err
	}
	l := newLink(m, s.masters)
	l.owner = owner
	if _, err := l.establishSession(ctx, true); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// noteCall writes a proc file, so that saltutil.running shows the call. It returns a function that removes the
// file.
func (m *Minion) noteCall(q CallOptions, jid protocol.JID) func() {
	note := map[string]any{"fun": q.Fun, "pid": os.Getpid(), "jid": string(jid), "tgt": "salt-call"}
	if q.Metadata != nil {
		note["metadata"] = q.Metadata
	}
	path := filepath.Join(m.settings().cacheDir, "proc", string(jid))
	b, err := payload.Marshal(note)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		m.log.Warn(fmt.Sprintf("Cannot write to process directory. Do you have permissions to "+
			"write to %s ?", path), "err", err)
		return func() {}
	}
	return func() { os.Remove(path) }
}

// afterCall sends the result to the returners and the master, or caches it for a local call.
func (m *Minion) afterCall(ctx context.Context, l *link, q CallOptions, jid protocol.JID,
	res modules.Result, local bool) {
	args := q.Args
	if len(q.Kwargs) > 0 {
		args = append(append([]any{}, args...), protocol.Kwargs(q.Kwargs))
	}
	if q.FunArgs != nil {
		args = q.FunArgs
	}
	if args == nil {
		args = []any{}
	}
	ret := protocol.Return{JID: protocol.JIDRequest, ID: m.ID(), Fun: q.Fun, FunArgs: args,
		Return: ordered.States(res.AsGiven(), res.Out), Retcode: int64(res.Retcode),
		Success: res.Success, Out: res.Out}
	if q.Metadata != nil {
		ret.Metadata = q.Metadata
	}
	if names := splitReturners(append(slices.Clone(q.Returners),
		m.settings().optional("return"))...); len(names) > 0 {
		kept := ret
		kept.JID, kept.Success = jid, true // stock reports success whatever the outcome
		load := kept.Load()
		delete(load, "cmd")
		p := m.settings().policy
		if !q.ForMaster {
			p = p.Own()
		}
		m.sendToReturners(ctx, l, p, names, load)
	}
	switch {
	case !local && !q.NoReturnEvent:
		if _, err := l.requestReply(ctx, ret.Load(), l.plainCall()); err != nil {
			m.log.Warn("The result could not be sent to the master", "err", err)
		}
	case m.settings().truth("cache_jobs"):
		ret.JID = jid
		m.cacheJob(string(jid), ret.Load())
	}
}

// set replaces the grains.
func (g *grains) set(data map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.data, g.order = data, nil
}
