package master_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/join"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/events"
)

// This program is a Salt master. It serves stock minions and brine's, opens only its two ports, and pings all
// connected minions once a minute.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	m, err := master.New(master.Options{
		PKIDir:   "/var/lib/ours/pki",
		CacheDir: "/var/lib/ours/cache",
		Keys:     master.KeyOptions{AutoAccept: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if m.AwaitReady(ctx) != nil {
			return // Serve returns the same error
		}
		for ctx.Err() == nil {
			results, err := m.Run(ctx, master.Job{Fun: "test.ping", Tgt: "*"})
			fmt.Println(results, err)
			time.Sleep(time.Minute)
		}
	}()
	if err := m.Serve(ctx); err != nil {
		log.Fatal(err)
	}
}

// Next returns each result as soon as the minion has sent it. Minions that did not answer follow at the end.
func ExampleMaster_Submit() {
	var m *master.Master // from New, serving
	ctx := context.Background()
	run, err := m.Submit(ctx, master.Job{Fun: "cmd.run", Args: []any{"uptime"}, Tgt: "G@os:Debian and web*", TgtType: "compound"})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	for {
		r, err := run.Next(ctx)
		if err != nil {
			break // io.EOF: there are no more results
		}
		fmt.Println(r.ID, r.Status, r.Retcode, r.Return)
	}
}

// The program supplies files, pillar and the decision about new keys.
func ExampleNew() {
	known := map[string]string{"web1": "the public key that the machine was made with"}
	m, err := master.New(master.Options{
		Files: master.FileOptions{FS: fstest.MapFS{"motd.sls": {Data: []byte("/etc/motd:\n  file.managed:\n    - contents: hello\n")}}, Access: func(f master.FileRequest) bool { return f.Path != "private" || f.ID == "web1" }},
		Pillar: master.PillarOptions{Func: func(ctx context.Context,
			r pillar.Request) (map[string]any, error) {
			return map[string]any{"name": r.ID}, nil
		}},
		Store: store.NewMemory(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for id, key := range known {
		if err := m.Keys().Preseed(id, key); err != nil {
			fmt.Println("web1 needs a real key")
		}
	}
	// Output: web1 needs a real key
}

// A program can subscribe to all events of the master.
func ExampleMaster_Events() {
	var m *master.Master // from New
	s := m.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/minion/"})
	defer s.Close()
	for e := range s.All(context.Background()) {
		if e.Missed > 0 {
			fmt.Println(e.Missed, "events were lost: this loop is too slow")
			continue
		}
		fmt.Println(e.Tag, e.Data["id"])
	}
}

// A minion is announced before its machine exists.
func ExampleMaster_EnsureMinion() {
	var m *master.Master // from New
	ctx := context.Background()
	minion, err := m.EnsureMinion(ctx, master.MinionSpec{ID: "db-7", Tenant: "blue", Grains: map[string]any{"role": "db"}})
	if err != nil {
		log.Fatal(err)
	}
	userData, err := minion.CloudConfig() // for the new machine
	fmt.Println(string(userData), err)
}

// An order waits for its minion and ends in one of six ways.
func ExampleMaster_PlaceOrder() {
	var m *master.Master // from New, serving
	ctx := context.Background()
	placed, err := m.PlaceOrder(ctx, master.Order{
		ID:  "create-db-7", // placing it again returns the same order
		Job: master.Job{Fun: "state.apply", Args: []any{"database"}, Tgt: "db-7", TgtType: "list"},
		TTL: time.Hour, Deadline: time.Now().Add(2 * time.Hour),
	})
	if err != nil {
		log.Fatal(err)
	}
	done, err := m.AwaitOrder(ctx, placed.ID)
	if err != nil {
		log.Fatal(err)
	}
	switch r := done.Results["db-7"]; r.Status {
	case master.Returned:
		fmt.Println(r.Retcode, r.Return)
	default:
		fmt.Println(r.Status, r.StillRunning, r.Reason)
	}
}

// An order contains the files and pillar that its job needs, and can be found by its metadata.
func ExampleMaster_PlaceOrder_files() {
	var m *master.Master // from New, serving
	ctx := context.Background()
	deploy := master.Order{ID: "web-4711", Job: master.Job{Fun: "state.apply", Args: []any{"_order.web-4711.config"},
		Tgt: []string{"web-1"}, TgtType: "list", Metadata: map[string]any{"stack": "s1"}}}
	deploy.Files = map[string]string{
		"config.sls": "motd:\n  file.managed:\n    - name: /etc/motd\n    - source: salt://_order/web-4711/motd\n",
		"motd":       "hello\n",
	}
	deploy.Pillar = map[string]any{"port": 80}
	deploy.Secret = true // arguments are also sealed wherever the master stores them
	if _, err := m.PlaceOrder(ctx, deploy); err != nil {
		log.Fatal(err)
	}
	mine, err := m.Orders(ctx, master.OrderFilter{Metadata: map[string]string{"stack": "s1"}})
	fmt.Println(mine, err)
}

// A change is applied to the minions of a target in batches and stops when one fails.
func ExampleMaster_Batch() {
	var m *master.Master // from New, serving
	ctx := context.Background()
	change := master.Order{ID: "release-12", Job: master.Job{Fun: "state.apply", Tgt: "role:web", TgtType: "grain"}}
	orders, err := m.Split(ctx, change)
	if err != nil {
		log.Fatal(err)
	}
	outcomes, err := m.Batch(ctx, orders, master.Rolling{Size: 5, Pause: 10 * time.Second})
	fmt.Println(outcomes, err)
}

// A listener that was disconnected continues where it stopped.
func ExampleMaster_Follow() {
	var m *master.Master // from New
	ctx, cursor := context.Background(), ""
	for e := range m.Follow(ctx, cursor, "brine/order/*", "salt/job/*/ret/*") {
		if e.Missed > 0 {
			fmt.Println("some events are gone: look at the orders with OrderOutcome")
		}
		fmt.Println(e.Tag, e.Data)
		cursor = e.Cursor
	}
}

// Minions that prove their identity are accepted without an operator.
func ExampleAcceptor() {
	var ca, amazon *x509.Certificate // your own authority, and the provider's certificate for the region
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	o := master.Options{Keys: master.KeyOptions{Acceptors: []master.Acceptor{
		join.X509{Roots: roots}.Acceptor(),
		join.Document{Name: "ec2", Open: join.EC2(amazon), Claim: "instanceId", Issued: "pendingTime", MaxAge: time.Hour}.Acceptor(),
		{Name: "ours", Judge: func(ctx context.Context, a master.Applicant) (master.Verdict, error) {
			if a.Announced {
				return master.Verdict{Decision: master.Accept, Reason: "it was announced"}, nil
			}
			return master.Verdict{}, nil // leaves the decision to the next acceptor
		}},
	}}}
	m, err := master.New(o)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}
