package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// multi writes to several stores and reads from the first. What the first has may be missing in the others if the
// process died in between. Nothing was acknowledged then, so the same arrives again, and the others get it.
type multi struct {
	stores []Store

	mu     sync.Mutex     // guards saving
	saving map[string]int // calls of SaveJob in progress, by job id
}

// Multi returns a store that writes to all of the given stores and reads from the first, whose results count. An
// error of another store is an error of the call, although everything possible was written. A stand-alone master
// uses it to keep Salt's job cache beside its database.
func Multi(first Store, others ...Store) Store {
	return &multi{stores: append([]Store{first}, others...), saving: make(map[string]int)}
}

func (m *multi) eachStore(f func(Store) error) error {
	var errs []error
	for _, s := range m.stores {
		errs = append(errs, f(s))
	}
	return errors.Join(errs...)
}

func (m *multi) SaveJob(ctx context.Context, j Job) error {
	defer m.beginSave(j.JID)()
	rest := multi{stores: m.stores[1:]}
	err := m.stores[0].SaveJob(ctx, j)
	if errors.Is(err, ErrExists) {
		if !m.isAlone(j.JID) {
			return err // the other call does the rest
		}
		// guard: lost-returns TestMultiAfterDeath
		if stored, e := m.stores[0].Job(ctx, j.JID); e == nil {
			err = errors.Join(err, rest.eachStore(func(s Store) error {
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
	return rest.eachStore(func(s Store) error { return s.SaveJob(ctx, j) })
}

// beginSave counts a call of SaveJob until the returned function is called.
func (m *multi) beginSave(jid string) (end func()) {
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

// isAlone reports whether only one call of SaveJob is in progress for a job id.
func (m *multi) isAlone(jid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saving[jid] == 1
}

func (m *multi) AddMinions(ctx context.Context, jid string, ids []string) error {
	return m.eachStore(func(s Store) error { return s.AddMinions(ctx, jid, ids) })
}

func (m *multi) SaveReturn(ctx context.Context, r Return) (bool, error) {
	isNew, err := m.stores[0].SaveReturn(ctx, r)
	if err != nil {
		return isNew, err
	}
	rest := multi{stores: m.stores[1:]}
	return isNew, rest.eachStore(func(s Store) error {
		_, err := s.SaveReturn(ctx, r)
		return err
	})
}

func (m *multi) Job(ctx context.Context, jid string) (Job,
	error) {
	return m.stores[0].Job(ctx, jid)
}

func (m *multi) Returns(ctx context.Context, jid string) ([]Return, error) {
	return m.stores[0].Returns(ctx, jid)
}

func (m *multi) Jobs(ctx context.Context, f Filter) ([]Job,
	error) {
	return m.stores[0].Jobs(ctx, f)
}

func (m *multi) Purge(ctx context.Context, before time.Time) (int, error) {
	n, err := m.stores[0].Purge(ctx, before)
	rest := multi{stores: m.stores[1:]}
	return n, errors.Join(err, rest.eachStore(func(s Store) error {
		_, err := s.Purge(ctx, before)
		return err
	}))
}

// Unwrap implements Wrapper.
func (m *multi) Unwrap() Store { return m.stores[0] }

func (m *multi) Close() error { return m.eachStore(Store.Close) }
