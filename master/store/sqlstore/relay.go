package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore/packed"
)

// How often to look for messages: soon after one was found, less and less often while there are none; and where the
// database notifies, in case it forgets.
const (
	pollSoon   = 20 * time.Millisecond
	pollLate   = 250 * time.Millisecond
	pollBeside = 2 * time.Second
)

// followPause is the shortest pause between two looks where the database notifies: of a hundred commits a second it
// notifies a hundred times.
const followPause = 10 * time.Millisecond

// manyMessages is how many messages one statement writes, if there are that many.
const manyMessages = 16

// maxTold is the size of all bodies up to which they are sent to the server as part of a text.
const maxTold = 1 << 20

// maxRead is how many messages are read at once.
const maxRead = 500

// flushMessages writes the messages to the other masters, as the last step of a transaction. The counter's row is
// locked from here to the commit, so that the numbers of messages have no gaps and follow the order of the commits.
// All masters wait for that lock. Where a round trip to the server takes time, everything from the lock to the
// commit is one round trip, and the transaction is committed on return.
func (s *Store) flushMessages(tx *txn) (committed bool, err error) {
	if tx.keys {
		if _, err := s.addCounter(tx, "keys", 1); err != nil {
			return false, err
		}
	}
	if len(tx.tell) == 0 {
		return false, nil
	}
	size := 0
	for _, m := range tx.tell {
		size += len(m.Body)
	}
	now := time.Now().UnixMicro()
	if s.d.Told != nil && size <= maxTold {
		_, err := tx.Tx.Exec(s.d.Told(tx.tell, now))
		return err == nil, err
	}
	if s.d.Notify != "" { // before the lock, since it happens at the commit anyway
		if _, err := tx.Tx.Exec(s.d.Notify); err != nil {
			return false, err
		}
	}
	last, err := s.addCounter(tx, "relay", int64(len(tx.tell)))
	if err != nil {
		return false, err
	}
	seq := last - int64(len(tx.tell))
	for list := tx.tell; len(list) > 0; {
		n := 1
		if len(list) >= manyMessages {
			n = manyMessages
		}
		args := make([]any, 0, 6*n)
		for _, m := range list[:n] {
			if m.Body == nil {
				m.Body = []byte{}
			}
			seq++
			args = append(args, seq, now, s.d.idParam(m.From), s.d.idParam(m.To),
				s.d.idParam(m.Kind), m.Body)
		}
		if _, err := tx.Exec("INSERT INTO brine_relay (seq, made, sender, receiver, kind, body) "+
			"VALUES (?, ?, ?, ?, ?, ?)"+
			strings.Repeat(", (?, ?, ?, ?, ?, ?)", n-1), args...); err != nil {
			return false, err
		}
		list = list[n:]
	}
	return false, nil
}

// addCounter adds to a counter and returns its value. The row is locked until the transaction ends.
func (s *Store) addCounter(tx *txn, name string, by int64) (n int64, err error) {
	const add = "UPDATE brine_counter SET n = n + ? WHERE name = ?"
	args := []any{by, s.d.idParam(name)}
	if s.d.Returning {
		err = tx.queryRow(add+" RETURNING n", args, &n)
		return n, err
	}
	if _, err = tx.Exec(add, args...); err != nil {
		return 0, err
	}
	err = tx.queryRow("SELECT n FROM brine_counter WHERE name = ?", []any{s.d.idParam(name)}, &n)
	return n, err
}

func (s *Store) readCounter(ctx context.Context, name string) (n int64, err error) {
	err = s.queryRow(ctx, "SELECT n FROM brine_counter WHERE name = ?",
		[]any{s.d.idParam(name)}, &n)
	return n, err
}

