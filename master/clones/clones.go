// Package clones detects ids that several hosts use at once with the same key, like copies of a machine's
// image. Two hosts that cannot be the same must answer one question, twice in a row.
//
//	another address, other hardware ──► suspect ──► asked ──► one answers: asked again later, then left alone
//	                                                  │
//	                                                  └──► two answer ──► asked once more ──► found: event, Notes
//	                                                                                            │
//	                             only one host answered several times in a row ◄── asked from time to time
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

// Clone is an id that several hosts use at once with the same key, like copies of a machine's image.
type Clone struct {
	ID    string
	Since time.Time
	Hosts []Host
}

// Host describes one of the hosts, by its own report.
type Host struct {
	Name, MachineID, UUID string
	HWAddrs, IPv4         []string // sorted
}

const (
	// cloneFirst is the delay between a suspicion and the question, because a new connection does not listen at
	// once. cloneQuiet is how long a further change of address is not a reason to ask again.
	cloneFirst, cloneQuiet = 2 * time.Second, 10 * time.Minute
	// cloneRecheck is the interval at which found clones are asked again. cloneGone is how often in a row only
	// one host must answer before the clone counts as gone.
	cloneRecheck, cloneGone = 5 * time.Minute, 3
	// cloneBatch is the maximum number of ids in one question.
	cloneBatch = 500
	// maxGuarded limits the minions whose last state is remembered.
	maxGuarded = 200_000
)

// hostGrains are the grains that hostOf reads.
var hostGrains = [...]string{"machine_id", "uuid", "hwaddr_interfaces", "nodename", "ipv4"}

// cloneAgain are the pauses before the question is repeated if only one host has answered.
var cloneAgain = [...]time.Duration{10 * time.Second, time.Minute}

// Guard detects ids used by several hosts. Another address or hardware than before is only a reason to ask,
// because a host may be replaced and a network path may change. The question is a job for that id. Only if two
// hosts that cannot be the same answer it, twice in a row, the id is a clone.
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
	last  map[string]time.Time // last recheck, by id of a found clone
	alone map[string]int       // how often in a row only one host of a found clone has answered
}

// guarded is the last state of a minion: hashes of its host's marks and of its address, 0 if unknown.
type guarded struct {
	marks, peer uint64
	asked       time.Time
}

// cloneCheck is a scheduled question.
type cloneCheck struct {
	next  time.Time
	done  int  // index in cloneAgain
	watch bool // about a found clone
}

// Asker is the master as a Guard uses it.
type Asker interface {
	// Accepted reports whether a minion has an accepted key.
	Accepted(id string) bool
	// Grains returns a minion's cached grains.
	Grains(id string) (grains map[string]any, known bool)
	// AskHosts asks minions for grains until ctx ends. It calls each with every answer, including further ones
	// of the same id.
	AskHosts(ctx context.Context, ids, grains []string, each func(id string, answer any))
}

// Notes stores the found clones: Memory, or a cluster's database.
type Notes interface {
	// Add stores a clone unless its id has one already. It reports whether it was the first.
	Add(ctx context.Context, id string, body []byte) (first bool, err error)
	// Read returns what is stored of an id, or nil.
	Read(ctx context.Context, id string) ([]byte, error)
	// Drop removes an id. A missing id is not an error.
	Drop(ctx context.Context, id string) error
	// IDs returns the stored ids.
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

// hostOf returns the host described by grains.
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

// differs reports whether two hosts cannot be the same: firmware or system have different ids, or they have no
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

// Map returns the clone in the form of events and runners.
func (c Clone) Map() map[string]any {
	hosts := make([]any, len(c.Hosts))
	for i, h := range c.Hosts {
		hosts[i] = h.body()
	}
	return map[string]any{"id": c.ID, "since": c.Since.UTC().Format(time.RFC3339), "hosts": hosts}
}

// SignedIn records from where a minion signed in.
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

// AsksPillar compares a minion's host with its last state, before the new grains replace it.
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

// remember stores the state of a minion. The caller holds mu.
func (g *Guard) remember(id string, e guarded) {
	if _, ok := g.known[id]; !ok && len(g.known) >= maxGuarded {
		clear(g.known)
	}
	g.known[id] = e
}

// suspect schedules a question for an id. The caller holds mu.
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

// Run asks the scheduled questions until ctx ends.
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

// take returns the due questions, and the pause until the next.
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

// check asks about ids, and once more about those for which several hosts answer.
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

// ask asks about ids and returns the answering hosts by id. It returns after window, or when several hosts have
// answered for each id.
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

// several reports an id that several hosts use, once.
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
		g.log.Error("Cannot record that hosts share an id", "minion", c.ID, "err", err)
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

// one records that only one host answered. After several times in a row a found clone counts as gone.
func (g *Guard) one(ctx context.Context, id string) {
	g.mu.Lock()
	g.alone[id]++
	n := g.alone[id]
	g.mu.Unlock()
	if n < cloneGone {
		return
	}
	g.Forget(ctx, id)
	g.log.Info("Only one host uses the id now", "minion", id)
	g.events.Publish("brine/clone/"+id, map[string]any{"id": id, "cloned": false})
}

// Forget removes the record of an id whose key is gone or which only one host uses.
func (g *Guard) Forget(ctx context.Context, id string) {
	g.mu.Lock()
	delete(g.last, id)
	delete(g.alone, id)
	delete(g.known, id)
	g.mu.Unlock()
	if err := g.notes.Drop(ctx, id); err != nil && ctx.Err() == nil {
		g.log.Warn("Cannot remove the record of a shared id", "minion", id, "err", err)
	}
}

// Recheck asks about found clones at intervals.
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

// List returns the found clones with accepted keys, sorted by id.
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

// clone returns the record of an id.
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

// Check queries the hosts that use an id now. Without watch this is the last check after a suspicion; with watch it
// is one of the regular checks of known clones. window is how long hosts may take to answer.
func (g *Guard) Check(ctx context.Context, id string, watch bool, window time.Duration) {
	g.check(ctx, map[string]cloneCheck{id: {done: len(cloneAgain), watch: watch}}, window)
}

// address returns the host of a peer.
func address(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}
