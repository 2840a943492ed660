package master

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/master/targets"
)

// Rotate replaces the shared key. Minions notice at the next publish and sign in again; those whose key was deleted or
// rejected meanwhile cannot read publishes any more.
func (m *Master) Rotate(ctx context.Context) error {
	if err := m.peers.Secrets().Rotate(ctx); err != nil {
		return err
	}
	m.log.Info("Shared key was replaced")
	clusterHost{m}.Dismiss()
	m.events.Publish("key", map[string]any{"rotate_aes_key": true})
	if m.opts.Keys.PingOnRotate {
		if _, err := m.Publish(ctx, Job{Fun: "test.ping", Tgt: "*"}); err != nil &&
			!targets.IsNoMinions(err) && !errors.Is(err, ErrDenied) {
			return err
		}
	}
	return nil
}

// broadcast hands a job map to the minions of this master, and of the others if there are any: these are told first,
// so that a job that left here is on its way to all.
func (m *Master) broadcast(job map[string]any, to subscribers.Audience) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := m.peers.Publish(ctx, m.publicationFor("", job, to)); err != nil {
		return err
	}
	return m.network.Sender.Send(job, to)
}

// publicationFor is what hands a job to the minions of another master, or of all others if it has no name.
func (m *Master) publicationFor(name string, job map[string]any,
	to subscribers.Audience) cluster.Publication {
	return cluster.Publication{Job: job, To: name, IDs: to.IDs, Topics: to.Topics,
		NoCache: m.runs.NoCache(fields.Text(job, "jid"))}
}
