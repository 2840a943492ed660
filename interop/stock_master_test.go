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
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStockMaster is the matrix of stock masters with brine's minion. The steps of one pair depend on each other and
// share one master, because a stock master takes seconds to start.
func TestStockMaster(t *testing.T) {
	for _, pair := range []struct{ line, transport string }{
		{"3006", "zeromq"}, {"3007", "zeromq"}, {"3008", "zeromq"},
		{"3006", "tcp"}, {"3007", "tcp"}, {"3008", "tcp"},
		{"3007", "ws"}, {"3008", "ws"},
	} {
		t.Run(pair.line+"/"+pair.transport, func(t *testing.T) {
			t.Parallel()
			m := startStockMaster(t, pair.line, pair.transport, "")
			c := &minionUnderStock{stockMaster: m, id: "ours", conf: m.minion(t, "ours", "")}
			for _, step := range []struct {
				name string
				run  func(*minionUnderStock)
			}{
				{"pending then accepted", (*minionUnderStock).pendingThenAccepted},
				{"targets", (*minionUnderStock).targets},
				{"odd output", (*minionUnderStock).oddOutput},
				{"salt-call", (*minionUnderStock).saltCall},
				{"a program as module", (*minionUnderStock).program},
				{"states", (*minionUnderStock).states},
				{"event and mine", (*minionUnderStock).eventAndMine},
				{"kill a job", (*minionUnderStock).killJob},
				{"rotation", (*minionUnderStock).rotation},
				{"master restart", (*minionUnderStock).masterRestart},
				{"master killed while a return is due", (*minionUnderStock).returnDue},
				{"key deleted and accepted again", (*minionUnderStock).deletedAndAccepted},
				{"key rejected", (*minionUnderStock).rejected},
			} {
				if !t.Run(step.name, func(t *testing.T) {
					saved := m.retarget(t)
					defer m.retarget(saved)
					step.run(c)
				}) {
					t.Fatalf("the step %q failed; the following ones build on it", step.name)
				}
			}
		})
	}
}

// retarget makes the helpers report to the test of the current step, and returns the previous one.
func (m *stockMaster) retarget(t *testing.T) *testing.T {
	old := m.t
	m.t, m.driver.t, m.bus.t = t, t, t
	return old
}

// minionUnderStock is brine's minion under a stock master.
type minionUnderStock struct {
	*stockMaster
	id   string
	conf string
	proc *process
}

func (c *minionUnderStock) equal(want, got any) {
	c.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("unexpected return (-want +got):\n%s", diff)
	}
}

// startMinion starts brine's minion in the parent test, so that it outlives the step.
func (c *minionUnderStock) startMinion(parent *testing.T) {
	c.t.Helper()
	c.proc = start(parent, ours("salt-minion"), "-c", c.conf)
}

func (c *minionUnderStock) pendingThenAccepted() {
	c.startMinion(c.root)
	await(c.t, "the key is pending", func() bool { return slices.Contains(c.keys("minions_pre"), c.id) })
	mark := c.bus.mark()
	c.accept()
	start := c.bus.wait(mark, "salt/minion/"+c.id+"/start")
	if text, _ := start.Data["data"].(string); !strings.HasPrefix(text, "Minion "+c.id+" started at ") {
		c.t.Errorf("start event says %q", text)
	}
	c.equal(true, c.cmd(c.id, "test.ping"))
}

// accept accepts the key. Stock rewrites a pending key at every sign-in, and may not find it during that time.
func (c *minionUnderStock) accept() {
	c.t.Helper()
	await(c.t, "the key is accepted", func() bool {
		c.must("accept", query{"id": c.id})
		return slices.Contains(c.keys("minions"), c.id)
	})
}

func (c *minionUnderStock) targets() {
	c.cmd(c.id, "saltutil.refresh_pillar")
	for _, target := range []struct {
		kind, tgt string
		match     bool
	}{
		{"glob", "o?rs", true}, {"pcre", "ou(rs|ch)$", true}, {"list", "ours,other", true},
		{"grain", "os_family:Debian", true}, {"grain", "nest:deep:two", true}, {"grain_pcre", "role:^test.*", true},
		{"pillar", "color:blue", true}, {"pillar", "nested:list:b", true}, {"pillar_pcre", "color:b.*", true},
		{"ipcidr", "127.0.0.0/8", true},
		{"compound", "G@role:tester and not E@other.* and ( ours or I@color:red )", true},
		{"compound", "G@role:tester and I@color:red", false}, {"grain", "role:nobody", false},
	} {
		// A target that matches no minion needs only a short wait.
		timeout := 5
		if target.match {
			timeout = 20
		}
		got := c.run(query{"tgt": target.tgt, "tgt_type": target.kind, "fun": "test.echo", "arg": []any{"hit"}, "timeout": timeout})
		if _, hit := got[c.id]; hit != target.match {
			c.t.Errorf("%s target %q: hit is %v, want %v", target.kind, target.tgt, hit, target.match)
		}
	}
}

