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

// TestStockTools uses brine's master, with two of its minions, through the tools of every stock line on the same
// host: salt, salt-key, salt-run, and Python's LocalClient, on which the tools are based.
func TestStockTools(t *testing.T) {
	inTurn(t)
	t.Parallel()
	m := &tools{ourMaster: &ourMaster{site: newSite(t, "zeromq", "timeout: 20\n"), t: t, root: t, line: "3007"}}
	write(t, m.dir+"/users", "alice:secret\nbob:secret\n")
	more(t, m.config(), "external_auth:\n  file:\n    ^filename: "+m.dir+"/users\n    alice: ['.*', '@runner', '@wheel']\n    bob: [test.ping]\n")
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
		{"runners", (*tools).runners}, // before there are compound jobs, which stock's runner cannot search
		{"client", (*tools).localClient},
		{"programs", (*tools).programs},
		{"interfaces", (*tools).interfaces},
		{"directories", (*tools).directories},
		{"log-ins", (*tools).logins},
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
	last   *process // db1's process
}

// local calls a method of stock's LocalClient. The items of a generator are returned as a list.
func (m *tools) local(method string, kwargs query, args ...any) any {
	m.t.Helper()
	if kwargs == nil {
		kwargs = query{}
	}
	return m.driver.must("local", query{"method": method, "args": args, "kwargs": kwargs})
}

// byID merges the answers of a generator, each of which is a map for one minion. A full return is reduced to its
// result.
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

// keysByStock accepts, rejects and deletes keys with stock's own code, which changes the files.
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
	m.last.wait() // a minion whose key is rejected exits
	m.driver.must("delete", query{"id": "db1"})
	m.last = start(m.root, ours("salt-minion"), "-c", m.conf)
	await(t, "the key comes again", func() bool { return exists(m.dir + "/pki/minions_pre/db1") })
	m.equal([]any{"db1"}, folder("minions_pre"))
	mark = m.bus.mark()
	m.driver.must("accept", query{"id": "db1"})
	m.bus.wait(mark, "salt/minion/db1/start")
	m.equal(map[string]any{"db1": true}, byID(m.local("cmd", query{"timeout": 20}, "db1", "test.ping")))
}

// localClient calls the methods that programs use. On a busy machine those of 3007 and later sometimes miss a return
// until their timeout, from stock masters too. Therefore the timeout is short.
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

// programs runs the command line tools themselves.
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
	// The salt-key of 3008 also includes the lines around a key, so its output is not the fingerprint of a minion.
	if m.line != "3008" {
		m.equal(mine, fingers)
	}
	if ids, _ := fingers["minions"].(map[string]any); ids["web1"] == nil || code != 0 {
		m.t.Errorf("salt-key -f ended with %v and %v", code, fingers)
	}
}

