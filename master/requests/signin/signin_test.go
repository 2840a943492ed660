package signin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// house is a master around a Desk. It records, in order, the calls about minions.
type house struct {
	grains map[string]any // autosign_grains of the next sign-in
	*Desk
	log       testlog.Buffer
	key       *crypt.Key
	told      []string
	connected []string
	token     Verdict
	err       error // of the store
}

func (h *house) IssueSession(string, *crypt.PublicKey) (*crypt.Key, error) { return h.key, nil }

func (h *house) PublishKey(_ context.Context, peer, id string) (*crypt.Key, error) {
	h.told = append(h.told, "key "+id+" "+peer)
	return h.key, h.err
}

func (h *house) Crowded(id string, most int) bool {
	return len(h.connected) > most && !slices.Contains(h.connected, id)
}

func (h *house) Announced(_ context.Context, id string) (tenant string, announced bool, err error) {
	return "tenant of " + id, true, h.err
}

func (h *house) JudgeToken(context.Context, protocol.AuthRequest) (Verdict, error) {
	return h.token, h.err
}

func (h *house) Joined(_ context.Context, id string) { h.told = append(h.told, "joined "+id) }

func (h *house) SignedIn(id, peer string) { h.told = append(h.told, "clone? "+id+" "+peer) }

func (h *house) Contact(id string) { h.told = append(h.told, "contact "+id) }

func (h *house) CountSignIn(act string) { h.told = append(h.told, act) }

// judge is an acceptor that always returns the same verdict.
type judge struct {
	name    string
	before  bool
	verdict Verdict
	err     error
	asked   *[]string
	about   *Applicant
}

func (j judge) Name() string      { return j.name }
func (j judge) BeforeToken() bool { return j.before }

func (j judge) Judge(_ context.Context, a Applicant) (Verdict, error) {
	*j.asked = append(*j.asked, j.name)
	*j.about = a
	return j.verdict, j.err
}

func newHouse(t *testing.T, change func(o *Options)) *house {
	t.Helper()
	h := &house{}
	ks := requesttest.Keys(t)
	var err error
	if h.key, err = crypt.NewKey(); err != nil {
		t.Fatal(err)
	}
	o := Options{Identity: protocol.AuthIdentity{Key: requesttest.Key(), Now: time.Now}, Keys: ks, Sessions: h, Network: h,
		Records: h, Presence: subscribers.NewPresence(), Clones: h, Contacts: h, Counts: h, Events: events.New(nil),
		Hourly: ratelimit.NewHourlyLog(), Rate: -1, Log: slog.New(slog.NewTextHandler(&h.log, nil))}
	if change != nil {
		change(&o)
	}
	h.Desk = New(o)
	return h
}

// signIn has a minion sign in; an answer that is missing is an error.
func (h *house) signIn(t *testing.T, peer, id string, token string) (protocol.SigninStatus, error) {
	t.Helper()
	h.told = nil
	s := protocol.Signin{ID: id, Key: requesttest.Key(), JoinToken: token, AutosignGrains: h.grains}
	e, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	reply, answered := h.SignIn(t.Context(), peer, e, 4505)
	if !answered {
		return 0, errors.New("no answer")
	}
	packed, err := payload.Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	v, err := payload.Unmarshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Reply(v)
	if err == nil && res.Status == protocol.Accepted && (!res.AES.Equal(h.key) || res.PublishPort != 4505) {
		t.Errorf("accepted with %+v", res)
	}
	return res.Status, err
}

// TestNobodyWaits: a sign-in whose minion closed its connection while it waited for its turn costs no signature,
// and its key is not stored.
func TestNobodyWaits(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Policy.AutoAccept = true })
	s := protocol.Signin{ID: "m", Key: requesttest.Key()}
	e, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	left := false
	ctx := transport.WithLeft(t.Context(), func() bool { return left })
	for range cap(h.turns) {
		h.turns <- struct{}{}
	}
	answered := make(chan bool)
	go func() {
		_, ok := h.SignIn(ctx, "far:1", e, 4505)
		answered <- ok
	}()
	for len(h.slots) == 0 {
		runtime.Gosched()
	}
	left = true
	for range cap(h.turns) {
		<-h.turns
	}
	if <-answered || len(h.told) > 0 || h.Keys.State("m") == keys.Accepted {
		t.Errorf("answered; told %q", h.told)
	}
	left = false
	if reply, ok := h.SignIn(ctx, "far:1", e, 4505); !ok || reply == nil || h.Keys.State("m") != keys.Accepted {
		t.Error("a minion that waits has no answer")
	}
}

