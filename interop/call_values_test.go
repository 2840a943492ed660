//go:build interop

package interop

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCallValues runs commands of salt-call whose output once differed from stock's. The exit code, the output and
// the log must be the same.
func TestCallValues(t *testing.T) {
	inTurn(t)
	t.Parallel()
	dir := tempDir(t)
	write(t, dir+"/abs.jinja", "{% set v = 'abc' %}{% macro place() %}{{ tplfile }} {{ tpldir }}{% endmacro %}\n")
	for name, text := range map[string]string{
		"order":    "zz: {test.nop: [{order: 1}]}\naa: {test.nop: [{order: 2}]}\nmm: {test.nop: [{order: 3}]}\n",
		"web":      "x: {test.nop: [{name: {{ salt['cp.get_file_str']('http://127.0.0.1:9/x') }}}]}\n",
		"absolute": "{% import '" + dir + "/abs.jinja' as a %}\nx: {test.nop: [{name: {{ a.v }}}, {at: {{ a.place() }}}]}\n",
		"inside":   "{% from '" + dir + "/srv/in.jinja' import v %}\nx: {test.nop: [{name: {{ v }}}]}\n",
	} {
		write(t, dir+"/srv/"+name+".sls", text)
	}
	write(t, dir+"/srv/in.jinja", "{% set v = 'in' %}")
	config := func(id, more string) string {
		root := dir + "/" + id
		write(t, root+"/etc/minion", "id: values\nfile_client: local\nroot_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\n"+
			"log_level_logfile: quiet\nenable_fqdns_grains: false\nenable_gpu_grains: false\ngrains_cache: true\nuser: root\n"+
			"file_roots: {base: ["+dir+"/srv]}\npillar_roots: {base: ["+dir+"/pillar]}\n"+more)
		return root + "/etc"
	}
	mine := config("ours", "")
	cases := [][]string{
		{"state.apply", "order"},
		{"--state-verbose=False", "state.apply", "order"},
		{"--state_verbose=false", "state.apply", "order"},
		{"--state-verbose=True", "state.apply", "order"},
		{"--state-verbose=no", "state.apply", "order"},
		{"--out=raw", "state.apply", "order"},
		{"--out=txt", "state.apply", "order"},
		{"--out=txt", "test.arg", "1", "[2]"},
		{"--out=raw", "test.arg_clean", "1", "a=b"},
		{"--out=txt", "test.fib", "3"},
		{"--out=raw", "test.collatz", "3"},
		{"--out=txt", "file.get_devmm", "/dev/null"},
		{"--out=raw", "file.source_list", "/etc/hosts", "null", "base"},
		{"--out=json", "file.get_devmm", "/dev/null"},
		{"--out=txt", "slsutil.renderer", "string={{ salt['file.get_devmm']('/dev/null') }}", "default_renderer=jinja"},
		{"--out=json", "state.show_sls", "absolute"},
		{"--out=json", "state.show_sls", "inside"},
	}
	got := map[string]*called{}
	for _, line := range []string{"3007", "3008"} {
		d := pythonDriver(t, line, "calls", config(line, "")+"/master")
		for _, args := range cases {
			key := strings.Join(args, " ")
			if got[key] == nil {
				c := ourCallRaw(t, append([]string{"-c", mine}, args...)...)
				c.Out = plainValues(c.Out)
				got[key] = c
			}
			want := stockCallRaw(t, d, append([]string{"-c", dir + "/" + line + "/etc"}, args...)...)
			want.Out = plainValues(want.Out)
			if diff := cmp.Diff(want, got[key]); diff != "" {
				t.Errorf("%s: salt-call %s (-stock +ours):\n%s", line, key, diff)
			}
		}
		const refused = "Rendering SLS 'base:web' failed: Jinja error: Error: [Errno 111] Connection refused reading /x"
		for who, c := range map[string]*called{
			"stock": stockCallRaw(t, d, "-c", dir+"/"+line+"/etc", "--out=json", "state.show_sls", "web"), "ours": ourCallRaw(t, "-c", mine, "--out=json", "state.show_sls", "web"),
		} {
			if !strings.Contains(c.Out, refused) {
				t.Errorf("%s %s: a template that asks a server which is not there: %+v", who, line, c)
			}
		}
		d.close()
	}
}

// TestOutputOptions runs salt-call, stock's and brine's, with output options in the minion's configuration file.
func TestOutputOptions(t *testing.T) {
	inTurn(t)
	t.Parallel()
	dir := tempDir(t)
	write(t, dir+"/srv/some.sls", "a: {test.nop: []}\nb: {test.succeed_with_changes: [{require: [{test: a}]}]}\n"+
		"c: {test.fail_without_changes: [{require: [{test: b}]}]}\n")
	options := []string{
		"strip_colors: false\n", "strip_colors: true\n",
		"state_tabular: true\nstate_output: terse\n", "state_tabular: true\nstate_output: mixed\nstate_output_profile: false\n",
		"state_output: filter\nstate_output_exclude: ['True']\n", "state_output: filter\nstate_output_exclude: 'False,None'\nstate_output_terse: ['True']\n",
		"state_output: filter\nstate_output_terse: 'True,False'\nstate_tabular: true\n",
	}
	d := pythonDriver(t, "3007", "calls", dir+"/etc/master")
	for i, option := range options {
		root := dir + "/" + strconv.Itoa(i)
		write(t, root+"/etc/minion", "id: values\nfile_client: local\nroot_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\n"+
			"log_level_logfile: quiet\nenable_fqdns_grains: false\nenable_gpu_grains: false\ngrains_cache: true\nuser: root\n"+
			"file_roots: {base: ["+dir+"/srv]}\n"+option)
		for _, args := range [][]string{{"test.echo", "a\x1b[31mred\x1b[0m"}, {"state.apply", "some"}} {
			got := ourCallRaw(t, append([]string{"-c", root + "/etc"}, args...)...)
			want := stockCallRaw(t, d, append([]string{"-c", root + "/etc"}, args...)...)
			if diff := cmp.Diff(plainTerse(want.Out), plainTerse(got.Out)); diff != "" || want.Code != got.Code {
				t.Errorf("%q: salt-call %q ended with %d, ours with %d (-stock +ours):\n%s", option, args, want.Code, got.Code, diff)
			}
		}
	}
	d.close()
}

// plainTerse removes the times from states that are printed on one line, and from the others.
func plainTerse(s string) string {
	s = plainValues(s)
	s = regexp.MustCompile(`\d\d:\d\d:\d?0\.1`).ReplaceAllString(s, "TIME")
	return regexp.MustCompile(`\[ *0\.1 ms\]`).ReplaceAllString(s, "[0.1 ms]")
}

// plainValues removes times, process ids and job ids from an output. It sorts the fields of each state's result by
// name, because their order is not defined here.
func plainValues(s string) string {
	s = regexp.MustCompile(`(Started|Duration|Total run time): +[^\n]*`).ReplaceAllString(s, "$1:")
	s = regexp.MustCompile(`'(start_time|__pub_[a-z]+)': (?:'[^']*'|\d+)`).ReplaceAllString(s, "'$1': 0")
	s = regexp.MustCompile(`\d+(\.\d+)?e-\d+|\d+\.\d+`).ReplaceAllString(s, "0.1")
	return regexp.MustCompile(`\{('(?:name|__id__|__pub_[a-z]+)': [^{}]*(?:\{\}[^{}]*)*)\}`).ReplaceAllStringFunc(s, func(m string) string {
		fields := strings.Split(m[1:len(m)-1], ", ")
		slices.Sort(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	})
}
