package master

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// authAtOnce is how many sign-ins are under way at one time. Most of them wait for the disk, or the database, each with a thread, which store
// the keys of several together.
const authAtOnce = 16

// SignIn implements door.SignIns. Salt's procedure is salt/channel/server.py, _auth; the order of its steps is kept.
func (h requestHost) SignIn(ctx context.Context, peer string, e protocol.Envelope, publishPort int) (any, bool) {
	m := h.m
	within, id := m.authLimit.Allow(peer, time.Now()), m.knownID(e)
	known := id != ""
	// guard: known-keys-beside-a-flood TestKnownKeysHaveTheirOwnBucket instead: !within
	if !within && !(known && m.knownLimit.AllowName(id, time.Now())) {
		m.log.Debug("sign-in refused: too many from this source", "peer", peer)
		return nil, false
	}
	r, err := protocol.ParseAuthRequest(e)
	var alg *protocol.AlgorithmError
	switch {
	case errors.As(err, &alg):
		m.log.Info("sign-in with unknown algorithm", "peer", peer, "err", err)
		return protocol.BadAlgorithm(alg.Which), true
	case err != nil:
		m.log.Info("bad sign-in request", "peer", peer, "err", err)
		return protocol.ReplyText(err), true
	}
	if m.opts.FIPS {
		for _, a := range [][2]string{{"enc", r.EncAlgo}, {"sig", r.SigAlgo}} {
			if !crypt.FIPS(a[1]) {
				m.log.Info("sign-in with an algorithm that FIPS mode does not allow", "minion", r.ID, "peer", peer, "algorithm", a[1])
				return protocol.BadAlgorithm(a[0]), true
			}
		}
	}
	// Everything below costs an RSA signature: as many at once as there are processors, and while the keys of some are stored others compute.
	m.signingIn.Add(1)
	defer m.signingIn.Add(-1)
	if !known {
		leave, err := m.newcomers.Enter(ctx, peer)
		if err != nil {
			m.log.Debug("sign-in refused", "peer", peer, "err", err)
			return nil, false
		}
		defer leave()
	}
	select {
	case m.authSlots <- struct{}{}:
		defer func() { <-m.authSlots }()
	case <-ctx.Done():
		return nil, false
	}
	m.authTurns <- struct{}{}
	defer func() { <-m.authTurns }()
	reply, err := m.decide(ctx, peer, r, publishPort)
	if err != nil {
		m.log.Error("cannot answer sign-in", "minion", r.ID, "peer", peer, "err", err)
		return nil, false
	}
	return reply, true
}

// defaultAuthRate and defaultAuthBurst are Options.AuthRate and AuthBurst where these are 0.
const defaultAuthRate, defaultAuthBurst = 200, 2000

// knownRate and knownBurst bound the sign-ins with one accepted key that come from an address which is over its own limit, in sign-ins a
// second and at once. A minion asks every ten seconds at most.
const knownRate, knownBurst = 0.5, 5

// knownID returns the id of a sign-in that shows the key which is accepted for it, or "". Such a minion is served though others flood from its
// address, or from behind the same NAT. Nothing is computed for it before: the texts of keys are compared.
func (m *Master) knownID(e protocol.Envelope) string {
	load, _ := payload.Map(e.Load)
	id, _ := payload.Text(load["id"])
	pub, _ := payload.Text(load["pub"])
	if protocol.ValidID(id) != nil || pub == "" {
		return ""
	}
	known, err := m.keys.Get(id, keys.Accepted)
	if err != nil || known.Text != crypt.CleanKey(pub) {
		return ""
	}
	return id
}

// aside stores a key for a sign-in, while another one computes in its place.
func (m *Master) aside(store func() error) error {
	<-m.authTurns
	defer func() { m.authTurns <- struct{}{} }() // which only some wait for, not for long
	return store()
}

