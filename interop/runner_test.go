//go:build interop

package interop

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRunners calls the runners of stock's salt-run and of brine's on one stock master, and compares their output and
// exit codes.
func TestRunners(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\npillar_cache: True\nmine_functions:\n  test.ping: []\n")
	write(t, m.dir+"/srv/sub/file.txt", "text\n")
	write(t, m.dir+"/macs", "08-00-27-13-69-77\n080027136978\n")
	conf := m.minion(t, "web1", "mine_functions:\n  test.arg: [1]\n")
	write(t, conf+"/grains", "order: {web: 1, app: 2, db: {z: 1, a: 2}}\n")
	mark := m.bus.mark()
	start(t, ours("salt-minion"), "-c", conf)
	m.bus.wait(mark, "salt/minion/web1/start")
	m.cmd("web1", "mine.update")
	jid := m.publish(query{"tgt": "web1", "fun": "test.arg", "arg": []any{"x", map[string]any{"__kwarg__": true, "metadata": map[string]any{"k": "v"}}}})
	m.bus.wait(mark, "salt/job/"+jid+"/ret/web1")

	for _, args := range [][]string{
		{"jobs.lookup_jid", jid}, {"jobs.lookup_jid", jid, "missing=True", "returned=False"}, {"jobs.lookup_jid", "20200101000000000000"},
		{"jobs.list_job", jid}, {"jobs.list_job", "20200101000000000000"}, {"jobs.print_job", jid}, {"jobs.exit_success", jid},
		{"jobs.list_jobs", "search_function=test.arg"}, {"jobs.list_jobs", "search_function=nothing.*"}, {"jobs.list_jobs", "search_target=web*", "search_function=test.arg"},
		{"jobs.list_jobs", `search_metadata={"k": "v"}`}, {"jobs.list_jobs", "start_time=2099-01-01"}, {"jobs.last_run", "function=test.arg"},
		{"jobs.last_run", "function=no.such"}, {"jobs.list_jobs_filter", "1", "filter_find_job=True"}, {"jobs.active"},
		{"manage.status"}, {"manage.up"}, {"manage.down"}, {"manage.present"}, {"manage.not_present"}, {"manage.list_state", "subset=[web9]"},
		{"manage.present", "show_ip=True"}, {"manage.versions"},
		{"cache.mine", "*"}, {"cache.pillar", "web1"}, {"cache.grains", "nobody"}, {"cache.clear_pillar"},
		{"cache.store", "bank/sub", "key", `{"a": [1, 2]}`}, {"cache.fetch", "bank/sub", "key"}, {"cache.list", "bank/sub"}, {"cache.list", "none"},
		{"cache.fetch", "bank/sub", "other"}, {"cache.flush", "bank/none", "key"},
		{"fileserver.envs"}, {"fileserver.file_list"}, {"fileserver.dir_list"}, {"fileserver.empty_dir_list"}, {"fileserver.symlink_list"},
		{"fileserver.update"}, {"fileserver.clear_cache", "backend=git"}, {"fileserver.lock"}, {"fileserver.clear_lock"}, {"fileserver.file_list", "saltenv=none"},
		{"pillar.show_pillar", "web1"}, {"pillar.show_pillar", "nobody", "os=Debian"}, {"pillar.show_pillar_cache"}, {"pillar.show_pillar_cache", "web1", "pillarenv=dev"}, {"pillar.show_pillar_cache", "nobody"},
		{"pillar.clear_pillar_cache", "nobody"}, {"pillar.show_pillar_cache", "web*"}, {"pillar.clear_pillar_cache"}, {"pillar.show_pillar_cache"},
		{"mine.get", "*", "test.arg"}, {"mine.get", "*", "no.fun"}, {"mine.update", "*"}, {"salt.execute", "web1", "test.echo", `arg=["hi"]`},
		{"event.send", "my/tag", `{"a": 1}`}, {"config.get", "file_roots"}, {"config.get", "file_roots:base:0"}, {"config.get", "no_such", "default=x"},
		{"match.compound_matches", "web*", "web1"}, {"match.compound_matches", "G@id:web1 and not E@db.*", "web1"}, {"match.compound_matches", "I@role:*", "web1"},
		{"match.compound_matches", "web*", "nobody"}, {"match.compound_matches", "web*", "1"},
		{"network.wol", "08-00-27-13-69-77", "127.255.255.255"}, {"network.wol", "080027136977", "bcast=127.255.255.255", "destport=7"},
		{"network.wolmatch", "web1", "bcast=127.255.255.255"}, {"network.wolmatch", "nobody"},
		{"test.arg", "a", "b=2"}, {"test.metasyntactic", "uk"}, {"test.metasyntactic", "xx"}, {"test.arg", "a=1", "a=2"},
		{"no.such"}, {"jobs"}, {"jobs.nothing"}, {"jobs.lookup_jid"}, {"error.error"}, {"event.send"},
	} {
		theirs, _ := m.driver.call("runner", query{"fun": args[0], "arg": args[1:]})
		mine, _ := output(t, ours("salt-run"), append([]string{"-c", m.dir + "/etc", "-t", "5", "--out", "json"}, args...)...)
		if data, ok := theirs.(map[string]any); ok && data["jid"] != nil {
			theirs = data["return"]
		}
		text, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plainRun(string(text)), plainRun(mine)); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s", strings.Join(args, " "), diff)
		}
	}
	// The output and the exit codes of the programs themselves.
	stamp := regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+`)
	for _, args := range [][]string{
		{"jobs.lookup_jid", jid}, {"--out", "json", "--out-indent", "-1", "manage.up", "tgt=nobody"}, {"no.such"}, {"test.arg", "a", "b=c"}, {"--quiet", "manage.up"},
		{"--out", "yaml", "fileserver.envs"}, {"-d", "no.such"}, {"jobs.print_job", jid},
		{"network.wollist", m.dir + "/macs", "127.255.255.255"}, {"test.sleep", "0.2"}, {"test.sleep", "s_time=1"}, {"test.stdout_print"}, {"test.stream"},
		{"cache.grains", "web1"}, {"cache.pillar", "web1"}, {"--out", "json", "cache.grains", "web1"}, // in the order of the minion
	} {
		run := func(program string) (string, int) {
			return output(t, program, append([]string{"-c", m.dir + "/etc"}, args...)...)
		}
		theirs, code1 := run(stock(t, "3007", "salt-run"))
		mine, code2 := run(ours("salt-run"))
		theirs, mine = stamp.ReplaceAllString(theirs, "STAMP"), stamp.ReplaceAllString(mine, "STAMP")
		if diff := cmp.Diff(theirs, mine); diff != "" || code1 != code2 {
			t.Errorf("%s: exit codes %d and %d (-stock +ours):\n%s", strings.Join(args, " "), code1, code2, diff)
		}
	}
}

// plainRun makes the output of a runner comparable: the keys are sorted, and progress is removed. Brine has its own
// documentation, so of the documentation of a function only its existence is compared.
func plainRun(out string) string {
	var v any
	if json.Unmarshal([]byte(out), &v) == nil {
		if m, ok := v.(map[string]any); ok {
			for k, d := range m {
				if text, ok := d.(string); ok && strings.Contains(text, "CLI Example") || strings.Contains(text, "salt-run "+k) {
					m[k] = "documentation"
				}
			}
		}
		b, _ := json.MarshalIndent(v, "", " ")
		out = string(b)
	}
	// The newest run of a runner is the previous one, of stock or of brine.
	out = regexp.MustCompile(`"runner\.[a-z_.]+"`).ReplaceAllString(out, `"runner.x"`)
	if strings.Contains(out, `"runner.x"`) {
		out = regexp.MustCompile(`"\d{20}"|"\d{4}, \w{3} \d\d [0-9:.]+"`).ReplaceAllString(out, `"then"`)
	}
	out = regexp.MustCompile(`(?s)(Usage:).*`).ReplaceAllString(out, "$1")
	return out
}
