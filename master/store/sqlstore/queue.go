package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore/packed"
	"github.com/brine-salt/brine/protocol/payload"
)

var (
	_ store.Queue   = (*Store)(nil)
	_ store.Minions = (*Store)(nil)
)

// insertRow runs an insert that does nothing if the row exists, and then returns store.ErrExists.
func (s *Store) insertRow(tx *txn, into string, args ...any) error {
	return s.insertRows(tx, into, 1, args...)
}

// insertRows is insertRow for n rows, of which none may exist.
func (s *Store) insertRows(tx *txn, into string, n int, args ...any) error {
	r, err := tx.Exec(s.d.Insert+" INTO "+into+" "+s.d.Ignore, args...)
	if err != nil {
		return err
	}
	if got, err := r.RowsAffected(); err != nil || got != int64(n) {
		return errors.Join(err, store.ErrExists)
	}
	return nil
}

// SaveOrder implements store.Queue.
func (s *Store) SaveOrder(ctx context.Context, o store.Order, deliveries []store.Delivery) error {
	return s.saveOrder(ctx, o, deliveries, nil)
}

// SaveOrderTell implements store.Shared.
func (s *Store) SaveOrderTell(ctx context.Context, o store.Order, deliveries []store.Delivery,
	m store.Message) error {
	return s.saveOrder(ctx, o, deliveries, []store.Message{m})
}

func (s *Store) saveOrder(ctx context.Context, o store.Order, deliveries []store.Delivery,
	tell []store.Message) error {
	body, err := packOrder(o)
	bodies := make([][]byte, len(deliveries))
	for i, d := range deliveries {
		if err == nil {
			d.Carries = o.Content != ""
			bodies[i], err = packed.PackDelivery(d)
		}
	}
	if err == nil && len(o.ID) > store.MaxOrderID {
		err = fmt.Errorf("its id has %d bytes", len(o.ID))
	}
	if err == nil {
		err = s.writeChange(ctx, func(tx *txn) error {
			if err := s.insertRow(tx, "orders (id, jid, created, body) VALUES (?, ?, ?, ?)",
				s.d.idParam(o.ID), s.d.idParam(o.JID), packed.Micros(o.Created), body); err != nil {
				const old = "SELECT created, body FROM orders WHERE id = ?"
				if errors.Is(err, store.ErrExists) && s.isOurs(tx, old, o.Created, body, o.ID) {
					err = nil // with its deliveries
				}
				return err
			}
			if err := s.insertDeliveries(tx, o.JID, deliveries, bodies); err != nil {
				return err
			}
			tx.tell = append(tx.tell, tell...)
			return s.saveExtras(tx, o)
		})
	}
	if err != nil {
		return fmt.Errorf("cannot store order %q: %w", o.ID, err)
	}
	return nil
}

// insertDeliveries inserts the deliveries of an order, as many with one statement as there are, up to manyIDs.
func (s *Store) insertDeliveries(tx *txn, jid string, list []store.Delivery,
	bodies [][]byte) error {
	for i := 0; i < len(list); {
		n := 1
		if len(list)-i >= manyIDs {
			n = manyIDs
		}
		args := make([]any, 0, 6*n)
		for _, d := range list[i : i+n] {
			args = append(args, s.d.idParam(jid), s.d.idParam(d.Minion), stateCode(d.State),
				d.Priority, packed.Micros(d.Due), bodies[i])
			i++
		}
		const row = "(?, ?, ?, ?, ?, 1, ?)"
		if err := s.insertRows(tx, "delivery (jid, minion, state, priority, due, version, body) "+
			"VALUES "+row+strings.Repeat(", "+row, n-1), n, args...); err != nil {
			return err
		}
	}
	return nil
}

// stateCode returns 1 for open deliveries and 0 for final ones, which is what the indexes need. The state itself is
// in the body.
func stateCode(st store.State) int {
	if st.Open() {
		return 1
	}
	return 0
}

// Order implements store.Queue.
func (s *Store) Order(ctx context.Context, id string) (store.Order, error) {
	o, err := s.findOrder(ctx, "id = ?", id)
	if err != nil {
		return store.Order{}, fmt.Errorf("cannot find order %q: %w", id, err)
	}
	return o, nil
}

