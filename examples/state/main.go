// Command state is an agent with its own state module, "greeting". It applies the state four times: in test mode, to a missing file,
// to a correct file, and to a wrong one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/file"
	_ "github.com/brine-salt/brine/modules/state"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/states"
)

var greeting = &states.Module{Name: "greeting", Doc: "Files that greet.", Funcs: []states.Def{{
	Name:   "present",
	Doc:    "Make sure that a file holds a greeting.\n\nname\n    The file.\ntext : hello\n    The greeting.\n",
	Params: []modules.Param{{Name: "name"}, {Name: "text", Default: "hello"}},
	Run:    present,
}}}

func init() { states.Register(greeting) }

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	var have any = ""
	exists, err := c.Exec(ctx, "file.file_exists", c.Name())
	if err == nil && exists == true {
		have, err = c.Exec(ctx, "file.read", c.Name())
	}
	if err != nil {
		return nil, err
	}
	if have == c.Str("text")+"\n" { // file.write ends each line
		return ret.As(states.True, "The greeting is in place")
	}
	ret.Changes["old"], ret.Changes["new"] = have, c.Str("text")+"\n"
	if c.Test() {
		return ret.As(states.None, "The greeting would be written")
	}
	if _, err := c.Exec(ctx, "file.write", c.Name(), c.Str("text")); err != nil {
		return ret.As(states.False, err.Error())
	}
	return ret.As(states.True, "The greeting was written")
}

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
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	path := filepath.Join(dir, "greeting")
	for _, kwargs := range []map[string]any{{"test": true}, {}, {}, {"text": "good morning"}} {
		kwargs["name"] = path
		out, err := m.RunOrder(ctx, master.Order{Job: master.Job{Fun: "state.single", Args: []any{"greeting.present"}, Kwargs: kwargs,
			Tgt: []string{"web1"}}})
		if err != nil {
			return err
		}
		list := out.Results["web1"].States()
		if len(list) != 1 {
			return fmt.Errorf("the minion returned %v", out.Results["web1"].Return)
		}
		s := list[0]
		switch {
		case s.Pending:
			fmt.Println("pending:", s.Comment)
		case s.OK:
			fmt.Println("ok:", s.Comment)
		default:
			fmt.Println("failed:", s.Comment)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Print(string(text))
	return nil
}
