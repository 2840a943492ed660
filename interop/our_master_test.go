//go:build interop || bench

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOurMaster is the matrix of stock minions under brine's stand-alone master, which brine's salt and salt-key
// control. Stock Salt's own event client reads the bus.
func TestOurMaster(t *testing.T) {
	for _, pair := range []struct{ line, transport string }{
		{"3006", "zeromq"}, {"3007", "zeromq"}, {"3008", "zeromq"},
		{"3006", "tcp"}, {"3007", "tcp"}, {"3008", "tcp"},
		{"3007", "ws"}, {"3008", "ws"},
	} {
		t.Run(pair.line+"/"+pair.transport, func(t *testing.T) {
			t.Parallel()
			m := &ourMaster{site: newSite(t, pair.transport, ""), t: t, root: t, line: pair.line, id: "stock"}
			m.conf = m.minion(t, m.id, "")
			m.up()
			for _, step := range []struct {
				name string
				run  func(*ourMaster)
			}{
				{"pending then accepted", (*ourMaster).pendingThenAccepted},
				{"targets", (*ourMaster).targets},
				{"odd output", (*ourMaster).oddOutput},
				{"salt-call", (*ourMaster).saltCall},
				{"state.apply", (*ourMaster).stateApply},
				{"event and mine", (*ourMaster).eventAndMine},
				{"kill a job", (*ourMaster).killJob},
				{"stock salt command", (*ourMaster).stockCommand},
				{"rotation", (*ourMaster).rotation},
				{"master restart", (*ourMaster).masterRestart},
				{"key deleted and accepted again", (*ourMaster).deletedAndAccepted},
				{"key rejected", (*ourMaster).rejected},
			} {
				if !t.Run(step.name, func(t *testing.T) {
					m.t, m.bus.t = t, t
					step.run(m)
				}) {
					t.Fatalf("the step %q failed; the following ones build on it", step.name)
				}
			}
		})
	}
}

// ourMaster is brine's stand-alone master and the stock minion under it.
type ourMaster struct {
	*site
	t, root  *testing.T
	line, id string
	conf     string
	events   int // port of the event bus; 0 for a socket
	proc     *process
	stock    *process
	bus      *bus
}

func (m *ourMaster) up() {
	m.t.Helper()
	m.proc = start(m.root, ours("salt-master"), "-c", filepath.Dir(m.config()))
	await(m.t, "the master listens", func() bool {
		return listening(m.ret) && listening(m.pub) && (exists(m.dir+"/run/master_event_pub.ipc") || m.events != 0 && listening(m.events))
	})
	m.bus = listen(m.root, m.line, m.config())
	m.bus.t = m.t
}

func (m *ourMaster) equal(want, got any) {
	m.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("unexpected return (-want +got):\n%s", diff)
	}
}

// salt runs brine's salt command and returns the results by minion, and the exit code.
func (m *ourMaster) salt(args ...string) (map[string]any, int) {
	m.t.Helper()
	args = append([]string{"-c", filepath.Dir(m.config()), "--out=json", "--static", "-t", "20"}, args...)
	out, code := output(m.t, ours("salt"), args...)
	var v map[string]any
	if strings.TrimSpace(out) != "" && json.Unmarshal([]byte(out), &v) != nil {
		return map[string]any{"text": out}, code
	}
	return v, code
}

// cmd runs a function on the stock minion and returns the result.
func (m *ourMaster) cmd(args ...string) any {
	m.t.Helper()
	v, _ := m.salt(append([]string{m.id}, args...)...)
	return v[m.id]
}

func (m *ourMaster) keys() map[string]any {
	m.t.Helper()
	out, _ := output(m.t, ours("salt-key"), "-c", filepath.Dir(m.config()), "-L", "--out=json")
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		m.t.Fatalf("salt-key -L printed %q", out)
	}
	return v
}

func (m *ourMaster) inFolder(folder string) bool {
	ids, _ := m.keys()[folder].([]any)
	return slices.Contains(ids, any(m.id))
}

func (m *ourMaster) key(args ...string) {
	m.t.Helper()
	if out, code := output(m.t, ours("salt-key"), append([]string{"-c", filepath.Dir(m.config()), "-y"}, args...)...); code != 0 {
		m.t.Fatalf("salt-key %q ended with %d: %s", args, code, out)
	}
}

func (m *ourMaster) pings() bool {
	v, _ := m.salt("-t", "15", m.id, "test.ping")
	return v[m.id] == true
}

