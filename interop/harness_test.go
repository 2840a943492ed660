//go:build interop || bench || chaos

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
)

// patience is how long a test waits for an expected event before it fails.
const patience = 3 * time.Minute

// bin is the directory in which TestMain builds brine's programs.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// ownNamespace matches the name of a network namespace of these tests. The number is the process that created it.
var ownNamespace = regexp.MustCompile(`^brine([0-9]+)`)

// removeLeftNamespaces removes the network namespaces of test processes that were killed, and their cables.
func removeLeftNamespaces() {
	list, _ := os.ReadDir("/run/netns")
	for _, e := range list {
		if m := ownNamespace.FindStringSubmatch(e.Name()); m != nil && !exists("/proc/"+m[1]) {
			_ = exec.Command("ip", "netns", "del", e.Name()).Run()
		}
	}
}

func run(m *testing.M) int {
	removeLeftNamespaces()
	dir, err := os.MkdirTemp("", "brine-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-trimpath", "-o", dir, "../cmd/brine-minion", "../cmd/brine-master")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build our programs: %v\n%s", err, out)
		return 1
	}
	for name, target := range map[string]string{
		"salt-minion": "brine-minion", "salt-call": "brine-minion",
		"salt-master": "brine-master", "salt": "brine-master", "salt-key": "brine-master", "salt-run": "brine-master", "salt-cp": "brine-master",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := ownHome(dir + "/home"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// ownHome gives the programs that tests run a separate home directory, because they store files there, such as the
// tokens of salt -T, and find them later. The go command finds its caches in the real home directory by environment
// variables.
func ownHome(dir string) error {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		if err := os.Setenv(name, strings.TrimSpace(string(out))); err != nil {
			return err
		}
	}
	return errors.Join(os.Mkdir(dir, 0o700), os.Setenv("HOME", dir))
}

// inTurn skips a long comparison of command lines that is scheduled for another run of continuous integration, like
// the cases of modules and states (see testsalt.InShare). Without BRINE_SHARE every comparison runs.
func inTurn(t *testing.T) {
	t.Helper()
	if !testsalt.InShare(t, "commands/"+t.Name()) {
		t.Skip("this comparison is due in another run")
	}
}

// stock returns the path of a program of a stock release line.
func stock(t *testing.T, line, program string) string {
	t.Helper()
	venv := os.Getenv("BRINE_SALT_" + line)
	if venv == "" {
		t.Fatalf("BRINE_SALT_%s is not set: run this through make interop", line)
	}
	return filepath.Join(venv, "bin", program)
}

// ours returns the path of one of brine's programs.
func ours(program string) string { return filepath.Join(bin, program) }

// process is a program under test. Its output is written to a file that is shown if the test fails.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// start runs a program in a separate process group, and ends the whole group at the end of the test.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &process{t: t, name: filepath.Base(name), cmd: exec.Command(name, args...), log: file.Name(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("end of the output of %s:\n%s", p.name, tail(p.log))
		}
	})
	return p
}

// kill kills the process and everything that it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// stop sends the process SIGTERM and waits for its end.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
	}
	p.kill()
}

// wait waits for the process to end and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

func tail(file string) string {
	b, _ := os.ReadFile(file)
	if n := len(b) - 6000; n > 0 {
		b = b[n:]
	}
	return string(b)
}

// await polls the state of other processes, which send no notification, until cond holds. A condition that takes long
// to check, such as the output of a program, is checked less often, because the others need the processor to reach
// that state.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		begin := time.Now()
		if cond() {
			return
		}
		time.Sleep(min(max(50*time.Millisecond, 4*time.Since(begin)), time.Second))
	}
	t.Fatalf("waited %s in vain: %s", patience, what)
}

// homes are the home directories of running tests.
var homes sync.Map

// homeOf returns the home directory of a test's programs. A token that one program stores there logs in the next one,
// so the programs of other running tests must not find it.
func homeOf(t *testing.T) string {
	t.Helper()
	if dir, ok := homes.Load(t); ok {
		return dir.(string)
	}
	dir := t.TempDir()
	homes.Store(t, dir)
	t.Cleanup(func() { homes.Delete(t) })
	return dir
}

