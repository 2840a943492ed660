//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/cmd/internal/repository"
	"github.com/brine-salt/brine/cmd/internal/update"
	"github.com/brine-salt/brine/internal/buildflags"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/events"
)

// Versions in the test. All working programs are the same build, with its version replaced by another of the same
// length.
const (
	first  = "1.0.0-test"
	second = "1.1.0-test"
	third  = "1.3.0-test"
	fourth = "1.4.0-test"
	fifth  = "1.5.0-test"
	broken = "1.2.0-test" // starts but does not sign in
)

// brokenMinion is a minion that never signs in.
const brokenMinion = `package main

import ("fmt"; "os"; "time")

func main() {
	if os.Args[len(os.Args)-1] == "--version" {
		fmt.Println("salt-minion 3007.16, brine v` + broken + `")
		return
	}
	_ = os.WriteFile(os.Args[3]+"/minion.pid", []byte(fmt.Sprint(os.Getpid())), 0o600)
	time.Sleep(time.Hour)
}
`

// restartScript is the test's service manager: it stops the minion and starts the installed program.
const restartScript = `#!/bin/sh
if pid=$(cat %[1]s/minion.pid 2>/dev/null); then
	kill "$pid" 2>/dev/null
	while [ -e /proc/$pid/exe ]; do sleep 0.05; done
	rm -f %[1]s/minion.pid
fi
setsid %[1]s/bin/brine-minion minion -c %[1]s -l warning </dev/null >>%[1]s/log 2>&1 &
`

