package minion

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
)

// errMoved is why a master is left whose name leads elsewhere.
var errMoved = errors.New("the master's name leads to another address")

// How a moved name is found out about: within a minute, and never because of a resolver that answers with other parts
// of a large set each time.
const (
	nameCheckMin  = 35 * time.Second // a minion's own interval is random between the two
	nameCheckMax  = 50 * time.Second
	nameConfirm   = 2 * time.Second // between the look-ups that must agree
	nameConfirms  = 3
	nameLookup    = 5 * time.Second
	nameMaxSkips  = 64 // of intervals, after moves that were none
	keyCheckMin   = 8 * time.Minute
	keyCheckMax   = 10 * time.Minute
	aliveKeyCheck = time.Minute
)

// nameWatch looks after the name of the master that a link is connected to.
type nameWatch struct {
	l    *link
	s    *session
	skip int // intervals still to be skipped
}

// watchName begins to look after the master's name; nil when it is an address.
func (l *link) watchName(ctx context.Context) *repeating {
	s := l.session()
	if s == nil || net.ParseIP(s.host) != nil {
		return nil
	}
	w := &nameWatch{l: l, s: s}
	if n := l.moves.Load(); n > 0 {
		w.skip = min(1<<n, nameMaxSkips)
	}
	return repeatEvery(backoff.Random(nameCheckMin, nameCheckMax),
		l.m.waitedFor(func() { w.check(ctx) }))
}

// check looks the name up. It is left for the new address only if several look-ups agree and a master answers there.
func (w *nameWatch) check(ctx context.Context) {
	if w.skip > 0 {
		w.skip--
		return
	}
	for i := range nameConfirms {
		if i > 0 && !backoff.Sleep(ctx, nameConfirm) {
			return
		}
		addr, ok := w.l.remote()
		if !ok {
			return // it is not connected, and will look the name up when it connects
		}
		found, err := w.lookup(ctx)
		if err != nil || len(found) == 0 {
			w.l.log.Debug("Cannot look up the master's name", "master", w.s.host, "err", err)
			return
		}
		if slices.Contains(found, addr) {
			w.l.moves.Store(0)
			return
		}
	}
	dial, err := w.l.requester(w.s.master)
	if err != nil {
		return
	}
	defer dial.Close()
	if err := w.l.ping(ctx, &session{master: w.s.master, dial: dial}); err != nil {
		w.l.log.Debug("The master's name leads to another address, where no master answers",
			"master", w.s.host, "err", err)
		return
	}
	w.l.moves.Store(min(w.l.moves.Load()+1, 16))
	w.l.leaveFor(errMoved)
}

func (w *nameWatch) lookup(ctx context.Context) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, nameLookup)
	defer cancel()
	look := w.l.m.o.Lookup
	if look == nil {
		look = net.DefaultResolver.LookupHost
	}
	texts, err := look(ctx, w.s.host)
	var list []netip.Addr
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			list = append(list, a.WithZone("").Unmap())
		}
	}
	return list, err
}

// remote is the address that publishes come from; false while they do not.
func (l *link) remote() (netip.Addr, bool) {
	l.mu.Lock()
	sub := l.sub
	l.mu.Unlock()
	if sub == nil {
		return netip.Addr{}, false
	}
	st := sub.State()
	a, err := netip.ParseAddrPort(st.Addr)
	return a.Addr().WithZone("").Unmap(), st.Connected && err == nil
}

// checkKey makes sure that the master still knows this minion's key: a deleted one is noticed within bounded time, and
// shows up among the pending ones. A master that has answered a request of late needs no question.
func (l *link) checkKey(ctx context.Context, every time.Duration) {
	if !l.connected() || time.Since(time.Unix(0, l.answered.Load())) < every {
		return
	}
	if _, err := l.requestReply(ctx, map[string]any{"cmd": "_file_envs", "id": l.m.ID()},
		l.daemonCall()); err != nil && ctx.Err() == nil {
		l.log.Debug("The master does not answer for this minion's key", "err", err)
	}
}
