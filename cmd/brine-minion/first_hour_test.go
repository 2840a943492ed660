package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/minion/doctor"
	"github.com/brine-salt/brine/minion/program"
)

// stateTree creates a host without a master and with some state files.
func stateTree(t *testing.T, files map[string]string) string {
	t.Helper()
	srv := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(srv, name+".sls"), []byte(strings.ReplaceAll(text, "DIR", srv)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return minionTree(t, "file_client: local\nfile_roots: {base: ["+srv+"]}\n")
}

// TestCallProgress: salt-call shows the running state on a terminal only.
func TestCallProgress(t *testing.T) {
	dir := stateTree(t, map[string]string{"slow": "'true': {cmd.run: []}\nsleep 2: {cmd.run: []}\necho end: {cmd.run: []}\n"})
	for name, c := range map[string]struct {
		args  string
		shown bool
	}{
		"terminal":        {"state.apply slow", true},
		"no progress":     {"--no-progress state.apply slow", false},
		"json":            {"--out=json state.apply slow", false},
		"other functions": {"test.sleep 1.5", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			console := &program.Console{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }, ErrWidth: func() int { return 80 }}
			if code := run(t.Context(), console, append([]string{"salt-call", "-c", dir, "-l", "error"}, strings.Fields(c.args)...)); code != 0 {
				t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
			}
			shown := errs.String()
			if !c.shown {
				if shown != "" {
					t.Errorf("shown %q", shown)
				}
				return
			}
			if !strings.Contains(shown, "\rstate 2/3 cmd.run sleep 2 (1 s)\x1b[K") || !strings.HasSuffix(shown, "\r\x1b[K") {
				t.Errorf("shown %q", shown)
			}
		})
	}
	if r := start(t, nil, "salt-call", "-c", dir, "state.apply", "slow"); r.err != "" || r.code != 0 {
		t.Errorf("without a terminal: %d %q", r.code, r.err)
	}
}

// TestCallPlan tests salt-call with --plan and --recap.
func TestCallPlan(t *testing.T) {
	dir := stateTree(t, map[string]string{"new": "DIR/made: {file.managed: [{contents: x}]}\n", "idle": "x: {test.nop: []}\n",
		"fails": "'true': {cmd.run: []}\n'false': {cmd.run: []}\n"})
	for _, c := range []struct {
		args string
		code int
		out  string // a regular expression
	}{
		{"--plan state.apply new", 2, `^file\.managed .*/made\n    on 1 minion: local\n    The file .*/made is set to be changed\n(?s:.*)\n1 state would change, on 1 of 1 minion\.\n$`},
		{"--plan state.apply idle", 0, `^Nothing would change on 1 minion\.\n$`},
		{"--plan state.apply nosuch", 1, `No matching sls found`},
		{"--plan --out=txt state.apply new", 2, `^local: `},
		{"--recap state.apply idle", 0, `^local : ok=1    changed=0    failed=0    \d+\.\d s\ntotal : ok=1 `},
		{"--recap state.apply fails", 1, `ID: false(?s:.*)Failed:    1\n(?s:.*)local : ok=1    changed=1    failed=1 `},
	} {
		r := start(t, nil, append([]string{"salt-call", "-c", dir, "-l", "critical"}, strings.Fields(c.args)...)...)
		if r.code != c.code || !regexp.MustCompile(c.out).MatchString(r.out) {
			t.Errorf("%s: exit code %d, %s%s", c.args, r.code, r.out, r.err)
		}
	}
	if r := start(t, nil, "salt-call", "-c", dir, "--plan", "test.ping"); r.code != 64 || !strings.Contains(r.err, "--plan is for functions that run states") {
		t.Errorf("%d %s", r.code, r.err)
	}
}

