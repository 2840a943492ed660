// Package storetest is the contract of stores as test suites. A package with a store calls them from its own tests:
//
//	Run            every store.Store, and its Queue, Minions, Contents and Labels
//	RunShared      stores that several masters share
//	RunServer      a database server, with several masters at the same time
//	RunMigration   a database that an older version left
//
// A suite asserts values, also those of errors, and what must hold after a crash in between. A new store needs no
// tests of its own for what is covered here.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// Made is when the suite's first job was created; job ids contain it.
var Made = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// makeJob returns the n-th job of the suite, created n minutes after Made.
func makeJob(n int) store.Job {
	at := Made.Add(time.Duration(n) * time.Minute)
	jid := at.Format("20060102150405") + "000000"
	return store.Job{
		JID: jid, Fun: "cmd.run",
		Arg: []any{"uptime", map[string]any{"__kwarg__": true, "timeout": int64(3)}},
		Tgt: "web*", TgtType: "glob", User: "root", Minions: []string{"web1", "web2"}, Created: at,
		Load: map[string]any{"jid": jid, "fun": "cmd.run", "tgt": "web*", "tgt_type": "glob",
			"user": "root", "ret": "",
			"arg": []any{"uptime", map[string]any{"__kwarg__": true, "timeout": int64(3)}}},
	}
}

// makeReturn returns the return of a minion to a job.
func makeReturn(j store.Job, id string, value any) store.Return {
	return store.Return{JID: j.JID, ID: id, Received: j.Created.Add(time.Second),
		Load: map[string]any{
			"jid": j.JID, "id": id, "return": value, "retcode": int64(0), "success": true,
			"fun": "cmd.run", "out": "nested",
		}}
}

// Run runs the suite; open returns an empty store.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	// with runs one test on a store of its own.
	with := func(name string, f func(t *testing.T, s store.Store)) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, s)
		})
	}
	with("JobComesBack", jobComesBack)
	with("OrderIsKept", orderIsKept)
	with("JobIDsAreTakenOnce", jobIDsAreTakenOnce)
	with("FirstReturnWins", firstReturnWins)
	with("FirstReturnWinsAmongMany", firstReturnWinsAmongMany)
	with("ReturnsOfAnUnknownJob", returnsOfAnUnknownJob)
	with("ListTarget", listTarget)
	with("AddMinions", addMinions)
	with("NewestFirst", newestFirst)
	with("Purge", purge)
	with("Bounded", bounded)
	with("BadNames", badNames)
	t.Run("Queue", func(t *testing.T) {
		// Whether a store keeps orders is known only once it is open.
		s := open(t)
		_, keeps := store.QueueOf(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if keeps {
			runQueue(t, open)
		}
	})
}

