// Package clones finds ids that several hosts use at once with one key, as copies of a machine's image do. Two hosts
// that cannot be the same one must answer one question, twice in a row.
//
//	another address, other hardware ──► suspect ──► asked ──► one answers: asked again later, then left alone
//	                                                  │
//	                                                  └──► two answer ──► asked once more ──► found: event, Notes
//	                                                                                            │
//	                             one host alone answered several times in a row ◄── asked from time to time
package clones

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// Clone is an id that several hosts use at once with one key, as copies of a machine's image do.
type Clone struct {
	ID    string
	Since time.Time
	Hosts []Host
}

// Host is what one of them said of itself.
type Host struct {
	Name, MachineID, UUID string
	HWAddrs, IPv4         []string // sorted
}

const (
	// cloneFirst is how soon after a suspicion the question is asked: a new connection takes a moment until it listens.
	// cloneQuiet is how long another address alone is no reason to ask again.
	cloneFirst, cloneQuiet = 2 * time.Second, 10 * time.Minute
	// cloneRecheck is how often it is asked whether clones are there still, cloneGone how often in a row one host alone
	// must have answered.
	cloneRecheck, cloneGone = 5 * time.Minute, 3
	// cloneBatch is how many ids one question is for.
	cloneBatch = 500
	// maxGuarded bounds the minions of which it is remembered what they said last.
	maxGuarded = 200_000
)

// hostGrains are the grains that hostOf reads.
var hostGrains = [...]string{"machine_id", "uuid", "hwaddr_interfaces", "nodename", "ipv4"}

// cloneAgain are the pauses before the question is asked again when one host alone has answered.
var cloneAgain = [...]time.Duration{10 * time.Second, time.Minute}

// Guard finds out whether an id is used by several hosts. Another address or other hardware than before is reason to
// ask, and nothing more: a host may be replaced, a way through the network may change. The question is a job for that
// id, and only if two hosts that cannot be the same one answer it, twice in a row, they are there both.
type Guard struct {
	asker  Asker
	notes  Notes
	events *events.Bus
	window time.Duration
	log    *slog.Logger
	seed   maphash.Seed
	wake   chan struct{}

	mu    sync.Mutex // guards the fields below
	known map[string]guarded
	due   map[string]cloneCheck
	last  map[string]time.Time // when it was asked last whether clones are there still
	alone map[string]int       // how often in a row one of those that were found has answered alone
}

// guarded is what was seen last of a minion: hashes of its host's marks and of its address, 0 for none.
type guarded struct {
	marks, peer uint64
	asked       time.Time
}

// cloneCheck is a question that is to be asked.
type cloneCheck struct {
	next  time.Time
	done  int  // of cloneAgain
	watch bool // of one that was found
}

// Asker is what a Guard needs of the master.
type Asker interface {
	// Accepted reports whether a minion has an accepted key.
	Accepted(id string) bool
	// Grains returns what is known of a minion's grains.
	Grains(id string) (grains map[string]any, known bool)
	// AskHosts asks minions for grains until ctx ends, and calls each with every answer, also with further ones of the
	// same id.
	AskHosts(ctx context.Context, ids, grains []string, each func(id string, answer any))
}

// Notes keep the clones that were found: Memory, or the database of several masters.
type Notes interface {
	// Add keeps what was found of an id, unless something is kept already. It reports whether this was the first.
	Add(ctx context.Context, id string, body []byte) (first bool, err error)
	// Read returns what is kept of an id, nil if there is nothing.
	Read(ctx context.Context, id string) ([]byte, error)
	// Drop forgets an id. It is no error that nothing was kept.
	Drop(ctx context.Context, id string) error
	// IDs lists the ids of which something is kept.
	IDs(ctx context.Context) ([]string, error)
}

// NewGuard returns a Guard, which asks while Run runs. window is how long hosts may take to answer.
func NewGuard(asker Asker, notes Notes, bus *events.Bus, window time.Duration,
	log *slog.Logger) *Guard {
	return &Guard{asker: asker, notes: notes, events: bus, window: window, log: log,
		seed: maphash.MakeSeed(), wake: make(chan struct{}, 1),
		known: make(map[string]guarded), due: make(map[string]cloneCheck),
		last: make(map[string]time.Time), alone: make(map[string]int)}
}

// hostOf reads the grains that tell hosts apart.
func hostOf(grains map[string]any) Host {
	h := Host{Name: fields.Text(grains, "nodename"), MachineID: fields.Text(grains, "machine_id"),
		UUID: strings.ToLower(fields.Text(grains, "uuid"))}
	addrs, _ := payload.Map(grains["hwaddr_interfaces"])
	for _, x := range addrs {
		if mac, ok := payload.Text(x); ok && strings.Trim(mac, "0:") != "" {
			h.HWAddrs = append(h.HWAddrs, strings.ToLower(mac))
		}
	}
	for _, ip := range fields.Texts(grains["ipv4"]) {
		if !strings.HasPrefix(ip, "127.") {
			h.IPv4 = append(h.IPv4, ip)
		}
	}
	slices.Sort(h.HWAddrs)
	slices.Sort(h.IPv4)
	h.HWAddrs = slices.Compact(h.HWAddrs)
	return h
}

