// Command embedded-master is a service that is also a Salt master. It accepts the hosts of its inventory by the fingerprints of
// their keys, runs a job once on each of them, prints the events, and queries the state of all of them.
//
//	embedded-master -dir /var/lib/ours -hosts hosts.txt -config ours.yaml
//
// The configuration has options of the master under their names in Go: network: {publishport: 14505}. A line of the inventory is
// an id and the fingerprint that "salt-call --local key.finger" prints on that host. The hosts run brine-minion or salt-minion.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/viper"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/join"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/events"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := flag.String("dir", ".", "the directory of keys and jobs")
	hosts := flag.String("hosts", "hosts.txt", "the file of ids and fingerprints")
	config := flag.String("config", "", "a YAML file of options of the master")
	flag.Parse()
	if err := start(ctx, *dir, *hosts, *config); err != nil {
		log.Fatal(err)
	}
}

// start serves what the files say.
func start(ctx context.Context, dir, hosts, config string) error {
	known, err := readHosts(hosts)
	if err != nil {
		return err
	}
	o := master.Options{
		PKIDir: filepath.Join(dir, "pki"), CacheDir: filepath.Join(dir, "cache"), Log: slog.Default(),
		Keys: master.KeyOptions{Acceptors: []master.Acceptor{join.Fingerprints(known.fingerprint)}},
	}
	if config != "" {
		if err := readConfig(config, &o); err != nil {
			return fmt.Errorf("cannot read the configuration %s: %w", config, err)
		}
	}
	return serve(ctx, known, filepath.Join(dir, "jobs.db"), o)
}

// readConfig reads options from a file over those that are there. Its keys are the names of fields in any case, and a key that is no
// field is an error. viper folds keys at every depth: maps with names of yours, such as Jobs.Nodegroups, belong into the program.
func readConfig(path string, o *master.Options) error {
	v := viper.New()
	v.SetConfigFile(path)
	if err := v.ReadInConfig(); err != nil {
		return err
	}
	return v.UnmarshalExact(o)
}

// inventory is fingerprints by id.
type inventory map[string]string

func (i inventory) fingerprint(_ context.Context, id string) (string, error) { return i[id], nil }

// readHosts reads the inventory.
func readHosts(path string) (inventory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known := inventory{}
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		switch words := strings.Fields(sc.Text()); len(words) {
		case 0:
		case 2:
			known[words[0]] = words[1]
		default:
			return nil, fmt.Errorf("%s:%d: want an id and a fingerprint", path, n)
		}
	}
	return known, sc.Err()
}

// serve is the master until ctx ends or something fails.
func serve(ctx context.Context, known inventory, jobs string, o master.Options) error {
	db, err := sqlite.Open(jobs) // orders and jobs outlive the program
	if err != nil {
		return err
	}
	defer db.Close()
	o.Store = db
	m, err := master.New(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait() // Serve has returned before the database is closed
	defer cancel(nil)
	wg.Go(func() { cancel(m.Serve(ctx)) })
	if err := m.AwaitReady(ctx); err != nil { // for example, a port is in use
		return err
	}
	fmt.Println("serving", len(known), "hosts")

	wg.Go(func() { watch(ctx, m) })
	for id := range known {
		wg.Go(func() { prepare(ctx, m, id) })
	}
	for {
		select {
		case <-time.After(time.Minute):
			if err := ask(ctx, m, known); err != nil {
				slog.Error(err.Error())
			}
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// watch prints the sign-ins and starts of minions.
func watch(ctx context.Context, m *master.Master) {
	sub := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/"})
	defer sub.Close()
	for e := range sub.All(ctx) {
		switch {
		case e.Missed > 0:
			fmt.Println(e.Missed, "events were lost")
		case e.Tag == "salt/auth":
			fmt.Println("sign-in of", e.Text("id"), "→", e.Text("act"))
		case strings.HasPrefix(e.Tag, "salt/minion/") && strings.HasSuffix(e.Tag, "/start"):
			fmt.Println(e.Text("id"), "is connected")
		}
	}
}

// prepare has a host run a job once, whenever it comes. The order has an id, so that a program that is started again places it no second time.
func prepare(ctx context.Context, m *master.Master, id string) {
	out, err := m.RunOrder(ctx, master.Order{ID: "prepare-" + id, TTL: 30 * 24 * time.Hour,
		Job: master.Job{Fun: "grains.item", Args: []any{"osfinger"}, Tgt: []string{id}}})
	if err != nil {
		if ctx.Err() == nil {
			slog.Error("Cannot prepare a host", "id", id, "err", err)
		}
		return
	}
	switch r := out.Results[id]; r.Status {
	case master.Returned:
		fmt.Println(id, "is prepared:", r.Success, r.Return)
	default:
		fmt.Println(id, "is not prepared:", r.Status, r.Reason)
	}
}

// ask prints each answer when it comes, and at the end who did not answer.
func ask(ctx context.Context, m *master.Master, known map[string]string) error {
	ids := make([]string, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	results, err := m.Submit(ctx, master.Job{Fun: "status.uptime", Tgt: ids})
	if err != nil {
		return err
	}
	defer results.Close()
	for {
		r, err := results.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(r.ID, r.Status, r.Return)
	}
}
