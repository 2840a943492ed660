//go:build chaos && linux

package interop

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// The limits for a link.
const (
	healTime   = 5 * time.Second  // from the end of the fault, or from the detection of a silent fault, to an answer
	detectTime = 45 * time.Second // from the beginning of a fault to its detection

	maxLinksTime = 22 * time.Minute // no round begins later
)

// linkFault is a kind of fault. While it lasts, its links are in the named sets of the packet filter. prepare runs
// before a job is published; begin and end do everything else that the fault needs.
type linkFault struct {
	name string
	sets []string
	// address is the set to which the master's former address is added while its name leads to another one.
	address string
	// A silent fault leaves a connection that at least one side considers alive. It must be detected as dead before
	// the link can heal.
	silent bool
	// A dead fault lets no packet through, so a long one must be detected while it lasts.
	dead bool
	// moves is set if the minion recovers over another path during the fault.
	moves bool
	short bool          // part of the short form
	six   bool          // concerns links with IPv6 only
	lasts time.Duration // zero for a random duration

	prepare, begin, end func(l *chaosLink)
}

var linkFaults = []linkFault{
	{name: "black hole", sets: []string{"hole"}, dead: true, short: true},
	{name: "half-open", silent: true, lasts: time.Nanosecond, begin: (*chaosLink).halfOpen},
	{name: "reset", sets: []string{"resets"}, short: true, begin: (*chaosLink).reset},
	{name: "one-way loss, to the master", sets: []string{"upwards"}, dead: true, short: true},
	{name: "one-way loss, to the minion", sets: []string{"downwards"}, dead: true, short: true},
	{name: "30 % loss", sets: []string{"lossy"}, short: true},
	{name: "NAT that forgets after 5 s", silent: true, lasts: time.Nanosecond, begin: (*chaosLink).forget, end: func(l *chaosLink) { l.natTimeout(natDefault) }},
	{name: "address changed behind a name", address: "gone", silent: true, moves: true},
	{name: "master moved", address: "refused", silent: true, moves: true, short: true},
	{name: "IPv6 to IPv4", sets: []string{"six"}, silent: true, moves: true, six: true, prepare: (*chaosLink).onSix, end: (*chaosLink).backToSix},
}

// slowNAT replaces the fast NAT in one of ten faults. The probes of an idle connection (TCP keepalive) are more
// frequent than every 60 s.
var slowNAT = linkFault{name: "NAT that forgets after 60 s", silent: true, lasts: 75 * time.Second, begin: func(l *chaosLink) { l.natTimeout(60) },
	end: func(l *chaosLink) { l.natTimeout(natDefault) }}

// kinds returns the kinds of fault of a link.
func (l *chaosLink) kinds() []linkFault {
	return slices.DeleteFunc(slices.Clone(linkFaults), func(k linkFault) bool { return k.six && !l.six || !k.short && !chaosFull() })
}

// plan returns the fault of a link in a round.
func (l *chaosLink) plan(round int) linkFault {
	kinds := l.kinds()
	k := kinds[(l.n+round)%len(kinds)]
	if strings.HasPrefix(k.name, "NAT") && l.inLongRound(round) {
		return slowNAT
	}
	return k
}

// inLongRound reports whether, in this round, a dead link stays dead until that must have been detected, and a NAT
// forgets slowly. It is one cycle of the kinds for every fifth link.
func (l *chaosLink) inLongRound(round int) bool {
	return chaosFull() && l.n%5 == 0 && round/len(l.kinds()) == 1
}

const natDefault = 432000 // in seconds, the kernel's default

// crossing is the namespace between the master's host and those of the minions. It forwards all packets of all links,
// and its packet filter drops them where neither sender notices. A link is broken by adding its name, or an address,
// to a set of this filter. Each transaction of nft waits for the kernel's readers and makes all other nft processes
// of the namespace start again. Therefore only one runs at a time, with the changes of all waiting links.
type crossing struct {
	t  *testing.T
	ns string

	mu   sync.Mutex // guards next
	next *filterChange
	turn sync.Mutex // held while nft runs
}

