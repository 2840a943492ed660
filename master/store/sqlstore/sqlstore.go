// Package sqlstore keeps jobs and returns in a database of SQL. What differs between databases is a Dialect; packages sqlite,
// postgres and mysql have one each, with its driver. Several masters may use one database server at once.
//
// Writes of many goroutines share a transaction, so a thousand returns at once cost a few synchronisations of the disk, not a
// thousand.
package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// Dialect is what differs between databases.
type Dialect struct {
	// Schema are the statements that make version 1 of the tables where they are missing: job (jid, created, body), ret (jid, id, received, body),
	// orders (id, jid, created, body), delivery (jid, minion, state, priority, due, version, body) and minion (id, tenant, joined,
	// version, body). Times are microseconds since 1970, body is msgpack.
	Schema []string
	// Types are pairs of words for migrations: {text} for ids, {mark} for 16 bytes, {blob}, {int} of 64 bits, and {end} of a table.
	Types []string
	// Lock keeps other masters from changing the schema until Unlock or, after a failure, Abandon (Unlock if empty).
	Lock, Unlock, Abandon string
	// There says that a part of a migration was made before, where the database cannot undo half of one.
	There func(error) bool
	// Version and SetVersion read and write the version of the schema; Version gives 0 for an empty database.
	Version    func(context.Context, *sql.Conn) (int, error)
	SetVersion func(context.Context, *sql.Conn, int) error
	// Numbered is set where parameters are $1, $2, … and not question marks.
	Numbered bool
	// Text is how the database takes ids, which may be any text; nil is as they are.
	Text func(string) any
	// Insert and Ignore stand before INTO and behind the values of an insert that shall do nothing when the row is there.
	Insert, Ignore string
	// Lines, where one row is much cheaper than many, is the expression that makes one text of all values of a column, a line for each;
	// %s is the column. It is for ids of minions, which have no line breaks.
	Lines string
	// Returning is set where an update can give the new values.
	Returning bool
	// ForUpdate locks a row that is going to be changed.
	ForUpdate string
	// Retry says that a transaction failed for what another one did, and may succeed when it is run again.
	Retry func(error) bool
	// Lost says that the server went away or is starting, so that the same may succeed a little later. It is unknown then
	// whether a transaction happened. nil never is.
	Lost func(error) bool
	// MaxValue, where the server has such a limit, is the query for the most bytes that a value may have. Larger ones are not sent:
	// MariaDB's prepared statements do not recover from one.
	MaxValue string
	// Listen calls wake whenever a message may have been told, until ctx ends, and Notify is the statement that makes it do so.
	// Without them messages are looked for.
	Listen func(ctx context.Context, wake func())
	Notify string
	// Told, where it is set, gives the text that adds to the counter "relay", writes messages, made at a time, with the numbers up to what
	// it is then, does what Notify does, and commits: statements that are one way to the server.
	Told func(list []store.Message, made int64) string
	// Size, if there is one, is the query for the bytes that all rows take, without what was freed.
	Size string
	// Room, if there is one, returns how many bytes the database may take by default.
	Room func() int64
	// Tidy, if there is one, is called when many writes are over and no others wait.
	Tidy func(*sql.DB)
	// Explain, if there is one, adds to the error of a write what the database does not say about its cause.
	Explain func(error) error
}

// text is an id as a parameter.
func (d *Dialect) text(s string) any {
	if d.Text != nil {
		return d.Text(s)
	}
	return s
}

