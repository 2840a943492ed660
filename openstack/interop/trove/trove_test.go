//go:build openstack && trove

package trove

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
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

// TestTroveInstance manages an instance from creation to deletion with the command line client: databases, users,
// root, a backup and an instance restored from it.
func TestTroveInstance(t *testing.T) {
	id := createByCommand(t, "life", "--databases", "shop", "--users", "ann:"+canary)
	healthy(t, id)
	g := guestOf(t, "life")
	if !g.minion {
		t.Fatal("the machine was not told of the Salt master")
	}
	if got := g.calls(t); got["prepare"] != 1 {
		t.Errorf("the guest ran %v, want prepare once", got)
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
	eventually(t, "the user bob", func() bool {
		return g.query(t, "SELECT COUNT(*) FROM mysql.db WHERE user = 'bob' AND db = 'stock'") == "1"
	})
	users(t, id, "ann", "bob")
	databases(t, id, "shop", "stock")
	if got := g.login(t, "bob", canary, "SELECT CURRENT_USER(), DATABASE()", "stock"); got != "bob@%\tstock" {
		t.Errorf("bob is %q", got)
	}
	must(t, openstack(t, nil, "root", "enable", id))
	if got := sql(t, "select count(*) from root_enabled_history where id = '"+id+"'"); got != "1" {
		t.Errorf("%s rows say that root was used, want 1", got)
	}

	var backup struct{ ID string }
	must(t, openstack(t, &backup, "backup", "create", "nightly", "--instance", id))
	row := func() string {
		return sql(t, "select concat_ws(' ', state, location, checksum, backup_type) from backups where id = '"+backup.ID+"'")
	}
	eventually(t, "the backup", func() bool { return strings.HasPrefix(row(), "COMPLETED") })
	if got := sql(t, "select size from backups where id = '"+backup.ID+"'"); got <= "0.01" || got >= "0.5" {
		t.Errorf("the backup is of %s GB", got)
	}
	location := strings.Fields(row())[1]
	data, err := os.ReadFile(strings.TrimPrefix(location, "file://"))
	must(t, err)
	sum := md5.Sum(data)
	if want := "COMPLETED file://" + backups() + "/database_backups/"; !strings.HasPrefix(row(), want) ||
		!strings.HasSuffix(row(), " "+hex.EncodeToString(sum[:])+" full") {
		t.Errorf("the backup is %q, want %q… and the sum %x", row(), want, sum)
	}

	must(t, openstack(t, nil, "instance", "delete", id))
	gone(t, id)
	if n := g.calls(t)["stop_db"]; n != 1 {
		t.Errorf("the guest was stopped %d times", n)
	}
	for _, i := range nova.Instances() {
		if i.Name == "life" {
			t.Errorf("Nova has %+v still", i)
		}
	}
	eventually(t, "the minion is revoked", func() bool { return !announced(t, id) })

	again := createByCommand(t, "copy", "--backup", backup.ID)
	healthy(t, again)
	users(t, again, "ann", "bob")
	databases(t, again, "shop", "stock")
	if got := guestOf(t, "copy").login(t, "ann", canary, "SELECT CURRENT_USER()"); got != "ann@%" {
		t.Errorf("ann is %q", got)
	}
	// The guest of the copy has found a root user, and reported it to the conductor.
	eventually(t, "the report of root", func() bool { return sql(t, "select count(*) from root_enabled_history where id = '"+again+"'") == "1" })
}

// users compares the users that Trove lists.
func users(t *testing.T, id string, want ...string) { listed(t, "users", id, want) }

func databases(t *testing.T, id string, want ...string) { listed(t, "databases", id, want) }

func listed(t *testing.T, kind, id string, want []string) {
	t.Helper()
	out := map[string][]struct{ Name string }{}
	api(t, "GET", "/instances/"+id+"/"+kind, nil, &out)
	got := []string{}
	for _, x := range out[kind] {
		got = append(got, x.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Trove lists %s: %v, want %v", kind, got, want)
	}
}

// login logs in to the guest's server as one of its users, over TCP.
func (g *guest) login(t *testing.T, user, password, statement string, more ...string) string {
	t.Helper()
	out, err := g.Run(t.Context(), append([]string{"env", "MYSQL_PWD=" + password, "mariadb", "--no-defaults", "--host=127.0.0.1", "--user=" + user,
		"--batch", "--skip-column-names", "--execute", statement}, more...)...)
	must(t, err)
	return strings.TrimSpace(out)
}

// announced reports whether the master knows the minion of an instance.
func announced(t *testing.T, id string) bool {
	t.Helper()
	code, _ := request(t, "GET", "/v1/minions/"+id, nil)
	return code == 200
}

// TestTroveT3PrepareBeforeGuest: prepare is sent before the guest exists, and runs once.
func TestTroveT3PrepareBeforeGuest(t *testing.T) {
	late := time.Minute
	mu.Lock()
	delays["late"] = late
	mu.Unlock()
	id := create(t, "late", "10.11")
	placed := time.Now()
	sent := func() bool {
		b, err := os.ReadFile(filepath.Join(cloudL.Dir, "log", "trove-taskmanager.log"))
		must(t, err)
		return bytes.Contains(b, []byte("Sending prepare to the guest "+id))
	}
	eventually(t, "prepare is sent", sent)
	if waited := time.Since(placed); waited > late/2 {
		t.Errorf("prepare was sent after %s, the guest comes after %s", waited, late)
	}
	healthy(t, id)
	if waited := time.Since(placed); waited < late {
		t.Errorf("the instance was healthy after %s, its guest came after %s", waited, late)
	}
	if got := guestOf(t, "late").calls(t); got["prepare"] != 1 {
		t.Errorf("the guest ran %v, want prepare once", got)
	}
}

// TestTroveT4MasterKilled kills the master while a guest works on a call of the task manager, which still gets the
// result.
func TestTroveT4MasterKilled(t *testing.T) {
	id := create(t, "killed", "10.11")
	healthy(t, id)
	g := guestOf(t, "killed")
	api(t, "POST", "/instances/"+id+"/action", map[string]any{"restart": map[string]any{}}, nil)
	eventually(t, "the guest restarts", func() bool { return g.calls(t)["restart"] == 1 })
	old, err := dbaas.KillMaster()
	must(t, err)
	killed := time.Now()
	if got := sql(t, "select task_id from instances where id = '"+id+"'"); got == "1" {
		t.Fatal("the task has ended before the master was killed")
	}
	// The task ends only after the call returned; a failed call leaves its error.
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
	// Reports of guests arrive at the conductor through the new master.
	heartbeat(t, id)
}

// heartbeat waits until Trove has received another heartbeat of an instance.
func heartbeat(t *testing.T, id string) {
	t.Helper()
	seen := func() string { return sql(t, "select updated_at from service_statuses where instance_id = '"+id+"'") }
	before := seen()
	eventually(t, "a heartbeat of "+id, func() bool { return seen() != before })
}

// TestTroveT5Heartbeat: a silent guest has an error status after its heartbeat has expired, and is healthy again when
// it continues. An older message changes nothing.
func TestTroveT5Heartbeat(t *testing.T) {
	id := create(t, "silent", "10.11")
	healthy(t, id)
	g := guestOf(t, "silent")
	status := func() string {
		var out struct {
			Instance struct {
				OperatingStatus string `json:"operating_status"`
			}
		}
		api(t, "GET", "/instances/"+id, nil, &out)
		return out.Instance.OperatingStatus
	}
	pid := g.agent(t)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := func() {
		must(t, syscall.Kill(pid, syscall.SIGCONT))
		must(t, g.started.Signal(syscall.SIGCONT))
	}
	defer resume()
	eventually(t, "the heartbeat expires", func() bool { return status() == "ERROR" })
	resume()
	resumed := time.Now()
	eventually(t, "the guest is healthy", func() bool { return status() == "HEALTHY" })
	if d := time.Since(resumed); d > 35*time.Second {
		t.Errorf("it was healthy %s after it went on", d)
	}

	fire := func(sent, state string) {
		out, err := g.Run(t.Context(), "salt-call", "event.send", "salt/beacon/"+id+"/trove/heartbeat",
			"{payload: {service_status: "+state+"}, sent: "+sent+"}")
		if err != nil || !strings.Contains(out, "True") {
			t.Fatalf("%v %s", err, out)
		}
	}
	log := func() string {
		b, err := os.ReadFile(filepath.Join(cloudL.Dir, "log", "trove-conductor.log"))
		must(t, err)
		return string(b)
	}
	older := "[Instance " + id + "] Rec'd message is older than last seen. Discarding."
	before := strings.Count(log(), older)
	fire("1000000000.5", "crashed")
	eventually(t, "the older message is refused", func() bool { return strings.Count(log(), older) == before+1 })
	for range 3 {
		heartbeat(t, id)
		healthy(t, id)
	}
}

// TestTroveTimeout: a call that the guest did not answer in time is ended in the guest and in its database.
func TestTroveTimeout(t *testing.T) {
	id := create(t, "slow", "10.11", "ann")
	healthy(t, id)
	g := guestOf(t, "slow")
	// While this client is connected, no one else can make changes.
	lock := g.Command(t.Context(), "mariadb", "--no-defaults", "--unbuffered", "--batch", "--skip-column-names")
	in, err := lock.StdinPipe()
	must(t, err)
	out, err := lock.StdoutPipe()
	must(t, err)
	must(t, lock.Start())
	fmt.Fprintln(in, "FLUSH TABLES WITH READ LOCK; SELECT 'locked';")
	said := make([]byte, 7)
	if _, err := out.Read(said); err != nil || string(said) != "locked\n" {
		t.Fatalf("the client says %q, %v", said, err)
	}
	done := make(chan error, 1)
	go func() { done <- openstack(t, nil, "user", "grant", "access", id, "ann", "shop") }()
	running := func() bool {
		return g.query(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'GRANT%'") != "0"
	}
	eventually(t, "the server waits with the grant", running)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("the user sees %v", err)
	}
	eventually(t, "the grant has ended", func() bool { return !running() })
	must(t, in.Close())
	must(t, lock.Wait())
	api(t, "POST", "/instances/"+id+"/databases", map[string]any{"databases": []any{map[string]any{"name": "after"}}}, nil)
	eventually(t, "the next change", func() bool { return strings.Contains(g.query(t, "SHOW DATABASES"), "after") })
	if got := g.query(t, "SELECT COUNT(*) FROM mysql.db WHERE user = 'ann'"); got != "0" {
		t.Error("the user has the grant that timed out")
	}
}

// TestTroveMixedFleet: an instance on the broker works next to one on the master, and a rebuild moves it to the
// master and back.
func TestTroveMixedFleet(t *testing.T) {
	old, young := create(t, "old", broker, "ann"), create(t, "young", "10.11", "eve")
	healthy(t, old)
	healthy(t, young)
	if guestOf(t, "old").minion || !guestOf(t, "young").minion || announced(t, old) || !announced(t, young) {
		t.Fatal("the guests are not on their ways")
	}
	users(t, old, "ann")
	users(t, young, "eve")
	// Move it as docs/openstack/trove.md says.
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
	g := guestOf(t, "old")
	if n := g.calls(t)["rebuild"]; n != 1 {
		t.Errorf("rebuild ran %d times", n)
	}
	// The volume is the same.
	users(t, old, "ann")
	if got := g.login(t, "ann", canary, "SELECT CURRENT_USER()"); got != "ann@%" {
		t.Errorf("ann is %q", got)
	}
	move(old, "old", guestsWanted, false)
}

// TestTroveT7Secrets: the passwords of this and all earlier tests are in no log, no row and no event, and in no file
// of masters and guests.
func TestTroveT7Secrets(t *testing.T) {
	id := create(t, "secret", "10.11", "ann")
	healthy(t, id)
	api(t, "POST", "/instances/"+id+"/users", map[string]any{"users": []any{map[string]any{"name": "bob", "password": canary}}}, nil)
	g := guestOf(t, "secret")
	eventually(t, "the user bob", func() bool { return g.query(t, "SELECT COUNT(*) FROM mysql.user WHERE user = 'bob'") == "1" })
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
	look := []string{filepath.Join(cloudL.Dir, "log"), filepath.Join(cloudL.Dir, "trove"), filepath.Join(dir, "volumes"), backups()}
	for _, name := range []string{"/etc/salt", "/var/cache/salt", "/var/log", "/var/tmp", "/opt", "/root", "/run", "/etc/mysql"} {
		if _, err := os.Stat(g.Path(name)); err == nil {
			look = append(look, g.Path(name))
		}
	}
	for _, dir := range look {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if path == g.Path("/root/.cache") {
				return fs.SkipDir // the host's; it contains this test's program
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil
			}
			files++
			if at := bytes.Index(b, []byte(canary)); at >= 0 {
				t.Errorf("%s has the password: %q", path, b[max(0, at-100):at])
			}
			return err
		}))
	}
	if t.Logf("%d files", files); files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}