// filterChange collects the commands of several links for one run of nft.
type filterChange struct {
	commands []string
	done     bool
	err      error
}

// change runs commands of nft, together with those of other links.
func (x *crossing) change(commands ...string) error {
	x.mu.Lock()
	if x.next == nil {
		x.next = &filterChange{}
	}
	mine := x.next
	mine.commands = append(mine.commands, commands...)
	x.mu.Unlock()
	x.turn.Lock()
	defer x.turn.Unlock()
	if !mine.done {
		x.mu.Lock()
		x.next = nil
		x.mu.Unlock()
		mine.err = feed(strings.Join(mine.commands, "\n")+"\n", "nsenter", "--net=/run/netns/"+x.ns, "nft", "-f", "-")
		mine.done = true
	}
	return mine.err
}

// feed runs a program with the given standard input.
func feed(stdin string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", command, err, bytes.TrimSpace(out))
	}
	return nil
}

// filterOfCrossing has a set and a counter for each effect on packets.
const filterOfCrossing = `table inet fault {
	set hole { type ifname; }
	set upwards { type ifname; }
	set downwards { type ifname; }
	set lossy { type ifname; }
	set resets { type ifname; }
	set six { type ifname; }
	set gone { type ipv4_addr; }
	set gone6 { type ipv6_addr; }
	set refused { type ipv4_addr; }
	set refused6 { type ipv6_addr; }
	chain forward {
		type filter hook forward priority 0;
		iifname @hole counter drop
		oifname @hole counter drop
		iifname @upwards counter drop
		oifname @downwards counter drop
		iifname @lossy numgen random mod 100 < 30 counter drop
		oifname @lossy numgen random mod 100 < 30 counter drop
		iifname @resets tcp flags & rst == 0 counter reject with tcp reset
		oifname @resets tcp flags & rst == 0 counter reject with tcp reset
		iifname @six meta nfproto ipv6 counter drop
		oifname @six meta nfproto ipv6 counter drop
		ip daddr @gone counter drop
		ip saddr @gone counter drop
		ip6 daddr @gone6 counter drop
		ip6 saddr @gone6 counter drop
		ip daddr @refused meta l4proto tcp counter reject with tcp reset
		ip6 daddr @refused6 meta l4proto tcp counter reject with tcp reset
	}
}
`

// filterOfNAT is the filter of a minion's namespace. It translates the minion's connections and drops incoming
// packets that do not belong to one.
const filterOfNAT = `table inet nat {
	chain post { type nat hook postrouting priority 100; oifname "cable" masquerade random; }
	chain in { type filter hook input priority 0; meta l4proto { icmp, icmpv6 } accept; iifname "cable" ct state { new, invalid } drop; }
}
`

