package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/brine-salt/brine/master/store"
)

// statements are prepared at first use, once per connection. There are some dozens of texts.
type statements struct {
	mu  sync.Mutex // guards all
	all map[string]*sql.Stmt
}

// prepareStmt returns a prepared statement, whose parameters are question marks.
func (s *Store) prepareStmt(ctx context.Context, query string) (*sql.Stmt, error) {
	s.statements.mu.Lock()
	st := s.statements.all[query]
	s.statements.mu.Unlock()
	if st != nil {
		return st, nil
	}
	st, err := s.db.PrepareContext(ctx, s.d.rewrite(query))
	if err != nil {
		return nil, err
	}
	s.statements.mu.Lock()
	defer s.statements.mu.Unlock()
	if other := s.statements.all[query]; other != nil {
		st.Close()
		return other, nil
	}
	s.statements.all[query] = st
	return st, nil
}

// queryRow reads one row.
func (s *Store) queryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return s.readRetry(ctx, func() error {
		st, err := s.prepareStmt(ctx, query)
		if err != nil {
			return err
		}
		return st.QueryRowContext(ctx, args...).Scan(dest...)
	})
}

// queryRows runs a query and repeats it while the server is away; begin drops what an earlier attempt found.
func (s *Store) queryRows(ctx context.Context, begin func(), each func(*sql.Rows) error,
	query string, args ...any) error {
	return s.readRetry(ctx, func() error {
		begin()
		st, err := s.prepareStmt(ctx, query)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, args...)
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

// txn is a transaction with the messages to the other masters.
type txn struct {
	*sql.Tx
	s     *Store
	stmts map[string]*sql.Stmt // of this transaction
	tell  []store.Message
	keys  bool // keys change
	// again means that an earlier attempt may have happened although it failed.
	again bool
	// changes counts statements that changed something, failed those that did not succeed.
	changes, failed int
}

func (t *txn) prepareStmt(query string) (*sql.Stmt, error) {
	if st := t.stmts[query]; st != nil {
		return st, nil
	}
	st, err := t.s.prepareStmt(context.Background(), query)
	if err != nil {
		t.failed++
		return nil, err
	}
	st = t.Tx.Stmt(st)
	t.stmts[query] = st
	return st, nil
}

// Exec runs a statement whose parameters are question marks.
func (t *txn) Exec(query string, args ...any) (sql.Result, error) {
	for _, arg := range args {
		if b, ok := arg.([]byte); ok && t.s.maxValue > 0 && int64(len(b)) >= t.s.maxValue {
			return nil, fmt.Errorf("%d bytes: %w", len(b), store.ErrTooLarge)
		}
	}
	st, err := t.prepareStmt(query)
	if err != nil {
		return nil, err
	}
	r, err := st.Exec(args...)
	if err != nil {
		t.failed++
		return nil, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		t.changes++
	}
	return r, nil
}

// Query runs a query.
func (t *txn) Query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.prepareStmt(query)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query(args...)
	if err != nil {
		t.failed++
	}
	return rows, err
}

// queryRow reads one row.
func (t *txn) queryRow(query string, args []any, dest ...any) error {
	st, err := t.prepareStmt(query)
	if err != nil {
		return err
	}
	err = st.QueryRow(args...).Scan(dest...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.failed++
	}
	return err
}

// tryChange runs one change of several. Without a savepoint it may fail only if it has not changed anything yet,
// which clean reports.
func (t *txn) tryChange(do func(*txn) error, save bool) (err error, clean bool) {
	told, keys, changes, failed := len(t.tell), t.keys, t.changes, t.failed
	if save {
		if _, err := t.Tx.Exec("SAVEPOINT one"); err != nil {
			return err, false
		}
	}
	if err = do(t); err != nil {
		t.tell, t.keys = t.tell[:told], keys
		if !save {
			known := errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrChanged) ||
				errors.Is(err, store.ErrNotFound) ||
				errors.Is(err, store.ErrTooLarge)
			return err, known && t.changes == changes && t.failed == failed
		}
		if t.s.isFatal(err) {
			return err, false
		}
		if _, e := t.Tx.Exec("ROLLBACK TO SAVEPOINT one"); e != nil {
			return e, false
		}
	}
	if save {
		if _, e := t.Tx.Exec("RELEASE SAVEPOINT one"); e != nil {
			return e, false
		}
	}
	return err, true
}

// isFatal reports whether the database has ended the whole transaction.
func (s *Store) isFatal(err error) bool {
	return s.d.Retry != nil && s.d.Retry(err) || s.isLost(err)
}
