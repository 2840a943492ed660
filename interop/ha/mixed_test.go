//go:build interop && linux

package ha

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// The versions of the two builds. The schema of the newer one has a table more, and a column more in every table.
const older, newer = "0.1.0", "0.2.0"

// A mixed is two masters with one database and two minions, each of which runs one of the two builds.
type mixed struct {
	t        *testing.T
	dir, dsn string
	pub, ret int
	stop     map[string]func()
}

// buildBoth builds the masters and the minions of both versions: dir/VERSION/brine-master.
func buildBoth(t *testing.T, dir string) {
	t.Helper()
	migrate, err := filepath.Abs("../../master/store/sqlstore/migrate.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(migrate)
	if err != nil {
		t.Fatal(err)
	}
	statements := "`CREATE TABLE brine_later (id {text} NOT NULL PRIMARY KEY{end}`,\n"
	for _, table := range []string{"job", "ret", "orders", "delivery", "minion", "brine_key", "brine_secret", "brine_lease",
		"brine_counter", "brine_relay", "brine_seen", "brine_data", "brine_piece", "brine_order_content", "brine_label"} {
		statements += "`ALTER TABLE " + table + " ADD COLUMN later {int}`,\n"
	}
	text := strings.Replace(string(source), "const Version = 3", "const Version = 4", 1)
	text = strings.Replace(text, "\n\t}}\n}\n", "\n\t}, {\n"+statements+"\t}}\n}\n", 1)
	if !strings.Contains(text, "const Version = 4") || !strings.Contains(text, statements) {
		t.Fatalf("there is no place for a migration in %s", migrate)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{migrate: dir + "/migrate.go"}})
	if err == nil {
		err = errors.Join(os.WriteFile(dir+"/migrate.go", []byte(text), 0o600), os.WriteFile(dir+"/overlay.json", overlay, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for version, args := range map[string][]string{older: nil, newer: {"-overlay", dir + "/overlay.json"}} {
		out := filepath.Join(dir, version) + "/"
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"build", "-ldflags", "-s -X github.com/brine-salt/brine/internal/version.release=" + version, "-o", out}, args...)
		cmd := exec.CommandContext(t.Context(), "go", append(args, "./cmd/brine-master", "./cmd/brine-minion")...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
}

// run starts a program in place of the one that has this name, which is ended first.
func (x *mixed) run(name, version, program string, args ...string) {
	x.t.Helper()
	x.end(name)
	cmd := exec.Command(filepath.Join(x.dir, version, program), append(args, "-c", filepath.Join(x.dir, name), "-l", "warning")...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	x.stop[name] = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if x.t.Failed() && log.Len() > 0 {
			x.t.Logf("%s of %s said:\n%s", name, version, log.Bytes()[max(0, log.Len()-3000):])
		}
	}
}

func (x *mixed) end(name string) {
	if stop := x.stop[name]; stop != nil {
		stop()
		delete(x.stop, name)
	}
}

// configure writes the configuration of a master or a minion.
func (x *mixed) configure(name, file, text string) {
	x.t.Helper()
	dir := filepath.Join(x.dir, name)
	text = fmt.Sprintf("root_dir: %[1]s\npki_dir: %[1]s/pki\ncachedir: %[1]s/cache\nsock_dir: %[1]s/run\npidfile: %[1]s/pid\nlog_file: %[1]s/log\n"+
		"publish_port: %[2]d\nuser: root\n", dir, x.pub) + text
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
		x.t.Fatal(err)
	}
}

// command runs a command line of a master's host.
func (x *mixed) command(at, version string, args ...string) (string, error) {
	args = append([]string{args[0], "-c", filepath.Join(x.dir, at)}, args[1:]...)
	cmd := exec.CommandContext(x.t.Context(), filepath.Join(x.dir, version, "brine-master"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v at %s: %w\n%s%s", args, at, err, out, stderr.Bytes())
	}
	return string(out), err
}

// await calls f until it returns nil.
func (x *mixed) await(what string, f func() error) {
	x.t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			x.t.Fatalf("%s: %v", what, err)
		}
	}
}

// ask sends a request to the HTTP interface of a master.
func (x *mixed) ask(at, method, path string, body, answer any) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(x.dir, at, "api"))
	}}}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(x.t.Context(), method, "http://master"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s %w", method, path, resp.Status, said, err)
	}
	return json.Unmarshal(said, answer)
}