// TestSignIn: the resulting state of a key, and the calls and events about it.
func TestSignIn(t *testing.T) {
	accepted := []string{"key m far:1", "accept", "clone? m far:1", "joined m", "contact m"}
	other, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options func(o *Options)
		house   func(h *house)
		id      string
		want    protocol.SigninStatus
		told    []string
		log     string
	}{
		"waits":         {nil, nil, "m", protocol.Pending, []string{"pend"}, "New key waits"},
		"odd id waits":  {nil, nil, "m$x", protocol.Pending, []string{"pend"}, "quote it in commands"},
		"accepts all":   {func(o *Options) { o.Policy.AutoAccept = true }, nil, "m", protocol.Accepted, accepted, ""},
		"accepted key":  {nil, func(h *house) { h.preseed(t, "m", requesttest.Key()) }, "m", protocol.Accepted, accepted, ""},
		"another key":   {nil, func(h *house) { h.preseed(t, "m", other) }, "m", protocol.Denied, []string{"denied"}, "another key"},
		"full":          {func(o *Options) { o.MaxMinions = 1 }, func(h *house) { h.connected = []string{"a", "b"} }, "m", protocol.Full, []string{"full"}, "too many minions"},
		"full, but in":  {func(o *Options) { o.MaxMinions, o.Policy.AutoAccept = 1, true }, func(h *house) { h.connected = []string{"a", "m"} }, "m", protocol.Accepted, accepted, ""},
		"confusing id":  {nil, nil, "m*", protocol.Rejected, nil, "may not have this id"},
		"a path as id":  {nil, nil, "../m", protocol.Rejected, nil, "Sign-in refused"},
		"without words": {func(o *Options) { o.NoEvents = true }, nil, "m", protocol.Pending, []string{"pend"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.options)
			if c.house != nil {
				c.house(h)
			}
			sub := h.Events.Subscribe(events.SubscribeOptions{})
			defer sub.Close()
			if st, err := h.signIn(t, "far:1", c.id, ""); st != c.want || err != nil {
				t.Errorf("%v, %v", st, err)
			}
			if d := cmp.Diff(c.told, h.told); d != "" {
				t.Error(d)
			}
			if !strings.Contains(h.log.String(), c.log) {
				t.Errorf("the log is %q", h.log.String())
			}
			if len(c.told) == 0 || h.NoEvents {
				if n := sub.Waiting(); n != 0 {
					t.Error(n, "events")
				}
				return
			}
			e, err := sub.Next(t.Context())
			if err != nil || e.Tag != "salt/auth" || e.Data["id"] != c.id ||
				e.Data["result"] != (c.want == protocol.Accepted || c.want == protocol.Pending) {
				t.Error(e, err)
			}
		})
	}
}

// TestRefusalsOfAddresses: sign-ins that are refused before their id is known to be valid are logged once for each reason and address,
// whatever ids they claim.
func TestRefusalsOfAddresses(t *testing.T) {
	for text, c := range map[string]struct {
		fips  bool
		field string
		value any
	}{
		"Sign-in refused":                {field: "id", value: "../"},
		"Sign-in with unknown algorithm": {field: "enc_algo", value: "rot13"},
		"Bad sign-in request":            {field: "nonce", value: int64(1)},
		"Sign-in with an algorithm that FIPS mode does not allow": {fips: true},
	} {
		h := newHouse(t, func(o *Options) { o.FIPS = c.fips })
		for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
			before := len(h.log.String())
			for port := range 5 {
				s := protocol.Signin{ID: fmt.Sprint("m", port), Key: requesttest.Key()}
				e, err := s.Request()
				if err != nil {
					t.Fatal(err)
				}
				load, _ := payload.Map(e.Load)
				if c.field != "" {
					load[c.field] = c.value
				}
				if c.field == "id" {
					load["id"] = c.value.(string) + s.ID
				}
				e.Load = load
				h.SignIn(t.Context(), fmt.Sprint(from, ":", port+1), e, 4505)
			}
			if added := h.log.String()[before:]; strings.Count(added, text) != 1 {
				t.Errorf("%q of %s is not logged once:\n%s", text, from, added)
			}
		}
	}
}