// OrderOf implements store.Queue.
func (s *Store) OrderOf(ctx context.Context, jid string) (store.Order, error) {
	o, err := s.findOrder(ctx, "jid = ?", jid)
	if err != nil {
		return store.Order{}, fmt.Errorf("cannot find order of job %q: %w", jid, err)
	}
	return o, nil
}

func (s *Store) findOrder(ctx context.Context, where, key string) (store.Order, error) {
	var o store.Order
	var created int64
	var body []byte
	err := s.queryRow(ctx, "SELECT id, jid, created, body FROM orders WHERE "+where,
		[]any{s.d.idParam(key)}, &o.ID, &o.JID, &created, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return o, store.ErrNotFound
	}
	if err != nil {
		return o, err
	}
	return o, unpackOrder(&o, created, body)
}

// Deliveries implements store.Queue.
func (s *Store) Deliveries(ctx context.Context, f store.DeliveryFilter) ([]store.Delivery, error) {
	where, args := "1 = 1", []any{}
	add := func(condition string, arg any) {
		where += " AND " + condition
		args = append(args, arg)
	}
	if f.JID != "" {
		add("jid = ?", s.d.idParam(f.JID))
	}
	if f.Minion != "" {
		add("minion = ?", s.d.idParam(f.Minion))
	}
	if f.Open || !f.Due.IsZero() {
		add("state = ?", 1)
	}
	order := "minion, priority DESC, jid"
	if !f.Due.IsZero() {
		add("due <= ?", f.Due.UnixMicro())
		order = "due, jid, minion"
	}
	if f.Limit <= 0 {
		f.Limit = store.DefaultLimit
	}
	if f.Minions == nil {
		return s.queryDeliveries(ctx, where, order, args, f.Limit)
	}
	var out []store.Delivery
	ids := slices.Compact(slices.Sorted(slices.Values(f.Minions)))
	for chunk := range slices.Chunk(ids, manyIDs) {
		among, more := s.among("minion", chunk)
		list, err := s.queryDeliveries(ctx, where+" AND "+among, order,
			slices.Concat(args, more), f.Limit-len(out))
		if err != nil {
			return nil, err
		}
		if out = append(out, list...); len(out) == f.Limit {
			break
		}
	}
	return out, nil
}

// queryDeliveries lists deliveries by a condition with its parameters.
func (s *Store) queryDeliveries(ctx context.Context, where, order string, args []any,
	limit int) (out []store.Delivery, err error) {
	args = append(args, limit)
	err = s.queryRows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		var d store.Delivery
		var due int64
		var body []byte
		if err := rows.Scan(&d.JID, &d.Minion, &d.Priority, &due, &d.Version, &body); err != nil {
			return err
		}
		d.Due = packed.AtMicros(due)
		err := packed.Delivery(&d, body)
		out = append(out, d)
		return err
	}, "SELECT jid, minion, priority, due, version, body FROM delivery WHERE "+where+
		" ORDER BY "+order+" LIMIT ?", args...)
	if err != nil {
		return nil, fmt.Errorf("cannot list deliveries: %w", err)
	}
	return out, nil
}

// CountOpen implements store.Queue.
func (s *Store) CountOpen(ctx context.Context, tenant string) (n int, err error) {
	query, args := "SELECT count(*) FROM delivery WHERE state = 1", []any(nil)
	if tenant != "" {
		query = "SELECT count(*) FROM minion, delivery " +
			"WHERE delivery.minion = minion.id AND state = 1 AND tenant = ?"
		args = []any{s.d.idParam(tenant)}
	}
	if err := s.queryRow(ctx, query, args, &n); err != nil {
		return 0, fmt.Errorf("cannot count deliveries: %w", err)
	}
	return n, nil
}

// SwapDelivery implements store.Queue.
func (s *Store) SwapDelivery(ctx context.Context, d *store.Delivery) error {
	body, err := packed.PackDelivery(*d)
	if err == nil {
		err = s.swapAlike(ctx, []*store.Delivery{d}, body)
	}
	if err != nil {
		return fmt.Errorf("cannot change delivery of job %s to %q: %w", d.JID, d.Minion, err)
	}
	return nil
}

