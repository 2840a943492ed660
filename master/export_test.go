package master

import (
	"context"
	"time"

	"github.com/brine-salt/brine/master/subscribers"
)

// CheckClones queries the hosts that use an id and collects their answers for the duration of window. watch is false
// for the check after a suspicion, and true for an id whose clones are known.
func (m *Master) CheckClones(ctx context.Context, id string, watch bool, window time.Duration) {
	m.clones.Check(ctx, id, watch, window)
}

// Handle answers one request in the way a transport calls the master.
func (m *Master) Handle(ctx context.Context, body []byte) []byte {
	return m.HandleFrom(ctx, "127.0.0.1:1", body)
}

// HandleFrom is Handle for a request from the address peer.
func (m *Master) HandleFrom(ctx context.Context, peer string, body []byte) []byte {
	return m.door.Handle(ctx, peer, body, 0)
}

// PublishSecret sends a job to one minion, through the master that it is connected to.
func (m *Master) PublishSecret(job map[string]any, id string) error {
	return m.broadcast(job, subscribers.Audience{IDs: []string{id}, Topics: []string{id}})
}