// TestGrainsInEvents: the event of a sign-in has the autosign_grains if its act is listed.
func TestGrainsInEvents(t *testing.T) {
	for _, c := range []struct {
		acts []string
		want any
	}{{nil, nil}, {[]string{"accept", "denied"}, nil}, {[]string{"pend"}, map[string]any{"uuid": "x"}}} {
		h := newHouse(t, func(o *Options) { o.EventGrains = c.acts })
		h.grains = map[string]any{"uuid": "x"}
		sub := h.Events.Subscribe(events.SubscribeOptions{Prefix: "salt/auth"})
		defer sub.Close()
		if st, err := h.signIn(t, "far:1", "m", ""); st != protocol.Pending || err != nil {
			t.Fatal(st, err)
		}
		e, err := sub.Next(t.Context())
		if d := cmp.Diff(c.want, e.Data["autosign_grains"]); err != nil || d != "" {
			t.Errorf("%q: %v %s", c.acts, err, d)
		}
	}
}

func (h *house) preseed(t *testing.T, id string, key *crypt.PrivateKey) {
	t.Helper()
	if err := h.Keys.Preseed(id, key.Public().Text()); err != nil {
		t.Fatal(err)
	}
}

// TestAcceptors: acceptors are asked in order, before and after the token. The first opinion counts; if none has
// one, the operator decides.
func TestAcceptors(t *testing.T) {
	yes, no := Verdict{Accept, "known"}, Verdict{Reject, "stolen"}
	for name, c := range map[string]struct {
		before, after, token Verdict
		err                  error // of the acceptor before
		shows                string
		want                 protocol.SigninStatus
		asked                []string
		by                   string
	}{
		"no opinion":         {want: protocol.Pending, asked: []string{"first", "second"}},
		"the first":          {before: yes, after: no, want: protocol.Accepted, asked: []string{"first"}, by: "first"},
		"the second":         {after: no, want: protocol.Rejected, asked: []string{"first", "second"}, by: "second"},
		"a good token":       {token: yes, after: no, shows: "t", want: protocol.Accepted, asked: []string{"first"}, by: "token"},
		"before a token":     {before: no, token: yes, shows: "t", want: protocol.Rejected, asked: []string{"first"}, by: "first"},
		"a bad token":        {token: no, shows: "t", want: protocol.Pending, asked: []string{"first", "second"}, by: "token"},
		"a bad token, known": {token: no, after: yes, shows: "t", want: protocol.Accepted, asked: []string{"first", "second"}, by: "token"},
		"cannot judge":       {err: errors.New("no network"), after: yes, want: protocol.Pending, asked: []string{"first"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			var about Applicant
			h := newHouse(t, func(o *Options) {
				o.Acceptors = []Acceptor{judge{"first", true, c.before, c.err, &asked, &about},
					judge{"second", false, c.after, nil, &asked, &about}}
			})
			h.token = c.token
			sub := h.Events.Subscribe(events.SubscribeOptions{Prefix: "brine/join/"})
			defer sub.Close()
			if st, err := h.signIn(t, "far:1", "m", c.shows); st != c.want || err != nil {
				t.Error(st, err)
			}
			if d := cmp.Diff(c.asked, asked); d != "" {
				t.Error(d)
			}
			if about.ID != "m" || about.Peer != "far:1" || about.Tenant != "tenant of m" || !about.Announced ||
				about.PubText == "" || about.Fingerprint == "" {
				t.Errorf("asked about %+v", about)
			}
			if c.by == "" {
				if n := sub.Waiting(); n != 0 {
					t.Error(n, "events")
				}
				return
			}
			if e, err := sub.Next(t.Context()); err != nil || e.Tag != "brine/join/m" || e.Data["acceptor"] != c.by {
				t.Error(e, err)
			}
		})
	}
	var asked []string
	h := newHouse(t, func(o *Options) { o.Acceptors = []Acceptor{judge{"first", true, no, nil, &asked, new(Applicant)}} })
	h.preseed(t, "m", requesttest.Key())
	if st, err := h.signIn(t, "far:1", "m", ""); st != protocol.Accepted || len(asked) != 0 {
		t.Error("asked about an accepted key:", st, err, asked)
	}
	h.err = errors.New("no database")
	if st, err := h.signIn(t, "far:1", "m", ""); err == nil {
		t.Error("answered though the store is down:", st)
	}
}

