//go:build chaos && linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// What a link must do.
const (
	healTime   = 5 * time.Second  // from the return of the link, or from the moment when a silent fault is detected, to an answer
	detectTime = 45 * time.Second // from the begin of a fault to its detection

	maxLinksTime = 22 * time.Minute // no round begins later
)

// linkFault is a kind of fault. begin starts it; end, which may be nil, takes it back.
type linkFault struct {
	name string
	// silent faults leave a connection behind that one side, or both, take for good: it has to be detected as dead before it can heal.
	silent bool
	// dead faults let nothing through as long as they last, so that a long one has to be detected while it lasts.
	dead bool
	// moves is set where the minion recovers by taking another way, while the fault lasts.
	moves bool
	short bool // is part of the short form
	begin func(l *chaosLink)
	end   func(l *chaosLink)
}

var linkFaults = []linkFault{
	{name: "black hole", dead: true, short: true, begin: func(l *chaosLink) { l.filter("drop", "drop") }},
	{name: "half-open", silent: true, begin: (*chaosLink).halfOpen},
	{name: "reset", short: true, begin: func(l *chaosLink) { l.filter("reset", "") }},
	{name: "one-way loss, to the master", dead: true, short: true, begin: func(l *chaosLink) { l.filter("drop", "") }},
	{name: "one-way loss, to the minion", dead: true, short: true, begin: func(l *chaosLink) { l.filter("", "drop") }},
	{name: "30 % loss", short: true, begin: func(l *chaosLink) { l.filter(lossy, lossy) }},
	{name: natName, silent: true, begin: func(l *chaosLink) { l.natTimeout(l.forget) }, end: func(l *chaosLink) { l.natTimeout(natDefault) }},
	{name: "address changed behind a name", silent: true, moves: true, begin: func(l *chaosLink) { l.move(true) }, end: (*chaosLink).bringBack},
	{name: "master moved", silent: true, moves: true, short: true, begin: func(l *chaosLink) { l.move(false) }, end: (*chaosLink).bringBack},
	{name: "IPv6 to IPv4", silent: true, moves: true, begin: (*chaosLink).otherFamily, end: (*chaosLink).bothFamilies},
}

const (
	natName    = "NAT that forgets"
	lossy      = "numgen random mod 100 < 30 drop"
	natDefault = 432000 // seconds, of the kernel
)

// chaosLink is a minion in a network namespace of its own, which a cable joins to the master's.
type chaosLink struct {
	t      *testing.T
	n      int
	id     string
	ns     string
	cable  string // the master's end
	hosts  string
	log    string // of the minion
	table  string // of the packet filter on the master's side
	forget int    // seconds after which the NAT forgets

	mu     sync.Mutex // guards the fields below
	old    int        // last part of the address that the name leads to
	lost   int        // that of the address that it led to, while it is away
	six    bool       // whether the minion may be on IPv6
	broken error
}

func (l *chaosLink) addr(last int) string { return fmt.Sprintf("10.213.%d.%d", l.n, last) }
func (l *chaosLink) addr6() string        { return fmt.Sprintf("fd21:%x::2", l.n+1) }

