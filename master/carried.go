package master

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/master/orders"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
)

// ErrNoContent is returned for orders with files, pillar or secret arguments if Options.Store cannot store
// those.
var ErrNoContent = orders.ErrNoContent

// openCarried prepares the content of orders, if the store can keep it.
func (m *Master) openCarried(q store.Queue) error {
	contents, ok := store.ContentsOf(m.store)
	if !ok {
		return nil
	}
	c := &content.Carrier{Contents: contents, Queue: q, Limits: m.opts.Orders.Limits, Log: m.log}
	var err error
	if c.Seal, err = m.peers.Secrets().Sealer(); err != nil {
		return err
	}
	setDefault(&c.Limits.Total, content.DefaultTotal(m.opts.Store != nil))
	c.Files = &content.Files{Queue: q, Contents: contents, Seal: c.Seal,
		HashType: m.opts.Files.HashType,
		Tenant: func(ctx context.Context, id string) (string, error) {
			tenant, _, err := m.tenants.Of(ctx, id)
			return tenant, err
		}}
	m.requests.Files.Orders, m.requests.Pillar.Orders = c, c
	return nil
}

// cargo returns the content that an order carries besides its job.
func (o Order) cargo() content.Cargo {
	return content.Cargo{Files: o.Files, Stream: o.FileStream, Pillar: o.Pillar, Secret: o.Secret}
}

// checkContent validates an order's content before any of its files is read.
func (m *Master) checkContent(o Order) error {
	cargo := o.cargo()
	if cargo.Empty() {
		return nil
	}
	if m.requests.Files.Orders == nil {
		return ErrNoContent
	}
	id := o.ID
	if o.Tenant != "" {
		id = strings.TrimPrefix(id, o.Tenant+"/")
	}
	return cargo.CheckID(id)
}

// storeContent stores an order's content and returns its key, which is empty without content. It replaces
// secrets in spec by what users may see. If wanted is false, no minion will run the order and nothing is
// stored. Call drop if no order comes to own the content.
func (m *Master) storeContent(ctx context.Context, o Order, spec map[string]any,
	wanted bool) (key string, drop func(), err error) {
	drop = func() {}
	cargo := o.cargo()
	switch {
	case cargo.Empty():
	case !wanted:
		err = m.requests.Files.Orders.Compare(ctx, cargo, spec)
	default:
		key, drop, err = m.requests.Files.Orders.Store(ctx, o.Tenant, cargo, spec)
	}
	if errors.Is(err, content.ErrFull) {
		err = fmt.Errorf("%w: %w", err, ErrBusy)
	}
	return key, drop, err
}
