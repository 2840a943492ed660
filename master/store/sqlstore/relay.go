package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// How often messages are looked for: after one was found, rising to the other while there are none; and where the database
// tells, in case it forgets.
const (
	pollSoon   = 20 * time.Millisecond
	pollLate   = 250 * time.Millisecond
	pollBeside = 2 * time.Second
)

// maxRead is how many messages are read at once.
const maxRead = 500

// flush writes what the others are told, as the last thing of a transaction: the counter's row is locked from here to the commit, so
// the numbers of messages are without gaps and in the order of the commits.
func (s *Store) flush(tx *txn) error {
	if tx.keys {
		if _, err := s.count(tx, "keys", 1); err != nil {
			return err
		}
	}
	if len(tx.tell) == 0 {
		return nil
	}
	last, err := s.count(tx, "relay", int64(len(tx.tell)))
	if err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	for i, m := range tx.tell {
		if m.Body == nil {
			m.Body = []byte{}
		}
		if _, err := tx.Exec(s.d.sql("INSERT INTO brine_relay (seq, made, sender, receiver, kind, body) VALUES (?, ?, ?, ?, ?, ?)"),
			last-int64(len(tx.tell))+int64(i)+1, now, s.d.text(m.From), s.d.text(m.To), s.d.text(m.Kind), m.Body); err != nil {
			return err
		}
	}
	if s.d.Notify != "" {
		_, err = tx.Exec(s.d.Notify)
	}
	return err
}

// count adds to a counter and returns its value. The row is locked until the transaction ends.
func (s *Store) count(tx *txn, name string, by int64) (n int64, err error) {
	if _, err = tx.Exec(s.d.sql("UPDATE brine_counter SET n = n + ? WHERE name = ?"), by, s.d.text(name)); err != nil {
		return 0, err
	}
	err = tx.QueryRow(s.d.sql("SELECT n FROM brine_counter WHERE name = ?"), s.d.text(name)).Scan(&n)
	return n, err
}

func (s *Store) counter(ctx context.Context, name string) (n int64, err error) {
	err = s.read(ctx, func() error {
		return s.db.QueryRowContext(ctx, s.d.sql("SELECT n FROM brine_counter WHERE name = ?"), s.d.text(name)).Scan(&n)
	})
	return n, err
}

