package signin

import (
	"context"
	"crypto/x509"
	"log/slog"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
)

// Acceptor decides about minions whose key is neither accepted nor rejected.
type Acceptor interface {
	// Name is the acceptor's name in the log and in events.
	Name() string
	// BeforeToken reports whether it is asked before the minion's join token is checked.
	BeforeToken() bool
	// Judge is called once per sign-in of such a minion, from several goroutines at once. An error is logged
	// and leaves the key pending.
	Judge(ctx context.Context, a Applicant) (Verdict, error)
}

// Verdict is an Acceptor's decision with its reason. The zero value abstains, and the next acceptor is asked.
type Verdict struct {
	Decision Decision
	Reason   string
}

// Decision is a decision about a minion's key.
type Decision int

// The decisions. Reject refuses the sign-in but does not store the key, so that a bad proof cannot block an id.
const (
	Abstain Decision = iota
	Accept
	Reject

	// hold leaves the decision to the operator, because a proof is bad or could not be checked.
	hold
)

// Applicant is a minion that signs in with a key that is neither accepted nor rejected.
type Applicant struct {
	// ID is the claimed id. PubText and Fingerprint (SHA-256) are those of its key. It has not proved to own
	// the key yet, but only the owner can read what is encrypted to it.
	ID, PubText, Fingerprint string
	// Peer is the remote address, "ip:port".
	Peer string
	// AutosignGrains are sent in clear (option autosign_grains), also by stock minions.
	AutosignGrains map[string]any
	// Certificates are a chain, the minion's own first. It has proved to own that one's key, for this id,
	// minion key and sign-in. The chain itself is not verified yet.
	Certificates []*x509.Certificate
	// Document is the provider's description of the machine. It was encrypted so that only this master can read
	// it.
	Document []byte
	// Announced reports whether EnsureMinion announced the id, for Tenant.
	Announced bool
	Tenant    string
}

// judge asks for a decision in this order: acceptors before the token, the join token, other acceptors. They
// are not asked about keys that are accepted or rejected already, or whose id is in Salt's autoreject_file.
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
		return Abstain, err // the key is accepted meanwhile
	}
	decision := d.askAcceptors(ctx, r, a, false)
	if decision == Abstain && len(r.JoinMAC) > 0 {
		decision = hold // the token is invalid
	}
	return decision, nil
}

// askAcceptors asks the acceptors before or after the join token.
func (d *Desk) askAcceptors(ctx context.Context, r protocol.AuthRequest, a Applicant,
	before bool) Decision {
	for _, x := range d.Acceptors {
		if x.BeforeToken() != before {
			continue
		}
		v, err := x.Judge(ctx, a)
		if err != nil {
			d.Log.Log(ctx, d.Hourly.Level(r.ID, "judge "+x.Name(), slog.LevelWarn),
				"Cannot judge minion that wants to join", "minion", r.ID, "peer", a.Peer,
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

// describeApplicant returns what is known of a minion that wants to join. An invalid proof is logged and left
// out.
func (d *Desk) describeApplicant(ctx context.Context, peer string,
	r protocol.AuthRequest) (Applicant, error) {
	a := Applicant{ID: r.ID, PubText: r.PubText, Peer: peer, AutosignGrains: r.AutosignGrains}
	var err error
	if a.Fingerprint, err = r.Pub.Fingerprint("sha256"); err != nil {
		return a, err
	}
	if a.Certificates, err = r.Certificates(); err != nil {
		d.tellBadProof(ctx, r.ID, peer, "certificates", err)
	}
	if a.Document, err = r.Document(d.Identity.Key); err != nil {
		d.tellBadProof(ctx, r.ID, peer, "document", err)
	}
	a.Tenant, a.Announced, err = d.Records.Announced(ctx, r.ID)
	return a, err
}

// tellBadProof logs that a proof of a minion, its certificates or its document, cannot be used.
func (d *Desk) tellBadProof(ctx context.Context, id, peer, proof string, err error) {
	d.Log.Log(ctx, d.Hourly.Level(id, "proof "+proof, slog.LevelWarn),
		"Proof of a minion that wants to join is refused", "minion", id, "peer", peer,
		"proof", proof, "err", err)
}

// tellVerdict reports a decision in the log and as the event brine/join/<id>.
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

// joinsByToken checks the token of a minion that was announced with one, and accepts its key if the token is
// valid.
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
