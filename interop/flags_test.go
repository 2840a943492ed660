//go:build interop

package interop

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/shlex"
)

// TestFlagsOfSalt runs stock's salt and brine's with options of the command line, on one master with two of brine's
// minions. Standard output and the exit code must be the same. DIR is the site's directory.
func TestFlagsOfSalt(t *testing.T) {
	inTurn(t)
	t.Parallel()
	m := &ourMaster{site: newSite(t, "zeromq", "auto_accept: True\ntimeout: 20\n"+
		"nodegroups: {front: web1, ring: 'N@gnir', gnir: 'N@ring'}\n"+
		"external_auth: {auto: {alice: ['.*', '@runner', '@wheel']}}\n"), t: t, root: t, line: "3007"}
	write(t, m.dir+"/saltfile", "salt:\n  config_dir: "+m.dir+"/etc\n")
	m.up()
	for _, id := range []string{"web1", "db1"} {
		start(t, ours("salt-minion"), "-c", m.minion(t, id, ""))
		await(t, id+" answers", func() bool { v, _ := m.salt(id, "saltutil.refresh_pillar"); return v[id] != nil })
	}
	d := pythonDriver(t, m.line, "calls", m.config())
	for _, line := range []string{
		"salt --args-separator=/ web1 test.arg,test.ping a / ",
		"salt --verbose web1 test.ping",
		"salt --compound 'G@id:web1 or db*' test.ping",
		"salt --grain id:web1 test.ping",
		"salt --grain-pcre 'id:d.[2-9]|web.' test.ping",
		"salt --list web1,nobody -t 3 test.ping",
		"salt --pcre 'web[1]' test.ping",
		"salt --ipcidr 127.0.0.0/8 test.ping",
		"salt --nodegroup front test.ping",
		"salt --nodegroup ring test.ping",
		"salt -N nowhere test.ping",
		"salt --compound 'web1 or' test.ping",
		"salt --pcre '(' test.ping",
		"salt --pillar color:blue test.ping",
		"salt --pillar-pcre 'color:b.*' test.ping",
		"salt --range %x test.ping",
		"salt --hosts web1 test.ping",
		"salt --timeout=21 web1 test.ping",
		"salt --no-parse=x web1 test.arg x=1 y=1",
		"salt --module-executors='[direct_call]' web1 test.ping",
		"salt --module-executors='[nope]' web1 test.ping",
		"salt --executor-opts='{a: 1}' web1 test.ping",
		"salt --force-color web1 test.ping",
		"salt --output-diff web1 state.single test.succeed_with_changes x",
		"salt --batch-wait=1 -b 1 web1 test.ping",
		"salt --batch-safe-limit=1 --batch-safe-size=1 'db*' test.ping",
		"salt --hard-crash web1 test.ping",
		"salt --auth auto --username alice --password x web1 test.ping",
		"salt --make-token -a auto --username alice --password x web1 test.ping",
		"salt --log-level=quiet --log-file-level=debug --log-file=DIR/log web1 test.ping",
		"salt --saltfile=DIR/saltfile web1 test.ping",
		"salt --saltfile=DIR/none web1 test.ping",
		"salt --out-file=DIR/WHO.out web1 test.ping",
		"salt --out-file=DIR/WHO.out --out-file-append web1 test.echo twice",
		"salt --out=json --metadata={a: 1} web1 test.ping",
	} {
		c := sameProgram(t, d, m.dir, line)
		if strings.Contains(line, "ring") && c.Code != 2 {
			t.Errorf("%s ended with %d", line, c.Code)
		}
	}
	equalFiles(t, m.dir+"/stock.out", m.dir+"/ours.out")

	// Here stock ignores the options of the command line, including the configuration directory.
	piped := "--config-dir=" + m.dir + "/etc\ntest.arg\na\nb c"
	fromInput := func(program string) string {
		cmd := exec.Command(program, "-c", m.dir+"/etc", "--args-stdin", "web1")
		cmd.Env = append(os.Environ(), "HOME="+homeOf(t))
		cmd.Stdin = strings.NewReader(piped)
		out, err := cmd.Output()
		return fmt.Sprint(withoutIDs(string(out)), err)
	}
	want, got := fromInput(stock(t, m.line, "salt")), fromInput(ours("salt"))
	for range tries {
		if want != got {
			want = fromInput(stock(t, m.line, "salt"))
		}
	}
	m.equal(want, got)
	docs, code := output(t, ours("salt"), "-c", m.dir+"/etc", "--doc", "web1", "test.ping")
	if !strings.HasPrefix(docs, "test.ping:\n") || code != 0 {
		t.Errorf("salt --doc ended with %d: %q", code, docs)
	}
}

