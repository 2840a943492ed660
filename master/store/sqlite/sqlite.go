// Package sqlite keeps jobs and returns in an SQLite file: nothing to operate, and what was acknowledged to a minion is on
// the disk. The driver is pure Go. Writes of many goroutines share a transaction, so a thousand returns at once cost a few
// synchronisations of the disk, not a thousand.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/brine-salt/brine/master/store"
)

// schemaVersion is user_version of the files that this package writes.
const schemaVersion = 1

const schema = `
CREATE TABLE IF NOT EXISTS job (
	jid     TEXT PRIMARY KEY,
	created INTEGER NOT NULL, -- microseconds since 1970
	body    BLOB NOT NULL     -- msgpack
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS job_created ON job (created);
CREATE TABLE IF NOT EXISTS ret (
	jid      TEXT NOT NULL,
	id       TEXT NOT NULL,
	received INTEGER NOT NULL,
	body     BLOB NOT NULL,
	UNIQUE (jid, id)
);
CREATE INDEX IF NOT EXISTS ret_received ON ret (received);
`

// maxBatch is how many writes share one transaction.
const maxBatch = 256

// Store is an open file. See store.Store for its methods.
type Store struct {
	db     *sql.DB
	writes chan write

	once sync.Once
	stop chan struct{}
	wg   sync.WaitGroup
	err  error // of closing
}

var _ store.Store = (*Store)(nil)

// write is a change that waits for its transaction; do is called by the writer only.
type write struct {
	do   func(*sql.Tx) error
	done chan error
}

// Open opens the file at path, creating it (0600) when it is missing. Close the store after the master ended.
func Open(path string) (*Store, error) {
	// SQLite would create the file with the process's umask; returns may hold secrets.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store: %w", err)
	}
	f.Close()
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-1024)",
		"temp_store(MEMORY)"}, "_txlock": {"immediate"}}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath(), RawQuery: q.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	db.SetMaxOpenConns(3) // the writer and two readers; each has a page cache of 1 MiB
	db.SetMaxIdleConns(1)
	if err := prepare(db); err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open job store %q: %w", path, err)
	}
	s := &Store{db: db, writes: make(chan write, maxBatch), stop: make(chan struct{})}
	s.wg.Go(s.writer)
	return s, nil
}

func prepare(db *sql.DB) error {
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("its version is %d, newer than %d", version, schemaVersion)
	}
	if _, err := db.Exec(schema); err != nil {
		return err
	}
	_, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	return err
}

// Close writes what waits and closes the file.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.wg.Wait()
		s.err = s.db.Close()
	})
	return s.err
}

var errClosed = errors.New("job store is closed")

// update runs a change in the writer's next transaction and waits for the commit.
func (s *Store) update(ctx context.Context, do func(*sql.Tx) error) error {
	w := write{do, make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-s.stop:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	// Once queued, the change happens: its outcome must be known even if ctx ends meanwhile.
	select {
	case err := <-w.done:
		return err
	case <-s.stop:
	}
	s.wg.Wait()
	select {
	case err := <-w.done:
		return err
	default:
		return errClosed
	}
}

func (s *Store) writer() {
	for {
		select {
		case w := <-s.writes:
			s.commit(s.collect(w))
		case <-s.stop:
			for {
				select {
				case w := <-s.writes:
					s.commit(s.collect(w))
				default:
					return
				}
			}
		}
	}
}

// collect takes what else waits already.
func (s *Store) collect(w write) []write {
	batch := []write{w}
	for len(batch) < maxBatch {
		select {
		case w := <-s.writes:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch in one transaction. A change whose statement fails is undone alone (savepoint); a failing commit
// fails all.
func (s *Store) commit(batch []write) {
	results := make([]error, len(batch))
	err := func() error {
		tx, err := s.db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for i, w := range batch {
			if _, err := tx.Exec("SAVEPOINT one"); err != nil {
				return err
			}
			if results[i] = w.do(tx); results[i] != nil {
				if _, err := tx.Exec("ROLLBACK TO one"); err != nil {
					return err
				}
			}
			if _, err := tx.Exec("RELEASE one"); err != nil {
				return err
			}
		}
		return tx.Commit()
	}()
	for i, w := range batch {
		if err != nil {
			w.done <- err
		} else {
			w.done <- results[i]
		}
	}
}

// SaveJob implements store.Store.
func (s *Store) SaveJob(ctx context.Context, j store.Job) error {
	body, err := packJob(j)
	if err != nil {
		return fmt.Errorf("cannot store job %s: %w", j.JID, err)
	}
	err = s.update(ctx, func(tx *sql.Tx) error {
		r, err := tx.Exec("INSERT INTO job (jid, created, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", j.JID, j.Created.UnixMicro(), body)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, store.ErrExists)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot store job %s: %w", j.JID, err)
	}
	return nil
}

// AddMinions implements store.Store.
func (s *Store) AddMinions(ctx context.Context, jid string, ids []string) error {
	err := s.update(ctx, func(tx *sql.Tx) error {
		var body []byte
		var created int64
		err := tx.QueryRow("SELECT created, body FROM job WHERE jid = ?", jid).Scan(&created, &body)
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
		_, err = tx.Exec("UPDATE job SET body = ? WHERE jid = ?", body, jid)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot add minions to job %s: %w", jid, err)
	}
	return nil
}

// SaveReturn implements store.Store.
func (s *Store) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	body, err := packReturn(r)
	if err != nil {
		return false, fmt.Errorf("cannot store return of %q for job %s: %w", r.ID, r.JID, err)
	}
	var n int64
	err = s.update(ctx, func(tx *sql.Tx) error {
		res, err := tx.Exec("INSERT INTO ret (jid, id, received, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", r.JID, r.ID, r.Received.UnixMicro(), body)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot store return of %q for job %s: %w", r.ID, r.JID, err)
	}
	return n > 0, nil
}

// Job implements store.Store.
func (s *Store) Job(ctx context.Context, jid string) (store.Job, error) {
	var body []byte
	var created int64
	err := s.db.QueryRowContext(ctx, "SELECT created, body FROM job WHERE jid = ?", jid).Scan(&created, &body)
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
	rows, err := s.db.QueryContext(ctx, "SELECT id, received, body FROM ret WHERE jid = ? ORDER BY id", jid)
	if err != nil {
		return nil, fmt.Errorf("cannot find returns of job %s: %w", jid, err)
	}
	defer rows.Close()
	var out []store.Return
	for rows.Next() {
		var id string
		var received int64
		var body []byte
		if err := rows.Scan(&id, &received, &body); err != nil {
			return nil, fmt.Errorf("cannot find returns of job %s: %w", jid, err)
		}
		r, err := unpackReturn(jid, id, received, body)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot find returns of job %s: %w", jid, err)
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
	rows, err := s.db.QueryContext(ctx, "SELECT jid, created, body, "+
		"EXISTS (SELECT 1 FROM ret WHERE ret.jid = job.jid AND ret.id = ?) "+
		"FROM job WHERE created >= ? AND created < ? ORDER BY jid DESC", f.Minion, since, before)
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

// Purge implements store.Store.
func (s *Store) Purge(ctx context.Context, before time.Time) (int, error) {
	var n int64
	err := s.update(ctx, func(tx *sql.Tx) error {
		us := before.UnixMicro()
		if _, err := tx.Exec("DELETE FROM ret WHERE jid IN (SELECT jid FROM job WHERE created < ?)", us); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM ret WHERE received < ? AND jid NOT IN (SELECT jid FROM job)", us); err != nil {
			return err
		}
		r, err := tx.Exec("DELETE FROM job WHERE created < ?", us)
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
