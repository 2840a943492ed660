//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDuties checks what brine's minion does by itself under stock masters of every line: its schedule, its beacons,
// its returners, and commands to other minions.
func TestDuties(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			m := startStockMaster(t, line, "zeromq", "peer:\n  .*: [test.*]\npeer_run:\n  .*: [test.arg]\n")
			write(t, m.dir+"/pillar/common.sls", "schedule:\n  fromthepillar: {function: test.echo, args: [p], seconds: 2}\n"+
				"beacons:\n  watch:\n    - beacon_module: salt_monitor\n    - salt_fun: [test.ping]\n    - interval: 2\n")
			kept := m.dir + "/kept.json"
			c := &minionUnderStock{stockMaster: m, id: "ours", conf: m.minion(t, "ours", "rawfile_json.filename: "+kept+
				"\nother.rawfile_json.filename: "+kept+".other\nschedule:\n  fromtheconfiguration: {function: test.ping, seconds: 2, returner: rawfile_json}\n")}
			c.startMinion(t)
			await(t, "the key is pending", func() bool { return len(m.keys("minions_pre")) == 1 })
			c.accept()
			c.returnsOfSchedule()
			c.beaconEvents()
			c.manageSchedule()
			c.keptReturns(kept)
			c.publishes()
		})
	}
}

// scheduled waits for a return of a job of the schedule. The master creates the job id for it.
func (c *minionUnderStock) scheduled(name string) map[string]any {
	c.t.Helper()
	for mark := c.bus.mark(); ; {
		e := c.bus.wait(mark, "salt/job/*/ret/"+c.id)
		if e.Data["schedule"] == name {
			return e.Data
		}
		c.bus.mu.Lock()
		for i, x := range c.bus.events[mark:] {
			if x.Tag == e.Tag {
				mark += i + 1
				break
			}
		}
		c.bus.mu.Unlock()
	}
}

func (c *minionUnderStock) returnsOfSchedule() {
	got := c.scheduled("fromthepillar")
	if jid, _ := got["jid"].(string); got["return"] != "p" || got["fun"] != "test.echo" || got["success"] != true || got["retcode"] != 0.0 || len(jid) != 20 {
		c.t.Errorf("the return is %v", got)
	}
	if got := c.scheduled("fromtheconfiguration"); got["return"] != true {
		c.t.Errorf("the return is %v", got)
	}
}

func (c *minionUnderStock) beaconEvents() {
	e := c.bus.wait(c.bus.mark(), "salt/beacon/ours/watch/")
	if e.Data["salt_fun"] != "test.ping" || e.Data["ret"] != true || e.Data["id"] != "ours" {
		c.t.Errorf("the beacon's event is %v", e.Data)
	}
}

// manageSchedule adds a job with a stock master's command, and changes it with stock's salt-call, and brine's, next
// to brine's minion.
func (c *minionUnderStock) manageSchedule() {
	added, _ := c.cmd(c.id, "schedule.add", "added", map[string]any{"__kwarg__": true, "function": "test.echo", "job_args": []any{"x"}, "seconds": 2}).(map[string]any)
	if added["comment"] != "Added job: added to schedule." {
		c.t.Errorf("schedule.add answers %v", added)
	}
	if got := c.scheduled("added"); got["return"] != "x" {
		c.t.Errorf("the return is %v", got)
	}
	text, err := os.ReadFile(c.conf + "/minion.d/_schedule.conf")
	if err != nil || !strings.Contains(string(text), "added:") {
		c.t.Errorf("the saved schedule is %q, %v", text, err)
	}
	for _, call := range []string{stock(c.t, c.line, "salt-call"), ours("salt-call")} {
		out, _ := output(c.t, call, "-c", c.conf, "--out=json", "schedule.list", "return_yaml=False")
		var v struct{ Local map[string]any }
		if err := json.Unmarshal([]byte(out), &v); err != nil || v.Local["added"] == nil || v.Local["fromthepillar"] == nil {
			c.t.Errorf("%s lists %s", filepath.Base(call), out)
		}
	}
	for call, verb := range map[string]string{stock(c.t, c.line, "salt-call"): "disable", ours("salt-call"): "enable"} {
		out, _ := output(c.t, call, "-c", c.conf, "--out=json", "schedule."+verb+"_job", "added")
		if !strings.Contains(out, verb+"d") || strings.Contains(out, "false") {
			c.t.Errorf("%s: %s", verb, out)
		}
	}
	if got, _ := c.cmd(c.id, "schedule.delete", "added").(map[string]any); got["result"] != true {
		c.t.Errorf("schedule.delete answers %v", got)
	}
	if got, _ := c.cmd(c.id, "beacons.list").(string); !strings.Contains(got, "watch:") {
		c.t.Errorf("beacons.list answers %v", got)
	}
}

// keptReturns runs stock's salt command with returners and checks the returns that they store.
func (c *minionUnderStock) keptReturns(kept string) {
	salt := stock(c.t, c.line, "salt")
	output(c.t, salt, "-c", filepath.Dir(c.config()), "--return", "rawfile_json,nosuch", "ours", "test.echo", "kept here")
	output(c.t, salt, "-c", filepath.Dir(c.config()), "--return", "rawfile_json", "--return_config", "other", "ours", "test.echo", "kept there")
	for file, want := range map[string]string{kept: "kept here", kept + ".other": "kept there"} {
		await(c.t, "the return is in "+file, func() bool {
			text, _ := os.ReadFile(file)
			for line := range strings.Lines(string(text)) {
				var v map[string]any
				if json.Unmarshal([]byte(line), &v) == nil && v["return"] == want && v["fun"] == "test.echo" && v["id"] == "ours" {
					return true
				}
			}
			return false
		})
	}
	text, err := os.ReadFile(kept)
	if err != nil || !strings.Contains(string(text), `"schedule": "fromtheconfiguration"`) {
		c.t.Errorf("the schedule's returner has written %q, %v", text, err)
	}
}

func (c *minionUnderStock) publishes() {
	c.equal(map[string]any{"ours": "x"}, c.cmd(c.id, "publish.publish", "*", "test.echo", "x"))
	full, _ := c.cmd(c.id, "publish.full_data", "*", "test.echo", "y").(map[string]any)
	if own, _ := full["ours"].(map[string]any); own["ret"] != "y" {
		c.t.Errorf("publish.full_data answers %v", full)
	}
	c.equal(map[string]any{}, c.cmd(c.id, "publish.publish", "*", "cmd.run", "true"))
	if got, _ := c.cmd(c.id, "publish.runner", "test.arg", "[z]").(map[string]any); got == nil {
		c.t.Error("publish.runner answers nothing")
	}
}
