// Command events prints the events of its master: a minion signs in, starts, and runs a job.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

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
	sub := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/"})
	defer sub.Close()

	dir, err := os.MkdirTemp("", "events")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		switch {
		case e.Missed > 0:
			fmt.Println(e.Missed, "events were lost: this loop is too slow")
		case e.Tag == "salt/auth":
			fmt.Println("sign-in of", e.Text("id"), "→", e.Text("act"))
		case e.Tag == "salt/minion/web1/start":
			fmt.Println(e.Text("id"), "is connected")
			if _, err := m.PlaceOrder(ctx, master.Order{Job: master.Job{Fun: "test.echo", Args: []any{"hi"}, Tgt: []string{"web1"}}}); err != nil {
				return err
			}
		case strings.HasPrefix(e.Tag, "salt/job/") && strings.HasSuffix(e.Tag, "/ret/web1") && e.Text("fun") == "test.echo":
			fmt.Println(e.Text("id"), "returned", e.Data["return"])
			return nil
		}
	}
}