// SwapDeliveries implements store.Queue. One statement changes those that differ in nothing but the minion. If one of
// them has changed meanwhile, each is changed by itself.
func (s *Store) SwapDeliveries(ctx context.Context, list []*store.Delivery) []error {
	type likeness struct {
		jid, body     string
		priority      int
		due, version  int64
		open, carries bool
	}
	alike := make(map[likeness][]int) // by index
	errs := make([]error, len(list))
	for i, d := range list {
		var body []byte
		if body, errs[i] = packed.PackDelivery(*d); errs[i] != nil {
			continue
		}
		k := likeness{d.JID, string(body), d.Priority, packed.Micros(d.Due), d.Version,
			d.State.Open(), d.Carries}
		alike[k] = append(alike[k], i)
	}
	var wg sync.WaitGroup // all share a transaction
	for k, all := range alike {
		for part := range slices.Chunk(all, manyIDs) {
			wg.Go(func() {
				some := make([]*store.Delivery, len(part))
				for n, i := range part {
					some[n] = list[i]
				}
				// What an order carries goes with its last delivery.
				if len(part) > 1 && (k.open || !k.carries) &&
					s.swapAlike(ctx, some, []byte(k.body)) == nil {
					return
				}
				for n, i := range part {
					errs[i] = s.SwapDelivery(ctx, some[n])
				}
			})
		}
	}
	wg.Wait()
	return errs
}

// swapAlike changes deliveries that are alike, or none of them.
func (s *Store) swapAlike(ctx context.Context, list []*store.Delivery, body []byte) error {
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.Minion
	}
	d := list[0]
	among, args := s.among("minion", ids)
	args = append([]any{stateCode(d.State), d.Priority, packed.Micros(d.Due), d.Version + 1, body,
		s.d.idParam(d.JID), d.Version}, args...)
	err := s.writeChange(ctx, func(tx *txn) error {
		content, err := s.contentToDrop(tx, d)
		if err != nil {
			return err
		}
		r, err := tx.Exec("UPDATE delivery SET state = ?, priority = ?, due = ?, version = ?, "+
			"body = ? WHERE jid = ? AND version = ? AND state = 1 AND "+among, args...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n != int64(len(list)) {
			return errors.Join(err, store.ErrChanged)
		}
		if content == "" {
			return nil
		}
		return s.dropEnded(tx, d.JID, content)
	})
	for i := 0; err == nil && i < len(list); i++ {
		list[i].Version++
	}
	return err
}

// checkChanged returns store.ErrChanged for an update that found no row.
func checkChanged(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrChanged)
	}
	return nil
}