func (c *minionUnderStock) oddOutput() {
	c.equal("smørrebrød ☃ 𝄞", c.cmd(c.id, "cmd.run", "printf 'smørrebrød ☃ 𝄞'"))
	size := 5_000_000
	if c.transport == "ws" {
		size = 3_000_000 // stock's websocket limit is 4 MiB for a message
	}
	big, _ := c.cmd(c.id, "cmd.run", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)).(string)
	if big != strings.Repeat("x", size) {
		c.t.Errorf("%d bytes of output came back as %d", size, len(big))
	}
	all, _ := c.cmd(c.id, "cmd.run_all", "printf 'a\\377b'; echo err >&2; exit 3").(map[string]any)
	c.equal(float64(3), all["retcode"])
	c.equal("err", all["stderr"])
	c.equal("a\ufffdb", all["stdout"])
	got := c.run(query{"tgt": c.id, "fun": "cmd.run", "arg": []any{"exit 42"}})[c.id]
	c.equal(float64(42), got.Retcode)
}

func (c *minionUnderStock) saltCall() {
	call := func(args ...string) map[string]any {
		c.t.Helper()
		out, code := output(c.t, ours("salt-call"), append([]string{"-c", c.conf, "--out=json"}, args...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			c.t.Fatalf("salt-call %q ended with %d and %q", args, code, out)
		}
		return v
	}
	want := map[string]any{"color": "blue", "nested": map[string]any{"size": 7.0, "list": []any{"a", "b"}}}
	c.equal(map[string]any{"local": want}, call("pillar.items"))
	dest := c.t.TempDir() + "/hello.txt"
	c.equal(map[string]any{"local": dest}, call("cp.get_file", "salt://hello.txt", dest))
	b, _ := os.ReadFile(dest)
	c.equal("hello from the file server\n", string(b))
	big := c.t.TempDir() + "/big.bin"
	call("cp.get_file", "salt://big.bin", big)
	b, _ = os.ReadFile(big)
	if string(b) != strings.Repeat("0123456789abcdef", 200_000) {
		c.t.Errorf("big.bin arrived with %d bytes", len(b))
	}
	if _, code := output(c.t, ours("salt-call"), "-c", c.conf, "nope.nope"); code != 255 {
		c.t.Errorf("salt-call of a missing function ended with %d, want 255", code)
	}
}

// program installs a program next to the configuration of the running minion and calls it from the master.
func (c *minionUnderStock) program() {
	text, err := os.ReadFile("../examples/plugins/hello.sh")
	if err != nil {
		c.t.Fatal(err)
	}
	dir := filepath.Join(c.conf, "modules.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hello.sh"), text, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.equal("Hello Ada", c.cmd(c.id, "hello.world", "Ada"))
	c.equal("ERROR executing 'hello.world': name: 'A1' does not match ^[A-Za-z ]+$", c.cmd(c.id, "hello.world", "A1"))
	c.equal([]any{"hello.world"}, c.cmd(c.id, "sys.list_functions", "hello"))
}

func (c *minionUnderStock) eventAndMine() {
	mark := c.bus.mark()
	c.equal(true, c.cmd(c.id, "event.send", "my/own/tag", map[string]any{"size": 3, "name": "x"}))
	e := c.bus.wait(mark, "my/own/tag")
	data, _ := e.Data["data"].(map[string]any)
	c.equal(3.0, data["size"])
	c.equal(c.id, e.Data["id"])
	c.equal(true, c.cmd(c.id, "mine.send", "test.echo", "kept"))
	c.equal(map[string]any{c.id: "kept"}, c.cmd(c.id, "mine.get", "*", "test.echo"))
}

func (c *minionUnderStock) killJob() {
	one, two := c.sleep(3001), c.sleep(3002)
	jid := c.publish(query{"tgt": c.id, "fun": "cmd.run", "arg": []any{one + " & " + two + "; wait"}})
	await(c.t, "the job runs", func() bool { return running(two) })
	job, _ := c.cmd(c.id, "saltutil.find_job", jid).(map[string]any)
	c.equal(jid, job["jid"])
	c.cmd(c.id, "saltutil.kill_job", jid)
	await(c.t, "the job's processes are gone", func() bool { return !running(one) && !running(two) })
	c.equal(map[string]any{}, c.cmd(c.id, "saltutil.find_job", jid))
}

// running reports whether a process with that command line exists. A test asks a stock minion about a job only after
// the job's command runs: saltutil.running and its kin remove the proc file of a job that has just created it and not
// yet written it (_read_proc_file in salt/utils/minion.py), and never find that job again.
func running(command string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		if strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ") == command {
			return true
		}
	}
	return false
}

