package returns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/internal/requesttest"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/target"
)

type object = map[string]any

// house is a master around a Taker. It records, in order, the calls about returns, and its store returns err.
type house struct {
	*Taker
	log      testlog.Buffer
	told     []string
	awaited  map[string][]string // minions by job id
	uncached []string
	grains   map[string]object // by minion
	name     string
	answers  bool // every answer to a probe is one of this master's
	err      error
	saved    map[string]object // loads by "jid/id"
}

func (h *house) Awaited(jid string) (minions []string, ok bool) {
	minions, ok = h.awaited[jid]
	return minions, ok
}

func (h *house) Deliver(jid, id string, _ map[string]any) bool {
	_, ok := h.awaited[jid]
	if ok {
		h.told = append(h.told, "run "+id)
	}
	return ok
}

func (h *house) NoCache(jid string) bool { return slices.Contains(h.uncached, jid) }

func (h *house) Name() string { return h.name }

func (h *house) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	if h.err != nil {
		return false, h.err
	}
	first, err := h.Store.SaveReturn(ctx, r)
	if first {
		h.told = append(h.told, "saved "+r.ID)
		h.saved[r.JID+"/"+r.ID] = r.Load
	}
	return first, err
}

func (h *house) TellReturn(_ context.Context, _, id string, _ map[string]any) error {
	if h.err != nil {
		return h.err
	}
	h.told = append(h.told, "others "+id)
	return nil
}

func (h *house) Heard(id string, _ map[string]any) { h.told = append(h.told, "heard "+id) }

func (h *house) Returned(_ context.Context, _, id string, _ map[string]any) {
	h.told = append(h.told, "order "+id)
}

func (h *house) ReturnedLate(_ context.Context, id string, _ map[string]any) {
	h.told = append(h.told, "late "+id)
}

func (h *house) Answered(string, map[string]any) bool { return h.answers }

func (h *house) Subject(id string) target.Subject {
	return target.Subject{ID: id, Nodegroups: object{"g": "web*"},
		Grains: func() map[string]any { return h.grains[id] }, Pillar: func() map[string]any { return nil }}
}

// newHouse returns a house over a store in memory.
func newHouse(change func(o *Options)) *house {
	h := &house{awaited: map[string][]string{}, saved: map[string]object{}, grains: map[string]object{}}
	o := Options{Store: store.NewMemory(), Cluster: h, Runs: h, Orders: h, Probes: h, Subjects: h, Events: events.New(nil),
		Clock: new(protocol.JIDClock), Hourly: ratelimit.NewHourlyLog(), Started: time.Now(), KeepJobs: 24 * time.Hour,
		MaxUnordered: 1 << 20, Log: slog.New(slog.NewTextHandler(&h.log, nil))}
	o.Queue, _ = store.QueueOf(o.Store)
	if change != nil {
		change(&o)
	}
	h.Taker = New(o)
	return h
}

// returned is the load of a return of test.echo with a result of n bytes.
func returned(id string, jid protocol.JID, n int) object {
	return protocol.Return{JID: jid, ID: id, Fun: "test.echo", Return: strings.Repeat("x", n), Success: true}.Load()
}

// take makes a minion return something, and returns the calls that the house recorded.
func (h *house) take(t *testing.T, s *requesttest.Sender, id string, load object) ([]string, error) {
	t.Helper()
	h.told = nil
	if load["cmd"] == nil {
		load["cmd"] = "_return"
	}
	v, err := h.Take(t.Context(), s.From(id, load))
	if v != nil {
		t.Errorf("answered %v", v)
	}
	return h.told, err
}

