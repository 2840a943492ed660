// Package sqlstore stores jobs and returns in an SQL database. A Dialect holds the differences between databases;
// packages sqlite, postgres and mysql have one each, with its driver. Several masters may use one database server
// at the same time.
//
//	SaveReturn ─┐                      ┌─ one transaction ─┐
//	SaveReturn ─┼─▶ queue ─▶ writer ─▶ │ change, change, … │ ─▶ commit ─▶ all callers continue
//	SwapKey    ─┘                      └─ messages, last ──┘
//
// Writes of many goroutines share a transaction, so a thousand returns at the same time cost a few disk syncs, not a
// thousand. If one change fails half-way, the batch is repeated with a savepoint before each change, so that only the
// bad one fails.
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlstore/packed"
	"github.com/brine-salt/brine/protocol/payload"
)

// A Dialect holds what differs between databases.
type Dialect struct {
	// Schema are the statements that create version 1 of the tables where they are missing: job (jid, created,
	// body), ret (jid, id, received, body), orders (id, jid, created, body), delivery (jid, minion, state,
	// priority, due, version, body) and minion (id, tenant, joined, version, body). Times are microseconds since
	// 1970, bodies are msgpack.
	Schema []string
	// Types are pairs of words for migrations: {text} for ids, {mark} for 16 bytes, {blob}, {int} of 64 bits, and
	// {end} of a table.
	Types []string
	// Lock keeps other masters from changing the schema until Unlock or, after a failure, Abandon (Unlock if
	// empty).
	Lock, Unlock, Abandon string
	// There reports that a part of a migration was made before, for databases that cannot undo half of one.
	There func(error) bool
	// Version and SetVersion read and write the version of the schema; Version returns 0 for an empty database.
	Version    func(context.Context, *sql.Conn) (int, error)
	SetVersion func(context.Context, *sql.Conn, int) error
	// Numbered is set if parameters are $1, $2, … instead of question marks.
	Numbered bool
	// Text returns an id as the database accepts it, since ids may be any text; nil means unchanged.
	Text func(string) any
	// Insert and Ignore stand before INTO and after the values of an insert that does nothing if the row exists.
	Insert, Ignore string
	// Lines, where one row is much cheaper than many, is the expression that makes one text of all values of a
	// column, one per line; %s is the column. It is for ids of minions, which have no line breaks.
	Lines string
	// Returning is set if an update can return the new values.
	Returning bool
	// ForUpdate locks a row that is about to be changed.
	ForUpdate string
	// Retry reports that a transaction failed because of another one, and may succeed when repeated.
	Retry func(error) bool
	// Lost reports that the server went away or is starting, so that a repetition may succeed a little later. It is
	// then unknown whether the transaction happened. nil means never.
	Lost func(error) bool
	// MaxValue, where the server has such a limit, is the query for the largest value in bytes. Larger ones are not
	// sent, because MariaDB's prepared statements do not recover from one.
	MaxValue string
	// Listen calls wake whenever a message may have been sent, until ctx ends; Notify is the statement that
	// triggers it. Without them messages are polled.
	Listen func(ctx context.Context, wake func())
	Notify string
	// Told, if set, returns the text that adds to the counter "relay", writes messages, made at a time, with the
	// numbers up to its new value, does what Notify does, and commits: statements in one round trip to the server.
	Told func(list []store.Message, made int64) string
	// Size, if set, is the query for the bytes that all rows take, without what was freed.
	Size string
	// Room, if set, returns how many bytes the database may take by default.
	Room func() int64
	// Tidy, if set, is called when many writes are over and no others wait.
	Tidy func(*sql.DB)
	// Explain, if set, adds to the error of a write what the database does not report about its cause.
	Explain func(error) error
}

// idParam returns an id as a parameter.
func (d *Dialect) idParam(s string) any {
	if d.Text != nil {
		return d.Text(s)
	}
	return s
}

