package master_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

// patience limits each wait of a test. It is long, because the machine may be busy.
const patience = 2 * time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// orderOptions returns options with a short job timeout. Salt's default would make the tests slow.
func orderOptions() master.Options {
	return master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{Timeout: 50 * time.Millisecond, GatherTimeout: 20 * time.Second}}
}

func order(id, fun, tgt string) master.Order {
	return master.Order{ID: id, Job: master.Job{Fun: fun, Tgt: tgt, TgtType: "list"}}
}

func cast(t testing.TB, r *rig, o master.Order) master.Outcome {
	t.Helper()
	out, err := r.PlaceOrder(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// waitFor waits until an order has ended and returns the result of one minion.
func waitFor(t testing.TB, r *rig, id, minion string) master.Result {
	t.Helper()
	out, err := r.AwaitOrder(within(t), id)
	if err != nil || !out.Done {
		t.Fatalf("%+v %v", out, err)
	}
	return out.Results[minion]
}

// ran returns the functions that the minion ran, without the master's probes and queries.
func (m *minion) ran() []string {
	return slices.DeleteFunc(m.got(), func(f string) bool { return f == "test.ping" || strings.HasPrefix(f, "saltutil.") })
}

// started makes the minion fire its start event, as minions do once they are connected.
func (m *minion) started() {
	m.t.Helper()
	tag := "salt/minion/" + m.id + "/start"
	m.must(object{"cmd": "_minion_event", "id": m.id, "tag": tag, "data": "Minion " + m.id + " started"})
}

func TestOrdersWaitForTheirMinion(t *testing.T) {
	r := serve(t, orderOptions())
	for i, priority := range []int{0, 0, 7, -1, 0} {
		o := order(fmt.Sprint("o", i), fmt.Sprint("job.", i), "later")
		o.Priority = priority
		out := cast(t, r, o)
		if got := out.Results["later"].Status; got != master.Queued || out.Done {
			t.Fatal(out)
		}
	}
	expired := order("short", "job.never", "later")
	expired.TTL = time.Millisecond
	cast(t, r, expired)
	if res := waitFor(t, r, "short", "later"); res.Status != master.Undeliverable || res.Reason == "" {
		t.Fatalf("%+v", res)
	}
	m := r.accepted("later", 1).subscribe()
	m.started()
	for i := range 5 {
		if res := waitFor(t, r, fmt.Sprint("o", i), "later"); res.Status != master.Returned || res.Return != true || !res.Success {
			t.Fatalf("%d: %+v", i, res)
		}
	}
	// A second start event does not deliver an order again.
	m.started()
	last := order("last", "job.last", "later")
	cast(t, r, last)
	waitFor(t, r, "last", "later")
	if d := cmp.Diff([]string{"job.2", "job.0", "job.1", "job.4", "job.3", "job.last"}, m.ran()); d != "" {
		t.Error(d)
	}
}

// TestOrdersReachAMinionThatComesBackUnheard checks that an order is delivered to a minion that only subscribes: its
// sign-in and start event may have been earlier, or at another master.
func TestOrdersReachAMinionThatComesBackUnheard(t *testing.T) {
	r := serve(t, orderOptions())
	m := r.accepted("m", 1)
	cast(t, r, order("a", "job.a", "m"))
	m.subscribe()
	if res := waitFor(t, r, "a", "m"); res.Status != master.Returned {
		t.Fatalf("%+v", res)
	}
}

func TestOrderIDsNameOneOrder(t *testing.T) {
	r := serve(t, orderOptions())
	first := cast(t, r, order("deploy/1", "job.a", "m"))
	if again := cast(t, r, order("deploy/1", "job.a", "m")); again.JID != first.JID {
		t.Fatal(first, again)
	}
	for what, change := range map[string]func(o *master.Order){
		"function": func(o *master.Order) { o.Fun = "job.b" }, "argument": func(o *master.Order) { o.Args = []any{1} },
		"keyword": func(o *master.Order) { o.Kwargs = object{"x": 1} }, "target": func(o *master.Order) { o.Tgt = "n" },
		"job id": func(o *master.Order) { o.JID = "20260101000000000000" }, "tenant": func(o *master.Order) { o.Tenant = "blue" },
		"owner": func(o *master.Order) { o.Owner = "bob" }, "priority": func(o *master.Order) { o.Priority = 1 },
		"metadata": func(o *master.Order) { o.Metadata = object{"x": 1} }, "idempotent": func(o *master.Order) { o.Idempotent = true },
		"parallel": func(o *master.Order) { o.Parallel = true },
	} {
		other := order("deploy/1", "job.a", "m")
		change(&other)
		if out, err := r.PlaceOrder(within(t), other); !errors.Is(err, master.ErrOrderDiffers) {
			t.Errorf("another %s: %+v %v", what, out, err)
		}
	}
	// Placing the order again with a shorter TTL and deadline does not change the first order.
	late := order("deploy/1", "job.a", "m")
	late.TTL, late.Deadline = time.Nanosecond, time.Now().Add(-time.Hour)
	if again := cast(t, r, late); again.JID != first.JID || again.Results["m"].Status != master.Queued {
		t.Fatal(again)
	}
	m := r.accepted("m", 1).subscribe()
	m.started()
	if res := waitFor(t, r, "deploy/1", "m"); res.Status != master.Returned {
		t.Fatalf("%+v", res)
	}
	if again := cast(t, r, order("deploy/1", "job.a", "m")); !again.Done || again.JID != first.JID {
		t.Fatal(again)
	}
	if got := m.ran(); !slices.Equal(got, []string{"job.a"}) {
		t.Fatal(got)
	}
	// The job is in the store, where Salt's tools find it.
	job, err := r.Store().Job(within(t), first.JID)
	if err != nil || job.Fun != "job.a" || !slices.Equal(job.Minions, []string{"m"}) {
		t.Fatal(job, err)
	}
	for _, bad := range []master.Order{
		{ID: strings.Repeat("x", 256), Job: master.Job{Fun: "f", Tgt: "m", TgtType: "list"}}, {Job: master.Job{Tgt: "m"}},
		{Job: master.Job{Fun: "f", Tgt: "m", TgtType: "list", JID: "x"}}, {Job: master.Job{Fun: "f", Tgt: "../m", TgtType: "list"}},
		{Job: master.Job{Fun: "f", Tgt: "", TgtType: "list"}}, {Job: master.Job{Fun: "f", Tgt: "(", TgtType: "pcre"}},
		{Job: master.Job{Fun: "f", Tgt: "m", TgtType: "list", NoCache: true}},
	} {
		if out, err := r.PlaceOrder(within(t), bad); err == nil {
			t.Errorf("%+v was placed: %+v", bad, out)
		}
	}
	var none *master.NoMinionsError
	if _, err := r.PlaceOrder(within(t), master.Order{Job: master.Job{Fun: "f", Tgt: "nobody*"}}); !errors.As(err, &none) {
		t.Error(err)
	}
	if _, err := r.AwaitOrder(within(t), "nope"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// TestBusy checks that no new order is accepted while there are too many unfinished deliveries, but that placing a
// known order again succeeds. A delivery that ends makes room.
func TestBusy(t *testing.T) {
	o := orderOptions()
	o.Orders.MaxUnfinished = 2
	r := serve(t, o)
	two := master.Order{ID: "two", Job: master.Job{Fun: "job.a", Tgt: []string{"m", "n"}, TgtType: "list"}}
	first := cast(t, r, two)
	if out, err := r.PlaceOrder(within(t), order("three", "job.a", "m")); !errors.Is(err, master.ErrBusy) {
		t.Fatal(out, err)
	}
	if _, err := r.OrderOutcome(within(t), "three"); !errors.Is(err, store.ErrNotFound) {
		t.Error("it was placed", err)
	}
	if again := cast(t, r, two); again.JID != first.JID {
		t.Error(again)
	}
	if _, err := r.CancelOrder(within(t), "two"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool {
		_, err := r.PlaceOrder(within(t), order("three", "job.a", "m"))
		return err == nil
	})
}

// TestBusyTenant checks the limits on unfinished orders. A tenant that reaches its own limit does not keep others
// out, and all tenants together cannot exceed MaxUnfinished.
func TestBusyTenant(t *testing.T) {
	o := announcing()
	o.Orders.MaxUnfinished = 6 // three for the first tenant
	r := serve(t, o)
	view := make(map[string]*master.Tenant)
	for _, name := range []string{"blue", "red", "green"} {
		var err error
		if view[name], err = r.Tenant(name); err != nil {
			t.Fatal(err)
		}
		if _, err := view[name].EnsureMinion(within(t), master.MinionSpec{ID: name + "1"}); err != nil {
			t.Fatal(err)
		}
	}
	place := func(tenant, id string) error {
		o := order(id, "job.a", tenant+"1")
		if tenant == "" {
			o = order(id, "job.a", "nobody")
			_, err := r.PlaceOrder(within(t), o)
			return err
		}
		_, err := view[tenant].PlaceOrder(within(t), o)
		return err
	}
	for i := range 3 {
		if err := place("blue", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := place("blue", "3"); !errors.Is(err, master.ErrBusy) {
		t.Fatal(err)
	}
	if err := place("blue", "2"); err != nil {
		t.Error("again:", err)
	}
	// A delivery that is refused does not count as unfinished.
	if _, err := view["red"].PlaceOrder(within(t), master.Order{ID: "r", Job: master.Job{Fun: "job.a", Tgt: "blue1,nobody", TgtType: "list"}}); err != nil {
		t.Error(err)
	}
	for i, tenant := range []string{"red", "red", "green"} { // two tenants leave room for the third
		if err := place(tenant, fmt.Sprint(i)); err != nil {
			t.Fatal(tenant, err)
		}
	}
	for _, tenant := range []string{"red", "blue", ""} { // there are six in total
		if err := place(tenant, "more"); !errors.Is(err, master.ErrBusy) {
			t.Error(tenant, err)
		}
	}
	if _, err := view["blue"].CancelOrder(within(t), "0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return place("", "0") == nil })
	for _, id := range []string{"1", "2"} { // none of blue's are left, and two are free
		if _, err := view["blue"].CancelOrder(within(t), id); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "there is room for another one", func() bool { return place("blue", "4") == nil })
	if err := place("red", "3"); !errors.Is(err, master.ErrBusy) {
		t.Error("a tenant has more than are free:", err)
	}
}

// TestTenantWithoutLimits: without a limit for all, a tenant has none either.
func TestTenantWithoutLimits(t *testing.T) {
	o := announcing()
	o.Orders.MaxUnfinished = -1
	r := serve(t, o)
	view, err := r.Tenant("blue")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.EnsureMinion(within(t), master.MinionSpec{ID: "m"}); err != nil {
		t.Fatal(err)
	}
	if _, err := view.PlaceOrder(within(t), order("one", "job.a", "m")); err != nil {
		t.Error(err)
	}
}

func TestOneOrderAtATime(t *testing.T) {
	r := serve(t, orderOptions())
	m := r.accepted("m", 1)
	begun := make(chan protocol.Job, 10)
	m.run = func(j protocol.Job) (any, error) {
		switch j.Fun[0] {
		case "saltutil.find_job":
			return object{"jid": j.Args[0][0]}, nil // every job is still running
		case "job.first", "job.second", "job.beside":
			begun <- j
			return nil, errSilent
		}
		return true, nil
	}
	m.subscribe()
	end := func(j protocol.Job) {
		t.Helper()
		m.must(protocol.Return{JID: j.JID, ID: "m", Fun: j.Fun[0], Return: "done", Retcode: 0, Success: true}.Load())
	}
	cast(t, r, order("first", "job.first", "m"))
	cast(t, r, order("second", "job.second", "m"))
	first := <-begun
	beside := order("beside", "job.beside", "m")
	beside.Parallel = true
	cast(t, r, beside)
	if j := <-begun; j.Fun[0] != "job.beside" {
		t.Fatal(j.Fun)
	} else {
		end(j)
	}
	waitFor(t, r, "beside", "m")
	if out, err := r.OrderOutcome(within(t), "second"); err != nil || out.Results["m"].Status != master.Queued {
		t.Fatal(out, err)
	}
	if out, err := r.OrderOutcome(within(t), "first"); err != nil || out.Results["m"].Status != master.Underway {
		t.Fatal(out, err)
	}
	end(first)
	waitFor(t, r, "first", "m")
	end(<-begun)
	if res := waitFor(t, r, "second", "m"); res.Return != "done" {
		t.Fatal(res)
	}
}

// TestEndsOfOrders checks each way in which an order can end after it was sent.
func TestEndsOfOrders(t *testing.T) {
	o := orderOptions()
	o.Orders.Authorize = func(_ context.Context, o master.Order, id string) error {
		if o.Fun == "job.forbidden" {
			return errors.New("not on Sundays")
		}
		return nil
	}
	r := serve(t, o)
	m := r.accepted("m", 1)
	var terminated atomic.Int32
	sent := make(map[string]int) // used only in the minion's goroutine
	m.run = func(j protocol.Job) (any, error) {
		first := func(fun string) bool { return len(j.Args) > 0 && len(j.Args[0]) > 0 && j.Args[0][0] == fun }
		sent[j.Fun[0]]++
		switch j.Fun[0] {
		case "job.endless", "job.lost", "job.kept", "job.again":
			if j.Fun[0] == "job.again" && sent[j.Fun[0]] == 3 {
				return "third time", nil
			}
			return nil, errSilent
		case "saltutil.term_job":
			terminated.Add(1)
			return "Signal 15 sent", nil
		case "saltutil.find_job":
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, x := range m.jobs {
				if first(string(x.JID)) && x.Fun[0] == "job.endless" && terminated.Load() == 0 {
					return object{"jid": string(x.JID)}, nil
				}
			}
			return object{}, nil
		case "saltutil.find_cached_job":
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, x := range m.jobs {
				if first(string(x.JID)) && x.Fun[0] == "job.kept" {
					return object{"jid": string(x.JID), "fun": "job.kept", "fun_args": []any{}, "return": "kept", "retcode": 0, "success": true}, nil
				}
			}
			return "Local jobs cache directory not found", nil
		}
		return true, nil
	}
	m.subscribe()

	deadline := order("late", "job.endless", "m")
	deadline.Deadline = time.Now().Add(500 * time.Millisecond)
	cast(t, r, deadline)
	if res := waitFor(t, r, "late", "m"); res.Status != master.TimedOut || !res.StillRunning {
		t.Errorf("%+v", res)
	}
	eventually(t, "it is told to end", func() bool { return terminated.Load() > 0 })
	terminated.Store(0)
	cast(t, r, order("cancelled", "job.endless", "m"))
	eventually(t, "the job is under way", func() bool {
		out, err := r.OrderOutcome(within(t), "cancelled")
		return err == nil && out.Results["m"].Status == master.Underway
	})
	cast(t, r, order("behind", "job.behind", "m"))
	if out, err := r.CancelOrder(within(t), "behind"); err != nil || out.Results["m"].Status != master.Cancelled || !out.Done {
		t.Error(out, err)
	}
	if out, err := r.CancelOrder(within(t), "cancelled"); err != nil || out.Results["m"].Status != master.Cancelled || out.Results["m"].StillRunning {
		t.Error(out, err)
	}
	if out, err := r.CancelOrder(within(t), "cancelled"); err != nil || out.Results["m"].Status != master.Cancelled {
		t.Error("a second time:", out, err)
	}
	cast(t, r, order("lost", "job.lost", "m"))
	if res := waitFor(t, r, "lost", "m"); res.Status != master.Lost || res.Reason == "" {
		t.Errorf("%+v", res)
	}
	cast(t, r, order("kept", "job.kept", "m"))
	if res := waitFor(t, r, "kept", "m"); res.Status != master.Returned || res.Return != "kept" {
		t.Errorf("%+v", res)
	}
	again := order("again", "job.again", "m")
	again.Idempotent = true
	cast(t, r, again)
	if res := waitFor(t, r, "again", "m"); res.Status != master.Returned || res.Return != "third time" {
		t.Errorf("%+v", res)
	}
	if out := cast(t, r, order("forbidden", "job.forbidden", "m")); !out.Done || out.Results["m"].Status != master.Refused || out.Results["m"].Reason != "not on Sundays" {
		t.Errorf("%+v", out)
	}
	for _, f := range m.ran() {
		if f == "job.forbidden" || f == "job.behind" {
			t.Error("it ran", f)
		}
	}
}

// TestManyJobsAreAskedAfterAtOnce checks that a minion that reconnects gets one query for all the jobs that it runs,
// not one query for each job.
func TestManyJobsAreAskedAfterAtOnce(t *testing.T) {
	const jobs = 40
	o := orderOptions()
	o.Jobs.Timeout = time.Hour // so that no query is sent before the minion reconnects
	r := serve(t, o)
	m := r.accepted("m", 1)
	begun := make(chan protocol.Job, jobs)
	var running, single atomic.Int32
	m.run = func(j protocol.Job) (any, error) {
		switch j.Fun[0] {
		case "job.long":
			begun <- j
			return nil, errSilent
		case "saltutil.running":
			running.Add(1)
			m.mu.Lock()
			defer m.mu.Unlock()
			list := []any{}
			for _, x := range m.jobs {
				if x.Fun[0] == "job.long" {
					list = append(list, object{"jid": string(x.JID), "fun": "job.long"})
				}
			}
			return list, nil
		case "saltutil.find_job":
			single.Add(1)
		}
		return true, nil
	}
	m.subscribe()
	for i := range jobs {
		long := order(fmt.Sprint("o", i), "job.long", "m")
		long.Parallel = true
		cast(t, r, long)
	}
	var all []protocol.Job
	for range jobs {
		all = append(all, <-begun)
	}
	m.started()
	eventually(t, "it is asked", func() bool { return running.Load() > 0 })
	for i, j := range all {
		m.must(protocol.Return{JID: j.JID, ID: "m", Fun: "job.long", Return: "done", Retcode: 0, Success: true}.Load())
		if res := waitFor(t, r, fmt.Sprint("o", i), "m"); res.Status != master.Returned {
			t.Errorf("%+v", res)
		}
	}
	if running.Load() > 3 || single.Load() > 0 {
		t.Errorf("asked %d times for all, %d times for one", running.Load(), single.Load())
	}
}

// TestRefusedByTheMinion checks that a job that the minion's own policy refuses ends as refused, and not as a failed
// return.
func TestRefusedByTheMinion(t *testing.T) {
	r := serve(t, orderOptions())
	m := r.accepted("m", 1)
	m.code = 1
	m.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "job.fails" {
			return "some failure", nil
		}
		return "ERROR executing 'job.unwanted': the policy of this minion does not allow job.unwanted", nil
	}
	m.subscribe()
	cast(t, r, order("unwanted", "job.unwanted", "m"))
	if res := waitFor(t, r, "unwanted", "m"); res.Status != master.Refused || !strings.Contains(res.Reason, "policy") || res.Retcode != 1 {
		t.Errorf("%+v", res)
	}
	cast(t, r, order("fails", "job.fails", "m"))
	if res := waitFor(t, r, "fails", "m"); res.Status != master.Returned || res.Return != "some failure" || res.Retcode != 1 {
		t.Errorf("%+v", res)
	}
}

// TestOrdersOutliveTheMaster checks that the next master delivers the orders that were placed at one that has
// stopped, and completes the one that was being delivered.
func TestOrdersOutliveTheMaster(t *testing.T) {
	st := store.NewMemory()
	o := orderOptions()
	o.Store = st
	r := serve(t, o)
	m := r.accepted("m", 1)
	begun := make(chan protocol.JID, 1)
	run := func(j protocol.Job) (any, error) {
		switch j.Fun[0] {
		case "job.long":
			begun <- j.JID
			return nil, errSilent
		case "saltutil.find_job":
			return object{"jid": j.Args[0][0]}, nil // both masters query job.long only
		}
		return true, nil
	}
	m.run = run
	m.subscribe()
	cast(t, r, order("long", "job.long", "m"))
	cast(t, r, order("waits", "job.waits", "m"))
	jid := <-begun
	r.end()

	r = serve(t, o)
	m = r.accepted("m", 1)
	m.run = run
	m.subscribe()
	m.must(protocol.Return{JID: jid, ID: "m", Fun: "job.long", Return: "at last", Retcode: 0, Success: true}.Load())
	if res := waitFor(t, r, "long", "m"); res.Return != "at last" {
		t.Fatalf("%+v", res)
	}
	if res := waitFor(t, r, "waits", "m"); res.Status != master.Returned {
		t.Fatalf("%+v", res)
	}
	if got := m.ran(); !slices.Equal(got, []string{"job.waits"}) {
		t.Fatal(got)
	}
}

// TestSeveralMastersDeliverOnce checks that each order runs once on each minion if several masters share a store and
// the minions are connected to all of them.
func TestSeveralMastersDeliverOnce(t *testing.T) {
	st := store.NewMemory()
	const masters, minions, jobs = 3, 4, 5
	var rigs []*rig
	var all []*minion
	for range masters {
		o := orderOptions()
		// Here each connection is a minion of its own that does not know the jobs of the others, so it must not be
		// queried.
		o.Store, o.Jobs.Timeout = st, time.Hour
		rigs = append(rigs, serve(t, o))
	}
	for i := range minions {
		for _, r := range rigs { // a minion with the same id at every master
			m := r.accepted(fmt.Sprint("m", i), i+1)
			m.run = func(j protocol.Job) (any, error) {
				if strings.HasPrefix(j.Fun[0], "saltutil.") {
					return nil, errSilent // otherwise a job sent by another master would be sent again
				}
				return true, nil
			}
			all = append(all, m.subscribe())
		}
	}
	for n := range jobs {
		o := master.Order{ID: fmt.Sprint("o", n), Job: master.Job{Fun: fmt.Sprint("job.", n), Tgt: "m*"}}
		cast(t, rigs[n%masters], o)
	}
	for _, m := range all {
		m.started() // every master finds all pending deliveries
	}
	for n := range jobs {
		out, err := rigs[(n+1)%masters].AwaitOrder(within(t), fmt.Sprint("o", n))
		if err != nil || !out.Success() || len(out.Results) != minions {
			t.Fatal(out, err)
		}
	}
	ran := make(map[string]int)
	for _, m := range all {
		for _, f := range m.ran() {
			ran[m.id+" "+f]++
		}
	}
	if len(ran) != minions*jobs {
		t.Error(ran)
	}
	for what, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", what, n)
		}
	}
}

// TestARepeatReachesAMinionOnce checks that a minion that is connected to several masters gets an order over only one
// of its connections. The same applies when the order is sent again because the minion does not know the job.
func TestARepeatReachesAMinionOnce(t *testing.T) {
	all := equals(t, 2, orderOptions())
	var mu sync.Mutex
	got := 0
	run := func(j protocol.Job) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		switch j.Fun[0] {
		case "test.echo":
			if got++; got == 1 {
				return nil, errSilent
			}
		case "saltutil.running":
			return []any{}, nil
		case "saltutil.find_job":
			if got > 1 { // the second run is about to return
				return map[string]any{"jid": j.Args[0][0]}, nil
			}
			return map[string]any{}, nil
		case "saltutil.find_cached_job":
			return "not found", nil
		}
		return true, nil
	}
	m := all[0].accepted("m", 1)
	m.run = run
	m.subscribe()
	there := m.at(all[1])
	there.run = run
	there.subscribe()
	cast(t, all[0], master.Order{ID: "o", Idempotent: true, Job: master.Job{Fun: "test.echo", Args: []any{"x"}, Tgt: []string{"m"}, TgtType: "list"}})
	if r := waitFor(t, all[0], "o", "m"); r.Status != master.Returned {
		t.Fatal(r)
	}
	q, _ := store.QueueOf(all[0].Store())
	list, err := q.Deliveries(t.Context(), store.DeliveryFilter{Minion: "m"})
	if err != nil || len(list) != 1 || list[0].Tries < 2 {
		t.Fatal(list, err)
	}
	eventually(t, "each time once", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got == list[0].Tries
	})
}

// TestAMinionIsAskedOneThingAtATime checks that each master has at most one open query to a minion, even after many
// jobs, and that the minion gets no job twice.
func TestAMinionIsAskedOneThingAtATime(t *testing.T) {
	const jobs = 40
	all := equals(t, 3, orderOptions())
	var mu sync.Mutex
	got := make(map[string]int)      // deliveries by job id
	asked := make(map[string]int)    // queries by the job id that they name
	under := make(map[string]string) // the open queries, by their own job id
	running, most := 0, 0
	enter := func(j protocol.Job) {
		under[string(j.JID)] = j.Fun[0]
		most = max(most, len(under))
	}
	run := func(j protocol.Job) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		pause := func() {
			mu.Unlock()
			defer mu.Lock()
			time.Sleep(2 * time.Millisecond)
		}
		switch j.Fun[0] {
		case "job.dumb":
			got[string(j.JID)]++
			return nil, errSilent
		case "saltutil.running":
			running++
			enter(j)
			pause()
			delete(under, string(j.JID))
			return []any{}, nil
		case "saltutil.find_job":
			enter(j)
			pause()
			return object{}, nil
		case "saltutil.find_cached_job":
			pause()
			delete(under, string(j.JID))
			asked[fmt.Sprint(j.Args[0][0])]++
			return object{"jid": j.Args[0][0], "fun": "job.dumb", "fun_args": []any{}, "return": "kept", "retcode": 0, "success": true}, nil
		}
		return true, nil
	}
	m := all[0].accepted("m", 1)
	connections := []*minion{m, m.at(all[1]), m.at(all[2])}
	for _, c := range connections {
		c.run, c.parallel = run, true
		c.subscribe()
	}
	for i := range jobs {
		o := order(fmt.Sprint("o", i), "job.dumb", "m")
		o.Parallel = true
		cast(t, all[i%len(all)], o)
	}
	for i := range jobs {
		if res := waitFor(t, all[i%len(all)], fmt.Sprint("o", i), "m"); res.Status != master.Returned || res.Return != "kept" {
			t.Errorf("%+v", res)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("asked %d times for all, at most %d questions at a time", running, most)
	if most > len(all) || len(got) != jobs || len(asked) != jobs {
		t.Errorf("%d questions at a time, %d jobs, asked after %d", most, len(got), len(asked))
	}
	for jid, n := range got {
		if n != 1 || asked[jid] != 1 {
			t.Errorf("%s came %d times, asked after %d times", jid, n, asked[jid])
		}
	}
}

// TestLateAnswers checks that the answer of a slow minion ends the order even after the query has timed out.
func TestLateAnswers(t *testing.T) {
	for name, serve := range map[string]func(o master.Options) *rig{
		"one":    func(o master.Options) *rig { return serve(t, o) },
		"shared": func(o master.Options) *rig { return equals(t, 1, o)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			o := orderOptions()
			o.Jobs.GatherTimeout = 50 * time.Millisecond
			r := serve(o)
			m := r.accepted("m", 1)
			m.parallel = true
			m.run = func(j protocol.Job) (any, error) {
				switch j.Fun[0] {
				case "job.dumb":
					return nil, errSilent
				case "saltutil.find_job":
					time.Sleep(4 * o.Jobs.GatherTimeout)
					return object{}, nil
				case "saltutil.find_cached_job":
					return object{"jid": j.Args[0][0], "fun": "job.dumb", "fun_args": []any{}, "return": "kept", "retcode": 0, "success": true}, nil
				}
				return true, nil
			}
			m.subscribe()
			cast(t, r, order("o", "job.dumb", "m"))
			if res := waitFor(t, r, "o", "m"); res.Status != master.Returned || res.Return != "kept" {
				t.Errorf("%+v", res)
			}
		})
	}
}

func TestOrderEvents(t *testing.T) {
	r := serve(t, orderOptions())
	s := r.Events().Subscribe(events.SubscribeOptions{Prefix: "brine/order/"})
	defer s.Close()
	o := order("short", "job.never", "m")
	o.TTL = time.Millisecond
	out := cast(t, r, o)
	e, err := s.Next(within(t))
	if err != nil || e.Tag != "brine/order/"+out.JID+"/m" || e.Data["state"] != "undeliverable" {
		t.Fatal(e, err)
	}
	m := r.accepted("m", 1)
	m.must(object{"cmd": "_minion_event", "id": "m", "tag": "brine/order/" + out.JID + "/m", "data": object{"state": "returned"}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if e, err := s.Next(ctx); err == nil {
		t.Error("a minion told of an order:", e)
	}
}

// TestDrain checks that a drained master sends no more orders, waits for the jobs whose results are awaited, and
// leaves the rest to the next master.
func TestDrain(t *testing.T) {
	st := store.NewMemory()
	o := orderOptions()
	o.Store = st
	successor := o
	successor.Jobs.GatherTimeout = time.Second // a query sent before the minion connects there gets no answer
	next := serve(t, successor)
	o.Jobs.Timeout = time.Hour // so that no query is sent meanwhile
	r := serve(t, o)
	m := r.accepted("m", 1)
	begun := make(chan protocol.Job, 2)
	m.run = func(j protocol.Job) (any, error) {
		if strings.HasPrefix(j.Fun[0], "job.") {
			begun <- j
			return nil, errSilent
		}
		return true, nil
	}
	m.subscribe()
	cast(t, r, order("sent", "job.sent", "m"))
	<-begun
	cast(t, r, order("waits", "job.waits", "m"))
	run, err := r.Submit(within(t), master.Job{Fun: "job.awaited", Tgt: "m"})
	if err != nil {
		t.Fatal(err)
	}
	awaited := <-begun
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(within(t)) }()
	eventually(t, "no order is taken", func() bool {
		_, err := r.PlaceOrder(within(t), order("more", "job.more", "somebody else"))
		return errors.Is(err, master.ErrDraining)
	})
	if err := r.Health(within(t)); !errors.Is(err, master.ErrDraining) {
		t.Error("its health is", err)
	}
	m.must(protocol.Return{JID: awaited.JID, ID: "m", Fun: "job.awaited", Return: "done", Retcode: 0, Success: true}.Load())
	if res, err := run.Next(within(t)); err != nil || res.Return != "done" {
		t.Fatal(res, err)
	}
	run.Close()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	r.done <- nil
	again := next.accepted("m", 1)
	again.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "saltutil.find_job" {
			return object{}, nil
		}
		if j.Fun[0] == "saltutil.find_cached_job" {
			return object{"fun": "job.sent", "fun_args": []any{}, "return": "kept", "retcode": 0, "success": true}, nil
		}
		return true, nil
	}
	again.subscribe()
	again.started()
	if res := waitFor(t, next, "sent", "m"); res.Status != master.Returned || res.Return != "kept" {
		t.Fatalf("%+v", res)
	}
	if res := waitFor(t, next, "waits", "m"); res.Status != master.Returned {
		t.Fatalf("%+v", res)
	}
	if got := again.ran(); !slices.Equal(got, []string{"job.waits"}) {
		t.Fatal(got)
	}
}
