//go:build chaos && linux

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/interop/vm"
)

// TestChaosHostClocks changes the clock under brine's minion and under brine's master, with peers of brine and of
// stock, and stops the machine for two minutes. After each change, every minion must answer within 45 seconds, the
// running job must return its result, the schedule must continue without a burst, keys must remain valid, and a token
// must be valid or be refused with a reason.
func TestChaosHostClocks(t *testing.T) {
	if !chaosFull() {
		t.Skip("the virtual machine belongs to the full campaign")
	}
	c := newCampaign(t, "Clocks and standstills of a machine",
		"in the machine", "outside", "step", "all answer after", "job in flight", "schedule", "token from before", "join token from before", "after a restart")
	for _, p := range []struct {
		inside, outside string
		start           func(*testing.T, *campaign) *clocked
	}{
		{"our minion", "our master", minionInside("")},
		{"our minion", "stock 3006", minionInside("3006")},
		{"our minion", "stock 3007", minionInside("3007")},
		{"our minion", "stock 3008", minionInside("3008")},
		{"our master", "our minion, stock 3006, 3007, 3008", masterInside},
	} {
		t.Run(strings.ReplaceAll(p.inside+" and "+p.outside, " ", "-"), func(t *testing.T) {
			t.Parallel()
			k := p.start(t, c)
			k.inside, k.outside = p.inside, p.outside
			k.steps()
		})
	}
}

// clocked is a program of brine in a machine with its own clock, and its peers on the host.
type clocked struct {
	t               *testing.T
	c               *campaign
	m               *vm.Machine
	inside, outside string
	program         string   // in the machine
	ids             []string // of the minions

	ping     func() (answers map[string]bool, said string)
	job      func(script string) (jid string)
	result   func(jid string) (returns map[string]any)
	restart  func() // restarts the minions, so that they sign in again
	token    func() (int, string)
	announce func() (id, joinToken string)
	join     func(id, joinToken string) string // the master's decision about a minion with this token
	ticks    func() int                        // number of runs of the schedule
}

// steps runs the rows of a pair.
func (k *clocked) steps() {
	k.answers("the start", patience) // the machine creates its keys in software emulation
	token := "-"
	by := func(d time.Duration) func() {
		return func() { k.m.SetClock(k.m.Clock().Add(d)) }
	}
	const years = 10 * 365 * 24 * time.Hour
	const expired = "the token has expired"
	for _, s := range []struct {
		name  string
		step  func()
		kills bool   // kills the program in the machine
		joins string // the master's decision about an earlier join token, which is valid for a day
	}{
		{"+1 h", by(time.Hour), false, joined},
		{"-1 h", by(-time.Hour), false, joined},
		{"+10 years", by(years), false, expired},
		{"-10 years", by(-years), false, joined},
		{"stands still for 2 min", func() { k.m.Pause(); time.Sleep(2 * time.Minute); k.m.Continue() }, false, joined},
		{"a day behind at the start", func() { k.kill(); by(-24 * time.Hour)(); k.launch() }, true, joined},
		{"right again", by(24 * time.Hour), false, expired},
	} {
		var id, joinToken string
		if k.announce != nil {
			id, joinToken = k.announce()
		}
		jid := k.job("sleep 5; echo slept")
		ticks, since := 0, time.Now()
		if k.ticks != nil {
			ticks = k.ticks()
		}
		s.step()
		after := k.answers(s.name, detectTime)
		job := k.inFlight(s.name, jid, s.kills)
		schedule := "-"
		if k.ticks != nil {
			await(k.t, "the schedule goes on after "+s.name, func() bool { return k.ticks() > ticks })
			n := k.ticks() - ticks
			schedule = fmt.Sprintf("%d runs in %s", n, time.Since(since).Round(time.Second))
			if most := int(time.Since(since)/(5*time.Second)) + 2; n > most {
				k.c.breaks("%s, %s: the schedule ran %d times where it is due %d times", k.inside, s.name, n, most)
			}
		}
		if k.token != nil {
			code, words := k.token()
			token = fmt.Sprint(code)
			if code != http.StatusOK && (code != http.StatusUnauthorized || !strings.Contains(words, "xpired") && !strings.Contains(words, "log in")) {
				k.c.breaks("%s, %s: the token from before gives %d: %s", k.inside, s.name, code, words)
			}
		}
		join := "-"
		if k.join != nil {
			if join = k.join(id, joinToken); join != s.joins {
				k.c.breaks("%s, %s: the join token from before: %q, want %q", k.inside, s.name, join, s.joins)
			}
		}
		k.restart()
		again := k.answers("a restart after "+s.name, detectTime)
		k.c.row(k.inside, k.outside, s.name, after, job, schedule, token, join, again)
	}
}

