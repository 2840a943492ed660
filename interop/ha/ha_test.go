//go:build interop && linux

// Package ha tests several equal masters over one database while they are killed.
package ha

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// size is how large a run is. In CI it is small; BRINE_HA=full is the one whose numbers are published. BRINE_HA="100 1000" is one with so many
// minions and jobs; a third word "list" gives all whole minions, stock's too, the list of the masters' addresses, and "none" leaves them out.
type size struct {
	minions, jobs int
	// Every realEvery-th job is for one of real, which are whole minions. The small run has none.
	real      []real
	realEvery int
	killEvery time.Duration
	patience  time.Duration
}

func sizeOf() size {
	s := size{minions: 40, jobs: 200, realEvery: 20, killEvery: 100 * time.Millisecond, patience: 10 * time.Minute}
	text := os.Getenv("BRINE_HA")
	if text == "" {
		return s
	}
	s = size{minions: 500, jobs: 10_000, realEvery: 40, killEvery: 5 * time.Second, patience: 30 * time.Minute,
		real: []real{{"stock-3006", one}, {"stock-3007", one}, {"stock-3008", one}, {"ours-one", one}, {"ours-list", list}}}
	if text == "full" {
		return s
	}
	where := ""
	if _, err := fmt.Sscan(text+" .", &s.minions, &s.jobs, &where); err != nil {
		panic(err)
	}
	switch where {
	case "none":
		s.real = nil
	case list:
		for i := range s.real {
			s.real[i].masters = list
		}
	}
	return s
}

const masters = 5

// Environment of a master's process.
const (
	envStore = "BRINE_HA_STORE" // "postgres ", "mysql " or "sqlite " and the database
	envBind  = "BRINE_HA_BIND"  // address and ports
)

const sealing = "a sealing key for tests"

// TestMain makes the test binary a master or a minion when a test asks for one.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(envStore) != "":
		err = childMaster()
	case os.Getenv(envMinion) != "":
		err = childMinion(os.Getenv(envMinion))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

func openStore(text string) (store.Store, error) {
	kind, dsn, _ := strings.Cut(text, " ")
	switch kind {
	case "mysql":
		return mysql.Open(dsn)
	case "sqlite":
		return sqlite.Open(dsn)
	}
	return postgres.Open(dsn)
}

// childMaster is one of the masters. It takes orders from its input: "cast ID MINION N FILE" is answered with "ok ID" or "err ID why".
// SIGTERM lets it drain.
func childMaster() error {
	db, err := openStore(os.Getenv(envStore))
	if err != nil {
		return err
	}
	defer db.Close()
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{AuthRate: -1}, Store: db,
		Shared: &master.Shared{Key: []byte(sealing)},
		Jobs:   master.JobOptions{Timeout: 5 * time.Second, GatherTimeout: 10 * time.Second},
		Events: master.EventOptions{NoAuth: true}}
	if _, err := fmt.Sscan(os.Getenv(envBind), &o.Network.Interface, &o.Network.PublishPort,
		&o.Network.RetPort); err != nil {
		return err
	}
	m, err := master.New(o)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	go func() {
		<-m.Ready()
		say("ready")
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			f := strings.Fields(in.Text())
			go func() {
				// A minion of ours keeps a journal: it needs no leave to be sent an order twice. The others may, and know it again.
				o := master.Order{ID: f[1], TTL: time.Hour, Parallel: true, Idempotent: !strings.HasPrefix(f[2], "ours-"), Job: master.Job{Fun: "swarm.count", Args: []any{f[3]}, Tgt: []string{f[2]}, TgtType: "list"}}
				if len(f) > 4 {
					o.Fun, o.Args = "cmd.run", []any{"echo " + f[3] + " >> " + f[4]}
				}
				_, err := m.PlaceOrder(context.Background(), o)
				if err != nil {
					say("err %s %v", f[1], err)
					return
				}
				say("ok %s", f[1])
			}()
		}
		cancel() // the test is gone
	}()
	go func() {
		<-ctx.Done()
		d, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = m.Drain(d)
	}()
	return m.Serve(context.Background())
}

