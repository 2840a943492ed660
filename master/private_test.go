package master_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// starts makes the minion fire its start event. With fetch the event reports a brine minion, which fetches its jobs.
func (m *minion) starts(fetch bool) {
	m.t.Helper()
	load := object{"cmd": "_minion_event", "id": m.id, "tag": "salt/minion/" + m.id + "/start", "data": "started", "pretag": nil}
	if fetch {
		load["journal"], load["fetch"] = true, true
	}
	m.must(load)
}

// wire returns everything that the minion could decrypt from the publish channel.
func (m *minion) wire() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.read)
}

// TestArgumentsAreFetched checks that no other minion can read the arguments of a job for a brine minion, on any
// transport and for any kind of target. One of the other minions does not identify itself and therefore receives
// every publish.
func TestArgumentsAreFetched(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
				Network: master.NetworkOptions{Listen: tr.listen},
				Jobs:    master.JobOptions{Nodegroups: object{"ours": "L@own"}}})
			r.dialer = tr.dialer
			evil := r.accepted("evil", 1)
			evil.run = func(protocol.Job) (any, error) { return nil, errSilent }
			evil.subscribe()
			own, stock := r.accepted("own", 2), r.accepted("stock", 3).subscribe()
			own.run = func(j protocol.Job) (any, error) { return fmt.Sprint(j.FunValue(), j.ArgValue(), j.Metadata), nil }
			own.subscribe()
			own.starts(true)
			stock.starts(false)
			for id, m := range map[string]*minion{"own": own, "stock": stock, "evil": evil} {
				if _, err := m.pillar(object{"grains": object{"os": "Debian", "kind": id}}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "two of three subscribers are known", func() bool { return r.Named() == 2 })
			for i, tgt := range []master.Job{
				{Tgt: "own"}, {Tgt: []any{"own"}, TgtType: "list"}, {Tgt: "o*"}, {Tgt: "ow.", TgtType: "pcre"},
				{Tgt: "kind:own", TgtType: "grain"}, {Tgt: "G@os:Debian and o*", TgtType: "compound"}, {Tgt: "ours", TgtType: "nodegroup"},
			} {
				fun := fmt.Sprintf("job.number%d", i)
				tgt.Fun, tgt.Args, tgt.Kwargs = fun, []any{"hunter2"}, object{"secret": "hunter3"}
				tgt.Metadata = object{"k": "v"}
				res, err := r.Run(within(t), tgt)
				want := fmt.Sprint(fun, []any{"hunter2", object{"secret": "hunter3", "__kwarg__": true}}, object{"k": "v"})
				if got := res["own"]; err != nil || len(res) != 1 || got.Return != want {
					t.Fatalf("%v: %v %v", tgt.Tgt, res, err)
				}
			}
			// A job without arguments is published directly, because there is nothing to fetch.
			if res, err := r.Run(within(t), master.Job{Fun: "job.plain", Tgt: "own"}); err != nil || res["own"].Status != master.Returned {
				t.Fatal(res, err)
			}
			// The last job went to all minions, so the silent minion has received the earlier ones too.
			eventually(t, "the silent one reads on", func() bool { return strings.Contains(evil.wire(), "job.plain") })
			for who, m := range map[string]*minion{"evil": evil, "stock": stock} {
				if got := m.wire(); strings.Contains(got, "hunter") || strings.Contains(got, "job.number") {
					t.Errorf("%s read %s", who, got)
				}
			}
			if got := own.wire(); strings.Contains(got, "hunter") || !strings.Contains(got, protocol.FetchFun) {
				t.Error("was not announced:", got)
			}
			// The other minion cannot fetch the jobs either.
			jids := []string{"20200101000000000000", "../x", ""}
			jobs, err := r.Store().Jobs(within(t), store.Filter{})
			if err != nil || len(jobs) < 8 {
				t.Fatal(jobs, err)
			}
			for _, j := range jobs {
				jids = append(jids, j.JID)
			}
			for _, jid := range jids {
				if got, ok := evil.must(object{"cmd": protocol.FetchCmd, "jid": jid}).(object); !ok || len(got) != 0 {
					t.Errorf("was given job %q of others: %v", jid, got)
				}
			}
		})
	}
}

// filtering subscribes like a minion with zmq_filtering.
type filtering struct{ transport.Dialer }

func (f filtering) Subscribe(ctx context.Context, o transport.ClientOptions) (transport.Subscriber, error) {
	o.Filter = true
	return f.Dialer.Subscribe(ctx, o)
}

// TestArgumentsAreFetchedWithFilter checks that with zmq_filtering arguments are fetched even if all subscribers are
// identified, because an identified subscriber may also have subscribed to the topics of other minions.
func TestArgumentsAreFetchedWithFilter(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Listen: zeromq.Listen, Filter: true}})
	r.dialer = filtering{zeromq.New()}
	own := r.accepted("own", 1).subscribe()
	own.starts(true)
	r.accepted("other", 2)
	eventually(t, "the subscriber is known", func() bool { return r.Named() == 1 })
	res, err := r.Run(within(t), master.Job{Fun: "job.secret", Args: []any{"hunter2"}, Tgt: "own"})
	if err != nil || res["own"].Status != master.Returned {
		t.Fatal(res, err)
	}
	if got := own.wire(); strings.Contains(got, "hunter2") || !strings.Contains(got, protocol.FetchFun) {
		t.Error("was not announced:", got)
	}
}