// TestSignInsAreBounded: a source signs in so often, and a minion whose key is accepted also from a source that is beyond
// its bound.
func TestSignInsAreBounded(t *testing.T) {
	requesttest.Key() // made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(o *Options) { o.Rate, o.Burst = 1, 3 })
		h.preseed(t, "known", requesttest.Key())
		answered := func(peer, id string) bool {
			t.Helper()
			_, err := h.signIn(t, peer, id, "")
			return err == nil
		}
		for i := range 5 {
			if got := answered("192.0.2.1:1", fmt.Sprint("new", i)); got != (i < 3) {
				t.Errorf("sign-in %d: %v", i, got)
			}
		}
		for i := range knownBurst + 1 {
			if got := answered("192.0.2.1:1", "known"); got != (i < knownBurst) {
				t.Errorf("sign-in %d of a known minion: %v", i, got)
			}
		}
		if !answered("198.51.100.1:1", "elsewhere") {
			t.Error("another source is bound too")
		}
		time.Sleep(time.Second)
		if !answered("192.0.2.1:1", "new9") {
			t.Error("a second later")
		}
	})
}

// TestKeysAreStoredAside: sign-ins whose keys are being stored leave their turns to others, and take them again
// afterwards.
func TestKeysAreStoredAside(t *testing.T) {
	d := New(Options{})
	turns := cap(d.turns)
	full := errors.New("disk full")
	gate := make(chan struct{})
	var storing, all sync.WaitGroup
	storing.Add(2 * turns)
	for range 2 * turns {
		all.Go(func() {
			d.turns <- struct{}{}
			err := d.storeAside(func() error { storing.Done(); <-gate; return full })
			if !errors.Is(err, full) {
				t.Errorf("stored with error %v", err)
			}
			<-d.turns
		})
	}
	storing.Wait() // more than there are turns: none waits for one
	if n := len(d.turns); n != 0 {
		t.Errorf("%d turns are taken while keys are stored", n)
	}
	close(gate)
	all.Wait()
	d.turns <- struct{}{}
	func() {
		defer func() { _ = recover() }()
		_ = d.storeAside(func() error { panic("in the store") })
	}()
	if n := len(d.turns); n != 1 {
		t.Errorf("%d turns are taken after a panic, want the one of who panicked", n)
	}
}

// TestEventGrainsAreBounded: no event has large grains, which a peer without a key can send.
func TestEventGrainsAreBounded(t *testing.T) {
	for _, size := range []int{1000, maxEventGrains - 100, maxEventGrains, 1 << 20} {
		h := newHouse(t, func(o *Options) { o.EventGrains = []string{"pend"} })
		h.grains = map[string]any{"uuid": strings.Repeat("x", size)}
		sub := h.Events.Subscribe(events.SubscribeOptions{Prefix: "salt/auth"})
		defer sub.Close()
		if st, err := h.signIn(t, "far:1", "m", ""); st != protocol.Pending || err != nil {
			t.Fatal(st, err)
		}
		e, err := sub.Next(t.Context())
		if has := e.Data["autosign_grains"] != nil; err != nil || has != (size < maxEventGrains) {
			t.Errorf("%d bytes: %v %v", size, has, err)
		}
	}
}