// tries is how often stock's salt is run again if its output differs from brine's. On a busy machine its client
// sometimes gives up a request or loses an answer.
const tries = 4

// sameProgram runs a program of stock, in the driver, and that of brine with the same arguments, and compares the
// results. In a command line, DIR is a directory with the configuration in DIR/etc, and WHO is "stock" or "ours". It
// returns the result of brine's program.
func sameProgram(t *testing.T, d *driver, dir, line string) *called {
	t.Helper()
	run := func(who string) (string, []string) {
		words, err := shlex.Split(strings.NewReplacer("DIR", dir, "WHO", who).Replace(line))
		if err != nil {
			t.Fatal(err)
		}
		args := words[1:]
		if !strings.Contains(line, "-c ") && !strings.Contains(line, "--config-dir") && !strings.Contains(line, "--saltfile=DIR/saltfile") {
			args = append([]string{"-c", dir + "/etc"}, args...)
		}
		return words[0], args
	}
	program, args := run("ours")
	cmd := exec.Command(ours(program), args...)
	cmd.Env = append(os.Environ(), "HOME="+d.home)
	var text, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &log
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	have := &called{Code: cmd.ProcessState.ExitCode(), Out: withoutIDs(text.String()), Err: log.String()}
	program, args = run("stock")
	theirs := func() *called {
		got, _ := d.must("program", query{"program": program, "arg": args}).(map[string]any)
		out, _ := got["out"].(string)
		code, _ := got["code"].(float64)
		return &called{Code: int(code), Out: withoutIDs(out)}
	}
	want := theirs()
	for range tries {
		if (want.Code != have.Code || want.Out != have.Out) && !strings.Contains(line, "out-file") && program == "salt" {
			want = theirs()
		}
	}
	if diff := cmp.Diff(want.Out, have.Out); diff != "" || want.Code != have.Code {
		t.Errorf("%s ended with %d, ours with %d (-stock +ours):\n%s%s", line, want.Code, have.Code, diff, have.Err)
	}
	return have
}

// withoutIDs removes job ids and times from an output, and sorts the parts for several minions.
func withoutIDs(s string) string {
	s = regexp.MustCompile(`\b20\d{18}\b`).ReplaceAllString(s, "JID")
	s = regexp.MustCompile(`(Started|Duration|Total run time): +[^\n]*`).ReplaceAllString(s, "$1:")
	s = withoutRepeats(s)
	s = regexp.MustCompile(`(?m)^(db1:\n    [^\n]*\n)(web1:\n    [^\n]*\n)`).ReplaceAllString(s, "$2$1")
	return s
}

// equalFiles compares the files that stock and brine wrote.
func equalFiles(t *testing.T, theirs, mine string) {
	t.Helper()
	want, err := os.ReadFile(theirs)
	if err != nil || len(want) == 0 {
		t.Fatalf("stock wrote %q, %v", want, err)
	}
	got, err := os.ReadFile(mine)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s and %s (-stock +ours):\n%s", theirs, mine, diff)
	}
}