// TestArgumentsOfMixedTargets checks that a job for brine minions and stock minions reaches each of them completely
// and once, and that it reaches no other minion if all are identified.
func TestArgumentsOfMixedTargets(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
				Network: master.NetworkOptions{Listen: tr.listen}})
			r.dialer = tr.dialer
			all := map[string]*minion{}
			for i, id := range []string{"own", "stock", "evil"} {
				m := r.accepted(id, i+1).subscribe()
				m.starts(id == "own")
				if _, err := m.pillar(nil); err != nil {
					t.Fatal(err)
				}
				all[id] = m
			}
			eventually(t, "all subscribers are known", func() bool { return r.Named() == 3 })
			for _, j := range []master.Job{
				{Tgt: "stock,own", TgtType: "list"}, {Tgt: "[so]*"}, {Tgt: "G@os:Debian and not evil", TgtType: "compound"},
			} {
				j.Fun, j.Args = "job.secret", []any{"hunter2"}
				res, err := r.Run(within(t), j)
				if err != nil || res["own"].Status != master.Returned || res["stock"].Status != master.Returned || len(res) != 2 {
					t.Fatal(j.Tgt, res, err)
				}
			}
			if _, err := r.Run(within(t), master.Job{Fun: "job.all", Args: []any{"public"}, Tgt: "*"}); err != nil {
				t.Fatal(err)
			}
			if got := all["evil"].wire(); strings.Contains(got, "hunter2") || !strings.Contains(got, "public") {
				t.Error("the third one read", got)
			}
			for _, id := range []string{"own", "stock"} {
				if n := len(slices.DeleteFunc(all[id].got(), func(fun string) bool { return fun != "job.secret" })); n != 3 {
					t.Errorf("%s ran %d of 3 jobs", id, n)
				}
			}
		})
	}
}

// TestOrdersAreFetched checks that pending orders are fetched as well, and that they are sent directly after a
// process of the minion that does not fetch has taken the place of one that does.
func TestOrdersAreFetched(t *testing.T) {
	o := orderOptions()
	o.Network.Listen = zeromq.Listen
	r := serve(t, o)
	quiet := r.accepted("quiet", 1)
	quiet.run = func(protocol.Job) (any, error) { return nil, errSilent }
	quiet.subscribe()
	own := r.accepted("own", 2).subscribe()
	for _, fetch := range []bool{true, false} {
		own.starts(fetch)
		before := strings.Count(own.wire(), protocol.FetchFun)
		out, err := r.RunOrder(within(t), master.Order{Job: master.Job{Fun: "job.secret", Args: []any{"hunter2"}, Tgt: "own", TgtType: "list"}})
		if err != nil || out.Results["own"].Status != master.Returned {
			t.Fatal(out, err)
		}
		if announced := strings.Count(own.wire(), protocol.FetchFun) > before; announced != fetch {
			t.Errorf("fetches %v: announced %v: %s", fetch, announced, own.wire())
		}
		if fetch && strings.Contains(quiet.wire(), "hunter2") {
			t.Error("another minion read", quiet.wire())
		}
	}
}

// TestEqualMastersAnnounceJobs checks that a job that is published at one master is announced by the master that its
// minion is connected to, and that the minion can fetch it from any master.
func TestEqualMastersAnnounceJobs(t *testing.T) {
	all := equals(t, 2, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Listen: zeromq.Listen}})
	evil := all[1].accepted("evil", 1)
	evil.run = func(protocol.Job) (any, error) { return nil, errSilent }
	evil.subscribe()
	own := all[1].accepted("own", 2).subscribe()
	own.starts(true)
	for i, r := range all {
		if res, err := r.Run(within(t), master.Job{Fun: "job.secret", Args: []any{"hunter2"}, Tgt: "o*", Timeout: time.Minute}); err != nil || res["own"].Status != master.Returned {
			t.Fatal(i, res, err)
		}
	}
	jobs, err := all[0].Store().Jobs(within(t), store.Filter{})
	if err != nil || len(jobs) != 2 {
		t.Fatal(jobs, err)
	}
	for _, j := range jobs {
		for i, r := range all {
			got, _ := own.at(r).must(object{"cmd": protocol.FetchCmd, "jid": j.JID}).(object)
			if d := cmp.Diff([]any{"hunter2"}, got["arg"]); d != "" {
				t.Errorf("from master %d: %s", i, d)
			}
		}
	}
	eventually(t, "the other one hears of it", func() bool { return strings.Contains(evil.wire(), protocol.FetchFun) })
	if got := evil.wire(); strings.Contains(got, "hunter2") {
		t.Error("another minion read", got)
	}
}
