package clones

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/brine-salt/brine/master/store"
)

// Memory implements Notes for a single master. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all map[string][]byte // guarded by mu
}

// Add implements Notes.
func (n *Memory) Add(_ context.Context, id string, body []byte) (first bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.all[id]; known {
		return false, nil
	}
	if n.all == nil {
		n.all = make(map[string][]byte)
	}
	n.all[id] = body
	return true, nil
}

// Read implements Notes.
func (n *Memory) Read(_ context.Context, id string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[id], nil
}

// Drop implements Notes.
func (n *Memory) Drop(_ context.Context, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, id)
	return nil
}

// IDs implements Notes.
func (n *Memory) IDs(context.Context) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.all)), nil
}

// noteKind is the kind of the notes in a database.
const noteKind = "clone"

// Shared implements Notes for a cluster.
type Shared struct{ DB store.Shared }

// Add implements Notes.
func (n Shared) Add(ctx context.Context, id string, body []byte) (first bool, err error) {
	return n.DB.SetDatum(ctx, noteKind, id, body, 0)
}

// Read implements Notes.
func (n Shared) Read(ctx context.Context, id string) ([]byte, error) {
	b, _, err := n.DB.Datum(ctx, noteKind, id)
	return b, err
}

// Drop implements Notes.
func (n Shared) Drop(ctx context.Context, id string) error {
	_, err := n.DB.SetDatum(ctx, noteKind, id, nil, -1)
	return err
}

// IDs implements Notes.
func (n Shared) IDs(ctx context.Context) ([]string, error) { return n.DB.DatumIDs(ctx, noteKind) }
