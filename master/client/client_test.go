package client_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/google/go-cmp/cmp"
)

var all = client.Command{Fun: "test.echo", Arg: []any{"x"}, Tgt: "*"}

// run collects a run as "id=value", "id=no response" and so on.
func run(t *testing.T, c *client.Client, cmd client.Command, o client.RunOptions) []string {
	t.Helper()
	r, err := c.Run(t.Context(), cmd, o)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer r.Close()
	var got []string
	for ret := range r.Returns(t.Context()) {
		switch ret.Status {
		case client.Returned:
			got = append(got, fmt.Sprintf("%s=%v", ret.ID, ret.Value))
		case client.NoResponse:
			got = append(got, ret.ID+"=no response")
		case client.NotConnected:
			got = append(got, ret.ID+"=not connected")
		}
	}
	if r.Err() != nil {
		t.Error(r.Err())
	}
	slices.Sort(got)
	return got
}

func TestRunReportsEveryMinionOnce(t *testing.T) {
	f := newFake(t, map[string]minion{"quick": {value: "a"}, "slow": {value: "b", delay: 150 * time.Millisecond}, "dead": {dead: true}})
	start := time.Now()
	got := run(t, f.client(), all, client.RunOptions{Timeout: 2 * time.Second})
	if diff := cmp.Diff([]string{"dead=no response", "quick=a", "slow=b"}, got); diff != "" {
		t.Error(diff)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v, as if it had no timeout", took)
	}
}