// proc is a master's process.
type proc struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex // guards waiting
	waiting map[string]chan string
	said    []string
}

// cluster is all masters.
type cluster struct {
	t        *testing.T
	env      string
	pub, ret int

	slots [masters]sync.Mutex // held while a master is replaced
	mu    sync.Mutex          // guards procs
	procs [masters]*proc
}

func (c *cluster) start(i int) *proc {
	c.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envStore+"="+c.env, fmt.Sprintf("%s=%s %d %d", envBind, addr(i), c.pub, c.ret))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	p := &proc{cmd: cmd, in: in, ready: make(chan struct{}), done: make(chan struct{}), waiting: make(map[string]chan string)}
	go p.read(out)
	c.mu.Lock()
	c.procs[i] = p
	c.mu.Unlock()
	return p
}

// startAll starts the first n masters until the test ends.
func (c *cluster) startAll(n int) {
	c.t.Helper()
	c.t.Cleanup(func() {
		for _, p := range c.procs {
			if p != nil {
				p.cmd.Process.Kill()
				<-p.done
			}
		}
	})
	var procs []*proc
	for i := range n {
		procs = append(procs, c.start(i))
	}
	for _, p := range procs {
		c.await(p)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

func (p *proc) read(out io.Reader) {
	for sc := bufio.NewScanner(out); sc.Scan(); {
		f := strings.SplitN(sc.Text(), " ", 3)
		switch {
		case f[0] == "ready":
			close(p.ready)
		case len(f) > 1 && (f[0] == "ok" || f[0] == "err"):
			p.mu.Lock()
			if c := p.waiting[f[1]]; c != nil {
				c <- sc.Text()
				delete(p.waiting, f[1])
			}
			p.mu.Unlock()
		default:
			p.mu.Lock()
			p.said = append(p.said, sc.Text())
			p.mu.Unlock()
		}
	}
	_ = p.cmd.Wait()
	close(p.done)
}

// await waits until a process is ready.
func (c *cluster) await(p *proc) {
	c.t.Helper()
	select {
	case <-p.ready:
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		c.t.Errorf("a master did not start: %q", p.said)
	case <-time.After(5 * time.Minute):
		c.t.Error("a master is not ready")
	}
}

// cast has a master place an order and gives why it did not; then it is to be tried again elsewhere.
func (p *proc) cast(id, minion string, n int, file string) string {
	c := make(chan string, 1)
	p.mu.Lock()
	p.waiting[id] = c
	p.mu.Unlock()
	if _, err := fmt.Fprintf(p.in, "cast %s %s %d %s\n", id, minion, n, file); err != nil {
		return "the master is gone"
	}
	select {
	case said := <-c:
		_, why, _ := strings.Cut(strings.TrimPrefix(said, "ok "), id)
		return strings.TrimSpace(why)
	case <-p.done:
		return "the master went away"
	case <-time.After(time.Minute):
		return "the master does not answer"
	}
}

// ledger counts what jobs did.
type ledger struct {
	mu    sync.Mutex // guards the fields below
	times map[string]int
	first map[string]time.Time
}

func (l *ledger) note(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[job]++
	if l.times[job] == 1 {
		l.first[job] = time.Now()
	}
}

func TestPostgres(t *testing.T) {
	s := testserver.PostgresServer(t)
	dsn := "host=127.0.0.1 user=postgres sslmode=disable port=" + s.Port + " dbname="
	create(t, "postgres", dsn+"postgres")
	run(t, "postgres "+dsn+"brine", s)
}

func TestMariaDB(t *testing.T) {
	s := testserver.MariaDBServer(t)
	dsn := "root@tcp(127.0.0.1:" + s.Port + ")/"
	create(t, "mysql", dsn)
	run(t, "mysql "+dsn+"brine", s)
}

func create(t *testing.T, driver, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, driver, db.PingContext)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE brine"); err != nil {
		t.Fatal(err)
	}
}

