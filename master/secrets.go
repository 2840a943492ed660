package master

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/target"
)

// secrets are the shared key and the counter of publishes under it. Salt counts from 1 at every start; here the counter is
// the time in microseconds, so it also rises over restarts, which peers that remember it can rely on.
type secrets struct {
	mu     sync.Mutex // guards the fields below; held while a publish is sealed and handed over, to keep them in order
	aes    *crypt.Key
	serial int64
	// tenants are the keys of tenants, made from the key that stands beside them.
	tenants map[string]*crypt.Key
	from    *crypt.Key
}

// next returns the next serial. Callers hold mu.
func (s *secrets) next(now time.Time) int64 {
	s.serial = max(s.serial+1, now.UnixMicro())
	return s.serial
}

// Rotate replaces the shared key. Minions notice at the next publish and sign in again; those whose key was deleted or
// rejected meanwhile cannot read publishes any more.
func (m *Master) Rotate(ctx context.Context) error {
	if err := m.peers.Secrets().Rotate(ctx); err != nil {
		return err
	}
	m.log.Info("shared key was replaced")
	m.dismiss()
	m.events.Publish("key", map[string]any{"rotate_aes_key": true})
	if m.opts.PingOnRotate {
		if _, err := m.Publish(ctx, Job{Fun: "test.ping", Tgt: "*"}); err != nil && !isNoMinions(err) && !errors.Is(err, ErrDenied) {
			return err
		}
	}
	return nil
}

// dismiss has minions that are connected, but whose key was deleted or rejected, notice that: they get a job for nobody, which they cannot
// read. Jobs do not go to their connections.
func (m *Master) dismiss() {
	if !m.serving.Load() {
		return
	}
	accepted, err := m.keys.List(keys.Accepted)
	if err != nil {
		m.log.Error("cannot tell minions that their keys are gone", "err", err)
		return
	}
	var gone []string
	for _, s := range m.servers {
		for _, id := range s.Present() {
			if _, ok := slices.BinarySearch(accepted, id); !ok && !slices.Contains(gone, id) {
				gone = append(gone, id)
			}
		}
	}
	if len(gone) == 0 {
		return
	}
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": []any{}, "tgt_type": target.TypeList, "ret": "", "jid": string(m.clock.Next(time.Now()))}
	if err := m.transmit(job, gone); err != nil {
		m.log.Debug("cannot tell minions that their keys are gone", "err", err)
	}
}

// broadcast hands a job map to the minions of this master, and of the others if there are any: these are told first, so that a job that
// left here is on its way to all.
func (m *Master) broadcast(job map[string]any, to audience) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := m.peers.Publish(ctx, m.publicationFor("", job, to)); err != nil {
		return err
	}
	return m.send(job, to)
}

// publicationFor is what hands a job to the minions of another master, or of all others if it has no name.
func (m *Master) publicationFor(name string, job map[string]any, to audience) cluster.Publication {
	return cluster.Publication{Job: job, To: name, IDs: to.ids, Topics: to.topics, NoCache: m.runs.NoCache(fields.Text(job, "jid"))}
}

// reaches reports whether a subscriber of this master may be one of some minions, or anybody is there if topics is nil. Signing what nobody
// gets would be most of the work of several masters.
func (m *Master) reaches(topics []string) bool {
	for _, s := range m.servers {
		if topics == nil && s.Subscribers() > 0 {
			return true
		}
		if named, nameless := s.Reach(topics...); named+nameless > 0 {
			return true
		}
	}
	return false
}

// here reports whether one of this master's subscribers is known to be a minion.
func (m *Master) here(id string) bool {
	if !m.serving.Load() {
		return false
	}
	for _, s := range m.servers {
		if named, _ := s.Reach(id); named > 0 {
			return true
		}
	}
	return false
}

// transmit seals a job map and hands it to every transport: where there are tenants, to each one's minions apart. topics are ids, nil for
// everybody.
func (m *Master) transmit(job map[string]any, topics []string) error {
	if !m.tenants.Any() {
		return m.transmitTo("", job, topics)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	parts, err := m.parts(ctx, job, topics)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := m.transmitTo(p.tenant, p.job, p.ids); err != nil {
			return err
		}
	}
	return nil
}

// transmitTo seals a job map under the key of a tenant and hands it to every transport.
func (m *Master) transmitTo(tenant string, job map[string]any, topics []string) error {
	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()
	msg, err := m.sealJob(tenant, job)
	if err != nil {
		return err
	}
	for _, s := range m.servers {
		if err := s.Publish(msg, topics); err != nil {
			return err
		}
	}
	return nil
}

// sealJob makes the message of a job map under a tenant's key; callers hold secrets.mu. Equal masters send no serial, as those of Salt's cluster: minions would
// drop what one of them sends after another one counted further.
func (m *Master) sealJob(tenant string, job map[string]any) ([]byte, error) {
	key, err := m.secrets.of(tenant)
	if err != nil {
		return nil, err
	}
	if name := m.peers.Name(); name == "" {
		job["serial"] = m.secrets.next(time.Now())
	} else if probe.IsQuestion(job) {
		job = probe.SentBy(job, name)
	}
	return protocol.SealPublish(job, key, m.identity.Key, m.opts.SigningAlgorithm)
}

// prober is the master as subscribers.Identifier sees it.
type prober struct{ m *Master }

// Tenants implements subscribers.Prober.
func (p prober) Tenants(ctx context.Context) []string { return p.m.tenants.Guesses(ctx) }

// LastTenant implements subscribers.Prober.
func (p prober) LastTenant(peer string) string { return p.m.tenants.LastAt(peer) }

// SignIns implements subscribers.Prober.
func (p prober) SignIns() (count int64, waiting bool) {
	if p.m.signIns.Busy() {
		return 0, true
	}
	return p.m.counts.allSignIns(), false
}

// SealProbe implements subscribers.Prober.
func (p prober) SealProbe(tenant, mark string, send func(msg []byte) bool) (bool, error) {
	m := p.m
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": target.TypeGlob, "ret": "", "jid": string(m.clock.Next(time.Now())),
		"metadata": probe.LinkMetadata(mark)}
	m.secrets.mu.Lock()
	defer m.secrets.mu.Unlock()
	msg, err := m.sealJob(tenant, job)
	if err != nil {
		return false, err
	}
	return send(msg), nil
}
