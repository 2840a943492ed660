package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// multi writes to several stores and reads from the first. What the first has may be missing in the others, when the process died
// in between; then nothing was acknowledged, so the same comes again, and the others get it then.
type multi struct {
	stores []Store

	mu     sync.Mutex     // guards saving
	saving map[string]int // calls of SaveJob under way, by job id
}

// Multi returns a store that writes to all of the given ones and reads from the first, whose answers count. A failing
// other one is an error of the call, though everything possible was written: a stand-alone master keeps Salt's job cache
// beside its database with it.
func Multi(first Store, others ...Store) Store {
	return &multi{stores: append([]Store{first}, others...), saving: make(map[string]int)}
}

func (m *multi) each(f func(Store) error) error {
	var errs []error
	for _, s := range m.stores {
		errs = append(errs, f(s))
	}
	return errors.Join(errs...)
}

func (m *multi) SaveJob(ctx context.Context, j Job) error {
	defer m.begin(j.JID)()
	rest := multi{stores: m.stores[1:]}
	err := m.stores[0].SaveJob(ctx, j)
	if errors.Is(err, ErrExists) {
		if !m.alone(j.JID) {
			return err // the other call does the rest
		}
		// guard: lost-returns TestMultiAfterDeath
		if stored, e := m.stores[0].Job(ctx, j.JID); e == nil {
			err = errors.Join(err, rest.each(func(s Store) error {
				if err := s.SaveJob(ctx, stored); !errors.Is(err, ErrExists) {
					return err
				}
				return nil
			}))
		}
		return err
	}
	if err != nil {
		return err
	}
	return rest.each(func(s Store) error { return s.SaveJob(ctx, j) })
}

// begin counts a call of SaveJob, until the function that it returns is called.
func (m *multi) begin(jid string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saving[jid]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.saving[jid]--; m.saving[jid] == 0 {
			delete(m.saving, jid)
		}
	}
}

// alone reports whether one call of SaveJob alone is under way for a job id.
func (m *multi) alone(jid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saving[jid] == 1
}

func (m *multi) AddMinions(ctx context.Context, jid string, ids []string) error {
	return m.each(func(s Store) error { return s.AddMinions(ctx, jid, ids) })
}

func (m *multi) SaveReturn(ctx context.Context, r Return) (bool, error) {
	isNew, err := m.stores[0].SaveReturn(ctx, r)
	if err != nil {
		return isNew, err
	}
	rest := multi{stores: m.stores[1:]}
	return isNew, rest.each(func(s Store) error {
		_, err := s.SaveReturn(ctx, r)
		return err
	})
}

func (m *multi) Job(ctx context.Context, jid string) (Job, error) { return m.stores[0].Job(ctx, jid) }

func (m *multi) Returns(ctx context.Context, jid string) ([]Return, error) {
	return m.stores[0].Returns(ctx, jid)
}

func (m *multi) Jobs(ctx context.Context, f Filter) ([]Job, error) { return m.stores[0].Jobs(ctx, f) }

func (m *multi) Purge(ctx context.Context, before time.Time) (int, error) {
	n, err := m.stores[0].Purge(ctx, before)
	rest := multi{stores: m.stores[1:]}
	return n, errors.Join(err, rest.each(func(s Store) error {
		_, err := s.Purge(ctx, before)
		return err
	}))
}

// Unwrap implements Wrapper.
func (m *multi) Unwrap() Store { return m.stores[0] }

func (m *multi) Close() error { return m.each(Store.Close) }
