//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// orchestration returns a tree of orchestrations for a master with the minions web1 and web2.
func orchestration(dir string) map[string]string {
	return map[string]string{
		"orch/all.sls": `
ping:
  salt.function:
    - name: test.ping
    - tgt: 'web1'
echo:
  salt.function:
    - name: test.arg
    - tgt: 'web1,web2'
    - tgt_type: list
    - arg: [1, two]
    - kwarg: {three: [3]}
    - require: [{salt: ping}]
states:
  salt.state:
    - tgt: web1
    - sls: [quiet, busy]
    - pillar: {given: {{ pillar.get('given', 'nothing') }}}
    - require: [{salt: echo}]
keys:
  salt.wheel:
    - name: key.list
    - match: accepted
    - require: [{salt: states}]
runs:
  salt.runner:
    - name: test.arg
    - one: 1
    - require: [{salt: keys}]
here:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: {{ opts.id }} {{ saltenv }} {{ grains.id }} {{ pillar.get('color', 'no color') }}
    - require: [{salt: runs}]
`,
		"orch/fails.sls": `
no function:
  salt.function: [{name: no.such}, {tgt: web1}]
not there:
  salt.function: [{name: test.ping}, {tgt: nobody}]
fails:
  salt.function: [{name: test.false}, {tgt: web1}]
may fail:
  salt.function: [{name: test.false}, {tgt: 'web*'}, {fail_minions: [web1, web2]}]
text:
  salt.function: [{name: test.arg}, {tgt: web1}, {arg: 'a b'}]
bad states:
  salt.state: [{tgt: web1}, {sls: bad}]
absent states:
  salt.state: [{tgt: web1}, {sls: no.such}]
allowed:
  salt.state: [{tgt: web1}, {sls: bad}, {allow_fail: 1}]
no number:
  salt.state: [{tgt: web1}, {sls: bad}, {allow_fail: x}]
nothing:
  salt.state: [{tgt: web1}]
nobody:
  salt.state: [{tgt: nobody}, {sls: quiet}]
concurrent:
  salt.state: [{tgt: web1}, {sls: quiet}, {concurrent: 7}]
no runner:
  salt.runner: [{name: error.error}, {message: oops}]
no runners:
  salt.parallel_runners: [{runners: [a]}]
after:
  test.nop: [{require: [{salt: fails}]}]
on failure:
  test.nop: [{onfail: [{salt: fails}]}]
`,
		"orch/one.sls":     "one: {test: [nop]}\n",
		"orch/bad.sls":     "one:\n  test.nop:\n   - x: {{ nothing.here }}\n",
		"orch/dup.sls":     "one: {no_such: [nop]}\n",
		"orch/nested.sls":  "inner: {salt.runner: [{name: state.orchestrate}, {mods: orch.one}]}\n",
		"orch/batches.sls": "b: {salt.state: [{tgt: 'web*'}, {sls: quiet}, {batch: 1}]}\ns: {salt.function: [{name: test.ping}, {tgt: 'web*'}, {subset: 2}]}\n",
		"quiet.sls":        "quiet: {test: [nop]}\n",
		"busy.sls":         "busy: {test: [succeed_with_changes]}\nsays: {test: [configurable_test_state, {changes: true}, {result: true}, {comment: '{{ pillar.get('given') }}'}]}\n",
		"bad.sls":          "bad: {test: [fail_without_changes]}\n",
	}
}

// TestOrchestrate runs orchestrations with stock's salt-run and with brine's on one stock master.
func TestOrchestrate(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\n")
	for name, text := range orchestration(m.dir) {
		write(t, m.dir+"/srv/"+name, text)
	}
	mark := m.bus.mark()
	for _, id := range []string{"web1", "web2"} {
		start(t, ours("salt-minion"), "-c", m.minion(t, id, ""))
	}
	m.bus.wait(mark, "salt/minion/web1/start")
	m.bus.wait(mark, "salt/minion/web2/start")
	for _, args := range [][]string{
		{"state.orchestrate", "orch.all", `pillar={"given": "x"}`}, {"state.orch", "orch.all", "test=True"}, {"state.sls", "orch.fails"},
		{"state.orchestrate", "orch.one,orch.nested"}, {"state.orch", "orch.batches"},
		{"state.orch", "orch.bad"}, {"state.orch", "orch.dup"}, {"state.orch", "no.such"}, {"state.orch", "orch.one", "pillar=x"},
		{"state.orchestrate_single", "fun=salt.wheel", "name=key.list_all"},
		{"state.orchestrate_high", `{"a": {"salt.function": [{"name": "test.ping"}, {"tgt": "web1"}]}}`},
		{"state.orchestrate_show_sls", "orch.one"}, {"salt.cmd", "test.echo", "hi"}, {"salt.cmd", "hashutil.md5_digest", "hi"},
		{"salt.cmd", "no.such"},
		{"state.pause", "20200101000000000000", "some"}, {"state.orchestrate"},
	} {
		theirs, _ := m.driver.call("runner", query{"fun": args[0], "arg": args[1:]})
		mine, code := output(t, ours("salt-run"), append([]string{"-c", m.dir + "/etc", "--out", "json"}, args...)...)
		want := 0
		if data, ok := theirs.(map[string]any); ok && data["jid"] != nil {
			theirs = data["return"]
			if n, ok := data["retcode"].(float64); ok {
				want = int(n)
			}
		}
		if data, ok := theirs.(map[string]any); ok {
			if n, ok := data["retcode"].(float64); ok {
				want = int(n)
			}
		}
		text, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plainOrch(string(text)), plainOrch(last(mine))); diff != "" || code != want {
			t.Errorf("%s: exit codes %d and %d (-stock +ours):\n%s", strings.Join(args, " "), want, code, diff)
		}
	}
	// The output for users, and the exit codes.
	for _, args := range [][]string{{"state.orch", "orch.one"}, {"state.orchestrate_single", "test.nop", "x"}} {
		run := func(program string) (string, int) {
			return output(t, program, append([]string{"-c", m.dir + "/etc"}, args...)...)
		}
		theirs, code1 := run(stock(t, "3007", "salt-run"))
		mine, code2 := run(ours("salt-run"))
		if diff := cmp.Diff(plainOrch(theirs), plainOrch(mine)); diff != "" || code1 != code2 {
			t.Errorf("%s: exit codes %d and %d (-stock +ours):\n%s", strings.Join(args, " "), code1, code2, diff)
		}
	}
	waitForEvents(t, m)
	parallelRunners(t, m)
}

