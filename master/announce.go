package master

import (
	"context"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/master/announced"
	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/network"
	"github.com/brine-salt/brine/master/store"
)

// DefaultTokenTTL is how long a token to join is good where nothing else is said.
const DefaultTokenTTL = announced.DefaultTokenTTL

// ErrNoMinionRecords is returned by everything about announced minions when Options.Store cannot keep them.
var ErrNoMinionRecords = store.ErrNoMinions

// ErrOtherTenant is returned by EnsureMinion for an id that was announced for another tenant, or that a tenant
// announces and the operator accepted before.
var ErrOtherTenant = announced.ErrOtherTenant

// MinionSpec announces a minion that does not exist yet; see [announced.Spec]. Its Masters are those of
// NetworkOptions.Advertise if they are empty, and its Events are granted as by Master.GrantEvents.
type MinionSpec = announced.Spec

// EnsureMinion announces a minion and says what its machine must be told. It may be called again with the same spec,
// by any master of the same store: until the minion came, the same token or keys are given again, the token with a
// new term; afterwards, none.
func (m *Master) EnsureMinion(ctx context.Context, s MinionSpec) (bootstrap.Bootstrap, error) {
	return m.ensureMinion(ctx, s, false)
}

func (m *Master) ensureMinion(ctx context.Context, s MinionSpec,
	byTenant bool) (bootstrap.Bootstrap, error) {
	b := bootstrap.Bootstrap{ID: s.ID, Masters: s.Masters,
		Transport: m.opts.Network.AdvertiseTransport, MasterKey: m.PublicKey(),
		Tenant: s.Tenant, Grains: s.Grains, Config: s.Config, RetPort: m.opts.Network.RetPort,
		PublishPort: m.opts.Network.PublishPort}
	if len(b.Masters) == 0 {
		b.Masters = m.opts.Network.Advertise
	}
	if m.life.Serving() {
		b.RetPort, b.PublishPort = network.PortOf(m.RequestAddr()), network.PortOf(m.PublishAddr())
	}
	var err error
	if b.Fingerprint, err = m.Fingerprint(); err == nil {
		b, err = m.announced.Ensure(ctx, s, byTenant, b)
	}
	if err != nil {
		return bootstrap.Bootstrap{}, fmt.Errorf("cannot announce minion %.80q: %w", s.ID, err)
	}
	return b, nil
}

// RevokeMinion ends a minion's membership: its key is deleted, what waits for it is cancelled, and its announcement
// forgotten. It is no error that some of it is not there.
func (m *Master) RevokeMinion(ctx context.Context, id string) error {
	if m.announced.Minions == nil || m.orders == nil {
		return ErrNoMinionRecords
	}
	err := m.announced.Forget(ctx, id)
	if e := m.keys.Delete(id); err == nil && !errors.Is(e, keys.ErrNotFound) {
		err = e
	}
	e := m.orders.Revoke(ctx, id)
	if err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot revoke minion %.80q: %w", id, err)
	}
	return nil
}

// Announced is a minion that was announced.
type Announced struct {
	ID, Tenant string
	// Joined says that it has been here.
	Joined bool
	Grains map[string]any
	// Events are the tags that are granted to it.
	Events []string
}

// Announced lists the minions that were announced, of one tenant or, with "", of all; sorted by id.
func (m *Master) Announced(ctx context.Context, tenant string) ([]Announced, error) {
	list, err := m.announced.List(ctx, tenant)
	var out []Announced
	for _, x := range list {
		out = append(out, Announced(x))
	}
	return out, err
}
