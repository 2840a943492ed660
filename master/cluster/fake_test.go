package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
)

// fakeDB is a database in memory, with what masters share of it.
type fakeDB struct {
	store.Shared // nil: what is not below is not called

	mu       sync.Mutex // guards the fields below
	all      []store.Message
	more     chan struct{} // closed at the next message
	gap      string        // the master that missed messages
	leases   map[string]lease
	secrets  map[string][]store.Secret
	records  map[string]store.KeyRecord
	marks    map[string]bool
	returns  map[string]store.Return
	orders   []store.Order
	purged   []time.Time // messages before these were deleted
	readings int         // of returns
}

type lease struct {
	owner string
	until time.Time
}

func newFakeDB() *fakeDB {
	return &fakeDB{more: make(chan struct{}), leases: make(map[string]lease), secrets: make(map[string][]store.Secret),
		records: make(map[string]store.KeyRecord), marks: make(map[string]bool), returns: make(map[string]store.Return)}
}

// kinds returns the kinds of the messages so far, without those that masters send to keep in touch.
func (db *fakeDB) kinds() (out []string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, m := range db.all {
		if !slices.Contains([]string{tellWho, tellPresent, tellListen, tellSecret}, m.Kind) {
			out = append(out, m.Kind)
		}
	}
	return out
}

// last returns the last message of a kind.
func (db *fakeDB) last(t *testing.T, kind string) store.Message {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, m := range slices.Backward(db.all) {
		if m.Kind == kind {
			return m
		}
	}
	t.Fatalf("no message %q was sent", kind)
	return store.Message{}
}

// miss lets a master learn that it missed messages.
func (db *fakeDB) miss(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.gap = name
	db.wakeFollowers()
}

func (db *fakeDB) MessagesSince(_ context.Context, self, kind string, since int64) ([][]byte, int64, bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	newest := int64(len(db.all))
	if since < 0 || since > newest {
		return nil, newest, false, nil
	}
	var bodies [][]byte
	for _, m := range db.all[since:] {
		if m.Kind == kind && m.From != self {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies, newest, true, nil
}

// wakeFollowers lets followers read; callers hold mu.
func (db *fakeDB) wakeFollowers() {
	close(db.more)
	db.more = make(chan struct{})
}

// sendMessages stores messages; callers hold mu.
func (db *fakeDB) sendMessages(list ...store.Message) {
	for _, m := range list {
		m.Seq = int64(len(db.all) + 1)
		db.all = append(db.all, m)
	}
	db.wakeFollowers()
}

func (db *fakeDB) Tell(_ context.Context, list ...store.Message) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sendMessages(list...)
	return nil
}

func (db *fakeDB) Follow(ctx context.Context, self string, f func([]store.Message)) error {
	db.mu.Lock()
	next := len(db.all)
	db.mu.Unlock()
	for {
		db.mu.Lock()
		var list []store.Message
		for _, m := range db.all[next:] {
			if m.From != self && (m.To == "" || m.To == self) {
				list = append(list, m)
			}
		}
		next = len(db.all)
		gap, more := db.gap == self, db.more
		if gap {
			db.gap = ""
		}
		db.mu.Unlock()
		if gap {
			f(nil)
		}
		if len(list) > 0 {
			f(list)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

func (db *fakeDB) Secrets(_ context.Context, name string) ([]store.Secret, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Clone(db.secrets[name]), nil
}

func (db *fakeDB) AddSecret(_ context.Context, s store.Secret, m store.Message) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if slices.ContainsFunc(db.secrets[s.Name], func(o store.Secret) bool { return o.Version == s.Version }) {
		return false, nil
	}
	db.secrets[s.Name] = append(db.secrets[s.Name], s)
	db.sendMessages(m)
	return true, nil
}

func (db *fakeDB) DropSecrets(_ context.Context, name string, below int64) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.secrets[name] = slices.DeleteFunc(db.secrets[name], func(s store.Secret) bool { return s.Version < below })
	return nil
}

func (db *fakeDB) Lease(_ context.Context, name, owner string, life time.Duration) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if l := db.leases[name]; l.owner != owner && time.Now().Before(l.until) {
		return false, nil
	}
	db.leases[name] = lease{owner, time.Now().Add(life)}
	return true, nil
}

func (db *fakeDB) Release(_ context.Context, name, owner string) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.leases[name].owner == owner {
		delete(db.leases, name)
	}
	return nil
}

func (db *fakeDB) Leases(_ context.Context, prefix string) (map[string]string, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	out := make(map[string]string)
	for name, l := range db.leases {
		if strings.HasPrefix(name, prefix) && time.Now().Before(l.until) {
			out[name] = l.owner
		}
	}
	return out, nil
}

func (db *fakeDB) Key(_ context.Context, id string) (store.KeyRecord, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	r := db.records[id]
	r.ID = id
	return r, nil
}