// startMinion starts the stock minion. It runs until the end of the whole test and not only of the step.
func (m *ourMaster) startMinion() {
	m.t.Helper()
	m.forgetPID()
	m.stock = start(m.root, stock(m.t, m.line, "salt-minion"), "-c", m.conf)
}

// forgetPID removes the pid files of a stock minion that was killed. Their process still exists as a zombie, so the
// next minion would refuse to start.
func (m *ourMaster) forgetPID() {
	dir := m.dir + "/" + m.id
	_ = os.Remove(dir + "/minion.pid")
	_ = os.Remove(dir + "/process_responsibility_minion.pid")
}

func (m *ourMaster) pendingThenAccepted() {
	m.startMinion()
	await(m.t, "the key is pending", func() bool { return m.inFolder("minions_pre") })
	mark := m.bus.mark()
	m.key("-a", m.id)
	m.bus.wait(mark, "salt/minion/"+m.id+"/start")
	m.equal(true, m.cmd("test.ping"))
}

func (m *ourMaster) targets() {
	m.cmd("saltutil.refresh_pillar")
	for _, target := range []struct {
		flag, tgt string
		match     bool
	}{
		{"", "st?ck", true}, {"-E", "st(ock|one)$", true}, {"-L", "stock,other", true}, {"-G", "nest:deep:two", true},
		{"-P", "role:^test.*", true}, {"-I", "color:blue", true}, {"-I", "nested:list:b", true}, {"-J", "color:b.*", true},
		{"-S", "127.0.0.0/8", true}, {"-C", "G@role:tester and not E@other.* and ( stock or I@color:red )", true},
		{"-C", "G@role:tester and I@color:red", false}, {"-G", "role:nobody", false},
	} {
		args := []string{target.tgt, "test.echo", "hit"}
		if target.flag != "" {
			args = append([]string{target.flag}, args...)
		}
		// A target that matches no minion needs only a short wait.
		timeout := "5"
		if target.match {
			timeout = "20"
		}
		got, _ := m.salt(append([]string{"-t", timeout}, args...)...)
		if hit := got[m.id] == "hit"; hit != target.match {
			m.t.Errorf("target %s %q: hit is %v, want %v (%v)", target.flag, target.tgt, hit, target.match, got)
		}
	}
}

func (m *ourMaster) oddOutput() {
	m.equal("smørrebrød ☃ 𝄞", m.cmd("cmd.run", "printf 'smørrebrød ☃ 𝄞'"))
	size := 5_000_000
	if m.transport == "ws" {
		size = 3_000_000 // stock's websocket limit is 4 MiB for a message
	}
	big, _ := m.cmd("cmd.run", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)).(string)
	if big != strings.Repeat("x", size) {
		m.t.Errorf("%d bytes of output came back as %d", size, len(big))
	}
	all, _ := m.cmd("cmd.run_all", "printf 'a\\377b'; echo err >&2; exit 3").(map[string]any)
	m.equal(3.0, all["retcode"])
	m.equal("err", all["stderr"])
	m.equal("a\ufffdb", all["stdout"])
	// With --static neither stock's salt nor brine's uses the return codes.
	if _, code := output(m.t, ours("salt"), "-c", filepath.Dir(m.config()), m.id, "cmd.run", "exit 42"); code != 1 {
		m.t.Errorf("salt ended with %d after a failed command, want 1", code)
	}
}

