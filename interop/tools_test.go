//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStockTools drives our master, with two of our minions, through the tools of every stock line on the same host: salt, salt-key,
// salt-run, and Python's LocalClient, which the tools are made of.
func TestStockTools(t *testing.T) {
	t.Parallel()
	m := &tools{ourMaster: &ourMaster{site: newSite(t, "zeromq", "timeout: 20\n"), t: t, root: t, line: "3007"}}
	m.up()
	for _, id := range []string{"web1", "db1"} {
		m.conf = m.minion(t, id, "")
		m.last = start(t, ours("salt-minion"), "-c", m.conf)
	}
	lines := []string{"3006", "3007", "3008"}
	drivers := map[string]*driver{}
	for _, line := range lines {
		drivers[line] = pythonDriver(t, line, "calls", m.config())
	}
	for _, step := range []struct {
		name string
		run  func(*tools)
	}{
		{"keys", (*tools).keysByStock},
		{"runners", (*tools).runners}, // before there are compound jobs, among which stock's cannot search
		{"client", (*tools).localClient},
		{"programs", (*tools).programs},
	} {
		for _, line := range lines {
			if !t.Run(step.name+"/"+line, func(t *testing.T) {
				m.t, m.bus.t, m.driver, m.line = t, t, drivers[line], line
				m.driver.t = t
				step.run(m)
			}) && step.name == "keys" {
				t.Fatal("the other steps build on this one")
			}
		}
	}
}

type tools struct {
	*ourMaster
	driver *driver
	last   *process // db1's
}

// local calls a method of stock's LocalClient; a generator's items come as a list.
func (m *tools) local(method string, kwargs query, args ...any) any {
	m.t.Helper()
	if kwargs == nil {
		kwargs = query{}
	}
	return m.driver.must("local", query{"method": method, "args": args, "kwargs": kwargs})
}

// byID puts the answers of a generator, maps of one minion each, together. Where the value is a full return, it is cut to what
// matters.
func byID(v any) map[string]any {
	out := map[string]any{}
	list, many := v.([]any)
	if !many {
		list = []any{v}
	}
	for _, x := range list {
		answers, _ := x.(map[string]any)
		for id, ret := range answers {
			if full, ok := ret.(map[string]any); ok {
				if r, has := full["ret"]; has {
					ret = r
				}
			}
			out[id] = ret
		}
	}
	return out
}

// keysByStock accepts, rejects and deletes keys with stock's own code, which works on the files.
func (m *tools) keysByStock() {
	t := m.t
	folder := func(name string) []any {
		list, _ := m.driver.must("keys", nil).(map[string]any)[name].([]any)
		return list
	}
	if m.line == "3006" {
		await(t, "both keys are pending", func() bool { return exists(m.dir+"/pki/minions_pre/web1") && exists(m.dir+"/pki/minions_pre/db1") })
		m.equal([]any{"db1", "web1"}, folder("minions_pre"))
		mark := m.bus.mark()
		for _, id := range []string{"web1", "db1"} {
			m.driver.must("accept", query{"id": id})
			m.bus.wait(mark, "salt/minion/"+id+"/start")
		}
	}
	mark := m.bus.mark()
	m.driver.must("reject", query{"id": "db1"})
	m.equal([]any{"db1"}, folder("minions_rejected"))
	if e := m.bus.wait(mark, "salt/key"); !strings.HasPrefix(fmt.Sprint(e.Data["act"]), "reject") || e.Data["id"] != "db1" {
		t.Errorf("event %v", e)
	}
	job, _ := m.driver.must("local", query{"method": "run_job", "args": []any{"*", "test.ping"}}).(map[string]any)
	m.equal([]any{"web1"}, job["minions"])
	m.last.t = t
	m.last.wait() // a minion whose key is rejected ends
	m.driver.must("delete", query{"id": "db1"})
	m.last = start(m.root, ours("salt-minion"), "-c", m.conf)
	await(t, "the key comes again", func() bool { return exists(m.dir + "/pki/minions_pre/db1") })
	m.equal([]any{"db1"}, folder("minions_pre"))
	mark = m.bus.mark()
	m.driver.must("accept", query{"id": "db1"})
	m.bus.wait(mark, "salt/minion/db1/start")
	m.equal(map[string]any{"db1": true}, byID(m.local("cmd", query{"timeout": 20}, "db1", "test.ping")))
}

