package saltutil

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/pyobj"
)

// host is a master that answers what a test wants.
type host struct {
	asked modules.MasterCall
	jobs  []modules.MasterJob
	fired []any
	err   error
}

func (h *host) Call(_ context.Context, q modules.MasterCall) (map[string]any, error) {
	h.asked = q
	return map[string]any{"return": "value", "success": true}, h.err
}

func (h *host) Run(_ context.Context, q modules.MasterJob, each func(modules.MasterAnswer)) error {
	h.jobs = append(h.jobs, q)
	for _, a := range h.answers(q) {
		each(a)
	}
	return h.err
}

// answers are those of three minions: one fails, one does not return.
func (h *host) answers(q modules.MasterJob) []modules.MasterAnswer {
	a := modules.MasterAnswer{ID: "a", Value: "A", JID: "1", Out: "nested", Data: map[string]any{"id": "a", "fun": q.Fun}}
	b := modules.MasterAnswer{ID: "b", Value: "B", JID: "1", Retcode: 2}
	lost := modules.MasterAnswer{ID: "c", Failed: true}
	if q.Fun == "sys.list_functions" {
		a.Value, b.Value, lost.Failed, lost.Value = []any{"test.ping"}, []any{"test.ping", q.Tgt}, false, "no list"
	}
	all := []modules.MasterAnswer{a, b}
	if q.Expect {
		all = append(all, lost)
	}
	list, isList := q.Tgt.([]any)
	return slices.DeleteFunc(all, func(a modules.MasterAnswer) bool { return isList && !slices.Contains(list, any(a.ID)) })
}

func (h *host) Fire(_ context.Context, tag string, data map[string]any) error {
	h.fired = append(h.fired, tag, data)
	return nil
}

func TestCallsOfTheMaster(t *testing.T) {
	for name, c := range map[string]struct {
		fun    string
		args   []any
		kwargs map[string]any
		want   any
		asked  modules.MasterCall
		fired  []any
	}{
		"runner": {fun: "saltutil.runner", args: []any{"jobs.list_jobs"}, want: "value",
			asked: modules.MasterCall{Kind: "runner", Fun: "jobs.list_jobs", Args: []any{}, Kwargs: map[string]any{}, Saltenv: "base", User: "UNKNOWN"}},
		"arguments": {fun: "saltutil.runner", args: []any{"test.arg", []any{"1", "x=2"}, map[string]any{"a": "3"}, true, "dev"},
			kwargs: map[string]any{"b": "4", "__pub_user": "ada", "__pub_jid": "1"}, want: map[string]any{"return": "value", "success": true},
			asked: modules.MasterCall{Kind: "runner", Fun: "test.arg", Args: []any{int64(1)}, Kwargs: map[string]any{"x": int64(2), "a": "3", "b": "4"}, Saltenv: "dev", User: "ada"}},
		"orchestration": {fun: "saltutil.runner", args: []any{"state.orch"}, kwargs: map[string]any{"mods": "x", "__orchestration_jid__": "20250102030405678901", "__env__": "dev"},
			want: "value",
			asked: modules.MasterCall{Kind: "runner", Fun: "state.orch", Args: []any{}, Kwargs: map[string]any{"mods": "x", "orchestration_jid": "20250102030405678901"},
				Saltenv: "dev", User: "UNKNOWN"},
			fired: []any{"salt/run/20250102030405678901/args", map[string]any{"type": "runner", "name": "state.orch", "args": []any{},
				"kwargs": map[string]any{"mods": "x", "orchestration_jid": "20250102030405678901"}}}},
		"wheel": {fun: "saltutil.wheel", args: []any{"key.accept", "jerry"}, kwargs: map[string]any{"include_rejected": true}, want: map[string]any{"return": "value", "success": true},
			asked: modules.MasterCall{Kind: "wheel", Fun: "key.accept", Args: []any{"jerry"}, Kwargs: map[string]any{"include_rejected": true}, Saltenv: "base", User: "UNKNOWN"}},
	} {
		h := &host{}
		e := modulestest.Env(t)
		e.MasterHost = h
		if diff := cmp.Diff(c.want, call(t, e, c.fun, c.kwargs, c.args...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.asked, h.asked); diff != "" {
			t.Errorf("%s asked %s", name, diff)
		}
		if diff := cmp.Diff(c.fired, h.fired); diff != "" {
			t.Errorf("%s fired %s", name, diff)
		}
	}
}

func TestErrorsOfTheMaster(t *testing.T) {
	const nobody = "This command can only be executed on a minion that is located on the master."
	broken := errors.New("broken")
	for _, c := range []struct {
		host modules.MasterHost
		want string
	}{
		{nil, nobody},
		{&host{err: modules.ErrNoMasterHere}, nobody},
		{&host{err: &modules.NotAvailableError{Fun: "no.such"}}, "KeyError: 'no.such'"},
		{&host{err: broken}, "broken"},
	} {
		for _, fun := range []string{"saltutil.runner", "saltutil.wheel"} {
			e := modulestest.Env(t)
			e.MasterHost = c.host
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: []any{"no.such"}})
			if res.Err == nil || res.Err.Error() != c.want {
				t.Errorf("%s: %v, want %q", fun, res.Err, c.want)
			}
		}
	}
}