// sql gives a statement its parameters as the database writes them.
func (d *Dialect) sql(text string) string {
	if !d.Numbered {
		return text
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(text, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// maxBatch is how many writes share one transaction.
const maxBatch = 1024

const (
	// tidyWrites is after how many writes Dialect.Tidy is called, and tidyAfter how long after the last of them.
	tidyWrites = 256
	tidyAfter  = time.Second
)

// maxTries is how often a transaction is begun that others disturb.
const maxTries = 10

// Store is an open database. See store.Store for its methods.
type Store struct {
	db *sql.DB
	d  Dialect

	maxValue   int64 // what Dialect.MaxValue gave, 0 for no limit
	statements statements

	mu     sync.Mutex // guards writes and closed
	writes []write    // that wait for the next transaction
	closed bool       // nothing is added to them any more
	wake   chan struct{}

	once sync.Once
	stop chan struct{}
	wg   sync.WaitGroup
	err  error // of closing
}

var _ store.Paged = (*Store)(nil)

// write is a change that waits for its transaction; do is called by the writer only.
type write struct {
	do   func(*txn) error
	done chan error
}

// patience is how long writes and reads wait for a server that is away.
const patience = 90 * time.Second

// awayPause is how often it is tried meanwhile.
const awayPause = 250 * time.Millisecond

// Open prepares a database and starts the writer. Close the store after the master ended; it closes the database.
func Open(db *sql.DB, d Dialect) (*Store, error) {
	if err := migrate(db, &d); err != nil {
		return nil, err
	}
	s := &Store{db: db, d: d, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	s.statements.all = make(map[string]*sql.Stmt)
	if d.MaxValue != "" {
		if err := db.QueryRow(d.MaxValue).Scan(&s.maxValue); err != nil {
			return nil, fmt.Errorf("cannot read the limits of the database: %w", err)
		}
	}
	s.wg.Go(s.writer)
	return s, nil
}

// Close writes what waits and closes the database.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		close(s.stop)
		s.wg.Wait()
		s.err = s.db.Close()
	})
	return s.err
}

var errClosed = errors.New("job store is closed")

// update runs a change in the writer's next transaction and waits for the commit: once queued, the change happens, and its outcome must be
// known even if ctx ends meanwhile.
func (s *Store) update(ctx context.Context, do func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := write{do, make(chan error, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.writes = append(s.writes, w)
	s.mu.Unlock()
	s.signal()
	return <-w.done
}

// signal tells the writer that there is something to do.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Store) writer() {
	quiet := time.NewTimer(tidyAfter)
	quiet.Stop()
	defer quiet.Stop()
	untidy := 0 // writes
	for {
		select {
		case <-s.wake:
			batch := s.collect()
			if len(batch) == 0 {
				break // it was taken with what came before
			}
			s.commit(batch)
			if untidy += len(batch); s.d.Tidy != nil && untidy >= tidyWrites {
				quiet.Reset(tidyAfter)
			}
		case <-quiet.C:
			untidy = 0
			s.d.Tidy(s.db)
		case <-s.stop:
			for batch := s.collect(); len(batch) > 0; batch = s.collect() {
				s.commit(batch)
			}
			return
		}
	}
}

// collect takes what waits, as much of it as fits in a transaction.
func (s *Store) collect() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := s.writes
	if s.writes = nil; len(batch) > maxBatch {
		batch, s.writes = batch[:maxBatch:maxBatch], batch[maxBatch:]
		s.signal()
	}
	return batch
}

// commit runs a batch in one transaction. A change whose statement fails is undone alone (savepoint); a failing commit
// fails all.
func (s *Store) commit(batch []write) {
	results := make([]error, len(batch))
	err := s.transact(batch, results, false)
	again := false
	end := time.Now().Add(patience)
	for try := 1; err != nil; {
		switch {
		case s.d.Retry != nil && s.d.Retry(err) && try < maxTries:
			time.Sleep(time.Duration(try) * time.Millisecond)
			try++
		case s.lost(err) && time.Now().Before(end) && s.pause(awayPause):
			again = true
		default:
			end = time.Time{}
		}
		if end.IsZero() {
			break
		}
		err = s.transact(batch, results, again)
	}
	for i, w := range batch {
		result := cmp.Or(err, results[i])
		if result != nil && s.d.Explain != nil {
			result = s.d.Explain(result)
		}
		w.done <- result
	}
}

// lost says that the server is away.
func (s *Store) lost(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || s.d.Lost != nil && s.d.Lost(err)
}

// pause waits a little, unless the store is closed.
func (s *Store) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.stop:
		return false
	}
}

// read does something that only reads, again and again while the server is away.
func (s *Store) read(ctx context.Context, do func() error) error {
	for end := time.Now().Add(patience); ; {
		err := do()
		if err == nil || !s.lost(err) || ctx.Err() != nil || time.Now().After(end) || !s.pause(awayPause) {
			return err
		}
	}
}

// errUndo says that a change failed after it had begun, so that all have to be made anew, each behind a savepoint.
var errUndo = errors.New("a change failed half-way")

// transact runs a batch in one transaction. Savepoints cost two statements for each change, so they are used only when one of the
// batch has failed without them.
func (s *Store) transact(batch []write, results []error, again bool) error {
	err := s.transactWith(batch, results, again, false)
	if errors.Is(err, errUndo) {
		err = s.transactWith(batch, results, again, true)
	}
	return err
}

func (s *Store) transactWith(batch []write, results []error, again, save bool) error {
	sqlTx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer sqlTx.Rollback()
	tx := &txn{Tx: sqlTx, s: s, stmts: make(map[string]*sql.Stmt), again: again}
	for i, w := range batch {
		var clean bool
		results[i], clean = tx.attempt(w.do, save)
		switch {
		case clean:
		case s.fatal(results[i]) || save:
			return results[i]
		case len(batch) == 1:
			return nil // nothing of it is kept
		default:
			return errUndo
		}
	}
	committed, err := s.flush(tx)
	if err != nil || committed {
		return err
	}
	return tx.Commit()
}

