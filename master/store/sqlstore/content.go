package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore/packed"
	"github.com/brine-salt/brine/protocol/payload"
)

var (
	_ store.Contents = (*Store)(nil)
	_ store.Labels   = (*Store)(nil)
)

func packOrder(o store.Order) ([]byte, error) {
	m := map[string]any{"tenant": o.Tenant, "spec": o.Spec}
	if o.Content != "" {
		m["content"] = o.Content
	}
	if len(o.Labels) > 0 {
		labels := make(map[string]any, len(o.Labels))
		for k, v := range o.Labels {
			labels[k] = v
		}
		m["labels"] = labels
	}
	return payload.MarshalBin(m)
}

func unpackOrder(o *store.Order, created int64, body []byte) error {
	v, err := payload.UnmarshalDiskOrdered(body, packed.Limits)
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return packed.Malformed(err)
	}
	o.Created = packed.AtMicros(created)
	o.Tenant, _ = payload.Text(m["tenant"])
	o.Content, _ = payload.Text(m["content"])
	spec, _ := payload.Map(m["spec"])
	if o.Spec = payload.PlainMap(spec); spec["arg"] != nil {
		o.Spec["arg"] = spec["arg"]
	}
	labels, _ := payload.Map(m["labels"])
	for k, v := range labels {
		if o.Labels == nil {
			o.Labels = make(map[string]string, len(labels))
		}
		b, _ := payload.Bytes(v)
		o.Labels[k] = string(b)
	}
	return nil
}

// labelMark stands for a label and its value in the index, because both may be longer than an index allows.
func labelMark(key, value string) []byte {
	sum := sha256.Sum256([]byte(key + "\x00" + value))
	return sum[:16]
}

