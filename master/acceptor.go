package master

import (
	"context"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Acceptor judges minions whose key nobody has accepted or rejected yet. Package join has some.
type Acceptor struct {
	// Name stands in the log and in events.
	Name string
	// BeforeToken has it asked before the minion's join token counts: for what the operator knew beforehand.
	BeforeToken bool
	// Judge is called from many goroutines, once for each sign-in of such a minion. An error is logged, and the key
	// waits: later acceptors are not asked, and no policy accepts the key, but the minion may try again.
	Judge func(ctx context.Context, a Applicant) (Verdict, error)
}

// Verdict is what an Acceptor says, and why. The zero value is no opinion: the next one is asked.
type Verdict = signin.Verdict

// Decision about a minion's key.
type Decision = signin.Decision

// The decisions. A rejected sign-in is refused; the key is not stored, so that nobody can spoil an id by bad proof.
const (
	Abstain = signin.Abstain
	Accept  = signin.Accept
	Reject  = signin.Reject
)

// Applicant is a minion that signs in with a key that nobody has decided about.
type Applicant = signin.Applicant

// acceptor is an Acceptor as sign-ins see it.
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

// signInHost is the master as sign-ins see it.
type signInHost struct{ m *Master }

var (
	_ signin.Network = signInHost{}
)

// openSignIns prepares what decides about sign-ins.
func (m *Master) openSignIns(hourly *ratelimit.HourlyLog) *signin.Desk {
	o := m.opts
	s := signin.Options{Identity: m.identity, Keys: m.keys, Policy: o.Keys.Policy,
		Sessions: m.peers.Secrets(),
		Network:  signInHost{m}, Records: m.announced, Presence: m.network.Presence,
		Clones: m.clones, Contacts: m.orders,
		Counts: m.counts, Events: m.events, Hourly: hourly, Log: m.log, Rate: o.Security.AuthRate,
		Burst:      o.Security.AuthBurst,
		MaxMinions: o.Keys.MaxMinions, FIPS: o.Security.FIPS, NoEvents: o.Events.NoAuth}
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

// Connected implements signin.Network.
func (h signInHost) Connected(id string) (n int, known bool) {
	return h.m.network.Count(id)
}
