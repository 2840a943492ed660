package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/store"
)

var errAway = errors.New("connection refused")

// away is a server that cannot be reached.
type away struct{}

func (away) Connect(context.Context) (driver.Conn, error) { return nil, errAway }

func (away) Driver() driver.Driver { return nil }

// TestLostServer: a read fails after its timeout if the server is away, and a master that stops does not wait for a
// write.
func TestLostServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{db: sql.OpenDB(away{}), wake: make(chan struct{}, 1), stop: make(chan struct{}),
			d: Dialect{Lost: func(err error) bool { return errors.Is(err, errAway) }}}
		s.statements.all = make(map[string]*sql.Stmt)
		s.wg.Go(s.runWriter)
		defer s.Close()
		read := func(ctx context.Context) error {
			return s.queryRow(ctx, "SELECT 1", nil, new(int))
		}
		write := func(ctx context.Context) error {
			return s.writeChange(ctx, func(*txn) error { return nil })
		}
		for _, c := range []struct {
			name string
			do   func(context.Context) error
			ends time.Duration // of the context; 0 is never
			want time.Duration
		}{
			{"read", read, 20 * time.Second, 20 * time.Second}, {"read", read, 0, patience},
			{"write", write, 5 * time.Second, 5 * time.Second}, {"write", write, 0, patience},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if c.ends > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), c.ends)
			}
			began := time.Now()
			err := c.do(ctx)
			if !errors.Is(err, store.ErrLost) || !errors.Is(err, errAway) {
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(began); took < c.want-awayPause || took > c.want+2*awayPause {
				t.Errorf("%s of %v took %v", c.name, c.ends, took)
			}
			cancel()
		}
	})
}