// Tell implements store.Shared.
func (s *Store) Tell(ctx context.Context, m ...store.Message) error {
	if len(m) == 0 {
		return nil
	}
	err := s.writeChange(ctx, func(tx *txn) error {
		tx.tell = append(tx.tell, m...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot notify the other masters: %w", err)
	}
	return nil
}

// Follow implements store.Shared.
func (s *Store) Follow(ctx context.Context, self string, f func([]store.Message)) error {
	last, err := s.readCounter(ctx, "relay")
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
		looked := time.Now()
		now, found, err := s.readMessages(ctx, self, last, f)
		if err != nil && ctx.Err() == nil && !s.isLost(err) {
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
			if d := followPause - time.Since(looked); d > 0 {
				s.waitAway(d)
			}
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

// readMessages passes on what came after a number and returns the last one.
func (s *Store) readMessages(ctx context.Context, self string, last int64,
	f func([]store.Message)) (int64, int, error) {
	head, err := s.readCounter(ctx, "relay")
	if err != nil || head == last {
		return last, 0, err
	}
	if head < last { // another database than before
		f(nil)
		return head, 0, nil
	}
	var out []store.Message
	var at int64
	var found int
	var missed bool
	begin := func() { out, at, found, missed = nil, last, 0, false }
	err = s.queryRows(ctx, begin, func(rows *sql.Rows) error {
		var m store.Message
		if err := rows.Scan(&m.Seq, &m.From, &m.To, &m.Kind, &m.Body); err != nil {
			return err
		}
		missed = missed || m.Seq != at+1
		at = m.Seq
		found++
		if m.From != self && (m.To == "" || m.To == self) {
			out = append(out, m)
		}
		return nil
	}, "SELECT seq, sender, receiver, kind, body FROM brine_relay "+
		"WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", last, head, maxRead)
	if err != nil {
		return last, 0, err
	}
	last = at
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

// maxSince is how many messages of all kinds MessagesSince looks through at most. Beyond, it reports that some may be
// missing.
const maxSince = 100_000

// MessagesSince implements store.Shared. The counter follows the order of the commits, so every message up to the
// newest is visible. The messages are counted after they were read: a purge in between shows as incomplete.
func (s *Store) MessagesSince(ctx context.Context, self, kind string, since int64) (
	bodies [][]byte, newest int64, complete bool, err error) {
	fail := func(err error) ([][]byte, int64, bool, error) {
		return nil, 0, false, fmt.Errorf("cannot read messages of other masters: %w", err)
	}
	if newest, err = s.readCounter(ctx, "relay"); err != nil {
		return fail(err)
	}
	if since < 0 || newest <= since || newest-since > maxSince {
		return nil, newest, newest == since, nil
	}
	err = s.queryRows(ctx, func() { bodies = nil }, func(rows *sql.Rows) error {
		var body []byte
		err := rows.Scan(&body)
		bodies = append(bodies, body)
		return err
	}, "SELECT body FROM brine_relay WHERE seq > ? AND seq <= ? AND kind = ? AND sender <> ? "+
		"ORDER BY seq", since, newest, s.d.idParam(kind), s.d.idParam(self))
	if err != nil {
		return fail(err)
	}
	var n int64
	err = s.queryRow(ctx, "SELECT count(*) FROM brine_relay WHERE seq > ? AND seq <= ?",
		[]any{since, newest}, &n)
	if err != nil {
		return fail(err)
	}
	if n != newest-since {
		return nil, newest, false, nil
	}
	return bodies, newest, true, nil
}

// PurgeShared implements store.Shared.
func (s *Store) PurgeShared(ctx context.Context, messages, marks time.Time, most int) error {
	head, err := s.readCounter(ctx, "relay")
	if err != nil {
		return fmt.Errorf("cannot forget messages: %w", err)
	}
	err = s.writeChange(ctx, func(tx *txn) error {
		_, err := tx.Exec("DELETE FROM brine_relay WHERE made < ?", packed.Micros(messages))
		if err == nil && most > 0 {
			_, err = tx.Exec("DELETE FROM brine_relay WHERE seq <= ?", head-int64(most))
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM brine_seen WHERE seen < ?", packed.Micros(marks))
		}
		if err == nil { // what is left of deleted keys
			_, err = tx.Exec("DELETE FROM brine_key WHERE states = 0 AND changed < ?",
				packed.Micros(marks))
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM brine_lease WHERE until_at < ?",
				time.Now().Add(-time.Hour).UnixMicro())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot forget messages: %w", err)
	}
	return nil
}

// Lease implements store.Shared. Times are those of the masters, whose clocks must differ by less than a lease
// lasts.
func (s *Store) Lease(ctx context.Context, name, owner string,
	life time.Duration) (got bool, err error) {
	err = s.writeChange(ctx, func(tx *txn) error {
		now := time.Now()
		var holder string
		var until int64
		err := tx.queryRow("SELECT owner, until_at FROM brine_lease WHERE name = ? "+s.d.ForUpdate,
			[]any{s.d.idParam(name)}, &holder, &until)
		var r sql.Result
		switch {
		case errors.Is(err, sql.ErrNoRows):
			r, err = tx.Exec(s.d.Insert+" INTO brine_lease (name, owner, until_at) "+
				"VALUES (?, ?, ?) "+s.d.Ignore, s.d.idParam(name), s.d.idParam(owner),
				now.Add(life).UnixMicro())
		case err == nil && (holder == owner || until < now.UnixMicro()):
			r, err = tx.Exec("UPDATE brine_lease SET owner = ?, until_at = ? "+
				"WHERE name = ? AND owner = ? AND until_at = ?", s.d.idParam(owner),
				now.Add(life).UnixMicro(), s.d.idParam(name), s.d.idParam(holder), until)
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
	err := s.writeChange(ctx, func(tx *txn) error {
		_, err := tx.Exec("DELETE FROM brine_lease WHERE name = ? AND owner = ?",
			s.d.idParam(name), s.d.idParam(owner))
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
	err := s.queryRows(ctx, func() { out = make(map[string]string) }, func(rows *sql.Rows) error {
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