// TestFlagsOfCall does the same for salt-call, on a host without a master and under a master.
func TestFlagsOfCall(t *testing.T) {
	inTurn(t)
	t.Parallel()
	m := &ourMaster{site: newSite(t, "zeromq", "auto_accept: True\n"), t: t, root: t, line: "3007"}
	m.up()
	m.minion(t, "web1", "")
	dir := m.dir + "/web1"
	write(t, dir+"/saltfile", "salt-call:\n  config_dir: "+dir+"/etc\n")
	write(t, dir+"/mods/own.py", "def hello():\n    return 'hello'\n")
	write(t, dir+"/states/one.sls", "one: {test.nop: []}\ntwo: {test.succeed_with_changes: []}\n")
	d := pythonDriver(t, m.line, "calls", m.config())
	for _, line := range []string{
		"salt-call --config-dir=DIR/etc --local test.ping",
		"salt-call --local --cachedir=DIR/other config.get cachedir",
		"salt-call --local --force-color test.ping",
		"salt-call --local --no-color test.ping",
		"salt-call --local --hard-crash test.ping",
		"salt-call --local --log-file=DIR/WHO.log --log-file-level=info --log-level=quiet test.ping",
		"salt-call --local --log-level=nothing test.ping",
		"salt-call --local --module-executors='[direct_call]' test.ping",
		"salt-call --no-return-event test.ping",
		"salt-call --timeout=30 test.ping",
		"salt-call --local --out-file=DIR/WHO.out test.ping",
		"salt-call --local --out-file=DIR/WHO.out --out-file-append test.echo twice",
		"salt-call --local --file-root=DIR/states --output-diff state.apply one",
		"salt-call --local --file-root=DIR/states --state-output=terse state.apply one",
		"salt-call --local --file-root=DIR/states --state-output=mixed state.apply one",
		"salt-call --local --file-root=DIR/states --state-output=changes state.apply one",
		"salt-call --local --file-root=DIR/states --state-output=full_id state.apply one",
		"salt-call --local --refresh-grains-cache grains.get role",
		"salt-call --local --saltfile=DIR/none test.ping",
		"salt-call --saltfile=DIR/saltfile --local grains.get id",
		"salt-call --local --skip-grains grains.items",
		"salt-call --local --module-dirs=DIR/mods own.hello",
		"salt-call --local --states-dir=DIR/none test.ping",
		"salt-call --master=localhost config.get master",
	} {
		sameProgram(t, d, dir, line)
	}
	equalFiles(t, dir+"/stock.out", dir+"/ours.out")
	for _, list := range []string{"[nope]", "sudo", "[direct_call, nope]"} {
		got := ourCallRaw(t, "-c", dir+"/etc", "--local", "-l", "error", "--module-executors="+list, "test.ping")
		want := stockCallRaw(t, d, "-c", dir+"/etc", "--local", "-l", "error", "--module-executors="+list, "test.ping")
		want.Out, got.Out = "", "" // the usage of test.ping
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("executors %s (-stock +ours):\n%s", list, diff)
		}
	}
	// For these options stock has a plugin in Python or a proxy. Brine logs that they have no effect.
	for flag, value := range map[string]string{"--executor-opts": "={a: 1}", "--proxyid": "=p", "--enable-profiling": ""} {
		cmd := exec.Command(ours("salt-call"), "-c", dir+"/etc", "-l", "warning", "--local", flag+value, "test.ping")
		out, err := cmd.CombinedOutput()
		if want := "[WARNING ] The option " + flag + " is accepted and has no effect\nlocal:\n    True\n"; err != nil || string(out) != want {
			t.Errorf("salt-call %s: %v, %s", flag, err, out)
		}
	}
	cmd := exec.Command(ours("salt-call"), "-c", dir+"/etc", "--local", "--out=json", "--args-stdin")
	// Stock loses the configuration here, and waits for a master named salt.
	cmd.Stdin = strings.NewReader("test.echo\nb c")
	out, err := cmd.Output()
	m.equal("{\n    \"local\": \"b c\"\n}\n<nil>", fmt.Sprint(string(out), err))
	docs, code := output(t, ours("salt-call"), "-c", dir+"/etc", "--local", "--doc", "test.ping")
	if !strings.HasPrefix(docs, "test.ping:\n") || code != 0 {
		t.Errorf("salt-call --doc ended with %d: %q", code, docs)
	}
}

