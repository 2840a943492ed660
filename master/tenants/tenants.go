// Package tenants knows which minions are whose: a minion is a tenant's when it was announced for it. Minions of one
// tenant know of no others, and read only what is published to their own. What the store says of all minions is read
// every few seconds; what is asked of one is read at once.
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

// Keys are the keys of publishes.
type Keys interface {
	// KeyOf returns the key of a tenant's publishes, "" for that of minions which are nobody's.
	KeyOf(tenant string) (*crypt.Key, error)
}

// tenantsFor is how long what the store says about all minions is used, where this master has not changed it.
const tenantsFor = 2 * time.Second

// Registry knows which minions are whose. Its methods may be called from many goroutines.
type Registry struct {
	minions store.Minions // nil if the store keeps none
	log     *slog.Logger

	mu    sync.Mutex        // guards the fields below; held while the store is read
	of    map[string]string // tenants by minion, of those that have one
	names []string          // all of them, nobody's ("") first
	read  time.Time
	last  map[string][]string // by host, whose minions signed in there last, the last first

	any   atomic.Bool        // there is a tenant, or was one
	tries *ratelimit.Limiter // of keys that are none of the host's
}

// New returns a Registry of the minions in a store; nil is a store that keeps none.
func New(minions store.Minions, log *slog.Logger) *Registry {
	return &Registry{minions: minions, log: log, tries: ratelimit.New(triesRate, triesBurst)}
}

// Any reports whether there is a tenant, or was one.
func (t *Registry) Any() bool { return t.any.Load() }

// Add notes that there will be a tenant.
func (t *Registry) Add() { t.any.Store(true) }

// Forget has the store read again.
func (t *Registry) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = time.Time{}
}

// All returns the tenants of all minions that have one, by what was last read of them, a few seconds ago at most. The
// map is not to be changed.
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

// Of returns whose a minion is, "" for nobody's, and whether it was announced.
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

// Neighbours leaves those of ids that a minion may know of: the minions of its own tenant, or those of nobody for one
// of nobody's. bounded says that there are borders at all.
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

// Within returns those of the minions of a job that a tenant's border lets through, "" for that of minions which are
// nobody's. If the target is a list, the others count as missing: as ids that nobody knows.
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
			missing = append(missing, id) // as one that nobody knows
		}
	}
	return in, missing, true, nil
}

// Bounds of what is remembered of the hosts that minions sign in from, and of what is tried for peers that say only
// inside who they are: a peer needs no key to have its request tried, so what it costs does not grow with the tenants.
const (
	maxHosts     = 10_000
	hostTenants  = 4 // the last that signed in from one host: there may be several behind a gateway
	triesRate    = 10
	triesBurst   = 100
	maxGuessable = 64 << 10 // bytes; what is larger is tried with the keys of its host only
)

func hostOf(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

// SignedIn notes whose minion signed in from where, and that what was read of the store is old if it does not say so.
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

// signedInAt is whose minions signed in from where a peer comes, the last first. The list is not to be changed.
func (t *Registry) signedInAt(peer string) []string {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[hostOf(peer)]
}

// LastAt is whose minion signed in last from where a subscriber comes, "" for nobody's.
func (t *Registry) LastAt(peer string) string {
	if all := t.signedInAt(peer); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Guesses are all whose minions there are, nobody's first. The list is not to be changed.
func (t *Registry) Guesses(ctx context.Context) []string {
	if !t.any.Load() {
		return nil
	}
	if _, err := t.All(ctx); err != nil {
		t.log.Error("Cannot read whose minions are", "err", err)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names
}

// Why a request that says only inside who it is from is not opened.
var (
	errForeignKey = errors.New("minion uses the key of another tenant")
	errGuesses    = errors.New("too many keys to try: a minion that signs in again is known")
)

// UnderKey opens what a minion sealed with the key of publishes, which says only inside who it is from. open gives the
// id. The keys of those whose minions signed in from where it comes are tried first, which is nearly always right; then
// the others', as far as the source has not had too many tried in vain. A minion that is refused signs in again, and is
// known after that.
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

// TenantOf is Of without whether the minion was announced.
func (t *Registry) TenantOf(ctx context.Context, id string) (string, error) {
	tenant, _, err := t.Of(ctx, id)
	return tenant, err
}

// KnownTenant is TenantOf by what was last read of all minions.
func (t *Registry) KnownTenant(ctx context.Context, id string) (string, error) {
	of, err := t.All(ctx)
	return of[id], err
}