// TestWhoIsTold: a return is stored and passed to those parts of the master that need it. A minion's second return
// of a job is passed to none.
func TestWhoIsTold(t *testing.T) {
	s := requesttest.NewSender(t)
	jid := protocol.NewJID(time.Now())
	is := func(kind probe.Kind, near bool, of string) object {
		load := returned("m", jid, 1)
		load["metadata"] = probe.SentBy(probe.Metadata(kind, near), of)["metadata"]
		return load
	}
	down := errors.New("disk full")
	for name, c := range map[string]struct {
		house func(h *house)
		load  object
		want  []string
		err   error
	}{
		"unknown job":          {nil, returned("m", jid, 1), []string{"saved m", "order m", "heard m"}, nil},
		"awaited":              {func(h *house) { h.awaited[string(jid)] = []string{"m"} }, returned("m", jid, 1), []string{"saved m", "run m", "heard m"}, nil},
		"awaited, not stored":  {func(h *house) { h.awaited[string(jid)], h.uncached = []string{"m"}, []string{string(jid)} }, returned("m", jid, 1), []string{"run m", "heard m"}, nil},
		"not stored":           {func(h *house) { h.uncached = []string{string(jid)} }, returned("m", jid, 1), []string{"others m", "heard m"}, nil},
		"nocache":              {nil, returned("m", protocol.JIDNoCache, 1), []string{"heard m", "others m"}, nil},
		"store is down":        {func(h *house) { h.err = down }, returned("m", jid, 1), nil, acks.ErrDropped},
		"others are not told":  {func(h *house) { h.err, h.uncached = down, []string{string(jid)} }, returned("m", jid, 1), nil, acks.ErrDropped},
		"too old":              {nil, returned("m", protocol.NewJID(time.Now().Add(-26*time.Hour)), 1), nil, nil},
		"in the future":        {nil, returned("m", protocol.NewJID(time.Now().Add(2*time.Hour)), 1), nil, nil},
		"our probe":            {func(h *house) { h.answers = true }, is(probe.Listening, false, ""), []string{"heard m"}, nil},
		"another's probe":      {nil, is(probe.Listening, false, "x"), []string{"others m", "late m", "heard m"}, nil},
		"query of a cluster":   {func(h *house) { h.name = "x" }, is(probe.Status, false, "x"), []string{"others m", "heard m"}, nil},
		"our query":            {func(h *house) { h.name = "x" }, is(probe.Status, true, "x"), []string{"late m", "heard m"}, nil},
		"our query, awaited":   {func(h *house) { h.name, h.awaited[string(jid)] = "x", nil }, is(probe.Status, true, "x"), []string{"run m", "heard m"}, nil},
		"not a return":         {nil, object{"id": "m", "jid": string(jid)}, nil, nil},
		"a job id that is not": {nil, object{"id": "m", "jid": "x", "return": 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(nil)
			if c.house != nil {
				c.house(h)
			}
			got, err := h.take(t, s, "m", maps.Clone(c.load))
			if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, c.err) {
				t.Error(d, err)
			}
			if name == "unknown job" || name == "awaited" {
				if got, err := h.take(t, s, "m", maps.Clone(c.load)); len(got) != 0 || err != nil {
					t.Error("the second:", got, err)
				}
				if h.Taken() != 1 {
					t.Error(h.Taken(), "were taken")
				}
			}
		})
	}
}

// TestOwnJobs: a return of a job that the minion started itself gets a new job id, and each failed state an event.
func TestOwnJobs(t *testing.T) {
	h := newHouse(nil)
	sub := h.Events.Subscribe(events.SubscribeOptions{})
	defer sub.Close()
	load := object{"id": "m", "jid": "req", "fun": "state.sls", "fun_args": []any{"x"}, "retcode": int64(2), "success": false,
		"user": "joe", "return": object{"s": object{"result": false, "comment": "no"}, "t": object{"result": true}}}
	if _, err := h.take(t, requesttest.NewSender(t), "m", load); err != nil {
		t.Fatal(err)
	}
	e, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jid := e.Text("jid")
	if !protocol.ValidJID(jid) || e.Tag != "salt/job/"+jid+"/ret/m" || e.Data["retcode"] != int64(2) {
		t.Fatal(e)
	}
	if e, err = sub.Next(t.Context()); err != nil || e.Tag != "salt/job/"+jid+"/sub/m/error/state.sls" {
		t.Fatal(e, err)
	}
	want := object{"result": false, "comment": "no", "success": false, "return": "Error: s.", "fun": "state.sls", "id": "m",
		"jid": jid}
	for key, v := range want {
		if d := cmp.Diff(v, e.Data[key]); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	job, err := h.Store.Job(t.Context(), jid)
	if err != nil || job.Fun != "state.sls" || job.Tgt != "m" || job.TgtType != "glob" || job.User != "joe" ||
		!cmp.Equal(job.Arg, []any{"x"}) || !cmp.Equal(job.Minions, []string{"m"}) || job.Load["return"] != nil {
		t.Fatal(job, err)
	}
}

// TestUnorderedReturnsAreBounded: returns that no job asked for are accepted up to a number of bytes per hour and
// minion, and not acknowledged beyond it. The minion's returns of jobs, and other minions', are still accepted.
func TestUnorderedReturnsAreBounded(t *testing.T) {
	s := requesttest.NewSender(t)
	for name, jid := range map[string]func() protocol.JID{
		"salt-call and schedules": func() protocol.JID { return protocol.JIDRequest },
		"made-up job ids":         func() protocol.JID { time.Sleep(time.Microsecond); return protocol.NewJID(time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(nil)
				send := func(id string, jid protocol.JID, size int) error {
					t.Helper()
					_, err := h.take(t, s, id, returned(id, jid, size))
					if err != nil && !errors.Is(err, acks.ErrLater) {
						t.Fatal(err)
					}
					return err
				}
				taken := 0
				for range 40 {
					if send("greedy", jid(), 60<<10) == nil {
						taken++
					}
				}
				if taken != 16 {
					t.Errorf("%d of 40 returns of 60 KiB were taken, the limit is 1 MiB", taken)
				}
				if n := strings.Count(h.log.String(), "are not taken now"); n != 1 {
					t.Errorf("%d lines in the log", n)
				}
				h.awaited["20260101000000000000"] = []string{"greedy"}
				if err := send("greedy", "20260101000000000000", 60<<10); err != nil {
					t.Error("a job of the minion:", err)
				}
				if err := send("other", jid(), 60<<10); err != nil {
					t.Error("another minion:", err)
				}
				time.Sleep(time.Hour)
				if err := send("greedy", jid(), 60<<10); err != nil {
					t.Error("an hour later:", err)
				}
			})
		})
	}
	t.Run("many small ones", func(t *testing.T) {
		h := newHouse(nil)
		taken := 0
		for range 400 {
			if _, err := h.take(t, s, "m", returned("m", protocol.JIDRequest, 1)); err == nil {
				taken++
			}
		}
		if taken < 256 || taken > 260 {
			t.Errorf("%d were taken, each counts 4 KiB", taken)
		}
	})
}

