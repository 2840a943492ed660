// Command restart keeps jobs and orders in an SQLite file. A restarted master continues with them.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
	_ "github.com/brine-salt/brine/modules/test"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "restart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := first(ctx, dir); err != nil {
		return err
	}
	return second(ctx, dir)
}

// start starts a master with its keys and its database in dir.
func start(ctx context.Context, dir string) (m *master.Master, stop func() error, err error) {
	db, err := sqlite.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		return nil, nil, err
	}
	m, err = master.New(master.Options{Network: master.Loopback(),
		Keys:   master.KeyOptions{AutoAccept: true},
		PKIDir: filepath.Join(dir, "pki"), Store: db})
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	end, err := local.Serve(ctx, m)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return m, func() error {
		defer db.Close()
		return end()
	}, nil
}

// first places an order and ends before the minion connects.
func first(ctx context.Context, dir string) error {
	m, stop, err := start(ctx, dir)
	if err != nil {
		return err
	}
	placed, err := m.PlaceOrder(ctx, master.Order{ID: "create-db-7", TTL: time.Hour,
		Job: master.Job{Fun: "test.echo", Args: []any{"created"}, Tgt: []string{"db-7"}}})
	if err != nil {
		return err
	}
	fmt.Println("first master:", placed.ID, placed.Results["db-7"].Status)
	return stop()
}

// second finds the order in the database, delivers it, and reports its end.
func second(ctx context.Context, dir string) error {
	m, stop, err := start(ctx, dir)
	if err != nil {
		return err
	}
	end, err := local.Minion(ctx, m, "db-7", dir)
	if err != nil {
		return err
	}
	defer end()
	done, err := m.AwaitOrder(ctx, "create-db-7")
	if err != nil {
		return err
	}
	r := done.Results["db-7"]
	fmt.Println("second master:", done.ID, r.Status, r.Return)
	return stop()
}
