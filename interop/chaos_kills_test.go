//go:build chaos && linux

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// killing is one kind of kills: the victim, the transport, the number of kills and the number of masters.
type killing struct {
	victim, transport string
	kills, short      int // in the full and in the short form
	masters           int
	pause             time.Duration // between two kills, on average
}

var killings = []killing{
	{victim: "minion", transport: "zeromq", kills: 300, short: 8, masters: 1, pause: 800 * time.Millisecond},
	{victim: "master", transport: "zeromq", kills: 300, short: 6, masters: 1, pause: 900 * time.Millisecond},
	{victim: "either", transport: "tcp", kills: 150, short: 5, masters: 1, pause: 900 * time.Millisecond},
	{victim: "one of three masters", transport: "zeromq", kills: 150, short: 4, masters: 3, pause: 1200 * time.Millisecond},
}

// TestChaosKills kills the minion and the master with SIGKILL at random moments while jobs are published and orders
// are placed. No job may run twice. The return of a job that ran must be in the store and in the job cache, and must
// have been announced by an event. An order must have one outcome, which must not change.
func TestChaosKills(t *testing.T) {
	c := newCampaign(t, "Kills", "victim", "transport", "kills", "time", "jobs acknowledged", "ran once and returned", "interrupted", "ran, return missing",
		"return not told", "came while nobody listened", "told twice in one life", "ran twice", "never ran", "ran though not acknowledged", "orders", "their outcomes", "with two outcomes")
	for _, k := range killings {
		t.Run(strings.ReplaceAll(k.victim, " ", "-"), func(t *testing.T) {
			t.Parallel() // most of the time is waiting
			c.kills(t, k)
		})
	}
}

// killSite is the masters, the minion and the record of the jobs.
type killSite struct {
	t       *testing.T
	k       killing
	sites   []*site
	masters []*victim
	minion  *victim
	clients []*client.Client
	dsn     string // of the shared database
	ledger  string // the file to which each job appends its name
	heard   *eventTally

	mu     sync.Mutex // guards the fields below
	jobs   map[string]string
	orders []string
}

func newKillSite(t *testing.T, k killing) *killSite {
	s := &killSite{t: t, k: k, heard: &eventTally{told: make(map[string]int)}, jobs: make(map[string]string)}
	extra := "auto_accept: True\nauth_events: False\nnetapi_enable_clients: [local]\n"
	if k.masters > 1 {
		db := testserver.PostgresServer(t)
		s.dsn = "postgres://postgres@127.0.0.1:" + db.Port + "/brine?sslmode=disable"
		createDatabase(t, db.Port)
		key := filepath.Join(t.TempDir(), "sealing.key")
		write(t, key, "a sealing key for tests")
		extra += fmt.Sprintf("shared_database: %q\nshared_key_file: %s\n", s.dsn, key)
	}
	var addrs []string
	for range k.masters {
		m := newSite(t, k.transport, "")
		text, err := os.ReadFile(m.config())
		if err != nil {
			t.Fatal(err)
		}
		write(t, m.dir+"/users", "alice:secret\n")
		write(t, m.config(), string(text)+extra+fmt.Sprintf("rest_cherrypy: {socket: %s/api.sock}\nexternal_auth: {file: {^filename: %s/users, alice: ['.*', '@runner']}}\n", m.dir, m.dir))
		s.sites = append(s.sites, m)
		s.masters = append(s.masters, startVictim(t, ours("salt-master"), "-c", filepath.Dir(m.config())))
		addrs = append(addrs, fmt.Sprintf("'127.0.0.1:%d'", m.ret))
	}
	for _, m := range s.sites {
		await(t, "a master serves", func() bool { return listening(m.ret) && listening(m.pub) && exists(m.dir+"/run/master_event_pub.ipc") })
		s.clients = append(s.clients, s.client(m))
		go s.heard.listen(t.Context(), m)
	}
	dir := s.sites[0].minion(t, "one", "")
	write(t, dir+"/minion.d/masters.conf", fmt.Sprintf("master: [%s]\npublish_port: 4506\nlog_level: warning\n", strings.Join(addrs, ", ")))
	s.ledger = s.sites[0].dir + "/ledger"
	s.minion = startVictim(t, ours("salt-minion"), "-c", dir)
	for _, c := range s.clients {
		await(t, "the minion answers", func() bool {
			r, err := c.Run(t.Context(), client.Command{Fun: "test.ping", Tgt: "one"}, client.RunOptions{Timeout: time.Second})
			if err != nil {
				return false
			}
			defer r.Close()
			for ret := range r.Returns(t.Context()) {
				return ret.Status == client.Returned
			}
			return false
		})
	}
	return s
}

