//go:build interop

package interop

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// someData returns random nested data in YAML's flow style, with keys in any order.
func someData(r *rand.Rand, depth int) string {
	if depth == 0 {
		return strconv.Itoa(r.IntN(100))
	}
	var parts []string
	if depth < 3 && r.IntN(4) == 0 {
		for range r.IntN(3) + 1 {
			parts = append(parts, someData(r, depth-1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	for _, i := range r.Perm(26)[:r.IntN(5)+2] {
		parts = append(parts, string(rune('a'+i))+strconv.Itoa(r.IntN(10))+": "+someData(r, depth-1-r.IntN(min(depth, 2))))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// TestOrderOfDictionaries compares with stock the dictionaries that templates see: those of the grains, the options
// and the pillar, and those that are arguments and results of functions. The order of their keys is visible in the
// text.
func TestOrderOfDictionaries(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	r := rand.New(rand.NewPCG(16, 1))
	data := make([]string, 6)
	for i := range data {
		data[i] = someData(r, 3)
	}
	write(t, dir+"/pillar/top.sls", "base: {'*': [data]}\n")
	write(t, dir+"/pillar/data.sls", "filed: "+data[0]+"\ncli: {}\n")
	write(t, dir+"/srv/t.sls", "{% for n, v in pillar['cli'].items() %}{{ n }}: {test.nop: [{v: {{ v | json }}}]}\n{% endfor %}")
	config := func(id string) string {
		root := dir + "/" + id
		write(t, root+"/etc/minion", "id: values\nfile_client: local\nroot_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\n"+
			"log_level_logfile: quiet\nenable_fqdns_grains: false\nenable_gpu_grains: false\nuser: root\n"+
			"file_roots: {base: ["+dir+"/srv]}\npillar_roots: {base: ["+dir+"/pillar]}\n"+
			"grains: {mygrain: {web: 1, app: 2, db: 3}, random: "+data[1]+"}\nmine: "+data[2]+"\nreplaced: {b: 1, a: 2}\nmerged: {c: {z: 1, a: 2}, b: 1}\n")
		write(t, root+"/etc/grains", "filegrain: "+data[3]+"\nroles: {z: [1], a: {y: 1, b: 2}}\n")
		write(t, root+"/etc/minion.d/a.conf", "more: "+data[4]+"\nreplaced: {q: 1, c: 2, p: 3}\nmerging: {z: 1, c: 2}\n")
		write(t, root+"/etc/minion.d/b.conf", "merging: {a: 1, z: {y: 1, x: 2}, b: 3}\n")
		return root + "/etc"
	}
	mine := config("ours")
	cases := append(dictOrderCommands, []string{"state.show_sls", "t", "pillar={cli: {z: 1, a: 2, m: " + data[5] + "}}"},
		[]string{"slsutil.renderer", "string=" + strings.Join(dictOrderTexts, " ; "), "default_renderer=jinja"})
	got := make([]*called, len(cases))
	for _, line := range []string{"3007", "3008"} {
		d := pythonDriver(t, line, "calls", config(line)+"/master")
		for i, args := range cases {
			if got[i] == nil {
				got[i] = ourCallRaw(t, append([]string{"-c", mine, "--out=json"}, args...)...)
				got[i].Out = plainValues(got[i].Out)
			}
			if line < "3008" {
				// The lines before 3008 do not have this argument.
				args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "unmask=True" })
			}
			want := stockCallRaw(t, d, append([]string{"-c", dir + "/" + line + "/etc", "--out=json"}, args...)...)
			want.Out = plainValues(want.Out)
			if diff := cmp.Diff(want.Out, got[i].Out); diff != "" || strings.Contains(want.Out, "rror") {
				t.Errorf("%s: salt-call %s (-stock +ours):\n%s%s", line, fmt.Sprintf("%.200q", args), diff, want.Out)
			}
		}
		d.close()
	}
	t.Logf("%d calls", len(cases))
}

// dictOrderTexts are parts of one template.
var dictOrderTexts = []string{
	"{% for n in grains['mygrain'] %}{{ n }} {% endfor %}",
	"{{ grains['mygrain'] | first }} {{ grains.mygrain.keys() | list }} {{ grains['random'] }} {{ grains['filegrain'] | json }}",
	"{% for k, v in grains['roles'] | items %}{{ k }}={{ v }} {% endfor %}{{ grains['roles'] | yaml }}",
	"{{ grains['ip4_interfaces'] | first }} {{ grains['ip4_interfaces'] }} {{ grains['ip6_interfaces'].keys() | list }}",
	"{{ grains['ip_interfaces'] }} {{ grains['hwaddr_interfaces'] }} {{ grains['dns'] }} {{ grains['locale_info'] }} {{ grains['systemd'] }}",
	"{{ opts['mine'] }} {{ opts['more'] }} {{ opts['replaced'] }} {{ opts['merged'] }} {{ opts['merging'] }} {{ opts['grains']['mygrain'] }} {{ opts['pillar']['filed'] }}",
	"{{ salt['config.get']('mine') }} {{ salt['config.get']('merged:c') }} {{ salt['config.get']('mygrain') }} {{ salt['config.get']('filed') }} {{ salt['config.get']('grains:random') }}",
	"{{ salt['grains.get']('random') }} {{ salt['grains.get']('roles:a') }} {{ salt['grains.item']('random', 'mygrain', 'filegrain') }}",
	"{{ salt['grains.items']()['random'] }} {{ salt['grains.fetch']('mygrain') }}",
	"{{ salt['test.arg']({'z': 1, 'a': {'y': [{'d': 1, 'c': 2}], 'b': 3}}, k={'z': 1, 'a': 2})['args'] }} {{ salt['test.arg']({'z':1,'a':2})['args'][0].keys() | list }}",
	"{{ salt['pillar.items']() }} {{ salt['pillar.item']('filed', 'cli') }} {{ salt['pillar.get']('filed') }}",
	"{{ salt['user.info']('root') }} {{ salt['file.stats']('/etc/passwd').keys() | list }} {{ salt['network.interfaces']() }}",
	"{{ salt['disk.usage']().keys() | list }} {{ salt['disk.usage']()['/'].keys() | list }} {{ salt['disk.inodeusage']()['/'].keys() | list }}",
	"{{ salt['grains.filter_by']({'Debian': {'z': 1, 'a': {'y': 2, 'b': 3}}}) }}",
	"{% for v in salt['state.single']('module.run', name='slsutil.serialize', serializer='json', obj={'z': 1, 'a': {'y': 2, 'b': [{'d': 1, 'c': 2}]}}).values() %}{{ v['changes'] }}{% endfor %}",
	"{% for v in salt['state.single']('module.run', 'x', **{'slsutil.serialize': ['json', {'obj': {'z': 1, 'a': {'y': 2, 'b': 3}}}]}).values() %}{{ v['changes'] }}{% endfor %}",
	"{% for v in salt['state.single']('module.run', 'x', **{'user.info': ['root'], 'test.echo': [{'z': 1, 'a': 2}]}).values() %}{{ v['changes'] }} {{ v['comment'] }}{% endfor %}",
	"{% for v in salt['state.single']('module.run', name='user.info', m_name='root').values() %}{{ v['changes'] }} {{ v['comment'] }}{% endfor %}",
	"{{ salt['schedule.build_schedule_item']('j', function='test.arg', job_kwargs={'z': 1, 'a': {'y': 1, 'b': 2}}, job_args=[{'q': 1, 'c': 2}], seconds=5, splay={'end': 9, 'start': 3}, returner='x', metadata={'y': 1, 'b': 2}) }}",
	"{{ salt['schedule.build_schedule_item']('j', function='test.ping', cron='* * * * *', enabled=False, maxrunning=2, until='x', return_config='a', run_on_start=True) }}",
	"{% for v in salt['state.single']('module.run', 'x', **{'schedule.build_schedule_item': ['j', {'function': 'test.ping', 'hours': 2, 'days': 1}], 'test.version': []}).values() %}{{ v['changes'].keys() | list }}{{ v['changes']['schedule.build_schedule_item'] }}{% endfor %}",
	"{% for v in salt['state.single']('module.run', name='test.arg_clean', args=['x'], kwargs={'k': 1}).values() %}{{ v['changes']['ret']['kwargs'] }}{% endfor %}",
}

var dictOrderCommands = [][]string{
	{"grains.item", "mygrain", "filegrain", "random"},
	{"schedule.build_schedule_item", "j", "function=test.arg", "job_kwargs={z: 1, a: {y: 1, b: 2}}", "minutes=5", "when=['2026-01-01 10:00']"},
	// 3008 masks values by default.
	{"pillar.items", "unmask=True", "pillar={cli: {z: 1, a: {y: 2, b: [{d: 1, c: 2}]}}, new: {q: 1, c: 2}}"},
}

// TestOrderThroughMasters compares dictionaries that have passed through a master: those of stock's master with
// stock's minion, and with each of them replaced by brine's. They are arguments, results, mine values, publishes of
// minions, pillars of commands and orchestrations, and stored jobs.
func TestOrderThroughMasters(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			extra := "auto_accept: True\npeer: {'.*': ['test.*']}\n"
			m := startStockMaster(t, line, "zeromq", extra)
			want := m.orderSeen(t, line, func(program string) string { return stock(t, line, program) })
			m.proc.stop()
			o := &ourMaster{site: newSite(t, "zeromq", extra), t: t, root: t, line: line, id: "stock"}
			o.up()
			got := o.orderSeen(t, line, ours)
			o.proc.stop()
			for _, of := range []struct {
				name string
				seen []string
			}{{"our minion under stock's master", want["ours"]}, {"stock's minion under our master", got["stock"]}, {"our minion under our master", got["ours"]}} {
				if diff := cmp.Diff(want["stock"], of.seen); diff != "" {
					t.Errorf("%s (-stock +%s):\n%s", line, of.name, diff)
				}
			}
			t.Logf("%d answers", len(want["stock"]))
		})
	}
}

// orderSeen runs a stock minion and one of brine under a master, and returns the output of the master's programs for
// each.
func (s *site) orderSeen(t *testing.T, line string, program func(string) string) map[string][]string {
	t.Helper()
	r := rand.New(rand.NewPCG(17, 3))
	data := make([]string, 6)
	for i := range data {
		data[i] = someData(r, 3)
	}
	write(t, s.dir+"/pillar/common.sls", "filed: "+data[0]+"\ncli: {}\n")
	write(t, s.dir+"/srv/t.sls", "{% for n, v in pillar['cli'].items() %}{{ n }}: {test.nop: [{v: {{ v | json }}}]}\n{% endfor %}")
	write(t, s.dir+"/srv/loop.sls", "{% for n in pillar['cli'] %}{{ n }}: {test.configurable_test_state: [{changes: false}, {result: true}, "+
		"{comment: '{{ pillar['cli'].keys() | list | join(' ') }} {{ pillar['cli'][n] | json }}'}]}\n{% endfor %}")
	for id, minion := range map[string]string{"stock": stock(t, line, "salt-minion"), "ours": ours("salt-minion")} {
		conf := s.minion(t, id, "")
		write(t, conf+"/grains", "mygrain: {web: 1, app: 2, db: 3}\nrandom: "+data[1]+"\n")
		start(t, minion, "-c", conf)
	}
	run := func(name string, args ...string) string {
		out, _ := output(t, program(name), append([]string{"-c", s.dir + "/etc", "--out=json"}, args...)...)
		return out
	}
	filed := []string{"salt", "", "pillar.item", "filed"}
	if line >= "3008" {
		filed = append(filed, "unmask=True") // otherwise it masks values
	}
	seen := map[string][]string{}
	for _, id := range []string{"stock", "ours"} {
		filed[1] = id
		await(t, id+" answers", func() bool { return strings.Contains(run("salt", "-t", "3", id, "test.ping"), "true") })
		write(t, s.dir+"/srv/orch.sls", "{% for n in pillar['cli'] %}{{ n }}:\n  salt.function:\n    - name: test.arg_clean\n    - tgt: "+id+
			"\n    - kwarg: {given: {{ pillar['cli'] | json }}}\n{% endfor %}states:\n  salt.state:\n    - tgt: "+id+"\n    - sls: loop\n    - pillar: {cli: {{ pillar['cli'] | json }}}\n")
		for _, args := range [][]string{
			{"salt", id, "test.arg_clean", data[2], "k=" + data[3]},
			{"salt", id, "grains.item", "mygrain", "random"},
			filed,
			{"salt", id, "state.show_sls", "t", "pillar={cli: {z: 1, a: 2, m: " + data[4] + "}}"},
			{"salt", id, "mine.send", "kept", "mine_function=test.arg_clean", "k=" + data[5]},
			{"salt", id, "mine.get", id, "kept"},
			{"salt", id, "slsutil.renderer", "default_renderer=jinja", "string={{ salt['mine.get']('" + id + "', 'kept')['" + id + "'] }} {% for n in grains['mygrain'] %}{{ n }} {% endfor %}" +
				"{{ salt['publish.publish']('" + id + "', 'test.arg_clean', [{'z': 1, 'a': {'y': 2, 'b': 3}}])['" + id + "'] }}"},
			{"salt", id, "publish.full_data", id, "test.arg_clean", "[{z: 1, a: [{y: 2, b: 3}]}]"},
			{"salt", id, "test.arg_clean,test.echo", data[2], ",", data[4]},
			{"salt-run", "salt.execute", id, "test.arg_clean", "arg=[" + data[3] + "]", "kwarg={k: " + data[2] + "}"},
			{"salt-run", "mine.get", id, "kept"},
			{"salt-run", "state.orch", "orch", "pillar={cli: {z: 1, a: {y: 2, b: 3}, m: 4}}"},
		} {
			seen[id] = append(seen[id], plainSeen(run(args[0], args[1:]...), id))
		}
		// The results of a stored job keep their order as well.
		out, _ := output(t, program("salt"), "-c", s.dir+"/etc", "--async", id, "test.arg_clean", data[5])
		jid := out[strings.LastIndex(out, ": ")+2:]
		stored := ""
		await(t, "the job is stored", func() bool {
			stored = run("salt-run", "jobs.lookup_jid", strings.TrimSpace(jid))
			return strings.Contains(stored, id)
		})
		seen[id] = append(seen[id], plainSeen(stored, id))
	}
	return seen
}

// plainSeen removes the parts of a text that differ between runs. Of the reports of an orchestration and of a
// minion's states, it keeps only the data of the test, whose order matters.
func plainSeen(out, id string) string {
	out = regexp.MustCompile(`\b`+id+`\b`).ReplaceAllString(out, "ID")
	out = regexp.MustCompile(`\b\d{20}\b`).ReplaceAllString(out, "JID")
	if strings.Contains(out, `"__run_num__"`) {
		kept := regexp.MustCompile(`(?m)^.*(?:"comment": "[a-z] |_\|-.*\{$|"given"|^ *"[a-z]\d?": ).*$`).FindAllString(out, -1)
		return strings.Join(kept, "\n")
	}
	return out
}
