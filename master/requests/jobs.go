package requests

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
)

// Jobs returns announced jobs to minions.
type Jobs struct {
	Store store.Store
	// Queue holds the orders and Orders their content; nil if the store cannot keep them.
	Queue  store.Queue
	Orders *content.Carrier
	Log    *slog.Logger

	fetched subscribers.FetchCache
}

// Fetch answers protocol.FetchCmd: it returns a job that was announced to the minion. Jobs for other minions
// count as missing.
func (j *Jobs) Fetch(ctx context.Context, v protocol.Verified) (any, error) {
	jid := fields.Text(v.Load(), "jid")
	if !protocol.ValidJID(jid) {
		return map[string]any{}, nil
	}
	for {
		load, wait, read := j.fetched.Get(jid, v.ID(), time.Now())
		if load != nil {
			return load, nil
		}
		if read != nil {
			defer read()
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	rec, err := j.Store.Job(ctx, jid)
	if errors.Is(err, store.ErrNotFound) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	if rec, err = j.withSecretArgs(ctx, rec); err != nil {
		if errors.Is(err, store.ErrNotFound) { // the order has ended
			return map[string]any{}, nil
		}
		return nil, err
	}
	x := subscribers.FetchedJob{JID: jid, At: time.Now(),
		Load: protocol.Fetched(jid, rec.Fun, rec.Arg, rec.Load),
		IDs:  make(map[string]struct{}, len(rec.Minions))}
	for _, id := range rec.Minions {
		x.IDs[id] = struct{}{}
	}
	j.fetched.Put(x)
	if _, meant := x.IDs[v.ID()]; !meant {
		j.Log.Warn("Minion requests a job that is not for it", "minion", v.ID(), "jid", jid)
		return map[string]any{}, nil
	}
	return x.Load, nil
}

// withSecretArgs returns a stored job with its secret arguments. It returns store.ErrNotFound if the job is
// secret and has ended.
func (j *Jobs) withSecretArgs(ctx context.Context, job store.Job) (store.Job, error) {
	if !content.IsSecret(job.Load) || j.Queue == nil {
		return job, nil
	}
	rec, err := j.Queue.OrderOf(ctx, job.JID)
	if err != nil {
		return job, err
	}
	if !content.IsSealed(rec) {
		return job, nil
	}
	if j.Orders == nil {
		return job, orders.ErrNoContent
	}
	arg, err := j.Orders.Args(ctx, rec)
	if err == nil && arg != nil {
		job.Arg = arg
	}
	return job, err
}
