//go:build interop

package interop

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changesOrderTree is a tree of states whose changes have several keys. WORK is a directory of the minion.
const changesOrderTree = `
'echo x; echo y >&2': {cmd.run: []}
'echo changed=yes': {cmd.run: [{stateful: true}]}
WORK/had: {file.managed: [{contents: new}, {mode: '0644'}, {user: nobody}, {group: nogroup}]}
WORK/made: {file.managed: [{contents: new}, {mode: '0640'}, {user: nobody}, {group: nogroup}]}
WORK/dir: {file.directory: [{mode: '0700'}, {user: nobody}, {group: nogroup}]}
WORK/ini: {ini.options_present: [{sections: {s: {b: 3}}}]}
WORK/sections: {ini.options_present: [{sections: {z: {y: 1, b: 2}, a: {x: 3, c: 4}}}]}
grain: {grains.present: [{value: {z: 1, a: 2, m: 3}}, {force: true}]}
variables: {environ.setenv: [{value: {ZZ: a, AA: b, MM: c}}]}
'echo changed=yes z=1 a=2': {cmd.run: [{stateful: true}]}
'echo "{\"changed\": true, \"z\": 1, \"a\": {\"y\": 1, \"b\": 2}}"': {cmd.run: [{stateful: true}]}
pretended: {test.configurable_test_state: [{changes: true}, {result: true}]}
user.info: {module.run: [{m_name: nobody}]}
listed: {test.succeed_with_changes: []}
`

// TestOrderOfChanges compares the order of the keys in the changes of states, in JSON, with that of the three lines
// of stock.
func TestOrderOfChanges(t *testing.T) {
	t.Parallel()
	seen := func(program string) map[string]string {
		dir := tempDir(t)
		work := dir + "/work"
		write(t, dir+"/etc/minion", "id: values\nfile_client: local\nroot_dir: "+dir+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\n"+
			"log_level_logfile: quiet\nenable_fqdns_grains: false\nenable_gpu_grains: false\nuser: root\nfile_roots: {base: ["+dir+"/srv]}\n")
		write(t, dir+"/srv/t.sls", strings.ReplaceAll(changesOrderTree, "WORK", work))
		write(t, work+"/had", "old\n")
		write(t, work+"/sections", "")
		write(t, work+"/ini", "[s]\nb = 2\n")
		out, code := output(t, program, "-c", dir+"/etc", "--local", "state.apply", "t", "--out=json")
		var all struct {
			Local map[string]struct {
				Result  any
				Changes json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 {
			t.Fatalf("%s ended with %d, %v: %s", filepath.Base(program), code, err, out)
		}
		space := regexp.MustCompile(`\s+`)
		pid := regexp.MustCompile(`"pid": \d+`)
		changes := map[string]string{}
		for tag, rec := range all.Local {
			text := strings.ReplaceAll(space.ReplaceAllString(string(rec.Changes), " "), work, "WORK")
			changes[strings.ReplaceAll(tag, work, "WORK")] = pid.ReplaceAllString(text, `"pid": 1`)
			if rec.Result != true {
				t.Errorf("%s: %v", tag, rec.Result)
			}
		}
		return changes
	}
	mine := seen(ours("salt-call"))
	for _, line := range []string{"3006", "3007", "3008"} {
		if diff := cmp.Diff(seen(stock(t, line, "salt-call")), mine); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s", line, diff)
		}
	}
}
