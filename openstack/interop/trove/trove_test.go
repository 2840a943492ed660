//go:build openstack && trove

package trove

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTroveInstance is an instance's life by the command line of Trove's users.
func TestTroveInstance(t *testing.T) {
	id := create(t, "life", "10.11", "--databases", "shop", "--users", "ann:"+canary)
	healthy(t, id)
	g := guestOf(t, "life")
	if !g.minion {
		t.Fatal("the machine was not told of the Salt master")
	}
	if got := g.calls(t); got["prepare"] != 1 {
		t.Errorf("the guest ran %v, want prepare once", got)
	}
	if got := sql(t, "select count(*) from root_enabled_history where id = '"+id+"'"); got != "1" {
		t.Errorf("%s rows say that root was used, want 1", got)
	}
	var instance struct {
		Status          string
		OperatingStatus string `json:"operating_status"`
	}
	must(t, openstack(t, &instance, "instance", "show", id))
	if instance.Status != "ACTIVE" || instance.OperatingStatus != "HEALTHY" {
		t.Errorf("the instance is %+v", instance)
	}

	must(t, openstack(t, nil, "db", "create", id, "stock"))
	must(t, openstack(t, nil, "user", "create", id, "bob", canary, "--databases", "stock"))
	eventually(t, "the user bob", func() bool { return g.calls(t)["create_user"] == 1 })
	var users []struct{ Name string }
	must(t, openstack(t, &users, "user", "list", id))
	if len(users) != 2 || users[0].Name != "ann" || users[1].Name != "bob" {
		t.Errorf("the users are %+v", users)
	}
	var databases []struct{ Name string }
	must(t, openstack(t, &databases, "db", "list", id))
	if len(databases) != 2 || databases[0].Name != "shop" || databases[1].Name != "stock" {
		t.Errorf("the databases are %+v", databases)
	}

	var backup struct{ ID string }
	must(t, openstack(t, &backup, "backup", "create", "nightly", "--instance", id))
	row := func() string {
		return sql(t, "select concat_ws(' ', state, size, checksum, location) from backups where id = '"+backup.ID+"'")
	}
	eventually(t, "the backup", func() bool { return strings.HasPrefix(row(), "COMPLETED") })
	if want := "COMPLETED 0.25 abc http://object/" + backup.ID; row() != want {
		t.Errorf("the backup is %q, want %q", row(), want)
	}

	must(t, openstack(t, nil, "instance", "delete", id))
	eventually(t, "the instance is gone", func() bool { return sql(t, "select deleted from instances where id = '"+id+"'") == "1" })
	if n := g.calls(t)["stop_db"]; n != 1 {
		t.Errorf("the guest was stopped %d times", n)
	}
	for _, i := range nova.Instances() {
		if i.Name == "life" {
			t.Errorf("Nova has %+v still", i)
		}
	}
	eventually(t, "the minion is revoked", func() bool { return !announced(t, id) })
}

// announced reports whether the master knows the minion of an instance.
func announced(t *testing.T, id string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket",
		filepath.Join(dbaas.Master, "api.sock"), "http://x/v1/minions/"+id).Output()
	must(t, err)
	return string(out) == "200"
}

// TestTroveT3PrepareBeforeGuest: prepare is sent before the guest exists, and runs once.
func TestTroveT3PrepareBeforeGuest(t *testing.T) {
	late := 5 * time.Second
	if os.Getenv("BRINE_OPENSTACK") == "full" {
		late = time.Minute
	}
	mu.Lock()
	delays["late"] = late
	mu.Unlock()
	id := create(t, "late", "10.11")
	placed := time.Now()
	eventually(t, "prepare is sent", func() bool {
		return sql(t, "select task_id from instances where id = '"+id+"'") == "1" || len(nova.Instances()) > 0 && announced(t, id)
	})
	healthy(t, id)
	if waited := time.Since(placed); waited < late {
		t.Errorf("the instance was healthy after %s, its guest came after %s", waited, late)
	}
	if got := guestOf(t, "late").calls(t); got["prepare"] != 1 {
		t.Errorf("the guest ran %v, want prepare once", got)
	}
}

// TestTroveT4MasterKilled kills the master while a guest works on a call of the task manager, which gets the result all the same.
func TestTroveT4MasterKilled(t *testing.T) {
	id := create(t, "killed", "10.11")
	healthy(t, id)
	g := guestOf(t, "killed")
	must(t, openstack(t, nil, "instance", "restart", id))
	eventually(t, "the guest restarts", func() bool { return g.calls(t)["restart"] == 1 })
	old, err := dbaas.KillMaster()
	must(t, err)
	killed := time.Now()
	// The task ends only when the call returned; a call that failed leaves its error.
	healthy(t, id)
	if d := time.Since(killed); d > 30*time.Second {
		t.Errorf("the task ended %s after the master was killed", d)
	}
	if got := g.calls(t)["restart"]; got != 1 {
		t.Errorf("restart ran %d times", got)
	}
	log, err := os.ReadFile(filepath.Join(cloudL.Dir, "log", "trove-taskmanager.log"))
	must(t, err)
	if bytes.Contains(log, []byte("of the guest "+id)) {
		t.Error("the task manager's log has a failed call")
	}
	eventually(t, "another master", func() bool {
		b, _ := os.ReadFile(dbaas.Master + "/pid")
		return len(bytes.TrimSpace(b)) > 0 && strings.TrimSpace(string(b)) != strconv.Itoa(old)
	})
	// What guests report arrives at the conductor through the new one.
	before := sql(t, "select updated_at from service_statuses where instance_id = '"+id+"'")
	eventually(t, "heartbeats", func() bool {
		return sql(t, "select updated_at from service_statuses where instance_id = '"+id+"'") != before
	})
}

