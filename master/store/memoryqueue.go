package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/protocol/payload"
)

// memoryQueue is the part of a memory store that holds orders and minions. The store's mutex guards it.
type memoryQueue struct {
	orders     map[string]Order // by id
	byJID      map[string]string
	deliveries map[string][]Delivery // by job id, sorted by minion
	open       map[string][]string   // job ids of open deliveries by minion, in no order
	minions    map[string]Minion
	contents   map[string]*memoryContent
}

func (q *memoryQueue) initMaps() {
	if q.orders == nil {
		q.orders, q.byJID = make(map[string]Order), make(map[string]string)
		q.deliveries, q.open = make(map[string][]Delivery), make(map[string][]string)
		q.minions = make(map[string]Minion)
		q.contents = make(map[string]*memoryContent)
	}
}

var (
	_ Queue   = (*memory)(nil)
	_ Minions = (*memory)(nil)
)

func (m *memory) SaveOrder(_ context.Context, o Order, deliveries []Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.queue
	q.initMaps()
	_, sameID := q.orders[o.ID]
	_, sameJID := q.byJID[o.JID]
	if sameID || sameJID {
		return fmt.Errorf("cannot store order %q: %w", o.ID, ErrExists)
	}
	list := slices.Clone(deliveries)
	slices.SortFunc(list, func(a, b Delivery) int { return strings.Compare(a.Minion, b.Minion) })
	for i := range list {
		list[i].JID, list[i].Version, list[i].Carries = o.JID, 1, o.Content != ""
		if list[i].State.Open() {
			q.open[list[i].Minion] = append(q.open[list[i].Minion], o.JID)
		}
	}
	q.orders[o.ID], q.byJID[o.JID], q.deliveries[o.JID] = o, o.ID, list
	return nil
}

func (m *memory) Order(_ context.Context, id string) (Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.queue.orders[id]
	if !ok {
		return Order{}, fmt.Errorf("cannot find order %q: %w", id, ErrNotFound)
	}
	return o, nil
}

func (m *memory) OrderOf(_ context.Context, jid string) (Order, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.queue.byJID[jid]
	if !ok {
		return Order{}, fmt.Errorf("cannot find order of job %q: %w", jid, ErrNotFound)
	}
	return m.queue.orders[id], nil
}

func (f DeliveryFilter) matches(d Delivery) bool {
	return (f.JID == "" || d.JID == f.JID) && (f.Minion == "" || d.Minion == f.Minion) &&
		(f.Minions == nil || slices.Contains(f.Minions, d.Minion)) &&
		(!f.Open && f.Due.IsZero() || d.State.Open()) &&
		(f.Due.IsZero() || !d.Due.After(f.Due))
}

// compare is the sort order of Deliveries.
func (f DeliveryFilter) compare(a, b Delivery) int {
	if !f.Due.IsZero() {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.JID, b.JID),
			strings.Compare(a.Minion, b.Minion))
	}
	return cmp.Or(strings.Compare(a.Minion, b.Minion), cmp.Compare(b.Priority, a.Priority),
		strings.Compare(a.JID, b.JID))
}

func (m *memory) Deliveries(_ context.Context, f DeliveryFilter) ([]Delivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.queue
	var out []Delivery
	pick := func(jid string) {
		for _, d := range q.deliveries[jid] {
			if f.matches(d) {
				out = append(out, d)
			}
		}
	}
	switch {
	case f.JID != "" && f.Minions != nil:
		for _, id := range slices.Compact(slices.Sorted(slices.Values(f.Minions))) {
			if d := q.deliveryOf(f.JID, id); d != nil && f.matches(*d) {
				out = append(out, *d)
			}
		}
	case f.JID != "" && f.Minion != "":
		if d := q.deliveryOf(f.JID, f.Minion); d != nil && f.matches(*d) {
			out = append(out, *d)
		}
	case f.JID != "":
		pick(f.JID)
	case f.Minion != "" && (f.Open || !f.Due.IsZero()):
		for _, jid := range q.open[f.Minion] {
			pick(jid)
		}
	case f.Minions != nil && f.Open:
		jids := make(map[string]struct{})
		for _, id := range f.Minions {
			for _, jid := range q.open[id] {
				jids[jid] = struct{}{}
			}
		}
		for jid := range jids {
			pick(jid)
		}
	default:
		for jid := range q.deliveries {
			pick(jid)
		}
	}
	slices.SortFunc(out, f.compare)
	if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	return out[:min(len(out), f.Limit)], nil
}