// parallelRunners runs a state that always ends with an exception in stock 3007, so it is not compared.
func parallelRunners(t *testing.T, m *stockMaster) {
	t.Helper()
	write(t, m.dir+"/srv/orch/parallel.sls", `
several:
  salt.parallel_runners:
    - runners:
        a: [{name: test.arg}, {kwarg: {x: 1}}]
        b: [{name: test.arg}, {kwarg: {x: 2}}]
`)
	out, code := output(t, ours("salt-run"), "-c", m.dir+"/etc", "--out", "json", "state.orch", "orch.parallel")
	for _, part := range []string{`"x": 1`, `"x": 2`, "All runner functions executed successfully."} {
		if !strings.Contains(out, part) || code != 0 {
			t.Errorf("there is no %s: exit code %d, %s", part, code, out)
		}
	}
}

// waitForEvents runs an orchestration that waits for events, and salt-run state.event.
func waitForEvents(t *testing.T, m *stockMaster) {
	t.Helper()
	write(t, m.dir+"/srv/orch/wait.sls", `
wait:
  salt.wait_for_event:
    - name: 'my/*/done'
    - id_list: [a, b]
    - timeout: 80
`)
	watch := start(t, ours("salt-run"), "-c", m.dir+"/etc", "state.event", "my/b/*", "count=1")
	p := start(t, ours("salt-run"), "-c", m.dir+"/etc", "--out", "json", "state.orch", "orch.wait")
	// It is unknown when the two programs listen, so events are sent until both have ended.
	await(t, "the waiting ends", func() bool {
		for _, id := range []string{"a", "b", "c"} {
			m.must("runner", query{"fun": "event.send", "arg": []string{"my/" + id + "/done", fmt.Sprintf(`{"id": "%s"}`, id)}})
		}
		select {
		case <-p.done:
		default:
			return false
		}
		select {
		case <-watch.done:
			return true
		default:
			return false
		}
	})
	if text := tail(p.log); p.wait() != 0 || !strings.Contains(text, "All events seen in ") || !strings.Contains(text, `"minions_seen"`) {
		t.Errorf("wait_for_event: %s", text)
	}
	if text := tail(watch.log); watch.wait() != 0 || !strings.HasPrefix(text, "my/b/done\t{") || !strings.Contains(text, `"id": "b"`) {
		t.Errorf("state.event: %s", text)
	}
}

// last returns the last of several JSON texts. The progress reports of a function precede its result.
func last(out string) string {
	d := json.NewDecoder(strings.NewReader(out))
	text := out
	for {
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return text
		}
		text = string(v)
	}
}

// plainOrch removes the parts of an output that differ between runs.
func plainOrch(out string) string {
	// Stock's driver prints this on another stream.
	out = plainRun(strings.ReplaceAll(out, "No minions matched the target. No command was sent, no jid was assigned.\n", ""))
	for _, r := range [][2]string{
		{`"(duration|__run_num__)": [0-9.]+`, `"$1": 0`}, {`"start_time": "[0-9:.]+"`, `"start_time": ""`}, {`\d{20}`, "JID"}, {`web2, web1`, "web1, web2"},
		{`"_stamp": "[^"]*"`, `"_stamp": ""`}, {`(Started|Duration|Total run time): +[^\n]*`, "$1:"}, {`((duration|start_time):\n +)[0-9.:]+`, "$1"},
		{`'(duration|start_time)': [^,}]*`, "'$1': 0"},
	} {
		out = regexp.MustCompile(r[0]).ReplaceAllString(out, r[1])
	}
	return out
}
