package master

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/master/targets"
)

// Rotate replaces the shared key. Minions notice it at the next publish and sign in again. Minions whose key
// was deleted or rejected can no longer read publishes.
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

// broadcast sends a job to the minions of this master, and in a cluster to the others'. The peers are notified
// first: if that fails, nothing was sent here.
func (m *Master) broadcast(job map[string]any, to subscribers.Audience) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := m.peers.Publish(ctx, m.publicationFor("", job, to)); err != nil {
		return err
	}
	return m.network.Sender.Send(job, to)
}

// publicationFor returns the message that passes a job to a peer master, or to all if name is empty.
func (m *Master) publicationFor(name string, job map[string]any,
	to subscribers.Audience) cluster.Publication {
	return cluster.Publication{Job: job, To: name, IDs: to.IDs, Topics: to.Topics,
		NoCache: m.runs.NoCache(fields.Text(job, "jid"))}
}
