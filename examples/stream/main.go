// Command stream prints results as they arrive, the quickest minion first, and names the minions that did not answer.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/events"
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
	started := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/minion/"})
	defer started.Close()

	dir, err := os.MkdirTemp("", "stream")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, id := range []string{"web1", "web2"} {
		end, err := local.Minion(ctx, m, id, dir)
		if err != nil {
			return err
		}
		defer end()
		if _, err := started.Next(ctx); err != nil {
			return err
		}
	}

	results, err := m.Submit(ctx, master.Job{Fun: "test.arg", Args: []any{1, 2}, Tgt: []string{"web1", "web2", "ghost"}})
	if err != nil {
		return err
	}
	defer results.Close()
	answered := 0
	for {
		r, err := results.Next(ctx)
		if errors.Is(err, io.EOF) { // every minion has answered, or the master no longer waits for it
			fmt.Println(answered, "answers")
			return nil
		}
		if err != nil {
			return err
		}
		if r.Status == master.Returned {
			answered++
			continue
		}
		fmt.Println(r.ID, r.Status)
	}
}