// run submits jobs at masters chosen at random while these are killed, one after the other is replaced, and the database restarts.
// Every job must have been done once.
func run(t *testing.T, env string, server *testserver.Server) {
	sz := sizeOf()
	ctx, cancel := context.WithTimeout(t.Context(), sz.patience)
	defer cancel()
	c := &cluster{t: t, env: env}
	c.pub, c.ret = freeport.Port(t), freeport.Port(t)
	var addrs []swarm.Addr
	for i := range masters {
		addrs = append(addrs, swarm.Addr{Request: fmt.Sprintf("%s:%d", addr(i), c.ret)})
	}
	balance(t, c.pub)
	balance(t, c.ret)
	c.startAll(masters)
	book := &ledger{times: make(map[string]int), first: make(map[string]time.Time)}
	s, err := swarm.New(swarm.Options{Masters: addrs, Dialer: zeromq.New(), Minions: sz.minions, KeepConns: sz.minions, StartEvent: true, RequestTime: 60 * time.Second,
		Do: func(_ context.Context, id string, j protocol.Job) any {
			if j.Fun[0] == "swarm.count" {
				n, _ := payload.Text(j.Args[0][0])
				book.note(n + "@" + id)
			}
			return true
		}})
	if err != nil {
		t.Fatal(err)
	}
	sctx, stop := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.Run(sctx)
	}()
	t.Cleanup(func() { stop(); <-gone })
	for i := range sz.real {
		sz.real[i].start(t, c)
	}
	if err := s.Wait(ctx, func(st swarm.Stats) bool { return st.Ready == int64(sz.minions) }); err != nil {
		t.Fatal(err)
	}
	db := reopen(ctx, t, env)
	defer db.Close()
	for _, r := range sz.real {
		r.await(ctx, t, db)
	}
	// whom is the minion that a job is for, and the file that it counts in.
	whom := func(n int) (id, file string) {
		if k := n / sz.realEvery; n%sz.realEvery == 0 && len(sz.real) > 0 {
			r := sz.real[k%len(sz.real)]
			return r.name, r.ledger()
		}
		return s.ID(n % sz.minions), ""
	}

	begin := time.Now()
	placed := make([]time.Time, sz.jobs)
	var next atomic.Int64
	retried := &ledger{times: make(map[string]int), first: make(map[string]time.Time)}
	half := make(chan struct{})
	var submitters sync.WaitGroup
	for range 16 {
		submitters.Go(func() {
			for {
				n := int(next.Add(1) - 1)
				if n >= sz.jobs || ctx.Err() != nil {
					return
				}
				if n == sz.jobs/2 {
					close(half)
				}
				id := fmt.Sprintf("job-%05d", n)
				for {
					to, file := whom(n)
					why := c.random().cast(id, to, n, file)
					if why == "" {
						break
					}
					retried.note(why)
					if ctx.Err() != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
				placed[n] = time.Now()
			}
		})
	}
	kills := make(chan int)
	quiet := make(chan struct{})
	go func() { kills <- c.killers(ctx, sz.killEvery, quiet) }()
	select {
	case <-half:
	case <-ctx.Done():
		t.Fatal("half of the jobs were not even submitted")
	}
	server.Restart()
	t.Logf("the database was restarted after %v", time.Since(begin).Round(time.Second))
	c.roll()
	submitters.Wait()
	submitted := time.Since(begin)
	close(quiet)
	killed := <-kills

	q, _ := store.QueueOf(db)
	for said := time.Now(); ; {
		open, err := q.Deliveries(ctx, store.DeliveryFilter{Open: true})
		if err == nil && len(open) == 0 {
			break
		}
		if time.Since(said) > 20*time.Second {
			said = time.Now()
			t.Logf("after %v %d jobs and more are open: %+v", time.Since(begin).Round(time.Second), len(open), open[:min(len(open), 3)])
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("%d jobs and more have no end: %v, %+v", len(open), err, open[:min(len(open), 3)])
		}
		if ctx.Err() != nil {
			break
		}
	}
	took := time.Since(begin)
	ends := map[store.State]int{}
	for n := range sz.jobs {
		rec, err := q.Order(t.Context(), fmt.Sprintf("job-%05d", n))
		if err != nil {
			t.Fatal(err)
		}
		list, err := q.Deliveries(t.Context(), store.DeliveryFilter{JID: rec.JID})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		ends[list[0].State]++
		if list[0].State != store.Returned {
			t.Errorf("%s: %+v", rec.ID, list[0])
		}
	}
	for _, r := range sz.real {
		for _, n := range strings.Fields(readFile(t, r.ledger())) {
			book.note(n + "@" + r.name)
		}
	}
	book.mu.Lock()
	defer book.mu.Unlock()
	lost, twice := 0, 0
	var delays []time.Duration
	for n := range sz.jobs {
		to, file := whom(n)
		name := fmt.Sprintf("%d@%s", n, to)
		switch book.times[name] {
		case 1:
			if file == "" {
				delays = append(delays, book.first[name].Sub(placed[n]))
			}
		case 0:
			lost++
			t.Logf("%s is lost", name)
		default:
			twice++
			t.Logf("%s was done %d times", name, book.times[name])
		}
	}
	slices.Sort(delays)
	p := func(x float64) time.Duration {
		if len(delays) == 0 {
			return 0
		}
		return delays[int(x*float64(len(delays)-1))].Round(time.Millisecond)
	}
	t.Logf("%d jobs, %d minions of the swarm and %v, %d masters killed: submitted after %v (again because %v), all ended after %v: %v; lost %d, twice %d; delay median %v, 99 %% %v, last %v; %+v",
		sz.jobs, sz.minions, sz.real, killed, submitted.Round(time.Millisecond), retried.times, took.Round(time.Millisecond), ends, lost, twice, p(0.5), p(0.99), p(1), s.Stats())
	if lost > 0 || twice > 0 || len(book.times) != sz.jobs {
		t.Errorf("lost %d, done twice %d, %d kinds of jobs", lost, twice, len(book.times))
	}
}

