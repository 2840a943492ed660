package master

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/store"
)

// OrderFilter chooses orders. Zero fields choose all.
type OrderFilter struct {
	// Metadata are entries that an order's metadata must have: numbers, true and false as their texts.
	Metadata map[string]string
	// After is the job id behind which to begin, Limit how many orders at most; 0 means 100.
	After string
	Limit int

	tenant string
}

// Orders lists orders as Order reports them, oldest first, of all that are not purged yet. ErrNoOrders when the
// store cannot find orders.
func (m *Master) Orders(ctx context.Context, f OrderFilter) ([]Order, error) {
	labels, ok := store.LabelsOf(m.store)
	if !ok || m.orders == nil {
		return nil, ErrNoOrders
	}
	setDefault(&f.Limit, 100)
	list, err := labels.Orders(ctx,
		store.OrderFilter{Labels: f.Metadata, Tenant: f.tenant, After: f.After, Limit: f.Limit})
	if err != nil {
		return nil, err
	}
	out := make([]Order, len(list))
	for i, rec := range list {
		out[i] = orderOf(rec)
	}
	return out, nil
}

// Orders is Master.Orders for the orders of the tenant's.
func (t *Tenant) Orders(ctx context.Context, f OrderFilter) ([]Order, error) {
	f.tenant = t.name
	list, err := t.m.Orders(ctx, f)
	foreign := func(o Order) bool { return !strings.HasPrefix(o.ID, t.name+"/") }
	list = slices.DeleteFunc(list, foreign)
	for i := range list {
		list[i].ID = strings.TrimPrefix(list[i].ID, t.name+"/")
	}
	return list, err
}