// differs says that two hosts cannot be the same one: the firmware or the system has another number, or they have no
// network card in common.
func (h Host) differs(o Host) bool {
	other := func(a, b string) bool { return a != "" && b != "" && a != b }
	common := func(mac string) bool { return slices.Contains(o.HWAddrs, mac) }
	return other(h.UUID, o.UUID) || other(h.MachineID, o.MachineID) ||
		len(h.HWAddrs) > 0 && len(o.HWAddrs) > 0 && !slices.ContainsFunc(h.HWAddrs, common)
}

func (h Host) body() map[string]any {
	return map[string]any{"nodename": h.Name, "machine_id": h.MachineID, "uuid": h.UUID,
		"hwaddrs": nested.Anys(h.HWAddrs), "ipv4": nested.Anys(h.IPv4)}
}

// Map is what events and runners show of it.
func (c Clone) Map() map[string]any {
	hosts := make([]any, len(c.Hosts))
	for i, h := range c.Hosts {
		hosts[i] = h.body()
	}
	return map[string]any{"id": c.ID, "since": c.Since.UTC().Format(time.RFC3339), "hosts": hosts}
}

// SignedIn notes where a minion came from.
func (g *Guard) SignedIn(id, peer string) {
	h := maphash.String(g.seed, address(peer))
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.known[id]
	before := e.peer
	e.peer = h
	now := time.Now()
	if before != 0 && before != h && now.Sub(e.asked) >= cloneQuiet {
		e.asked = now
		g.suspect(id, now)
	}
	g.remember(id, e)
}

// AsksPillar notes what a minion says of its host, before that takes the place of what was known of it.
func (g *Guard) AsksPillar(id string, grains map[string]any) {
	host := hostOf(grains)
	h := maphash.Comparable(g.seed, [3]string{host.UUID, host.MachineID,
		strings.Join(host.HWAddrs, " ")})
	g.mu.Lock()
	e := g.known[id]
	same := e.marks == h
	before := e.marks
	e.marks = h
	g.remember(id, e)
	g.mu.Unlock()
	if same {
		return
	}
	old, ok := g.asker.Grains(id)
	if ok && !hostOf(old).differs(host) || !ok && before == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspect(id, time.Now())
}

// remember keeps what is known of a minion. Callers hold mu.
func (g *Guard) remember(id string, e guarded) {
	if _, ok := g.known[id]; !ok && len(g.known) >= maxGuarded {
		clear(g.known)
	}
	g.known[id] = e
}

// suspect has an id asked. Callers hold mu.
func (g *Guard) suspect(id string, now time.Time) {
	g.due[id] = cloneCheck{next: now.Add(cloneFirst)}
	g.signal()
}

