//go:build interop

package interop

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reactorConfig is the option reactor of a master in dir.
func reactorConfig(dir string) string {
	return strings.ReplaceAll(`
auto_accept: true
reactor:
  - deploy/ready: [DIR/react/ready.sls]
  - 'deploy/args/*': [salt://react/args.sls]
  - deploy/map: [DIR/react/map.sls]
  - deploy/former: [DIR/react/former.sls]
  - deploy/both: [DIR/react/map.sls, DIR/react/job.sls]
  - deploy/fails: [DIR/react/fails.sls]
  - deploy/absent: [DIR/react/absent.sls]
`, "DIR", dir)
}

// reactorTree holds the files of reactions, and the orchestrations that they start. The event reaches the orchestration in its
// pillar, as Salt's documentation has it.
var reactorTree = map[string]string{
	"react/ready.sls": "ready: {runner.test.arg: [{args: [{x: 1}]}]}\n",
	"srv/react/args.sls": `
deploy:
  runner.state.orchestrate:
    - args:
      - mods: orch.react
      - pillar:
          event_tag: {{ tag }}
          event_data: {{ data | json }}
`,
	"react/map.sls": `
deploy:
  runner.state.orchestrate:
    - args:
        mods: [orch.react]
        pillar: {event_tag: {{ tag }}, event_data: {{ data }}}
`,
	"react/former.sls": `
deploy:
  runner.state.orchestrate:
    - mods: orch.react
    - pillar: {event_tag: {{ tag }}, event_data: {{ data | json }}}
`,
	"react/job.sls":    "say:\n  local.test.arg_clean:\n    - tgt: {{ data['host'] }}\n    - args: [{said: {{ data['version'] }}}]\n",
	"react/fails.sls":  "deploy: {runner.state.orchestrate: [{args: [{mods: orch.bad}]}]}\n",
	"react/absent.sls": "deploy: {runner.state.orchestrate: [{args: [{mods: orch.nothing}, {pillar: {a: 1}}]}]}\n",
	"srv/orch/react.sls": `
{% set event = pillar['event_data'] %}
told:
  salt.function:
    - name: test.arg_clean
    - tgt: {{ event['host'] }}
    - arg: [{{ pillar['event_tag'] }}]
    - kwarg: {version: '{{ event['version'] }}', parts: {{ event['parts'] | json }}}
states:
  salt.state:
    - tgt: {{ event['host'] }}
    - sls: busy
    - pillar: {given: '{{ event['version'] }}'}
    - require: [{salt: told}]
kept:
  salt.runner:
    - name: cache.store
    - bank: releases
    - key: {{ event['host'] }}
    - data: '{{ event['version'] }}'
    - require: [{salt: states}]
`,
	"srv/orch/bad.sls": "wrong:\n  test.fail_without_changes: []\nafter:\n  salt.function:\n    - name: test.ping\n    - tgt: web1\n    - require: [{test: wrong}]\n",
	"srv/busy.sls": "busy: {test: [succeed_with_changes]}\n" +
		"says: {test: [configurable_test_state, {changes: true}, {result: true}, {comment: '{{ pillar['given'] }}'}]}\n",
}

// A reacting master is one of stock or ours with the reactions above, and one of our minions.
type reacting struct {
	t    *testing.T
	name string
	*site
	bus *bus
	run func(args ...string) string // a runner, with its result in JSON
}

// TestReactorOrchestrates: an event makes the reactor start an orchestration, in each of the forms that stock takes. The events of
// the run and of the jobs in it, its record in the job cache, and what it keeps are those of stock's master.
func TestReactorOrchestrates(t *testing.T) {
	t.Parallel()
	place := func() *site {
		s := newSite(t, "zeromq", "")
		more(t, s.config(), reactorConfig(s.dir))
		for name, text := range reactorTree {
			write(t, s.dir+"/"+name, text)
		}
		return s
	}
	theirs := &stockMaster{site: place(), t: t, root: t, line: "3007"}
	theirs.up()
	mine := &ourMaster{site: place(), t: t, root: t, line: "3007"}
	mine.up()
	one := &reacting{t: t, name: "stock", site: theirs.site, bus: theirs.bus, run: func(args ...string) string {
		v, failure := theirs.call("runner", query{"fun": args[0], "arg": args[1:]})
		if data, ok := v.(map[string]any); ok && data["jid"] != nil {
			v = data["return"]
		}
		return asText(t, v) + failure
	}}
	two := &reacting{t: t, name: "ours", site: mine.site, bus: mine.bus, run: func(args ...string) string {
		out, _ := output(t, ours("salt-run"), append([]string{"-c", mine.dir + "/etc", "--out=json"}, args...)...)
		var v any
		if err := json.Unmarshal([]byte(last(out)), &v); err != nil {
			t.Errorf("salt-run %q printed %q", args, out)
		}
		return asText(t, v)
	}}
	both := []*reacting{one, two}
	for _, r := range both {
		r.begin()
	}
	data := `{"host": "web1", "version": "4.2", "parts": {"z": 1, "a": [true, null]}}`
	for _, tag := range []string{"deploy/args/now", "deploy/map", "deploy/former", "deploy/both", "deploy/fails", "deploy/absent"} {
		t.Run(tag, func(t *testing.T) {
			for _, r := range both {
				r.t, r.bus.t = t, t
			}
			if diff := cmp.Diff(one.react(tag, data), two.react(tag, data)); diff != "" {
				t.Errorf("(-stock +ours)\n%s", diff)
			}
		})
	}
	for _, r := range both {
		if got := r.run("cache.fetch", "releases", "web1"); got != `"4.2"` {
			t.Errorf("%s: the orchestration kept %s", r.name, got)
		}
	}
}

