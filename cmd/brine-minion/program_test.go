package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/minion/program"
)

// minionTree creates a configuration directory whose paths are all below it. extra is appended to the main file.
func minionTree(t *testing.T, extra string) string {
	t.Helper()
	dir := t.TempDir()
	text := "id: web1\nroot_dir: " + dir + "\nsock_dir: s\n" + extra
	if err := os.WriteFile(filepath.Join(dir, "minion"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// result is the output and the exit code of a program.
type result struct {
	code     int
	out, err string
}

func start(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	c := &program.Console{In: strings.NewReader(env["STDIN"]), Out: &out, Err: &errs, Env: func(k string) string { return env[k] }}
	code := run(t.Context(), c, args)
	return result{code, out.String(), errs.String()}
}

// TestSaltCall compares with the exit codes and texts of stock's salt-call.
func TestSaltCall(t *testing.T) {
	dir := minionTree(t, "")
	broken := minionTree(t, "x: [\n")
	if err := os.MkdirAll(filepath.Join(dir, "minion.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	one, two := t.TempDir(), t.TempDir()
	for _, path := range []string{one + "/a", two + "/b"} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args string
		code int
		out  string
		err  string // a part of it
	}{
		"ping": {"--local test.ping", 0, "local:\n    True\n", ""},
		"json": {"--local --out=json --out-indent=-1 test.echo [1,{a:1}]", 0, "{\"local\": [1, {\"a:1\": null}]}\n", ""},
		"state in json": {"--local --out=json --out-indent=-1 state.single module.run name=user.info m_name=root", 0,
			`{"local": {"module_|-user.info_|-user.info_|-run": {"__id__": "user.info", "__run_num__": 0, "__sls__": null, "changes": {"ret": {"gid": 0, `, ""},
		"raw":               {"--local --out=raw test.echo 0755", 0, "{'local': 755}\n", ""},
		"quiet":             {"--local --out=quiet test.ping", 0, "", ""},
		"unknown outputter": {"--local --out=nope test.ping", 0, "local:\n    True\n", "Invalid outputter nope specified, fall back to nested"},
		"unknown function":  {"--local nosuch.fun", 255, "", "'nosuch.fun' is not available.\n"},
		"no function":       {"--local", 64, "Usage: salt-call", "salt-call: error: Requires function, --grains or --doc\n"},
		"unknown option":    {"--nosuch", 64, "", "salt-call: error: no such option: --nosuch\n"},
		"bad level":         {"-l loud test.ping", 64, "", "error: option -l: invalid choice: 'loud'"},
		"failed":            {"--local test.false", 0, "local:\n    False\n", ""},
		"retcode":           {"--local test.retcode 42", 1, "local:\n    True\n", ""},
		"retcode passed on": {"--local --retcode-passthrough test.retcode 42", 42, "local:\n    True\n", ""},
		"exception":         {"--local test.exception text", 1, "", "text"},
		"other id":          {"--local --id=other --out=txt test.echo x", 0, "local: x\n", ""},
		"no parse":          {"--local --no-parse=text --out=txt test.echo text=0755", 0, "local: 0755\n", ""},
		"broken file":       {"-c " + broken + " --local test.ping", 1, "", "[ERROR   ] Error parsing configuration file: " + broken + "/minion - "},
		"version":           {"--version", 0, "salt-call 3007.", ""},
		"both":              {"-g test.ping", 64, "", "-g/--grains does not accept any arguments"},
		"two roots":         {"--local --file-root=" + one + " --file-root " + two + " --out=txt cp.list_master", 0, "local: ['a', 'b']\n", ""},
		"two pillar roots":  {"--local --pillar-root=" + one + " --pillar-root " + two + " --out=txt pillar.file_exists b", 0, "local: True\n", ""},
		"virtual docs":      {"--local -d user.add", 0, "user.add:\n", ""},
		"docs of packages":  {"--local -d pkg.install", 0, "pkg.install:\n", ""},
		"docs of services":  {"--local -d service.restart", 0, "service.restart:\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"/usr/bin/salt-call", "-c", dir}, strings.Fields(c.args)...)
			got := start(t, nil, args...)
			if got.code != c.code || !strings.HasPrefix(got.out, c.out) || c.out == "" && got.out != "" || !strings.Contains(got.err, c.err) || c.err == "" && got.err != "" {
				t.Errorf("got %+v, want %+v", got, c)
			}
		})
	}
}

// TestOwnName calls the program by its own name.
func TestOwnName(t *testing.T) {
	for args, want := range map[string]struct {
		code     int
		out, err string // how they begin
	}{
		"--version":         {0, "salt-minion 3007.", ""},
		"--versions-report": {0, "Salt Version:\n", ""},
		"--help":            {0, "usage: brine-minion minion [options] ", ""},
		"-h":                {0, "usage: brine-minion minion [options] ", ""},
		"":                  {64, "", "usage: brine-minion minion [options] "},
		"nosuch":            {64, "", "usage: brine-minion minion [options] "},
	} {
		got := start(t, nil, append([]string{"brine-minion"}, strings.Fields(args)...)...)
		if got.code != want.code || !strings.HasPrefix(got.out, want.out) || want.out == "" && got.out != "" ||
			!strings.HasPrefix(got.err, want.err) || want.err == "" && got.err != "" {
			t.Errorf("%q: got %+v, want %+v", args, got, want)
		}
	}
}

func TestArgsFromStandardInput(t *testing.T) {
	dir := minionTree(t, "")
	got := start(t, map[string]string{"STDIN": "--out=txt\ntest.echo\nsome text: here\n"}, "brine-minion", "call", "-c", dir, "--local", "--args-stdin")
	if got.code != 0 || got.out != "local: some text: here\n" {
		t.Errorf("%+v", got)
	}
}

func TestMetadata(t *testing.T) {
	dir := minionTree(t, "")
	got := start(t, nil, "salt-call", "-c", dir, "--local", "--metadata", "--set-metadata={a: b}", "--out=json", "--out-indent=-1", "test.ping")
	jid := `"jid": "`
	i := strings.Index(got.out, jid)
	if i < 0 {
		t.Fatalf("%+v", got)
	}
	shown := got.out[:i+len(jid)] + got.out[i+len(jid)+20:]
	want := `{"local": {"fun": "test.ping", "fun_args": [], "id": "web1", "jid": "", "metadata": {"a": "b"}, "retcode": 0, "return": true}}` + "\n"
	if shown != want {
		t.Errorf("got %s want %s", shown, want)
	}
}

func TestForeignConfiguration(t *testing.T) {
	dir := minionTree(t, "")
	if err := os.Chmod(filepath.Join(dir, "minion"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := start(t, nil, "salt-minion", "-c", dir)
	if got.code != 1 || !strings.Contains(got.err, dir+"/minion - the file is writable by everybody") {
		t.Errorf("%+v", got)
	}
	if got := start(t, map[string]string{"BRINE_FOREIGN_CONFIG": "1"}, "salt-call", "-c", dir, "--local", "test.ping"); got.code != 0 {
		t.Errorf("allowed: %+v", got)
	}
}

func TestUnknownUser(t *testing.T) {
	dir := minionTree(t, "")
	if got := start(t, nil, "salt-minion", "-c", dir, "-u", "no-such-user"); got.code != 67 || !strings.Contains(got.err, "no-such-user") {
		t.Errorf("%+v", got)
	}
	for _, level := range []string{"critical", "quiet"} {
		if got := start(t, nil, "salt-minion", "-c", dir, "-u", "no-such-user", "-l", level); got.code != 67 || !strings.Contains(got.err, "no-such-user") {
			t.Errorf("with the log level %s: %+v", level, got)
		}
	}
	want := "Failed to prepare the Salt environment for user no-such-user. The user is not available.\n"
	if got := start(t, nil, "salt-call", "-c", dir, "--local", "--priv", "no-such-user", "test.ping"); got.code != 67 || got.err != want {
		t.Errorf("%+v", got)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	had, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(had, text...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMinionIsReadyWithoutMaster starts the daemon while its master is away. The daemon must report that it is ready
// once it has its keys. When it is stopped it must exit with 0 and remove its pid file.
func TestMinionIsReadyWithoutMaster(t *testing.T) {
	port := freeport.Port(t)
	dir := minionTree(t, "master: 127.0.0.1:"+strconv.Itoa(port)+"\nuser: ''\nacceptance_wait_time: 1\nkeysize: 2048\nmaster_tris: 3\nmaster_tries: often\n")
	limit := time.Now().Add(time.Minute)
	conf := filepath.Join(dir, "minion")
	socket := filepath.Join(dir, "notify")
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.Close()
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	c := &program.Console{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(k string) string {
		return map[string]string{"NOTIFY_SOCKET": socket}[k]
	}}
	pidfile := filepath.Join(dir, "run.pid")
	code := make(chan int)
	go func() { code <- run(ctx, c, []string{"salt-minion", "-c", dir, "--pid-file", pidfile}) }()
	heard := make(chan string)
	go func() {
		buf := make([]byte, 1000)
		for {
			n, err := supervisor.Read(buf)
			if err != nil {
				close(heard)
				return
			}
			heard <- string(buf[:n])
		}
	}()
	for ready := false; !ready; {
		select {
		case text := <-heard:
			ready = text == "READY=1"
		case n := <-code:
			t.Fatalf("ended with %d: %s", n, &errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "etc/salt/pki/minion/minion.pem")); err != nil {
		t.Errorf("ready without a key: %v", err)
	}
	// A second daemon fails and does not change the pid file.
	r := start(t, nil, "salt-minion", "-c", dir, "--pid-file", pidfile, "-l", "error")
	if r.code != 1 || !strings.Contains(r.err, "another minion is running with the same pki_dir") {
		t.Errorf("the second one ended with %d: %s", r.code, r.err)
	}
	if _, err := os.Stat(pidfile); err != nil {
		t.Error(err)
	}
	log := filepath.Join(dir, "var/log/salt/minion")
	for _, want := range []string{
		"Config option 'master_tris' is unknown; did you mean 'master_tries'? (" + conf + ", line 8)",
		"Config option 'master_tries' with value often has an invalid type of str, a int is required for this option (" + conf + ", line 9)",
	} {
		if b, _ := os.ReadFile(log); !strings.Contains(string(b), want) {
			t.Errorf("the log lacks %q:\n%s", want, b)
		}
	}
	// The configuration is reloaded, and the changes are logged.
	appendTo(t, conf, "retry_dns: 7\nlog_levl: debug\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	said := "Configuration reloaded: log_levl added (" + conf + ", line 11), retry_dns changed (" + conf + ", line 10)\n"
	for told := false; !told; {
		select {
		case <-heard:
		case n := <-code:
			t.Fatalf("ended with %d: %s", n, &errs)
		case <-time.After(20 * time.Millisecond):
			b, _ := os.ReadFile(log)
			told = strings.Contains(string(b), said) && strings.Count(string(b), "did you mean 'log_level'?") == 1
			if time.Now().After(limit) {
				t.Fatalf("the log does not say %q:\n%s", said, b)
			}
		}
	}
	// So is a mistake in it, with its place in a line of its own, and the minion goes on.
	appendTo(t, conf, "broken: [\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for told := false; !told; {
		select {
		case <-heard:
		case n := <-code:
			t.Fatalf("ended with %d: %s", n, &errs)
		case <-time.After(20 * time.Millisecond):
			b, _ := os.ReadFile(log)
			told = regexp.MustCompile(`Cannot reload: Error parsing configuration file: ` + regexp.QuoteMeta(conf) + ` - [^\\]*\n +in "` +
				regexp.QuoteMeta(conf) + `", line \d+`).Match(b)
			if time.Now().After(limit) {
				t.Fatalf("the log does not say what is wrong with the configuration:\n%s", b)
			}
		}
	}
	stop()
	for done := false; !done; {
		select {
		case <-heard:
		case n := <-code:
			if done = true; n != 0 {
				t.Errorf("ended with %d: %s", n, &errs)
			}
		}
	}
	if _, err := os.Stat(pidfile); err == nil {
		t.Error("the pid file is left")
	}
	logged, _ := os.ReadFile(log)
	if out.Len() > 0 || strings.Contains(string(logged), "[CRITICAL]") {
		t.Errorf("standard output %q, log %s", &out, logged)
	}
}

// TestCheck has the exit codes of a check: for a tree, for a host with its highstate, and for a missing tree.
func TestCheck(t *testing.T) {
	tree := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(tree, "top.sls"), "base:\n  '*': [used]\n")
	write(filepath.Join(tree, "used.sls"), "a:\n  test.nop: []\n")
	write(filepath.Join(tree, "unused.sls"), "b:\n  test.nosuch: []\n")
	dir := minionTree(t, "file_client: local\nfile_roots: {base: ["+tree+"]}\n")
	warning := tree + "/unused.sls:2: warning: the state test.nosuch is missing (in a file that this host's highstate does not use)\n"
	fine := "fine: everything that was found works (4 files, 0 failures, 1 warning; 1 state file rendered)\n"
	for name, c := range map[string]struct {
		args string
		code int
		out  string
	}{
		"host":      {"check " + dir, 0, warning + fine},
		"option":    {"check -c " + dir, 0, warning + fine},
		"salt-call": {"call -c " + dir + " brine.check", 0, warning + fine},
		"tree": {"check -c /nosuch " + tree, 1, tree + "/unused.sls:2: failure: the state test.nosuch is missing\n" +
			"not fine: some of it will not work (3 files, 1 failure, 0 warnings; 2 state files rendered)\n"},
		"nothing": {"check /nosuch", 2, ""},
		"wrong":   {"check --nosuch", 64, ""},
	} {
		if got := start(t, nil, append([]string{"brine-minion"}, strings.Fields(c.args)...)...); got.code != c.code || got.out != c.out {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("a check wrote %v", left)
	}
}
