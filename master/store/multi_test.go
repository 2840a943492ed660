package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// dying is a store that the process does not reach before it dies, while dead is set.
type dying struct {
	store.Store
	dead bool
}

var errDied = errors.New("died")

func (d *dying) SaveJob(ctx context.Context, j store.Job) error {
	if d.dead {
		return errDied
	}
	return d.Store.SaveJob(ctx, j)
}

func (d *dying) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	if d.dead {
		return false, errDied
	}
	return d.Store.SaveReturn(ctx, r)
}

// TestMultiAfterDeath: a return that the first store has and the second lacks is added there when it is sent again.
func TestMultiAfterDeath(t *testing.T) {
	ctx := t.Context()
	first, second := store.NewMemory(), &dying{Store: store.NewMemory(), dead: true}
	s := store.Multi(first, second)
	job := store.Job{JID: "20260101000000000001", Fun: "test.ping", Created: time.Unix(1e9, 0)}
	ret := store.Return{JID: job.JID, ID: "m", Load: map[string]any{"return": true}, Received: time.Unix(1e9, 0)}
	if err := s.SaveJob(ctx, job); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(ctx, ret); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	second.dead = false
	if err := s.SaveJob(ctx, job); !errors.Is(err, store.ErrExists) {
		t.Errorf("the job again: %v", err)
	}
	if got, err := second.Job(ctx, job.JID); err != nil || got.Fun != "test.ping" {
		t.Errorf("the second store has the job %+v, %v", got, err)
	}
	if isNew, err := s.SaveReturn(ctx, ret); err != nil || isNew {
		t.Errorf("the return again: new %v, %v", isNew, err)
	}
	if got, err := second.Returns(ctx, job.JID); err != nil || len(got) != 1 || got[0].ID != "m" {
		t.Errorf("the second store has the returns %+v, %v", got, err)
	}
}
