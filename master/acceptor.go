package master

import (
	"context"
	"crypto/x509"
	"log/slog"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
)

// Acceptor judges minions whose key nobody has accepted or rejected yet. Package join has some.
type Acceptor struct {
	// Name stands in the log and in events.
	Name string
	// BeforeToken has it asked before the minion's join token counts: for what the operator knew beforehand.
	BeforeToken bool
	// Judge is called from many goroutines, once for each sign-in of such a minion. An error is logged, and the key waits: nobody after it is
	// asked, and no policy accepts the key, but the minion may try again.
	Judge func(ctx context.Context, a Applicant) (Verdict, error)
}

// Verdict is what an Acceptor says, and why. The zero value is no opinion: the next one is asked.
type Verdict struct {
	Decision Decision
	Reason   string
}

// Decision about a minion's key.
type Decision int

// The decisions. A rejected sign-in is refused; the key is not stored, so that nobody can spoil an id by bad proof.
const (
	Abstain Decision = iota
	Accept
	Reject

	// hold leaves the key to the operator: proof was bad, or could not be looked at.
	hold
)

// Applicant is a minion that signs in with a key that nobody has decided about.
type Applicant struct {
	// ID is what it claims; PubText and Fingerprint (SHA-256) are of its key, which it has not proved to have yet: what is sealed for it
	// only its owner can read.
	ID, PubText, Fingerprint string
	// Peer is the remote address, "ip:port".
	Peer string
	// AutosignGrains are sent in clear (option autosign_grains), by stock minions too.
	AutosignGrains map[string]any
	// Certificates are a chain, its own first, whose key it has proved to have, for this id, key and sign-in. The chain itself is to be verified.
	Certificates []*x509.Certificate
	// Document is what its provider says of it, as only this master could read it.
	Document []byte
	// Announced says that EnsureMinion announced the id, for Tenant.
	Announced bool
	Tenant    string
}

// judge asks who may accept a minion, in order: those of Options.Acceptors that come before a join token, the token, the others. Nobody is
// asked about keys that are accepted or rejected already, or whose id Salt's autoreject_file names.
func (m *Master) judge(ctx context.Context, peer string, r protocol.AuthRequest) (Decision, error) {
	if len(m.opts.Acceptors) == 0 && len(r.JoinMAC) == 0 {
		return Abstain, nil
	}
	if st := m.keys.State(r.ID); st == keys.Accepted || st == keys.Rejected || m.opts.Keys.Rejects(r.ID) {
		return Abstain, nil
	}
	var a Applicant
	if len(m.opts.Acceptors) > 0 {
		var err error
		if a, err = m.applicant(ctx, peer, r); err != nil {
			return Abstain, err
		}
	}
	if d := m.askAcceptors(ctx, r, a, true); d != Abstain {
		return d, nil
	}
	joined, err := m.joins(ctx, peer, r)
	if joined || err != nil {
		return Abstain, err // its key is accepted by now
	}
	d := m.askAcceptors(ctx, r, a, false)
	if d == Abstain && len(r.JoinMAC) > 0 {
		d = hold // the token was none
	}
	return d, nil
}

// askAcceptors asks the acceptors of one side of the join token.
func (m *Master) askAcceptors(ctx context.Context, r protocol.AuthRequest, a Applicant, before bool) Decision {
	for _, x := range m.opts.Acceptors {
		if x.BeforeToken != before {
			continue
		}
		v, err := x.Judge(ctx, a)
		if err != nil {
			m.log.Warn("cannot judge minion that wants to join", "minion", r.ID, "peer", a.Peer, "acceptor", x.Name, "err", err)
			return hold
		}
		if v.Decision == Accept || v.Decision == Reject {
			m.judged(r, a.Peer, x.Name, v)
			return v.Decision
		}
	}
	return Abstain
}

// applicant gathers what is known of a minion that wants to join. Proof that is none is left out, and logged.
func (m *Master) applicant(ctx context.Context, peer string, r protocol.AuthRequest) (Applicant, error) {
	a := Applicant{ID: r.ID, PubText: r.PubText, Peer: peer, AutosignGrains: r.AutosignGrains}
	var err error
	if a.Fingerprint, err = r.Pub.Fingerprint("sha256"); err != nil {
		return a, err
	}
	if a.Certificates, err = r.Certificates(); err != nil {
		m.log.Warn("proof of a minion that wants to join is refused", "minion", r.ID, "peer", peer, "err", err)
	}
	if a.Document, err = r.Document(m.identity.Key); err != nil {
		m.log.Warn("proof of a minion that wants to join is refused", "minion", r.ID, "peer", peer, "err", err)
	}
	a.Tenant, a.Announced, err = m.tenantOf(ctx, r.ID)
	return a, err
}

// judged tells of a decision: in the log, and as event brine/join/<id>.
func (m *Master) judged(r protocol.AuthRequest, peer, by string, v Verdict) {
	fingerprint, _ := r.Pub.Fingerprint("sha256")
	accepted := v.Decision == Accept
	if accepted {
		m.log.Info("minion joins", "minion", r.ID, "peer", peer, "acceptor", by, "reason", v.Reason, "fingerprint", fingerprint)
	} else {
		m.log.Log(context.Background(), m.hourly.Level(r.ID, v.Reason, slog.LevelWarn), "minion may not join", "minion", r.ID, "peer", peer, "acceptor", by, "reason", v.Reason, "fingerprint", fingerprint)
	}
	m.events.Publish("brine/join/"+r.ID, map[string]any{"id": r.ID, "result": accepted, "acceptor": by, "reason": v.Reason, "peer": peer,
		"fingerprint": fingerprint})
}
