package master_test

import (
	"context"
	"fmt"
	"log"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// This is the shortest master: it accepts every minion and pings those that are connected.
func ExampleMaster_Run() {
	ping := func(ctx context.Context) error {
		m, err := master.New(master.Options{PKIDir: "pki",
			Keys: master.KeyOptions{AutoAccept: true}})
		if err != nil {
			return err
		}
		go m.Serve(ctx)
		if err := m.AwaitReady(ctx); err != nil { // for example, a port is in use
			return err
		}
		results, err := m.Run(ctx, master.Job{Fun: "test.ping", Tgt: "*"})
		fmt.Println(results)
		return err
	}
	log.Fatal(ping(context.Background()))
}

// The master keeps jobs and returns in a SQLite file.
func ExampleOptions_store() {
	st, err := sqlite.Open("/var/lib/ours/jobs.db") // github.com/brine-salt/brine/master/store/sqlite
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	m, err := master.New(master.Options{Store: st})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}

// The master keeps jobs and returns in a PostgreSQL database.
func ExampleOptions_postgres() {
	st, err := postgres.Open("postgres://ours@db.example/ours") // github.com/brine-salt/brine/master/store/postgres
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}

// Masters that share a database take over the keys of a stand-alone master.
func ExampleShared() {
	var m *master.Master // from New
	from, err := keys.Open(keys.Options{Dir: "/etc/salt/pki/master"})
	if err != nil {
		log.Fatal(err)
	}
	n, err := keys.Copy(m.Keys(), from)
	fmt.Println(n, err)
}
