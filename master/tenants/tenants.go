// Package tenants knows the tenant of each minion: that for which it was announced. Minions of one tenant do
// not see others, and can only read what is published to their own. Data about all minions is read every few
// seconds; data about a single one is always read from the store.
package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Keys provides the keys of publishes.
type Keys interface {
	// KeyOf returns the key for a tenant's publishes, or for minions without a tenant if tenant is empty.
	KeyOf(tenant string) (*crypt.Key, error)
}

// tenantsFor is how long data about all minions is cached if this master has not changed it.
const tenantsFor = 2 * time.Second

// Registry knows the tenants of minions. Its methods are safe for concurrent use.
type Registry struct {
	minions store.Minions // nil if the store keeps no minions
	log     *slog.Logger

	mu    sync.Mutex        // guards the fields below; held while the store is read
	of    map[string]string // tenant by minion; minions without one are missing
	names []string          // all of them, nobody's ("") first
	read  time.Time
	last  map[string][]string // tenants of the last sign-ins by host, latest first

	any   atomic.Bool        // there is or was a tenant
	tries *ratelimit.Limiter // for attempts with keys of other hosts' tenants
}

// New returns a Registry of the minions in a store; nil means a store that keeps none.
func New(minions store.Minions, log *slog.Logger) *Registry {
	return &Registry{minions: minions, log: log, tries: ratelimit.New(triesRate, triesBurst)}
}

// Any reports whether there is or was a tenant.
func (t *Registry) Any() bool { return t.any.Load() }

// Add records that there will be a tenant.
func (t *Registry) Add() { t.any.Store(true) }

// Forget makes the next call read the store again.
func (t *Registry) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = time.Time{}
}

// All returns the tenants of all minions that have one. The data may be a few seconds old. The map must not be
// modified.
func (t *Registry) All(ctx context.Context) (map[string]string, error) {
	if t.minions == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) < tenantsFor {
		return t.of, nil
	}
	list, err := t.minions.Minions(ctx, store.MinionFilter{})
	if err != nil {
		return nil, err
	}
	of := make(map[string]string)
	for _, x := range list {
		if x.Tenant != "" {
			of[x.ID] = x.Tenant
		}
	}
	names := make(map[string]struct{})
	for _, tenant := range of {
		names[tenant] = struct{}{}
	}
	t.of, t.names, t.read = of, append([]string{""}, slices.Sorted(maps.Keys(names))...), time.Now()
	if len(of) > 0 {
		t.any.Store(true)
	}
	return of, nil
}