func (m *ourMaster) saltCall() {
	call := func(args ...string) map[string]any {
		m.t.Helper()
		out, code := output(m.t, stock(m.t, m.line, "salt-call"), append([]string{"-c", m.conf, "--out=json", "-l", "error"}, args...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			m.t.Fatalf("salt-call %q ended with %d and %q", args, code, out)
		}
		return v
	}
	want := map[string]any{"color": "blue", "nested": map[string]any{"size": 7.0, "list": []any{"a", "b"}}}
	items := []string{"pillar.items"}
	if m.line == "3008" {
		items = append(items, "unmask=True") // 3008 shows asterisks by default
	}
	m.equal(map[string]any{"local": want}, call(items...))
	dest := m.t.TempDir() + "/big.bin"
	m.equal(map[string]any{"local": dest}, call("cp.get_file", "salt://big.bin", dest, "gzip=5"))
	b, _ := os.ReadFile(dest)
	if string(b) != strings.Repeat("0123456789abcdef", 200_000) {
		m.t.Errorf("big.bin arrived with %d bytes", len(b))
	}
	m.equal(map[string]any{"local": []any{"big.bin", "empty.txt", "hello.txt", "plain.sls", "sub/deep.txt", "top.sls"}},
		call("cp.list_master"))
}

func (m *ourMaster) stateApply() {
	states, _ := m.cmd("state.apply").(map[string]any)
	if len(states) != 2 {
		m.t.Fatalf("state.apply gave %v", states)
	}
	for name, state := range states {
		if s, _ := state.(map[string]any); s["result"] != true {
			m.t.Errorf("%s: %v", name, s)
		}
	}
	b, err := os.ReadFile(m.dir + "/managed.txt")
	if err != nil || string(b) != "hello from the file server\n" {
		m.t.Errorf("the managed file has %q, %v", b, err)
	}
}

func (m *ourMaster) eventAndMine() {
	mark := m.bus.mark()
	m.equal(true, m.cmd("event.send", "my/own/tag", `{"size": 3, "name": "x"}`))
	e := m.bus.wait(mark, "my/own/tag")
	data, _ := e.Data["data"].(map[string]any)
	m.equal(3.0, data["size"])
	m.equal(m.id, e.Data["id"])
	m.equal(true, m.cmd("mine.send", "test.echo", "kept"))
	m.equal(map[string]any{m.id: "kept"}, m.cmd("mine.get", "*", "test.echo"))
}

func (m *ourMaster) killJob() {
	out, code := output(m.t, ours("salt"), "-c", filepath.Dir(m.config()), "--async", m.id, "cmd.run", m.sleep(3003))
	jid := strings.TrimSpace(out[strings.LastIndexByte(out, ':')+1:])
	if code != 0 || len(jid) != 20 {
		m.t.Fatalf("salt --async ended with %d and %q", code, out)
	}
	await(m.t, "the job runs", func() bool { return running(m.sleep(3003)) })
	job, _ := m.cmd("saltutil.find_job", jid).(map[string]any)
	m.equal(jid, job["jid"])
	m.cmd("saltutil.kill_job", jid)
	await(m.t, "the job is gone", func() bool {
		job, _ := m.cmd("saltutil.find_job", jid).(map[string]any)
		return len(job) == 0
	})
}

// stockCommand runs jobs on brine's master with stock Salt's own salt command.
func (m *ourMaster) stockCommand() {
	out, code := output(m.t, stock(m.t, m.line, "salt"), "-c", filepath.Dir(m.config()), "--out=json", "--static", "*", "test.echo", "x y")
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
		m.t.Fatalf("stock salt ended with %d and %q", code, out)
	}
	m.equal(map[string]any{m.id: "x y"}, v)
}

func (m *ourMaster) rotation() {
	drop := m.dir + "/cache/.dfn"
	if err := os.WriteFile(drop, nil, 0o400); err != nil {
		m.t.Fatal(err)
	}
	await(m.t, "the master takes the drop file", func() bool { return !exists(drop) })
	await(m.t, "a ping after the rotation", m.pings)
}

func (m *ourMaster) masterRestart() {
	m.bus.driver.close()
	m.proc.stop()
	m.equal(0, m.proc.cmd.ProcessState.ExitCode())
	m.up()
	if m.transport == "ws" {
		// A stock minion never opens its ws publish channel again, not even under a stock master.
		m.stock.stop()
		m.startMinion()
	}
	await(m.t, "a ping after the restart", m.pings)
}

func (m *ourMaster) deletedAndAccepted() {
	m.key("-d", m.id)
	// A stock minion notices this only when it reads a publish or sends a request, and nothing is published to
	// deleted ids.
	m.stock.stop()
	m.startMinion()
	await(m.t, "the key is pending again", func() bool { return m.inFolder("minions_pre") })
	m.key("-a", m.id)
	await(m.t, "a ping after the acceptance", m.pings)
}

func (m *ourMaster) rejected() {
	m.stock.stop()
	m.key("-r", m.id, "--include-accepted")
	m.forgetPID()
	again := start(m.t, stock(m.t, m.line, "salt-minion"), "-c", m.conf, "--disable-keepalive")
	code := again.wait()
	if m.line != "3008" { // 3008 raises SystemExit: 77 where it is not handled, and exits with 0
		m.equal(77, code)
	}
	if !strings.Contains(readAll(m.t, again.log), "rejected this minion's public key") {
		m.t.Error("the stock minion does not say that its key was rejected")
	}
}

func readAll(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