// joined is the result of join for a valid token.
const joined = "joined"

// answers waits until all minions answer, within a limit, and returns how long that took.
func (k *clocked) answers(after string, limit time.Duration) time.Duration {
	k.t.Helper()
	begin := time.Now()
	for {
		answers, said := k.ping()
		missing := 0
		for _, id := range k.ids {
			if !answers[id] {
				missing++
			}
		}
		d := time.Since(begin).Round(100 * time.Millisecond)
		switch {
		case missing == 0 && d <= limit:
			return d
		case missing == 0:
			k.c.breaks("%s and %s: after %s all answered only after %s", k.inside, k.outside, after, d)
			return d
		case d > patience:
			k.t.Fatalf("%s and %s: %d of %d did not answer after %s:\n%s\n%s", k.inside, k.outside, missing, len(k.ids), after, said, k.log())
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// inFlight waits for the returns of the job that ran while the clock changed. A minion that was killed may return
// that the job was interrupted.
func (k *clocked) inFlight(step, jid string, killed bool) string {
	k.t.Helper()
	var returns map[string]any
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		returns = k.result(jid)
		good, outcome := 0, "returned"
		for _, id := range k.ids {
			text, _ := returns[id].(string)
			switch {
			case text == "slept":
				good++
			case killed && strings.Contains(text, "was interrupted"):
				good++
				outcome = "interrupted"
			}
		}
		if good == len(k.ids) {
			return outcome
		}
	}
	k.c.breaks("%s and %s: after %s the job in flight is %v\n%s", k.inside, k.outside, step, returns, k.log())
	return "lost"
}

// launch starts the program in the machine.
func (k *clocked) launch() {
	k.t.Helper()
	k.m.Must(fmt.Sprintf("setsid %s -c /brine/etc </dev/null >>/brine/out 2>&1 & echo $! >/brine/pid", k.program))
}

// kill kills the program in the machine.
func (k *clocked) kill() {
	k.t.Helper()
	k.m.Must("kill -9 $(cat /brine/pid); while kill -0 $(cat /brine/pid) 2>/dev/null; do sleep 0.1; done")
}

// log returns the end of the output of the program in the machine.
func (k *clocked) log() string {
	out, _, _ := k.m.Run("tail -n 40 /brine/out; tail -n 40 /brine/*.log")
	return out
}

// minionInside starts a machine with brine's minion, under brine's master or a stock one.
func minionInside(line string) func(*testing.T, *campaign) *clocked {
	return func(t *testing.T, c *campaign) *clocked {
		k := &clocked{t: t, c: c, program: "/bin/salt-minion", ids: []string{"vm"}}
		var s *site
		if line != "" {
			master := startStockMaster(t, line, "zeromq", "auto_accept: True\ntimeout: 10")
			s = master.site
			k.ping = func() (map[string]bool, string) {
				// A busy stock master may not answer in time; it is queried again.
				answer, said := master.driver.call("cmd", query{"tgt": "vm", "fun": "test.ping", "arg": []any{}})
				returns, _ := answer.(map[string]any)
				vm, _ := returns["vm"].(map[string]any)
				return map[string]bool{"vm": vm["ret"] == true}, fmt.Sprint(answer, said)
			}
			k.job = func(script string) string {
				return master.publish(query{"tgt": "vm", "fun": "cmd.run", "arg": []any{script}})
			}
			k.result = func(jid string) map[string]any {
				out, _ := output(t, stock(t, line, "salt-run"), "-c", s.dir+"/etc", "--out=json", "jobs.lookup_jid", jid)
				return decoded(out)
			}
		} else {
			s = newSite(t, "zeromq", "auto_accept: True\ntimeout: 10")
			start(t, ours("salt-master"), "-c", s.dir+"/etc")
			salt := func(program string, args ...string) string {
				// A failed command is run again.
				out, _ := exec.Command(ours(program), append([]string{"-c", s.dir + "/etc", "--out=json"}, args...)...).Output()
				return string(out)
			}
			k.commands(salt)
		}
		s.minion(t, "vm", `
schedule:
  tick: {function: cmd.run, args: ['echo tick >>/brine/ticks'], seconds: 5, return_job: false}
`)
		k.boot(s, s.dir+"/vm", "minion", nil)
		k.restart = func() { k.kill(); k.launch() }
		k.ticks = func() int {
			n, _ := strconv.Atoi(strings.TrimSpace(k.m.Must("cat /brine/ticks 2>/dev/null | wc -l")))
			return n
		}
		return k
	}
}

// masterInside starts a machine with brine's master, and minions of all kinds on the host.
func masterInside(t *testing.T, c *campaign) *clocked {
	port := freeport.Port(t)
	s := newSite(t, "zeromq", fmt.Sprintf(`auto_accept: True
timeout: 20
sharedsecret: between us
external_auth: {sharedsecret: {ann: ['.*', '@wheel']}}
rest_cherrypy: {port: %d, host: 0.0.0.0, disable_ssl: true}
`, port))
	k := &clocked{t: t, c: c, program: "/bin/salt-master"}
	k.boot(s, s.dir, "master", []int{s.pub, s.ret, port})
	k.m.Must("for p in salt salt-run salt-key; do ln -s salt-master /bin/$p; done")
	k.commands(func(program string, args ...string) string {
		out, _, err := k.m.Run(fmt.Sprintf("%s -c /brine/etc --out=json '%s' 2>/dev/null", program, strings.Join(args, "' '")))
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
	type minion struct{ program, etc string }
	minions := []minion{{ours("salt-minion"), s.minion(t, "ours", "")}}
	k.ids = []string{"ours"}
	for _, line := range []string{"3006", "3007", "3008"} {
		minions = append(minions, minion{stock(t, line, "salt-minion"), s.minion(t, "stock"+line, "")})
		k.ids = append(k.ids, "stock"+line)
	}
	var running []*process
	k.restart = func() {
		for _, p := range running {
			p.kill()
		}
		running = nil
		for _, m := range minions {
			stale, _ := filepath.Glob(filepath.Dir(m.etc) + "/*.pid")
			for _, name := range stale { // stock's minion refuses to start while the process in this file is a zombie
				_ = os.Remove(name)
			}
			running = append(running, start(t, m.program, "-c", m.etc))
		}
	}
	k.restart()

	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	login := func() (token string) {
		await(t, "the master's HTTP interface takes a log-in", func() bool {
			_, text := request(t, "POST", url+"/login", "", `{"eauth": "sharedsecret", "username": "ann", "password": "between us"}`)
			if m := regexp.MustCompile(`"token": ?"(\w+)"`).FindStringSubmatch(text); m != nil {
				token = m[1]
			}
			return token != ""
		})
		return token
	}
	token := login()
	k.token = func() (int, string) { return request(t, "GET", url+"/stats", token, "") }
	announced := 0
	k.announce = func() (string, string) {
		announced++
		id := fmt.Sprint("join-", announced)
		code, text := request(t, "POST", url+"/v1/minions", login(), fmt.Sprintf(`{"id": %q, "masters": ["127.0.0.1"]}`, id))
		var answer struct{ JSON string }
		var told struct {
			Token string `json:"join_token"`
		}
		if err := errors.Join(json.Unmarshal([]byte(text), &answer), json.Unmarshal([]byte(answer.JSON), &told)); err != nil || told.Token == "" {
			t.Fatalf("the minion %s could not be announced: %d %s, %v", id, code, text, err)
		}
		return id, told.Token
	}
	k.join = func(id, joinToken string) (said string) {
		p := start(t, ours("salt-minion"), "-c", s.minion(t, id, fmt.Sprintf("join_token: %q\n", joinToken)))
		defer p.kill()
		await(t, "the master judges the join token of "+id, func() bool {
			out, _, err := k.m.Run("grep -h 'minion=" + id + " ' /brine/out /brine/*.log")
			switch reason := regexp.MustCompile(`may not join.*reason="([^"]*)"`).FindStringSubmatch(out); {
			case err != nil:
				t.Fatal(err)
			case reason != nil:
				said = reason[1]
			case strings.Contains(out, "Minion joins"):
				said = joined
			}
			return said != ""
		})
		k.m.Must("/bin/salt-key -c /brine/etc -y -d " + id) // the other minions are targeted with '*'
		return said
	}
	return k
}

// commands sets ping, job and result to functions that use brine's programs.
func (k *clocked) commands(salt func(program string, args ...string) string) {
	k.ping = func() (map[string]bool, string) {
		out := salt("salt", "--static", "*", "test.ping")
		answers := map[string]bool{}
		for id, v := range decoded(out) {
			answers[id] = v == true
		}
		return answers, out
	}
	k.job = func(script string) string {
		jid := regexp.MustCompile(`\d{20}`).FindString(salt("salt", "--async", "*", "cmd.run", script))
		if jid == "" {
			k.t.Fatal("the job was not taken")
		}
		return jid
	}
	k.result = func(jid string) map[string]any { return decoded(salt("salt-run", "jobs.lookup_jid", jid)) }
}

// boot starts the machine with the configuration of a site's program, whose root directory is /brine there, and
// launches the program.
func (k *clocked) boot(s *site, root, name string, ports []int) {
	k.t.Helper()
	b, err := os.ReadFile(root + "/etc/" + name)
	if err != nil {
		k.t.Fatal(err)
	}
	text := strings.NewReplacer(root, "/brine", "master: 127.0.0.1", "master: "+vm.Host, "interface: 127.0.0.1", "interface: 0.0.0.0").Replace(string(b))
	file := tempDir(k.t) + "/config"
	write(k.t, file, text)
	k.m = vm.Boot(k.t, vm.Options{Ports: ports, Files: map[string]string{k.program: ours("brine-" + name), "/brine/etc/" + name: file}})
	k.launch()
}

// decoded returns the JSON object that a command printed, or nil.
func decoded(text string) map[string]any {
	var v map[string]any
	_ = json.Unmarshal([]byte(text), &v)
	return v
}

// request sends a request to an HTTP interface and returns the status and the body.
func request(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	if token != "" {
		q.Header.Set("X-Auth-Token", token)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

// TestChaosHostQuota uses up the disk quota under a minion and under a master that run as a separate user, because
// root has no quota.
func TestChaosHostQuota(t *testing.T) {
	if !chaosFull() {
		t.Skip("the virtual machine belongs to the full campaign")
	}
	c := newCampaign(t, "A quota that is used up", "of", "asked", "answered", "told why", "answers again after")
	tool := tempDir(t) + "/setquota"
	build := exec.Command("go", "build", "-o", tool, "./vm/setquota")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	image := tempDir(t) + "/image"
	if out, err := exec.Command("sh", "-c", `truncate -s 32M "$1"; mkfs.ext4 -q -m 0 -O quota -E quotatype=usrquota "$1"`, "sh", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := newSite(t, "zeromq", "auto_accept: True\ntimeout: 10")
	s.minion(t, "vm", "")
	files := map[string]string{"/image": image, "/bin/setquota": tool, "/bin/salt-minion": ours("brine-minion"), "/bin/salt-master": ours("brine-master")}
	for side, root := range map[string]string{"master": s.dir, "minion": s.dir + "/vm"} {
		b, err := os.ReadFile(root + "/etc/" + side)
		if err != nil {
			t.Fatal(err)
		}
		file := tempDir(t) + "/config"
		write(t, file, strings.NewReplacer(root, "/quota/"+side, "user: root", "user: brine").Replace(string(b)))
		files["/etc/salt/"+side] = file
	}
	m := vm.Boot(t, vm.Options{Files: files})
	m.Must(`mkdir -p /quota && mount -o loop,usrquota /image /quota && setquota /dev/loop0 1000 16384
echo brine:x:1000:1000:brine:/quota:/bin/sh >>/etc/passwd; echo brine:x:1000: >>/etc/group
mkdir /quota/master /quota/minion; chown -R brine:brine /quota /etc/salt; ln -s salt-master /bin/salt
for side in master minion; do setsid su brine -c "exec salt-$side -c /etc/salt" </dev/null >/tmp/$side 2>&1 & done`)
	ping := func() (bool, string) {
		out, code, err := m.Run("su brine -c 'salt -c /etc/salt --static --out=json -t 10 vm test.ping'")
		if err != nil {
			t.Fatal(err)
		}
		return code == 0 && strings.Contains(out, `"vm": true`), fmt.Sprintf("exit code %d\n%s", code, out)
	}
	logs := func() string { return m.Must("tail -n 30 /tmp/master /tmp/minion") }
	await(t, "the minion answers", func() bool { ok, _ := ping(); return ok })
	m.Must("su brine -c 'dd if=/dev/zero of=/quota/filler bs=1k 2>/dev/null'; ! su brine -c 'echo x >/quota/more' 2>/dev/null || test ! -s /quota/more")
	answered, told, last := 0, 0, ""
	const asked = 5
	for range asked {
		ok, text := ping()
		switch {
		case ok:
			answered++
		case strings.Contains(text, "quota") && !strings.Contains(text, "No minions matched"):
			told++
		default:
			last = text
		}
	}
	if answered+told != asked {
		c.breaks("of %d questions %d were answered and for %d the cause was told; the last other one:\n%s\n%s", asked, answered, told, last, logs())
	}
	m.Must("rm /quota/filler")
	begin := time.Now()
	await(t, "the minion answers again", func() bool { ok, _ := ping(); return ok })
	c.row("master and minion", asked, answered, told, time.Since(begin).Round(100*time.Millisecond))
	if out, code, err := m.Run("kill -0 $(cat /quota/master/master.pid) && kill -0 $(cat /quota/minion/minion.pid)"); err != nil || code != 0 {
		c.breaks("one of the programs ended: %s %v\n%s", out, err, logs())
	}
}