// TestReturnsOfOthersJobs: a return is dropped if its job's target cannot match the minion. If the target may match
// the minion by its grains or the like, the return is stored and marked.
func TestReturnsOfOthersJobs(t *testing.T) {
	s := requesttest.NewSender(t)
	for i, c := range []struct {
		tgt          any
		tgtType      string
		named        []string
		taken, marks bool
	}{
		{"web1", "glob", []string{"web1"}, false, false},
		{"w*", "glob", []string{"web1"}, false, false},
		{"*", "glob", []string{"thief", "web1"}, true, false},
		{[]any{"web1"}, "list", []string{"web1"}, false, false},
		{[]any{"web1", "gone"}, "list", []string{"web1"}, false, false},
		{[]any{"web1", "thief"}, "list", []string{"thief", "web1"}, true, false},
		{"web.*", "pcre", []string{"web1"}, false, false},
		{"web* and not thief", "compound", []string{"web1"}, false, false},
		{"g", "nodegroup", []string{"web1"}, false, false},
		{"role:web", "grain", []string{"web1"}, true, true},
		{"G@role:web or nobody", "compound", []string{"web1"}, true, true},
		{"web* and G@role:web", "compound", []string{"web1"}, false, false},
	} {
		t.Run(fmt.Sprint(c.tgtType, " ", c.tgt), func(t *testing.T) {
			h := newHouse(nil)
			h.grains = map[string]object{"web1": {"role": "web"}, "thief": {"role": "none"}}
			jid := string(protocol.NewJID(time.Now().Add(time.Duration(i) * time.Microsecond)))
			if err := h.Store.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.echo", Tgt: c.tgt, TgtType: c.tgtType,
				Minions: c.named, Load: object{}, Created: time.Now()}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"thief", "web1"} {
				load := returned(id, protocol.JID(jid), 1)
				load["unexpected"] = "no" // only the master says so
				if _, err := h.take(t, s, id, load); err != nil {
					t.Fatal(err)
				}
			}
			load, taken := h.saved[jid+"/thief"]
			if taken != c.taken || (load["unexpected"] == true) != c.marks {
				t.Errorf("taken %v, marked %v; want %v, %v", taken, load["unexpected"], c.taken, c.marks)
			}
			if load, taken := h.saved[jid+"/web1"]; !taken || load["unexpected"] != nil {
				t.Errorf("taken %v, marked %v: it is for web1", taken, load["unexpected"])
			}
		})
	}
}