// Of returns a minion's tenant, or "", and whether it was announced.
func (t *Registry) Of(ctx context.Context, id string) (tenant string, announced bool, err error) {
	if t.minions == nil {
		return "", false, nil
	}
	x, err := t.minions.Minion(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	if x.Tenant != "" {
		t.any.Store(true)
	}
	return x.Tenant, err == nil, err
}

// Neighbours returns those of ids that a minion may see: the minions of its tenant or, for a minion without a
// tenant, those without one. bounded reports whether there are tenants at all.
func (t *Registry) Neighbours(ctx context.Context, id string,
	ids []string) (same []string, bounded bool, err error) {
	of, err := t.All(ctx)
	if err != nil || len(of) == 0 {
		return ids, false, err
	}
	own, _, err := t.Of(ctx, id)
	if err != nil {
		return nil, true, err
	}
	return slices.DeleteFunc(slices.Clone(ids),
		func(other string) bool { return of[other] != own }), true, nil
}

// Within returns those of a job's minions that belong to a tenant; "" means minions without one. For a list
// target the others count as missing, like unknown ids.
func (t *Registry) Within(ctx context.Context, tenant string, listed bool, ids,
	missing []string) (in, out []string, bounded bool, err error) {
	of, err := t.All(ctx)
	if err != nil {
		return nil, nil, true, err
	}
	if len(of) == 0 && tenant == "" {
		return ids, missing, false, nil
	}
	for _, id := range ids {
		if of[id] == tenant {
			in = append(in, id)
		} else if listed {
			missing = append(missing, id) // like an unknown id
		}
	}
	return in, missing, true, nil
}

// Limits of the table that maps hosts to the tenants whose minions signed in from there, and of attempts to decrypt
// requests that name their sender only inside. A peer needs no key to cause an attempt, so the cost of one must not
// grow with the number of tenants.
const (
	maxHosts     = 10_000
	hostTenants  = 4 // the last ones per host: several may be behind one gateway
	triesRate    = 10
	triesBurst   = 100
	maxGuessable = 64 << 10 // in bytes; larger requests are tried only with the keys of their host
)

func hostOf(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

// SignedIn records the tenant of a sign-in by its host. If the cached data disagrees, it is discarded.
func (t *Registry) SignedIn(peer, id, tenant string) {
	if !t.any.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[id] != tenant {
		t.read = t.read.Add(-tenantsFor)
	}
	if t.last == nil || len(t.last) >= maxHosts {
		t.last = make(map[string][]string)
	}
	host := hostOf(peer)
	if known := t.last[host]; len(known) == 0 || known[0] != tenant {
		others := slices.DeleteFunc(slices.Clone(known), func(x string) bool { return x == tenant })
		t.last[host] = append([]string{tenant}, others[:min(len(others), hostTenants-1)]...)
	}
}

// signedInAt returns the tenants of the last sign-ins from a peer's host, latest first. The list must not be
// modified.
func (t *Registry) signedInAt(peer string) []string {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[hostOf(peer)]
}

// LastAt returns the tenant of the last sign-in from a peer's host, or "".
func (t *Registry) LastAt(peer string) string {
	if all := t.signedInAt(peer); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Guesses returns all tenants with minions, "" first. The list must not be modified.
func (t *Registry) Guesses(ctx context.Context) []string {
	if !t.any.Load() {
		return nil
	}
	if _, err := t.All(ctx); err != nil {
		t.log.Error("Cannot read the tenants of minions", "err", err)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names
}

// Reasons why a request whose sender is only named inside is not opened.
var (
	errForeignKey = errors.New("minion uses the key of another tenant")
	errGuesses    = errors.New(
		"too many keys to try; the minion is identified when it signs in again")
)

// UnderKey opens a message sealed with a shared key, which names its sender only inside. open returns the id.
// The keys of tenants that signed in from the peer's host are tried first, and are nearly always right. Then
// the other tenants' keys are tried, unless the source has caused too many failed attempts. A minion that is
// refused signs in again, and is known after that.
func (t *Registry) UnderKey(ctx context.Context, peer string, size int, keys Keys,
	open func(key *crypt.Key) (id string, err error)) error {
	var failure error
	try := func(tenant string) (done bool, err error) {
		key, err := keys.KeyOf(tenant)
		if err != nil {
			return true, err
		}
		id, err := open(key)
		if err != nil {
			failure = cmp.Or(failure, err)
			return false, nil
		}
		if own, _, err := t.Of(ctx, id); err != nil || own != tenant {
			return true, errors.Join(errForeignKey, err)
		}
		return true, nil
	}
	first := t.signedInAt(peer)
	if len(first) == 0 {
		first = []string{""}
	}
	for _, tenant := range first {
		if done, err := try(tenant); done {
			return err
		}
	}
	for _, tenant := range t.Guesses(ctx) {
		if slices.Contains(first, tenant) {
			continue
		}
		if size > maxGuessable || !t.tries.Allow(peer, time.Now()) {
			return fmt.Errorf("%w (%w)", failure, errGuesses)
		}
		if done, err := try(tenant); done {
			return err
		}
	}
	return failure
}

// TenantOf returns a minion's tenant, or "", from the store.
func (t *Registry) TenantOf(ctx context.Context, id string) (string, error) {
	tenant, _, err := t.Of(ctx, id)
	return tenant, err
}

// KnownTenant is TenantOf from the cached data.
func (t *Registry) KnownTenant(ctx context.Context, id string) (string, error) {
	of, err := t.All(ctx)
	return of[id], err
}