// jobComesBack: a job is returned with every field.
func jobComesBack(t *testing.T, s store.Store) {
	ctx := t.Context()
	want := makeJob(0)
	if err := s.SaveJob(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Job(ctx, want.JID)
	if err != nil {
		t.Fatal(err)
	}
	// Compared field by field, with the types of the values.
	if d := cmp.Diff(want, plain(got)); d != "" {
		t.Error(d)
	}
	if _, err := s.Job(ctx, makeJob(1).JID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown job: %v", err)
	}
}

// plain is a job without the order of its maps.
func plain(j store.Job) store.Job {
	j.Arg, _ = payload.Plain(j.Arg).([]any)
	j.Load = payload.PlainMap(j.Load)
	return j
}

// orderIsKept: maps in arguments and returns keep the order of their keys.
func orderIsKept(t *testing.T, s store.Store) {
	ctx := t.Context()
	inOrder := payload.OrderedMap{{Key: "z", Value: int64(1)},
		{Key: "a", Value: payload.OrderedMap{{Key: "y", Value: nil}, {Key: "b", Value: "x"}}}}
	j := makeJob(0)
	j.Arg = []any{inOrder}
	j.Load["arg"] = j.Arg
	_, err := s.SaveReturn(ctx, makeReturn(j, "web1", []any{inOrder}))
	if err = errors.Join(err, s.SaveJob(ctx, j)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Job(ctx, j.JID)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Returns(ctx, j.JID)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if d := cmp.Diff(j.Arg, got.Arg) + cmp.Diff(any(j.Arg), got.Load["arg"]) +
		cmp.Diff(any(j.Arg), list[0].Load["return"]); d != "" {
		t.Error(d)
	}
}

// jobIDsAreTakenOnce: a second job with the same id is ErrExists.
func jobIDsAreTakenOnce(t *testing.T, s store.Store) {
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	// Eight masters take the same id.
	for range 8 {
		wg.Go(func() {
			switch err := s.SaveJob(context.Background(), makeJob(0)); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, store.ErrExists):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
	}
}

// firstReturnWins: a second return of the same minion is not new and changes nothing.
func firstReturnWins(t *testing.T, s store.Store) {
	ctx := t.Context()
	j := makeJob(0)
	if err := s.SaveJob(ctx, j); err != nil {
		t.Fatal(err)
	}
	// Text, and bytes that are not UTF-8.
	want := []store.Return{makeReturn(j, "web1", "up 3 days"),
		makeReturn(j, "web2", []byte{0xff, 1})}
	for i := len(want) - 1; i >= 0; i-- {
		if first, err := s.SaveReturn(ctx, want[i]); !first || err != nil {
			t.Fatal(first, err)
		}
	}
	// A minion repeats its return if it got no answer.
	if first, err := s.SaveReturn(ctx, makeReturn(j, "web1", "something else")); first ||
		err != nil {
		t.Fatal(first, err)
	}
	got, err := s.Returns(ctx, j.JID)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	// Sorted by minion, with the fields that Salt's job cache shows.
	for i := range want {
		if d := cmp.Diff(want[i].Load["return"], got[i].Load["return"]); d != "" ||
			got[i].ID != want[i].ID {
			t.Errorf("%s: %s", got[i].ID, d)
		}
		if got[i].Load["retcode"] != int64(0) || got[i].Load["success"] != true ||
			got[i].Load["out"] != "nested" {
			t.Errorf("%s: %v", got[i].ID, got[i].Load)
		}
	}
}

// firstReturnWinsAmongMany: of many equal returns at the same moment, one is the first.
func firstReturnWinsAmongMany(t *testing.T, s store.Store) {
	j := makeJob(0)
	if err := s.SaveJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	// Each return has its own value, so that a mixture would show.
	for i := range 8 {
		wg.Go(func() {
			first, err := s.SaveReturn(context.Background(), makeReturn(j, "web1", fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			if first {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d returns were the first", won.Load())
	}
}

// returnsOfAnUnknownJob: returns are stored even if the job is not.
func returnsOfAnUnknownJob(t *testing.T, s store.Store) {
	ctx := t.Context()
	j := makeJob(0)
	// An unknown job has no returns, which is no error.
	if got, err := s.Returns(ctx, j.JID); len(got) != 0 || err != nil {
		t.Fatal(got, err)
	}
	if first, err := s.SaveReturn(ctx, makeReturn(j, "web1", int64(1))); !first || err != nil {
		t.Fatal(first, err)
	}
	got, err := s.Returns(ctx, j.JID)
	if err != nil || len(got) != 1 || got[0].Load["return"] != int64(1) {
		t.Fatal(got, err)
	}
	// The returns do not create the job.
	if _, err := s.Job(ctx, j.JID); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
}

// listTarget: list targets and their missing ids are stored.
func listTarget(t *testing.T, s store.Store) {
	ctx := t.Context()
	want := makeJob(0)
	// Salt's compound jobs have lists of functions and of arguments.
	want.Fun = []any{"test.ping", "test.version"}
	want.Arg = []any{[]any{}, []any{}}
	want.Tgt, want.TgtType = []any{"web1", "gone"}, "list"
	want.Minions, want.Missing = []string{"web1"}, []string{"gone"}
	want.Load = map[string]any{"jid": want.JID, "fun": want.Fun, "arg": want.Arg, "tgt": want.Tgt,
		"tgt_type": "list", "user": "root"}
	if err := s.SaveJob(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Job(ctx, want.JID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// addMinions: added ids are merged; an unknown job is ErrNotFound.
func addMinions(t *testing.T, s store.Store) {
	ctx := t.Context()
	j := makeJob(0)
	if err := s.AddMinions(ctx, j.JID, []string{"x"}); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if err := s.SaveJob(ctx, j); err != nil {
		t.Fatal(err)
	}
	// Ids that are there already are not added twice.
	if err := s.AddMinions(ctx, j.JID, []string{"web3", "web1"}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Job(ctx, j.JID)
	if d := cmp.Diff([]string{"web1", "web2", "web3"}, got.Minions); d != "" || err != nil {
		t.Fatal(d, err)
	}
}

// newestFirst: filters by time and minion, newest first.
func newestFirst(t *testing.T, s store.Store) {
	ctx := t.Context()
	// Saved out of order; job ids decide.
	for _, n := range []int{2, 0, 3, 1} {
		j := makeJob(n)
		if n == 1 {
			j.Minions = []string{"db1"}
		}
		if err := s.SaveJob(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	// A return counts as well as the target for the filter by minion.
	if _, err := s.SaveReturn(ctx, makeReturn(makeJob(3), "db1", true)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		f    store.Filter
		want []int
	}{
		{"all", store.Filter{}, []int{3, 2, 1, 0}},
		{"limit", store.Filter{Limit: 2}, []int{3, 2}},
		{"since", store.Filter{Since: makeJob(2).Created}, []int{3, 2}},
		{"before", store.Filter{Before: makeJob(2).Created}, []int{1, 0}},
		{"minion", store.Filter{Minion: "db1"}, []int{3, 1}},
	} {
		// The filters are inclusive at Since, exclusive at Before.
		got, err := s.Jobs(ctx, c.f)
		if err != nil {
			t.Fatal(err)
		}
		var jids, want []string
		for _, j := range got {
			jids = append(jids, j.JID)
		}
		for _, n := range c.want {
			want = append(want, makeJob(n).JID)
		}
		if d := cmp.Diff(want, jids); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// purge: old jobs go with their returns, newer ones stay.
func purge(t *testing.T, s store.Store) {
	ctx := t.Context()
	for n := range 4 {
		if err := s.SaveJob(ctx, makeJob(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveReturn(ctx, makeReturn(makeJob(n), "web1", true)); err != nil {
			t.Fatal(err)
		}
	}
	// Jobs created before the time are removed.
	if n, err := s.Purge(ctx, makeJob(2).Created); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := s.Jobs(ctx, store.Filter{}); len(got) != 2 || err != nil {
		t.Fatal(got, err)
	}
	// Their returns are removed with them.
	if got, _ := s.Returns(ctx, makeJob(0).JID); len(got) != 0 {
		t.Fatalf("returns of a purged job: %v", got)
	}
	if got, _ := s.Returns(ctx, makeJob(3).JID); len(got) != 1 {
		t.Fatalf("returns of a kept job: %v", got)
	}
}

// bounded: stores with limits report their size and the time for Purge.
func bounded(t *testing.T, s store.Store) {
	ctx := t.Context()
	b, ok := store.BoundedOf(s)
	if !ok {
		return // it is limited by time only
	}
	if n, _, err := b.Size(ctx); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	for n := range 5 {
		if err := s.SaveJob(ctx, makeJob(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveReturn(ctx, makeReturn(makeJob(n), "web1", true)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, err := b.Size(ctx); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	// Nothing is beyond what may be kept.
	for _, keep := range []int{100, 5} {
		if at, err := b.Beyond(ctx, keep); !at.IsZero() || err != nil {
			t.Fatal(keep, at, err)
		}
	}
	// The time that leaves two jobs.
	at, err := b.Beyond(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Purge(ctx, at); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := s.Jobs(ctx, store.Filter{}); len(got) != 2 || err != nil ||
		got[0].JID != makeJob(4).JID || got[1].JID != makeJob(3).JID {
		t.Fatal(got, err)
	}
	if got, _ := s.Returns(ctx, makeJob(2).JID); len(got) != 0 {
		t.Fatalf("returns of a forgotten job: %v", got)
	}
	// A large return shows in the size, and is freed again.
	_, small, err := b.Size(ctx)
	if err != nil || small == 0 {
		return // it does not know its size
	}
	if _, err := s.SaveReturn(ctx,
		makeReturn(makeJob(3), "large", strings.Repeat("x", 1<<20))); err != nil {
		t.Fatal(err)
	}
	_, large, err := b.Size(ctx)
	if err != nil || large < small+1<<20 || large > small+2<<20 {
		t.Fatal(small, large, err)
	}
	if _, err := s.Purge(ctx, makeJob(4).Created); err != nil {
		t.Fatal(err)
	}
	if _, n, err := b.Size(ctx); err != nil || n > small {
		t.Fatal(small, large, n, err)
	}
}

// RunMigration opens a database as the previous version left it, without the tables that came since, and as a later
// version leaves it. The statements older and later set its version to 1 and to 99. At its end the database has the
// mark by which version 99 forbids all before it to use its tables.
func RunMigration(t *testing.T, open func(t *testing.T) store.Shared,
	exec func(statement string) error, older, later string) {
	s := open(t)
	if err := s.SaveJob(t.Context(), makeJob(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(t.Context(), makeReturn(makeJob(0), "web1", "kept")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The tables that version 2 and later have added.
	statements := []string{older}
	for _, table := range []string{"brine_key", "brine_secret", "brine_lease", "brine_counter",
		"brine_relay", "brine_seen", "brine_data",
		"brine_piece", "brine_order_content", "brine_label"} {
		statements = append(statements, "DROP TABLE "+table)
	}
	for _, x := range statements {
		if err := exec(x); err != nil {
			t.Fatalf("%s: %v", x, err)
		}
	}
	for range 2 { // the second finds it done
		s = open(t)
		if j, err := s.Job(t.Context(), makeJob(0).JID); err != nil ||
			cmp.Diff(makeJob(0), plain(j)) != "" {
			t.Error(j, err)
		}
		if r, err := s.Returns(t.Context(), makeJob(0).JID); err != nil || len(r) != 1 ||
			r[0].Load["return"] != "kept" {
			t.Error(r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("then", func(t *testing.T) { // the added tables work
		a, b := open(t), open(t)
		defer a.Close()
		defer b.Close()
		leases(t, a, b)
	})
	// A master of a later version has been here. The one before works beside it, unless the later one forbids it.
	if err := exec(later); err != nil {
		t.Fatal(err)
	}
	t.Run("back", func(t *testing.T) {
		a, b := open(t), open(t)
		defer a.Close()
		defer b.Close()
		if err := a.SaveJob(t.Context(), makeJob(1)); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1} {
			want := makeJob(n)
			j, err := b.Job(t.Context(), want.JID)
			if err != nil || cmp.Diff(want, plain(j)) != "" {
				t.Error(j, err)
			}
		}
	})
	if err := exec("INSERT INTO brine_counter (name, n) VALUES ('least_version', 99)"); err != nil {
		t.Fatal(err)
	}
}

// badNames: a store may refuse odd ids or store them, but must not leave its directory or crash.
func badNames(t *testing.T, s store.Store) {
	ctx := t.Context()
	// Names that lead elsewhere as paths, or end early as C strings.
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a\x00b", "/etc/passwd", "a\nb"} {
		j := makeJob(0)
		j.JID = name
		// Errors are allowed, a panic or a file elsewhere is not.
		s.SaveJob(ctx, j)
		s.Job(ctx, name)
		s.Returns(ctx, name)
		s.SaveReturn(ctx, makeReturn(j, "web1", true))
		s.SaveReturn(ctx, makeReturn(makeJob(0), name, true))
	}
	// The store still works.
	if err := s.SaveJob(ctx, makeJob(0)); err != nil {
		t.Fatal(err)
	}
}

// Shared lets several masters, each with its own connection to one database, do the same things at the same time:
// every job is taken by one of them, every return is the first for one of them, and none is lost. It closes the
// stores.
// The masters repeat each other's work, so every job and return is contended.
func Shared(t *testing.T, masters []store.Store) {
	const jobs, minions = 20, 10
	defer func() {
		for _, s := range masters {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	var taken, first atomic.Int64
	var wg sync.WaitGroup
	for i, s := range masters {
		wg.Go(func() {
			for n := range jobs {
				j := makeJob(n)
				j.Minions = nil
				err := s.SaveJob(t.Context(), j)
				switch {
				case err == nil:
					taken.Add(1)
				case !errors.Is(err, store.ErrExists):
					t.Error(err)
				}
				if err := s.AddMinions(t.Context(), j.JID,
					[]string{fmt.Sprintf("of-master-%d", i)}); err != nil {
					t.Error(err)
				}
				// Each return is sent to every master.
				for m := range minions {
					ok, err := s.SaveReturn(t.Context(),
						makeReturn(j, fmt.Sprintf("m%d", m), int64(i)))
					if err != nil {
						t.Error(err)
					}
					if ok {
						first.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != jobs || first.Load() != jobs*minions {
		t.Errorf("%d jobs were taken and %d returns were first, want %d and %d", taken.Load(),
			first.Load(), jobs, jobs*minions)
	}
	// Each master reads what another one may have written.
	for n := range jobs {
		j, err := masters[n%len(masters)].Job(t.Context(), makeJob(n).JID)
		if err != nil || len(j.Minions) != len(masters) {
			t.Errorf("job %d has minions %v (%v)", n, j.Minions, err)
		}
		if r, err := masters[n%len(masters)].Returns(t.Context(), makeJob(n).JID); err != nil ||
			len(r) != minions {
			t.Errorf("job %d has %d returns (%v)", n, len(r), err)
		}
	}
}