// localClient goes through the methods that programs use. Where a machine is loaded, those of 3007 and later sometimes overlook a return
// until their timeout, from stock masters too: hence a short one.
func (m *tools) localClient() {
	both := map[string]any{"web1": "x", "db1": "x"}
	echo, patience := []any{"*", "test.echo", []any{"x"}}, query{"timeout": 10}
	m.equal(both, byID(m.local("cmd", patience, echo...)))
	for _, method := range []string{"cmd_iter", "cmd_iter_no_block", "cmd_cli"} {
		got, _ := m.local(method, patience, echo...).([]any)
		m.equal(both, byID(slices.DeleteFunc(got, func(x any) bool { return x == nil })))
	}
	m.equal(both, byID(m.local("cmd_batch", query{"batch": "50%", "timeout": 10}, echo...)))
	if got := byID(m.local("cmd_subset", query{"subset": 1, "timeout": 10}, echo...)); len(got) != 1 {
		m.t.Errorf("cmd_subset of one gave %v", got)
	}
	full, _ := m.local("cmd_full_return", patience, "web1", "test.echo", []any{"x"}).(map[string]any)["web1"].(map[string]any)
	m.equal([]any{"x", true}, []any{full["ret"], full["success"]})

	jid, _ := m.local("cmd_async", nil, echo...).(string)
	job, _ := m.local("run_job", nil, "*", "test.echo", []any{"x"}).(map[string]any)
	minions, _ := job["minions"].([]any)
	if len(jid) != 20 || len(minions) != 2 {
		m.t.Fatalf("cmd_async gave %q, run_job %v", jid, job)
	}
	m.equal(both, byID(m.local("get_cli_returns", patience, jid, minions)))
	m.equal(both, byID(m.local("get_cli_returns", patience, job["jid"], minions)))
	m.equal(both, byID(m.local("get_cache_returns", nil, job["jid"])))
	m.equal(both, byID(m.local("get_full_returns", patience, job["jid"], minions)))

	m.equal(map[string]any{"web1": map[string]any{"test.ping": true, "test.echo": "y"}},
		byID(m.local("cmd", patience, "web1", []any{"test.ping", "test.echo"}, []any{[]any{}, []any{"y"}})))
	for tgtType, tgt := range map[string]any{"list": []any{"web1"}, "pcre": "web\\d", "grain": "id:web1", "compound": "web* and not db1", "pillar": "color:blue"} {
		if tgtType == "pillar" {
			m.local("cmd", patience, "*", "saltutil.refresh_pillar")
		}
		got := byID(m.local("cmd", query{"timeout": 10, "tgt_type": tgtType}, tgt, "test.echo", []any{"x"}))
		if want := map[bool]int{true: 2, false: 1}[tgtType == "pillar"]; len(got) != want || got["web1"] != "x" {
			m.t.Errorf("%s %v: %v", tgtType, tgt, got)
		}
	}
	if got := m.local("cmd", query{"timeout": 5}, "nobody", "test.ping"); len(got.(map[string]any)) != 0 {
		m.t.Errorf("nobody answered %v", got)
	}
	if _, failed := m.driver.call("local", query{"method": "run_job", "args": []any{"*", "test.ping"}, "kwargs": query{"eauth": "file", "username": "a", "password": "b"}}); !strings.Contains(failed, "Authentication") {
		m.t.Errorf("a stranger's job: %q", failed)
	}
}

// programs are the command line tools themselves.
func (m *tools) programs() {
	run := func(program string, args ...string) (map[string]any, int) {
		m.t.Helper()
		out, code := output(m.t, stock(m.t, m.line, program), append([]string{"-c", filepath.Dir(m.config()), "--out=json"}, args...)...)
		var v map[string]any
		if json.Unmarshal([]byte(out), &v) != nil {
			v = map[string]any{"text": strings.TrimSpace(out)}
		}
		return v, code
	}
	got, code := run("salt", "--static", "-C", "G@id:web1 or db*", "cmd.run_all", "echo out; exit 3")
	web, _ := got["web1"].(map[string]any)
	if len(got) != 2 || web["stdout"] != "out" || web["retcode"] != 3.0 || code != 3 && code != 11 && code != 0 {
		m.t.Errorf("salt ended with %v and %v", code, got)
	}
	fingers, code := run("salt-key", "-f", "web1")
	text, _ := output(m.t, ours("salt-key"), "-c", filepath.Dir(m.config()), "-f", "web1", "--out=json")
	var mine map[string]any
	if err := json.Unmarshal([]byte(text), &mine); err != nil {
		m.t.Fatalf("salt-key -f: %v in %q", err, text)
	}
	if m.line != "3008" { // whose salt-key counts the lines around a key as well; what it shows is no minion's fingerprint
		m.equal(mine, fingers)
	}
	if ids, _ := fingers["minions"].(map[string]any); ids["web1"] == nil || code != 0 {
		m.t.Errorf("salt-key -f ended with %v and %v", code, fingers)
	}
}

// runners compares stock's runners with ours on this master.
func (m *tools) runners() {
	job, _ := m.local("run_job", nil, "*", "test.arg", []any{"x"}).(map[string]any)
	jid, _ := job["jid"].(string)
	m.local("get_cli_returns", query{"timeout": 10}, jid, job["minions"])
	for _, args := range [][]string{
		{"jobs.lookup_jid", jid}, {"jobs.lookup_jid", "20200101000000000000"}, {"jobs.list_job", jid}, {"jobs.print_job", jid}, {"jobs.exit_success", jid},
		{"jobs.list_jobs", "search_function=test.arg"}, {"jobs.last_run", "function=test.arg"}, {"jobs.list_jobs_filter", "1"}, {"jobs.active"},
		{"manage.up"}, {"manage.down"}, {"manage.present"}, {"manage.not_present"}, {"manage.alived"}, {"manage.list_state", "subset=[web1]"},
		{"cache.grains", "nobody"}, {"cache.grains", "web1"}, {"cache.pillar", "web1"}, {"cache.mine", "*"}, {"cache.mine", "color:blue", "tgt_type=pillar"},
	} {
		theirs, failed := m.driver.call("runner", query{"fun": args[0], "arg": args[1:]})
		if data, ok := theirs.(map[string]any); ok && data["jid"] != nil {
			theirs = data["return"]
		}
		mine, _ := output(m.t, ours("salt-run"), append([]string{"-c", filepath.Dir(m.config()), "-t", "20", "--out", "json"}, args...)...)
		text, err := json.Marshal(theirs)
		if err != nil || failed != "" {
			m.t.Fatal(args, err, failed)
		}
		if diff := cmp.Diff(plainRun(string(text)), plainRun(mine)); diff != "" {
			m.t.Errorf("%s (-stock +ours):\n%s", strings.Join(args, " "), diff)
		}
	}
}
