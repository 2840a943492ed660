//go:build openstack

package trove

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// newPostgres returns an instance with Debian's PostgreSQL.
func newPostgres(t *testing.T, more map[string]any) *instance {
	t.Helper()
	program := testserver.Program(t, "postgres")
	dir, _ := testserver.Dir(t, "postgres")
	i := &instance{t: t, dir: dir, port: testserver.Port(t), owner: "postgres",
		command: []string{program, "-c", "config_file=" + dir + "/etc/postgresql.conf"}, end: syscall.SIGINT}
	i.begin(map[string]any{
		"datastore_manager": "postgresql", "datastore_version": "15", "socket": dir, "postgresql_port": number64(t, i.port), "mount_point": dir,
		"config_file": dir + "/etc/postgresql.conf", "include_dir": dir + "/etc/conf.d", "state_dir": dir + "/state",
		"modules_dir": dir + "/modules", "address": "127.0.0.1", "state_change_poll_time": 0.05, "state_change_wait_time": int64(60),
		"service": "postgresql", "store": map[string]any{"type": "directory", "path": dir + "/store"},
	}, more)
	return i
}

// postgresConfig returns the configuration that Trove's template makes, with the paths of this instance. Passwords
// are hashed in a way that makes dumps comparable.
func (i *instance) postgresConfig() string {
	return fmt.Sprintf(`listen_addresses = '127.0.0.1'		# what IP address(es) to listen on;
port = %[2]s
max_connections = 20			# (change requires restart)
unix_socket_directories = '%[1]s'
shared_buffers = 16MB
wal_level = replica			# minimal, replica, or logical
wal_log_hints = on
archive_mode = on
archive_command = 'test ! -f %[1]s/data/wal_archive/%%f && cp %%p %[1]s/data/wal_archive/%%f'		# command to use
restore_command = 'cp %[1]s/data/wal_archive/%%f "%%p"'
fsync = off
checkpoint_completion_target = 0
password_encryption = md5
include_dir = '%[1]s/etc/conf.d'
`, i.dir, i.port)
}

func (i *instance) preparePostgres(more string) {
	i.t.Helper()
	i.must("prepare", `{"memory_mb": 512, "packages": [], "databases": [], "users": [], "device_path": null, "mount_point": `+
		quoteJSON(i.dir)+`, "config_contents": `+quoteJSON(i.postgresConfig())+more+`}`)
}

// psql runs a statement as the superuser.
func (i *instance) psql(database, statement string) string {
	i.t.Helper()
	out, err := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "psql"), "-h", i.dir, "-p", i.port, "-U", "postgres", "-d", database,
		"-v", "ON_ERROR_STOP=1", "-q", "-A", "-t", "-c", statement).CombinedOutput()
	if err != nil {
		i.t.Fatalf("%s: %v: %s\n%s", statement, err, out, i.lastLog())
	}
	return strings.TrimSpace(string(out))
}

// psqlAs logs in over TCP, and returns the user's name or why the log-in failed.
func (i *instance) psqlAs(name, password, database string) string {
	i.t.Helper()
	cmd := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "psql"), "-h", "127.0.0.1", "-p", i.port, "-U", name, "-d", database,
		"-w", "-q", "-A", "-t", "-c", "SELECT current_user")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

func (i *instance) dump() []string {
	i.t.Helper()
	out, err := exec.CommandContext(i.t.Context(), testserver.Program(i.t, "pg_dumpall"), "-h", i.dir, "-p", i.port, "-U", "postgres",
		"--restrict-key=x").CombinedOutput()
	if err != nil {
		i.t.Fatalf("pg_dumpall: %v: %s", err, out)
	}
	return strings.Split(string(out), "\n")
}