// TestTroveT5Heartbeat: a guest that is silent is in error when its heartbeat has expired, and healthy again when it goes on.
func TestTroveT5Heartbeat(t *testing.T) {
	id := create(t, "silent", "10.11")
	healthy(t, id)
	g := guestOf(t, "silent")
	status := func() string {
		var instance struct {
			OperatingStatus string `json:"operating_status"`
		}
		must(t, openstack(t, &instance, "instance", "show", id))
		return instance.OperatingStatus
	}
	must(t, g.cmd.Process.Signal(syscall.SIGSTOP))
	defer g.cmd.Process.Signal(syscall.SIGCONT)
	eventually(t, "the heartbeat expires", func() bool { return status() == "ERROR" })
	must(t, g.cmd.Process.Signal(syscall.SIGCONT))
	resumed := time.Now()
	eventually(t, "the guest is healthy", func() bool { return status() == "HEALTHY" })
	if d := time.Since(resumed); d > 35*time.Second {
		t.Errorf("it was healthy %s after it went on", d)
	}
}

// TestTroveTimeout: what the guest did not answer in time is ended in the guest.
func TestTroveTimeout(t *testing.T) {
	id := create(t, "slow", "10.11")
	healthy(t, id)
	g := guestOf(t, "slow")
	done := make(chan error, 1)
	go func() { done <- openstack(t, nil, "root", "enable", id) }()
	running := func() bool {
		out, _ := exec.Command("pgrep", "-f", g.dir+"/modules.d/trove.py call trove.enable_root").Output()
		return len(out) > 0
	}
	eventually(t, "enable_root runs", running)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("the user sees %v", err)
	}
	eventually(t, "enable_root has ended", func() bool { return !running() })
}

// TestTroveMixedFleet: an instance on the broker lives beside one on the master, and moves by a rebuild, to and fro.
func TestTroveMixedFleet(t *testing.T) {
	old, young := create(t, "old", broker, "--users", "ann:"+canary), create(t, "young", "10.11", "--users", "eve:"+canary)
	healthy(t, old)
	healthy(t, young)
	if guestOf(t, "old").minion || !guestOf(t, "young").minion || announced(t, old) || !announced(t, young) {
		t.Fatal("the guests are not on their ways")
	}
	for id, want := range map[string]string{old: "ann", young: "eve"} {
		var users []struct{ Name string }
		must(t, openstack(t, &users, "user", "list", id))
		if len(users) != 1 || users[0].Name != want {
			t.Errorf("the users are %+v, want %s", users, want)
		}
	}
	// The way of docs/openstack/trove.md.
	move := func(id, name, guests string, minion bool) {
		t.Helper()
		must(t, dbaas.Configure(map[string]map[string]string{"brine": {"guests": guests}}, "trove-taskmanager"))
		before := guestOf(t, name)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", snippet(t, "rebuild"))
		cmd.Env = append(commandEnv(), "INSTANCE="+id, "IMAGE=33333333-3333-3333-3333-333333333333")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		eventually(t, "the other machine of "+name, func() bool { return guestOf(t, name) != before })
		healthy(t, id)
		if g := guestOf(t, name); g.minion != minion || announced(t, id) != minion {
			t.Errorf("%s: minion %v, announced %v, want %v", name, g.minion, announced(t, id), minion)
		}
	}
	move(old, "old", guestsWanted+", "+old, true)
	if n := guestOf(t, "old").calls(t)["rebuild"]; n != 1 {
		t.Errorf("rebuild ran %d times", n)
	}
	move(old, "old", guestsWanted, false)
	must(t, openstack(t, nil, "instance", "delete", old))
	must(t, openstack(t, nil, "instance", "delete", young))
	for _, id := range []string{old, young} {
		eventually(t, "the instance is gone", func() bool { return sql(t, "select deleted from instances where id = '"+id+"'") == "1" })
	}
}

// TestTroveT7Secrets: the passwords of all tests before are in no log, no row and no event, nor in what masters and guests keep.
func TestTroveT7Secrets(t *testing.T) {
	id := create(t, "secret", "10.11", "--users", "ann:"+canary)
	healthy(t, id)
	must(t, openstack(t, nil, "user", "create", id, "bob", canary))
	g := guestOf(t, "secret")
	eventually(t, "the user bob", func() bool { return g.calls(t)["create_user"] == 1 })
	rows, err := exec.CommandContext(t.Context(), "mariadb-dump", "--no-defaults", "--socket="+filepath.Join(cloudL.Dir, "my", "sock"), "--user=root",
		"--all-databases", "--skip-extended-insert").Output()
	must(t, err)
	if !bytes.Contains(rows, []byte(id)) {
		t.Fatal("the dump has no rows")
	}
	if at := bytes.Index(rows, []byte(canary)); at >= 0 {
		t.Errorf("a row has the password: %q", rows[max(0, at-200):at])
	}
	files := 0
	// The test's guests keep their database in state.
	for _, dir := range []string{filepath.Join(cloudL.Dir, "log"), filepath.Join(cloudL.Dir, "trove"), filepath.Dir(bin)} {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() == "state" || strings.HasPrefix(path, bin) {
				if os.IsNotExist(err) {
					return nil
				}
				return err
			}
			b, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil
			}
			files++
			if bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s has the password", path)
			}
			return err
		}))
	}
	if files < 20 {
		t.Errorf("only %d files were looked at", files)
	}
}
