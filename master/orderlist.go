package master

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/store"
)

// OrderFilter selects orders. The zero value selects all.
type OrderFilter struct {
	// Metadata are entries that an order's metadata must contain, with numbers and booleans as text.
	Metadata map[string]string
	// After is the job id after which the list starts. Limit is the maximum number of orders; 0 means 100.
	After string
	Limit int

	tenant string
}

// Orders returns the stored orders that match f, oldest first, in the form of Master.Order. It returns
// ErrNoOrders if the store cannot search orders.
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

// Orders is Master.Orders for the tenant's orders.
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
