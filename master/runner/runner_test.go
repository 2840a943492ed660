package runner

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// fired is an event.
type fired struct {
	Tag  string
	Data map[string]any
}

// newHost is a master in memory with two minions, one of which answers.
func newHost(t *testing.T) (*host.Host, *[]fired) {
	t.Helper()
	k, err := keys.Open(keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close(); c.Close() })
	jobs := store.NewMemory()
	events := &[]fired{}
	h := &host.Host{ID: "m_master", Opts: map[string]any{"file_roots": map[string]any{"base": []any{"/srv/salt"}}}, Keys: k, Cache: c, Jobs: jobs,
		CacheDir: t.TempDir(),
		Match:    func(string, any) ([]string, error) { return []string{"web1", "web2"}, nil },
		Run: func(_ context.Context, j host.Job) (map[string]host.Answer, error) {
			if j.Fun == "test.version" {
				return map[string]host.Answer{"web1": {Value: "3006.1"}, "web2": {Value: "3999.0"}}, nil
			}
			return map[string]host.Answer{"web1": {Value: true}}, nil
		},
		Clones: func(context.Context) (map[string]any, error) {
			return map[string]any{"web1": map[string]any{"id": "web1"}}, nil
		},
		Fire: func(_ context.Context, tag string, data map[string]any) error {
			*events = append(*events, fired{tag, data})
			return nil
		},
	}
	for _, id := range []string{"web1", "web2"} {
		if err := c.Store(id, cache.Data{Grains: map[string]any{"id": id}, Pillar: map[string]any{"p": id}}.Ordered()); err != nil {
			t.Fatal(err)
		}
	}
	return h, events
}

func TestCalls(t *testing.T) {
	h, _ := newHost(t)
	c := NewClient(h)
	for _, q := range []struct {
		fun    string
		args   []any
		kwargs map[string]any
		want   any
	}{
		{"manage.status", nil, nil, map[string]any{"up": []any{"web1"}, "down": []any{"web2"}}},
		{"manage.down", nil, nil, []any{"web2"}},
		{"manage.versions", nil, nil, map[string]any{"Master": "3007.16", "Minion requires update": map[string]any{"web1": "3006.1"},
			"Minion newer than master": map[string]any{"web2": "3999.0"}}},
		{"manage.clones", nil, nil, map[string]any{"web1": map[string]any{"id": "web1"}}},
		{"cache.grains", []any{"*"}, nil, map[string]any{"web1": map[string]any{"id": "web1"}, "web2": map[string]any{"id": "web2"}}},
		{"cache.clear_pillar", []any{"*"}, nil, true},
		{"cache.pillar", []any{"*"}, nil, map[string]any{"web1": map[string]any{}, "web2": map[string]any{}}},
		{"cache.clear_all", nil, nil, false},
		{"cache.store", []any{"a/b", "k", int64(1)}, nil, nil},
		{"cache.fetch", []any{"a/b", "k"}, nil, int64(1)},
		{"cache.list", []any{"a/b"}, nil, []any{"k"}},
		{"cache.flush", []any{"a/b", "k"}, nil, true},
		{"cache.flush", []any{"a/b", "k"}, nil, false},
		{"config.get", []any{"file_roots:base:0"}, nil, "/srv/salt"},
		{"config.get", []any{"none"}, map[string]any{"default": "x"}, "x"},
		{"salt.execute", []any{"*", "test.ping"}, nil, map[string]any{"web1": true}},
		{"test.arg", []any{"a"}, map[string]any{"b": int64(1)}, map[string]any{"args": []any{"a"}, "kwargs": map[string]any{"b": int64(1)}}},
	} {
		res := c.Call(t.Context(), Request{Fun: q.fun, Args: q.args, Kwargs: q.kwargs})
		if diff := cmp.Diff(q.want, res.Return); diff != "" || !res.Success || res.Retcode != 0 {
			t.Errorf("%s %v: success %v (-want +got):\n%s", q.fun, q.args, res.Success, diff)
		}
	}
}

// TestBanksStayInside: neither bank nor key lead out of the cache directory.
func TestBanksStayInside(t *testing.T) {
	h, _ := newHost(t)
	c := NewClient(h)
	for _, args := range [][]any{{"../x", "k"}, {"/etc", "k"}, {"a", "../k"}, {"a", "/k"}, {"", "k"}, {"a", ""}, {"a", ".."}} {
		for _, fun := range []string{"cache.store", "cache.fetch", "cache.flush"} {
			in := args
			if fun == "cache.store" {
				in = append(append([]any{}, args...), "data")
			}
			if res := c.Call(t.Context(), Request{Fun: fun, Args: in}); res.Success {
				t.Errorf("%s %q gave %v", fun, in, res.Return)
			}
		}
	}
}

// liveJobs refuses what is asked with a context that has ended, as databases do.
type liveJobs struct{ store.Store }

func (j liveJobs) SaveJob(ctx context.Context, job store.Job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return j.Store.SaveJob(ctx, job)
}

func (j liveJobs) SaveReturn(ctx context.Context, r store.Return) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return j.Store.SaveReturn(ctx, r)
}

// TestRunOfAClientThatLeft: the run of a client that does not wait for it is kept.
func TestRunOfAClientThatLeft(t *testing.T) {
	h, _ := newHost(t)
	h.Jobs = liveJobs{h.Jobs}
	ctx, cancel := context.WithCancel(t.Context())
	h.Match = func(string, any) ([]string, error) {
		cancel()
		return nil, nil
	}
	const jid = "20250102030405678902"
	c := NewClient(h)
	c.Call(ctx, Request{Fun: "cache.grains", Args: []any{"*"}, JID: jid, User: "root"})
	if ctx.Err() == nil {
		t.Fatal("the client has not left")
	}
	res := c.Call(t.Context(), Request{Fun: "jobs.list_job", Args: []any{jid}})
	if m, _ := res.Return.(map[string]any); m["Function"] != "runner.cache.grains" {
		t.Errorf("the run is %v", res.Return)
	}
}

