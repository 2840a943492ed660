// Command order places an order for a minion that does not exist yet. The master keeps the order and delivers it when the minion connects.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	_ "github.com/brine-salt/brine/modules/test"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m, err := master.New(master.Options{Network: master.Loopback(),
		Keys: master.KeyOptions{AutoAccept: true}})
	if err != nil {
		return err
	}
	stop, err := local.Serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()

	job := master.Job{Fun: "test.echo", Args: []any{"created"}, Tgt: []string{"db-7"}}
	placed, err := m.PlaceOrder(ctx, master.Order{ID: "create-db-7", Job: job, TTL: time.Hour})
	if err != nil {
		return err
	}
	fmt.Println(placed.ID, placed.Results["db-7"].Status)

	// Placing it again returns the same order. After a crash a program can place it again without knowing whether it had.
	if _, err := m.PlaceOrder(ctx, master.Order{ID: "create-db-7", Job: job, TTL: time.Hour}); err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "order")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "db-7", dir) // the machine is up now
	if err != nil {
		return err
	}
	defer end()

	done, err := m.AwaitOrder(ctx, "create-db-7")
	if err != nil {
		return err
	}
	r := done.Results["db-7"]
	fmt.Println(done.ID, r.Status, r.Return)

	// An order for a minion that never connects ends, too.
	if _, err := m.PlaceOrder(ctx, master.Order{ID: "create-db-8", TTL: time.Second,
		Job: master.Job{Fun: "test.ping", Tgt: []string{"db-8"}}}); err != nil {
		return err
	}
	done, err = m.AwaitOrder(ctx, "create-db-8")
	if err != nil {
		return err
	}
	r = done.Results["db-8"]
	fmt.Printf("%s %s: %s\n", done.ID, r.Status, r.Reason)
	return nil
}