// fleet is a master, a repository and a host.
type fleet struct {
	t      *testing.T
	dir    string
	master *master.Master
	repo   *repository.Repository
	build  []byte
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func goBuild(t *testing.T, dir, out string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", out}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	prereq.Root(t)                    // update.yaml is a file of root
	dir, err := os.MkdirTemp("", "u") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fleet{t: t, dir: dir}
	for _, d := range []string{"bin", "keys", "tiny", "sock", "srv"} {
		f.must(os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	flags := buildflags.Release("custom,modules.agent,modules.saltutil,modules.test,modules.cp,modules.sys,modules.cmdmod,modules.schedule")
	goBuild(t, "../brine-minion", dir+"/tiny/minion", append(flags, "-ldflags=-s -X github.com/brine-salt/brine/internal/version.release="+first, ".")...)
	f.build, err = os.ReadFile(dir + "/tiny/minion")
	f.must(err)
	if n := bytes.Count(f.build, []byte(first)); n == 0 {
		t.Fatal("the program does not have its version")
	}
	goBuild(t, ".", dir+"/bin/brine-update", ".")
	t.Setenv("PATH", dir+"/bin:"+os.Getenv("PATH"))
	f.startMaster()
	f.makeRepository()
	f.prepare("host")
	return f
}

// prepare installs a minion's program and configuration below the directory, and a script that restarts it.
func (f *fleet) prepare(id string) {
	f.t.Helper()
	f.must(os.WriteFile(f.dir+"/bin/brine-minion", f.build, 0o755))
	f.must(os.WriteFile(f.dir+"/restart", fmt.Appendf(nil, restartScript, f.dir), 0o755))
	f.must(os.WriteFile(f.dir+"/minion", fmt.Appendf(nil, "id: %s\nroot_dir: %[2]s\npki_dir: %[2]s/pki\ncachedir: %[2]s/cache\nsock_dir: %[2]s/sock\n"+
		"pidfile: %[2]s/minion.pid\nmaster: 127.0.0.1\nmaster_port: %[3]d\nlog_file: %[2]s/log\n", id, f.dir, f.master.RequestAddr().(*net.TCPAddr).Port), 0o644))
	f.t.Cleanup(func() {
		if pid, err := os.ReadFile(f.dir + "/minion.pid"); err == nil {
			_ = exec.Command("kill", "-9", strings.TrimSpace(string(pid))).Run()
		}
	})
}

func (f *fleet) startMaster() {
	f.t.Helper()
	m, err := master.New(master.Options{Network: master.Loopback(), Keys: master.KeyOptions{AutoAccept: true},
		Files: master.FileOptions{Roots: map[string][]string{"base": {f.dir + "/srv"}}}, Log: slog.New(slog.DiscardHandler)})
	f.must(err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	f.t.Cleanup(func() {
		stop()
		<-served
	})
	<-m.Ready()
	f.master = m
}

func (f *fleet) makeRepository() {
	f.t.Helper()
	for _, k := range []string{"root.1", "root.2", "targets", "snapshot", "timestamp", "stable", "edge"} {
		f.must(repository.NewKey(filepath.Join(f.dir, "keys", k+".pem")))
	}
	f.repo = &repository.Repository{Dir: f.dir + "/srv/updates", Keys: f.dir + "/keys", Threshold: 2, Life: repository.DefaultLifetimes, Now: time.Now}
	f.must(f.repo.Init())
	root, err := os.ReadFile(f.repo.Dir + "/metadata/1.root.json")
	f.must(err)
	f.must(os.WriteFile(filepath.Join(f.dir, update.RootFile), root, 0o644))
}

func (f *fleet) add(version string, program []byte) {
	f.t.Helper()
	f.must(os.WriteFile(f.dir+"/tiny/new", program, 0o600))
	f.must(f.repo.Add("stable", version, map[string]string{"linux-" + runtime.GOARCH: f.dir + "/tiny/new"}))
}

// addBroken adds the version that does not sign in.
func (f *fleet) addBroken() {
	f.t.Helper()
	f.must(os.WriteFile(f.dir+"/tiny/main.go", []byte(brokenMinion), 0o600))
	f.must(os.WriteFile(f.dir+"/tiny/go.mod", []byte("module tiny\n"), 0o600))
	goBuild(f.t, f.dir+"/tiny", f.dir+"/tiny/broken", ".")
	program, err := os.ReadFile(f.dir + "/tiny/broken")
	f.must(err)
	f.add(broken, program)
}

// good returns the build with another version.
func (f *fleet) good(version string) []byte {
	return bytes.ReplaceAll(f.build, []byte(first), []byte(version))
}

// configure writes update.yaml.
func (f *fleet) configure(source string, enabled bool) {
	f.t.Helper()
	f.must(os.WriteFile(filepath.Join(f.dir, update.ConfigFile), fmt.Appendf(nil,
		"update_enabled: %v\nsource: %s\nprogram: %s/bin/brine-minion\nstate_dir: %[3]s/state\nrestart: [%[3]s/restart]\nhealth_seconds: 5\n",
		enabled, source, f.dir), 0o644))
}

// starts waits for the event of the minion's next sign-in since the subscription.
func (f *fleet) starts(sub *events.Subscription) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if _, err := sub.Next(ctx); err != nil {
		log, _ := os.ReadFile(f.dir + "/log")
		f.t.Fatalf("the minion does not sign in: %v\n%s", err, log)
	}
}

func (f *fleet) watch(prefix string) *events.Subscription {
	return f.master.Events().Subscribe(events.SubscribeOptions{Prefix: prefix})
}

func (f *fleet) call(fun string, args ...any) master.Result {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	got, err := f.master.Run(ctx, master.Job{Fun: fun, Tgt: "host", Args: args})
	f.must(err)
	r, ok := got["host"]
	if !ok {
		f.t.Fatalf("%s: no return arrives: %v", fun, got)
	}
	return r
}

// settled waits until no trial of a version is running, and returns the status.
func (f *fleet) settled() update.Status {
	f.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command(f.dir+"/bin/brine-update", "-c", f.dir, "status", "--json").Output()
		f.must(err)
		var s update.Status
		f.must(json.Unmarshal(out, &s))
		if s.Trial == nil && s.Connected {
			return s
		}
	}
	f.t.Fatal("the update is not settled after a minute")
	panic("unreachable")
}

// TestUpgrade updates a real minion on its master's orders: from a web server and from the master's files, to a
// program that does not sign in and back, with updates switched off, with the host's own command, and by schedules.
func TestUpgrade(t *testing.T) {
	f := newFleet(t)
	web := httptest.NewServer(http.FileServer(http.Dir(f.repo.Dir)))
	defer web.Close()
	f.add(second, f.good(second))
	f.configure(web.URL, true)
	sub := f.watch("salt/minion/host/start")
	defer sub.Close()
	f.must(exec.Command(f.dir + "/restart").Run())
	f.starts(sub)

	// A job that runs during the update is reported as stopped, and does not run again.
	long, err := f.master.Submit(t.Context(), master.Job{Fun: "test.sleep", Tgt: "host", Args: []any{600}})
	f.must(err)
	r := f.call("agent.update")
	want := map[string]any{"from": first, "to": second, "result": true, "comment": "version " + second + " is in place; the minion restarts with it"}
	if fmt.Sprint(r.Return) != fmt.Sprint(want) || r.Retcode != 0 {
		t.Fatalf("agent.update: %+v", r)
	}
	f.starts(sub)
	if log, _ := os.ReadFile(f.dir + "/state/log"); strings.Contains(string(log), "no test.ping") {
		t.Errorf("the master of brine does not ping: %s", log)
	}
	if s := f.settled(); s.Version != second || s.Slot != "b" || s.Running != f.dir+"/state/slots/b/brine-minion" || s.Slots["a"] != first || s.Result != "updated from "+first+" to "+second {
		t.Fatalf("after the update: %+v", s)
	}
	if res, err := long.Next(t.Context()); err != nil || !strings.Contains(fmt.Sprint(res.Return), "the minion was stopped while this job ran") {
		t.Errorf("the job that ran meanwhile: %+v %v", res, err)
	}

	// A version that does not sign in is rolled back.
	f.addBroken()
	if r := f.call("saltutil.update", broken); !r.Success || !strings.Contains(fmt.Sprint(r.Return), "version "+broken+" is in place") {
		t.Fatalf("saltutil.update: %+v", r)
	}
	begin := time.Now()
	f.starts(sub)
	took := time.Since(begin)
	t.Logf("the old program is signed in again %.1f s after the return of the order, with health_seconds: 5", took.Seconds())
	if took > 20*time.Second {
		t.Errorf("the way back took %s", took)
	}
	s := f.settled()
	if s.Version != second || fmt.Sprint(s.Failed) != "["+broken+"]" || !strings.HasPrefix(s.Result, "went back from "+broken+" to "+second+": after 5s it does not answer: ") {
		t.Fatalf("after the way back: %+v", s)
	}
	if r := f.call("test.ping"); r.Return != true {
		t.Errorf("test.ping: %+v", r)
	}
	if r := f.call("agent.update"); r.Success || !strings.Contains(fmt.Sprint(r.Return), "version "+broken+" did not sign in when it was tried") {
		t.Errorf("a version that failed: %+v", r)
	}

	// The host's administrator can switch updates off.
	f.configure(web.URL, false)
	off := "updates are switched off on this host: update_enabled is not true in " + f.dir + "/update.yaml"
	if r := f.call("agent.update", second); r.Success || !strings.Contains(fmt.Sprint(r.Return), off) {
		t.Errorf("with the switch off: %+v", r)
	}
	if log, err := os.ReadFile(f.dir + "/state/log"); err != nil || !strings.Contains(string(log), off) {
		t.Errorf("the log has %q (%v)", log, err)
	}

	// from the files of the master
	f.add(third, f.good(third))
	f.configure("salt://updates", true)
	if r := f.call("agent.update"); !r.Success || !strings.Contains(fmt.Sprint(r.Return), "version "+third+" is in place") {
		t.Fatalf("from the master's files: %+v", r)
	}
	f.starts(sub)
	if s := f.settled(); s.Version != third || s.Slot != "a" || s.Slots["b"] != second {
		t.Errorf("after the update from the master's files: %+v", s)
	}
	if out, err := exec.Command(f.dir+"/bin/brine-update", "-c", f.dir, "now").Output(); err != nil || string(out) != "version "+third+" is installed already\n" {
		t.Errorf("brine-update now: %s %v", out, err)
	}

	// by schedules: one of the master, and one in the host's own configuration
	f.add(fourth, f.good(fourth))
	got, err := f.master.Run(t.Context(), master.Job{Fun: "schedule.add", Tgt: "host", Args: []any{"update"},
		Kwargs: map[string]any{"function": "agent.update", "seconds": 2, "persist": false}})
	f.must(err)
	if r := got["host"]; !r.Success {
		t.Fatalf("schedule.add: %+v", r)
	}
	f.starts(sub)
	if s := f.settled(); s.Version != fourth || s.Result != "updated from "+third+" to "+fourth {
		t.Errorf("after a master's schedule: %+v", s)
	}
	f.add(fifth, f.good(fifth))
	conf, err := os.OpenFile(f.dir+"/minion", os.O_APPEND|os.O_WRONLY, 0)
	f.must(err)
	_, err = conf.WriteString("schedule: {update: {function: agent.update, seconds: 2}}\n")
	f.must(err)
	f.must(conf.Close())
	f.must(exec.Command(f.dir + "/restart").Run())
	f.starts(sub)
	f.starts(sub)
	if s := f.settled(); s.Version != fifth || s.Result != "updated from "+fourth+" to "+fifth {
		t.Errorf("after the host's schedule: %+v", s)
	}
}