// newCrossing creates the namespace and its cable to the master's host, which has two addresses of each family for
// each of n links.
func newCrossing(t *testing.T, n int) *crossing {
	t.Helper()
	x := &crossing{t: t, ns: fmt.Sprint("brine", os.Getpid())}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", x.ns).Run() }) // the cables are deleted with it
	var here strings.Builder
	fmt.Fprintf(&here, "netns add %[1]s\nlink add %[1]s type veth peer name core netns %[1]s\nlink set %[1]s up\n", x.ns)
	fmt.Fprintf(&here, "addr add %[2]s/24 dev %[1]s\naddr add %[3]s/64 dev %[1]s nodad\n", x.ns, addr(between, 0, 1), addr6(between, 0, 1))
	for i := range n {
		for last := 2; last <= 3; last++ {
			fmt.Fprintf(&here, "addr add %s/32 dev %[2]s\naddr add %[3]s/128 dev %[2]s nodad\n", addr(ofMaster, i, last), x.ns, addr6(ofMaster, i, last))
		}
	}
	routes := func(kind, via int) string {
		return fmt.Sprintf("route add %s/16 via %s\nroute add %s/56 via %s\n", addr(kind, 0, 0), addr(between, 0, via), addr6(kind, 0, 0), addr6(between, 0, via))
	}
	there := fmt.Sprintf("link set lo up\nlink set core up\naddr add %s/24 dev core\naddr add %s/64 dev core nodad\n", addr(between, 0, 2), addr6(between, 0, 2))
	enter := []string{"nsenter", "--net=/run/netns/" + x.ns}
	for _, err := range []error{
		feed(here.String(), "ip", "-batch", "-"),
		feed(there+routes(ofMaster, 1), "ip", "-n", x.ns, "-batch", "-"),
		feed(routes(ofMinion, 2), "ip", "-batch", "-"), // the other end must be up for these
		feed("", append(enter, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")...),
		x.change(filterOfCrossing),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// The networks: between the master's host and the crossing, and for each link those of the master and of the minion.
const (
	between = iota
	ofMaster
	ofMinion
)

// addr and addr6 return addresses of a network for a link. They differ between the tests that run on one host. The
// master has two, which end with 2 and 3. The IPv6 addresses are not from private networks (fc00::/7), to which a
// minion would prefer IPv4 (RFC 6724).
func addr(network, link, last int) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+3*(os.Getpid()%48)+network, link, last)
}

func addr6(network, link, last int) string {
	return fmt.Sprintf("2001:db8:%x:%x::%d", os.Getpid()&0xffff, network<<8|link, last)
}

// caught returns how many packets each set of the filter has caught.
func (x *crossing) caught() map[string]int {
	out, err := exec.Command("nsenter", "--net=/run/netns/"+x.ns, "nft", "list", "chain", "inet", "fault", "forward").Output()
	if err != nil {
		x.t.Fatal(err)
	}
	sums := make(map[string]int)
	for _, m := range regexp.MustCompile(`@(\w+).* counter packets (\d+)`).FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.Atoi(m[2])
		sums[strings.TrimSuffix(m[1], "6")] += n
	}
	return sums
}

// chaosLink is a minion in its own network namespace, which a cable connects to the crossing.
type chaosLink struct {
	t     *testing.T
	s     *linkSite
	x     *crossing
	n     int
	id    string
	ns    string
	cable string // its end in the crossing
	hosts string
	log   string // of the minion
	pub   int    // the master's port of publishes
	six   bool   // the minion uses IPv6 where it can
	pid   int    // of the minion

	// Only one goroutine at a time uses these fields.
	old    int   // last part of the address to which the name leads
	lost   int   // last part of the address to which it led before
	broken error // errors of commands that the campaign needs
}

// fails records an error of a command that the campaign needs. err may be nil.
func (l *chaosLink) fails(err error) { l.broken = errors.Join(l.broken, err) }

// up creates the namespace, the cable, and a NAT on the minion's side of it.
func (l *chaosLink) up() {
	_ = os.MkdirAll(filepath.Dir(l.hosts), 0o755)
	l.name()
	with := strings.NewReplacer("CABLE", l.cable, "MINION", l.ns, "HERE6", addr6(ofMinion, l.n, 1), "HERE", addr(ofMinion, l.n, 1),
		"THERE6", addr6(ofMinion, l.n, 2), "THERE", addr(ofMinion, l.n, 2))
	l.fails(feed("", "ip", "netns", "add", l.ns))
	l.fails(feed(with.Replace("link add CABLE type veth peer name cable netns MINION\nlink set CABLE up\naddr add THERE/24 dev CABLE\naddr add THERE6/64 dev CABLE nodad\n"),
		"ip", "-n", l.x.ns, "-batch", "-"))
	l.fails(feed(with.Replace("link set lo up\nlink set cable up\naddr add HERE/24 dev cable\naddr add HERE6/64 dev cable nodad\n"+
		"route add default via THERE\nroute add default via THERE6\n"), "ip", "-n", l.ns, "-batch", "-"))
	l.fails(feed(filterOfNAT, "nsenter", "--net=/run/netns/"+l.ns, "nft", "-f", "-"))
}

func (l *chaosLink) down() {
	_ = exec.Command("ip", "netns", "del", l.ns).Run()
	_ = os.RemoveAll(filepath.Dir(l.hosts))
}

// name makes the master's name lead to its current addresses. The file keeps its inode, because the minion sees it by
// that.
func (l *chaosLink) name() {
	text := "127.0.0.1 localhost\n" + addr(ofMaster, l.n, l.old) + " master.test\n"
	if l.six {
		text = addr6(ofMaster, l.n, l.old) + " master.test\n" + text
	}
	l.fails(os.WriteFile(l.hosts, []byte(text), 0o644))
}

// enter adds the link's cable to sets of the packet filter, and leave removes it.
func (l *chaosLink) enter(sets ...string) { l.member("add", sets) }
func (l *chaosLink) leave(sets ...string) { l.member("delete", sets) }

func (l *chaosLink) member(verb string, sets []string) {
	var commands []string
	for _, set := range sets {
		commands = append(commands, fmt.Sprintf("%s element inet fault %s { %q }", verb, set, l.cable))
	}
	if len(commands) > 0 {
		l.fails(l.x.change(commands...))
	}
}

// halfOpen ends the connections on the master's side, while no packet gets through that could inform the minion.
func (l *chaosLink) halfOpen() {
	l.enter("hole")
	l.forgetHere()
	l.leave("hole")
}

// reset ends the connections on both sides. The packets of the master's kernel are not sufficient, because a NAT
// drops a reset that arrives while data is in flight.
func (l *chaosLink) reset() {
	l.forgetHere()
	l.fails(feed("", "nsenter", "--net=/run/netns/"+l.ns, "ss", "-t", "-K", fmt.Sprintf("( dport = :%d or dport = :%d )", l.pub, l.s.site.ret)))
}

// forgetHere ends the connections on the master's side.
func (l *chaosLink) forgetHere() {
	l.kill(addr(ofMinion, l.n, 1))
	l.kill(addr6(ofMinion, l.n, 1))
}

// kill ends the master's connections with an address.
func (l *chaosLink) kill(peer string) { l.fails(feed("", "ss", "-t", "-K", "dst", "["+peer+"]")) }

// natTimeout sets how long the NAT remembers an idle connection. The time counts from the next packet of each
// connection, so a job is published to cause some packets.
func (l *chaosLink) natTimeout(seconds int) {
	l.fails(feed("", "nsenter", "--net=/run/netns/"+l.ns, "sysctl", "-qw", fmt.Sprint("net.netfilter.nf_conntrack_tcp_timeout_established=", seconds)))
	_, err := l.s.publish([]*chaosLink{l}, "test.ping")
	l.fails(err)
}

// forget makes the NAT forget the publish connection.
func (l *chaosLink) forget() {
	l.natTimeout(5)
	l.await("the NAT to forget the connection of publishes", func() bool {
		known, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/nf_conntrack", l.pid))
		l.fails(err)
		return !slices.ContainsFunc(append(l.publishes("tcp"), l.publishes("tcp6")...), func(port int) bool {
			return bytes.Contains(known, fmt.Appendf(nil, " sport=%d dport=%d ", port, l.pub))
		})
	})
}

// await waits until a link is in a state. The kernel sends no notification of it.
func (l *chaosLink) await(what string, cond func() bool) {
	for end := time.Now().Add(patience); !cond(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			l.fails(fmt.Errorf("waited for %s in vain", what))
			return
		}
	}
}