// TestJobsThatAreNamedLater: a minion that was added to a job after the job was cached is expected.
func TestJobsThatAreNamedLater(t *testing.T) {
	h, s := newHouse(nil), requesttest.NewSender(t)
	jid := string(protocol.NewJID(time.Now()))
	if err := h.Store.SaveJob(t.Context(), store.Job{JID: jid, Tgt: []any{"a"}, TgtType: "list", Minions: []string{"a"},
		Load: object{}, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := h.take(t, s, id, returned(id, protocol.JID(jid), 1)); err != nil {
			t.Fatal(err)
		}
		if load := h.saved[jid+"/"+id]; load == nil || load["unexpected"] != nil {
			t.Errorf("%s: %v", id, load)
		}
		if err := h.Store.AddMinions(t.Context(), jid, []string{"b"}); err != nil {
			t.Fatal(err)
		}
	}
}

// olderStore has returns that were received before this master started.
type olderStore struct {
	store.Store
	received time.Time
}

func (o olderStore) Returned(context.Context, string) ([]string, error) { return []string{"m"}, nil }

func (o olderStore) ReturnsOf(_ context.Context, jid string, ids []string) ([]store.Return, error) {
	return []store.Return{{JID: jid, ID: ids[0], Received: o.received}}, nil
}

// TestReturnsOfAnEarlierMaster: a return that was stored before this master started is announced when it is sent
// again; one that this master stored is not.
func TestReturnsOfAnEarlierMaster(t *testing.T) {
	s := requesttest.NewSender(t)
	for name, c := range map[string]struct {
		after time.Duration
		want  []string
	}{"before": {-time.Minute, []string{"order m", "heard m"}}, "since": {time.Minute, nil}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(func(o *Options) {
				o.Store = olderStore{o.Store, o.Started.Add(c.after)}
			})
			load := returned("m", protocol.NewJID(time.Now()), 1)
			if _, err := h.Store.SaveReturn(t.Context(), store.Return{JID: load["jid"].(string), ID: "m", Load: object{}}); err != nil {
				t.Fatal(err)
			}
			for i, want := range [][]string{c.want, nil} {
				got, err := h.take(t, s, "m", maps.Clone(load))
				if d := cmp.Diff(want, got); d != "" || err != nil {
					t.Errorf("%d: %v %s", i, err, d)
				}
			}
		})
	}
}

// TestAdopt: a return that a minion had kept is taken like one that it has just sent, once.
func TestAdopt(t *testing.T) {
	h := newHouse(nil)
	jid := string(protocol.NewJID(time.Now()))
	if h.Adopt(t.Context(), jid, "m", object{}) {
		t.Error("what is not a return is adopted")
	}
	load := returned("other", protocol.JIDRequest, 1)
	for _, want := range [][]string{{"saved m", "heard m"}, nil} {
		h.told = nil
		if !h.Adopt(t.Context(), jid, "m", maps.Clone(load)) {
			t.Error("not adopted")
		}
		if d := cmp.Diff(want, h.told); d != "" {
			t.Error(d)
		}
	}
	if saved := h.saved[jid+"/m"]; saved["id"] != "m" || saved["jid"] != jid {
		t.Error(saved)
	}
	h.err = errors.New("disk full")
	if h.Adopt(t.Context(), jid, "n", maps.Clone(load)) {
		t.Error("adopted, but not stored")
	}
}

// TestKnownJobsAreBounded: what is remembered of jobs ends after a time, and is bounded by jobs and by minions.
func TestKnownJobsAreBounded(t *testing.T) {
	var k knownJobs
	now := time.Now()
	k.put("a", knownJob{until: now.Add(knownLife), minions: []string{"m"}})
	if _, ok := k.get("a", now); !ok {
		t.Error("a job is not remembered")
	}
	if _, ok := k.get("a", now.Add(knownLife)); ok {
		t.Error("a job is remembered too long")
	}
	many := make([]string, maxKnownIDs)
	k.put("b", knownJob{until: now.Add(knownLife), minions: many})
	if _, ok := k.get("a", now); ok || k.ids != maxKnownIDs {
		t.Error("too many minions are remembered:", k.ids)
	}
	for i := range 2 * maxKnown {
		k.put(fmt.Sprint(i), knownJob{until: now.Add(knownLife)})
	}
	if len(k.all) > maxKnown {
		t.Error(len(k.all), "jobs are remembered")
	}
}

// slowJobs is a store that takes a while to find a job, and counts how often it is asked.
type slowJobs struct {
	store.Store
	asked atomic.Int32
}

func (s *slowJobs) Job(ctx context.Context, jid string) (store.Job, error) {
	s.asked.Add(1)
	time.Sleep(time.Second)
	return s.Store.Job(ctx, jid)
}

// TestJobsAreReadOnce: a thousand minions return at the same moment, and the job with the ids of all is read once, again
// when what is known of it is too old, and each time if it is unknown.
func TestJobsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowJobs{Store: store.NewMemory()}
		h := newHouse(func(o *Options) { o.Store = s })
		const jid = "20260101000000000001"
		if err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Minions: []string{"b", "a"}}); err != nil {
			t.Fatal(err)
		}
		ask := func(jid string, known bool, asked int32) {
			t.Helper()
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					j, ok := h.storedJob(t.Context(), jid, time.Now())
					if ok != known || known && !slices.Equal(j.minions, []string{"a", "b"}) {
						t.Error(ok, j.minions)
					}
				})
			}
			wg.Wait()
			if n := s.asked.Swap(0); n != asked {
				t.Errorf("the store was asked %d times, want %d", n, asked)
			}
		}
		ask(jid, true, 1)
		ask(jid, true, 0)
		time.Sleep(knownLife)
		ask(jid, true, 1)
		ask("20260101000000000002", false, 1)
		ask("20260101000000000002", false, 1)
	})
}