// saveExtras stores the labels of an order, and its content key.
func (s *Store) saveExtras(tx *txn, o store.Order) error {
	if len(o.Labels) > store.MaxLabels {
		return fmt.Errorf("it has %d labels, more than %d", len(o.Labels), store.MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		if err := s.insertRow(tx, "brine_label (mark, jid) VALUES (?, ?)",
			labelMark(key, o.Labels[key]), s.d.idParam(o.JID)); err != nil {
			return err
		}
	}
	if o.Content == "" {
		return nil
	}
	return s.insertRow(tx, "brine_order_content (jid, content) VALUES (?, ?)", s.d.idParam(o.JID),
		s.d.idParam(o.Content))
}

// contentToDrop returns the key of what an order carries if the change makes one of its deliveries final. It locks
// the row: if two masters end the last two deliveries at the same time, the second one sees what the first one did.
func (s *Store) contentToDrop(tx *txn, d *store.Delivery) (content string, err error) {
	if !d.Carries || d.State.Open() {
		return "", nil
	}
	err = tx.queryRow("SELECT content FROM brine_order_content WHERE jid = ? "+s.d.ForUpdate,
		[]any{s.d.idParam(d.JID)}, &content)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return content, err
}

// dropEnded removes what an order carries if none of its deliveries is open any more.
func (s *Store) dropEnded(tx *txn, jid, content string) error {
	var one int
	err := tx.queryRow("SELECT 1 FROM delivery WHERE jid = ? AND state = 1 LIMIT 1 "+s.d.ForUpdate,
		[]any{s.d.idParam(jid)}, &one)
	if err == nil {
		return nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := tx.Exec("DELETE FROM brine_piece WHERE content = ?",
		s.d.idParam(content)); err != nil {
		return err
	}
	_, err = tx.Exec("DELETE FROM brine_order_content WHERE jid = ?", s.d.idParam(jid))
	return err
}

// SavePiece implements store.Contents.
func (s *Store) SavePiece(ctx context.Context, key string, n int, made time.Time,
	body []byte) error {
	err := s.writeChange(ctx, func(tx *txn) error {
		err := s.insertRow(tx, "brine_piece (content, n, made, size, body) VALUES (?, ?, ?, ?, ?)",
			s.d.idParam(key), n, packed.Micros(made), len(body), body)
		if errors.Is(err, store.ErrExists) && tx.again {
			err = nil // no other master has this key
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot store piece %d of content %q: %w", n, key, err)
	}
	return nil
}

// Piece implements store.Contents.
func (s *Store) Piece(ctx context.Context, key string, n int) ([]byte, error) {
	var body []byte
	err := s.queryRow(ctx, "SELECT body FROM brine_piece WHERE content = ? AND n = ?",
		[]any{s.d.idParam(key), n}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find piece %d of content %q: %w", n, key, err)
	}
	return body, nil
}

// DropContent implements store.Contents.
func (s *Store) DropContent(ctx context.Context, key string) error {
	err := s.writeChange(ctx, func(tx *txn) error {
		_, err := tx.Exec("DELETE FROM brine_piece WHERE content = ?", s.d.idParam(key))
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot forget content %q: %w", key, err)
	}
	return nil
}

// ContentSize implements store.Contents.
func (s *Store) ContentSize(ctx context.Context, prefix string) (int64, error) {
	query, args := "SELECT sum(size) FROM brine_piece", []any(nil)
	if prefix != "" {
		// "~" is after all characters of a key.
		query += " WHERE content >= ? AND content < ?"
		args = []any{s.d.idParam(prefix), s.d.idParam(prefix + "~")}
	}
	var n sql.NullInt64
	if err := s.queryRow(ctx, query, args, &n); err != nil {
		return 0, fmt.Errorf("cannot measure contents of orders: %w", err)
	}
	return n.Int64, nil
}

// PurgeContents implements store.Contents.
func (s *Store) PurgeContents(ctx context.Context, before time.Time) (int, error) {
	var n int64
	err := s.writeChange(ctx, func(tx *txn) error {
		n = 0
		for _, q := range []struct {
			query string
			args  []any
		}{
			{"DELETE FROM brine_piece WHERE content IN (SELECT content FROM brine_order_content " +
				"WHERE jid NOT IN (SELECT jid FROM delivery WHERE state = 1))", nil},
			{"DELETE FROM brine_piece WHERE made < ? " +
				"AND content NOT IN (SELECT content FROM brine_order_content)",
				[]any{packed.Micros(before)}},
		} {
			r, err := tx.Exec(q.query, q.args...)
			if err != nil {
				return err
			}
			more, err := r.RowsAffected()
			if err != nil {
				return err
			}
			n += more
		}
		_, err := tx.Exec("DELETE FROM brine_order_content " +
			"WHERE jid NOT IN (SELECT jid FROM delivery WHERE state = 1)")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot forget contents of orders: %w", err)
	}
	return int(n), nil
}

// scanOrders is how many rows Orders reads at once.
const scanOrders = 500

// Orders implements store.Labels.
func (s *Store) Orders(ctx context.Context, f store.OrderFilter) ([]store.Order, error) {
	if f.Limit <= 0 {
		f.Limit = store.DefaultLimit
	}
	from, where, args := "orders", "", []any{}
	for i, key := range slices.Sorted(maps.Keys(f.Labels)) {
		mark := labelMark(key, f.Labels[key])
		if i == 0 {
			from = "brine_label, orders"
			where = "brine_label.mark = ? AND orders.jid = brine_label.jid AND "
		} else {
			where += "orders.jid IN (SELECT jid FROM brine_label WHERE mark = ?) AND "
		}
		args = append(args, mark)
	}
	var out []store.Order
	for after := f.After; ; {
		var page []store.Order
		err := s.queryRows(ctx, func() { page = nil }, func(rows *sql.Rows) error {
			var o store.Order
			var created int64
			var body []byte
			if err := rows.Scan(&o.ID, &o.JID, &created, &body); err != nil {
				return err
			}
			err := unpackOrder(&o, created, body)
			page = append(page, o)
			return err
		}, "SELECT orders.id, orders.jid, created, body FROM "+from+" WHERE "+where+
			"orders.jid > ? ORDER BY orders.jid LIMIT ?",
			append(slices.Clone(args), s.d.idParam(after), scanOrders)...)
		if err != nil {
			return nil, fmt.Errorf("cannot list orders: %w", err)
		}
		for _, o := range page {
			// Two labels may have one mark, if they collide.
			if chosen(o, f) {
				out = append(out, o)
			}
			if len(out) == f.Limit {
				return out, nil
			}
		}
		if len(page) < scanOrders {
			return out, nil
		}
		after = page[len(page)-1].JID
	}
}

func chosen(o store.Order, f store.OrderFilter) bool {
	for key, want := range f.Labels {
		if value, ok := o.Labels[key]; !ok || value != want {
			return false
		}
	}
	return f.Tenant == "" || o.Tenant == f.Tenant
}
