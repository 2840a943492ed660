//go:build openstack

package heat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/heat"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// collectRun is the result of command lines of os-collect-config.
type collectRun struct {
	Exit   []int
	Stdout []string
	// Files are those below the run's directory, with JSON in a normalized form.
	Files map[string]string
}

// TestCollectBesideTheOriginal: brine's os-collect-config accepts the command lines of the original, with the same
// exit code, output, cache and calls of the command. @ is the run's own directory, with the metadata {"a": …} for
// the collector local.
func TestCollectBesideTheOriginal(t *testing.T) {
	set, err := original.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const conf = "[DEFAULT]\ncachedir = @/cache\nbackup_cachedir = @/backup\ncollectors = local\n[local]\npath = @/local\n"
	const command = "printenv OS_CONFIG_FILES >> @/ran" // oslo.config would expand a dollar sign
	for _, c := range []struct {
		name string
		conf string // instead of the default
		// lines are command lines that run one after the other, each with --config-file @/conf. A line that begins with
		// "write " writes new metadata; one that begins with "only " has no configuration file.
		lines []string
	}{
		{name: "print", lines: []string{"--print --command true", "", "local heat_local"}},
		{name: "no collector has anything", lines: []string{"--print heat_local request cfn heat zaqar"}},
		{name: "print-cachedir", lines: []string{"--print-cachedir", "--cachedir=@/third --print-cachedir"}},
		{name: "one time", lines: []string{"--one-time|--command|" + command, "--one-time|--command|" + command, `write {"a": 2}`,
			"--one-time|--command|" + command}},
		{name: "short options", lines: []string{"--one-time|-i3|-d|-c|" + command, "--one-time|--force|-c" + command}},
		{name: "force", lines: []string{"--force|--command=" + command, "--force|--command=" + command}},
		{name: "options that are turned off", lines: []string{"--one-time|--force|--noforce|--print|--noprint|--command|" + command, "--print|--nodebug"}},
		{name: "a command that fails", lines: []string{"--one-time|--command|echo no >> @/ran; exit 3", "--one-time|--command|" + command}},
		{name: "a command of the file", conf: strings.Replace(conf, "[local]", "command = "+command+"\n[local]", 1), lines: []string{"--one-time", "--print"}},
		{name: "deployments", lines: []string{
			`write {"x": 1, "deployments": [{"name": "first", "config": {"b": [1]}}, {"name": "second", "group": "os-apply-config", "config": {"c": "ü"}}, ` +
				`{"name": "third", "group": "Heat::Ungrouped", "config": {}}, {"config": {"lost": 1}}], "others": [{"name": "fourth", "config": {"d": 1}}]}`,
			"--one-time|--command|" + command, "--print", "--print --deployment-key others"}},
		{name: "unknown collector", lines: []string{"--print nothing"}},
		{name: "unknown option", lines: []string{"--unknown", "--print --unknown=1"}},
		{name: "a value is missing", lines: []string{"--command", "--print --cachedir"}},
		{name: "a value of the wrong type", lines: []string{"--polling-interval often --print", "--request-timeout x --print"}},
		{name: "a configuration file that is missing", lines: []string{"only --config-file @/missing --print"}},
		{name: "a damaged configuration file", conf: "[DEFAULT\ncachedir = x\n", lines: []string{"--print"}},
		{name: "a wrong value in the file", conf: conf + "[DEFAULT]\npolling_interval = often\n", lines: []string{"--print"}},
		{name: "two files", conf: strings.Replace(conf, "@/cache", "@/first", 1), lines: []string{"--config-file|@/second|--print-cachedir", "--config-file=@/second|--print"}},
		{name: "a directory of files", lines: []string{"--config-dir @/conf.d --print-cachedir"}},
		{name: "logs to a file", lines: []string{"--print --log-file @/agent.log --debug"}},
		{name: "options of groups", lines: []string{"--print --local-path @/other-local", "--print --heat_local-path @/local/md heat_local",
			"--print --request-metadata-url http://127.0.0.1:9/ --request-timeout 1 request"}},
		{name: "abbreviated options", lines: []string{"--print-c", "--poll 3 --print"}},
		{name: "version", lines: []string{"--version"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.conf == "" {
				c.conf = conf
			}
			want := collectLines(t, c.conf, c.lines, func(dir string, args []string) (int, string) {
				return runOriginal(t, set, dir, args)
			})
			got := collectLines(t, c.conf, c.lines, func(dir string, args []string) (int, string) { return runOurs(t, dir, args) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("original (-) and ours (+):\n%s", diff)
			}
		})
	}
}

func collectLines(t *testing.T, conf string, lines []string, run func(dir string, args []string) (int, string)) collectRun {
	t.Helper()
	dir := t.TempDir()
	at := func(s string) string { return strings.ReplaceAll(s, "@", dir) }
	write := func(name, text string) {
		t.Helper()
		err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	write("local/md", `{"a": 1, "b": {"c": [null, true, 1.5, "ü"]}}`)
	write("other-local/md", `{"other": "ü\u0001"}`)
	write("conf", at(conf))
	write("second", at("[DEFAULT]\ncachedir = @/second-cache\n[local]\npath = @/other-local\n"))
	write("conf.d/10.conf", at("[DEFAULT]\ncachedir = @/from-directory\n"))
	write("conf.d/20.other", "[DEFAULT]\ncachedir = /none\n")
	r := collectRun{Files: map[string]string{}}
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "write "); ok {
			write("local/md", text)
			continue
		}
		rest, only := strings.CutPrefix(line, "only ")
		words := strings.Fields(rest)
		if strings.Contains(rest, "|") {
			words = strings.Split(rest, "|")
		}
		if !only {
			words = append([]string{"--config-file", "@/conf"}, words...)
		}
		for i := range words {
			words[i] = at(words[i])
		}
		code, out := run(dir, words)
		r.Exit, r.Stdout = append(r.Exit, code), append(r.Stdout, sameForm(without(dir, out)))
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		shown := sameForm(without(dir, string(text)))
		if strings.HasSuffix(name, ".log") {
			if len(text) == 0 {
				return err
			}
			shown = "a log"
		}
		r.Files[strings.TrimPrefix(name, dir)] = shown
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var rooted = regexp.MustCompile(`/[^"\s:@=]*@`)

// without replaces the run's directory by @, in the host's root or in brine's.
func without(dir, text string) string {
	return rooted.ReplaceAllString(strings.ReplaceAll(text, dir, "@"), "@")
}

// sameForm normalizes JSON. It returns other texts unchanged.
func sameForm(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}

func exitCode(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func runOriginal(t *testing.T, set original.Set, dir string, args []string) (int, string) {
	t.Helper()
	// Python replaces C.UTF-8 by en_US.UTF-8, which os-collect-config then sets and a host may lack.
	cmd := exec.CommandContext(t.Context(), set.Program("os-collect-config"), args...)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C"}, dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := exitCode(cmd.Run())
	t.Logf("original %q: %d %.300q", args, code, stderr.String())
	return code, stdout.String()
}

// runOurs runs brine's program in its own root, which contains the run's directory.
func runOurs(t *testing.T, dir string, args []string) (int, string) {
	t.Helper()
	root := t.TempDir()
	err := os.MkdirAll(filepath.Dir(filepath.Join(root, dir)), 0o755)
	if err == nil {
		err = os.Symlink(dir, filepath.Join(root, dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := heat.NewSettings(map[string]any{"heat": map[string]any{"root": root}})
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := heat.Collect(t.Context(), args, heat.Env{Stdout: &stdout, Stderr: &stderr, Settings: s})
	t.Logf("ours %q: %d %.300q", args, code, stderr.String())
	return code, stdout.String()
}
