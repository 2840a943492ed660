// Command fingerprint accepts minions by the fingerprint of their keys, which "salt-call --local key.finger" prints on their hosts.
// No operator has to accept a key, and the master refuses a key with another fingerprint.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/brine-salt/brine/examples/internal/local"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/join"
	_ "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/events"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// inventory holds the fingerprints of the program's hosts, by minion id.
type inventory struct {
	mu           sync.Mutex
	fingerprints map[string]string
}

func (i *inventory) fingerprint(_ context.Context, id string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fingerprints[id], nil // "" if unknown: the key stays pending, as on any Salt master
}

func (i *inventory) add(id, fingerprint string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fingerprints[id] = fingerprint
}

func run(ctx context.Context) error {
	known := &inventory{fingerprints: map[string]string{}}
	m, err := master.New(master.Options{
		Network: master.Loopback(),
		Keys:    master.KeyOptions{Acceptors: []master.Acceptor{join.Fingerprints(known.fingerprint)}},
	})
	if err != nil {
		return err
	}
	stop, err := local.Serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	signIns := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/auth"})
	defer signIns.Close()

	dir, err := os.MkdirTemp("", "fingerprint")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end, err := local.Minion(ctx, m, "web1", dir)
	if err != nil {
		return err
	}
	defer end()

	e, err := signIns.Next(ctx)
	if err != nil {
		return err
	}
	fmt.Println("web1 before its fingerprint is known:", e.Text("act"))

	// The operator reads the fingerprint on the host. Here the key is in the next directory.
	key, err := os.ReadFile(filepath.Join(dir, "web1/etc/salt/pki/minion/minion.pub"))
	if err != nil {
		return err
	}
	fingerprint, err := join.Fingerprint(string(key))
	if err != nil {
		return err
	}
	known.add("web1", fingerprint)

	out, err := m.RunOrder(ctx, master.Order{TTL: time.Minute, Job: master.Job{Fun: "test.ping", Tgt: []string{"web1"}}})
	if err != nil {
		return err
	}
	r := out.Results["web1"]
	if r.Status != master.Returned {
		return errors.New(r.Reason)
	}
	fmt.Println("web1 answers:", r.Return)
	return nil
}
