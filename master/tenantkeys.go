package master

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"net"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
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

// maxHosts bounds the hosts of which it is remembered whose minion signed in there.
const maxHosts = 10_000

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
		t.last = make(map[string]string)
	}
	t.last[hostOf(peer)] = tenant
}

// lastAt is whose minion signed in last from where a subscriber comes, "" for nobody's.
func (t *tenancy) lastAt(peer string) string {
	if !t.any.Load() {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[hostOf(peer)]
}

// guesses are all whose minions there are, nobody's first.
func (m *Master) guesses(ctx context.Context) []string {
	if !m.tenancy.any.Load() {
		return nil
	}
	of, err := m.tenants(ctx)
	if err != nil {
		m.log.Error("cannot read whose minions are", "err", err)
		return nil
	}
	all := make(map[string]struct{})
	for _, tenant := range of {
		all[tenant] = struct{}{}
	}
	return append([]string{""}, slices.Sorted(maps.Keys(all))...)
}

// errForeignKey says that a minion used the key of a tenant that it is not of.
var errForeignKey = errors.New("minion uses the key of another tenant")

// underKey opens what a minion sealed with the key of publishes, which says only inside who it is from. open gives the id.
func (m *Master) underKey(ctx context.Context, open func(key *crypt.Key) (id string, err error)) error {
	guesses := m.guesses(ctx)
	if guesses == nil {
		guesses = []string{""}
	}
	var failure error
	for _, tenant := range guesses {
		key, err := m.keyOf(tenant)
		if err != nil {
			return err
		}
		id, err := open(key)
		if err != nil {
			if failure == nil {
				failure = err
			}
			continue
		}
		if own, _, err := m.tenantOf(ctx, id); err != nil || own != tenant {
			return errors.Join(errForeignKey, err)
		}
		return nil
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
	everybody := tgt == "*" && text(job, "tgt_type") == target.TypeGlob
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
