// Command hello is the smallest Salt master: it pings one minion.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

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
	m, err := master.New(master.Options{
		Network: master.Loopback(), // leave this out for Salt's ports, 4505 and 4506
		Keys:    master.KeyOptions{AutoAccept: true},
	})
	if err != nil {
		return err
	}
	stop, err := local.Serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()

	dir, err := os.MkdirTemp("", "hello")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	// An order waits until its minion is connected. m.Run would reach only minions that are connected now.
	out, err := m.RunOrder(ctx, master.Order{Job: master.Job{Fun: "test.ping", Tgt: []string{"web1"}}})
	if err != nil {
		return err
	}
	fmt.Println("web1:", out.Results["web1"].Return)
	return nil
}