// runners compares stock's runners with brine's on this master.
func (m *tools) runners() {
	job, _ := m.local("run_job", nil, "*", "test.arg", []any{"x"}).(map[string]any)
	jid, _ := job["jid"].(string)
	m.local("get_cli_returns", query{"timeout": 10}, jid, job["minions"])
	for _, args := range [][]string{
		{"jobs.lookup_jid", jid}, {"jobs.lookup_jid", "20200101000000000000"}, {"jobs.list_job", jid}, {"jobs.print_job", jid}, {"jobs.exit_success", jid},
		{"jobs.list_jobs", "search_function=test.arg"}, {"jobs.list_jobs", "search_function=[no.such, 'test.ar*']"}, {"jobs.list_jobs", "search_function=[]", "search_target=['[*]', nobody]"},
		{"jobs.list_jobs", "search_target=['[*]', nobody]"}, {"jobs.list_jobs", "search_target=[nobody]"}, {"jobs.last_run", "function=test.arg"}, {"jobs.list_jobs_filter", "1"}, {"jobs.active"},
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

// interfaces calls the clients of salt.netapi, on which salt-api is based, and those that log in by themselves.
func (m *tools) interfaces() {
	alice := func(more query) query {
		out := query{"eauth": "file", "username": "alice", "password": "secret"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	netapi := func(low query) any {
		m.t.Helper()
		return m.driver.must("netapi", query{"low": alice(low)})
	}
	both := map[string]any{"web1": "x", "db1": "x"}
	m.equal(any(both), netapi(query{"client": "local", "tgt": "*", "fun": "test.echo", "arg": []any{"x"}, "timeout": 20}))
	job, _ := netapi(query{"client": "local_async", "tgt": "*", "fun": "test.ping"}).(map[string]any)
	if ids, _ := job["minions"].([]any); len(ids) != 2 || job["jid"] == nil {
		m.t.Errorf("local_async answers %v", job)
	}
	batched, _ := netapi(query{"client": "local_batch", "tgt": "*", "fun": "test.echo", "arg": []any{"x"}, "batch": "1"}).([]any)
	if len(batched) != 2 {
		m.t.Errorf("local_batch answers %v", batched)
	}
	m.equal(any(map[string]any{"args": []any{"a"}, "kwargs": map[string]any{"k": 1.0}}),
		plainArgs(netapi(query{"client": "runner", "fun": "test.arg", "arg": []any{"a"}, "kwarg": query{"k": 1}})))
	run, _ := netapi(query{"client": "runner_async", "fun": "test.arg", "arg": []any{"later"}}).(map[string]any)
	mark := 0
	if e := m.bus.wait(mark, fmt.Sprintf("salt/run/%v/ret", run["jid"])); e.Data["success"] != true {
		m.t.Errorf("runner_async: event %v", e)
	}
	for _, low := range []query{
		{"client": "wheel", "fun": "key.name_match", "match": "w*"}, {"client": "wheel", "fun": "key.name_match", "arg": []any{"w*"}, "kwarg": query{}},
	} {
		got, _ := netapi(low).(map[string]any)
		data, _ := got["data"].(map[string]any)
		m.equal(any(map[string]any{"minions": []any{"web1"}}), data["return"])
		m.equal(any(true), data["success"])
	}
	wrong, _ := netapi(query{"client": "wheel", "fun": "key.name_match", "match": "w*", "nonsense": 1}).(map[string]any)
	if data, _ := wrong["data"].(map[string]any); data["success"] != false {
		m.t.Errorf("an argument that there is not: %v", data)
	}
	got, _ := m.driver.must("wheel", query{"method": "cmd_sync", "low": alice(query{"fun": "key.name_match", "match": "db*"})}).(map[string]any)
	data, _ := got["data"].(map[string]any)
	m.equal(any(map[string]any{"minions": []any{"db1"}}), data["return"])
	m.equal(any(map[string]any{"args": []any{"sync"}, "kwargs": map[string]any{}}),
		plainArgs(m.driver.must("runner_client", query{"method": "cmd_sync", "low": alice(query{"fun": "test.arg", "arg": []any{"sync"}})})))
	if _, failed := m.driver.call("netapi", query{"low": query{"client": "runner", "fun": "test.arg", "eauth": "file", "username": "bob", "password": "secret"}}); !strings.Contains(failed, "EauthAuthenticationError") {
		m.t.Errorf("bob's runner: %s", failed)
	}
	login, _ := m.driver.must("resolved", query{"load": query{"eauth": "file", "username": "alice", "password": "secret"}}).(map[string]any)
	m.equal(login["made"], login["found"])
	token, _ := login["made"].(map[string]any)["token"].(string)
	got, _ = m.driver.must("netapi", query{"low": query{"client": "local", "tgt": "web1", "fun": "test.ping", "token": token, "timeout": 20}}).(map[string]any)
	m.equal(map[string]any{"web1": true}, got)
}

// plainArgs removes the arguments that Salt adds from the answer of test.arg.
func plainArgs(v any) any {
	got, _ := v.(map[string]any)
	if kwargs, ok := got["kwargs"].(map[string]any); ok {
		for k := range kwargs {
			if strings.HasPrefix(k, "__") {
				delete(kwargs, k)
			}
		}
	}
	return got
}

// directories checks the directories in which programs on the master's host find and store files.
func (m *tools) directories() {
	made, _ := m.driver.must("token", query{"load": query{"eauth": "auto", "username": "x", "password": "x"}}).(map[string]any)
	m.equal(map[string]any{}, made["made"]) // external_auth does not have this method, so the login fails
	made, _ = m.driver.must("token", query{"load": query{"eauth": "file", "username": "alice", "password": "secret"}}).(map[string]any)
	token, _ := made["made"].(map[string]any)
	found, _ := made["found"].(map[string]any)
	if token["token"] == nil || found["token"] != token["token"] || found["name"] != "alice" {
		m.t.Errorf("a token that a program makes by itself: %v", made)
	}
	for _, args := range [][]string{{"queue.insert", "ours", "one", "sqlite"}, {"queue.list_items", "ours", "sqlite"}} {
		v, failed := m.driver.call("runner", query{"fun": args[0], "arg": args[1:]})
		if text := fmt.Sprint(v, failed); strings.Contains(text, "Exception") || failed != "" {
			m.t.Errorf("%s: %s", args, text)
		}
	}
}

// logins runs brine's commands with a login, and stock's on the same master.
func (m *tools) logins() {
	run := func(program string, args ...string) (string, int) {
		m.t.Helper()
		out, code := output(m.t, program, append([]string{"-c", filepath.Dir(m.config()), "--out=json"}, args...)...)
		var v any
		if json.Unmarshal([]byte(out), &v) == nil {
			b, _ := json.Marshal(plainArgs(v))
			return string(b), code
		}
		return strings.TrimSpace(out), code
	}
	for _, c := range [][]string{
		{"salt-run", "-a", "file", "--username", "alice", "--password", "secret", "test.arg", "a", "k=1"},
		{"salt-run", "-a", "file", "--username", "alice", "--password", "secret", "manage.up"},
		{"salt-key", "--eauth", "file", "--username", "alice", "--password", "secret", "-L"},
		{"salt-key", "--eauth", "file", "--username", "alice", "--password", "secret", "-f", "web1"},
		{"salt-key", "--eauth", "file", "--username", "alice", "--password", "secret", "-p", "web1"},
		// This one is last, because stock's salt-key of 3008 fails with --eauth once the user has a token.
		{"salt-key", "--auth", "file", "--username", "alice", "--password", "secret", "--make-token", "-l", "acc"},
	} {
		theirs, code := run(stock(m.t, m.line, c[0]), c[1:]...)
		mine, own := run(ours(c[0]), c[1:]...)
		if m.line == "3008" && c[len(c)-2] == "-f" {
			continue // see programs
		}
		if diff := cmp.Diff(theirs, mine); diff != "" || code != own || code != 0 {
			m.t.Errorf("%s ended with %d, ours with %d (-stock +ours):\n%s", strings.Join(c, " "), code, own, diff)
		}
	}
	bob := []string{"--eauth", "file", "--username", "bob", "--password", "secret"}
	for _, c := range [][]string{{"salt-run", "manage.up"}, {"salt-key", "-L"}, {"salt-key", "-y", "-d", "web1"}} {
		out, code := run(ours(c[0]), append(slices.Clone(bob), c[1:]...)...)
		if code == 0 || strings.Contains(out, "web1") {
			m.t.Errorf("%s for bob ended with %d: %s", c, code, out)
		}
	}
	alice := []string{"--eauth", "file", "--username", "alice", "--password", "secret", "-y"}
	mark := m.bus.mark()
	for _, c := range []struct{ act, folder string }{{"-r", "minions_rejected"}, {"-a", "minions"}} {
		args := append(slices.Clone(alice), "--include-all", c.act, "db1")
		if out, code := run(ours("salt-key"), args...); code != 0 || !strings.Contains(out, "Key for minion db1") {
			m.t.Errorf("salt-key %s ended with %d: %s", c.act, code, out)
		}
		m.equal(true, exists(m.dir+"/pki/"+c.folder+"/db1"))
	}
	m.bus.first(mark, func(e event) bool { return e.Tag == "salt/key" && e.Data["act"] == "accept" && e.Data["id"] == "db1" }, "of the accepted key")
}