// Tell implements store.Shared.
func (s *Store) Tell(ctx context.Context, m ...store.Message) error {
	if len(m) == 0 {
		return nil
	}
	err := s.update(ctx, func(tx *txn) error {
		tx.tell = append(tx.tell, m...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot tell other masters: %w", err)
	}
	return nil
}

// Follow implements store.Shared.
func (s *Store) Follow(ctx context.Context, self string, f func([]store.Message)) error {
	last, err := s.counter(ctx, "relay")
	if err != nil {
		return fmt.Errorf("cannot follow other masters: %w", err)
	}
	wake := make(chan struct{}, 1)
	wait, slow := pollSoon, pollLate
	if s.d.Listen != nil {
		slow = pollBeside
		wait = slow
		lctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go s.d.Listen(lctx, func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
	}
	for {
		now, found, err := s.follow(ctx, self, last, f)
		if err != nil && ctx.Err() == nil && !s.lost(err) {
			return fmt.Errorf("cannot follow other masters: %w", err)
		}
		wait = min(slow, 2*wait)
		if now > last && s.d.Listen == nil {
			wait = pollSoon
		}
		if last = now; found == maxRead {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-wake:
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return errClosed
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// follow hands over what came after a number and returns the last one.
func (s *Store) follow(ctx context.Context, self string, last int64, f func([]store.Message)) (int64, int, error) {
	head, err := s.counter(ctx, "relay")
	if err != nil || head == last {
		return last, 0, err
	}
	if head < last { // another database than before
		f(nil)
		return head, 0, nil
	}
	rows, err := s.db.QueryContext(ctx, s.d.sql("SELECT seq, sender, receiver, kind, body FROM brine_relay WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"),
		last, head, maxRead)
	if err != nil {
		return last, 0, err
	}
	defer rows.Close()
	var out []store.Message
	found := 0
	missed := false
	for rows.Next() {
		var m store.Message
		if err := rows.Scan(&m.Seq, &m.From, &m.To, &m.Kind, &m.Body); err != nil {
			return last, 0, err
		}
		missed = missed || m.Seq != last+1
		last = m.Seq
		found++
		if m.From != self && (m.To == "" || m.To == self) {
			out = append(out, m)
		}
	}
	if err := rows.Err(); err != nil {
		return last - int64(found), 0, err
	}
	if found == 0 {
		last, missed = head, true
	}
	if missed {
		f(nil)
	}
	if len(out) > 0 {
		f(out)
	}
	return last, found, nil
}

// PurgeShared implements store.Shared.
func (s *Store) PurgeShared(ctx context.Context, messages, marks time.Time, most int) error {
	head, err := s.counter(ctx, "relay")
	if err != nil {
		return fmt.Errorf("cannot forget messages: %w", err)
	}
	err = s.update(ctx, func(tx *txn) error {
		_, err := tx.Exec(s.d.sql("DELETE FROM brine_relay WHERE made < ?"), micros(messages))
		if err == nil && most > 0 {
			_, err = tx.Exec(s.d.sql("DELETE FROM brine_relay WHERE seq <= ?"), head-int64(most))
		}
		if err == nil {
			_, err = tx.Exec(s.d.sql("DELETE FROM brine_seen WHERE seen < ?"), micros(marks))
		}
		if err == nil { // what is left of keys that were deleted
			_, err = tx.Exec(s.d.sql("DELETE FROM brine_key WHERE states = 0 AND changed < ?"), micros(marks))
		}
		if err == nil {
			_, err = tx.Exec(s.d.sql("DELETE FROM brine_lease WHERE until_at < ?"), time.Now().Add(-time.Hour).UnixMicro())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot forget messages: %w", err)
	}
	return nil
}

// Lease implements store.Shared. Times are of the masters, whose clocks must agree better than leases are long.
func (s *Store) Lease(ctx context.Context, name, owner string, life time.Duration) (got bool, err error) {
	err = s.update(ctx, func(tx *txn) error {
		now := time.Now()
		var holder string
		var until int64
		err := tx.QueryRow(s.d.sql("SELECT owner, until_at FROM brine_lease WHERE name = ? "+s.d.ForUpdate), s.d.text(name)).Scan(&holder, &until)
		var r sql.Result
		switch {
		case errors.Is(err, sql.ErrNoRows):
			r, err = tx.Exec(s.d.sql(s.d.Insert+" INTO brine_lease (name, owner, until_at) VALUES (?, ?, ?) "+s.d.Ignore), s.d.text(name), s.d.text(owner), now.Add(life).UnixMicro())
		case err == nil && (holder == owner || until < now.UnixMicro()):
			r, err = tx.Exec(s.d.sql("UPDATE brine_lease SET owner = ?, until_at = ? WHERE name = ? AND owner = ? AND until_at = ?"), s.d.text(owner),
				now.Add(life).UnixMicro(), s.d.text(name), s.d.text(holder), until)
		}
		if err != nil || r == nil {
			return err
		}
		n, err := r.RowsAffected()
		got = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot lease %q: %w", name, err)
	}
	return got, nil
}

// Release implements store.Shared.
func (s *Store) Release(ctx context.Context, name, owner string) error {
	err := s.update(ctx, func(tx *txn) error {
		_, err := tx.Exec(s.d.sql("DELETE FROM brine_lease WHERE name = ? AND owner = ?"), s.d.text(name), s.d.text(owner))
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot release %q: %w", name, err)
	}
	return nil
}

// Leases implements store.Shared.
func (s *Store) Leases(ctx context.Context, prefix string) (map[string]string, error) {
	var out map[string]string
	err := s.rows(ctx, func() { out = make(map[string]string) }, func(rows *sql.Rows) error {
		var name, owner string
		err := rows.Scan(&name, &owner)
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			out[name] = owner
		}
		return err
	}, "SELECT name, owner FROM brine_lease WHERE until_at >= ?", time.Now().UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("cannot list leases: %w", err)
	}
	return out, nil
}

// rows runs a query, again while the server is away; begin forgets what an earlier try found.
func (s *Store) rows(ctx context.Context, begin func(), each func(*sql.Rows) error, query string, args ...any) error {
	return s.read(ctx, func() error {
		begin()
		rows, err := s.db.QueryContext(ctx, s.d.sql(query), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
