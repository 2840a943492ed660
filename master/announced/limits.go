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
	// is matched against minions that have not joined reads them. By default Nova keeps up to 128 entries of
	// metadata for an instance, with names and values of 255 characters of up to 4 bytes.
	maxGrains = 256 << 10
	// grainsShare is how many bytes a tenant's announced minions may have in the store on average.
	grainsShare = 16 << 10
	// expirePage is how many announcements of a full tenant are read at once.
	expirePage = 64
	// countLife is how long a count of a tenant's announcements is used, plus what is announced here meanwhile.
	countLife = 2 * time.Second
)

var (
	// ErrTenantFull is wrapped by errors for a minion of a tenant that has Options.MaxTenant announced minions, or
	// whose grains exceed MaxTenant × 16 KiB.
	ErrTenantFull = errors.New(
		"its tenant has as many announced minions as it may (max_announced_tenant)")
	// ErrLargeGrains is wrapped by errors for grains that are larger than those of one minion may be.
	ErrLargeGrains = errors.New("its grains are too large")
)

// counted is a tenant's number of announced minions that have not joined, and the bytes that the store has of them.
type counted struct {
	n     int
	bytes int64
	at    time.Time // when the store was read
	after string    // the last id that endExpired has seen; "" to begin again
}

// fits returns an error unless a tenant may have more minions and bytes of grains.
func (b *Book) fits(c counted, more int, bytes int64) error {
	// guard: announcements-of-one-tenant TestTenantIsFull
	if more > 0 && c.n+more > b.MaxTenant {
		return ErrTenantFull
	}
	most := max(int64(b.MaxTenant)*grainsShare, maxGrains) // one minion may always have maxGrains
	// guard: announcements-of-one-tenant TestGrainsOfOneTenant
	if bytes > 0 && c.bytes+bytes > most {
		return fmt.Errorf("%w: their grains have %d of %d bytes, these have %d more",
			ErrTenantFull, c.bytes, most, bytes)
	}
	return nil
}

// reserve counts more minions of a tenant and more bytes of grains, or returns an error that wraps ErrTenantFull.
// Minions without a tenant are not limited: the operator announces them. Of what peer masters announced, the last
// countLife may be missing. A tenant waits for its own requests only.
func (b *Book) reserve(ctx context.Context, tenant string, more int, bytes int64) error {
	if tenant == "" || b.MaxTenant < 0 || more <= 0 && bytes <= 0 {
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
		if err := b.recount(ctx, tenant, c.after, more, bytes); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.counts[tenant]
	if err := b.fits(c, more, bytes); err != nil {
		return err
	}
	c.n += more
	c.bytes += bytes
	b.counts[tenant] = c
	return nil
}

// recount reads how many announced minions of a tenant have not joined. If there is no room for more, it ends some
// whose token expired unused.
func (b *Book) recount(ctx context.Context, tenant, after string, more int, bytes int64) error {
	absent := store.MinionFilter{Tenant: tenant, Absent: true, NoSpec: true}
	list, err := b.Minions.Minions(ctx, absent)
	if err != nil {
		return err
	}
	now := counted{n: len(list), at: time.Now(), after: after}
	for _, x := range list {
		now.bytes += int64(x.Size)
	}
	b.mu.Lock()
	b.counts[tenant] = now
	b.mu.Unlock()
	if b.fits(now, more, bytes) == nil {
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
func (b *Book) uncount(x store.Minion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.counts[x.Tenant]; ok {
		c.n--
		c.bytes -= int64(x.Size)
		b.counts[x.Tenant] = c
	}
}

// plain converts a caller's grains to the plain values that the store needs, and returns how many bytes they have.
func plain(v map[string]any) (map[string]any, int64, error) {
	if v == nil {
		v = map[string]any{}
	}
	packed, err := payload.Marshal(v)
	if err != nil {
		return nil, 0, err
	}
	// guard: announcements-of-one-tenant TestLargeGrains
	if len(packed) > maxGrains {
		return nil, 0, fmt.Errorf("%w: %d bytes, more than %d",
			ErrLargeGrains, len(packed), maxGrains)
	}
	out, err := payload.Unmarshal(packed)
	p, _ := payload.Map(out)
	return p, int64(len(packed)), err
}

// sizeOf returns the bytes of the grains in a minion's record.
func sizeOf(x store.Minion) int64 {
	if x.Version == 0 {
		return 0
	}
	packed, err := payload.Marshal(x.Spec["grains"])
	if err != nil {
		return 0
	}
	return int64(len(packed))
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