// publishes returns the minion's ports of publish connections, over tcp or tcp6.
func (l *chaosLink) publishes(family string) (ports []int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", l.pid, family))
	l.fails(err)
	for line := range strings.Lines(string(b)) {
		var n, local, remote, state string
		if _, err := fmt.Sscan(line, &n, &local, &remote, &state); err != nil || state != "01" || !strings.HasSuffix(remote, fmt.Sprintf(":%04X", l.pub)) {
			continue
		}
		port, err := strconv.ParseUint(local[strings.LastIndex(local, ":")+1:], 16, 16)
		l.fails(err)
		ports = append(ports, int(port))
	}
	return ports
}

// addresses returns the commands that add an address of the master for this link to a set, or delete it, for each
// family.
func (l *chaosLink) addresses(verb, set string, last int) []string {
	return []string{fmt.Sprintf("%s element inet fault %s { %s }", verb, set, addr(ofMaster, l.n, last)),
		fmt.Sprintf("%s element inet fault %s6 { %s }", verb, set, addr6(ofMaster, l.n, last))}
}

// move makes the name lead to the master's other address, and adds the former one to a set of the filter.
func (l *chaosLink) move(set string) {
	l.lost, l.old = l.old, 5-l.old
	l.name()
	l.fails(l.x.change(l.addresses("add", set, l.lost)...))
}