func (db *fakeDB) SwapKey(_ context.Context, r store.KeyRecord, m store.Message) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.records[r.ID].Epoch != r.Epoch {
		return false, nil
	}
	r.Epoch++
	db.records[r.ID] = r
	db.sendMessages(m)
	return true, nil
}

func (db *fakeDB) Once(_ context.Context, scope string, mark []byte) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	known := db.marks[scope+"/"+string(mark)]
	db.marks[scope+"/"+string(mark)] = true
	return !known, nil
}

func (db *fakeDB) SaveReturnTell(_ context.Context, r store.Return, m store.Message) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, known := db.returns[r.JID+"/"+r.ID]; known {
		return false, nil
	}
	db.returns[r.JID+"/"+r.ID] = r
	db.sendMessages(m)
	return true, nil
}

func (db *fakeDB) Return(_ context.Context, jid, id string) (store.Return, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.readings++
	r, ok := db.returns[jid+"/"+id]
	if !ok {
		return r, store.ErrNotFound
	}
	return r, nil
}

func (db *fakeDB) SaveOrderTell(_ context.Context, o store.Order, _ []store.Delivery, m store.Message) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.orders = append(db.orders, o)
	db.sendMessages(m)
	return nil
}

func (db *fakeDB) PurgeShared(_ context.Context, messages, _ time.Time, _ int) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.purged = append(db.purged, messages)
	return nil
}

// fakeHost is a master without sockets. It records the calls.
type fakeHost struct {
	name string

	mu        sync.Mutex // guards the fields below
	key       *crypt.Key
	connected map[string]struct{}
	awaited   map[string]bool
	published []Publication
	ordered   [][2][]string
	heard     []string
	returned  []string
	deleted   []string
	caughtUp  int
	dismissed int
}

func (h *fakeHost) UseKey(key *crypt.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key = key
}

func (h *fakeHost) PublishHere(p Publication) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.published = append(h.published, p)
	return nil
}

func (h *fakeHost) OrderedElsewhere(ids, connected []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ordered = append(h.ordered, [2][]string{ids, connected})
}

func (h *fakeHost) HeardElsewhere(id string, load map[string]any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, id)
	return probe.IsProbe(load)
}

func (h *fakeHost) Awaits(jid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.awaited[jid]
}

func (h *fakeHost) ReturnedElsewhere(jid, id string, load map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, _ := load["return"].(string)
	h.returned = append(h.returned, jid+"/"+id+": "+value[:min(len(value), 10)])
}

func (h *fakeHost) DeletedElsewhere(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleted = append(h.deleted, id)
}

func (h *fakeHost) CatchUp(context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.caughtUp++
}

func (h *fakeHost) Dismiss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dismissed++
}

func (h *fakeHost) Here(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.connected[id]
	return ok
}

func (h *fakeHost) Connected() map[string]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.connected)
}

// connect makes minions connect to the master, and others disconnect.
func (h *fakeHost) connect(up, down string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range strings.FieldsSeq(up) {
		h.connected[id] = struct{}{}
	}
	for id := range strings.FieldsSeq(down) {
		delete(h.connected, id)
	}
}

// member is one master of a cluster in memory.
type member struct {
	*Several
	host *fakeHost
	bus  *events.Bus
	keys *keys.Store
	at   *subscribers.Presence
	stop func() // ends it in order
}

const (
	testSession = 24 * time.Hour
	testLoop    = time.Minute
)

// join adds a master to a cluster. It does not run before run is called.
func join(t *testing.T, db *fakeDB, name string) *member {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	h := &fakeHost{name: name, connected: make(map[string]struct{}), awaited: make(map[string]bool)}
	k, err := keys.Open(keys.Options{Shared: db, Name: name, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	known, err := sessions.Open("", testSession, time.Minute, log)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{host: h, bus: events.New(nil), keys: k, at: subscribers.NewPresence()}
	m.Several, err = NewSeveral(Options{Vault: NewVault(db, name, Sealing{[]byte(testSealing)}, h), Host: h, Keys: k,
		Sessions: known, Presence: m.at, Events: m.bus, Log: log, Session: testSession, Loop: testLoop})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run makes masters follow each other until the test ends, and returns once they do. Call it in a bubble of
// synctest.
func run(t *testing.T, all ...*member) {
	t.Helper()
	for _, m := range all {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(ctx)
		}()
		m.stop = sync.OnceFunc(func() {
			cancel()
			<-ended
		})
		t.Cleanup(m.stop)
		synctest.Wait()
	}
	time.Sleep(3 * heartbeat)
	synctest.Wait()
}

// cluster runs two masters over one database.
func cluster(t *testing.T) (db *fakeDB, a, b *member) {
	t.Helper()
	db = newFakeDB()
	a, b = join(t, db, "a"), join(t, db, "b")
	run(t, a, b)
	return db, a, b
}