// purgeOrders removes orders made before a time that have no open delivery.
func (s *Store) purgeOrders(tx *txn, before int64) error {
	rows, err := tx.Query("SELECT jid FROM orders WHERE created < ? "+
		"AND jid NOT IN (SELECT jid FROM delivery WHERE state = 1)", before)
	if err != nil {
		return err
	}
	var jids []string
	for rows.Next() {
		var jid string
		if err := rows.Scan(&jid); err != nil {
			rows.Close()
			return err
		}
		jids = append(jids, jid)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, jid := range jids {
		for _, table := range []string{"delivery", "orders", "brine_label", "brine_order_content"} {
			if _, err := tx.Exec("DELETE FROM "+table+" WHERE jid = ?",
				s.d.idParam(jid)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Minion implements store.Minions.
func (s *Store) Minion(ctx context.Context, id string) (store.Minion, error) {
	list, err := s.queryMinions(ctx, false, "id = ?", s.d.idParam(id))
	if err == nil && len(list) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Minion{}, fmt.Errorf("cannot find minion %q: %w", id, err)
	}
	return list[0], nil
}

// Minions implements store.Minions.
func (s *Store) Minions(ctx context.Context, f store.MinionFilter) ([]store.Minion, error) {
	if f.IDs != nil {
		return s.minionsOf(ctx, f)
	}
	where, args := "id > ?", []any{s.d.idParam(f.After)}
	if f.Tenant != "" {
		where += " AND tenant = ?"
		args = append(args, s.d.idParam(f.Tenant))
	}
	if f.Absent {
		where += " AND joined = 0"
	}
	where += " ORDER BY id"
	if f.Limit > 0 {
		where += " LIMIT ?"
		args = append(args, f.Limit)
	}
	out, err := s.queryMinions(ctx, f.NoSpec, where, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot list minions: %w", err)
	}
	return out, nil
}

// manyIDs is how many ids one statement selects. Fewer are padded, because otherwise there would be one statement
// for each number of ids.
const manyIDs = 100

// among returns the condition that a column has one of at most manyIDs ids, and its parameters.
func (s *Store) among(column string, ids []string) (where string, args []any) {
	n := 1
	if len(ids) > 1 {
		n = manyIDs
	}
	args = make([]any, n)
	for i := range args {
		args[i] = s.d.idParam(ids[min(i, len(ids)-1)])
	}
	return column + " IN (?" + strings.Repeat(", ?", n-1) + ")", args
}

// minionsOf is Minions for some ids.
func (s *Store) minionsOf(ctx context.Context, f store.MinionFilter) ([]store.Minion, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(f.IDs)))
	where := ""
	var more []any
	if f.Tenant != "" {
		where, more = " AND tenant = ?", append(more, s.d.idParam(f.Tenant))
	}
	if f.Absent {
		where += " AND joined = 0"
	}
	var out []store.Minion
	for chunk := range slices.Chunk(ids, manyIDs) {
		among, args := s.among("id", chunk)
		list, err := s.queryMinions(ctx, f.NoSpec, among+where+" ORDER BY id",
			append(args, more...)...)
		if err != nil {
			return nil, fmt.Errorf("cannot list minions: %w", err)
		}
		out = append(out, list...)
	}
	return out, nil
}

func (s *Store) queryMinions(ctx context.Context, noSpec bool, where string,
	args ...any) ([]store.Minion, error) {
	var out []store.Minion
	column := "body"
	if noSpec {
		column = "length(body)"
	}
	err := s.queryRows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		var m store.Minion
		var body []byte
		var joined int
		last := any(&body)
		if noSpec {
			last = &m.Size
		}
		if err := rows.Scan(&m.ID, &m.Tenant, &joined, &m.Version, last); err != nil {
			return err
		}
		m.Joined = joined != 0
		if !noSpec {
			m.Size = len(body)
			v, err := payload.UnmarshalDisk(body, packed.Limits)
			if err != nil {
				return fmt.Errorf("cannot read minion %q: %w", m.ID, err)
			}
			m.Spec, _ = payload.Map(v)
		}
		out = append(out, m)
		return nil
	}, "SELECT id, tenant, joined, version, "+column+" FROM minion WHERE "+where, args...)
	return out, err
}

// SwapMinion implements store.Minions.
func (s *Store) SwapMinion(ctx context.Context, m *store.Minion) error {
	spec := m.Spec
	if spec == nil {
		spec = map[string]any{}
	}
	body, err := payload.MarshalBin(spec)
	joined := 0
	if m.Joined {
		joined = 1
	}
	if err == nil {
		err = s.writeChange(ctx, func(tx *txn) error {
			if m.Version == 0 {
				return s.insertRow(tx,
					"minion (id, tenant, joined, version, body) VALUES (?, ?, ?, 1, ?)",
					s.d.idParam(m.ID), s.d.idParam(m.Tenant), joined, body)
			}
			return checkChanged(tx.Exec("UPDATE minion SET tenant = ?, joined = ?, version = ?, "+
				"body = ? WHERE id = ? AND version = ?",
				s.d.idParam(m.Tenant), joined, m.Version+1, body, s.d.idParam(m.ID), m.Version))
		})
	}
	if err != nil {
		return fmt.Errorf("cannot store minion %q: %w", m.ID, err)
	}
	m.Version++
	m.Size = len(body)
	return nil
}

// DeleteMinion implements store.Minions.
func (s *Store) DeleteMinion(ctx context.Context, id string) error {
	err := s.writeChange(ctx, func(tx *txn) error {
		err := checkChanged(tx.Exec("DELETE FROM minion WHERE id = ?", s.d.idParam(id)))
		if errors.Is(err, store.ErrChanged) {
			return store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot remove minion %q: %w", id, err)
	}
	return nil
}
