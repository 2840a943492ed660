package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore/packed"
)

var _ store.Shared = (*Store)(nil)

// Return implements store.Shared.
func (s *Store) Return(ctx context.Context, jid, id string) (store.Return, error) {
	var body []byte
	var received int64
	err := s.queryRow(ctx, "SELECT received, body FROM ret WHERE jid = ? AND id = ?",
		[]any{s.d.idParam(jid), s.d.idParam(id)}, &received, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Return{}, fmt.Errorf("cannot find return of %q for job %s: %w", id, jid, err)
	}
	return packed.Return(jid, id, received, body)
}

// Bits of brine_key.states.
const (
	hasAccepted = 1 << iota
	hasPending
	hasRejected
	hasDenied
	allStates
)

func stateBit(folder string) int {
	switch folder {
	case "minions":
		return hasAccepted
	case "minions_pre":
		return hasPending
	case "minions_rejected":
		return hasRejected
	case "minions_denied":
		return hasDenied
	}
	return 0
}

// withBit returns the condition that states has a bit, in a form that an index can serve.
func withBit(folder string) string {
	bit := stateBit(folder)
	var in []string
	for n := range allStates {
		if n&bit != 0 {
			in = append(in, fmt.Sprint(n))
		}
	}
	if len(in) == 0 {
		return "states IN (-1)"
	}
	return "states IN (" + strings.Join(in, ", ") + ")"
}

// Key implements store.Shared.
func (s *Store) Key(ctx context.Context, id string) (store.KeyRecord, error) {
	r := store.KeyRecord{ID: id}
	var changed int64
	var texts [4][]byte
	err := s.queryRow(ctx, "SELECT accepted, pending, rejected, denied, changed, epoch, "+
		"generation FROM brine_key WHERE id = ?", []any{s.d.idParam(id)},
		&texts[0], &texts[1], &texts[2], &texts[3], &changed, &r.Epoch, &r.Generation)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("cannot read keys of %q: %w", id, err)
	}
	r.Changed = time.UnixMicro(changed)
	r.Accepted, r.Pending = string(texts[0]), string(texts[1])
	r.Rejected, r.Denied = string(texts[2]), string(texts[3])
	return r, nil
}

