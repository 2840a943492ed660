package door

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

type object = map[string]any

// house is what a door leads to. It notes what reaches it.
type house struct {
	door    *Door
	log     testlog.Buffer
	shared  *crypt.Key
	reached []string
	counted []string
	seen    error // what FirstTime returns; errSeen is not for the first time
	minion  protocol.Requester
}

var errSeen = errors.New("seen")

func (h *house) Answer(_ context.Context, v protocol.Verified) (result any, known bool, err error) {
	h.reached = append(h.reached, v.ID()+" "+v.Cmd())
	switch v.Cmd() {
	case "good":
		return object{"x": v.Load()["x"]}, true, nil
	case "bad":
		return "half", true, errors.New("secret reason")
	case "dropped":
		return nil, true, fmt.Errorf("disk full: %w", acks.ErrDropped)
	case "later":
		return nil, true, acks.ErrLater
	case "panics":
		panic("oops")
	case "unsealable":
		return make(chan int), true, nil
	}
	return nil, false, nil
}

func (h *house) ReplyPillar(_ context.Context, v protocol.Verified, _ protocol.Envelope, _ *crypt.PublicKey) any {
	return "pillar of " + v.ID()
}

func (h *house) UnderKey(_ context.Context, _ string, _ int, open func(key *crypt.Key) (id string, err error)) error {
	_, err := open(h.shared)
	return err
}

func (h *house) FirstTime(context.Context, protocol.Verified) (bool, error) {
	if errors.Is(h.seen, errSeen) {
		return false, nil
	}
	return h.seen == nil, h.seen
}

func (h *house) SignIn(_ context.Context, peer string, _ protocol.Envelope, publishPort int) (reply any, answered bool) {
	return fmt.Sprint(peer, " ", publishPort), peer != "flood:1"
}

func (h *house) IsLocal(peer string) bool { return peer == "here:1" }

func (h *house) Serve(_ context.Context, peer, cmd string, load map[string]any, ordered func() map[string]any) any {
	return []any{peer, cmd, load["arg"], ordered()["arg"]}
}

func (h *house) CountRequest(cmd string, _ time.Time) { h.counted = append(h.counted, cmd) }

// newHouse returns a house whose minion m has signed in.
func newHouse(t *testing.T, change func(o *Options)) *house {
	t.Helper()
	h := &house{}
	log := slog.New(slog.NewTextHandler(&h.log, nil))
	ks := requesttest.Keys(t, "m")
	minion := requesttest.Key()
	list, err := sessions.Open("", 24*time.Hour, 5*time.Minute, log)
	if err != nil {
		t.Fatal(err)
	}
	key, err := list.Issue("m", minion.Public())
	if err != nil {
		t.Fatal(err)
	}
	token, err := protocol.RequestToken(minion)
	if err != nil {
		t.Fatal(err)
	}
	if h.shared, err = crypt.NewKey(); err != nil {
		t.Fatal(err)
	}
	h.minion = protocol.Requester{ID: "m", Session: key, Token: token}
	alone := cluster.NewAlone(cluster.AloneOptions{Store: store.NewMemory(), Sessions: list, Session: 24 * time.Hour})
	o := Options{Answers: h, Keys: ks, Sessions: alone.Secrets(), SharedKey: h, Peers: h, SignIns: h, Tools: h,
		Presence: subscribers.NewPresence(), Counts: h, MinimumVersion: 3, ReplayWindow: 5 * time.Minute, Log: log}
	if change != nil {
		change(&o)
	}
	h.door = New(o)
	return h
}

