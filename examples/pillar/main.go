// Command pillar provides each minion's data from Go and files from the program itself, and applies a state that uses both.
package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/pillar"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/states/all"
)

//go:embed tree
var tree embed.FS

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "pillar")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := fs.Sub(tree, "tree")
	if err != nil {
		return err
	}
	m, err := master.New(master.Options{
		Network: master.Loopback(), Keys: master.KeyOptions{AutoAccept: true},
		Files:  master.FileOptions{FS: files}, // salt:// of the environment base
		Pillar: master.PillarOptions{Func: greeting(dir)},
	})
	if err != nil {
		return err
	}
	stop, err := local.Serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	out, err := m.RunOrder(ctx, master.Order{Job: master.Job{Fun: "state.apply", Args: []any{"motd"}, Tgt: []string{"web1"}}})
	if err != nil {
		return err
	}
	r := out.Results["web1"]
	fmt.Println("success:", r.Success)
	for _, s := range r.States() {
		fmt.Println(s.Function, s.ID, s.OK)
	}
	text, err := os.ReadFile(filepath.Join(dir, "motd"))
	if err != nil {
		return err
	}
	fmt.Print(string(text))
	return nil
}

// greeting returns the pillar of each minion: the text of the message of the day, and the path of its file in dir.
func greeting(dir string) pillar.Func {
	return func(_ context.Context, r pillar.Request) (map[string]any, error) {
		return map[string]any{"motd": "welcome to " + r.ID, "file": filepath.Join(dir, "motd")}, nil
	}
}