// run feeds a program in the minion's namespace, or on the master's side when ns is false.
func (l *chaosLink) run(ns bool, stdin string, command ...string) {
	if ns {
		command = append([]string{"ip", "netns", "exec", l.ns}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.mu.Lock()
		l.broken = errors.Join(l.broken, fmt.Errorf("%q: %w: %s", command, err, bytes.TrimSpace(out)))
		l.mu.Unlock()
	}
}

// up builds the namespace, the cable, and a NAT on the minion's side of it.
func (l *chaosLink) up() {
	_ = os.MkdirAll(filepath.Dir(l.hosts), 0o755)
	l.name()
	l.run(false, "", "ip", "netns", "add", l.ns)
	l.run(false, strings.NewReplacer("CABLE", l.cable, "NS", l.ns, "NET", fmt.Sprintf("10.213.%d", l.n), "SIX", strings.TrimSuffix(l.addr6(), "2")).Replace(`link add CABLE type veth peer name cable netns NS
addr add NET.2/32 dev CABLE
addr add NET.3/32 dev CABLE
addr add SIX2/64 dev CABLE nodad
link set CABLE up
route add NET.1/32 dev CABLE
`), "ip", "-batch", "-")
	l.run(false, strings.NewReplacer("NET", fmt.Sprintf("10.213.%d", l.n), "SIX", strings.TrimSuffix(l.addr6(), "2")).Replace(`link set lo up
addr add NET.1/24 dev cable
addr add SIX1/64 dev cable nodad
link set cable up
`), "ip", "-n", l.ns, "-batch", "-")
	l.run(true, `table inet nat {
	chain post { type nat hook postrouting priority 100; oifname "cable" meta nfproto ipv4 masquerade random; }
	chain in { type filter hook input priority 0; meta l4proto { icmp, icmpv6 } accept; iifname "cable" ct state { new, invalid } drop; }
}
table inet fault {
	chain pre { type filter hook prerouting priority -310; }
}
`, "nft", "-f", "-")
}

func (l *chaosLink) down() {
	_ = exec.Command("ip", "link", "del", l.cable).Run()
	_ = exec.Command("ip", "netns", "del", l.ns).Run()
	_ = os.RemoveAll(filepath.Dir(l.hosts))
}

// name makes the master's name lead to its addresses of the moment. The file keeps its inode, by which the minion sees it.
func (l *chaosLink) name() {
	text := "127.0.0.1 localhost\n" + l.addr(l.old) + " master.test\n"
	if l.six {
		text = l.addr6() + " master.test\n" + text
	}
	if err := os.WriteFile(l.hosts, []byte(text), 0o644); err != nil {
		l.broken = errors.Join(l.broken, err)
	}
}

// filter sets what happens to packets that come from the minion and to it, "" for nothing. Packets are lost where they arrive: what is lost
// where it is sent the kernel of the sender would know of.
func (l *chaosLink) filter(toMaster, toMinion string) {
	rule := func(what, from string) string {
		if what == "" {
			return ""
		}
		return "iifname \"" + from + "\" meta l4proto tcp " + what + ";"
	}
	pre, in := rule(toMaster, l.cable), ""
	if toMaster == "reset" {
		pre, in = "", rule("reject with tcp reset", l.cable)
	}
	l.run(false, fmt.Sprintf("table inet %[1]s { }\ndelete table inet %[1]s\ntable inet %[1]s {\n\tchain pre { type filter hook prerouting priority -310; %[2]s }\n"+
		"\tchain in { type filter hook input priority 0; %[3]s }\n}\n", l.table, pre, in), "nft", "-f", "-")
	l.run(true, "flush chain inet fault pre\n"+strings.TrimSuffix("add rule inet fault pre "+rule(toMinion, "cable"), "add rule inet fault pre ")+"\n", "nft", "-f", "-")
}

// halfOpen ends the connections on the master's side, while nothing gets through that could tell the minion.
func (l *chaosLink) halfOpen() {
	l.filter("drop", "drop")
	l.run(false, "", "ss", "-K", "dst", l.addr(1))
	l.run(false, "", "ss", "-K", "dst", "["+strings.TrimSuffix(l.addr6(), "2")+"1]")
	l.filter("", "")
}

// natTimeout sets for how long a NAT remembers a connection on which nothing is sent.
func (l *chaosLink) natTimeout(seconds int) {
	l.run(true, "", "sysctl", "-qw", fmt.Sprint("net.netfilter.nf_conntrack_tcp_timeout_established=", seconds))
}

// move has the name lead to the other address. The former one is gone without a word, or refuses.
func (l *chaosLink) move(gone bool) {
	l.mu.Lock()
	l.lost, l.old = l.old, 5-l.old
	l.name()
	lost := l.lost
	l.mu.Unlock()
	if gone {
		l.run(false, "", "ip", "addr", "del", l.addr(lost)+"/32", "dev", l.cable)
		return
	}
	l.run(false, fmt.Sprintf("table inet %[1]s { }\ndelete table inet %[1]s\ntable inet %[1]s {\n\tchain in { type filter hook input priority 0; ip daddr %[2]s meta l4proto tcp reject with tcp reset; }\n}\n",
		l.table, l.addr(lost)), "nft", "-f", "-")
}

func (l *chaosLink) bringBack() {
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	l.run(false, "", "ip", "addr", "replace", l.addr(lost)+"/32", "dev", l.cable)
	l.filter("", "")
}

// otherFamily has IPv6 get lost, on a link where the minion prefers it.
func (l *chaosLink) otherFamily() {
	l.run(false, fmt.Sprintf("table inet %[1]s { }\ndelete table inet %[1]s\ntable inet %[1]s {\n\tchain pre { type filter hook prerouting priority -310; iifname \"%[2]s\" meta nfproto ipv6 meta l4proto tcp drop; }\n}\n",
		l.table, l.cable), "nft", "-f", "-")
}

func (l *chaosLink) bothFamilies() { l.filter("", "") }

// noticed counts what the minion has said about lost connections.
func (l *chaosLink) noticed() int {
	b, _ := os.ReadFile(l.log)
	n := 0
	for _, text := range []string{"Not connected to publisher", " lost", "the master's name leads to another address", "Leaving master", "new connection"} {
		n += bytes.Count(b, []byte(text))
	}
	return n
}

// linkSite is a master and the minions behind the links.
type linkSite struct {
	t       *testing.T
	site    *site
	client  *client.Client
	links   []*chaosLink
	ledger  string
	pings   *waiting
	control control

	mu       sync.Mutex           // guards returned
	returned map[string]time.Time // by job id and minion
}

func newLinkSite(t *testing.T, n int) *linkSite {
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	for _, program := range []string{"ip", "nft", "ss", "sysctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the links need the program %s (iproute2, nftables, procps)", program)
		}
	}
	s := &linkSite{t: t, site: newSite(t, "zeromq", "auto_accept: True\nauth_events: False"), returned: make(map[string]time.Time)}
	s.ledger = s.site.dir + "/ledger"
	write(t, s.ledger, "")
	text, err := os.ReadFile(s.site.config())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.site.config(), strings.Replace(string(text), "interface: 127.0.0.1", "interface: '::'\nipv6: True", 1))
	start(t, ours("salt-master"), "-c", filepath.Dir(s.site.config()))
	await(t, "the master serves", func() bool {
		return listening(s.site.ret) && listening(s.site.pub) && exists(s.site.dir+"/run/master_event_pub.ipc")
	})
	s.client, err = client.New(client.Options{Dialer: zeromq.New(), Addr: fmt.Sprintf("127.0.0.1:%d", s.site.ret), SockDir: s.site.dir + "/run",
		CacheDir: s.site.dir + "/cache", PKIDir: s.site.dir + "/pki", User: "root", KeyFile: s.site.dir + "/cache/.root_key", PublishTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	go s.listen()
	s.pings = &waiting{s: s, links: make(map[*chaosLink]*awaited)}
	go s.pings.ping(t.Context())
	for i := range n {
		name := fmt.Sprintf("brine%d-%d", os.Getpid(), i)
		l := &chaosLink{t: t, n: i, id: fmt.Sprintf("link%02d", i), ns: name, cable: fmt.Sprintf("bl%d-%d", os.Getpid()%100000, i), old: 2, forget: 5,
			hosts: "/etc/netns/" + name + "/hosts", table: strings.ReplaceAll(name, "-", "_"), six: i%2 == 0}
		s.links = append(s.links, l)
		t.Cleanup(func() {
			l.down()
			_ = exec.Command("nft", "delete", "table", "inet", l.table).Run()
		})
	}
	t.Cleanup(func() { _ = os.Remove("/etc/netns") }) // it stays if it is not empty
	s.each(func(l *chaosLink) { l.up(); l.filter("", "") })
	s.healthy()
	for _, l := range s.links {
		dir := s.site.minion(t, l.id, "")
		l.log = s.site.dir + "/" + l.id + "/minion.log"
		write(t, dir+"/minion.d/link.conf", fmt.Sprintf("master: master.test\nmaster_port: %d\npublish_port: %d\nipv6: %v\nlog_level: warning\nlog_level_logfile: info\n", s.site.ret, s.site.pub, l.six))
		start(t, "ip", "netns", "exec", l.ns, ours("salt-minion"), "-c", dir)
	}
	s.each(func(l *chaosLink) {
		if _, ok := s.pings.answer(l, 3*time.Minute); !ok {
			t.Errorf("%s does not answer:\n%s", l.id, tail(l.log))
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// each calls f for all links, some at the same time.
func (s *linkSite) each(f func(*chaosLink)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, l := range s.links {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(l)
		})
	}
	wg.Wait()
}

// healthy fails the test when a command that builds links failed.
func (s *linkSite) healthy() {
	s.t.Helper()
	for _, l := range s.links {
		if l.broken != nil {
			s.t.Fatalf("%s: %v", l.id, l.broken)
		}
	}
}

// listen notes the returns that the master tells.
func (s *linkSite) listen() {
	for s.t.Context().Err() == nil {
		conn, err := ipc.Dial(s.t.Context(), ipc.Master(s.site.dir+"/run"))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for {
			ev, err := conn.Next(s.t.Context())
			if err != nil {
				break
			}
			if jid, rest, ok := strings.Cut(strings.TrimPrefix(ev.Tag, "salt/job/"), "/ret/"); ok {
				s.mu.Lock()
				if _, again := s.returned[jid+rest]; !again {
					s.returned[jid+rest] = time.Now()
				}
				s.mu.Unlock()
			}
		}
		conn.Close()
	}
}

func (s *linkSite) when(jid, id string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.returned[jid+id]
	return at, ok
}

func ids(links []*chaosLink) []any {
	var out []any
	for _, l := range links {
		out = append(out, l.id)
	}
	return out
}

// publish sends a job to minions by their ids.
func (s *linkSite) publish(links []*chaosLink, fun string, arg ...any) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	p, err := s.client.Publish(ctx, client.Command{Fun: fun, Arg: arg, Tgt: ids(links), TgtType: "list"})
	return p.JID, err
}

// waiting are the links that are pinged until they answer.
type waiting struct {
	s *linkSite

	mu    sync.Mutex // guards the fields below
	links map[*chaosLink]*awaited
}

// awaited is one link: since when it should answer, the pings since then, and its first answer.
type awaited struct {
	since time.Time
	jids  []string
	done  chan time.Time
}

// ping pings all links that are waited for, twice a second, until ctx ends.
func (w *waiting) ping(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		open := maps.Clone(w.links)
		w.mu.Unlock()
		var jid string
		if len(open) > 0 {
			jid, _ = w.s.publish(slices.Collect(maps.Keys(open)), "test.ping")
		}
		next := time.Now().Add(500 * time.Millisecond)
		for ctx.Err() == nil && time.Now().Before(next) {
			w.mu.Lock()
			for l, a := range w.links {
				if jid != "" && open[l] == a && !slices.Contains(a.jids, jid) {
					a.jids = append(a.jids, jid)
				}
				for _, j := range a.jids {
					if at, ok := w.s.when(j, l.id); ok {
						a.done <- at
						delete(w.links, l)
						break
					}
				}
			}
			w.mu.Unlock()
			time.Sleep(20 * time.Millisecond) // returns are noted by another goroutine, for many links at once
		}
	}
}

// answer waits until a link answers to a ping that is sent from now on, and returns how long that took.
func (w *waiting) answer(l *chaosLink, limit time.Duration) (time.Duration, bool) {
	a := &awaited{since: time.Now(), done: make(chan time.Time, 1)}
	w.mu.Lock()
	w.links[l] = a
	w.mu.Unlock()
	select {
	case at := <-a.done:
		return at.Sub(a.since), true
	case <-time.After(limit):
		w.mu.Lock()
		delete(w.links, l)
		w.mu.Unlock()
		return limit, false
	}
}

// control is links that are never broken: how long these take to answer is what the machine costs, not a fault.
type control struct {
	mu    sync.Mutex // guards asked
	asked []struct {
		at   time.Time
		took time.Duration
	}
}

// watch pings a link without end.
func (o *control) watch(ctx context.Context, s *linkSite, l *chaosLink) {
	for ctx.Err() == nil {
		at := time.Now()
		took, _ := s.pings.answer(l, time.Minute)
		o.mu.Lock()
		o.asked = append(o.asked, struct {
			at   time.Time
			took time.Duration
		}{at, took})
		o.mu.Unlock()
	}
}

// most returns the longest that a sound link took for an answer at some time between two times.
func (o *control) most(from, to time.Time) (most time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.asked {
		if a.at.Before(to) && a.at.Add(a.took).After(from) {
			most = max(most, a.took)
		}
	}
	return most
}

// linkTally is what came of one kind of fault.
type linkTally struct {
	mu           sync.Mutex // guards the fields below
	faults       int
	heal, detect []time.Duration
	jobs         map[string]string // job id by its line in the ledger
	links        map[string]string // minion by that line
}

// TestChaosLinks breaks the links between a master and its minions in ten ways, while a job runs on each minion. Every link heals, a dead
// one is detected, and the job has run at most once, with its return if it ran.
func TestChaosLinks(t *testing.T) {
	c := newCampaign(t, "Links", "fault", "faults", "healed after: median", "largest", "detected after: median", "largest", "jobs in flight", "ran once and returned",
		"never ran", "ran, return missing", "ran twice")
	n, rounds, kinds := 100, 10, linkFaults
	if !chaosFull() {
		n, rounds = 6, 1
		kinds = slices.DeleteFunc(slices.Clone(linkFaults), func(f linkFault) bool { return !f.short })
	}
	const controls = 2
	s := newLinkSite(t, n+controls)
	for _, l := range s.links[n:] {
		go s.control.watch(t.Context(), s, l)
	}
	tallies := make([]*linkTally, len(kinds))
	for i := range tallies {
		tallies[i] = &linkTally{jobs: make(map[string]string), links: make(map[string]string)}
	}
	for round := range rounds {
		if time.Since(c.begun) > maxLinksTime {
			c.breaks("only %d of %d rounds in %v", round, rounds, maxLinksTime)
			break
		}
		var wg sync.WaitGroup
		for _, l := range s.links[:n] {
			k := (l.n + round) % len(kinds)
			wg.Go(func() { s.breakLink(c, l, round, kinds[k], tallies[k]) })
		}
		wg.Wait()
		s.healthy()
	}
	for i, k := range kinds {
		s.judge(c, k, tallies[i])
	}
	var sound []time.Duration
	for _, a := range s.control.asked {
		sound = append(sound, a.took)
	}
	median, most := middle(sound)
	c.row("none (sound links)", 0, median, most)
}

// breakLink breaks a link once and waits until it has healed and the job that ran meanwhile has returned.
func (s *linkSite) breakLink(c *campaign, l *chaosLink, round int, k linkFault, tally *linkTally) {
	// In two rounds a dead link stays dead until that must have been detected, and the NAT of a few links forgets after a minute.
	long := chaosFull() && round%5 == 4
	lasts := time.Second + rand.N(11*time.Second)
	switch {
	case !chaosFull():
		lasts = time.Second + rand.N(time.Second)
	case k.name == natName && long:
		l.forget, lasts = 60, 75*time.Second
	case k.name == natName:
		l.forget, lasts = 5, 12*time.Second
	case k.dead && long:
		lasts = detectTime + time.Second
	}
	line := fmt.Sprint(l.id, "-", round)
	jid, err := s.publish([]*chaosLink{l}, "cmd.run", fmt.Sprintf("sleep 2; echo %s >> %s", line, s.ledger))
	if err != nil {
		c.breaks("%s, %s: cannot publish: %v", k.name, line, err)
		return
	}
	tally.mu.Lock()
	tally.faults++
	tally.jobs[line], tally.links[line] = jid, l.id
	tally.mu.Unlock()
	time.Sleep(200*time.Millisecond + rand.N(time.Second)) // the moment of the fault is random
	before, begun := l.noticed(), time.Now()
	k.begin(l)
	limit := healTime
	if k.silent {
		limit += detectTime
	}
	var heal time.Duration
	var healed bool
	if k.moves {
		// The link is as good as before at once, by the other way.
		heal, healed = s.pings.answer(l, limit+30*time.Second)
		k.end(l)
	} else {
		for time.Since(begun) < lasts {
			if k.dead && long && l.noticed() > before {
				tally.mu.Lock()
				tally.detect = append(tally.detect, time.Since(begun))
				tally.mu.Unlock()
				before = math.MaxInt
			}
			time.Sleep(100 * time.Millisecond) // a file announces nothing when it grows
		}
		if k.dead && long && before != math.MaxInt {
			c.breaks("%s, %s: not detected within %v", k.name, line, detectTime)
		}
		if k.end != nil {
			k.end(l)
		} else {
			l.filter("", "")
		}
		heal, healed = s.pings.answer(l, limit+30*time.Second)
	}
	tally.mu.Lock()
	if healed && k.silent {
		tally.detect = append(tally.detect, heal)
	} else if healed {
		tally.heal = append(tally.heal, heal)
	}
	tally.mu.Unlock()
	now := time.Now()
	limit += s.control.most(now.Add(-heal), now)
	switch {
	case !healed:
		c.breaks("%s, %s: no answer %v after the link's return:\n%s", k.name, line, heal, tail(l.log))
	case heal > limit:
		c.breaks("%s, %s: healed after %v, at most %v are allowed", k.name, line, heal.Round(time.Millisecond), limit)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, ok := s.when(jid, l.id); ok {
			return
		}
	}
}

// judge looks what became of the jobs and adds a row.
func (s *linkSite) judge(c *campaign, k linkFault, tally *linkTally) {
	ledger, err := os.ReadFile(s.ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	ran := make(map[string]int)
	for _, line := range strings.Fields(string(ledger)) {
		ran[line]++
	}
	var once, never, missing, twice int
	for line, jid := range tally.jobs {
		_, returned := s.when(jid, tally.links[line])
		switch {
		case ran[line] > 1:
			twice++
			c.breaks("%s: the job %s ran %d times", k.name, line, ran[line])
		case ran[line] == 1 && returned:
			once++
		case ran[line] == 1:
			missing++
			c.breaks("%s: the job %s (%s) ran, and its return is missing", k.name, line, jid)
		case returned:
			c.breaks("%s: the job %s (%s) returned and did not run", k.name, line, jid)
		default:
			never++
		}
	}
	healMedian, healMost := middle(tally.heal)
	detectMedian, detectMost := middle(tally.detect)
	c.row(k.name, tally.faults, healMedian, healMost, detectMedian, detectMost, len(tally.jobs), once, never, missing, twice)
}

// middle returns the median and the largest of durations.
func middle(d []time.Duration) (median, largest string) {
	if len(d) == 0 {
		return "", ""
	}
	slices.Sort(d)
	return d[len(d)/2].Round(10 * time.Millisecond).String(), d[len(d)-1].Round(10 * time.Millisecond).String()
}