// send hands in a message and returns what is answered, nil for silence.
func (h *house) send(t *testing.T, peer string, body []byte) any {
	t.Helper()
	packed := h.door.Handle(t.Context(), peer, bytes.Clone(body), 4505) // which is opened in place
	if packed == nil {
		return nil
	}
	v, err := payload.Unmarshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func pack(t *testing.T, v any) []byte {
	t.Helper()
	b, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seal returns a request of the minion, and its nonce.
func (h *house) seal(t *testing.T, load map[string]any) (body []byte, nonce string) {
	t.Helper()
	e, nonce, err := h.minion.Pack(load, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if body, err = e.Marshal(); err != nil {
		t.Fatal(err)
	}
	return body, nonce
}

// TestClearRequests: what comes in the clear reaches the sign-in and tools, and nothing else.
func TestClearRequests(t *testing.T) {
	clear := func(load any) []byte { return pack(t, object{"enc": "clear", "version": 3, "load": load}) }
	large := clear(object{"cmd": "ping", "x": strings.Repeat("x", clearBytes)})
	many := make([]any, clearElements)
	for i := range many {
		many[i] = int64(i)
	}
	const exception = "Some exception handling minion payload"
	h := newHouse(t, nil)
	deaf := newHouse(t, func(o *Options) { o.Tools = nil })
	for _, c := range []struct {
		name string
		to   *house
		peer string
		body []byte
		want any
	}{
		{"bytes", h, "far:1", []byte("\xc1"), object{"msg": protocol.BadLoad}},
		{"not an envelope", h, "far:1", pack(t, "x"), protocol.BadLoad},
		{"old dialect", h, "far:1", pack(t, object{"enc": "clear", "version": 1, "load": object{"cmd": "ping"}}), protocol.BadLoad},
		{"ping", h, "far:1", clear(object{"cmd": "ping"}), object{"cmd": "ping"}},
		{"too large", h, "far:1", large, protocol.BadLoad},
		{"as large from here", h, "here:1", large, object{"cmd": "ping", "x": strings.Repeat("x", clearBytes)}},
		{"too many parts", h, "far:1", clear(object{"cmd": "publish", "arg": many}), object{"msg": protocol.BadLoad}},
		{"as many from here", h, "here:1", clear(object{"cmd": "publish", "arg": many}), []any{"here:1", "publish", many, many}},
		{"no load", h, "far:1", clear("x"), "payload and load must be a dict"},
		{"no command", h, "far:1", clear(object{"x": "y"}), exception},
		{"an id that is a number", h, "far:1", clear(object{"cmd": "ping", "id": 7}), "bad load: id 7 is not a string"},
		{"an id with a null", h, "far:1", clear(object{"cmd": "ping", "id": "a\x00"}), "bad load: id contains a null byte"},
		{"sign-in", h, "far:1", clear(object{"cmd": "_auth"}), "far:1 4505"},
		{"Sign-in refused", h, "flood:1", clear(object{"cmd": "_auth"}), nil},
		{"a tool", h, "far:1", clear(object{"cmd": "publish", "arg": "x"}), []any{"far:1", "publish", "x", "x"}},
		{"a tool where there are none", deaf, "here:1", clear(object{"cmd": "publish"}), object{}},
		{"a function of minions", h, "here:1", clear(object{"cmd": "good"}), object{}},
	} {
		if d := cmp.Diff(c.want, c.to.send(t, c.peer, c.body)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	if len(h.reached) != 0 {
		t.Error("reached without a key:", h.reached)
	}
}

// TestEncryptedRequests: the answer is sealed for the minion; what could not be answered is "", what may not be acknowledged
// has no answer.
func TestEncryptedRequests(t *testing.T) {
	h := newHouse(t, nil)
	for _, c := range []struct {
		cmd    string
		want   any
		silent bool
	}{
		{cmd: "good", want: object{"x": int64(1)}}, {cmd: "bad", want: ""}, {cmd: "panics", want: ""}, {cmd: "unsealable", want: ""},
		{cmd: "nothing", want: object{}}, {cmd: "dropped", silent: true}, {cmd: "later", silent: true},
	} {
		h.reached = nil
		body, nonce := h.seal(t, object{"cmd": c.cmd, "x": int64(1)})
		reply := h.send(t, "far:1", body)
		if (reply == nil) != c.silent {
			t.Errorf("%s: %v", c.cmd, reply)
			continue
		}
		if d := cmp.Diff([]string{"m " + c.cmd}, h.reached); d != "" {
			t.Errorf("%s: %s", c.cmd, d)
		}
		if c.silent {
			continue
		}
		if got, err := h.minion.OpenReply(reply, nonce); err != nil || cmp.Diff(c.want, got) != "" {
			t.Errorf("%s: %v %s", c.cmd, err, cmp.Diff(c.want, got))
		}
	}
	if strings.Contains(h.log.String(), "not acknowledged yet") {
		t.Error("what is to come later is logged")
	}
	body, _ := h.seal(t, object{"cmd": "_pillar"})
	for range 2 { // a minion without an answer sends it again as it is
		if got := h.send(t, "far:1", body); got != "pillar of m" {
			t.Error(got)
		}
	}
	if n := len(h.counted); n != 9 {
		t.Error(n, "requests were counted")
	}
}

// TestRefusedRequests: requests without an accepted key, without a session, sealed with another key, or taken before do not
// reach the answers.
func TestRefusedRequests(t *testing.T) {
	other, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		house func(h *house)
		want  any
		twice bool
	}{
		"unknown minion":  {func(h *house) { h.minion.ID = "x" }, protocol.BadLoad, false},
		"bad id":          {func(h *house) { h.minion.ID = "../x" }, protocol.BadLoad, false},
		"no session":      {func(h *house) { h.accept(t, "n"); h.minion.ID = "n" }, protocol.BadLoad, false},
		"another key":     {func(h *house) { h.minion.Session = other }, protocol.BadLoad, false},
		"taken elsewhere": {func(h *house) { h.seen = errSeen }, protocol.BadLoad, false},
		"nobody can tell": {func(h *house) { h.seen = errors.New("no database") }, nil, false},
		"twice":           {nil, protocol.BadLoad, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			if c.house != nil {
				c.house(h)
			}
			body, _ := h.seal(t, object{"cmd": "good"})
			if c.twice {
				h.send(t, "far:1", body)
				h.reached = nil
			}
			if got := h.send(t, "far:1", body); !cmp.Equal(got, c.want) {
				t.Error(got)
			}
			if len(h.reached) != 0 {
				t.Error("reached:", h.reached)
			}
		})
	}
}

// accept accepts the key of a minion, which does not sign in.
func (h *house) accept(t *testing.T, id string) {
	t.Helper()
	if err := h.door.Keys.Preseed(id, requesttest.Key().Public().Text()); err != nil {
		t.Fatal(err)
	}
}

// TestClocks: a request that is too old is refused; a clock that is wrong is reported once an hour.
func TestClocks(t *testing.T) {
	requesttest.Key() // made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(o *Options) { o.RequestTTL = 8 * time.Minute })
		at := func(age time.Duration) any {
			t.Helper()
			e, _, err := h.minion.Pack(object{"cmd": "good"}, time.Now().Add(-age))
			if err != nil {
				t.Fatal(err)
			}
			body, err := e.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			return h.send(t, "far:1", body)
		}
		for i, age := range []time.Duration{6 * time.Minute, 7 * time.Minute} {
			time.Sleep(time.Duration(i) * 10 * time.Minute)
			if got := at(age); cmp.Equal(got, any(protocol.BadLoad)) {
				t.Errorf("%v old: %v", age, got)
			}
		}
		if got := at(9 * time.Minute); got != protocol.BadLoad {
			t.Errorf("9 minutes old: %v", got)
		}
		lines := func() int { return strings.Count(h.log.String(), "Clock of minion differs") }
		if n := lines(); n != 1 {
			t.Errorf("%d lines about one clock", n)
		}
		time.Sleep(time.Hour)
		at(6 * time.Minute)
		if n := lines(); n != 2 {
			t.Errorf("%d lines an hour later", n)
		}
	})
}

// TestLargeRequestsWait: large requests are opened within a bound of all together, in the order in which they came; small ones
// do not wait.
func TestLargeRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{})
		first, err := d.admitLarge(t.Context(), largeBytes-largeRequest+1)
		if err != nil {
			t.Fatal(err)
		}
		admitted := make(chan string, 3)
		var done func()
		go func() {
			done, _ = d.admitLarge(t.Context(), largeRequest)
			admitted <- "large"
		}()
		synctest.Wait()
		if small, err := d.admitLarge(t.Context(), largeRequest-1); err != nil {
			t.Error(err)
		} else {
			small()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.admitLarge(ctx, 10*largeBytes); err == nil {
			t.Error("admitted though the master ends")
		}
		select {
		case <-admitted:
			t.Error("beyond the bound")
		default:
		}
		first()
		if got := <-admitted; got != "large" {
			t.Error(got)
		}
		done()
		if all, err := d.admitLarge(t.Context(), 10*largeBytes); err != nil {
			t.Error(err)
		} else {
			all()
		}
	})
}