func TestJobsOfTheMaster(t *testing.T) {
	type m = map[string]any
	job := func(change func(*modules.MasterJob)) modules.MasterJob {
		j := modules.MasterJob{Tgt: "*", TgtType: "glob", Fun: "test.ping", Args: []any{}, Extra: m{}}
		if change != nil {
			change(&j)
		}
		return j
	}
	a, b := m{"ret": "A", "retcode": int64(0), "jid": "1", "out": "nested"}, m{"ret": "B", "retcode": int64(2), "jid": "1"}
	for name, c := range map[string]struct {
		args   []any
		kwargs m
		want   any
		jobs   []modules.MasterJob
	}{
		"plain": {args: []any{"*", "test.ping"}, want: m{"a": a, "b": b}, jobs: []modules.MasterJob{job(nil)}},
		"arguments": {args: []any{[]any{"a", "c"}, "test.arg", []any{int64(1)}, int64(3), "list", "local,syslog", m{"k": "v"}},
			kwargs: m{"expect_minions": true, "ret_config": "other", "ret_kwargs": m{"x": int64(1)}, "__pub_user": "ada"}, want: m{"a": a, "c": m{"failed": true}},
			jobs: []modules.MasterJob{{Tgt: []any{"a", "c"}, TgtType: "list", Fun: "test.arg", Args: []any{int64(1)}, Kwargs: m{"k": "v"}, Timeout: 3 * time.Second,
				Ret: "local,syslog", Extra: m{"ret_config": "other", "ret_kwargs": m{"x": int64(1)}}, Expect: true}}},
		"returners": {args: []any{"*", "test.ping"}, kwargs: m{"ret": []any{"local", "syslog"}, "arg": "one"}, want: m{"a": a, "b": b},
			jobs: []modules.MasterJob{job(func(j *modules.MasterJob) { j.Ret, j.Args = "local,syslog", []any{"one"} })}},
		"meta": {args: []any{[]any{"a"}, "test.ping"}, kwargs: m{"tgt_type": "list", "_cmd_meta": true},
			want: m{"a": m{"ret": "A", "retcode": int64(0), "jid": "1", "out": "nested", "id": "a", "fun": "test.ping"}},
			jobs: []modules.MasterJob{job(func(j *modules.MasterJob) { j.Tgt, j.TgtType = []any{"a"}, "list" })}},
	} {
		for _, fun := range []string{"saltutil.cmd", "saltutil.cmd_iter"} {
			h := &host{}
			e := modulestest.Env(t)
			e.MasterHost = h
			if diff := cmp.Diff(c.want, call(t, e, fun, c.kwargs, c.args...)); diff != "" {
				t.Errorf("%s of %s: %s", name, fun, diff)
			}
			for _, j := range h.jobs {
				for i, v := range j.Args {
					j.Args[i] = pyobj.Plain(v)
				}
				for k, v := range j.Kwargs {
					j.Kwargs[k] = pyobj.Plain(v)
				}
			}
			if diff := cmp.Diff(c.jobs, h.jobs); diff != "" {
				t.Errorf("%s of %s asked %s", name, fun, diff)
			}
		}
	}
}

