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

// DefaultTokenTTL is the default lifetime of a join token.
const DefaultTokenTTL = announced.DefaultTokenTTL

// ErrNoMinionRecords is returned by all methods for announced minions if Options.Store cannot store them.
var ErrNoMinionRecords = store.ErrNoMinions

// ErrOtherTenant is returned by EnsureMinion for an id that was announced for another tenant, and to a tenant
// for an id that the operator accepted before.
var ErrOtherTenant = announced.ErrOtherTenant

// MinionSpec describes a minion that does not exist yet; see [announced.Spec]. If Masters is empty,
// NetworkOptions.Advertise is used. Its Events are granted as by Master.GrantEvents.
type MinionSpec = announced.Spec

// EnsureMinion announces a minion and returns what its machine needs to join. It may be repeated with the same
// spec, on any master of the same store. Until the minion has joined, it returns the same token (with a new
// expiry) or keys again; after that it returns neither.
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

// RevokeMinion ends a minion's membership: it deletes its key, cancels its pending orders and removes its
// announcement. Parts that do not exist are not an error.
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

// Announced describes an announced minion.
type Announced struct {
	ID, Tenant string
	// Joined reports whether the minion has signed in.
	Joined bool
	// Grains are those of its announcement, until it has joined.
	Grains map[string]any
	// Events are the event tags granted to it.
	Events []string
}

// Announced returns the announced minions of a tenant, sorted by id. If tenant is empty it returns those of all
// tenants, and minions that have connected without an announcement.
func (m *Master) Announced(ctx context.Context, tenant string) ([]Announced, error) {
	list, err := m.announced.List(ctx, tenant)
	var out []Announced
	for _, x := range list {
		out = append(out, Announced(x))
	}
	return out, err
}