// asText returns a value as JSON in lines.
func asText(t *testing.T, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// begin starts the minion, and waits until the master reacts.
func (r *reacting) begin() {
	r.t.Helper()
	mark := r.bus.mark()
	start(r.t, ours("salt-minion"), "-c", r.minion(r.t, "web1", ""))
	r.bus.wait(mark, "salt/minion/web1/start")
	await(r.t, r.name+" reacts", func() bool { // nothing says when the reactor of stock listens
		r.run("event.send", "deploy/ready")
		return slices.ContainsFunc(r.bus.since(mark), func(e event) bool { return e.Data["fun"] == "runner.test.arg" })
	})
}

// react fires an event, and returns the events that the reaction causes, and the record of its run.
func (r *reacting) react(tag, data string) []string {
	r.t.Helper()
	mark := r.bus.mark()
	r.run("event.send", tag, data)
	isRun := func(e event) bool {
		return strings.HasPrefix(e.Tag, "salt/run/") && strings.HasSuffix(e.Tag, "/ret") && e.Data["fun"] == "runner.state.orchestrate"
	}
	end := r.bus.first(mark, isRun, "the end of the run after "+tag)
	if tag == "deploy/both" {
		r.bus.first(mark, func(e event) bool { return strings.HasSuffix(e.Tag, "/ret/web1") && said(e) }, "the job beside the orchestration")
	}
	var seen, beside []string
	for _, e := range r.bus.since(mark) {
		switch fun, _ := e.Data["fun"].(string); {
		case !strings.HasPrefix(e.Tag, "salt/run/") && !strings.HasPrefix(e.Tag, "salt/job/"), fun == "runner.event.send", fun == "runner.test.arg",
			fun == "saltutil.find_job":
		case said(e): // it runs beside the others
			beside = append(beside, r.plain(e))
		default:
			seen = append(seen, r.plain(e))
		}
	}
	jid, _ := end.Data["jid"].(string)
	for _, fun := range []string{"jobs.lookup_jid", "jobs.list_job"} {
		seen = append(seen, fun+" "+stampLine.ReplaceAllString(plainOrch(r.run(fun, jid)), "")) // stock keeps the stamp of the first event
	}
	if tag == "deploy/former" { // stock fills in the defaults of the runner's arguments
		for i := range seen {
			seen[i] = defaults.ReplaceAllString(seen[i], "")
		}
	}
	for i := range beside { // see docs/migrate-master.md
		beside[i] = strings.Replace(beside[i], `"user": "Reactor"`, `"user": "root"`, 1)
	}
	return append(seen, beside...)
}

var (
	stampLine = regexp.MustCompile(`(?m)^ *"_stamp": "",\n`)
	defaults  = regexp.MustCompile(`(?m)^ *(?:"orch\.react",|"mods": "orch\.react",|"(?:exclude|orchestration_jid|pillar_enc|pillarenv|saltenv|test)": .*|\{|\},?)\n`)
	timeOf    = regexp.MustCompile(`"ts": \d+`)
)

// said reports whether an event is one of the job in job.sls.
func said(e event) bool {
	return strings.Contains(string(mustJSON(e.Data["arg"])), `"said"`) || strings.Contains(string(mustJSON(e.Data["fun_args"])), `"said"`)
}

func mustJSON(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

// plain is an event without what differs from run to run.
func (r *reacting) plain(e event) string {
	return strings.ReplaceAll(timeOf.ReplaceAllString(plainOrch(e.Tag+" "+asText(r.t, e.Data)), `"ts": 0`), r.dir, "DIR")
}
