//go:build bench && linux

package interop

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/postgres"
)

const (
	// perMaster is the number of minions for each master and each swarm: two connections for each minion, of 20,000
	// descriptors.
	perMaster = 9000
	// maxMasters limits the number of masters. wholeMinions limits the number of minions that are separate programs.
	maxMasters, wholeMinions = 12, 200
	// maxConns is how many connections a master accepts, of 20,000 descriptors. When one master is killed, the others
	// must have room for its minions.
	maxConns = 16_000
	// scaleIdle is how long an idle cluster is measured, after a pause of the same length.
	scaleIdle = 2 * time.Minute
	// scaleStep limits each step of TestScale.
	scaleStep = 12 * time.Minute
)

// The limits for 100,000 minions. With fewer minions, the limits on time and memory are smaller in proportion.
const (
	barMemory     = 1500 << 20
	barSignIn     = 6 * time.Minute
	barOrder      = 90 * time.Second
	barTarget     = 2 * time.Second
	barResolve    = 200 * time.Millisecond
	barStatements = 50.0
	barIdle       = 0.05
	barDetect     = 30 * time.Second
	barMinions    = 100_000
)

// swarmProcess is a process of brine-swarm.
type swarmProcess struct {
	*process
	in  io.Writer
	out *json.Decoder
	n   int
}

func (s *swarmProcess) stats(t *testing.T) (st swarm.Stats) {
	t.Helper()
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.out.Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}

// startSwarmProcess starts n minions. keep of them keep their request connection, as stock minions do since 3006.28.
// The others open one for each request, as older minions do.
func startSwarmProcess(t *testing.T, program, masters, prefix, grain string, n, keep int) *swarmProcess {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, "-masters", masters, "-n", strconv.Itoa(n), "-prefix", prefix, "-keep", strconv.Itoa(keep), "-one-off", strconv.Itoa(max(n/50, 10)),
		"-parallel", "200", "-spread", "-pillar", "-grain", grain)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &swarmProcess{&process{t: t, name: prefix, cmd: cmd, log: log.Name()}, in, json.NewDecoder(out), n}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return s
}

// scaleCluster is the cluster of TestScale.
type scaleCluster struct {
	t       *testing.T
	sites   []*site
	masters []*process
	swarms  []*swarmProcess
	minions int // in all swarms
	rows    [][3]string
	db      *scaleDatabase
}

// scaleDatabase is the database that the masters share.
type scaleDatabase struct {
	name         string // as the masters' option
	open         func() (store.Store, error)
	transactions func() int64 // up to now
	bytes        func() int64 // the size of its tables and indexes
	server       *testserver.Server
}