func (s *killSite) client(m *site) *client.Client {
	s.t.Helper()
	dialers := map[string]transport.Dialer{"zeromq": zeromq.New(), "tcp": tcp.New()}
	c, err := client.New(client.Options{Dialer: dialers[s.k.transport], Addr: fmt.Sprintf("127.0.0.1:%d", m.ret), SockDir: m.dir + "/run", CacheDir: m.dir + "/cache",
		PKIDir: m.dir + "/pki", User: "root", KeyFile: m.dir + "/cache/.root_key", PublishTimeout: 3 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// eventTally counts the events of returns.
type eventTally struct {
	mu    sync.Mutex // guards the fields below
	told  map[string]int
	twice []string // ids of jobs whose return one run of a master announced twice
	ears  []ear
}

// ear is a period in which a client listened to a master's events. until is zero while it still listens.
type ear struct{ from, until time.Time }

// earMargin is how long before and after an event a client must have listened for the event to be required.
const earMargin = 500 * time.Millisecond

// listened reports whether a client listened, with that margin, at a time.
func (e *eventTally) listened(at time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.ears, func(x ear) bool {
		return x.from.Before(at.Add(-earMargin)) && (x.until.IsZero() || x.until.After(at.Add(earMargin)))
	})
}

// listen counts the events of a master. It connects to a restarted master before a minion can.
func (e *eventTally) listen(ctx context.Context, m *site) {
	for ctx.Err() == nil {
		conn, err := ipc.Dial(ctx, ipc.Master(m.dir+"/run"))
		if err != nil {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		life := make(map[string]bool)
		e.mu.Lock()
		here := len(e.ears)
		e.ears = append(e.ears, ear{from: time.Now()})
		e.mu.Unlock()
		for {
			ev, err := conn.Next(ctx)
			if err != nil {
				break
			}
			jid, rest, _ := strings.Cut(strings.TrimPrefix(ev.Tag, "salt/job/"), "/")
			if rest != "ret/one" {
				continue
			}
			e.mu.Lock()
			e.told[jid]++
			if life[jid] {
				e.twice = append(e.twice, jid)
			}
			e.mu.Unlock()
			life[jid] = true
		}
		e.mu.Lock()
		e.ears[here].until = time.Now()
		e.mu.Unlock()
		conn.Close()
	}
}

// count returns how often a return was announced.
func (e *eventTally) count(jid string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told[jid]
}

// publish publishes jobs until ctx ends. Each job appends its name to the ledger.
func (s *killSite) publish(ctx context.Context, next *atomic.Int64) {
	for ctx.Err() == nil {
		name := fmt.Sprint("job-", next.Add(1))
		p, err := s.clients[rand.N(len(s.clients))].Publish(ctx, client.Command{Fun: "cmd.run", Arg: []any{"echo " + name + " >> " + s.ledger}, Tgt: "one"})
		if err == nil {
			s.mu.Lock()
			s.jobs[p.JID] = name
			s.mu.Unlock()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// api is a client of the masters' HTTP interfaces.
type api struct {
	s      *killSite
	http   []*http.Client
	tokens []string
}

func (s *killSite) api() *api {
	a := &api{s: s, tokens: make([]string, len(s.sites))}
	for _, m := range s.sites {
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", m.dir+"/api.sock")
		}}
		s.t.Cleanup(tr.CloseIdleConnections)
		a.http = append(a.http, &http.Client{Transport: tr, Timeout: 5 * time.Second})
	}
	return a
}

// call sends a request to the i-th master. It logs in first if necessary.
func (a *api) call(ctx context.Context, i int, method, path string, body any) (map[string]any, error) {
	if a.tokens[i] == "" {
		var login struct{ Return []struct{ Token string } }
		if _, err := a.send(ctx, i, http.MethodPost, "/login", map[string]any{"username": "alice", "password": "secret", "eauth": "file"}, &login); err != nil {
			return nil, err
		}
		if len(login.Return) == 0 {
			return nil, errors.New("cannot log in")
		}
		a.tokens[i] = login.Return[0].Token
	}
	var out map[string]any
	code, err := a.send(ctx, i, method, path, body, &out)
	if code == http.StatusUnauthorized {
		a.tokens[i] = ""
	}
	return out, err
}

func (a *api) send(ctx context.Context, i int, method, path string, body, out any) (int, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://master"+path, bytes.NewReader(b))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	q.Header.Set("X-Auth-Token", a.tokens[i])
	r, err := a.http[i].Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	b, err = io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, r.Status, b)
	}
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	return r.StatusCode, err
}

// order places orders until ctx ends. Each order is sent to random masters until one has accepted it.
func (s *killSite) order(ctx context.Context) {
	a := s.api()
	for n := 1; ctx.Err() == nil; n++ {
		name := fmt.Sprint("order-", n)
		body := map[string]any{"id": name, "tgt": []string{"one"}, "fun": "cmd.run", "arg": []string{"echo " + name + " >> " + s.ledger}, "parallel": true}
		for ctx.Err() == nil {
			if _, err := a.call(ctx, rand.N(len(s.sites)), http.MethodPost, "/v1/jobs", body); err == nil {
				s.mu.Lock()
				s.orders = append(s.orders, name)
				s.mu.Unlock()
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// outcome returns the status of an order on the minion, or "" while it is open.
func (a *api) outcome(ctx context.Context, name string) (status, jid string, err error) {
	out, err := a.call(ctx, rand.N(len(a.s.sites)), http.MethodGet, "/v1/jobs/"+name, nil)
	if err != nil {
		return "", "", err
	}
	minions, _ := out["minions"].(map[string]any)
	one, _ := minions["one"].(map[string]any)
	status, _ = one["status"].(string)
	jid, _ = out["jid"].(string)
	if out["done"] != true {
		status = ""
	}
	return status, jid, nil
}

// kills runs one kind of kills, which adds a row.
func (c *campaign) kills(t *testing.T, k killing) {
	n := k.short
	if chaosFull() {
		n = k.kills
	}
	s := newKillSite(t, k)
	victims := map[string][]*victim{"minion": {s.minion}, "master": s.masters, "either": append([]*victim{s.minion}, s.masters...), "one of three masters": s.masters}[k.victim]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var at sync.WaitGroup
	var next atomic.Int64
	for range 2 {
		at.Go(func() { s.publish(ctx, &next) })
	}
	at.Go(func() { s.order(ctx) })
	begun := time.Now()
	for range n {
		time.Sleep(k.pause/4 + rand.N(3*k.pause/2)) // the moment of a kill is random
		victims[rand.N(len(victims))].again()
	}
	stop()
	at.Wait()
	took := time.Since(begun)
	for _, m := range s.sites {
		await(t, "a master serves again", func() bool { return listening(m.ret) && listening(m.pub) && exists(m.dir+"/run/master_event_pub.ipc") })
	}
	s.judge(c, n, took)
}

// settleTime limits the time until all returns have arrived after the last kill, and between the outcomes of two
// orders.
const settleTime = 3 * time.Minute

// judge waits for the outcomes and returns, checks the invariants and adds the row.
func (s *killSite) judge(c *campaign, kills int, took time.Duration) {
	t := s.t
	a := s.api()
	ends, jidOf := make(map[string]string), make(map[string]string)
	for _, name := range s.orders {
		for end := time.Now().Add(settleTime); ; {
			status, jid, err := a.outcome(t.Context(), name)
			if err == nil && status != "" {
				ends[name], jidOf[name] = status, jid
				break
			}
			if time.Now().After(end) {
				c.breaks("%s: %s has no outcome %v after the one before it: %v", s.k.victim, name, settleTime, err)
				break
			}
			time.Sleep(20 * time.Millisecond) // another process sends no notification to this client
		}
	}
	names := make(map[string]string, len(s.jobs)+len(jidOf)) // by job id
	for jid, name := range s.jobs {
		names[jid] = name
	}
	for name, jid := range jidOf {
		names[jid] = name
	}
	var returned map[string]map[string]any
	ran := make(map[string]int)
	missing := func() (list []string) {
		clear(ran)
		for _, name := range strings.Fields(readFile(t, s.ledger)) {
			ran[name]++
		}
		for jid, name := range names {
			if ran[name] > 0 && returned[jid] == nil {
				list = append(list, name)
			}
		}
		return list
	}
	end := time.Now().Add(settleTime)
	for returned = s.lookUp(names); len(missing()) > 0 && time.Now().Before(end); time.Sleep(time.Second) {
		returned = s.lookUp(names)
	}
	var once, interrupted, untold, unheard, twice, never, strange int
	lost := missing()
	for _, name := range lost {
		c.breaks("%s: %s ran, and its return is missing", s.k.victim, name)
	}
	for jid, name := range names {
		ret := returned[jid]
		text, _ := ret["return"].(string)
		switch {
		case ran[name] > 1:
			twice++
			c.breaks("%s: %s ran %d times", s.k.victim, name, ran[name])
		case ret != nil && strings.Contains(text, "interrupted"):
			interrupted++
		case ret != nil && ran[name] == 1:
			once++
		case ret != nil:
			c.breaks("%s: %s returned %v and did not run", s.k.victim, name, ret)
		case ran[name] == 0:
			never++
			if ends[name] == "returned" {
				c.breaks("%s: %s is said to have returned and did not run", s.k.victim, name)
			}
		}
		delete(ran, name)
	}
	for name, n := range ran {
		strange++
		if n > 1 {
			twice++
			c.breaks("%s: %s, which was not acknowledged, ran %d times", s.k.victim, name, n)
		}
	}
	s.heard.mu.Lock()
	again := 0
	for _, jid := range s.heard.twice {
		if names[jid] != "" { // otherwise it answers a master's probe
			again++
			c.breaks("%s: one life of a master told the return of %s (%s) twice", s.k.victim, names[jid], jid)
		}
	}
	s.heard.mu.Unlock()
	for _, m := range s.masters { // the outcomes must be the same after all masters have been restarted
		m.again()
	}
	changed := 0
	outcomes := make(map[string]int)
	for _, name := range s.orders {
		outcomes[ends[name]]++
		status, _, err := a.outcome(t.Context(), name)
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			status, _, err = a.outcome(t.Context(), name)
		}
		if status != ends[name] {
			changed++
			c.breaks("%s: %s was %q and is %q: %v", s.k.victim, name, ends[name], status, err)
		}
	}
	received := s.inStore(c, returned)
	for jid := range returned {
		switch {
		case s.heard.count(jid) > 0:
		case s.heard.listened(received[jid]):
			untold++
			c.breaks("%s: the return of %s (%s), which came at %v, was not told as an event", s.k.victim, names[jid], jid, received[jid])
		default:
			unheard++
		}
	}
	c.row(s.k.victim, s.k.transport, kills, took.Round(time.Second), len(s.jobs), once, interrupted, len(lost), untold, unheard, again, twice, never, strange, len(s.orders), outcomes, changed)
}

// lookUp queries the returns of jobs with salt-run jobs.lookup_jid.
func (s *killSite) lookUp(names map[string]string) map[string]map[string]any {
	var mu sync.Mutex
	out := make(map[string]map[string]any)
	jids := make(chan string)
	var at sync.WaitGroup
	for range 4 {
		at.Go(func() {
			for jid := range jids {
				c := s.clients[rand.N(len(s.clients))]
				var reply map[string]any
				var err error
				for end := time.Now().Add(settleTime); ; time.Sleep(50 * time.Millisecond) {
					ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
					reply, err = c.Call(ctx, client.FunctionCall{Kind: "runner", Fun: "jobs.lookup_jid", Args: []any{jid}})
					cancel()
					if err == nil || time.Now().After(end) {
						break
					}
				}
				if err != nil {
					s.t.Errorf("jobs.lookup_jid %s: %v", jid, err)
					continue
				}
				all, _ := payload.Map(reply["return"])
				if data, ok := payload.Map(all["data"]); ok { // with the name of an outputter next to it
					all = data
				}
				if v, ok := all["one"]; ok {
					mu.Lock()
					out[jid] = map[string]any{"return": v}
					mu.Unlock()
				}
			}
		})
	}
	for jid := range names {
		jids <- jid
	}
	close(jids)
	at.Wait()
	return out
}

// inStore compares the results of jobs.lookup_jid with the store and, for a single master, with the files of the job
// cache. It returns the time at which each return arrived.
func (s *killSite) inStore(c *campaign, returned map[string]map[string]any) map[string]time.Time {
	received := make(map[string]time.Time)
	for _, m := range s.masters {
		m.signal(syscall.SIGTERM)
		m.mu.Lock()
		done := m.done
		m.mu.Unlock()
		<-done
	}
	dir := s.sites[0].dir + "/cache"
	open := func() (store.Store, error) { return sqlite.Open(dir + "/jobs.sqlite") }
	if s.dsn != "" {
		open = func() (store.Store, error) { return postgres.Open(s.dsn) }
	}
	stores := map[string]func() (store.Store, error){"store": open}
	if s.dsn == "" {
		stores["job cache"] = func() (store.Store, error) { return jobcache.Open(dir+"/jobs", "") }
	}
	for what, open := range stores {
		db, err := open()
		if err != nil {
			s.t.Error(err)
			continue
		}
		for jid := range returned {
			list, err := db.Returns(s.t.Context(), jid)
			if err != nil || len(list) != 1 || list[0].ID != "one" {
				c.breaks("%s: the %s has %d returns of job %s: %v", s.k.victim, what, len(list), jid, err)
			} else if what == "store" {
				received[jid] = list[0].Received
			}
		}
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
	}
	return received
}

// readFile returns the content of a file, or "" if the file does not exist.
func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}