// TestFlagsOfKey does the same for salt-key. Each program works on its own copy of the same keys.
func TestFlagsOfKey(t *testing.T) {
	inTurn(t)
	t.Parallel()
	dir := tempDir(t)
	pub, code := output(t, stock(t, "3007", "salt-key"), "-c", dir, "--gen-keys=web", "--gen-keys-dir="+dir)
	if code != 0 {
		t.Fatal(pub)
	}
	key, err := os.ReadFile(dir + "/web.pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"stock", "ours"} {
		root := dir + "/" + who
		write(t, root+"/etc/master", "root_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\nuser: root\n"+
			"external_auth: {auto: {alice: ['.*', '@wheel']}}\n")
		write(t, root+"/cache/minions/old/data.p", "")
		write(t, root+"/saltfile", "salt-key:\n  config_dir: "+root+"/etc\n")
		for id, folder := range map[string]string{"web1": "minions_pre", "web2": "minions_pre", "db1": "minions_pre", "old": "minions",
			"bad": "minions_denied", "gone": "minions_rejected"} {
			write(t, root+"/pki/"+folder+"/"+id, strings.TrimSpace(string(key)))
		}
	}
	d := pythonDriver(t, "3007", "calls", dir+"/stock/etc/master")
	for _, line := range []string{
		"salt-key --config-dir=DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --list=all --force-color",
		"salt-key -c DIR/WHO/etc --list=pre --no-color",
		"salt-key -c DIR/WHO/etc --finger=web1",
		"salt-key -c DIR/WHO/etc --finger-all --out=json",
		"salt-key -c DIR/WHO/etc --print=old",
		"salt-key -c DIR/WHO/etc --print-all",
		"salt-key -c DIR/WHO/etc --accept=web1 --yes",
		"salt-key -c DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --accept=bad --yes --include-denied",
		"salt-key -c DIR/WHO/etc --reject=web2 --yes",
		"salt-key -c DIR/WHO/etc --reject=web1 --yes --include-accepted",
		"salt-key -c DIR/WHO/etc --accept-all --yes",
		"salt-key -c DIR/WHO/etc --accept-all --yes --include-rejected",
		"salt-key -c DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --reject-all --yes --include-accepted",
		"salt-key -c DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --delete=web1 --yes --preserve-minions=true",
		"salt-key -c DIR/WHO/etc --delete=nobody --yes",
		"salt-key -c DIR/WHO/etc --delete-all --yes",
		"salt-key -c DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --quiet --list-all",
		"salt-key -c DIR/WHO/etc --hard-crash --list-all",
		"salt-key -c DIR/WHO/etc --rotate-aes-key=False --list-all",
		"salt-key -c DIR/WHO/etc --user=root --list-all",
		"salt-key -c DIR/WHO/etc --log-file=DIR/WHO/other --log-file-level=debug --list-all",
		"salt-key -c DIR/WHO/etc --log-level=nothing --list-all",
		"salt-key -c DIR/WHO/etc --list-all --out-file=DIR/WHO.out",
		"salt-key -c DIR/WHO/etc --list=un --out-file=DIR/WHO.out --out-file-append",
		"salt-key --saltfile=DIR/WHO/saltfile -c DIR/WHO/etc --list-all",
		"salt-key -c DIR/WHO/etc --saltfile=DIR/none --list-all",
		"salt-key -c DIR/WHO/etc --gen-signature --auto-create --priv=DIR/web.pem --signature-path=DIR/WHO/sig",
	} {
		sameProgram(t, d, dir, line)
	}
	equalFiles(t, dir+"/stock.out", dir+"/ours.out")
	for _, folder := range []string{"sig", "pki/minions", "pki/minions_pre", "pki/minions_denied", "pki/minions_rejected"} {
		if diff := cmp.Diff(namesIn(dir+"/stock/"+folder), namesIn(dir+"/ours/"+folder)); diff != "" {
			t.Errorf("the folder %q (-stock +ours):\n%s", folder, diff)
		}
	}
}

// namesIn returns the files of a directory with their modes.
func namesIn(dir string) map[string]string {
	list, _ := os.ReadDir(dir)
	out := map[string]string{}
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			out[e.Name()] = info.Mode().String()
		}
	}
	return out
}

