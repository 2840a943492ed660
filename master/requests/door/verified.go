package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
)

// minionRequest answers an encrypted request. It looks up the accepted key first, because without one there is
// no session.
func (d *Door) minionRequest(ctx context.Context, peer string, e protocol.Envelope) any {
	if e.Version < protocol.Version {
		return d.oldRequest(ctx, peer, e)
	}
	if err := protocol.ValidID(e.ID); err != nil {
		d.Log.Debug("Request refused", "peer", peer, "err", err)
		return protocol.BadLoad
	}
	pub, err := d.Keys.Accepted(e.ID)
	if err != nil {
		d.Log.Debug("Request refused", "minion", e.ID, "peer", peer, "err", err)
		return protocol.BadLoad
	}
	s := d.Sessions.Session(e.ID)
	if s == nil {
		d.Log.Debug("Request refused: no session", "minion", e.ID, "peer", peer)
		return protocol.BadLoad
	}
	sealed, _ := e.Load.([]byte)
	done, err := d.admitLarge(ctx, len(sealed))
	if err != nil {
		return silence{} // the master is shutting down
	}
	v, err := d.Sessions.OpenRequest(e, s, pub)
	if err == nil && v.Cmd() == "_return" {
		defer done()
	} else {
		done()
	}
	if err != nil {
		d.Log.Debug("Request refused", "minion", e.ID, "peer", peer, "err", err)
		return protocol.ReplyText(err)
	}
	return d.verifiedRequest(ctx, peer, e, v, s, pub)
}

// oldRequest answers an encrypted request of dialect 2 (MinimumVersion). It is sealed with the shared key; the
// token inside proves the sender.
func (d *Door) oldRequest(ctx context.Context, peer string, e protocol.Envelope) any {
	var pub *crypt.PublicKey
	var v protocol.Verified
	sealed, _ := e.Load.([]byte)
	err := d.SharedKey.UnderKey(ctx, peer, len(sealed),
		func(key *crypt.Key) (id string, err error) {
			v, err = protocol.OpenRequestWith(e, key, func(id string) *crypt.PublicKey {
				pub, _ = d.Keys.Accepted(id)
				return pub
			})
			return v.ID(), err
		})
	if err != nil {
		d.Log.Debug("Request refused", "peer", peer, "version", e.Version, "err", err)
		return protocol.ReplyText(err)
	}
	s := d.Sessions.Session(v.ID()) // it records what was seen of the minion
	if s == nil {
		d.Log.Debug("Request refused: the minion did not sign in", "minion", v.ID(), "peer", peer)
		return protocol.BadLoad
	}
	return d.verifiedRequest(ctx, peer, e, v, s, pub)
}

// verifiedRequest answers a request of a verified sender.
func (d *Door) verifiedRequest(ctx context.Context, peer string, e protocol.Envelope,
	v protocol.Verified, s *sessions.Session, pub *crypt.PublicKey) any {
	fresh, err := d.checkFresh(s, v, time.Now())
	if err != nil {
		return d.refuse(ctx, peer, v, err)
	}
	first, err := d.Peers.FirstTime(ctx, v)
	if err != nil {
		d.Log.Error("Request was not acknowledged", "minion", v.ID(), "fun", v.Cmd(), "peer", peer,
			"err", err)
		return silence{}
	}
	if !first {
		return d.refuse(ctx, peer, v, sessions.ErrReplayed)
	}
	// A recorded request proves nothing about the peer that sends it, here or at a peer master.
	// guard: replay-approves TestReplaysApproveNoPeer instead: true
	if fresh {
		transport.Approve(ctx)
	}
	d.Presence.Saw(v.ID(), time.Now())
	defer d.Counts.CountRequest(v.Cmd(), time.Now())
	if d.Log.Enabled(ctx, slog.LevelDebug) {
		d.Log.Debug("Request", "minion", v.ID(), "fun", v.Cmd(), "peer", peer)
	}
	if v.Cmd() == "" {
		return "Some exception handling minion payload"
	}
	if v.Cmd() == "_pillar" {
		return d.Answers.ReplyPillar(ctx, v, e, pub)
	}
	return d.runRequest(ctx, v)
}

