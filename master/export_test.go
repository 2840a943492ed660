package master

import (
	"context"
	"time"

	"github.com/brine-salt/brine/master/subscribers"
)

// CheckClones asks now who uses an id and waits so long for answers, as after a suspicion or, watch, as when clones were found.
func (m *Master) CheckClones(ctx context.Context, id string, watch bool, window time.Duration) {
	m.clones.Check(ctx, id, watch, window)
}

// Handle answers one request as a transport has it answered.
func (m *Master) Handle(ctx context.Context, body []byte) []byte {
	return m.HandleFrom(ctx, "127.0.0.1:1", body)
}

// HandleFrom is Handle for a request from an address.
func (m *Master) HandleFrom(ctx context.Context, peer string, body []byte) []byte {
	return m.door.Handle(ctx, peer, body, 0)
}

// PublishSecret hands a job to one minion, at whichever master it listens.
func (m *Master) PublishSecret(job map[string]any, id string) error {
	return m.broadcast(job, subscribers.Audience{IDs: []string{id}, Topics: []string{id}})
}
