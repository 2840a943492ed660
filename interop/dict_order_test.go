//go:build interop

package interop

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// someData is random nested data in YAML's flow style, with keys in any order.
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

// TestOrderOfDictionaries compares what templates see of dictionaries with stock: those of the grains, the options, the pillar, and those that are
// arguments and results of functions. The order of their keys is a part of the text.
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
}

var dictOrderCommands = [][]string{{"grains.item", "mygrain", "filegrain", "random"}}
