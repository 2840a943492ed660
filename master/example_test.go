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

// A program that is a Salt master: it serves stock minions and brine's, opens only its two ports, and pings all
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
			return // Serve returns the error too
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

// Results can be read as they come: each as soon as its minion sent it, and those that did not answer at the end.
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
			break // io.EOF: that was all
		}
		fmt.Println(r.ID, r.Status, r.Retcode, r.Return)
	}
}

// Files, pillar and the decision about new keys can come from the program.
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

// Everything that happens can be listened to.
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

// A minion is announced, and its first job ordered, before its machine exists.
func ExampleMaster_EnsureMinion() {
	var m *master.Master // from New
	ctx := context.Background()
	minion, err := m.EnsureMinion(ctx, master.MinionSpec{ID: "db-7", Tenant: "blue", Grains: map[string]any{"role": "db"}})
	if err != nil {
		log.Fatal(err)
	}
	userData, err := minion.CloudConfig() // for the machine that is to be made
	fmt.Println(string(userData), err)
}

// An order waits for its minion and has one of six ends.
func ExampleMaster_PlaceOrder() {
	var m *master.Master // from New, serving
	ctx := context.Background()
	placed, err := m.PlaceOrder(ctx, master.Order{
		ID:  "create-db-7", // placing it again gives the same order
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

// An order brings along what its job needs, and is found again by its metadata.
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
	deploy.Secret = true // arguments, too, are sealed wherever the master keeps them
	if _, err := m.PlaceOrder(ctx, deploy); err != nil {
		log.Fatal(err)
	}
	mine, err := m.Orders(ctx, master.OrderFilter{Metadata: map[string]string{"stack": "s1"}})
	fmt.Println(mine, err)
}

// A change goes through the minions of a target, some at a time, and stops when one fails.
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

// Minions that prove their identity need no operator.
func ExampleAcceptor() {
	var ca, amazon *x509.Certificate // of the own authority, and the provider's for the region
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	o := master.Options{Keys: master.KeyOptions{Acceptors: []master.Acceptor{
		join.X509{Roots: roots}.Acceptor(),
		join.Document{Name: "ec2", Open: join.EC2(amazon), Claim: "instanceId", Issued: "pendingTime", MaxAge: time.Hour}.Acceptor(),
		{Name: "ours", Judge: func(ctx context.Context, a master.Applicant) (master.Verdict, error) {
			if a.Announced {
				return master.Verdict{Decision: master.Accept, Reason: "it was announced"}, nil
			}
			return master.Verdict{}, nil // no opinion
		}},
	}}}
	m, err := master.New(o)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}