// TestFlagsOfDaemons starts salt-minion and salt-master in the background, stock's and brine's. The program must exit
// with 0, and the process must run as the given user and log to the given file at the given level.
func TestFlagsOfDaemons(t *testing.T) {
	inTurn(t)
	for _, program := range []string{"salt-minion", "salt-master"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			seen := map[string]map[string]any{}
			for _, who := range []string{"stock", "ours"} {
				seen[who] = daemonSeen(t, program, who)
			}
			if diff := cmp.Diff(seen["stock"], seen["ours"]); diff != "" {
				t.Errorf("(-stock +ours)\n%s", diff)
			}
			for _, flag := range []string{"--version", "--help"} {
				theirs, code := output(t, stock(t, "3007", program), flag)
				mine, own := output(t, ours(program), flag)
				theirs, _, _ = strings.Cut(theirs, "(") // without the name of stock's release
				mine, _, _ = strings.Cut(mine, "(")
				if theirs != mine || code != own {
					t.Errorf("%s %s: %d %q, ours %d %q", program, flag, code, theirs, own, mine)
				}
			}
		})
	}
	// The libraries differ, but the names of the parts and the release must be the same.
	heads := regexp.MustCompile(`(?m)^(Salt Version:|System Versions:|Dependency Versions:| +Salt: \S+| +machine: .*| +system: .*)$`)
	for _, program := range []string{"salt-minion", "salt-call", "salt-master", "salt", "salt-key"} {
		theirs, _ := output(t, stock(t, "3007", program), "--versions-report")
		mine, _ := output(t, ours(program), "--versions-report")
		want, got := trimmed(heads.FindAllString(theirs, -1)), trimmed(heads.FindAllString(mine, -1))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s --versions-report (-stock +ours):\n%s", program, diff)
		}
		// Brine lists the modules from which it is built.
		info, err := buildinfo.ReadFile(ours(program))
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(mine, "Dependency Versions:\n")
		list, _, _ = strings.Cut(list, "\n \n")
		lines := trimmed(strings.Split(list, "\n"))
		if len(lines) != len(info.Deps) || len(lines) < 3 {
			t.Fatalf("%s names %q of %d modules", program, lines, len(info.Deps))
		}
		for i, line := range lines {
			name, version, _ := strings.Cut(line, ": ")
			if d := info.Deps[i]; version != d.Version || !strings.Contains(d.Path, name) {
				t.Errorf("%s: %q is not %s %s", program, line, d.Path, d.Version)
			}
		}
	}
}

func trimmed(list []string) []string {
	for i, s := range list {
		list[i] = strings.TrimSpace(s)
	}
	return list
}

// daemonSeen returns the observable state of a daemon of stock or brine that was started with options.
func daemonSeen(t *testing.T, program, who string) map[string]any {
	s := newSite(t, "zeromq", "")
	conf, name := filepath.Dir(s.config()), "master"
	if program == "salt-minion" {
		conf, name = s.minion(t, "web1", ""), "minion"
	}
	root := filepath.Dir(conf)
	write(t, root+"/saltfile", program+":\n  config_dir: "+conf+"\n")
	path := ours(program)
	if who == "stock" {
		path = stock(t, "3007", program)
	}
	begun := start(t, path, "--config-dir="+conf, "--daemon", "--saltfile="+root+"/saltfile", "--user=root", "--pid-file="+root+"/own.pid",
		"--log-file="+root+"/own.log", "--log-file-level=debug", "--log-level=quiet")
	code := begun.wait()
	pid := 0
	t.Cleanup(func() {
		if group, err := syscall.Getpgid(pid); err == nil && pid > 1 {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	})
	await(t, who+" has its pid file", func() bool {
		b, _ := os.ReadFile(root + "/own.pid")
		n, _ := fmt.Sscan(string(b), &pid)
		return n == 1
	})
	await(t, who+" logs", func() bool {
		b, _ := os.ReadFile(root + "/own.log")
		return bytes.Contains(b, []byte("Setting up the Salt")) && bytes.Contains(b, []byte("[DEBUG   ]"))
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	uid := regexp.MustCompile(`(?m)^Uid:\t(\d+)`).FindSubmatch(status)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	session := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))[3]
	files := slices.Sorted(maps.Keys(namesIn(root)))
	return map[string]any{"code": code, "uid": string(uid[1]), "a session of its own": session != ownSession(t), "own.log": slices.Contains(files, "own.log"),
		name + ".log": exists(root + "/" + name + ".log")}
}

// ownSession returns the session id of this test.
func ownSession(t *testing.T) string {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))[3]
}