func TestBatchAndSubset(t *testing.T) {
	type m = map[string]any
	a, b := m{"ret": "A", "retcode": int64(0), "out": "nested"}, m{"ret": "B", "retcode": int64(2), "out": "highstate"}
	for _, c := range []struct {
		kwargs m
		want   any
		jobs   int // with the question who is there
	}{
		{m{"batch": "1"}, m{"a": a, "b": b}, 3},
		{m{"batch": "50%"}, m{"a": a, "b": b}, 3},
		{m{"batch": "%100"}, m{"a": a, "b": b}, 2},
		{m{"batch": int64(5)}, m{"a": a, "b": b}, 2},
		{m{"tgt_type": "list", "tgt": []any{"b", "a"}, "batch": int64(1), "failhard": true}, m{"a": a, "b": b}, 3},
	} {
		h := &host{}
		e := modulestest.Env(t)
		e.MasterHost = h
		args := []any{"*", "test.ping"}
		if tgt := c.kwargs["tgt"]; tgt != nil {
			args[0] = tgt
			delete(c.kwargs, "tgt")
		}
		if diff := cmp.Diff(c.want, call(t, e, "saltutil.cmd", c.kwargs, args...)); diff != "" || len(h.jobs) != c.jobs {
			t.Errorf("%v with %d jobs: %s", c.kwargs, len(h.jobs), diff)
		}
	}
	h := &host{}
	e := modulestest.Env(t)
	e.MasterHost = h
	got, _ := call(t, e, "saltutil.cmd", m{"subset": int64(1)}, "*", "test.ping").(m)
	if len(got) != 1 || len(h.jobs) != 2 || h.jobs[0].Fun != "sys.list_functions" || h.jobs[1].TgtType != "list" {
		t.Errorf("a subset of one is %v, after %v", got, h.jobs)
	}
	if got := call(t, e, "saltutil.cmd", m{"subset": int64(1)}, "*", "no.such"); !cmp.Equal(got, any(m{})) || len(h.jobs) != 3 {
		t.Errorf("nobody has the function, and yet %v", got)
	}
}

func TestErrorsOfJobs(t *testing.T) {
	const nobody = "SaltClientError: The salt master could not be contacted. Is master running?"
	type m = map[string]any
	for _, c := range []struct {
		host   modules.MasterHost
		kwargs m
		want   string
	}{
		{nil, nil, nobody},
		{&host{err: modules.ErrNoMasterHere}, nil, nobody},
		{&host{err: errors.New("broken")}, nil, "broken"},
		{&host{}, m{"ssh": true}, "cannot reach minions by ssh: the master on this host has no ssh client"},
		{&host{}, m{"batch": "many"}, "Invalid batch data sent: many\nData must be in the form of %10, 10% or 3"},
	} {
		for _, fun := range []string{"saltutil.cmd", "saltutil.cmd_iter"} {
			if c.kwargs["batch"] != nil && fun == "saltutil.cmd_iter" {
				continue
			}
			e := modulestest.Env(t)
			e.MasterHost = c.host
			res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: []any{"*", "test.ping"}, Kwargs: c.kwargs})
			if res.Err == nil || res.Err.Error() != c.want {
				t.Errorf("%s %v: %v, want %q", fun, c.kwargs, res.Err, c.want)
			}
		}
	}
}
