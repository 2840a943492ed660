//go:build (interop || chaos) && linux

package interop

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// manyMinions returns how many minions TestNobodyIsMissed has, how many of them are stopped, how often all are
// queried, and the timeout. With BRINE_HA=full, which "make soak" sets, these are the numbers of the published
// results.
func manyMinions() (all, stopped, times int, timeout string) {
	if os.Getenv("BRINE_HA") == "full" {
		return 9000, 100, 5, "60"
	}
	return 600, 20, 2, "20"
}

// TestNobodyIsMissed queries minions that are spread over three masters with one database, through one of the
// masters. salt must show the answer of each minion and exit with 0. If some minions are stopped, it must name each
// of them on standard error and fail.
func TestNobodyIsMissed(t *testing.T) {
	all, stopped, times, timeout := manyMinions()
	db := testserver.PostgresServer(t)
	dsn := "postgres://postgres@127.0.0.1:" + db.Port + "/brine?sslmode=disable"
	createDatabase(t, db.Port)
	key := filepath.Join(t.TempDir(), "sealing.key")
	write(t, key, "a sealing key for tests")
	var addrs []swarm.Addr
	var sites []*site
	for range 3 {
		s := newSite(t, "zeromq", fmt.Sprintf("auto_accept: True\nshared_database: %q\nshared_key_file: %s\nauth_events: False\n", dsn, key))
		start(t, ours("salt-master"), "-c", filepath.Dir(s.config()))
		await(t, "a master serves", func() bool { return listening(s.ret) && listening(s.pub) && exists(s.dir+"/run/master_event_pub.ipc") })
		sites = append(sites, s)
		addrs = append(addrs, swarm.Addr{Request: fmt.Sprintf("127.0.0.1:%d", s.ret)})
	}
	stay := startSwarm(t, swarm.Options{Masters: addrs, Minions: all - stopped, Prefix: "stay-"})
	leave := startSwarm(t, swarm.Options{Masters: addrs, Minions: stopped, Prefix: "leave-"})
	stay.ready(t)
	leave.ready(t)
	config := filepath.Dir(sites[0].config())
	await(t, "the masters know who is connected", func() bool {
		out, _ := output(t, ours("salt-run"), "-c", config, "--out=json", "manage.present")
		var ids []string
		return json.Unmarshal([]byte(out), &ids) == nil && len(ids) == all
	})
	args := []string{"-c", config, "-t", timeout, "--static", "--out=json", "*", "test.ping"}
	for i := range times {
		begin := time.Now()
		got, stderr, code := askAll(t, args...)
		t.Logf("run %d: %d minions answered in %v, exit status %d", i+1, len(got), time.Since(begin).Round(time.Millisecond), code)
		if code != 0 || len(got) != all || stderr != "" {
			t.Errorf("of %d minions %d answered, exit status %d, standard error:\n%s", all, len(got), code, tailText(stderr))
		}
	}
	leave.stop()
	begin := time.Now()
	got, stderr, code := askAll(t, args...)
	t.Logf("with %d minions stopped: %d answered in %v, exit status %d", stopped, len(got), time.Since(begin).Round(time.Millisecond), code)
	var named []string
	for line := range strings.Lines(stderr) {
		if _, id, ok := strings.Cut(line, "leave-"); ok {
			named = append(named, "leave-"+id[:5])
		}
	}
	slices.Sort(named)
	if code == 0 || len(named) != stopped || len(slices.Compact(named)) != stopped {
		t.Errorf("%d of %d stopped minions are named, exit status %d, standard error:\n%s", len(named), stopped, code, tailText(stderr))
	}
	ids := slices.Collect(maps.Keys(got))
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, "stay-") })
	if len(ids) != all-stopped {
		t.Errorf("%d of %d minions that stayed are on standard output", len(ids), all-stopped)
	}
}

// askAll runs salt and parses its output, which must be one JSON object.
func askAll(t *testing.T, args ...string) (got map[string]any, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, ours("salt"), args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("salt %q: %v\n%s", args, err, tailText(errs.String()))
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("salt %q printed what is not one JSON object: %v\n%s\n%s", args, err, tailText(string(out)), tailText(errs.String()))
	}
	return got, errs.String(), cmd.ProcessState.ExitCode()
}

// runningSwarm is a swarm that runs until the test ends or stop is called.
type runningSwarm struct {
	*swarm.Swarm
	minions int64
	stop    func()
}

func startSwarm(t *testing.T, o swarm.Options) *runningSwarm {
	t.Helper()
	// As many connections as the descriptors allow.
	o.Dialer, o.Parallel, o.OneOff = zeromq.New(), 200, 1000
	s, err := swarm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	r := &runningSwarm{s, int64(o.Minions), func() { cancel(); <-done }}
	t.Cleanup(r.stop)
	return r
}

// ready waits until all minions are connected.
func (r *runningSwarm) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := r.Wait(ctx, func(st swarm.Stats) bool { return st.Ready == r.minions }); err != nil {
		t.Fatal(err)
	}
}

// createDatabase creates the database that masters share.
func createDatabase(t *testing.T, port string) {
	t.Helper()
	db, err := sql.Open("postgres", "host=127.0.0.1 user=postgres sslmode=disable dbname=postgres port="+port)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, "postgres", db.PingContext)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE brine"); err != nil {
		t.Fatal(err)
	}
}