// cpu returns the processor time of the server and its children, including those that have ended.
func (d *scaleDatabase) cpu(t *testing.T) (sum time.Duration) {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	pid := strconv.Itoa(d.server.PID())
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// After the name follow the state, the parent and so on. User and system time are fields 12 and 13; those of
		// ended children follow.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		own := filepath.Base(filepath.Dir(file)) == pid
		if len(f) < 15 || !own && f[1] != pid {
			continue
		}
		counted := f[11:13]
		if own {
			counted = f[11:15]
		}
		for _, x := range counted {
			n, _ := strconv.ParseInt(x, 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

func (c *scaleCluster) row(what, got, bar string) {
	c.rows = append(c.rows, [3]string{what, got, bar})
	fmt.Printf("%-64s %26s %26s\n", what, got, bar) // printed at once, because the run is long
}

// holds adds a row, and fails the test if the limit is exceeded.
func (c *scaleCluster) holds(ok bool, what, got, bar string) {
	if !ok {
		got += " !"
		c.t.Errorf("%s: %s, want %s", what, got, bar)
	}
	c.row(what, got, bar)
}

func (c *scaleCluster) cpu() (sum time.Duration) {
	for _, p := range c.masters {
		sum += cpuOf(c.t, p)
	}
	return sum
}

func (c *scaleCluster) swarmCPU() (sum time.Duration) {
	for _, s := range c.swarms {
		sum += cpuOf(c.t, s.process)
	}
	return sum
}

func (c *scaleCluster) memory() (sum int64) {
	for _, p := range c.masters {
		sum += memoryOf(c.t, p).pss
	}
	return sum
}

// traffic returns how many bytes the masters have read and written so far, to and from minions, the database and
// files.
func (c *scaleCluster) traffic() (sum int64) {
	for _, p := range c.masters {
		for line := range strings.Lines(readText(c.t, fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))) {
			var name string
			var n int64
			if _, err := fmt.Sscan(line, &name, &n); err == nil && (name == "rchar:" || name == "wchar:") {
				sum += n
			}
		}
	}
	return sum
}

func (c *scaleCluster) stats() (sum swarm.Stats) {
	for _, s := range c.swarms {
		st := s.stats(c.t)
		sum.Ready, sum.SignIns, sum.Refused, sum.Failed = sum.Ready+st.Ready, sum.SignIns+st.SignIns, sum.Refused+st.Refused, sum.Failed+st.Failed
		sum.Jobs, sum.Repeated, sum.Returns, sum.Retries = sum.Jobs+st.Jobs, sum.Repeated+st.Repeated, sum.Returns+st.Returns, sum.Retries+st.Retries
		sum.Asked += st.Asked
	}
	return sum
}

// await waits until the counters of all swarms satisfy a condition, and returns how long it took.
func (c *scaleCluster) await(what string, holds func(swarm.Stats) bool) time.Duration {
	c.t.Helper()
	for begin := time.Now(); ; time.Sleep(settle / 50) {
		st := c.stats()
		if holds(st) {
			return time.Since(begin)
		}
		if time.Since(begin) > scaleStep {
			c.t.Fatalf("%s: not within %v: %+v", what, scaleStep, st)
		}
	}
}

// rest waits until the masters use less than a tenth of a processor.
func (c *scaleCluster) rest() {
	for end, last := time.Now().Add(scaleStep/2), c.cpu(); time.Now().Before(end); {
		time.Sleep(5 * time.Second)
		now := c.cpu()
		if now-last < 500*time.Millisecond {
			return
		}
		last = now
	}
	c.t.Log("the masters do not come to rest")
}

// salt runs salt on the first master and returns how long it took and how many minions answered.
func (c *scaleCluster) salt(args ...string) (time.Duration, int) {
	c.t.Helper()
	args = append([]string{"-c", filepath.Dir(c.sites[0].config()), "-t", "60", "--static", "--out=json"}, args...)
	begin := time.Now()
	_, out, err := spend(c.t, ours("salt"), args...)
	took := time.Since(begin)
	var answers any
	if jsonErr := json.Unmarshal([]byte(out), &answers); jsonErr != nil {
		c.t.Fatalf("salt printed no JSON: %v, %v\n%s", err, jsonErr, tailText(out))
	}
	switch v := answers.(type) {
	case map[string]any:
		return took, len(v)
	case []any:
		return took, len(v)
	}
	return took, 0
}

// startScaleDatabase starts a database of a kind: postgres or mariadb.
func startScaleDatabase(t *testing.T, kind string) *scaleDatabase {
	t.Helper()
	d := &scaleDatabase{}
	driver, dsn := "postgres", ""
	count := "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'brine'"
	size := "SELECT pg_database_size('brine')"
	switch kind {
	case "mariadb":
		driver = "mysql"
		count = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'QUESTIONS'"
		size = "SELECT CAST(SUM(data_length + index_length) AS SIGNED) FROM information_schema.tables WHERE table_schema = 'brine'"
		s := testserver.MariaDBServer(t, "--max-connections=1000", "--innodb-flush-log-at-trx-commit=2")
		d.server = s
		root := "root@unix(" + s.Socket + ")/"
		createScaleDatabase(t, driver, root)
		dsn = root + "brine"
		d.name, d.open = "mysql:"+dsn, func() (store.Store, error) { return mysql.Open(dsn) }
	default:
		s := testserver.PostgresServer(t)
		d.server = s
		createScaleDatabase(t, driver, "postgres://postgres@127.0.0.1:"+s.Port+"/postgres?sslmode=disable")
		dsn = "postgres://postgres@127.0.0.1:" + s.Port + "/brine?sslmode=disable"
		d.name, d.open = dsn, func() (store.Store, error) { return postgres.Open(dsn) }
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	number := func(query string) func() int64 {
		return func() (n int64) {
			if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	d.transactions, d.bytes = number(count), number(size)
	return d
}

func createScaleDatabase(t *testing.T, driver, dsn string) {
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

// TestScale measures masters that share a database with BRINE_SCALE minions, 10,000 by default. Most minions are in
// processes of brine-swarm, where they share a key pair; some are separate programs. "make scale" runs it.
// BRINE_SCALE_DB is postgres or mariadb.
func TestScale(t *testing.T) {
	n := 10_000
	if text := os.Getenv("BRINE_SCALE"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 100 {
			t.Fatalf("BRINE_SCALE is %q, and no number above 100", text)
		}
	}
	masters := min(max((n+perMaster-1)/perMaster, 2), maxMasters)
	whole := min(n/50, wholeMinions)
	program := filepath.Join(t.TempDir(), "brine-swarm")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/brine-swarm").CombinedOutput(); err != nil {
		t.Fatalf("cannot build brine-swarm: %v\n%s", err, out)
	}
	db := startScaleDatabase(t, os.Getenv("BRINE_SCALE_DB"))
	key := filepath.Join(t.TempDir(), "sealing.key")
	write(t, key, "a sealing key for tests")
	c := &scaleCluster{t: t, db: db}
	fmt.Printf("\n%-64s %26s %26s\n", fmt.Sprintf("%d minions, %d of them whole, %d masters", n, whole, masters), "measured", "bar")
	var addrs []string
	for range masters {
		s := newSite(t, "zeromq", fmt.Sprintf("auto_accept: True\nshared_database: %q\nshared_key_file: %s\nauth_events: False\n", db.name, key))
		c.masters = append(c.masters, start(t, ours("salt-master"), "-c", filepath.Dir(s.config())))
		await(t, "a master serves", func() bool { return listening(s.ret) && listening(s.pub) })
		c.sites, addrs = append(c.sites, s), append(addrs, fmt.Sprintf("127.0.0.1:%d", s.ret))
	}
	time.Sleep(settle)
	empty, used, rows, theirs := c.memory(), c.cpu(), db.bytes(), db.cpu(t)

	// One minion in a hundred has another grain.
	one := max(n/100, 1)
	keep := func(share int) int { return min(share, share*max((masters-1)*maxConns-n, 0)/n) }
	c.row("minions that keep a request connection", fmt.Sprint(keep(n)), "")
	begin := time.Now()
	for i := range masters {
		share := (n - one - whole) / masters
		if i == 0 {
			share += (n - one - whole) % masters
		}
		c.swarms = append(c.swarms, startSwarmProcess(t, program, strings.Join(addrs, ","), fmt.Sprintf("s%02d-", i), "role:load", share, keep(share)))
		c.minions += share
	}
	c.swarms = append(c.swarms, startSwarmProcess(t, program, strings.Join(addrs, ","), "one-", "role:one", one, keep(one)))
	c.minions += one
	c.await("sign-ins", func(st swarm.Stats) bool { return st.Ready == int64(c.minions) })
	signIn, st := time.Since(begin), c.stats()
	perSignIn := (c.cpu() - used) / time.Duration(c.minions)
	inDatabase := (db.cpu(t) - theirs) / time.Duration(c.minions)
	share := float64(n) / barMinions
	bar := max(time.Duration(share*float64(barSignIn)), 30*time.Second)
	c.holds(signIn <= bar, "all signed in and subscribed", signIn.Round(time.Second/10).String(), "<= "+bar.String())
	c.holds(st.Refused == 0, "  refused, failed at first", fmt.Sprint(st.Refused, ", ", st.Failed), "0 refused")
	c.row("  processor time of the masters for a sign-in", perSignIn.Round(time.Microsecond).String(), "")
	c.row("  and of the database", inDatabase.Round(time.Microsecond).String(), "")
	for i := range whole {
		startWhole(t, c.sites[i%masters], i)
	}
	c.rest()
	time.Sleep(scaleIdle)
	memory := c.memory()
	most := int64(max(share, 0.1) * barMemory)
	c.holds(memory <= most, "memory of all masters together", mega(memory), "<= "+mega(most))
	c.row("  for a minion", fmt.Sprintf("%.1f KB", float64(memory-empty)/float64(n)/1024), "")
	c.row("  database, bytes for a minion", fmt.Sprint((db.bytes()-rows)/int64(n)), "")
	transactions, idle := db.transactions(), c.cpu()
	time.Sleep(scaleIdle)
	rate := float64(db.transactions()-transactions) / scaleIdle.Seconds()
	load := (c.cpu() - idle).Seconds() / scaleIdle.Seconds()
	c.holds(rate <= barStatements, "idle: transactions of the database a second", fmt.Sprintf("%.1f", rate), fmt.Sprintf("<= %.0f", barStatements))
	c.holds(load <= barIdle, "idle: processor time of all masters", fmt.Sprintf("%.1f %%", 100*load), fmt.Sprintf("<= %.0f %%", 100*barIdle))

	used, rows = c.cpu(), db.bytes()
	moved, transactions, theirs := c.traffic(), db.transactions(), db.cpu(t)
	took, answered := c.salt("*", "test.ping")
	c.holds(answered == c.minions+whole, "salt '*' test.ping, answered", fmt.Sprint(answered), fmt.Sprint(c.minions+whole))
	c.row("  whole command", took.Round(10*time.Millisecond).String(), "")
	c.row("  processor time of the masters for a return", ((c.cpu() - used) / time.Duration(max(answered, 1))).Round(time.Microsecond).String(), "")
	c.row("  and of the database", ((db.cpu(t) - theirs) / time.Duration(max(answered, 1))).Round(time.Microsecond).String(), "")
	c.row("  read and written by the masters for a return, bytes", fmt.Sprint((c.traffic()-moved)/int64(max(answered, 1))), "")
	c.row("  transactions of the database for all", fmt.Sprint(db.transactions()-transactions), "")
	c.row("  database, bytes for a return", fmt.Sprint((db.bytes()-rows)/int64(max(answered, 1))), "")
	c.memoryAfter("  memory of all masters then", memory)
	ids := make([]string, one)
	for i := range ids {
		ids[i] = fmt.Sprintf("one-%05d", i)
	}
	for _, target := range [][]string{{"-G", "role:one"}, {"-L", strings.Join(ids, ",")}, {"-C", "G@role:one and one-*"}} {
		c.rest()
		resolve, chosen := c.salt(target[0], target[1], "--preview-target")
		took, answered := c.salt(target[0], target[1], "test.ping")
		c.holds(took <= barTarget && answered == one, "test.ping to one of a hundred, "+target[0], fmt.Sprintf("%d in %v", answered, took.Round(time.Millisecond)),
			fmt.Sprintf("%d in %v", one, barTarget))
		c.holds(resolve <= barResolve && chosen == one, "  target resolved, whole command",
			fmt.Sprintf("%d in %v", chosen, resolve.Round(time.Millisecond)), fmt.Sprintf("%d in %v", one, barResolve))
	}
	c.order(db.open, share)
	c.kill(db.open)
	fmt.Println("Minions of a swarm share one key pair and decrypt a publish once. Processor time is the kernel's.")
}

// memoryAfter adds a row with the memory of all masters now, and the growth since before.
func (c *scaleCluster) memoryAfter(what string, before int64) {
	now := c.memory()
	c.row(what, fmt.Sprintf("%s, %+d MB", mega(now), (now-before)>>20), "")
}

// startWhole starts a minion as a separate program.
func startWhole(t *testing.T, s *site, i int) {
	t.Helper()
	conf := s.minion(t, fmt.Sprintf("whole-%03d", i), "")
	start(t, ours("salt-minion"), "-c", conf)
}

// placer returns a master that has no minions and places orders.
func (c *scaleCluster) placer(open func() (store.Store, error)) *master.Master {
	c.t.Helper()
	db, err := open()
	if err != nil {
		c.t.Fatal(err)
	}
	ports := freeport.Ports(c.t, 2)
	o := master.Options{Store: db, Shared: &master.Shared{Key: []byte("a sealing key for tests")}}
	o.Network.Interface, o.Network.PublishPort, o.Network.RetPort = "127.0.0.1", ports[0], ports[1]
	o.Orders.MaxUnfinished = -1
	m, err := master.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx) }()
	c.t.Cleanup(func() { cancel(); <-done; db.Close() })
	<-m.Ready()
	return m
}

// place places an order for all minions of the swarms.
func (c *scaleCluster) place(m *master.Master, id string) {
	c.t.Helper()
	o := master.Order{ID: id, TTL: time.Hour, Parallel: true, Idempotent: true,
		Job: master.Job{Fun: "test.ping", Tgt: "s* or one-*", TgtType: "compound"}}
	if _, err := m.PlaceOrder(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
}

// outcome waits for the end of an order and returns how many minions returned.
func (c *scaleCluster) outcome(m *master.Master, id string) (returned int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), scaleStep)
	defer cancel()
	done, err := m.AwaitOrder(ctx, id)
	if err != nil {
		c.t.Fatalf("order %s: %v, %+v", id, err, c.stats())
	}
	for _, r := range done.Results {
		if r.Status == master.Returned {
			returned++
		}
	}
	return returned
}

// order places an order for all minions and waits until the last outcome is stored.
func (c *scaleCluster) order(open func() (store.Store, error), share float64) {
	c.t.Helper()
	c.rest()
	m := c.placer(open)
	used, theirs, before := c.cpu(), c.db.cpu(c.t), c.stats()
	begin := time.Now()
	c.place(m, "all")
	returned := c.outcome(m, "all")
	took, st := time.Since(begin), c.stats()
	bar := max(time.Duration(share*float64(barOrder)), 10*time.Second)
	c.holds(took <= bar && returned == c.minions, "an order to all, last outcome stored", fmt.Sprintf("%d in %v", returned, took.Round(time.Second/10)),
		fmt.Sprintf("%d in %v", c.minions, bar))
	c.holds(st.Jobs-before.Jobs == int64(c.minions), "  jobs that ran", fmt.Sprint(st.Jobs-before.Jobs), fmt.Sprint(c.minions))
	c.row("  processor time of the masters for a delivery", ((c.cpu() - used) / time.Duration(c.minions)).Round(time.Microsecond).String(), "")
	c.row("  and of the database", ((c.db.cpu(c.t) - theirs) / time.Duration(c.minions)).Round(time.Microsecond).String(), "")
}

// kill kills a master while an order for all minions is being delivered. Its minions connect to the other masters,
// and each runs the order once.
func (c *scaleCluster) kill(open func() (store.Store, error)) {
	c.t.Helper()
	c.rest()
	m := c.placer(open)
	before := c.stats()
	c.place(m, "killed")
	last := len(c.masters) - 1
	if err := syscall.Kill(-c.masters[last].cmd.Process.Pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	c.masters = c.masters[:last]
	begin, used, own := time.Now(), c.cpu(), c.swarmCPU()
	c.await("a master is missed", func(st swarm.Stats) bool { return st.Ready < int64(c.minions) })
	detected := time.Since(begin)
	c.await("all are connected again", func(st swarm.Stats) bool { return st.Ready == int64(c.minions) })
	took := time.Since(begin)
	moved := c.stats().SignIns - before.SignIns
	// The minions that moved sign in at the same rate as all minions did.
	bar := barDetect + max(time.Duration(float64(moved)/barMinions*float64(barSignIn)), 10*time.Second)
	c.holds(detected <= barDetect, "one master killed: first of its minions misses it", detected.Round(time.Millisecond).String(), "<= "+barDetect.String())
	c.holds(took <= bar, "  all on the others", fmt.Sprintf("%d in %v", moved, took.Round(time.Second/10)), "<= "+bar.Round(time.Second).String())
	c.row("  processor time of masters and swarms meanwhile", fmt.Sprint((c.cpu()-used).Round(time.Second/10), ", ", (c.swarmCPU()-own).Round(time.Second/10)), "")
	returned := c.outcome(m, "killed")
	st := c.stats()
	c.holds(returned == c.minions && st.Jobs-before.Jobs == int64(c.minions), "  order meanwhile: returned, ran",
		fmt.Sprint(returned, ", ", st.Jobs-before.Jobs), fmt.Sprint(c.minions, ", ", c.minions))
}