// rewrite returns a statement with parameters in the form of the database.
func (d *Dialect) rewrite(text string) string {
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

// maxTries is how often a transaction is started that others disturb.
const maxTries = 10

// A Store is an open database; store.Store documents its methods.
type Store struct {
	db *sql.DB
	d  Dialect

	maxValue   int64 // the result of Dialect.MaxValue, 0 for no limit
	statements statements

	mu     sync.Mutex // guards writes and closed
	writes []write    // they wait for the next transaction
	closed bool       // nothing more is added to writes
	wake   chan struct{}

	once sync.Once
	stop chan struct{}
	wg   sync.WaitGroup
	err  error // of closing
}

var _ store.Paged = (*Store)(nil)

// A write is a change that waits for its transaction; only the writer calls do.
type write struct {
	ctx  context.Context
	do   func(*txn) error
	done chan error
}

// patience is how long writes and reads wait for a server that is away.
const patience = 90 * time.Second

// awayPause is the pause between attempts meanwhile.
const awayPause = 250 * time.Millisecond

// Open prepares a database and starts the writer. Close the store after the master ended; that also closes the
// database.
func Open(db *sql.DB, d Dialect) (*Store, error) {
	if err := migrateSchema(db, &d); err != nil {
		return nil, err
	}
	s := &Store{db: db, d: d, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	s.statements.all = make(map[string]*sql.Stmt)
	if d.MaxValue != "" {
		if err := db.QueryRow(d.MaxValue).Scan(&s.maxValue); err != nil {
			return nil, fmt.Errorf("cannot read the limits of the database: %w", err)
		}
	}
	s.wg.Go(s.runWriter)
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

// writeChange runs a change in the writer's next transaction and waits for the commit. Once queued the change
// happens, and its outcome must be known even if ctx ends meanwhile; only a server that is away is not waited for then.
func (s *Store) writeChange(ctx context.Context, do func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := write{ctx, do, make(chan error, 1)}
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

// signal wakes the writer.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Store) runWriter() {
	quiet := time.NewTimer(tidyAfter)
	quiet.Stop()
	defer quiet.Stop()
	untidy := 0 // writes
	for {
		select {
		case <-s.wake:
			batch := s.takeBatch()
			if len(batch) == 0 {
				break // it was taken with what came before
			}
			s.commitBatch(batch)
			if untidy += len(batch); s.d.Tidy != nil && untidy >= tidyWrites {
				quiet.Reset(tidyAfter)
			}
		case <-quiet.C:
			untidy = 0
			s.d.Tidy(s.db)
		case <-s.stop:
			for batch := s.takeBatch(); len(batch) > 0; batch = s.takeBatch() {
				s.commitBatch(batch)
			}
			return
		}
	}
}

// takeBatch takes the waiting writes, as many as fit in a transaction.
func (s *Store) takeBatch() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := s.writes
	if s.writes = nil; len(batch) > maxBatch {
		batch, s.writes = batch[:maxBatch:maxBatch], batch[maxBatch:]
		s.signal()
	}
	return batch
}

// commitBatch runs a batch in one transaction. A change whose statement fails is undone alone (savepoint); a commit
// that fails fails all.
func (s *Store) commitBatch(batch []write) {
	results := make([]error, len(batch))
	err := s.transact(batch, results, false)
	again := false
	end := time.Now().Add(patience)
	for try := 1; err != nil; {
		switch {
		case s.d.Retry != nil && s.d.Retry(err) && try < maxTries:
			time.Sleep(time.Duration(try) * time.Millisecond)
			try++
		case s.isLost(err) && isWanted(batch) && time.Now().Before(end) && s.waitAway(awayPause):
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
		result := cmp.Or(s.explainLost(err), results[i])
		if result != nil && s.d.Explain != nil {
			result = s.d.Explain(result)
		}
		w.done <- result
	}
}

// isWanted reports whether a caller still waits for a change of the batch. A master that stops does not.
func isWanted(batch []write) bool {
	return slices.ContainsFunc(batch, func(w write) bool { return w.ctx.Err() == nil })
}

// explainLost adds store.ErrLost to the error of a server that is away.
func (s *Store) explainLost(err error) error {
	if err == nil || !s.isLost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrLost, err)
}

// isLost reports whether the server is away.
func (s *Store) isLost(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || s.d.Lost != nil && s.d.Lost(err)
}

// waitAway waits a little, unless the store is closed.
func (s *Store) waitAway(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.stop:
		return false
	}
}

// readRetry runs something that only reads, and repeats it while the server is away.
func (s *Store) readRetry(ctx context.Context, do func() error) error {
	var lost error
	for end := time.Now().Add(patience); ; {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return cmp.Or(lost, err) // the server's absence says more than that ctx ended
		case !s.isLost(err):
			return err
		}
		lost = s.explainLost(err)
		if time.Now().After(end) || !s.waitAway(awayPause) {
			return lost
		}
	}
}