// schema returns the version of the database's schema.
func (x *mixed) schema() (n int) {
	x.t.Helper()
	db, err := sql.Open("postgres", x.dsn)
	if err == nil {
		defer db.Close()
		err = db.QueryRow("SELECT max(version) FROM brine_schema").Scan(&n)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

// TestMixedBuilds replaces two masters with one database, and their minions, one after the other by a newer build with a newer
// schema, and then goes back the same way. At each step both masters reach both minions, each knows the jobs of the other, at the
// end those of all steps, and an order that one of them takes for an absent minion reaches it after the step. Only a
// schema that forbids it keeps the older build out.
func TestMixedBuilds(t *testing.T) {
	s := testserver.PostgresServer(t)
	dsn := "host=127.0.0.1 user=postgres sslmode=disable port=" + s.Port + " dbname="
	create(t, "postgres", dsn+"postgres")
	dir, err := os.MkdirTemp("", "x") // sockets need short names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &mixed{t: t, dir: dir, dsn: dsn + "brine", pub: freeport.Port(t), ret: freeport.Port(t), stop: map[string]func(){}}
	t.Cleanup(func() {
		for name := range x.stop {
			x.end(name)
		}
	})
	buildBoth(t, dir)
	for version := range map[string]bool{older: true, newer: true} {
		out, err := exec.Command(filepath.Join(dir, version, "brine-master"), "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "v"+version) {
			t.Fatalf("%s %v", out, err)
		}
	}
	sealing := filepath.Join(dir, "sealing")
	if err := os.WriteFile(sealing, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	masters, minions := []string{"one", "two"}, []string{"host1", "host2"}
	for i, name := range masters {
		x.configure(name, "master", fmt.Sprintf("interface: %s\nret_port: %d\nauto_accept: true\ntimeout: 20\nshared_database: postgres://postgres@127.0.0.1:%s/brine?sslmode=disable\n"+
			"shared_key_file: %s\nrest_cherrypy: {socket: %s/api}\nnetapi_enable_clients: [local, runner, wheel]\n"+
			"external_auth: {peer: {'0': ['.*', '@runner', '@wheel']}}\n", addr(i), x.ret, s.Port, sealing, filepath.Join(dir, name)))
	}
	for _, name := range minions {
		x.configure(name, "minion", fmt.Sprintf("id: %s\nmaster: [%s, %s]\nmaster_port: %d\nacceptance_wait_time: 1\nrandom_reauth_delay: 0\nrecon_default: 100\nrecon_max: 500\n"+
			"enable_fqdns_grains: false\nenable_gpu_grains: false\n", name, addr(0), addr(1), x.ret))
	}
	const last = "a newer schema that forbids the older build"
	runs := map[string]string{} // the version that each name runs
	start := func(name, version string) {
		t.Helper()
		kind := "master"
		if slices.Contains(minions, name) {
			kind = "minion"
		}
		x.run(name, version, "brine-"+kind, kind)
		runs[name] = version
	}
	var all, jobs []string // of all steps, and of one
	check := func(step string) {
		t.Helper()
		jobs = nil
		for _, at := range masters {
			x.await(step+": both minions at "+at, func() error {
				out, err := x.command(at, runs[at], "salt", "--out=json", "--static", "*", "test.ping")
				if err != nil {
					return err
				}
				var got map[string]any
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				if d := cmp.Diff(map[string]any{"host1": true, "host2": true}, got); d != "" {
					return errors.New(d)
				}
				return nil
			})
			out, err := x.command(at, runs[at], "salt", "--async", "--out=quiet", "--show-jid", "*", "test.echo", step+" at "+at)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(strings.Fields(out), func(f string) bool { return len(f) == 20 && strings.Trim(f, "0123456789") == "" })
			if i < 0 {
				t.Fatalf("there is no job id in %q", out)
			}
			jobs = append(jobs, strings.Fields(out)[i]+" "+step+" at "+at)
		}
		all = append(all, jobs...)
		if step == last { // all is then as it was, and nothing of the steps before is lost
			jobs = all
		}
		for _, at := range masters {
			for _, job := range jobs {
				jid, want, _ := strings.Cut(job, " ")
				x.await(step+": the job of "+want+" as "+at+" knows it", func() error {
					out, err := x.command(at, runs[at], "run", "--out=json", "jobs.lookup_jid", jid)
					if err == nil && strings.Count(out, `"`+want+`"`) != 2 {
						err = fmt.Errorf("it is %s", out)
					}
					return err
				})
			}
		}
	}
	start("one", older)
	start("two", older)
	for _, name := range minions {
		start(name, older)
	}
	check("the older build")
	if n := x.schema(); n != 3 {
		t.Fatalf("the schema has version %d", n)
	}
	placed := 0
	for _, step := range []struct{ name, version string }{{"two", newer}, {"host1", newer}, {"one", newer}, {"host2", newer},
		{"two", older}, {"host1", older}, {"one", older}, {"host2", older}} {
		what := step.name + " of " + step.version
		// The order is taken by the master that the step leaves alone, for a minion that is not there.
		taker, absent := "one", "host2"
		if step.name == taker {
			taker = "two"
		}
		if step.name == "host2" {
			absent = "host1"
		}
		placed++
		id := fmt.Sprintf("mixed-%d", placed)
		x.end(absent)
		var out struct {
			Done    bool
			Minions map[string]struct {
				Status string
				Return any
			}
		}
		order := map[string]any{"id": id, "tgt": []string{absent}, "fun": "test.echo", "arg": []string{what}, "ttl": 600}
		if err := x.ask(taker, http.MethodPost, "/v1/jobs", order, &out); err != nil || out.Done {
			t.Fatalf("%s: %+v %v", what, out, err)
		}
		start(step.name, step.version)
		start(absent, runs[absent])
		for _, at := range masters {
			x.await(what+": the order as "+at+" knows it", func() error {
				err := x.ask(at, http.MethodGet, "/v1/jobs/"+id+"?wait=5", nil, &out)
				if got := out.Minions[absent]; err == nil && (!out.Done || got.Status != "returned" || got.Return != what) {
					err = fmt.Errorf("it is %+v", out)
				}
				return err
			})
		}
		check(what)
		if n := x.schema(); n != 4 {
			t.Fatalf("%s: the schema has version %d", what, n)
		}
	}

	// The newer build may have changed what the older one uses.
	db, err := sql.Open("postgres", x.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO brine_counter (name, n) VALUES ('least_version', 4)"); err != nil {
		t.Fatal(err)
	}
	x.end("two")
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, older, "brine-master"), "master", "-c", filepath.Join(dir, "two"), "-l", "error").CombinedOutput()
	if want := "its version is 4, newer than 3, and only brine of version 4 or later can use it"; err == nil || !strings.Contains(string(said), want) {
		t.Errorf("the older build: %v\n%s", err, said)
	}
	start("two", newer)
	start("one", newer)
	check(last)
}