// reopen opens the store beside the masters.
func reopen(ctx context.Context, t *testing.T, env string) store.Store {
	t.Helper()
	for {
		db, err := openStore(env)
		if err == nil {
			return db
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(errors.Join(err, ctx.Err()))
		}
	}
}

func (c *cluster) random() *proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[rand.N(masters)]
}

// leastKills is how many masters are killed in any run, however soon it would be over.
const leastKills = 3

// killers kills a master at random again and again, and starts it again. The next one follows when that one serves, or a machine on which
// that takes longer than the pause would have no master at all.
func (c *cluster) killers(ctx context.Context, every time.Duration, quiet chan struct{}) int {
	for n := 0; ; n++ {
		enough := quiet
		if n < leastKills {
			enough = nil
		}
		select {
		case <-time.After(every):
		case <-enough:
			return n
		case <-ctx.Done():
			return n
		}
		p := c.replace(rand.N(masters), syscall.SIGKILL)
		select {
		case <-p.ready:
		case <-p.done: // replaced, or the database is away
		case <-ctx.Done():
		}
	}
}

// replace ends a master by a signal and starts it again.
func (c *cluster) replace(i int, sig syscall.Signal) *proc {
	c.slots[i].Lock()
	defer c.slots[i].Unlock()
	c.mu.Lock()
	p := c.procs[i]
	c.mu.Unlock()
	_ = p.cmd.Process.Signal(sig)
	<-p.done
	return c.start(i)
}

// roll replaces one master after the other in an orderly way.
func (c *cluster) roll() {
	for i := range masters {
		p := c.replace(i, syscall.SIGTERM)
		select {
		case <-p.ready:
		case <-p.done: // killed
		}
	}
}