func (g *Guard) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Run asks until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	var questions sync.WaitGroup
	defer questions.Wait()
	for {
		batch, next := g.take(time.Now())
		if len(batch) > 0 {
			questions.Go(func() { g.check(ctx, batch, g.window) })
		}
		timer := time.NewTimer(next)
		select {
		case <-g.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// take takes those whose time has come, and says when to look again.
func (g *Guard) take(now time.Time) (batch map[string]cloneCheck, next time.Duration) {
	next = time.Hour
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, c := range g.due {
		if wait := c.next.Sub(now); wait > 0 {
			next = min(next, wait)
		} else if len(batch) == cloneBatch {
			next = cloneFirst
		} else {
			if batch == nil {
				batch = make(map[string]cloneCheck)
			}
			batch[id] = c
			delete(g.due, id)
		}
	}
	return batch, next
}

// check asks ids, and those of which several hosts answer once more.
func (g *Guard) check(ctx context.Context, batch map[string]cloneCheck, window time.Duration) {
	ids := make([]string, 0, len(batch))
	for id := range batch {
		if g.asker.Accepted(id) {
			ids = append(ids, id)
		}
	}
	answers := g.ask(ctx, ids, window)
	var several []string
	for id, hosts := range answers {
		if len(hosts) > 1 {
			several = append(several, id)
		}
	}
	again := g.ask(ctx, several, window)
	for _, id := range ids {
		switch n := len(again[id]); {
		case ctx.Err() != nil:
			return
		case n > 1:
			g.several(ctx, Clone{ID: id, Since: time.Now().UTC().Truncate(time.Second),
				Hosts: again[id]})
		case n == 0 && len(answers[id]) == 1:
			if batch[id].watch {
				g.one(ctx, id)
			}
			fallthrough
		default:
			if c := batch[id]; !c.watch && c.done < len(cloneAgain) {
				g.mu.Lock()
				if _, ok := g.due[id]; !ok {
					g.due[id] = cloneCheck{next: time.Now().Add(cloneAgain[c.done]),
						done: c.done + 1}
				}
				g.mu.Unlock()
				g.signal()
			}
		}
	}
}

// ask asks ids and gives the hosts that answer in a time, by id: sooner, when several have answered of each.
func (g *Guard) ask(ctx context.Context, ids []string, window time.Duration) map[string][]Host {
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	var mu sync.Mutex
	out := make(map[string][]Host)
	left := len(ids)
	all := make(chan struct{})
	each := func(id string, answer any) {
		grains, ok := payload.Map(answer)
		if _, asked := slices.BinarySearch(ids, id); !ok || !asked {
			return
		}
		host := hostOf(grains)
		mu.Lock()
		defer mu.Unlock()
		if slices.ContainsFunc(out[id], func(o Host) bool { return !o.differs(host) }) {
			return
		}
		out[id] = append(out[id], host)
		if len(out[id]) == 2 {
			if left--; left == 0 {
				close(all)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	go func() {
		select {
		case <-all:
			cancel()
		case <-ctx.Done():
		}
	}()
	g.asker.AskHosts(ctx, ids, hostGrains[:], each)
	mu.Lock()
	defer mu.Unlock()
	return out
}

// several tells of an id that several hosts use, once.
func (g *Guard) several(ctx context.Context, c Clone) {
	g.mu.Lock()
	delete(g.alone, c.ID)
	g.last[c.ID] = time.Now()
	g.mu.Unlock()
	b, err := payload.MarshalBin(c.Map())
	first := false
	if err == nil {
		first, err = g.notes.Add(ctx, c.ID, b)
	}
	if err != nil {
		g.log.Error("Cannot note that hosts share an id", "minion", c.ID, "err", err)
	}
	known := err == nil && !first
	if known {
		return
	}
	body := c.Map()
	g.log.Warn("Several hosts use one id and key: copies of one machine? "+
		"Give each an id and a key of its own", "minion", c.ID, "hosts", body["hosts"])
	body["cloned"] = true
	g.events.Publish("brine/clone/"+c.ID, body)
}

// one notes that one host alone answered; after some times in a row, one of several that were found is left.
func (g *Guard) one(ctx context.Context, id string) {
	g.mu.Lock()
	g.alone[id]++
	n := g.alone[id]
	g.mu.Unlock()
	if n < cloneGone {
		return
	}
	g.Forget(ctx, id)
	g.log.Info("One host alone uses the id again", "minion", id)
	g.events.Publish("brine/clone/"+id, map[string]any{"id": id, "cloned": false})
}

// Forget drops what was found of an id, whose key is gone or which one host uses.
func (g *Guard) Forget(ctx context.Context, id string) {
	g.mu.Lock()
	delete(g.last, id)
	delete(g.alone, id)
	delete(g.known, id)
	g.mu.Unlock()
	if err := g.notes.Drop(ctx, id); err != nil && ctx.Err() == nil {
		g.log.Warn("Cannot forget that hosts shared an id", "minion", id, "err", err)
	}
}

// Recheck asks those that were found, from time to time.
func (g *Guard) Recheck(ctx context.Context, now time.Time) {
	list, err := g.notes.IDs(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("Cannot list ids that hosts share", "err", err)
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range list {
		if now.Sub(g.last[id]) >= cloneRecheck {
			g.last[id] = now
			g.due[id] = cloneCheck{next: now, watch: true}
			g.signal()
		}
	}
}

// List returns what was found, sorted by id, of the ids whose keys are accepted.
func (g *Guard) List(ctx context.Context) ([]Clone, error) {
	ids, err := g.notes.IDs(ctx)
	var out []Clone
	for _, id := range ids {
		var c Clone
		if c, err = g.clone(ctx, id); err != nil {
			return nil, err
		}
		if len(c.Hosts) > 0 && g.asker.Accepted(id) {
			out = append(out, c)
		}
	}
	return out, err
}

// clone is what was found of an id.
func (g *Guard) clone(ctx context.Context, id string) (Clone, error) {
	b, err := g.notes.Read(ctx, id)
	if err != nil || b == nil {
		return Clone{}, err
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	body, _ := payload.Map(v)
	c := Clone{ID: id}
	c.Since, _ = time.Parse(time.RFC3339, fields.Text(body, "since"))
	for _, x := range fields.List(body["hosts"]) {
		h, _ := payload.Map(x)
		c.Hosts = append(c.Hosts, Host{Name: fields.Text(h, "nodename"),
			MachineID: fields.Text(h, "machine_id"), UUID: fields.Text(h, "uuid"),
			HWAddrs: fields.Texts(h["hwaddrs"]), IPv4: fields.Texts(h["ipv4"])})
	}
	return c, err
}

// Check asks now who uses ids, as after the last of the suspicions or, if watch is set, as when clones were found.
// Hosts may take so long to answer.
func (g *Guard) Check(ctx context.Context, id string, watch bool, window time.Duration) {
	g.check(ctx, map[string]cloneCheck{id: {done: len(cloneAgain), watch: watch}}, window)
}

// address is the host of a peer.
func address(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}
