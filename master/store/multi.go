package store

import (
	"context"
	"errors"
	"time"
)

// multi writes to several stores and reads from the first.
type multi struct{ stores []Store }

// Multi returns a store that writes to all of the given ones and reads from the first, whose answers count. A failing
// other one is an error of the call, though everything possible was written: a stand-alone master keeps Salt's job cache
// beside its database with it.
func Multi(first Store, others ...Store) Store {
	return &multi{append([]Store{first}, others...)}
}

func (m *multi) each(f func(Store) error) error {
	var errs []error
	for _, s := range m.stores {
		errs = append(errs, f(s))
	}
	return errors.Join(errs...)
}

func (m *multi) SaveJob(ctx context.Context, j Job) error {
	if err := m.stores[0].SaveJob(ctx, j); err != nil {
		return err
	}
	rest := multi{m.stores[1:]}
	return rest.each(func(s Store) error { return s.SaveJob(ctx, j) })
}

func (m *multi) AddMinions(ctx context.Context, jid string, ids []string) error {
	return m.each(func(s Store) error { return s.AddMinions(ctx, jid, ids) })
}

func (m *multi) SaveReturn(ctx context.Context, r Return) (bool, error) {
	first, err := m.stores[0].SaveReturn(ctx, r)
	if err != nil || !first {
		return first, err
	}
	rest := multi{m.stores[1:]}
	return true, rest.each(func(s Store) error {
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
	rest := multi{m.stores[1:]}
	return n, errors.Join(err, rest.each(func(s Store) error {
		_, err := s.Purge(ctx, before)
		return err
	}))
}

// Unwrap implements Wrapper.
func (m *multi) Unwrap() Store { return m.stores[0] }

func (m *multi) Close() error { return m.each(Store.Close) }