func (c *minionUnderStock) rotation() {
	drop := c.dir + "/cache/.dfn"
	id := ""
	if c.line != "3006" {
		host, err := os.Hostname()
		if err != nil {
			c.t.Fatal(err)
		}
		id = host + "_master"
	}
	if err := os.WriteFile(drop, []byte(id), 0o400); err != nil {
		c.t.Fatal(err)
	}
	await(c.t, "the master takes the drop file", func() bool { return !exists(drop) })
	await(c.t, "a ping after the rotation", c.answersPing)
}

// answersPing reports whether the minion answers. On a busy machine a starting master may answer so late that Salt's
// client has given up; callers try again.
func (c *minionUnderStock) answersPing() bool {
	c.t.Helper()
	v, failed := c.driver.call("cmd", query{"tgt": c.id, "fun": "test.ping", "timeout": 15})
	if failed != "" && !strings.Contains(failed, "Salt request timed out") {
		c.t.Fatal(failed)
	}
	reply, _ := v.(map[string]any)
	ret, _ := reply[c.id].(map[string]any)
	return ret["ret"] == true
}

func (c *minionUnderStock) masterRestart() {
	c.down(false)
	c.revive("a ping after the restart", c.answersPing)
}

// revive starts the master again and waits until cond holds. On a busy machine a starting 3008 master over tcp may
// have workers that never answer, and logs "Error in pool routing" for each request. Then the master is restarted, as
// its operator would do.
func (c *minionUnderStock) revive(what string, cond func() bool) {
	c.t.Helper()
	c.up()
	begin := time.Now()
	await(c.t, what, func() bool {
		if cond() {
			return true
		}
		if time.Since(begin) > patience/4 && strings.Contains(tail(c.proc.log), "Error in pool routing") {
			c.t.Log("the stock master's workers answer nothing; it is restarted")
			c.down(true)
			c.up()
			begin = time.Now()
		}
		return false
	})
}

func (c *minionUnderStock) returnDue() {
	begun, end, ended := c.dir+"/begun", c.dir+"/end", c.dir+"/ended"
	job := fmt.Sprintf("touch %s; until test -e %s; do sleep 0.1; done; touch %s; echo worth keeping", begun, end, ended)
	jid := c.publish(query{"tgt": c.id, "fun": "cmd.run", "arg": []any{job}})
	await(c.t, "the job runs", func() bool { return exists(begun) })
	c.down(true)
	write(c.t, end, "")
	await(c.t, "the job has ended without a master", func() bool { return exists(ended) })
	c.revive("the return reaches the master", func() bool {
		cached, _ := c.must("cached", query{"jid": jid}).(map[string]any)
		ret, _ := cached[c.id].(map[string]any)
		return ret["ret"] == "worth keeping"
	})
}

func (c *minionUnderStock) deletedAndAccepted() {
	mark, begin := c.bus.mark(), time.Now()
	c.must("delete", query{"id": c.id})
	// Nothing is published to deleted ids, so the minion cannot notice yet. A call of salt-call sends a request to
	// the master, which makes the key pending again.
	if _, code := output(c.t, ours("salt-call"), "-c", c.conf, "test.ping"); code != 2 {
		c.t.Errorf("salt-call with a key that is not accepted ended with %d, want 2", code)
	}
	await(c.t, "the key is pending again", func() bool { return slices.Contains(c.keys("minions_pre"), c.id) })
	c.accept()
	await(c.t, "a ping after the acceptance", c.answersPing)
	signIns, accepted, starts := 0, 0, 0
	for _, e := range c.bus.since(mark) {
		switch {
		case e.Tag == "salt/auth" && e.Data["id"] == c.id:
			if signIns++; e.Data["act"] == "accept" {
				accepted++
			}
		case e.Tag == "salt/minion/"+c.id+"/start":
			starts++
		}
	}
	// The limit allows a sign-in in each acceptance_wait_time, that of salt-call, and those after refused requests.
	// It allows a start for each accepted sign-in, if there are any, and one that had begun before.
	if most := 6 + int(time.Since(begin)/(900*time.Millisecond)); signIns > most {
		c.t.Errorf("%d sign-ins, want at most %d", signIns, most)
	}
	if starts > accepted+1 {
		c.t.Errorf("%d starts after %d accepted sign-ins", starts, accepted)
	}
}

func (c *minionUnderStock) rejected() {
	c.proc.stop()
	c.must("reject", query{"id": c.id})
	c.startMinion(c.t)
	begin := time.Now()
	c.equal(77, c.proc.wait())
	if d := time.Since(begin); d < 10*time.Second {
		c.t.Errorf("the minion left after %s, stock waits 10 to 20 s", d)
	}
	if !strings.Contains(tail(c.proc.log), "The Salt Master has rejected this minion's public key!") {
		c.t.Error("the log does not tell that the key was rejected")
	}
}