// output runs a program to its end and returns its output and exit code.
func output(t *testing.T, name string, args ...string) (stdout string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "HOME="+homeOf(t))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("cannot run %s %q: %v\n%s", name, args, err, &stderr)
	}
	if stderr.Len() > 0 {
		t.Logf("%s %q wrote to standard error:\n%s", filepath.Base(name), args, tailText(stderr.String()))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func tailText(s string) string {
	if n := len(s) - 3000; n > 0 {
		return s[n:]
	}
	return s
}

// tempDir creates a directory whose path is short enough for the sockets below it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "brine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// site is the directories, the ports, and the file and pillar trees of one master.
type site struct {
	dir       string
	transport string
	pub, ret  int
}

func newSite(t *testing.T, transport, extra string) *site {
	t.Helper()
	p := freeport.Ports(t, 2)
	s := &site{dir: tempDir(t), transport: transport, pub: p[0], ret: p[1]}
	write(t, s.config(), fmt.Sprintf(`
interface: 127.0.0.1
publish_port: %d
ret_port: %d
transport: %s
root_dir: %s
pki_dir: pki
cachedir: cache
sock_dir: run
pidfile: master.pid
log_file: master.log
key_logfile: key.log
log_level: info
file_roots: {base: [%s/srv]}
pillar_roots: {base: [%s/pillar]}
loop_interval: 1
worker_threads: 3
max_event_size: 20000000
user: root
%s
`, s.pub, s.ret, transport, s.dir, s.dir, s.dir, extra))
	write(t, s.dir+"/srv/hello.txt", "hello from the file server\n")
	write(t, s.dir+"/srv/empty.txt", "")
	write(t, s.dir+"/srv/sub/deep.txt", "deep\n")
	write(t, s.dir+"/srv/big.bin", strings.Repeat("0123456789abcdef", 200_000))
	write(t, s.dir+"/srv/plain.sls", plainSLS(s.dir))
	write(t, s.dir+"/srv/top.sls", "base:\n  '*':\n    - plain\n")
	write(t, s.dir+"/pillar/top.sls", "base:\n  '*':\n    - common\n")
	write(t, s.dir+"/pillar/common.sls", "color: blue\nnested:\n  size: 7\n  list: [a, b]\n")
	return s
}

func plainSLS(dir string) string {
	return fmt.Sprintf(`written:
  file.managed:
    - name: %s/managed.txt
    - source: salt://hello.txt
says:
  test.succeed_without_changes:
    - require:
      - file: written
`, dir)
}

// sleep returns a command that sleeps for the given number of seconds and that no other site's processes run.
func (s *site) sleep(seconds int) string { return fmt.Sprintf("sleep %d.%06d", seconds, s.ret) }

func (s *site) config() string { return s.dir + "/etc/master" }

// minion writes a minion's configuration and returns its directory. A stock minion that has once lost its master
// checks it every master_alive_interval seconds from then on, each time with a separate process. The default is 0.
func (s *site) minion(t *testing.T, id, extra string) string {
	t.Helper()
	dir := s.dir + "/" + id
	write(t, dir+"/etc/minion", fmt.Sprintf(`
id: %s
master: 127.0.0.1
master_port: %d
publish_port: %d
transport: %s
root_dir: %s
pki_dir: pki
cachedir: cache
sock_dir: run
pidfile: minion.pid
log_file: minion.log
log_level: debug
log_level_logfile: quiet
acceptance_wait_time: 1
random_reauth_delay: 1
recon_default: 100
recon_max: 1000
tcp_reconnect_backoff: 0.2
mine_interval: 60
master_alive_interval: 3600
max_event_size: 20000000
enable_fqdns_grains: false
grains: {role: tester, nest: {deep: [one, two]}}
user: root
%s
`, id, s.ret, s.pub, s.transport, dir, extra))
	return dir + "/etc"
}

// driver is the long-running Python process for a stock master (driver.py).
type driver struct {
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	cmd    *exec.Cmd
	stderr string
	home   string // the home directory of the programs that it runs
}

func pythonDriver(t *testing.T, line, mode, config string) *driver {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "driver")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := &driver{t: t, cmd: exec.Command(stock(t, line, "python"), "driver.py", mode, config), stderr: file.Name(), home: homeOf(t)}
	d.cmd.Env = append(os.Environ(), "HOME="+d.home)
	d.cmd.Stderr = file
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReaderSize(out, 1<<20)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	var ready string
	d.read(&ready)
	return d
}

func (d *driver) close() {
	if d.cmd.ProcessState == nil {
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		_ = d.cmd.Wait()
	}
}

func (d *driver) read(v any) {
	d.t.Helper()
	line, err := d.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		d.t.Fatalf("cannot read from the driver: %v\n%s", err, tail(d.stderr))
	}
}

// query is one request to the driver.
type query map[string]any

// call sends a request and returns its answer, or the error text of the exception.
func (d *driver) call(op string, q query) (any, string) {
	d.t.Helper()
	if q == nil {
		q = query{}
	}
	q["op"] = op
	b, err := json.Marshal(q)
	if err == nil {
		_, err = d.in.Write(append(b, '\n'))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	var reply struct {
		OK    any    `json:"ok"`
		Error string `json:"error"`
	}
	d.read(&reply)
	return reply.OK, reply.Error
}

// must is call for requests that must succeed.
func (d *driver) must(op string, q query) any {
	d.t.Helper()
	v, errText := d.call(op, q)
	if errText != "" {
		d.t.Fatalf("%s %v: %s", op, q, errText)
	}
	return v
}

// event is one event of a master's bus.
type event struct {
	Tag  string         `json:"tag"`
	Data map[string]any `json:"data"`
}

// bus collects a master's events.
type bus struct {
	t      *testing.T
	driver *driver
	mu     sync.Mutex
	events []event       // guarded by mu
	more   chan struct{} // guarded by mu; closed and replaced with every event
}

func listen(t *testing.T, line, config string) *bus { return listenAs(t, line, "events", config) }

// listenAs is listen with another mode of the driver.
func listenAs(t *testing.T, line, mode, config string) *bus {
	t.Helper()
	b := &bus{t: t, driver: pythonDriver(t, line, mode, config), more: make(chan struct{})}
	go func() {
		for {
			text, err := b.driver.out.ReadBytes('\n')
			if err != nil {
				return
			}
			var e event
			if json.Unmarshal(text, &e) != nil {
				continue
			}
			b.mu.Lock()
			b.events = append(b.events, e)
			close(b.more)
			b.more = make(chan struct{})
			b.mu.Unlock()
		}
	}()
	return b
}

// mark returns the number of events so far, for wait.
func (b *bus) mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events)
}

