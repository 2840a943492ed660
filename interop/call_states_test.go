//go:build interop

package interop

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// badStates returns broken state files, one of each kind. The file touched must never be created.
func badStates() map[string]string {
	const touched = "touched: {file.touch: [{name: {{ opts.root_dir }}/touched}]}\n"
	return map[string]string{
		"yaml":       touched + "a:\n  test.nop:\n  - x: [1\n",
		"twice":      touched + "a: {test.nop: []}\na: {test.nop: []}\n",
		"jinja":      touched + "{% if %}\na: test.nop\n",
		"unclosed":   touched + "{% if 1 %}\na:\n  test.nop\n",
		"undefined":  touched + "a:\n  test.nop:\n    - x: {{ nothing.here }}\n",
		"other":      "touched: {test.nop: []}\n",
		"conflict":   "include: [other]\n" + touched,
		"include":    "include: [no.where]\n" + touched,
		"list":       "- a\n- b\n",
		"shape":      touched + "a: {test.nop: 5}\n",
		"circle":     "a: {test.nop: [{require: [{test: b}]}]}\nb: {test.nop: [{require: [{test: a}]}]}\n",
		"requisite":  "a: {test.nop: [{require: [{test: nowhere}]}]}\n",
		"function":   "a: {test.no_such: [{x: 1}]}\n",
		"argument":   "a: {file.absent: [{name: [1, 2]}]}\n",
		"keyword":    "a: {test.configurable_test_state: [{no_such: 1}]}\n",
		"failing":    "a: {test.fail_with_changes: []}\nb: {test.nop: [{require: [{test: a}]}]}\n",
		"succeeding": "a: {test.succeed_with_changes: []}\n",
	}
}

// TestCallBadStates runs broken state files through salt-call itself, stock's and brine's. The exit code, standard
// output and the log on standard error must be the same, and a file that cannot be compiled must change nothing.
func TestCallBadStates(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	kinds := []string{"nowhere"}
	for name, text := range badStates() {
		write(t, dir+"/srv/"+name+".sls", text)
		if name != "other" {
			kinds = append(kinds, name)
		}
	}
	slices.Sort(kinds)
	config := func(id string) string {
		root := dir + "/" + id
		write(t, root+"/etc/minion", "id: bad\nfile_client: local\nroot_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\n"+
			"log_level_logfile: quiet\nenable_fqdns_grains: false\nenable_gpu_grains: false\ngrains_cache: true\nuser: root\n"+
			"file_roots: {base: ["+dir+"/srv]}\npillar_roots: {base: ["+dir+"/pillar]}\n")
		return root + "/etc"
	}
	mine := config("ours")
	// These kinds are also run with --retcode-passthrough and with the newest line.
	asked := []string{"circle", "failing", "function", "nowhere", "undefined", "yaml"}
	got := map[string]*called{}
	for _, line := range []string{"3007", "3008"} {
		theirs := config(line)
		d := pythonDriver(t, line, "calls", theirs+"/master")
		for _, kind := range kinds {
			flags := [][]string{nil}
			switch {
			case line == "3008" && !slices.Contains(asked, kind):
				continue
			case line == "3007" && slices.Contains(asked, kind):
				flags = append(flags, []string{"--retcode-passthrough"})
			}
			for _, more := range flags {
				args := append(more, "state.apply", kind)
				key := strings.Join(args, " ")
				if got[key] == nil {
					got[key] = ourCall(t, append([]string{"-c", mine}, args...)...)
				}
				want, have := stockCall(t, d, append([]string{"-c", theirs}, args...)...), *got[key]
				if line == "3008" && kind == "circle" {
					have.Out = want.Out // 3008 builds a graph of the requisites and words this error differently
				}
				if diff := cmp.Diff(*want, have); diff != "" {
					t.Errorf("%s: salt-call %s (-stock +ours):\n%s", line, key, diff)
				}
			}
		}
		d.close()
		if exists(dir + "/" + line + "/touched") {
			t.Errorf("stock %s has run a part of broken states", line)
		}
	}
	if exists(dir + "/ours/touched") {
		t.Error("a part of broken states was run")
	}
}

// called is the result of a program.
type called struct {
	Code     int
	Out, Err string
}

func stockCall(t *testing.T, d *driver, args ...string) *called {
	t.Helper()
	c := stockCallRaw(t, d, args...)
	c.Out = withoutTimes(c.Out)
	return c
}

func stockCallRaw(t *testing.T, d *driver, args ...string) *called {
	t.Helper()
	m, _ := d.must("salt_call", query{"arg": args}).(map[string]any)
	code, _ := m["code"].(float64)
	out, _ := m["out"].(string)
	log, _ := m["err"].(string)
	return &called{int(code), out, stockLog(log)}
}

func ourCall(t *testing.T, args ...string) *called {
	t.Helper()
	c := ourCallRaw(t, args...)
	c.Out = withoutTimes(c.Out)
	return c
}

func ourCallRaw(t *testing.T, args ...string) *called {
	t.Helper()
	cmd := exec.Command(ours("salt-call"), args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return &called{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// withoutTimes removes the time and duration of each state, and the documentation of functions, whose texts are
// brine's own.
func withoutTimes(s string) string {
	s = regexp.MustCompile(`(Started|Duration|Total run time): +[^\n]*`).ReplaceAllString(s, "$1:")
	if !strings.HasPrefix(s, "local:") {
		return "documentation"
	}
	return s
}

// stockLog removes the parts of stock's log that brine does not have: a warning of Python, and the traceback before
// the error of a template, which is followed by the same error on a separate line.
func stockLog(s string) string {
	s = regexp.MustCompile(`(?m)^.*DeprecationWarning.*\n.*\n`).ReplaceAllString(s, "")
	if strings.HasPrefix(s, "[ERROR   ] Rendering exception occurred\n") {
		if at := strings.Index(s, "[CRITICAL] "); at > 0 {
			return s[at:]
		}
	}
	return s
}