// onSix waits until the minion uses IPv6, which the fault then cuts off.
func (l *chaosLink) onSix() {
	l.await("the minion to use IPv6", func() bool { return len(l.publishes("tcp6")) > 0 })
}

// backToSix ends the IPv4 connections, after which the minion prefers IPv6 again. It waits until the minion is
// connected, before the next job.
func (l *chaosLink) backToSix() {
	l.kill(addr(ofMinion, l.n, 1))
	if _, ok := l.s.pings.answer(l, detectTime); !ok {
		l.fails(errors.New("no answer after a reset"))
	}
}

// said returns the size of the minion's log, for noticed.
func (l *chaosLink) said() int64 {
	info, err := os.Stat(l.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// noticed reports whether the minion has logged a lost connection since its log had this size.
func (l *chaosLink) noticed(since int64) bool {
	f, err := os.Open(l.log)
	if err != nil {
		return false
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, since, 1<<20))
	return slices.ContainsFunc([]string{"Not connected to publisher", " lost", "the master's name leads to another address", "Leaving master", "new connection"},
		func(text string) bool { return bytes.Contains(b, []byte(text)) })
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

// newLinkSite starts a master and n minions behind links. A publish goes only to the minions that it is for
// (zmq_filtering), because a connection with publishes for others is not idle, and its failure would be detected
// sooner.
func newLinkSite(t *testing.T, n int) *linkSite {
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	for _, program := range []string{"ip", "nft", "ss", "sysctl", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the links need the program %s (iproute2, nftables, procps, util-linux)", program)
		}
	}
	s := &linkSite{t: t, site: newSite(t, "zeromq", "auto_accept: True\nauth_events: False\nzmq_filtering: True"), returned: make(map[string]time.Time)}
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
	x := newCrossing(t, n)
	for i := range n {
		name := fmt.Sprintf("%s-%d", x.ns, i)
		l := &chaosLink{t: t, s: s, x: x, n: i, id: fmt.Sprintf("link%02d", i), ns: name, cable: fmt.Sprint("cable", i), old: 2, six: i%2 == 0, pub: s.site.pub,
			hosts: "/etc/netns/" + name + "/hosts"}
		s.links = append(s.links, l)
		t.Cleanup(l.down)
	}
	t.Cleanup(func() { _ = os.Remove("/etc/netns") }) // it stays if it is not empty
	s.each((*chaosLink).up)
	s.healthy()
	for _, l := range s.links {
		dir := s.site.minion(t, l.id, "")
		l.log = s.site.dir + "/" + l.id + "/minion.log"
		write(t, dir+"/minion.d/link.conf", fmt.Sprintf("master: master.test\nmaster_port: %d\npublish_port: %d\nipv6: %v\nzmq_filtering: True\nlog_level: warning\nlog_level_logfile: info\n",
			s.site.ret, s.site.pub, l.six))
		// The process of ip becomes the minion's.
		l.pid = start(t, "ip", "netns", "exec", l.ns, ours("salt-minion"), "-c", dir).cmd.Process.Pid
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

// each calls f for all links, some of them at the same time.
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

// healthy fails the test if a command that sets up a link failed.
func (s *linkSite) healthy() {
	s.t.Helper()
	for _, l := range s.links {
		if l.broken != nil {
			s.t.Fatalf("%s: %v", l.id, l.broken)
		}
	}
}

// listen records the returns that the master announces.
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

// publish publishes a job to minions by their ids.
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

// awaited is a link that should answer: the time since when it should, the pings since then, and its first answer.
type awaited struct {
	since time.Time
	jids  []string
	done  chan time.Time
}

// ping pings all waiting links twice a second until ctx ends.
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
			time.Sleep(20 * time.Millisecond) // another goroutine records the returns of many links
		}
	}
}