func (m *Master) decide(ctx context.Context, peer string, r protocol.AuthRequest, publishPort int) (map[string]any, error) {
	log := m.log.With("minion", r.ID, "peer", peer)
	if err := protocol.ValidID(r.ID); err != nil {
		m.log.Info("sign-in refused", "peer", peer, "err", err)
		return r.Refuse(m.identity, false)
	}
	// guard: confusing-ids TestConfusingIDs
	if err := protocol.ConfusingID(r.ID); err != nil && !m.accepted(r.ID) {
		log.Log(ctx, m.hourly.Level(r.ID, "id", slog.LevelWarn), "sign-in refused: a new minion may not have this id", "err", err)
		return r.Refuse(m.identity, false)
	}
	if r.PubErr != nil {
		log.Info("sign-in refused: unusable key", "err", r.PubErr)
		return r.Refuse(m.identity, false)
	}
	if m.full(r.ID) {
		log.Warn("sign-in refused: too many minions", "max_minions", m.opts.MaxMinions)
		m.authEvent(r, "full", false)
		return r.Refuse(m.identity, "full")
	}
	decision, err := m.judge(ctx, peer, r)
	if err != nil {
		return nil, err
	}
	policy := m.opts.Keys
	switch decision {
	case Reject:
		m.authEvent(r, "reject", false)
		return r.Refuse(m.identity, false)
	case Accept:
		policy.Proven = true
	case hold:
		policy.Hold = true
	}
	var v keys.Verdict
	var session *crypt.Key
	err = m.aside(func() (err error) {
		if v, err = m.keys.SignIn(r.ID, r.PubText, policy, r.AutosignGrains); err == nil && v.State == keys.Accepted {
			session, err = m.peers.Secrets().IssueSession(r.ID, r.Pub)
		}
		return err
	})
	if errors.Is(err, keys.ErrPendingFull) {
		log.Warn("key was not stored: too many keys wait for acceptance")
	} else if err != nil {
		return nil, err
	}
	switch v.State {
	case keys.Accepted:
	case keys.Pending:
		if v.Stored {
			log.Info("new key waits for acceptance")
			if !protocol.PlainID(r.ID) {
				log.Warn("the id of a new minion has characters that a shell interprets or that look like others: quote it in commands")
			}
		}
		m.authEvent(r, "pend", true)
		return r.Refuse(m.identity, true)
	case keys.Denied:
		log.Log(ctx, m.hourly.Level(r.ID, "denied", slog.LevelWarn), "sign-in with another key than the one that is known", "stored", v.Stored)
		m.authEvent(r, "denied", false)
		return r.Refuse(m.identity, false)
	default:
		log.Log(ctx, m.hourly.Level(r.ID, "rejected", slog.LevelInfo), "sign-in refused: key is rejected")
		m.authEvent(r, "reject", false)
		return r.Refuse(m.identity, false)
	}
	key, err := m.publishKey(ctx, peer, r.ID)
	if err != nil {
		return nil, err
	}
	reply, err := r.Accept(m.identity, key, session, publishPort)
	if err != nil {
		return nil, err
	}
	log.Debug("minion signed in", "auto", v.Auto)
	m.presence.Saw(r.ID, time.Now())
	m.authEvent(r, "accept", true)
	m.clones.SignedIn(r.ID, peer)
	m.joined(ctx, r.ID)
	m.orders.Contact(r.ID)
	return reply, nil
}

// authEvent counts a sign-in and fires salt/auth.
func (m *Master) authEvent(r protocol.AuthRequest, act string, result bool) {
	m.counts.signIn(act)
	if m.opts.NoAuthEvents {
		return
	}
	m.events.Publish("salt/auth", map[string]any{"act": act, "result": result, "id": r.ID, "pub": r.PubText})
}

// full reports whether max_minions turns an id away. Salt's condition: more than so many are connected, and not this one.
func (m *Master) full(id string) bool {
	if m.opts.MaxMinions <= 0 {
		return false
	}
	n, known := m.presence.Count(id, m.servers, time.Now())
	return n > m.opts.MaxMinions && !known
}
