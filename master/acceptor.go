package master

import (
	"context"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Acceptor decides about minions whose key is neither accepted nor rejected. Package join provides some.
type Acceptor struct {
	// Name is the acceptor's name in the log and in events.
	Name string
	// BeforeToken consults the acceptor before the minion's join token is checked. It is for what the operator
	// knew beforehand.
	BeforeToken bool
	// Judge is called once per sign-in of such a minion, from several goroutines at once. An error is logged
	// and leaves the key pending: no later acceptor and no policy decides, but the minion may try again.
	Judge func(ctx context.Context, a Applicant) (Verdict, error)
}

// Verdict is an Acceptor's decision with its reason. The zero value abstains, and the next acceptor is asked.
type Verdict = signin.Verdict

// Decision is a decision about a minion's key.
type Decision = signin.Decision

// The decisions. Reject refuses the sign-in but does not store the key, so that a bad proof cannot block an id.
const (
	Abstain = signin.Abstain
	Accept  = signin.Accept
	Reject  = signin.Reject
)

// Applicant is a minion that signs in with a key that is neither accepted nor rejected.
type Applicant = signin.Applicant

// acceptor implements signin.Acceptor for an Acceptor.
type acceptor struct{ of Acceptor }

var _ signin.Acceptor = acceptor{}

// Name implements signin.Acceptor.
func (a acceptor) Name() string { return a.of.Name }

// BeforeToken implements signin.Acceptor.
func (a acceptor) BeforeToken() bool { return a.of.BeforeToken }

// Judge implements signin.Acceptor.
func (a acceptor) Judge(ctx context.Context, who Applicant) (Verdict, error) {
	return a.of.Judge(ctx, who)
}

// signInHost implements signin.Network.
type signInHost struct{ m *Master }

var (
	_ signin.Network = signInHost{}
)

// openSignIns returns the desk that handles sign-ins.
func (m *Master) openSignIns(hourly *ratelimit.HourlyLog) *signin.Desk {
	o := m.opts
	s := signin.Options{Identity: m.identity, Keys: m.keys, Policy: o.Keys.Policy,
		Sessions: m.peers.Secrets(),
		Network:  signInHost{m}, Records: m.announced, Presence: m.network.Presence,
		Clones: m.clones, Contacts: m.orders,
		Counts: m.counts, Events: m.events, Hourly: hourly, Log: m.log, Rate: o.Security.AuthRate,
		Burst:      o.Security.AuthBurst,
		MaxMinions: o.Keys.MaxMinions, FIPS: o.Security.FIPS, NoEvents: o.Events.NoAuth,
		EventGrains: o.Events.AuthGrains}
	for _, a := range o.Keys.Acceptors {
		s.Acceptors = append(s.Acceptors, acceptor{a})
	}
	return signin.New(s)
}

// PublishKey implements signin.Network.
func (h signInHost) PublishKey(ctx context.Context, peer, id string) (*crypt.Key, error) {
	tenant, _, err := h.m.tenants.Of(ctx, id)
	if err != nil {
		return nil, err
	}
	h.m.tenants.SignedIn(peer, id, tenant)
	return h.m.network.Keyring.KeyOf(tenant)
}

// Crowded implements signin.Network.
func (h signInHost) Crowded(id string, most int) bool {
	return h.m.network.Crowded(id, most)
}