// answer waits until a link answers a ping that is sent from now on, and returns how long that took.
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

// control measures links that are never broken. The time that these take to answer is due to the machine, and not to
// a fault.
type control struct {
	mu    sync.Mutex // guards asked
	asked []question
}

// question is a ping to a sound link. took is 0 until the link has answered.
type question struct {
	at   time.Time
	took time.Duration
}

// watch pings a link until ctx ends.
func (o *control) watch(ctx context.Context, s *linkSite, l *chaosLink) {
	for ctx.Err() == nil {
		at := time.Now()
		o.mu.Lock()
		n := len(o.asked)
		o.asked = append(o.asked, question{at: at})
		o.mu.Unlock()
		took, _ := s.pings.answer(l, time.Minute)
		o.mu.Lock()
		o.asked[n].took = took
		o.mu.Unlock()
	}
}

// most returns the longest time that a sound link took for an answer in a period, or has taken so far.
func (o *control) most(from, to time.Time) (most time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.asked {
		took := a.took
		if took == 0 {
			took = to.Sub(a.at)
		}
		if a.at.Before(to) && a.at.Add(took).After(from) {
			most = max(most, took)
		}
	}
	return most
}

// linkTally is the results of one kind of fault.
type linkTally struct {
	mu           sync.Mutex // guards the fields below
	faults       int
	heal, detect []time.Duration
	jobs         map[string]string // job id by its line in the ledger
	links        map[string]string // minion by that line
}

// TestChaosLinks breaks the links between a master and its minions in ten ways while a job runs on each minion. Every
// link must heal, a dead link must be detected, and the job must run at most once and return if it ran.
func TestChaosLinks(t *testing.T) {
	c := newCampaign(t, "Links", "fault", "faults", "packets caught", "healed after: median", "largest", "detected after: median", "largest", "jobs in flight",
		"ran once and returned", "never ran", "ran, return missing", "ran twice")
	n, rounds := 50, 20 // all links are broken at the same time, each with its own fault
	if !chaosFull() {
		n, rounds = 6, 1
	}
	const controls = 2
	s := newLinkSite(t, n+controls)
	for _, l := range s.links[n:] {
		go s.control.watch(t.Context(), s, l)
	}
	tallies := make(map[string]*linkTally)
	for _, k := range append(slices.Clone(linkFaults), slowNAT) {
		tallies[k.name] = &linkTally{jobs: make(map[string]string), links: make(map[string]string)}
	}
	var wg sync.WaitGroup
	for _, l := range s.links[:n] {
		wg.Go(func() {
			for round := range rounds {
				if time.Since(c.begun) > maxLinksTime {
					c.breaks("%s: only %d of %d faults in %v", l.id, round, rounds, maxLinksTime)
					return
				}
				k := l.plan(round)
				s.breakLink(c, l, round, k, tallies[k.name])
				if l.broken != nil {
					c.breaks("%s, %s: %v", k.name, l.id, l.broken)
					return
				}
			}
		})
	}
	wg.Wait()
	caught := s.links[0].x.caught()
	faults := 0
	for _, k := range append(slices.Clone(linkFaults), slowNAT) {
		if tally := tallies[k.name]; tally.faults > 0 {
			s.judge(c, k, tally, caught)
			faults += tally.faults
		}
	}
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	var sound []time.Duration
	for _, a := range s.control.asked {
		if a.took > 0 {
			sound = append(sound, a.took)
		}
	}
	median, most := middle(sound)
	c.row("none (sound links)", 0, "", median, most)
	c.row("all", faults)
}

