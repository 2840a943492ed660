package master

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Every tenant's publishes are sealed under a key of their own, made from the master's, so that equal masters have the same ones and they
// change when it does. A minion knows that of its tenant alone: what it records of others' publishes it cannot read.

// isolated says that nobody may see jobs that are not for him: with Options.Isolate, and as soon as there are tenants.
func (m *Master) isolated() bool { return m.opts.Isolate || m.tenancy.any.Load() }

// of is the key of a tenant's publishes, "" for that of minions which are nobody's. Callers hold mu.
func (s *secrets) of(tenant string) (*crypt.Key, error) {
	if tenant == "" {
		return s.aes, nil
	}
	if s.from != s.aes {
		s.from, s.tenants = s.aes, make(map[string]*crypt.Key)
	}
	if key := s.tenants[tenant]; key != nil {
		return key, nil
	}
	raw, err := hkdf.Key(sha256.New, []byte(s.aes.Text()), nil, "brine tenant "+tenant, 56)
	if err != nil {
		return nil, err
	}
	key, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(raw))
	if err != nil {
		return nil, err
	}
	s.tenants[tenant] = key
	return key, nil
}

// keyOf is secrets.of for those who do not hold the lock.
func (m *Master) keyOf(tenant string) (*crypt.Key, error) {
	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()
	return m.secrets.of(tenant)
}

// publishKey is the key that a minion which signs in may know.
func (m *Master) publishKey(ctx context.Context, peer, id string) (*crypt.Key, error) {
	tenant, _, err := m.tenantOf(ctx, id)
	if err != nil {
		return nil, err
	}
	m.tenancy.signedIn(peer, id, tenant)
	return m.keyOf(tenant)
}

// Bounds of what is remembered of the hosts that minions sign in from, and of what is tried for peers that say only inside who they are: a peer
// needs no key to have its request tried, so what it costs does not grow with the tenants.
const (
	maxHosts     = 10_000
	hostTenants  = 4 // the last whose minions signed in from one host: there may be several behind a gateway
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

// signedIn notes whose minion signed in from where, and that what was read of the store is old if it does not say so.
func (t *tenancy) signedIn(peer, id, tenant string) {
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

// at is whose minions signed in from where a peer comes, the last first. The list is not to be changed.
func (t *tenancy) at(peer string) []string {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[hostOf(peer)]
}

// lastAt is whose minion signed in last from where a subscriber comes, "" for nobody's.
func (t *tenancy) lastAt(peer string) string {
	if all := t.at(peer); len(all) > 0 {
		return all[0]
	}
	return ""
}

// guesses are all whose minions there are, nobody's first. The list is not to be changed.
func (m *Master) guesses(ctx context.Context) []string {
	if !m.tenancy.any.Load() {
		return nil
	}
	if _, err := m.tenants(ctx); err != nil {
		m.log.Error("cannot read whose minions are", "err", err)
		return nil
	}
	m.tenancy.mu.Lock()
	defer m.tenancy.mu.Unlock()
	return m.tenancy.names
}

// Why a request that says only inside who it is from is not opened.
var (
	errForeignKey = errors.New("minion uses the key of another tenant")
	errGuesses    = errors.New("too many keys to try: a minion that signs in again is known")
)

// underKey opens what a minion sealed with the key of publishes, which says only inside who it is from. open gives the id. The keys of those
// whose minions signed in from where it comes are tried first, which is nearly always right; then the others', as far as the source has not
// had too many tried in vain. A minion that is refused signs in again, and is known after that.
func (m *Master) underKey(ctx context.Context, peer string, size int, open func(key *crypt.Key) (id string, err error)) error {
	var failure error
	try := func(tenant string) (done bool, err error) {
		key, err := m.keyOf(tenant)
		if err != nil {
			return true, err
		}
		id, err := open(key)
		if err != nil {
			failure = cmp.Or(failure, err)
			return false, nil
		}
		if own, _, err := m.tenantOf(ctx, id); err != nil || own != tenant {
			return true, errors.Join(errForeignKey, err)
		}
		return true, nil
	}
	first := m.tenancy.at(peer)
	if len(first) == 0 {
		first = []string{""}
	}
	for _, tenant := range first {
		if done, err := try(tenant); done {
			return err
		}
	}
	for _, tenant := range m.guesses(ctx) {
		if slices.Contains(first, tenant) {
			continue
		}
		if size > maxGuessable || !m.tenancy.tries.Allow(peer, time.Now()) {
			return fmt.Errorf("%w (%w)", failure, errGuesses)
		}
		if done, err := try(tenant); done {
			return err
		}
	}
	return failure
}

// part is what one tenant's minions get of a job.
type part struct {
	tenant string
	job    map[string]any
	ids    []string
}

// parts divides a job by tenants. A target that could name others becomes the list of those whom it means.
func (m *Master) parts(ctx context.Context, job map[string]any, topics []string) ([]part, error) {
	of, err := m.tenants(ctx)
	if err != nil {
		return nil, err
	}
	if topics == nil {
		topics = m.Present()
	}
	ids := make(map[string][]string)
	for _, id := range topics {
		ids[of[id]] = append(ids[of[id]], id)
	}
	tgt, _ := payload.Text(job["tgt"])
	everybody := tgt == "*" && fields.Text(job, "tgt_type") == target.TypeGlob
	var out []part
	for _, tenant := range slices.Sorted(maps.Keys(ids)) {
		p := part{tenant, job, ids[tenant]}
		if !everybody {
			p.job = maps.Clone(job)
			p.job["tgt"], p.job["tgt_type"] = nested.Anys(p.ids), target.TypeList
		}
		if m.reaches(p.ids) {
			out = append(out, p)
		}
	}
	return out, nil
}