// TestTrovePostgres sets up an instance, and calls what the replay does not.
func TestTrovePostgres(t *testing.T) {
	i := newPostgres(t, nil)
	i.preparePostgres(`, "databases": [{"_name": "web"}, {"_name": "it's \"odd\""}], "root_password": "rootsecret1",` +
		`"users": [{"_name": "ada", "_password": "ada's \\ secret", "_databases": [{"_name": "web"}, {"_name": "it's \"odd\""}]},` +
		`{"_name": "o'dd \"user\"", "_password": "x", "_databases": [{"_name": "web"}]}],` +
		`"overrides": {"work_mem": "5MB", "log_line_prefix": "it's %m ", "autovacuum": false}`)
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat building", "salt/beacon/inst-1/trove/heartbeat healthy"},
		i.seen()); diff != "" {
		t.Error(diff)
	}
	i.equal("is_root_enabled", "", "true")
	if got := i.psqlAs("root", "rootsecret1", "web"); got != "root" {
		t.Errorf("root: %q", got)
	}
	if got := i.psqlAs("ada", "ada's \\ secret", "web"); got != "ada" {
		t.Errorf("ada: %q", got)
	}
	if got := i.psqlAs("ada", "wrong", "web"); !strings.Contains(got, "password authentication failed") {
		t.Errorf("ada with another password: %q", got)
	}
	odd := `{"_character_set":"UTF8","_collate":"C.UTF-8","_name":"it's \"odd\""}`
	web := `{"_character_set":"UTF8","_collate":"C.UTF-8","_name":"web"}`
	i.equal("list_access", `{"username": "ada", "hostname": "%"}`, "["+odd+","+web+"]")
	i.equal("list_access", `{"username": "o'dd \"user\"", "hostname": "%"}`, "["+web+"]")
	if got := i.psql("postgres", "SELECT current_setting('work_mem'), current_setting('log_line_prefix'), current_setting('autovacuum'), "+
		"current_setting('data_directory')"); got != "5MB|it's %m |off|"+i.dir+"/data/pgdata" {
		t.Errorf("the server has %q", got)
	}
	for file, want := range map[string]os.FileMode{"data/pgdata": 0o700, "data/wal_archive": 0o700, "etc/pg_hba.conf": 0o400,
		"etc/conf.d/50-system-001-common.conf": 0o640} {
		if info, err := os.Stat(filepath.Join(i.dir, file)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}

	first := i.must("enable_root", "").(map[string]any)
	if got := i.psqlAs("root", first["_password"].(string), "postgres"); got != "root" || first["_is_root"] != true {
		t.Errorf("root: %q, %v", got, first)
	}
	i.equal("disable_root", "", "null")
	if got := i.psqlAs("root", first["_password"].(string), "postgres"); !strings.Contains(got, "password authentication failed") {
		t.Errorf("root after disable_root: %q", got)
	}
	i.must("change_passwords", `{"users": [{"name": "ada", "host": "%", "password": "ada2"}]}`)
	if got := i.psqlAs("ada", "ada2", "web"); got != "ada" {
		t.Errorf("ada: %q", got)
	}

	// Change the configuration of a running server.
	i.must("update_overrides", `{"overrides": {"work_mem": "6MB"}, "remove": false}`)
	i.must("apply_overrides", `{"overrides": {"work_mem": "6MB"}}`)
	if got := i.psql("postgres", "SELECT current_setting('work_mem'), current_setting('autovacuum')"); got != "6MB|off" {
		t.Errorf("after apply_overrides: %q", got)
	}
	i.must("update_overrides", `{"overrides": {}, "remove": true}`)
	i.must("apply_overrides", `{"overrides": {}}`)
	if got := i.psql("postgres", "SELECT current_setting('work_mem'), current_setting('autovacuum')"); got != "4MB|on" {
		t.Errorf("after the overrides are removed: %q", got)
	}
	i.seen()
	i.must("stop_db", "")
	if got := i.fails("list_users", ""); !strings.HasPrefix(got, "cannot connect to the datastore as postgres at "+i.dir) {
		t.Error(got)
	}
	i.must("start_db_with_conf_changes", `{"config_contents": `+quoteJSON(i.postgresConfig()+"max_connections = 21\n")+`, "ds_version": "15"}`)
	i.must("restart", "")
	if got := i.psql("postgres", "SHOW max_connections"); got != "21" {
		t.Errorf("max_connections is %q", got)
	}
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat healthy", "salt/beacon/inst-1/trove/heartbeat healthy"},
		i.seen()); diff != "" {
		t.Error(diff)
	}
	i.equal("make_read_only", `{"read_only": true}`, "null")
	for fun, kwargs := range map[string][2]string{
		"rebuild": {`{"ds_version": "15", "config_contents": ""}`, "The 'rebuild' operation is not supported for the 'postgresql' datastore."},
		"upgrade": {`{"upgrade_info": {"datastore_version": "16"}}`, `cannot upgrade postgresql from "15" to 16: in the way packages the version ` +
			`is that of the instance's image`},
		"wait_for_txn":              {`{"txn": "0/1"}`, "Attempting to wait for a txn on a non-replica server"},
		"get_txn_count":             {"", "The 'get_txn_count' operation is not supported for the 'postgresql' datastore."},
		"get_root_password":         {"", "The 'get_root_password' operation is not supported for the 'postgresql' datastore."},
		"demote_replication_master": {"", "cannot demote: this instance is not attached to another source"},
		"update_overrides":          {`{"overrides": {"a'b": 1}, "remove": false}`, `cannot write the option "a'b": this is not an option's name`},
	} {
		if got := i.fails(fun, kwargs[0]); got != kwargs[1] {
			t.Errorf("%s: %s", fun, got)
		}
	}

	// If the server cannot start, the error says so in Trove's words.
	i.must("stop_db", "")
	i.opts["trove"].(map[string]any)["state_change_wait_time"] = 0.5
	got := i.fails("start_db_with_conf_changes", `{"config_contents": "nonsense = 1\n", "ds_version": "15"}`)
	if !strings.HasPrefix(got, "Failed to start database service: the database is shutdown") {
		t.Error(got)
	}
}

