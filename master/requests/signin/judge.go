package signin

import (
	"context"
	"crypto/x509"
	"log/slog"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
)

// Acceptor judges minions whose key nobody has accepted or rejected yet.
type Acceptor interface {
	// Name stands in the log and in events.
	Name() string
	// BeforeToken reports whether it is asked before the minion's join token counts.
	BeforeToken() bool
	// Judge is called from many goroutines, once for each sign-in of such a minion. An error is logged, and the key
	// waits.
	Judge(ctx context.Context, a Applicant) (Verdict, error)
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
	// ID is what it claims; PubText and Fingerprint (SHA-256) are of its key, which it has not proved to have yet: what
	// is sealed for it only its owner can read.
	ID, PubText, Fingerprint string
	// Peer is the remote address, "ip:port".
	Peer string
	// AutosignGrains are sent in clear (option autosign_grains), by stock minions too.
	AutosignGrains map[string]any
	// Certificates are a chain, its own first, whose key it has proved to have, for this id, key and sign-in. The chain
	// itself is to be verified.
	Certificates []*x509.Certificate
	// Document is what its provider says of it, as only this master could read it.
	Document []byte
	// Announced says that EnsureMinion announced the id, for Tenant.
	Announced bool
	Tenant    string
}

// judge asks who may accept a minion, in order: the acceptors that come before a join token, the token, the others.
// Nobody is asked about keys that are accepted or rejected already, or whose id Salt's autoreject_file names.
func (d *Desk) judge(ctx context.Context, peer string, r protocol.AuthRequest) (Decision, error) {
	if len(d.Acceptors) == 0 && len(r.JoinMAC) == 0 {
		return Abstain, nil
	}
	if st := d.Keys.State(r.ID); st == keys.Accepted || st == keys.Rejected ||
		d.Policy.Rejects(r.ID) {
		return Abstain, nil
	}
	var a Applicant
	if len(d.Acceptors) > 0 {
		var err error
		if a, err = d.describeApplicant(ctx, peer, r); err != nil {
			return Abstain, err
		}
	}
	if decision := d.askAcceptors(ctx, r, a, true); decision != Abstain {
		return decision, nil
	}
	joined, err := d.joinsByToken(ctx, peer, r)
	if joined || err != nil {
		return Abstain, err // its key is accepted by now
	}
	decision := d.askAcceptors(ctx, r, a, false)
	if decision == Abstain && len(r.JoinMAC) > 0 {
		decision = hold // the token was none
	}
	return decision, nil
}

// askAcceptors asks the acceptors of one side of the join token.
func (d *Desk) askAcceptors(ctx context.Context, r protocol.AuthRequest, a Applicant,
	before bool) Decision {
	for _, x := range d.Acceptors {
		if x.BeforeToken() != before {
			continue
		}
		v, err := x.Judge(ctx, a)
		if err != nil {
			d.Log.Warn("Cannot judge minion that wants to join", "minion", r.ID, "peer", a.Peer,
				"acceptor", x.Name(), "err", err)
			return hold
		}
		if v.Decision == Accept || v.Decision == Reject {
			d.tellVerdict(r, a.Peer, x.Name(), v)
			return v.Decision
		}
	}
	return Abstain
}

// describeApplicant gathers what is known of a minion that wants to join. Proof that is none is left out, and logged.
func (d *Desk) describeApplicant(ctx context.Context, peer string,
	r protocol.AuthRequest) (Applicant, error) {
	a := Applicant{ID: r.ID, PubText: r.PubText, Peer: peer, AutosignGrains: r.AutosignGrains}
	var err error
	if a.Fingerprint, err = r.Pub.Fingerprint("sha256"); err != nil {
		return a, err
	}
	if a.Certificates, err = r.Certificates(); err != nil {
		d.Log.Warn("Proof of a minion that wants to join is refused", "minion", r.ID, "peer", peer,
			"err", err)
	}
	if a.Document, err = r.Document(d.Identity.Key); err != nil {
		d.Log.Warn("Proof of a minion that wants to join is refused", "minion", r.ID, "peer", peer,
			"err", err)
	}
	a.Tenant, a.Announced, err = d.Records.Announced(ctx, r.ID)
	return a, err
}

// tellVerdict tells of a decision: in the log, and as event brine/join/<id>.
func (d *Desk) tellVerdict(r protocol.AuthRequest, peer, by string, v Verdict) {
	fingerprint, _ := r.Pub.Fingerprint("sha256")
	accepted := v.Decision == Accept
	log := d.Log.With("minion", r.ID, "peer", peer, "acceptor", by, "reason", v.Reason,
		"fingerprint", fingerprint)
	if accepted {
		log.Info("Minion joins")
	} else {
		level := d.Hourly.Level(r.ID, v.Reason, slog.LevelWarn)
		log.Log(context.Background(), level, "Minion may not join")
	}
	d.Events.Publish("brine/join/"+r.ID, map[string]any{"id": r.ID, "result": accepted,
		"acceptor": by, "reason": v.Reason, "peer": peer, "fingerprint": fingerprint})
}

// joinsByToken judges the token of a minion that was announced with one, and accepts its key if it is good.
func (d *Desk) joinsByToken(ctx context.Context, peer string,
	r protocol.AuthRequest) (bool, error) {
	v, err := d.Records.JudgeToken(ctx, r)
	if err != nil || v.Decision == Abstain {
		return false, err
	}
	d.tellVerdict(r, peer, "token", v)
	if v.Decision != Accept {
		return false, nil
	}
	return true, d.Keys.Preseed(r.ID, r.PubText)
}