// refuse logs why a request was refused, once an hour for each minion and kind of reason: a peer that recorded it may
// send it without end.
func (d *Door) refuse(ctx context.Context, peer string, v protocol.Verified, err error) any {
	// guard: replay-log-flood TestReplaysApproveNoPeer instead: level := slog.LevelWarn
	level := d.hourly.Level(v.ID(), refusal(err), slog.LevelWarn)
	d.Log.Log(ctx, level, "Request refused", "minion", v.ID(), "fun", v.Cmd(), "peer", peer,
		"err", err)
	return protocol.BadLoad
}

// errOld is wrapped by errors for requests that are older than Options.RequestTTL.
var errOld = errors.New("request is too old")

// refusal returns the kind of reason for which a request was refused. Errors of one kind have different texts.
func refusal(err error) string {
	switch {
	case errors.Is(err, sessions.ErrClockBack):
		return "earlier request"
	case errors.Is(err, sessions.ErrReplayed):
		return "replayed request"
	case errors.Is(err, errOld):
		return "old request"
	}
	return "request"
}

// maxRepeats is how often a pillar request may be repeated unchanged. Stock sends a request three times by default
// (request_channel_tries).
const maxRepeats = 10

// checkFresh refuses requests that were accepted before. It admits repeated pillar requests, and reports them as not
// fresh: stock minions repeat one unchanged if no reply came in time, and only the minion can read the reply.
func (d *Door) checkFresh(s *sessions.Session, v protocol.Verified,
	now time.Time) (fresh bool, err error) {
	if at, ok := v.Time(); ok {
		age := now.Sub(at)
		if d.RequestTTL > 0 && age > d.RequestTTL {
			return false, fmt.Errorf("%w: %v", errOld, age.Round(time.Second))
		}
		if age.Abs() > 5*time.Minute {
			d.tellSkew(v.ID(), age)
		}
	}
	repeated, err := s.Admit(v, int64(d.ReplayWindow/time.Second))
	if err != nil {
		d.Sessions.OutdateSession(v.ID(), s)
	}
	// guard: CVE-2024-38823 master:TestCVE_2024_38823_Replay
	if err == nil && repeated > 0 && v.Cmd() != "_pillar" {
		err = sessions.ErrReplayed
	}
	// guard: replayed-pillars TestReplaysApproveNoPeer
	if repeated > maxRepeats {
		err = sessions.ErrReplayed
	}
	return repeated == 0, err
}

// tellSkew logs that a minion's clock is wrong, at most once per hour and minion.
func (d *Door) tellSkew(id string, age time.Duration) {
	d.mu.Lock()
	last := d.skewed[id]
	told := time.Since(last) < time.Hour
	if !told {
		if len(d.skewed) > 10000 {
			clear(d.skewed)
		}
		d.skewed[id] = time.Now()
	}
	d.mu.Unlock()
	if !told {
		d.Log.Warn("Clock of minion differs from ours", "minion", id,
			"behind", age.Round(time.Second))
	}
}

// runRequest calls the requested function and seals its result.
func (d *Door) runRequest(ctx context.Context, v protocol.Verified) any {
	result, known, err := d.callAnswer(ctx, v)
	switch {
	case errors.Is(err, acks.ErrLater):
		return silence{}
	case errors.Is(err, acks.ErrDropped):
		d.Log.Error("Request was not acknowledged", "minion", v.ID(), "fun", v.Cmd(), "err", err)
		return silence{}
	case err != nil:
		d.Log.Error("Request failed", "minion", v.ID(), "fun", v.Cmd(), "err", err)
		result = ""
	case !known:
		d.Log.Warn("Minion requests an unknown function", "minion", v.ID(),
			"fun", fmt.Sprintf("%.80q", v.Cmd()))
		result = map[string]any{}
	}
	sealed, err := v.Reply(result)
	if err != nil {
		d.Log.Error("Cannot seal reply", "minion", v.ID(), "fun", v.Cmd(), "err", err)
		if sealed, err = v.Reply(""); err != nil {
			return silence{}
		}
	}
	return sealed
}

// callAnswer calls the requested function. A panic is logged and answered like an error.
func (d *Door) callAnswer(ctx context.Context,
	v protocol.Verified) (result any, known bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.Log.Error("Request ended in a panic", "minion", v.ID(), "fun", v.Cmd(), "err", r,
				"stack", string(debug.Stack()))
			result, known, err = "", true, nil
		}
	}()
	return d.Answers.Answer(ctx, v)
}