func TestRunWaitsForWhoeverStillWorks(t *testing.T) {
	f := newFake(t, map[string]minion{
		"working": {value: "late", delay: 1500 * time.Millisecond, running: true},
		"hung":    {value: "never", delay: 2 * time.Second},
	})
	got := run(t, f.client(), all, client.RunOptions{Timeout: 300 * time.Millisecond, Again: 500 * time.Millisecond})
	if diff := cmp.Diff([]string{"hung=no response", "working=late"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRunWaitsForSlowAnswersOfWhoIsConnected has a stock minion on a busy machine, which takes seconds to say that it works.
func TestRunWaitsForSlowAnswersOfWhoIsConnected(t *testing.T) {
	f := newFake(t, map[string]minion{
		"busy": {value: "late", delay: 5 * time.Second, running: true, think: 3 * time.Second},
		"gone": {dead: true},
	})
	start := time.Now()
	r, err := f.client().Run(t.Context(), all, client.RunOptions{Timeout: 300 * time.Millisecond, Again: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for ret := range r.Returns(t.Context()) {
		got = append(got, fmt.Sprint(ret.ID, " ", ret.Status == client.Returned))
		if ret.ID == "gone" && time.Since(start) > 3*time.Second {
			t.Errorf("who is not there was waited for for %v", time.Since(start))
		}
	}
	if diff := cmp.Diff([]string{"gone false", "busy true"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunAsksAsStockWhenToldHowLong(t *testing.T) {
	f := newFake(t, map[string]minion{"a": {value: 1, delay: 700 * time.Millisecond}})
	got := run(t, f.client(), all, client.RunOptions{Timeout: 100 * time.Millisecond, Gather: 2 * time.Second})
	if diff := cmp.Diff([]string{"a=1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunReportsUnknownIDsOfAList(t *testing.T) {
	f := newFake(t, map[string]minion{"a": {value: 1}})
	got := run(t, f.client(), client.Command{Fun: "test.echo", Tgt: []string{"a", "zz"}, TgtType: "list"}, client.RunOptions{})
	if diff := cmp.Diff([]string{"a=1", "zz=no response"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunFindsReturnsWhoseEventsWereMissed(t *testing.T) {
	f := newFake(t, map[string]minion{"a": {dead: true}})
	c := f.client()
	r, err := c.Run(t.Context(), all, client.RunOptions{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := filepath.Join(f.dir, "jobs", protocol.JobDir(r.JID, "sha256"), "a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := payload.MarshalBin(map[string]any{"return": "kept", "retcode": 3, "success": false})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "return.p"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for ret := range r.Returns(t.Context()) {
		if ret.Status != client.Returned || ret.Value != "kept" || ret.Retcode != int64(3) {
			t.Errorf("got %+v", ret)
		}
	}
}

func TestForeignAndMalformedEventsAreIgnored(t *testing.T) {
	f := newFake(t, map[string]minion{"a": {value: "right", delay: 200 * time.Millisecond}})
	r, err := f.client().Run(t.Context(), all, client.RunOptions{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f.bus.Publish("salt/job/20260101000000000000/ret/a", map[string]any{"id": "a", "return": "other job"})
	f.bus.Publish("salt/job/"+r.JID+"/ret/a", map[string]any{"id": "a"})
	f.bus.Publish("salt/job/"+r.JID+"/ret/a", map[string]any{"return": "no id"})
	f.bus.Publish("salt/job/"+r.JID, map[string]any{"id": "a", "return": "no ret"})
	f.bus.Publish("salt/job/", map[string]any{"id": "a", "return": "no jid"})
	f.bus.Publish("salt/job/"+r.JID+"/prog/a/0", map[string]any{"id": "a", "return": "progress"})
	for ret := range r.Returns(t.Context()) {
		if ret.Value != "right" {
			t.Errorf("got %+v", ret)
		}
	}
}

func TestPublishRefusals(t *testing.T) {
	f := newFake(t, map[string]minion{"a": {}})
	c := f.client()
	if _, err := c.Publish(t.Context(), client.Command{Fun: "test.ping", Tgt: "nobody"}); !errors.Is(err, client.ErrNoMatch) {
		t.Errorf("nobody: %v", err)
	}
	f.keys = []string{"another"}
	if _, err := c.Publish(t.Context(), all); !errors.Is(err, client.ErrAuthentication) {
		t.Errorf("wrong key: %v", err)
	}
	f.writeKey("another") // the master was restarted
	if p, err := c.Publish(t.Context(), all); err != nil || !slices.Equal(p.Minions, []string{"a"}) {
		t.Errorf("after the key changed: %v %v", p, err)
	}
	if err := os.Remove(filepath.Join(f.dir, "publish_pull.ipc")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), all); !errors.Is(err, client.ErrNotRunning) {
		t.Errorf("no master: %v", err)
	}
}

// TestRandomTargets: whichever minions are dead, a run ends and reports every minion exactly once.
func TestRandomTargets(t *testing.T) {
	rounds, timeout := 24, 3*time.Second // a loaded machine needs some of it to answer at all
	if testing.Short() {
		rounds = 10
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range rounds {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		minions := map[string]minion{}
		want := []string{}
		for n := range 1 + rnd.IntN(40) {
			id := fmt.Sprintf("m%d", n)
			if rnd.IntN(100) < rnd.IntN(31) {
				minions[id] = minion{dead: true}
				want = append(want, id+"=no response")
			} else {
				minions[id] = minion{value: n, delay: time.Duration(rnd.IntN(200)) * time.Millisecond}
				want = append(want, fmt.Sprintf("%s=%d", id, n))
			}
		}
		slices.Sort(want)
		f := newFake(t, minions)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if diff := cmp.Diff(want, run(t, f.client(), all, client.RunOptions{Timeout: timeout})); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
}

func TestBatch(t *testing.T) {
	minions := map[string]minion{"dead": {dead: true}}
	for i := range 6 {
		minions[fmt.Sprintf("m%d", i)] = minion{value: i, retcode: int64(i % 2), delay: 20 * time.Millisecond}
	}
	for _, tc := range []struct {
		size    string
		most    int
		stop    bool
		started int
	}{{"2", 2, false, 6}, {"50%", 3, false, 6}, {"%50", 3, false, 6}, {"1%", 1, false, 6}, {"100", 6, false, 6}, {"1", 1, true, 2}} {
		t.Run(tc.size, func(t *testing.T) {
			f := newFake(t, minions)
			var got []string
			active, most, started := 0, 0, 0
			var down []string
			o := client.BatchOptions{RunOptions: client.RunOptions{Timeout: 300 * time.Millisecond}, Size: tc.size,
				Down: func(ids []string) { down = ids },
				Started: func(ids []string) {
					active += len(ids)
					started += len(ids)
					most = max(most, active)
				}}
			if tc.stop {
				o.Stop = func(r client.Return) bool { return r.Retcode != int64(0) }
			}
			err := f.client().Batch(t.Context(), all, o, func(r client.Return) {
				active--
				got = append(got, r.ID)
			})
			if err != nil {
				t.Fatal(err)
			}
			if most > tc.most || started != tc.started || len(got) != tc.started || !slices.Equal(down, []string{"dead"}) {
				t.Errorf("at most %d at a time, %d started, returns of %v, down %v", most, started, got, down)
			}
		})
	}
}

// TestBatchGathers: a batch whose minions end one after the other is not a job for each of them. A part has half of the
// slots, or the last minions, or came a while after the one before.
func TestBatchGathers(t *testing.T) {
	minions := map[string]minion{}
	for i := range 60 {
		minions[fmt.Sprintf("m%02d", i)] = minion{value: true, delay: time.Duration(10+2*(i%20)) * time.Millisecond}
	}
	f := newFake(t, minions)
	const size, pause = 20, 50 * time.Millisecond
	started, returned := 0, 0
	var last time.Time
	o := client.BatchOptions{RunOptions: client.RunOptions{Timeout: 10 * time.Second}, Size: "20",
		Started: func(ids []string) {
			started += len(ids)
			if len(ids) < size/2 && started < len(minions) && time.Since(last) < pause {
				t.Errorf("a part of %d minions %v after the one before", len(ids), time.Since(last))
			}
			if started-returned > size {
				t.Errorf("%d minions have the job", started-returned)
			}
			last = time.Now()
		}}
	if err := f.client().Batch(t.Context(), all, o, func(client.Return) { returned++ }); err != nil {
		t.Fatal(err)
	}
	if started != len(minions) || returned != len(minions) {
		t.Errorf("%d started, %d returned", started, returned)
	}
}

func TestBatchSize(t *testing.T) {
	for size, want := range map[string]int{"3": 3, "10%": 2, "%10": 2, "1%": 1, "100%": 20, "500%": 20, "33.4%": 6} {
		if got, err := client.BatchSize(size, 20); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", size, got, err, want)
		}
	}
	for _, size := range []string{"", "0", "-1", "x", "x%", "0%", "nan%", "1.5"} {
		if _, err := client.BatchSize(size, 20); err == nil || !strings.HasPrefix(err.Error(), "Invalid batch data sent: ") {
			t.Errorf("%q: %v", size, err)
		}
	}
}

func TestKeySideEffectsOnDisk(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"minions/a/data.p", "minions/b/data.p", "grains/a.p", "grains/b.p", "other/b.p"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.CleanMinionCache(dir, map[string]bool{"a": true}); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{"minions/a": true, "minions/b": false, "grains/a.p": true, "grains/b.p": false, "other/b.p": true} {
		if _, err := os.Stat(filepath.Join(dir, p)); (err == nil) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
	for range 2 {
		if err := client.DropFile(dir, "host_master"); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, ".dfn")); err != nil || string(b) != "host_master" {
		t.Errorf("%q %v", b, err)
	}
}

// database is what masters that share one know of their minions.
type database struct {
	known  map[string]map[string]any // grains by id, nil for a minion that told none
	err    error
	asked  []string
	closed bool
}

func (d *database) Accepted() ([]string, error) {
	return slices.Sorted(maps.Keys(d.known)), d.err
}

func (d *database) Known(ids []string, _ target.Needs) (func(string) (grains, pillar map[string]any), func() error) {
	return func(id string) (grains, pillar map[string]any) {
		d.asked = append(d.asked, id)
		return d.known[id], nil
	}, func() error { return d.err }
}

func (d *database) Close() error {
	d.closed = true
	return nil
}

// TestMinionsOfADatabase: a client of masters that share a database looks into no directory. Who is connected only the
// masters know, since it may be to another of them.
func TestMinionsOfADatabase(t *testing.T) {
	f := newFake(t, map[string]minion{"web1": {value: "a"}, "db1": {dead: true}, "db2": {value: "b", think: time.Hour}})
	grains := func(role string) map[string]any {
		return map[string]any{"role": role, "ipv4": []any{"127.0.0.1", "192.0.2.7"}}
	}
	db := &database{known: map[string]map[string]any{"web1": grains("web"), "db1": grains("db"), "db2": nil}}
	o := f.options()
	o.Minions, o.PublishPort = db, 4505
	for _, file := range []string{"minions/old", "grains/old.p"} { // of a master that was alone
		path := filepath.Join(f.dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		kind, tgt string
		want      []string
	}{{"glob", "*", []string{"db1", "db2", "web1"}}, {"grain", "role:web", []string{"db2", "web1"}}, {"list", "web1,old", []string{"web1"}}} {
		got, err := c.Preview(q.kind, q.tgt, ":", nil)
		if d := cmp.Diff(q.want, got); d != "" || err != nil {
			t.Errorf("%s %s: %v %s", q.kind, q.tgt, err, d)
		}
	}
	there, err := c.Present(t.Context())
	if d := cmp.Diff([]string{"db2"}, there); d != "" || err != nil {
		t.Error(err, d)
	}
	at, err := c.Addresses([]string{"db2", "web1"})
	if d := cmp.Diff(map[string]string{"web1": "192.0.2.7"}, at); d != "" || err != nil {
		t.Error(err, d)
	}
	got := run(t, c, all, client.RunOptions{Timeout: 300 * time.Millisecond})
	if d := cmp.Diff([]string{"db1=not connected", "db2=b", "web1=a"}, got); d != "" {
		t.Error(d)
	}
	db.err = errors.New("the database is away")
	if got, err := c.Preview("grain", "role:web", ":", nil); err == nil {
		t.Error("no error, but", got)
	}
	if err := c.Close(); err != nil || !db.closed {
		t.Error(err, db.closed)
	}
}