// TestUnpackedTexts: what is answered when nothing else can be is a text that unpacks.
func TestUnpackedTexts(t *testing.T) {
	if v, err := payload.Unmarshal(packText("x")); err != nil || v != "x" {
		t.Error(v, err)
	}
	if !bytes.Equal(packText("x"), pack(t, "x")) {
		t.Error("packed otherwise")
	}
}

// TestReplaysApproveNoPeer: a peer that sends recorded requests of a minion is not taken for the minion, has few pillars made, and adds
// one line to the log.
func TestReplaysApproveNoPeer(t *testing.T) {
	h := newHouse(t, nil)
	approved := 0
	send := func(body []byte) any {
		t.Helper()
		packed := h.door.Handle(transport.WithApprove(t.Context(), func() { approved++ }), "10.0.0.1:1", bytes.Clone(body), 4505)
		v, err := payload.Unmarshal(packed)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	event, _ := h.seal(t, object{"cmd": "good", "x": "y"})
	pillar, _ := h.seal(t, object{"cmd": "_pillar"})
	for what, body := range map[string][]byte{"request": event, "pillar": pillar} {
		if got := send(body); got == protocol.BadLoad {
			t.Errorf("%s of the minion: %v", what, got)
		}
	}
	if approved != 2 {
		t.Errorf("approved %d times, want 2", approved)
	}
	pillars := 0
	for range 50 {
		if got := send(event); got != protocol.BadLoad {
			t.Errorf("replayed request: %v", got)
		}
		if send(pillar) != protocol.BadLoad {
			pillars++
		}
	}
	if approved != 2 {
		t.Errorf("replays approved their peer %d times", approved-2)
	}
	if pillars != maxRepeats {
		t.Errorf("%d pillars for replays, want %d", pillars, maxRepeats)
	}
	if n := strings.Count(h.log.String(), "Request refused"); n != 1 {
		t.Errorf("%d lines of log:\n%s", n, h.log.String())
	}
	// The minion itself goes on.
	if again, _ := h.seal(t, object{"cmd": "_pillar"}); send(again) != "pillar of m" || approved != 3 {
		t.Errorf("the minion got no pillar, or is not approved, %d times", approved)
	}
}

// TestRepeatedPillarRequests: a stock minion whose connection breaks before the reply sends its request for a pillar again, unchanged, over
// a new connection. It gets the pillar there, and its next request approves the new connection.
func TestRepeatedPillarRequests(t *testing.T) {
	h := newHouse(t, nil)
	send := func(body []byte) (reply any, approved bool) {
		t.Helper()
		packed := h.door.Handle(transport.WithApprove(t.Context(), func() { approved = true }), "10.0.0.1:1", bytes.Clone(body), 4505)
		reply, err := payload.Unmarshal(packed)
		if err != nil {
			t.Fatal(err)
		}
		return reply, approved
	}
	first, _ := h.seal(t, object{"cmd": "_pillar"})
	next, _ := h.seal(t, object{"cmd": "good", "x": "y"})
	for _, c := range []struct {
		what     string
		body     []byte
		approved bool
	}{{"first", first, true}, {"repeated", first, false}, {"repeated again", first, false}, {"next", next, true}} {
		reply, approved := send(c.body)
		if approved != c.approved || reply == protocol.BadLoad {
			t.Errorf("%s request: %v, approved %v, want %v", c.what, reply, approved, c.approved)
		}
	}
}

// TestRequestsOfPeersApproveNoPeer: a recorded request that a peer master has accepted approves its sender at no master of the cluster.
func TestRequestsOfPeersApproveNoPeer(t *testing.T) {
	h := newHouse(t, nil)
	h.seen = errSeen
	body, _ := h.seal(t, object{"cmd": "good"})
	approved := false
	packed := h.door.Handle(transport.WithApprove(t.Context(), func() { approved = true }), "10.0.0.1:1", body, 4505)
	if got, err := payload.Unmarshal(packed); err != nil || got != protocol.BadLoad {
		t.Errorf("answer %v, %v", got, err)
	}
	if approved {
		t.Error("the request approved its peer")
	}
}

// TestRefusalsOfEachKind: a minion's replayed requests do not hide from the log that others are too old, or that its clock jumped back.
func TestRefusalsOfEachKind(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.RequestTTL = 8 * time.Minute })
	replayed, _ := h.seal(t, object{"cmd": "good"})
	aged := func(age time.Duration) []byte {
		e, _, err := h.minion.Pack(object{"cmd": "good"}, time.Now().Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		body, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	h.send(t, "far:1", bytes.Clone(replayed))
	for range 2 {
		h.send(t, "far:1", bytes.Clone(replayed))
		h.send(t, "far:1", aged(9*time.Minute))
	}
	h.send(t, "far:1", aged(7*time.Minute)) // the last one of this session key
	for _, want := range []string{"request was seen before\"", "request is too old", "clock jumped back"} {
		if n := strings.Count(h.log.String(), want); n != 1 {
			t.Errorf("%d lines with %q:\n%s", n, want, h.log.String())
		}
	}
}