// TestUserOfAMinionsOwnJob: a job that a minion began itself has the user that stock shows for it.
func TestUserOfAMinionsOwnJob(t *testing.T) {
	h, _ := newHost(t)
	const jid = "20250102030405678903"
	load := map[string]any{"id": "web1", "jid": jid, "fun": "test.ping", "arg": []any{}, "tgt": "web1"}
	if err := h.Jobs.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "web1", TgtType: "list", Load: load}); err != nil {
		t.Fatal(err)
	}
	c := NewClient(h)
	res := c.Call(t.Context(), Request{Fun: "jobs.list_job", Args: []any{jid}})
	if m, _ := res.Return.(map[string]any); m["User"] != "root" {
		t.Errorf("jobs.list_job: %v", res.Return)
	}
	res = c.Call(t.Context(), Request{Fun: "jobs.list_jobs"})
	list, _ := res.Return.(map[string]any)
	if m, _ := list[jid].(map[string]any); m["User"] != "root" {
		t.Errorf("jobs.list_jobs: %v", res.Return)
	}
}

// TestRunIsRecorded: a run is two events, and a job that can be looked up.
func TestRunIsRecorded(t *testing.T) {
	h, events := newHost(t)
	c := NewClient(h)
	const jid = "20250102030405678901"
	c.Call(t.Context(), Request{Fun: "test.metasyntactic", Args: []any{"uk"}, JID: jid, User: "root"})
	names := []any{"wibble", "wobble", "wubble", "flob"}
	data := map[string]any{"fun": "runner.test.metasyntactic", "jid": jid, "user": "root", "fun_args": []any{"uk"}, "return": names, "success": true}
	want := []fired{{"salt/run/" + jid + "/new", data}, {"salt/run/" + jid + "/ret", data}}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	res := c.Call(t.Context(), Request{Fun: "jobs.lookup_jid", Args: []any{jid}})
	if diff := cmp.Diff(map[string]any{"m_master": data}, res.Return); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	res = c.Call(t.Context(), Request{Fun: "error.error", Args: []any{"ValueError", "broken"}})
	if res.Retcode != 1 || res.Success || res.Return != "Exception occurred in runner error.error: ValueError: broken" {
		t.Errorf("an error gave %+v", res)
	}
	if res := c.Call(t.Context(), Request{Fun: "no.such"}); !res.Missing || res.Return != "'no.such' is not available." {
		t.Errorf("an unknown function gave %+v", res)
	}
}

// TestBanksOfADatabase: where masters share a database, the banks that a master alone has in directories are in it.
func TestBanksOfADatabase(t *testing.T) {
	h, _ := newHost(t)
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h.Cache = cache.OpenShared(db)
	for _, id := range []string{"web1", "web2"} {
		if err := h.Cache.Store(id, cache.Data{Grains: map[string]any{"id": id}, Pillar: map[string]any{"p": id}}.Ordered()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Cache.ChangeMine("web1", func(m map[string]any) bool { m["f"] = "x"; return true }); err != nil {
		t.Fatal(err)
	}
	c := NewClient(h)
	none := map[string]any{}
	for _, q := range []struct {
		fun  string
		args []any
		want any
	}{
		{"cache.list", []any{"minions"}, []any{"web1", "web2"}},
		{"cache.list", []any{"/mine/"}, []any{"web1", "web2"}},
		{"cache.list", []any{"minions/web1"}, []any{"data", "mine"}},
		{"cache.list", []any{"minions/web2"}, []any{"data"}},
		{"cache.list", []any{"minions/web3"}, []any{}},
		{"cache.fetch", []any{"minions/web1", "data"}, map[string]any{"grains": map[string]any{"id": "web1"}, "pillar": map[string]any{"p": "web1"}}},
		{"cache.fetch", []any{"minions/web1", "mine"}, map[string]any{"f": "x"}},
		{"cache.fetch", []any{"pillar", "web2"}, map[string]any{"p": "web2"}},
		{"cache.fetch", []any{"mine", "web2"}, none},
		{"cache.fetch", []any{"minions", "web1"}, none},
		{"cache.fetch", []any{"grains", "../web1"}, none},
		{"cache.flush", []any{"pillar", "web2"}, true},
		{"cache.fetch", []any{"pillar", "web2"}, none},
		{"cache.flush", []any{"mine"}, true},
		{"cache.flush", []any{"mine"}, false},
		{"cache.flush", []any{"minions/web1"}, true},
		{"cache.flush", []any{"minions/web1", "data"}, false},
		{"cache.grains", []any{"*"}, map[string]any{"web2": map[string]any{"id": "web2"}}},
		{"cache.flush", []any{"minions"}, true},
		{"cache.list", []any{"minions"}, []any{}},
		{"cache.store", []any{"own", "k", "v"}, nil},
		{"cache.fetch", []any{"own", "k"}, "v"},
	} {
		res := c.Call(t.Context(), Request{Fun: q.fun, Args: q.args})
		if d := cmp.Diff(q.want, res.Return); d != "" || !res.Success {
			t.Errorf("%s %v: success %v %s", q.fun, q.args, res.Success, d)
		}
	}
	if res := c.Call(t.Context(), Request{Fun: "cache.store", Args: []any{"minions/web1", "data", none}}); res.Success {
		t.Error("a bank of the masters' was written:", res.Return)
	}
}