// errUndo means that a change failed after it had started, so that all must be repeated, each behind a savepoint.
var errUndo = errors.New("a change failed after it had started")

// transact runs a batch in one transaction. A savepoint costs two statements per change, so they are used only if a
// change of the batch failed without them.
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
		results[i], clean = tx.tryChange(w.do, save)
		switch {
		case clean:
		case s.isFatal(results[i]) || save:
			return results[i]
		case len(batch) == 1:
			return nil // nothing of it is kept
		default:
			return errUndo
		}
	}
	committed, err := s.flushMessages(tx)
	if err != nil || committed {
		return err
	}
	return tx.Commit()
}

// SaveJob implements store.Store.
func (s *Store) SaveJob(ctx context.Context, j store.Job) error {
	body, err := packed.PackJob(j)
	if err != nil {
		return fmt.Errorf("cannot store job %s: %w", j.JID, err)
	}
	err = s.writeChange(ctx, func(tx *txn) error {
		r, err := tx.Exec(s.d.Insert+" INTO job (jid, created, body) VALUES (?, ?, ?) "+s.d.Ignore,
			s.d.idParam(j.JID), j.Created.UnixMicro(), body)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if err == nil && n == 0 && !s.isOurs(tx, "SELECT created, body FROM job WHERE jid = ?",
			j.Created, body, j.JID) {
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
	err := s.writeChange(ctx, func(tx *txn) error {
		var body []byte
		var created int64
		err := tx.queryRow("SELECT created, body FROM job WHERE jid = ? "+s.d.ForUpdate,
			[]any{s.d.idParam(jid)}, &created, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
		j, err := packed.Job(jid, created, body)
		if err != nil {
			return err
		}
		j.Minions = store.Union(j.Minions, ids)
		if body, err = packed.PackJob(j); err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE job SET body = ? WHERE jid = ?", body, s.d.idParam(jid))
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

// saveReturn stores a return. One that the database does not accept is stored as a failure that says so, because
// repeating it would not help.
func (s *Store) saveReturn(ctx context.Context, r store.Return,
	tell []store.Message) (bool, error) {
	first, err := s.insertReturn(ctx, r, tell)
	if !errors.Is(err, store.ErrTooLarge) {
		return first, err
	}
	r.Load = maps.Clone(r.Load)
	r.Load["return"] = fmt.Sprintf("The return has %d bytes, which is %v (max_allowed_packet)",
		payload.Size(r.Load["return"]), store.ErrTooLarge)
	r.Load["success"] = false
	if code, ok := payload.Int(r.Load["retcode"]); !ok || code == 0 {
		r.Load["retcode"] = int64(1)
	}
	return s.insertReturn(ctx, r, tell)
}

func (s *Store) insertReturn(ctx context.Context, r store.Return,
	tell []store.Message) (first bool, err error) {
	body, done, err := packed.PackReturn(r)
	if err != nil {
		return false, fmt.Errorf("cannot store return of %q for job %s: %w", r.ID, r.JID, err)
	}
	defer done() // the writer is done with it when writeChange has returned
	err = s.writeChange(ctx, func(tx *txn) error {
		res, err := tx.Exec(s.d.Insert+" INTO ret (jid, id, received, body) VALUES (?, ?, ?, ?) "+
			s.d.Ignore, s.d.idParam(r.JID), s.d.idParam(r.ID), r.Received.UnixMicro(), body)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		const old = "SELECT received, body FROM ret WHERE jid = ? AND id = ?"
		first = n > 0 || err == nil && s.isOurs(tx, old, r.Received, body, r.JID, r.ID)
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

// isOurs reports whether the row in the way is that of an earlier attempt of the same transaction, whose outcome
// was unknown.
func (s *Store) isOurs(tx *txn, query string, at time.Time, body []byte, ids ...string) bool {
	if !tx.again {
		return false
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = s.d.idParam(id)
	}
	var when int64
	var there []byte
	err := tx.queryRow(query, args, &when, &there)
	return err == nil && when == at.UnixMicro() && bytes.Equal(body, there)
}

// Job implements store.Store.
func (s *Store) Job(ctx context.Context, jid string) (store.Job, error) {
	var body []byte
	var created int64
	err := s.queryRow(ctx, "SELECT created, body FROM job WHERE jid = ?", []any{s.d.idParam(jid)},
		&created, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Job{}, fmt.Errorf("cannot find job %s: %w", jid, err)
	}
	return packed.Job(jid, created, body)
}

// Returns implements store.Store.
func (s *Store) Returns(ctx context.Context, jid string) ([]store.Return, error) {
	return s.queryReturns(ctx, jid, "1 = 1")
}

// queryReturns returns the returns of a job that meet a condition with parameters, sorted by minion.
func (s *Store) queryReturns(ctx context.Context, jid, where string, args ...any) (
	out []store.Return, err error) {
	err = s.queryRows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
		var id string
		var received int64
		var body []byte
		if err := rows.Scan(&id, &received, &body); err != nil {
			return err
		}
		r, err := packed.Return(jid, id, received, body)
		out = append(out, r)
		return err
	}, "SELECT id, received, body FROM ret WHERE jid = ? AND "+where+" ORDER BY id",
		append([]any{s.d.idParam(jid)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("cannot read returns of job %s: %w", jid, err)
	}
	return out, nil
}

// Returned implements store.Paged.
func (s *Store) Returned(ctx context.Context, jid string) ([]string, error) {
	out, err := s.queryIDs(ctx, "SELECT id FROM ret WHERE jid = ?", s.d.idParam(jid))
	if err != nil {
		return nil, fmt.Errorf("cannot list the returns of job %s: %w", jid, err)
	}
	return out, nil
}

// queryIDs returns the values of a query's only column.
func (s *Store) queryIDs(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = s.queryRows(ctx, func() { out = nil }, func(rows *sql.Rows) error {
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
	for chunk := range slices.Chunk(ids, manyIDs) {
		among, args := s.among("id", chunk)
		found, err := s.queryReturns(ctx, jid, among, args...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// Jobs implements store.Store.
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]store.Job, error) {
	if f.Limit <= 0 {
		f.Limit = store.DefaultLimit
	}
	// Without a time there is no condition on it: the newest jobs then come by their key, and no others are read and
	// sorted.
	where, args := "", []any{s.d.idParam(f.Minion)}
	if !f.Since.IsZero() {
		where, args = " AND created >= ?", append(args, f.Since.UnixMicro())
	}
	if !f.Before.IsZero() {
		where, args = where+" AND created < ?", append(args, f.Before.UnixMicro())
	}
	if where != "" {
		where = " WHERE" + strings.TrimPrefix(where, " AND")
	}
	rows, err := s.db.QueryContext(ctx, s.d.rewrite("SELECT jid, created, body, "+
		"EXISTS (SELECT 1 FROM ret WHERE ret.jid = job.jid AND ret.id = ?) "+
		"FROM job"+where+" ORDER BY jid DESC"), args...)
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
		j, err := packed.Job(jid, created, body)
		if err != nil {
			return nil, err
		}
		if f.Minion == "" || returned || slices.Contains(j.Minions, f.Minion) {
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
	err := s.db.QueryRowContext(ctx,
		s.d.rewrite("SELECT created FROM job ORDER BY created DESC LIMIT 1 OFFSET ?"),
		keep).Scan(&us)
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
	err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM job").Scan(&jobs)
	if err == nil && s.d.Size != "" {
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
	err := s.writeChange(ctx, func(tx *txn) error {
		us := before.UnixMicro()
		if err := s.purgeOrders(tx, us); err != nil {
			return err
		}
		// What is left of orders is still in progress.
		const done = " AND jid NOT IN (SELECT jid FROM delivery WHERE state = 1)"
		if _, err := tx.Exec("DELETE FROM ret WHERE jid IN (SELECT jid FROM job WHERE created < ?"+
			done+")", us); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM ret WHERE received < ? "+
			"AND jid NOT IN (SELECT jid FROM job)", us); err != nil {
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
		return 0, fmt.Errorf("cannot remove old jobs: %w", err)
	}
	return int(n), nil
}
