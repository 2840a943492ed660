package subscribers

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// network is a transport with the connections of some minions, which keeps what is published.
type network struct {
	transport.Server
	minions  []string // whose connections are known
	nameless int
	sent     []publish
}

// publish is a message and the ids that it was published to; nil means all.
type publish struct {
	msg []byte
	to  []string
}

func (n *network) Subscribers() int  { return len(n.minions) + n.nameless }
func (n *network) Present() []string { return n.minions }

func (n *network) Reach(ids ...string) (named, nameless int) {
	for _, id := range ids {
		if slices.Contains(n.minions, id) {
			named++
		}
	}
	return named, n.nameless
}

func (n *network) Publish(msg []byte, ids []string) error {
	n.sent = append(n.sent, publish{msg, ids})
	return nil
}

// told is a message that one group of minions received, under the key of their tenant.
type told struct {
	Tenant  string
	To      []string
	Fun     any
	Tgt     any
	Serial  bool
	Argless bool
}

// opened returns what was published, opened with the keys of tenants.
func (n *network) opened(t *testing.T, k *Keyring, names ...string) (out []told) {
	t.Helper()
	for _, p := range n.sent {
		e, err := protocol.ParseEnvelope(p.msg,
			payload.Limits{Depth: 8, Elements: 100, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, name := range append([]string{""}, names...) {
			key, err := k.KeyOf(name)
			if err != nil {
				t.Fatal(err)
			}
			job, err := protocol.OpenPublish(e, key, requesttest.Key().Public(), true)
			if err != nil {
				continue
			}
			args, _ := job["arg"].([]any)
			_, serial := job["serial"]
			out = append(out, told{name, p.to, job["fun"], job["tgt"], serial, len(args) == 0})
			found = true
			break
		}
		if !found {
			t.Error("sealed under a key that nobody has")
		}
	}
	n.sent = nil
	return out
}

// newSender returns a Sender with a network, over minions with these tenants. Those in fetch fetch their jobs.
func newSender(t *testing.T, of map[string]string, fetch ...string) (*Sender, *network) {
	t.Helper()
	ks := requesttest.Keys(t, slices.Collect(maps.Keys(of))...)
	minions, _ := store.MinionsOf(store.NewMemory())
	n := &network{}
	for id, tenant := range of {
		err := store.ChangeMinion(t.Context(), minions, id, func(x *store.Minion) bool {
			x.Tenant, x.Spec["fetch"] = tenant, slices.Contains(fetch, id)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		n.minions = append(n.minions, id)
	}
	slices.Sort(n.minions)
	ring := new(Keyring)
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	ring.Use(key)
	log := slog.New(slog.DiscardHandler)
	registry := tenants.New(minions, log)
	if _, err := registry.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := NewSender(SenderOptions{Keyring: ring, Tenants: registry, Minions: minions, Keys: ks,
		Names: NewIdentifier(&fakeProber{}, NewPresence(), log), Connected: n,
		Key:       requesttest.Key(),
		Algorithm: crypt.PKCS1v15SHA224, Clock: new(protocol.JIDClock), Log: log})
	s.Use([]transport.Server{n})
	return s, n
}

// newJob returns a job with an argument.
func newJob(tgt any) map[string]any {
	return map[string]any{"fun": "test.echo", "arg": []any{"secret"}, "tgt": tgt,
		"tgt_type": "list", "ret": "",
		"jid": string(protocol.NewJID(time.Now()))}
}

// TestWhoReadsAJob: a job goes whole to those it is for; where others would read its arguments, minions that fetch get
// an announcement.
func TestWhoReadsAJob(t *testing.T) {
	s, n := newSender(t, map[string]string{"a": "", "b": "", "old": ""}, "a", "b")
	list := func(ids ...any) []any { return ids }
	whole := func(to []string, tgt any) told { return told{"", to, "test.echo", tgt, true, false} }
	announced := func(to []string, tgt any) told {
		return told{"", to, protocol.FetchFun, tgt, true,
			true}
	}
	for _, c := range []struct {
		name     string
		nameless int
		to       Audience
		want     []told
	}{
		{"known connections", 0, Audience{[]string{"a"}, []string{"a"}},
			[]told{whole([]string{"a"}, list("a"))}},
		{"to everybody", 0, Audience{[]string{"a"}, nil}, []told{announced(nil, list("a"))}},
		{"some are unknown", 1, Audience{[]string{"a", "b"}, []string{"a", "b"}},
			[]told{announced([]string{"a", "b"}, list("a", "b"))}},
		{"one does not fetch", 1, Audience{[]string{"a", "old"}, []string{"a", "old"}},
			[]told{announced([]string{"a"}, list("a")), whole([]string{"old"}, list("a", "old"))}},
		{"for all", 1, Audience{[]string{"a", "b", "old"}, nil},
			[]told{whole(nil, list("a", "b", "old"))}},
		{"never fetched", 1, Audience{nil, []string{"a"}}, []told{whole([]string{"a"}, []any{})}},
		{"nobody is there", 0, Audience{[]string{"gone"}, []string{"gone"}}, nil},
	} {
		n.nameless = c.nameless
		tgt := list()
		for _, id := range c.to.IDs {
			tgt = append(tgt, id)
		}
		if err := s.Send(newJob(tgt), c.to); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, n.opened(t, s.Keyring)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	s.Isolate, n.nameless = true, 1
	if err := s.Send(newJob(list("a")), Audience{[]string{"a"}, []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]told{whole([]string{"a"}, list("a"))}, n.opened(t, s.Keyring)); d != "" {
		t.Error("isolated:", d)
	}
	if !s.Here("a") || s.Here("gone") {
		t.Error("who is here")
	}
}

// TestTenantsReadTheirOwn: each tenant's minions get a job under their own key, and its target names no others.
func TestTenantsReadTheirOwn(t *testing.T) {
	s, n := newSender(t, map[string]string{"a": "blue", "b": "red", "c": "red", "free": ""})
	s.Name = "x" // equal masters send no serial
	job := newJob([]any{"a", "b", "c", "free"})
	if err := s.Send(job, Audience{[]string{"a", "b", "c", "free"}, nil}); err != nil {
		t.Fatal(err)
	}
	want := []told{{"", []string{"free"}, "test.echo", []any{"free"}, false, false},
		{"blue", []string{"a"}, "test.echo", []any{"a"}, false, false},
		{"red", []string{"b", "c"}, "test.echo", []any{"b", "c"}, false, false}}
	if d := cmp.Diff(want, n.opened(t, s.Keyring, "blue", "red")); d != "" {
		t.Error(d)
	}
	all := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob",
		"ret": "",
		"jid": string(protocol.NewJID(time.Now()))}
	if err := s.Send(all, Audience{nil, []string{"b", "c"}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]told{{"red", []string{"b", "c"}, "test.ping", "*", false, true}},
		n.opened(t, s.Keyring, "blue", "red")); d != "" {
		t.Error(d)
	}
	old, err := s.Keyring.KeyOf("red")
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s.Keyring.Use(key)
	if now, err := s.Keyring.KeyOf("red"); err != nil || now.Equal(old) {
		t.Error("a tenant's key outlives the key that it is made from:", err)
	}
}

// TestDismissal: a connected minion whose key is not accepted gets a job without targets; serials rise.
func TestDismissal(t *testing.T) {
	s, n := newSender(t, map[string]string{"a": "", "b": ""})
	if s.Dismiss(); len(n.sent) != 0 {
		t.Error("accepted minions are dismissed")
	}
	if err := s.Keys.Delete("b"); err != nil {
		t.Fatal(err)
	}
	s.Dismiss()
	if d := cmp.Diff([]told{{"", []string{"b"}, "test.ping", []any{}, true, true}},
		n.opened(t, s.Keyring)); d != "" {
		t.Error(d)
	}
	var got []byte
	if sent, err := s.SealProbe("", "mark",
		func(msg []byte) bool { got = msg; return true }); !sent || err != nil || got == nil {
		t.Error(sent, err)
	}
	now := time.Now()
	if a, b := s.Keyring.next(now), s.Keyring.next(now); b <= a {
		t.Errorf("serial %d after %d", b, a)
	}
}