// since returns the events after a mark.
func (b *bus) since(mark int) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events[min(mark, len(b.events)):])
}

// last returns the newest event with a tag, or an empty event without one.
func (b *bus) last(tag string) event {
	for _, e := range slices.Backward(b.since(0)) {
		if e.Tag == tag {
			return e
		}
	}
	return event{}
}

// wait returns the first event since mark whose tag matches the pattern of path.Match.
func (b *bus) wait(mark int, pattern string) event {
	b.t.Helper()
	return b.first(mark, func(e event) bool {
		ok, _ := path.Match(pattern, e.Tag)
		return ok
	}, pattern)
}

// first returns the first event since mark for which is returns true. what describes the event in the error if none
// arrives.
func (b *bus) first(mark int, is func(event) bool, what ...string) event {
	b.t.Helper()
	deadline := time.After(patience)
	for {
		b.mu.Lock()
		list, more := b.events[min(mark, len(b.events)):], b.more
		b.mu.Unlock()
		for _, e := range list {
			if is(e) {
				return e
			}
		}
		select {
		case <-more:
		case <-deadline:
			b.t.Fatalf("no event %s within %s", what, patience)
		}
	}
}

// stockMaster is a running stock master with its driver and bus.
type stockMaster struct {
	*site
	t    *testing.T // of the running step
	root *testing.T // of the whole pair; processes that a step starts run until its end
	line string
	proc *process
	*driver
	bus *bus
}

func startStockMaster(t *testing.T, line, transport, extra string) *stockMaster {
	t.Helper()
	m := &stockMaster{site: newSite(t, transport, extra), t: t, root: t, line: line}
	m.up()
	return m
}

// up starts the master and its driver and bus.
func (m *stockMaster) up() {
	m.t.Helper()
	m.proc = start(m.root, stock(m.t, m.line, "salt-master"), "-c", filepath.Dir(m.config()))
	await(m.t, "the master listens", func() bool {
		return listening(m.ret) && listening(m.pub) && exists(m.dir+"/run/master_event_pub.ipc")
	})
	if m.driver == nil {
		m.driver = pythonDriver(m.root, m.line, "calls", m.config()) // it connects again for every call
	}
	m.bus = listen(m.root, m.line, m.config())
	m.driver.t, m.bus.t = m.t, m.t
}

// down ends the master, with SIGKILL or in an orderly way.
func (m *stockMaster) down(kill bool) {
	m.t.Helper()
	if !kill {
		m.proc.stop()
	} else {
		m.proc.kill()
	}
	m.bus.driver.close()
	await(m.t, "the master's ports are free", func() bool { return !listening(m.ret) && !listening(m.pub) })
}

func listening(port int) bool {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// full is one minion's full return.
type full struct{ Ret, Retcode any }

// cmd runs a function on one minion and returns its result.
func (m *stockMaster) cmd(id, fun string, args ...any) any {
	m.t.Helper()
	return m.run(query{"tgt": id, "fun": fun, "arg": args})[id].Ret
}

// run runs a job and returns the returns by minion.
func (m *stockMaster) run(q query) map[string]full {
	m.t.Helper()
	reply, _ := m.must("cmd", q).(map[string]any)
	returns := map[string]full{}
	for id, v := range reply {
		// The value for a minion that did not answer is False.
		if ret, ok := v.(map[string]any); ok {
			returns[id] = full{Ret: ret["ret"], Retcode: ret["retcode"]}
		}
	}
	return returns
}

// publish publishes a job and returns its id.
func (m *stockMaster) publish(q query) string {
	m.t.Helper()
	reply, _ := m.must("pub", q).(map[string]any)
	jid, _ := reply["jid"].(string)
	if jid == "" {
		m.t.Fatalf("%v was not published: %v", q, reply)
	}
	return jid
}

// keys returns the ids in a directory of the master's keys: minions, minions_pre, minions_rejected or minions_denied.
func (m *stockMaster) keys(folder string) []string {
	m.t.Helper()
	lists, _ := m.must("keys", nil).(map[string]any)
	ids, _ := lists[folder].([]any)
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i], _ = id.(string)
	}
	return names
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		os.Remove(to)
		err = os.WriteFile(to, b, 0o400)
	}
	if err != nil {
		t.Fatal(err)
	}
}
