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

// errMoved is the reason to leave a master whose name resolves to another address.
var errMoved = errors.New("the master's name leads to another address")

// A move of the master's name is noticed within a minute. Several look-ups must agree, so that a resolver that
// returns a different part of a large set each time is not taken for a move.
const (
	nameCheckMin  = 35 * time.Second // each minion picks a random interval between the two
	nameCheckMax  = 50 * time.Second
	nameConfirm   = 2 * time.Second // between the look-ups that must agree
	nameConfirms  = 3
	nameLookup    = 5 * time.Second
	nameMaxSkips  = 64 // intervals skipped after false moves, at most
	keyCheckMin   = 8 * time.Minute
	keyCheckMax   = 10 * time.Minute
	aliveKeyCheck = time.Minute
)

// nameWatch watches the name of the connected master.
type nameWatch struct {
	l    *link
	s    *session
	skip int // intervals left to skip
}

// watchName starts watching the master's name. It returns nil if the name is an address.
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

// check looks the name up. The minion moves to the new address only if several look-ups agree and a master
// answers there.
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
			return // not connected: the next connection looks the name up
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

// remote returns the address of the publish connection, and false if there is none.
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

// checkKey makes sure that the master still knows this minion's key, by a cheap request. A deleted key is
// noticed within this interval and shows up as pending again. No request is sent if the master has answered one
// within every.
func (l *link) checkKey(ctx context.Context, every time.Duration) {
	if !l.connected() || time.Since(time.Unix(0, l.answered.Load())) < every {
		return
	}
	if _, err := l.requestReply(ctx, map[string]any{"cmd": "_file_envs", "id": l.m.ID()},
		l.daemonCall()); err != nil && ctx.Err() == nil {
		l.log.Debug("The master does not answer for this minion's key", "err", err)
	}
}