// breakLink breaks a link once, and waits until it has healed and the job that ran during the fault has returned.
func (s *linkSite) breakLink(c *campaign, l *chaosLink, round int, k linkFault, tally *linkTally) {
	long := k.dead && l.inLongRound(round)
	lasts := k.lasts
	switch {
	case !chaosFull():
		lasts = 2*time.Second + rand.N(time.Second) // the job ends during the fault
	case long:
		lasts = detectTime + time.Second
	case lasts == 0:
		lasts = 2*time.Second + rand.N(10*time.Second)
	}
	call := func(f func(*chaosLink)) {
		if f != nil {
			f(l)
		}
	}
	call(k.prepare)
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
	said := l.said()
	if k.address != "" {
		l.move(k.address)
	}
	l.enter(k.sets...)
	call(k.begin)
	begun := time.Now()
	end := func() {
		l.leave(k.sets...)
		if k.address != "" {
			l.fails(l.x.change(l.addresses("delete", k.address, l.lost)...))
		}
		call(k.end)
	}
	limit := healTime
	if k.silent {
		limit += detectTime
	}
	var heal time.Duration
	var healed bool
	if k.moves {
		// The link works again at once, over the other path.
		heal, healed = s.pings.answer(l, limit+30*time.Second)
		end()
	} else {
		detected := time.Duration(0)
		for time.Since(begun) < lasts {
			if long && detected == 0 && l.noticed(said) {
				detected = time.Since(begun)
				tally.mu.Lock()
				tally.detect = append(tally.detect, detected)
				tally.mu.Unlock()
			}
			time.Sleep(min(100*time.Millisecond, lasts)) // a file sends no notification when it grows
		}
		if long && detected == 0 {
			c.breaks("%s, %s: not detected within %v", k.name, line, detectTime)
		}
		end()
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
		c.breaks("%s, %s: healed after %v at %v, at most %v are allowed:\n%s", k.name, line, heal.Round(time.Millisecond), now.Format(time.TimeOnly), limit, tail(l.log))
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, ok := s.when(jid, l.id); ok {
			return
		}
	}
}

// judge checks the results of the jobs and adds a row.
func (s *linkSite) judge(c *campaign, k linkFault, tally *linkTally, caught map[string]int) {
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
	packets := ""
	if set := cmp.Or(k.address, strings.Join(k.sets, "")); set != "" {
		packets = fmt.Sprint(caught[set])
		if caught[set] == 0 && (set != "lossy" || tally.faults > 1) { // a single lossy link may lose no packet
			c.breaks("%s: no packet was caught", k.name)
		}
	}
	c.row(k.name, tally.faults, packets, healMedian, healMost, detectMedian, detectMost, len(tally.jobs), once, never, missing, twice)
}

// middle returns the median and the largest of the durations.
func middle(d []time.Duration) (median, largest string) {
	if len(d) == 0 {
		return "", ""
	}
	slices.Sort(d)
	return d[len(d)/2].Round(10 * time.Millisecond).String(), d[len(d)-1].Round(10 * time.Millisecond).String()
}
