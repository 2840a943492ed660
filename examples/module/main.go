// Command module is an agent with its own execution module, "greet", and a master that calls it. Every agent should also have the
// modules sys and test, because a master pings a minion with test.ping.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/sysmod"
	_ "github.com/brine-salt/brine/modules/test"
)

// greet is the minion's only module besides sys and test. The minion can call only functions that are linked in.
var greet = &modules.Module{Name: "greet", Doc: "Greetings.", Funcs: []modules.Def{{
	Name: "hello",
	Doc:  "Greet somebody.", Example: "salt '*' greet.hello Ada",
	Params: []modules.Param{{Name: "name", Type: modules.String, Default: "world"}},
	Run: func(_ context.Context, c *modules.Call) (any, error) {
		if c.Str("name") == "" {
			return nil, modules.Errorf("nobody to greet") // the minion returns the text as the error of the job
		}
		return "Hello " + c.Str("name") + " from " + c.ID, nil
	},
}}}

func init() { modules.Register(greet) }

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
	dir, err := os.MkdirTemp("", "module")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	for _, job := range []master.Job{
		{Fun: "greet.hello"},
		{Fun: "greet.hello", Args: []any{"Ada"}},
		{Fun: "greet.hello", Kwargs: map[string]any{"name": ""}},
		{Fun: "greet.goodbye"},
		{Fun: "sys.list_functions", Args: []any{"greet"}},
	} {
		job.Tgt = []string{"web1"}
		out, err := m.RunOrder(ctx, master.Order{Job: job})
		if err != nil {
			return err
		}
		r := out.Results["web1"]
		fmt.Println(r.Success, r.Return)
	}
	return nil
}