func (m *memory) CountOpen(_ context.Context, tenant string) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, jids := range m.queue.open {
		if tenant == "" || m.queue.minions[id].Tenant == tenant {
			n += len(jids)
		}
	}
	return n, nil
}

func (m *memory) SwapDelivery(_ context.Context, d *Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.queue
	stored := q.deliveryOf(d.JID, d.Minion)
	if stored == nil || stored.Version != d.Version || !stored.State.Open() {
		return fmt.Errorf("cannot change delivery of job %s to %q: %w", d.JID, d.Minion, ErrChanged)
	}
	d.Version++
	*stored = *d
	if d.Carries && !q.isHeld(d.JID) {
		delete(q.contents, q.orders[q.byJID[d.JID]].Content)
	}
	if !d.State.Open() {
		q.open[d.Minion] = slices.DeleteFunc(q.open[d.Minion],
			func(jid string) bool { return jid == d.JID })
		if len(q.open[d.Minion]) == 0 {
			delete(q.open, d.Minion)
		}
	}
	return nil
}

func (m *memory) SwapDeliveries(ctx context.Context, list []*Delivery) []error {
	errs := make([]error, len(list))
	for i, d := range list {
		errs[i] = m.SwapDelivery(ctx, d)
	}
	return errs
}

// deliveryOf returns the delivery of a job to a minion, nil if there is none. Callers hold the store's mutex.
func (q *memoryQueue) deliveryOf(jid, minion string) *Delivery {
	list := q.deliveries[jid]
	i, ok := slices.BinarySearchFunc(list, minion,
		func(x Delivery, id string) int { return strings.Compare(x.Minion, id) })
	if !ok {
		return nil
	}
	return &list[i]
}

// isHeld reports whether a job has open deliveries and so must not be purged. Callers hold the store's mutex.
func (q *memoryQueue) isHeld(jid string) bool {
	return slices.ContainsFunc(q.deliveries[jid], func(d Delivery) bool { return d.State.Open() })
}

// forgetOrder drops the order of a job. Callers hold the store's mutex.
func (q *memoryQueue) forgetOrder(jid string) {
	if id, ok := q.byJID[jid]; ok {
		delete(q.contents, q.orders[id].Content)
		delete(q.orders, id)
		delete(q.byJID, jid)
		delete(q.deliveries, jid)
	}
}

func (m *memory) Minion(_ context.Context, id string) (Minion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.queue.minions[id]
	if !ok {
		return Minion{}, fmt.Errorf("cannot find minion %q: %w", id, ErrNotFound)
	}
	return x, nil
}

func (m *memory) Minions(_ context.Context, f MinionFilter) ([]Minion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Minion
	var chosen map[string]struct{}
	if f.IDs != nil {
		chosen = make(map[string]struct{}, len(f.IDs))
		for _, id := range f.IDs {
			chosen[id] = struct{}{}
		}
		f.After, f.Limit = "", 0
	}
	for _, x := range m.queue.minions {
		if _, ok := chosen[x.ID]; chosen != nil && !ok {
			continue
		}
		if (f.Tenant == "" || x.Tenant == f.Tenant) && (!f.Absent || !x.Joined) && x.ID > f.After {
			if f.NoSpec {
				x.Spec = nil
			}
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b Minion) int { return strings.Compare(a.ID, b.ID) })
	if f.Limit > 0 {
		out = out[:min(len(out), f.Limit)]
	}
	return out, nil
}

func (m *memory) SwapMinion(_ context.Context, x *Minion) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.initMaps()
	old, ok := m.queue.minions[x.ID]
	switch {
	case x.Version == 0 && ok:
		return fmt.Errorf("cannot store minion %q: %w", x.ID, ErrExists)
	case x.Version != old.Version:
		return fmt.Errorf("cannot change minion %q: %w", x.ID, ErrChanged)
	}
	packed, err := payload.MarshalBin(x.Spec)
	if err != nil {
		return fmt.Errorf("cannot store minion %q: %w", x.ID, err)
	}
	x.Version++
	x.Size = len(packed)
	m.queue.minions[x.ID] = *x
	return nil
}

func (m *memory) DeleteMinion(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.queue.minions[id]; !ok {
		return fmt.Errorf("cannot remove minion %q: %w", id, ErrNotFound)
	}
	delete(m.queue.minions, id)
	return nil
}