// SwapKey implements store.Shared.
func (s *Store) SwapKey(ctx context.Context, r store.KeyRecord,
	m store.Message) (swapped bool, err error) {
	states := 0
	args := make([]any, 0, 10)
	for i, text := range []string{r.Accepted, r.Pending, r.Rejected, r.Denied} {
		if text == "" {
			args = append(args, nil)
			continue
		}
		states |= 1 << i
		args = append(args, []byte(text))
	}
	args = append(args, states, r.Changed.UnixMicro(), r.Epoch+1, r.Generation, s.d.idParam(r.ID))
	query := s.d.Insert + " INTO brine_key (accepted, pending, rejected, denied, states, " +
		"changed, epoch, generation, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) " + s.d.Ignore
	if r.Epoch > 0 {
		query = "UPDATE brine_key SET accepted = ?, pending = ?, rejected = ?, denied = ?, " +
			"states = ?, changed = ?, epoch = ?, generation = ? WHERE id = ? AND epoch = ?"
		args = append(args, r.Epoch)
	}
	err = s.writeChange(ctx, func(tx *txn) error {
		res, err := tx.Exec(query, args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if swapped = n > 0; swapped {
			tx.keys = true
			tx.tell = append(tx.tell, m)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot store keys of %q: %w", r.ID, err)
	}
	return swapped, nil
}

// KeyIDs implements store.Shared.
func (s *Store) KeyIDs(ctx context.Context, folder string) ([]string, error) {
	var out []string
	column := "id"
	if s.d.Lines != "" {
		column = fmt.Sprintf(s.d.Lines, column)
	}
	err := s.queryRows(ctx, func() { out = out[:0] }, func(rows *sql.Rows) error {
		var ids sql.NullString
		err := rows.Scan(&ids)
		switch {
		case s.d.Lines == "":
			out = append(out, ids.String)
		case ids.String != "":
			out = append(out, strings.Split(ids.String, "\n")...)
		}
		return err
	}, "SELECT "+column+" FROM brine_key WHERE "+withBit(folder))
	if err != nil {
		return nil, fmt.Errorf("cannot list keys: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// KeyCount implements store.Shared.
func (s *Store) KeyCount(ctx context.Context, folder string) (n int, err error) {
	err = s.queryRow(ctx, "SELECT count(*) FROM brine_key WHERE "+withBit(folder), nil, &n)
	if err != nil {
		return 0, fmt.Errorf("cannot count keys: %w", err)
	}
	return n, nil
}

// KeyVersion implements store.Shared.
func (s *Store) KeyVersion(ctx context.Context) (int64, error) { return s.readCounter(ctx, "keys") }

// Secrets implements store.Shared.
func (s *Store) Secrets(ctx context.Context, name string) ([]store.Secret, error) {
	var out []store.Secret
	err := s.queryRows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		x := store.Secret{Name: name}
		var created int64
		err := rows.Scan(&x.Version, &created, &x.Body)
		x.Created = time.UnixMicro(created)
		out = append(out, x)
		return err
	}, "SELECT version, created, body FROM brine_secret WHERE name = ? ORDER BY version",
		s.d.idParam(name))
	if err != nil {
		return nil, fmt.Errorf("cannot read secret %q: %w", name, err)
	}
	return out, nil
}

// AddSecret implements store.Shared.
func (s *Store) AddSecret(ctx context.Context, x store.Secret, m store.Message) (bool, error) {
	added, err := s.addRow(ctx, &m,
		"brine_secret (name, version, created, body) VALUES (?, ?, ?, ?)",
		s.d.idParam(x.Name), x.Version, x.Created.UnixMicro(), x.Body)
	if err != nil {
		return false, fmt.Errorf("cannot store secret %q: %w", x.Name, err)
	}
	return added, nil
}

// addRow adds a row unless it exists, and sends a message if it did not.
func (s *Store) addRow(ctx context.Context, m *store.Message, into string,
	args ...any) (added bool, err error) {
	err = s.writeChange(ctx, func(tx *txn) error {
		r, err := tx.Exec(s.d.Insert+" INTO "+into+" "+s.d.Ignore, args...)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if added = n > 0; added && m != nil {
			tx.tell = append(tx.tell, *m)
		}
		return err
	})
	return added, err
}

// DropSecrets implements store.Shared.
func (s *Store) DropSecrets(ctx context.Context, name string, below int64) error {
	err := s.writeChange(ctx, func(tx *txn) error {
		_, err := tx.Exec("DELETE FROM brine_secret WHERE name = ? AND version < ?",
			s.d.idParam(name), below)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot forget old secrets %q: %w", name, err)
	}
	return nil
}

// Once implements store.Shared. mark has 16 bytes.
func (s *Store) Once(ctx context.Context, scope string, mark []byte) (bool, error) {
	first, err := s.addRow(ctx, nil, "brine_seen (scope, mark, seen) VALUES (?, ?, ?)",
		s.d.idParam(scope), mark, time.Now().UnixMicro())
	if err != nil {
		return false, fmt.Errorf("cannot record that a message of %q was seen: %w", scope, err)
	}
	return first, nil
}

// Datum implements store.Shared.
func (s *Store) Datum(ctx context.Context, kind, id string) (body []byte, epoch int64, err error) {
	err = s.queryRow(ctx, "SELECT epoch, body FROM brine_data WHERE kind = ? AND id = ?",
		[]any{s.d.idParam(kind), s.d.idParam(id)}, &epoch, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read %s of %q: %w", kind, id, err)
	}
	return body, epoch, nil
}

// dataBatch is how many ids one statement of Data asks for: at 10 KB each the answer has 2.5 MB.
const dataBatch = 256

// Data implements store.Shared. Each statement has the same number of parameters, so that it is prepared once.
func (s *Store) Data(ctx context.Context, kind string, ids []string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(ids))
	const query = "SELECT id, body FROM brine_data WHERE kind = ? AND id IN (?"
	for batch := range slices.Chunk(ids, dataBatch) {
		args := make([]any, 0, 1+dataBatch)
		args = append(args, s.d.idParam(kind))
		for i := range dataBatch {
			args = append(args, s.d.idParam(batch[min(i, len(batch)-1)]))
		}
		err := s.queryRows(ctx, func() {}, func(rows *sql.Rows) error {
			var id string
			var body []byte
			err := rows.Scan(&id, &body)
			out[id] = body
			return err
		}, query+strings.Repeat(", ?", dataBatch-1)+")", args...)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", kind, err)
		}
	}
	return out, nil
}

// DataEpochs implements store.Shared.
func (s *Store) DataEpochs(ctx context.Context, kind string) (map[string]int64, error) {
	var out map[string]int64
	err := s.queryRows(ctx, func() { out = make(map[string]int64) }, func(rows *sql.Rows) error {
		var id string
		var epoch int64
		err := rows.Scan(&id, &epoch)
		out[id] = epoch
		return err
	}, "SELECT id, epoch FROM brine_data WHERE kind = ?", s.d.idParam(kind))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, err)
	}
	return out, nil
}

// SetDatum implements store.Shared. A new row's epoch is the time, so that it differs from those of earlier rows of
// the id.
func (s *Store) SetDatum(ctx context.Context, kind, id string, body []byte,
	epoch int64) (set bool, err error) {
	key := []any{s.d.idParam(kind), s.d.idParam(id)}
	err = s.writeChange(ctx, func(tx *txn) error {
		exec := func(query string, args ...any) (int64, error) {
			r, err := tx.Exec(query, args...)
			if err != nil {
				return 0, err
			}
			return r.RowsAffected()
		}
		cond := ""
		args := slices.Clone(key)
		if epoch >= 0 {
			cond, args = " AND epoch = ?", append(args, epoch)
		}
		if body == nil {
			n, err := exec("DELETE FROM brine_data WHERE kind = ? AND id = ?"+cond, args...)
			set = err == nil && (n > 0 || epoch <= 0)
			return err
		}
		const update = "UPDATE brine_data SET body = ?, epoch = epoch + 1 WHERE kind = ? AND id = ?"
		n, err := exec(update+cond, append([]any{body}, args...)...)
		if err == nil && n == 0 && epoch <= 0 {
			n, err = exec(s.d.Insert+" INTO brine_data (kind, id, epoch, body) "+
				"VALUES (?, ?, ?, ?) "+s.d.Ignore,
				append(slices.Clone(key), time.Now().UnixMicro(), body)...)
			if err == nil && n == 0 && epoch < 0 { // another master's row came in between
				n, err = exec(update, append([]any{body}, key...)...)
			}
		}
		set = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot store %s of %q: %w", kind, id, err)
	}
	return set, nil
}

// DatumIDs implements store.Shared.
func (s *Store) DatumIDs(ctx context.Context, kind string) ([]string, error) {
	out, err := s.queryIDs(ctx, "SELECT id FROM brine_data WHERE kind = ?", s.d.idParam(kind))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, err)
	}
	slices.Sort(out)
	return out, nil
}
