package minion

import (
	"context"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
)

// timers runs periodic functions. Between runs there is no goroutine.
type timers struct {
	m    *Minion
	mu   sync.Mutex
	list []*repeating // guarded by mu
}

// repeating calls a function periodically, never twice at once.
type repeating struct {
	every time.Duration
	run   func()

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu
	stopped bool        // guarded by mu
}

func repeatEvery(every time.Duration, run func()) *repeating {
	r := &repeating{every: every, run: run}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(every, r.fire)
	return r
}

func (r *repeating) fire() {
	r.mu.Lock()
	stopped := r.stopped
	r.mu.Unlock()
	if stopped {
		return
	}
	r.run()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.timer = time.AfterFunc(r.every, r.fire)
	}
}

func (r *repeating) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.timer.Stop()
}

func (t *timers) add(every time.Duration, run func()) {
	if every <= 0 {
		return
	}
	run = t.m.waitedFor(run)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, repeatEvery(every, run))
}

// waitedFor wraps a timer's function: Run waits for it, and it does not start once the minion stops.
func (m *Minion) waitedFor(run func()) func() {
	return func() {
		if !m.begin() {
			return
		}
		defer m.wg.Done()
		run()
		if m.o.OnWork != nil {
			m.o.OnWork()
		}
	}
}

// begin adds work that Run waits for, and reports whether it may start: once Run waits, none may.
func (m *Minion) begin() bool {
	m.working.Lock()
	defer m.working.Unlock()
	if m.waits || m.ctx.Err() != nil {
		return false
	}
	m.wg.Add(1)
	return true
}

// wait waits for all work that has begun.
func (m *Minion) wait() {
	m.working.Lock()
	m.waits = true
	m.working.Unlock()
	m.wg.Wait()
}

func (t *timers) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.list {
		r.stop()
	}
	t.list = nil
}

// startTimers starts the minion's periodic work, and restarts it after a reload.
func (m *Minion) startTimers() {
	m.timers.stop()
	s := m.settings()
	m.timers.add(s.span("ping_interval", time.Minute), m.pingMasters)
	m.timers.add(s.span("grains_refresh_every", time.Minute), func() {
		if err := m.refreshGrains(m.ctx); err != nil && m.ctx.Err() == nil {
			m.log.Warn("Cannot refresh grains", "err", err)
		}
	})
	m.timers.add(s.span("mine_interval", time.Minute), func() { m.mineUpdate(m.ctx) })
	m.timers.add(time.Hour, m.returns.kick)
}

// pingMasters implements option ping_interval. If a master does not answer, the request resets the connection;
// see suspectMaster.
func (m *Minion) pingMasters() {
	for _, l := range m.eachLink() {
		if !l.connected() {
			continue
		}
		if err := l.fire(m.ctx, "minion_ping", "ping", nil); err != nil && m.ctx.Err() == nil {
			m.log.Warn("Attempt to ping master failed.", "err", err)
		}
	}
}

// mineUpdate sends the mine data, as the scheduled job __mine_interval does (salt/minion.py:
// _post_master_init).
func (m *Minion) mineUpdate(ctx context.Context) {
	if !m.settings().truth("mine_enabled") {
		return
	}
	for _, l := range m.eachLink() {
		if l.session() == nil {
			continue
		}
		e := m.jobEnvironment(ctx, l, nil)
		if _, err := m.o.Registry.Lookup("mine.update", e); err != nil {
			if modules.IsRefused(err) {
				m.log.Warn("Unable to send mine data to master.", "err", err)
			}
			return
		}
		res := m.o.Registry.Run(ctx, e,
			modules.Request{Fun: "mine.update", JID: string(m.jids.Next(m.now()))})
		if res.Err != nil && ctx.Err() == nil {
			m.log.Warn("Unable to send mine data to master.", "err", res.Err)
		}
		if m.settings().truth("mine_return_job") {
			m.returnInternal(ctx, l, "mine.update", []any{}, res)
		}
	}
}

// returnInternal sends the return of a function that the minion ran by itself.
func (m *Minion) returnInternal(ctx context.Context, l *link, fun string, arg []any,
	res modules.Result) {
	ret := protocol.Return{JID: protocol.JIDRequest, ID: m.ID(), Fun: fun, FunArgs: arg,
		Return:  res.Return,
		Retcode: int64(res.Retcode), Success: res.Success, Out: res.Out}
	if _, err := l.requestReply(ctx, ret.Load(), l.daemonCall()); err != nil && ctx.Err() == nil {
		m.log.Warn("Cannot return an internal job", "fun", fun, "err", err)
	}
}

// watcher holds the periodic checks of a connection.
type watcher struct{ alive, failback, name, key *repeating }

func (w *watcher) stop() {
	for _, r := range []*repeating{w.alive, w.failback, w.name, w.key} {
		if r != nil {
			r.stop()
		}
	}
}

// watch starts the periodic checks of the connection. Two are Salt's: master_alive_interval, which makes a round
// trip, and master_failback. Two are brine's: of the address of the master's name, and of this minion's key.
func (l *link) watch(ctx context.Context) *watcher {
	set := l.m.settings()
	w := &watcher{name: l.watchName(ctx)}
	w.key = repeatEvery(backoff.Random(keyCheckMin, keyCheckMax),
		l.m.waitedFor(func() { l.checkKey(ctx, keyCheckMin/2) }))
	alive := set.span("master_alive_interval", time.Second)
	if alive > 0 {
		w.alive = repeatEvery(alive, l.m.waitedFor(func() { l.checkAlive(ctx) }))
	}
	every := set.span("master_failback_interval", time.Second)
	if every == 0 {
		every = alive
	}
	if set.failover() && set.truth("master_failback") && every > 0 {
		w.failback = repeatEvery(every, l.m.waitedFor(func() { l.checkFirst(ctx) }))
	}
	return w
}

func (l *link) checkAlive(ctx context.Context) {
	s := l.session()
	if s == nil {
		return
	}
	err := l.ping(ctx, s)
	if err == nil {
		l.checkKey(ctx, aliveKeyCheck)
		return
	}
	if ctx.Err() != nil {
		return
	}
	l.log.Warn("Master "+s.name+" does not answer", "err", err)
	if len(l.masterList()) > 1 {
		l.leaveFor(errLost)
		return
	}
	l.mu.Lock()
	sub := l.sub
	l.mu.Unlock()
	if sub != nil && sub.State().Connected { // otherwise it is reconnecting already
		sub.Reset()
	}
}

// checkFirst checks whether the preferred master is back.
func (l *link) checkFirst(ctx context.Context) {
	l.mu.Lock()
	first, s := l.home[0], l.sess
	l.mu.Unlock()
	if s == nil || s.master == first {
		return
	}
	dial, err := l.requester(first)
	if err != nil {
		return
	}
	defer dial.Close()
	if err := l.ping(ctx, &session{master: first, dial: dial}); err == nil {
		l.leaveFor(errFailback)
	}
}
