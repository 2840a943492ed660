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
	// expirePage is how many announcements of a full tenant are read at once.
	expirePage = 64
	// countLife is how long a count of a tenant's announcements is used, plus what is announced here meanwhile.
	countLife = 2 * time.Second
)

// ErrTenantFull is returned for a new minion of a tenant that has Options.MaxTenant announced minions.
var ErrTenantFull = errors.New(
	"its tenant has as many announced minions as it may (max_announced_tenant)")

// counted is a tenant's number of announced minions that have not joined.
type counted struct {
	n     int
	at    time.Time // when the store was read
	after string    // the last id that endExpired has seen; "" to begin again
}

// reserve counts one more minion of a tenant, or returns ErrTenantFull. Minions without a tenant are not limited: the
// operator announces them. Of what peer masters announced, the last countLife may be missing. A tenant waits for its
// own requests only.
func (b *Book) reserve(ctx context.Context, tenant string) error {
	if tenant == "" || b.MaxTenant < 0 {
		return nil
	}
	done, err := b.takeTurn(ctx, turn{"count", tenant})
	if err != nil {
		return err
	}
	defer done()
	b.mu.Lock()
	c := b.counts[tenant]
	b.mu.Unlock()
	// guard: announcements-of-one-tenant TestFullTenantCountsOnce
	if time.Since(c.at) > countLife {
		if err := b.recount(ctx, tenant, c.after); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.counts[tenant]
	// guard: announcements-of-one-tenant TestTenantIsFull
	if c.n >= b.MaxTenant {
		return ErrTenantFull
	}
	c.n++
	b.counts[tenant] = c
	return nil
}

// recount reads how many announced minions of a tenant have not joined. If they are too many, it ends some whose
// token expired unused.
func (b *Book) recount(ctx context.Context, tenant, after string) error {
	absent := store.MinionFilter{Tenant: tenant, Absent: true, NoSpec: true}
	list, err := b.Minions.Minions(ctx, absent)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.counts[tenant] = counted{len(list), time.Now(), after}
	b.mu.Unlock()
	if len(list) < b.MaxTenant {
		return nil
	}
	absent.NoSpec, absent.After, absent.Limit = false, after, expirePage
	if list, err = b.Minions.Minions(ctx, absent); err != nil {
		return err
	}
	after = ""
	if len(list) == expirePage {
		after = list[len(list)-1].ID
	}
	for _, x := range list {
		if !b.isExpired(x) {
			continue
		}
		// It may have been announced again.
		if x, err = b.Minions.Minion(ctx, x.ID); err == nil && b.isExpired(x) {
			err = b.Forget(ctx, x.ID)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts[tenant]
	c.at, c.after = time.Now(), after
	b.counts[tenant] = c
	return nil
}

// isExpired reports whether a minion can no longer join by what was announced.
func (b *Book) isExpired(x store.Minion) bool {
	expires, ok := payload.Int(x.Spec["token_expires"])
	return ok && !x.Joined && x.Spec["private"] == nil && x.Spec["public"] == nil &&
		time.Now().UnixMicro() > expires && !b.isAccepted(x.ID)
}

// uncount takes a minion that was removed from its tenant's count.
func (b *Book) uncount(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.counts[tenant]; ok {
		c.n--
		b.counts[tenant] = c
	}
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

// A turn is what only one request of a tenant does at a time.
type turn struct{ what, tenant string }

// takeTurn waits until no other request of a tenant does the same. To make a key pair takes a tenth of a second or
// more of a processor.
func (b *Book) takeTurn(ctx context.Context, t turn) (done func(), err error) {
	if t.tenant == "" {
		return func() {}, nil
	}
	b.mu.Lock()
	c := b.turns[t]
	if c == nil {
		c = make(chan struct{}, 1)
		b.turns[t] = c
	}
	b.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