// SaveJob implements store.Store.
func (s *Store) SaveJob(ctx context.Context, j store.Job) error {
	body, err := packJob(j)
	if err != nil {
		return fmt.Errorf("cannot store job %s: %w", j.JID, err)
	}
	err = s.update(ctx, func(tx *txn) error {
		r, err := tx.Exec(s.d.Insert+" INTO job (jid, created, body) VALUES (?, ?, ?) "+s.d.Ignore, s.d.text(j.JID), j.Created.UnixMicro(), body)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if err == nil && n == 0 && !s.ours(tx, "SELECT created, body FROM job WHERE jid = ?", j.Created, body, j.JID) {
			err = store.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot store job %s: %w", j.JID, err)
	}
	return nil
}

// AddMinions implements store.Store.
func (s *Store) AddMinions(ctx context.Context, jid string, ids []string) error {
	err := s.update(ctx, func(tx *txn) error {
		var body []byte
		var created int64
		err := tx.row("SELECT created, body FROM job WHERE jid = ? "+s.d.ForUpdate, []any{s.d.text(jid)}, &created, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
		j, err := unpackJob(jid, created, body)
		if err != nil {
			return err
		}
		j.Minions = store.Union(j.Minions, ids)
		if body, err = packJob(j); err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE job SET body = ? WHERE jid = ?", body, s.d.text(jid))
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot add minions to job %s: %w", jid, err)
	}
	return nil
}

// SaveReturn implements store.Store.
func (s *Store) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	return s.saveReturn(ctx, r, nil)
}

// SaveReturnTell implements store.Shared.
func (s *Store) SaveReturnTell(ctx context.Context, r store.Return, m store.Message) (bool, error) {
	return s.saveReturn(ctx, r, []store.Message{m})
}

// saveReturn stores a return. One that the database does not take ends as a failure that says so: trying it again would not help.
func (s *Store) saveReturn(ctx context.Context, r store.Return, tell []store.Message) (bool, error) {
	first, err := s.insertReturn(ctx, r, tell)
	if !errors.Is(err, store.ErrTooLarge) {
		return first, err
	}
	r.Load = maps.Clone(r.Load)
	r.Load["return"] = fmt.Sprintf("The return has %d bytes, which is %v (max_allowed_packet)", payload.Size(r.Load["return"]), store.ErrTooLarge)
	r.Load["success"] = false
	if code, ok := payload.Int(r.Load["retcode"]); !ok || code == 0 {
		r.Load["retcode"] = int64(1)
	}
	return s.insertReturn(ctx, r, tell)
}

func (s *Store) insertReturn(ctx context.Context, r store.Return, tell []store.Message) (first bool, err error) {
	body, done, err := packReturn(r)
	if err != nil {
		return false, fmt.Errorf("cannot store return of %q for job %s: %w", r.ID, r.JID, err)
	}
	defer done() // the writer has nothing to do with it when update has returned
	err = s.update(ctx, func(tx *txn) error {
		res, err := tx.Exec(s.d.Insert+" INTO ret (jid, id, received, body) VALUES (?, ?, ?, ?) "+s.d.Ignore, s.d.text(r.JID), s.d.text(r.ID), r.Received.UnixMicro(), body)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		first = n > 0 || err == nil && s.ours(tx, "SELECT received, body FROM ret WHERE jid = ? AND id = ?", r.Received, body, r.JID, r.ID)
		if first {
			tx.tell = append(tx.tell, tell...)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot store return of %q for job %s: %w", r.ID, r.JID, err)
	}
	return first, nil
}

// ours says whether a row that was in the way is the one of an earlier try of the same transaction, whose end nobody knew.
func (s *Store) ours(tx *txn, query string, at time.Time, body []byte, ids ...string) bool {
	if !tx.again {
		return false
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = s.d.text(id)
	}
	var when int64
	var there []byte
	err := tx.row(query, args, &when, &there)
	return err == nil && when == at.UnixMicro() && bytes.Equal(body, there)
}

// Job implements store.Store.
func (s *Store) Job(ctx context.Context, jid string) (store.Job, error) {
	var body []byte
	var created int64
	err := s.row(ctx, "SELECT created, body FROM job WHERE jid = ?", []any{s.d.text(jid)}, &created, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Job{}, fmt.Errorf("cannot find job %s: %w", jid, err)
	}
	return unpackJob(jid, created, body)
}

// Returns implements store.Store.
func (s *Store) Returns(ctx context.Context, jid string) ([]store.Return, error) {
	var out []store.Return
	err := s.rows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		var id string
		var received int64
		var body []byte
		if err := rows.Scan(&id, &received, &body); err != nil {
			return err
		}
		r, err := unpackReturn(jid, id, received, body)
		out = append(out, r)
		return err
	}, "SELECT id, received, body FROM ret WHERE jid = ? ORDER BY id", s.d.text(jid))
	if err != nil {
		return nil, fmt.Errorf("cannot find returns of job %s: %w", jid, err)
	}
	return out, nil
}

// Returned implements store.Paged.
func (s *Store) Returned(ctx context.Context, jid string) ([]string, error) {
	out, err := s.ids(ctx, "SELECT id FROM ret WHERE jid = ?", s.d.text(jid))
	if err != nil {
		return nil, fmt.Errorf("cannot find who returned for job %s: %w", jid, err)
	}
	return out, nil
}

// ids are the values of a query's only column.
func (s *Store) ids(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = s.rows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		out = append(out, id)
		return err
	}, query, args...)
	return out, err
}

// ReturnsOf implements store.Paged.
func (s *Store) ReturnsOf(ctx context.Context, jid string, ids []string) ([]store.Return, error) {
	var out []store.Return
	for _, id := range ids {
		var received int64
		var body []byte
		err := s.row(ctx, "SELECT received, body FROM ret WHERE jid = ? AND id = ?", []any{s.d.text(jid), s.d.text(id)}, &received, &body)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot find return of %q for job %s: %w", id, jid, err)
		}
		r, err := unpackReturn(jid, id, received, body)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Jobs implements store.Store.
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]store.Job, error) {
	if f.Limit <= 0 {
		f.Limit = store.DefaultLimit
	}
	since, before := int64(-1<<63), int64(1<<63-1)
	if !f.Since.IsZero() {
		since = f.Since.UnixMicro()
	}
	if !f.Before.IsZero() {
		before = f.Before.UnixMicro()
	}
	rows, err := s.db.QueryContext(ctx, s.d.sql("SELECT jid, created, body, "+
		"EXISTS (SELECT 1 FROM ret WHERE ret.jid = job.jid AND ret.id = ?) "+
		"FROM job WHERE created >= ? AND created < ? ORDER BY jid DESC"), s.d.text(f.Minion), since, before)
	if err != nil {
		return nil, fmt.Errorf("cannot list jobs: %w", err)
	}
	defer rows.Close()
	var out []store.Job
	for len(out) < f.Limit && rows.Next() {
		var jid string
		var created int64
		var body []byte
		var returned bool
		if err := rows.Scan(&jid, &created, &body, &returned); err != nil {
			return nil, fmt.Errorf("cannot list jobs: %w", err)
		}
		j, err := unpackJob(jid, created, body)
		if err != nil {
			return nil, err
		}
		if f.Minion == "" || returned || contains(j.Minions, f.Minion) {
			out = append(out, j)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot list jobs: %w", err)
	}
	return out, nil
}

// Beyond implements store.Bounded.
func (s *Store) Beyond(ctx context.Context, keep int) (time.Time, error) {
	var us int64
	err := s.db.QueryRowContext(ctx, s.d.sql("SELECT created FROM job ORDER BY created DESC LIMIT 1 OFFSET ?"), keep).Scan(&us)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot count jobs: %w", err)
	}
	return time.UnixMicro(us + 1), nil
}

