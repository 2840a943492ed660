package announced

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// DefaultMaxTenant is the default of Options.MaxTenant.
	DefaultMaxTenant = 10_000
	// maxGrains limits the packed grains of one announcement in bytes. The store keeps them, and each target that
	// is matched against minions that have not joined reads them.
	maxGrains = 64 << 10
	// countLife is how long a count of a tenant's announcements is used, plus what is announced here meanwhile.
	countLife = 2 * time.Second
)

// ErrTenantFull is returned for a new minion of a tenant that has Options.MaxTenant announced minions.
var ErrTenantFull = errors.New(
	"its tenant has as many announced minions as it may (max_announced_tenant)")

// counted is a tenant's number of announced minions.
type counted struct {
	n  int
	at time.Time // when the store was read
}

// reserve counts one more minion of a tenant, or returns ErrTenantFull. Minions without a tenant are not limited: the
// operator announces them. Of what peer masters announced, the last countLife may be missing.
func (b *Book) reserve(ctx context.Context, tenant string) error {
	if tenant == "" || b.MaxTenant < 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts[tenant]
	if time.Since(c.at) > countLife {
		list, err := b.Minions.Minions(ctx, store.MinionFilter{Tenant: tenant})
		if err != nil {
			return err
		}
		c = counted{len(list), time.Now()}
	}
	// guard: announcements-of-one-tenant TestTenantIsFull
	if c.n >= b.MaxTenant {
		return ErrTenantFull
	}
	c.n++
	b.counts[tenant] = c
	return nil
}

// forgetCounts makes the next reserve read the store, after minions were removed.
func (b *Book) forgetCounts() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.counts)
}

// plain converts a caller's grains to the plain values that the store needs.
func plain(v map[string]any) (map[string]any, error) {
	if v == nil {
		v = map[string]any{}
	}
	packed, err := payload.Marshal(v)
	if err != nil {
		return nil, err
	}
	// guard: announcements-of-one-tenant TestLargeGrains
	if len(packed) > maxGrains {
		return nil, fmt.Errorf("its grains have %d bytes, more than %d", len(packed), maxGrains)
	}
	out, err := payload.Unmarshal(packed)
	p, _ := payload.Map(out)
	return p, err
}

// takeTurn waits until no other key pair is made for a tenant. Making one takes a tenth of a second or more of a
// processor.
func (b *Book) takeTurn(ctx context.Context, tenant string) (done func(), err error) {
	if tenant == "" {
		return func() {}, nil
	}
	b.mu.Lock()
	c := b.making[tenant]
	if c == nil {
		c = make(chan struct{}, 1)
		b.making[tenant] = c
	}
	b.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
