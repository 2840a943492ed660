package master

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Every tenant's publishes are sealed under a key of their own, made from the master's, so that equal masters have the same ones and they
// change when it does. A minion knows that of its tenant alone: what it records of others' publishes it cannot read.

// isolated says that nobody may see jobs that are not for him: with Options.Isolate, and as soon as there are tenants.
func (m *Master) isolated() bool { return m.opts.Isolate || m.tenants.Any() }

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

// KeyOf implements tenants.Keys: it is of for those who do not hold the lock.
func (s *secrets) KeyOf(tenant string) (*crypt.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(tenant)
}

// publishKey is the key that a minion which signs in may know.
func (m *Master) publishKey(ctx context.Context, peer, id string) (*crypt.Key, error) {
	tenant, _, err := m.tenants.Of(ctx, id)
	if err != nil {
		return nil, err
	}
	m.tenants.SignedIn(peer, id, tenant)
	return m.secrets.KeyOf(tenant)
}

// part is what one tenant's minions get of a job.
type part struct {
	tenant string
	job    map[string]any
	ids    []string
}

// parts divides a job by tenants. A target that could name others becomes the list of those whom it means.
func (m *Master) parts(ctx context.Context, job map[string]any, topics []string) ([]part, error) {
	of, err := m.tenants.All(ctx)
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