// TestTrovePostgresLeaks: two hundred listings leak no memory, connections or goroutines.
func TestTrovePostgresLeaks(t *testing.T) {
	i := newPostgres(t, nil)
	i.preparePostgres("")
	for n := range 50 {
		i.must("create_user", fmt.Sprintf(`{"users": [{"_name": "user%03d"}]}`, n))
	}
	state := func() (heap, routines, files int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return int(m.HeapAlloc), runtime.NumGoroutine(), len(open)
	}
	i.must("list_users", "")
	heap, routines, files := state()
	for range 200 {
		if users := i.must("list_users", "").([]any)[0].([]any); len(users) != 50 {
			t.Fatalf("%d users", len(users))
		}
	}
	heap2, routines2, files2 := state()
	if heap2 > heap+(256<<10) || routines2 > routines+2 || files2 > files+2 {
		t.Errorf("%d bytes became %d, %d goroutines %d, %d files %d", heap, heap2, routines, routines2, files, files2)
	}
	t.Logf("%d bytes, %d goroutines, %d files; then %d, %d, %d", heap, routines, files, heap2, routines2, files2)
}

// TestTrovePostgresBackup makes a full and two incremental encrypted backups, and restores the last onto an empty
// instance.
func TestTrovePostgresBackup(t *testing.T) {
	key := map[string]any{"backup_aes_cbc_key": "a-key"}
	a := newPostgres(t, key)
	a.preparePostgres(`, "root_password": "rootsecret1", "databases": [{"_name": "web"}],` +
		`"users": [{"_name": "ada", "_password": "adasecret1", "_databases": [{"_name": "web"}]}]`)
	a.psql("web", "CREATE TABLE t (i INT PRIMARY KEY); INSERT INTO t VALUES (1)")
	a.seen()
	var parents []string
	parent := ""
	for n, id := range []string{"full", "inc1", "inc2"} {
		a.must("create_backup", `{"backup_info": {"id": "`+id+`", "datastore": "postgresql", "datastore_version": "15"`+parent+`}}`)
		updates := a.backups()
		if len(updates) != 2 {
			t.Fatalf("%s: %v", id, updates)
		}
		last := updates[1]
		if kind := map[bool]string{true: "full", false: "incremental"}[n == 0]; updates[0]["backup_type"] != kind || last["state"] != "COMPLETED" ||
			last["location"] != "file://"+a.dir+"/store/database_backups/"+id+".tar.gz.enc" {
			t.Errorf("%s: %v", id, updates)
		}
		at := `{"location": ` + quoteJSON(last["location"]) + `, "checksum": ` + quoteJSON(last["checksum"])
		parents = append(parents, at+`, "id": "`+id+`"}`)
		parent = `, "parent": ` + at + `}`
		a.psql("web", "INSERT INTO t SELECT MAX(i)+1 FROM t")
	}
	want := a.dump()

	key["store"] = a.opts["trove"].(map[string]any)["store"]
	for n, rows := range []string{"1", "1,2", "1,2,3"} {
		b := newPostgres(t, key)
		b.preparePostgres(`, "backup_info": ` + parents[n])
		if got := b.psql("web", "SELECT string_agg(i::text, ',' ORDER BY i) FROM t"); got != rows {
			t.Errorf("restored from backup %d: %q", n, got)
		}
		if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat building", "trove/conductor/report_root <nil>",
			"salt/beacon/inst-1/trove/heartbeat healthy"}, b.seen()); diff != "" {
			t.Error(diff)
		}
		if got := b.psqlAs("ada", "adasecret1", "web"); got != "ada" {
			t.Errorf("ada: %q", got)
		}
		if n < 2 {
			continue
		}
		b.psql("web", "INSERT INTO t VALUES (4)")
		if diff := cmp.Diff(want, b.dump()); diff != "" {
			t.Errorf("the dumps differ (-original +restored):\n%s", diff)
		}
	}

	// Flip one bit.
	file := filepath.Join(a.dir, "store/database_backups/inc1.tar.gz.enc")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newPostgres(t, key)
	_, err = c.run("prepare", c.args(`{"memory_mb": 1, "packages": [], "databases": [], "users": [], "config_contents": `+
		quoteJSON(c.postgresConfig())+`, "backup_info": `+parents[2]+`}`))
	if err == nil || !strings.Contains(err.Error(), "the checksum of inc1.tar.gz.enc is") {
		t.Errorf("a damaged backup: %v", err)
	}
	for _, dir := range []string{"pgdata", "wal_archive"} {
		if entries, err := os.ReadDir(c.dir + "/data/" + dir); err != nil || len(entries) != 0 {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
	// Remove the log with which the parent ends.
	if err := os.RemoveAll(a.dir + "/data/wal_archive"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(a.dir+"/data/wal_archive", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(a.dir+"/data/wal_archive", 0o777); err != nil {
		t.Fatal(err)
	}
	got := a.fails("create_backup", `{"backup_info": {"id": "inc3"`+parent+`}}`)
	if !strings.Contains(got, "cannot build upon the parent backup: the archive of the log has no 0000000") {
		t.Error(got)
	}
}

// TestTrovePostgresReplication makes a replica, fails over to it, makes the old source its replica, and detaches that
// one.
func TestTrovePostgresReplication(t *testing.T) {
	a := newPostgres(t, nil)
	a.preparePostgres(`, "databases": [{"_name": "web"}]`)
	a.psql("web", "CREATE TABLE t (i INT PRIMARY KEY); INSERT INTO t VALUES (1)")
	a.equal("backup_required_for_replication", "", "true")
	snapshot := a.must("get_replication_snapshot", `{"snapshot_info": {"id": "snap-1", "datastore": "postgresql", "datastore_version": "15"},`+
		`"replica_source_config": ""}`).(map[string]any)
	user := snapshot["replica_conf"].(map[string]any)["replication_user"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"host": "127.0.0.1", "port": number64(t, a.port)}, snapshot["master"]); diff != "" ||
		snapshot["replication_strategy"] != "PostgresqlReplicationStreaming" || user["name"] != "replicator" || len(user["password"].(string)) != 36 {
		t.Errorf("the snapshot is %v", snapshot)
	}
	a.psql("web", "INSERT INTO t VALUES (2)")
	updates := a.backups()
	last := updates[len(updates)-1]

	b := newPostgres(t, map[string]any{"store": a.opts["trove"].(map[string]any)["store"]})
	snapshot["config"] = ""
	b.preparePostgres(`, "snapshot": ` + quoteJSON(snapshot) + `, "backup_info": {"id": "snap-1", "location": ` + quoteJSON(last["location"]) +
		`, "checksum": ` + quoteJSON(last["checksum"]) + `}`)
	b.must("wait_for_txn", `{"txn": `+quoteJSON(a.must("get_latest_txn_id", ""))+`}`)
	if got := b.psql("web", "SELECT string_agg(i::text, ',' ORDER BY i), pg_is_in_recovery() FROM t"); got != "1,2|t" {
		t.Errorf("the replica has %q", got)
	}
	source, replica := a.must("get_last_txn", "").([]any), b.must("get_last_txn", "").([]any)
	if source[0] != replica[0] || len(source[0].(string)) < 10 || replica[1].(int64) < 1<<24 || replica[1].(int64) > source[1].(int64) {
		t.Errorf("get_last_txn: %v of the source, %v of the replica", source, replica)
	}
	if got := b.fails("attach_replica", `{"replica_info": {"replication_strategy": "MariaDBGTIDReplication"}, "slave_config": null}`); got !=
		"Instance with replication strategy PostgresqlReplicationStreaming cannot replicate from instance with replication strategy "+
			"MariaDBGTIDReplication." {
		t.Error(got)
	}

	// Fail over in the order of Trove's task manager. What the old source writes afterwards is lost.
	a.equal("make_read_only", `{"read_only": true}`, "null")
	b.equal("detach_replica", `{"for_failover": true}`, "null")
	b.must("enable_as_master", `{"replica_source_config": ""}`)
	b.must("make_read_only", `{"read_only": false}`)
	b.psql("web", "INSERT INTO t VALUES (3)")
	a.psql("web", "INSERT INTO t VALUES (-1)")
	context := b.must("get_replica_context", "").(map[string]any)
	if diff := cmp.Diff(map[string]any{"log_position": map[string]any{}, "master": map[string]any{"host": "127.0.0.1", "port": number64(t, b.port)},
		"replica_conf": map[string]any{"replication_user": user}}, context); diff != "" {
		t.Error(diff)
	}
	a.must("attach_replica", `{"replica_info": `+quoteJSON(context)+`, "slave_config": "", "restart": false}`)
	a.must("demote_replication_master", "")
	a.must("wait_for_txn", `{"txn": `+quoteJSON(b.must("get_latest_txn_id", ""))+`}`)
	if got := a.psql("web", "SELECT string_agg(i::text, ',' ORDER BY i), pg_is_in_recovery() FROM t"); got != "1,2,3|t" {
		t.Errorf("the old source has %q", got)
	}
	// A restart moves a replica to another source and back.
	a.must("attach_replica", `{"replica_info": `+quoteJSON(context)+`, "slave_config": "", "restart": true}`)
	b.psql("web", "INSERT INTO t VALUES (4)")
	a.must("wait_for_txn", `{"txn": `+quoteJSON(b.must("get_latest_txn_id", ""))+`}`)
	a.equal("detach_replica", "", "null")
	a.psql("web", "INSERT INTO t VALUES (5)")
	if got := a.psql("web", "SELECT count(*) FROM t"); got != "5" {
		t.Errorf("the detached replica has %s rows", got)
	}
	b.equal("cleanup_source_on_replica_detach", `{"replica_info": null}`, "null")
	// The password is in the configuration, which other users cannot read, and in the data.
	for _, i := range []*instance{a, b} {
		err := filepath.WalkDir(i.dir, func(p string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasPrefix(p, i.dir+"/data") {
				return err
			}
			text, err := os.ReadFile(p)
			if err != nil || !strings.Contains(string(text), user["password"].(string)) {
				return nil
			}
			if info, err := e.Info(); err != nil || info.Mode().Perm()&7 != 0 {
				t.Errorf("%s has the password of the replication user, with the mode %v, %v", p, info.Mode(), err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTrovePostgresLog enables and publishes the general log, which requires a restart of the server.
func TestTrovePostgresLog(t *testing.T) {
	i := newPostgres(t, nil)
	i.preparePostgres("")
	i.seen()
	show := func(status, published string) string {
		return `{"container":"None","metafile":"inst-1/postgresql-general_metafile","name":"general","pending":0,"prefix":"None","published":` +
			published + `,"status":"` + status + `","type":"USER"}`
	}
	i.equal("guest_log_list", "", "["+show("Disabled", "0")+"]")
	action := `{"log_name": "general", "enable": %s, "disable": %s, "publish": %s, "discard": false}`
	i.equal("guest_log_action", fmt.Sprintf(action, "true", "false", "false"), show("Enabled", "0"))
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat restart required"}, i.seen()); diff != "" {
		t.Error(diff)
	}
	i.must("restart", "")
	i.psql("postgres", "SELECT 'a canary of the log'")
	got := i.must("guest_log_action", fmt.Sprintf(action, "false", "false", "true")).(map[string]any)
	parts, err := filepath.Glob(i.dir + "/store/database_logs/inst-1/postgresql-general/log-*[0-9]")
	if err != nil || len(parts) != 1 || got["published"].(int64) < 100 {
		t.Fatalf("%v, %v, %v", got, parts, err)
	}
	if b, err := os.ReadFile(parts[0]); err != nil || !strings.Contains(string(b), "a canary of the log") {
		t.Errorf("%q, %v", b, err)
	}
}
