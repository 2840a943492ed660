// Command order-files places an order that contains what its job needs: a state, data, and a file. Only the order's minion can
// read them. The master deletes them when the order ends.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/states/all"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// deploy is a state file. Its source is a file of the same order.
const deploy = `
config:
  file.managed:
    - name: {{ pillar['path'] }}
    - source: salt://_order/web-4711/app.conf
    - template: jinja
`

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
	dir, err := os.MkdirTemp("", "order-files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	path := filepath.Join(dir, "app.conf")
	out, err := m.RunOrder(ctx, master.Order{
		ID:     "web-4711",
		Job:    master.Job{Fun: "state.apply", Args: []any{"_order.web-4711.deploy"}, Tgt: []string{"web1"}},
		Files:  map[string]string{"deploy.sls": deploy, "app.conf": "password = {{ pillar['password'] }}\n"},
		Pillar: map[string]any{"path": path, "password": "secret"},
		Secret: true, // the master stores it only encrypted, and never logs it
	})
	if err != nil {
		return err
	}
	for _, s := range out.Results["web1"].States() {
		fmt.Println(s.Function, s.ID, s.OK)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Print(string(text))
	return nil
}