// TestDebugSaysWhatWasRead: with -l debug the log contains the configuration files, the options that each sets, and
// the duration of each stage.
func TestDebugSaysWhatWasRead(t *testing.T) {
	dir := minionTree(t, "file_client: local\n")
	if err := os.Mkdir(filepath.Join(dir, "minion.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	more := filepath.Join(dir, "minion.d", "more.conf")
	if err := os.WriteFile(more, []byte("hash_type: sha512\nmysql.pass: secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, "salt-call", "-c", dir, "-l", "debug", "grains.get", "id")
	for _, want := range []string{
		`Reading configuration from ` + regexp.QuoteMeta(filepath.Join(dir, "minion")) + ` options="?file_client, id, root_dir, sock_dir`,
		`Reading configuration from ` + regexp.QuoteMeta(more) + ` options="?hash_type, mysql\.pass`,
		`The configuration was read ms=\d+`, `The grains were gathered ms=\d+`, `The function has ended fun=grains\.get retcode=0 ms=\d+`,
		`The result was sent and kept ms=\d+`,
	} {
		if !regexp.MustCompile(want).MatchString(r.err) {
			t.Errorf("no line %s in:\n%s", want, r.err)
		}
	}
	if strings.Contains(r.err, "secret") {
		t.Error("the log has the value of an option")
	}
	if r := start(t, nil, "salt-call", "-c", dir, "test.ping"); r.err != "" {
		t.Errorf("without -l debug: %s", r.err)
	}
}

// examined returns the doctor's lines about a host, which it prints as JSON.
func examined(t *testing.T, code int, args ...string) map[string]doctor.Line {
	t.Helper()
	r := start(t, nil, args...)
	var v struct {
		Fine  bool
		Lines []doctor.Line
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != code || v.Fine != (code == 0) {
		t.Fatalf("%v: exit code %d, %v: %s%s", args, r.code, err, r.out, r.err)
	}
	lines := map[string]doctor.Line{}
	for _, l := range v.Lines {
		if _, has := lines[l.Name]; !has || l.State != doctor.OK {
			lines[l.Name] = l
		}
	}
	return lines
}

// TestDoctor has the faults of a real host: a closed port, a name that does not exist, a server that is not a master,
// an unreadable configuration, a missing certificate. Both ways to call the doctor print the same.
func TestDoctor(t *testing.T) {
	closed := strconv.Itoa(freeport.Port(t))
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	go func() {
		for {
			c, err := mute.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	_, open, _ := net.SplitHostPort(mute.Addr().String())
	for name, c := range map[string]struct {
		extra, line string
		state       doctor.State
		found       string
		key         bool
	}{
		"closed port":   {"master: 127.0.0.1\nmaster_port: " + closed + "\n", "request port", doctor.Failure, "connection refused", false},
		"no such name":  {"master: no-such-host.invalid\n", "name", doctor.Failure, "the master's name no-such-host.invalid cannot be resolved", false},
		"no master":     {"master: 127.0.0.1\nmaster_port: " + open + "\nauth_timeout: 1\n", "key on master", doctor.Failure, "did not answer the sign-in", true},
		"certificate":   {"master: 127.0.0.1\nmaster_port: " + closed + "\ntransport: tcp\nssl: {certfile: /no/such, keyfile: /no/such}\n", "TLS", doctor.Failure, "/no/such", false},
		"unknown":       {"master: 127.0.0.1\nmaster_port: " + closed + "\nmaster_fingr: x\n", "option", doctor.Warning, "did you mean 'master_finger'?", false},
		"no python":     {"master: 127.0.0.1\nmaster_port: " + closed + "\nmodule_dirs: [/]\nbrine_python: /no/python\n", "python", doctor.Failure, "no Python", false},
		"configuration": {"x: [\n", "configuration", doctor.Failure, "line 5", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := minionTree(t, c.extra)
			if c.key {
				if r := start(t, nil, "salt-call", "-c", dir, "-l", "quiet", "test.ping"); r.code == 0 {
					t.Fatal("a mute server is a master")
				}
				if _, err := os.Stat(filepath.Join(dir, "etc/salt/pki/minion/minion.pem")); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			got := examined(t, 1, "brine-minion", "doctor", "-c", dir, "--out=json")
			if l := got[c.line]; l.State != c.state || !strings.Contains(l.Found, c.found) || l.Cure == "" {
				t.Errorf("the line is %+v", l)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if l, same := examined(t, 1, "salt-call", "--doctor", "-c", dir, "--out=json")[c.line], got[c.line]; l.State != same.State || l.Cure != same.Cure {
				t.Errorf("salt-call --doctor says %+v, brine-minion doctor %+v", l, same)
			}
			if r := start(t, nil, "salt-call", "--doctor", "-c", dir); r.code != 1 || !regexp.MustCompile(`(?m)^(failure|warning)  *`+c.line+` `).MatchString(r.out) {
				t.Errorf("exit code %d: %s", r.code, r.out)
			}
		})
	}
	local := minionTree(t, "file_client: local\n")
	if r := start(t, nil, "brine-minion", "doctor", "-c", local); r.code != 0 || !strings.Contains(r.out, "ok       configuration  1 files read, id web1") {
		t.Errorf("a host without a master: %d %s", r.code, r.out)
	}
	if files, err := os.ReadDir(local); err != nil || len(files) != 1 {
		t.Errorf("the doctor left %v, %v", files, err)
	}
}