// Room implements store.Bounded.
func (s *Store) Room() int64 {
	if s.d.Room == nil {
		return 0
	}
	return s.d.Room()
}

// Size implements store.Bounded.
func (s *Store) Size(ctx context.Context) (jobs int, bytes int64, err error) {
	if err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM job").Scan(&jobs); err == nil && s.d.Size != "" {
		err = s.db.QueryRowContext(ctx, s.d.Size).Scan(&bytes)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot measure jobs: %w", err)
	}
	return jobs, bytes, nil
}

// Purge implements store.Store.
func (s *Store) Purge(ctx context.Context, before time.Time) (int, error) {
	var n int64
	err := s.update(ctx, func(tx *txn) error {
		us := before.UnixMicro()
		if err := s.purgeOrders(tx, us); err != nil {
			return err
		}
		// What is left of orders is still under way.
		const done = " AND jid NOT IN (SELECT jid FROM delivery WHERE state = 1)"
		if _, err := tx.Exec("DELETE FROM ret WHERE jid IN (SELECT jid FROM job WHERE created < ?"+done+")", us); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM ret WHERE received < ? AND jid NOT IN (SELECT jid FROM job)", us); err != nil {
			return err
		}
		r, err := tx.Exec("DELETE FROM job WHERE created < ?"+done, us)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot forget old jobs: %w", err)
	}
	return int(n), nil
}
