//go:build openstack

package trove

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTroveReplication makes a replica from a snapshot, fails over to it, and detaches it.
func TestTroveReplication(t *testing.T) {
	a := newInstance(t, map[string]any{"backup_aes_cbc_key": "a-key"})
	a.prepare("")
	a.must("create_database", `{"databases": [{"_name": "web"}]}`)
	a.query("CREATE TABLE web.t (i INT PRIMARY KEY, s VARCHAR(20)); INSERT INTO web.t VALUES (1, 'before')")
	a.equal("backup_required_for_replication", "", "true")
	snapshot := a.must("get_replication_snapshot", `{"snapshot_info": {"id": "snap-1", "datastore": "mariadb", "datastore_version": "10.11"},`+
		`"replica_source_config": `+sourceConfig+`}`).(map[string]any)
	conf := snapshot["replica_conf"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"host": "127.0.0.1", "port": number64(t, a.port)}, snapshot["master"]); diff != "" ||
		snapshot["replication_strategy"] != "MariaDBGTIDReplication" || !strings.HasPrefix(textOf(conf["replication_user"].(map[string]any), "name"), "slave_") {
		t.Errorf("the snapshot is %v", snapshot)
	}
	a.query("INSERT INTO web.t VALUES (2, 'after the copy')")

	// The replica uses the same store.
	b := newInstance(t, map[string]any{"backup_aes_cbc_key": "a-key", "store": a.opts["trove"].(map[string]any)["store"]})
	updates := a.backups()
	last := updates[len(updates)-1]
	if last["state"] != "COMPLETED" || last["success"] != true || !strings.HasSuffix(last["location"].(string), "/database_backups/snap-1.xbstream.gz.enc") {
		t.Fatalf("the backup ends with %v", last)
	}
	snapshot["config"] = "[mysqld]\nread_only = 1\n"
	b.prepare(`, "snapshot": ` + quoteJSON(snapshot) + `, "backup_info": {"id": "snap-1", "location": ` + quoteJSON(last["location"]) +
		`, "checksum": ` + quoteJSON(last["checksum"]) + `}`)
	if got := b.seen(); got[len(got)-1] != "salt/beacon/inst-1/trove/heartbeat healthy" {
		t.Errorf("prepare of the replica: %q", got)
	}
	position := a.must("get_latest_txn_id", "").(string)
	b.must("wait_for_txn", `{"txn": `+quoteJSON(position)+`}`)
	if got := b.query("SELECT i, s FROM web.t ORDER BY i"); got != "1\tbefore\n2\tafter the copy" {
		t.Errorf("the replica has %q", got)
	}
	pair := b.must("get_last_txn", "").([]any)
	if want := position[strings.LastIndexByte(position, '-')+1:]; quoteJSON(pair) != "["+a.port+","+want+"]" {
		t.Errorf("get_last_txn is %v, the source is at %s", pair, position)
	}
	if got := b.fails("attach_replica", `{"replica_info": {"replication_strategy": "MysqlGTIDReplication"}, "slave_config": null}`); got !=
		"Instance with replication strategy MariaDBGTIDReplication cannot replicate from instance with replication strategy MysqlGTIDReplication." {
		t.Error(got)
	}

	// Fail over: the replica becomes the source, and the old source its replica.
	a.must("make_read_only", `{"read_only": true}`)
	left := b.must("detach_replica", `{"for_failover": true}`).(map[string]any)
	if left["replication_user"] != conf["replication_user"].(map[string]any)["name"] {
		t.Errorf("detach_replica returns %v", left)
	}
	b.must("enable_as_master", `{"replica_source_config": `+sourceConfig+`}`)
	b.must("make_read_only", `{"read_only": false}`)
	b.query("INSERT INTO web.t VALUES (3, 'new source')")
	context := b.must("get_replica_context", "").(map[string]any)
	if at := context["replica_conf"].(map[string]any)["log_position"].(map[string]any)["gtid_pos"]; at != b.must("get_latest_txn_id", "") {
		t.Errorf("the replica's context is %v", context)
	}
	a.must("demote_replication_master", "")
	a.query("SET GLOBAL gtid_slave_pos = '" + position + "'")
	a.must("attach_replica", `{"replica_info": `+quoteJSON(context)+`, "slave_config": "[mysqld]\nread_only = 1\n"}`)
	a.must("wait_for_txn", `{"txn": `+quoteJSON(b.must("get_latest_txn_id", ""))+`}`)
	if got := a.query("SELECT COUNT(*) FROM web.t"); got != "3" {
		t.Errorf("the old source has %s rows", got)
	}
	if got := a.query("SELECT @@read_only"); got != "1" {
		t.Errorf("read_only of the new replica is %q", got)
	}
	left = a.must("detach_replica", "").(map[string]any)
	b.must("cleanup_source_on_replica_detach", `{"replica_info": `+quoteJSON(left)+`}`)
	if got := b.query("SELECT COUNT(*) FROM mysql.user WHERE User = '" + left["replication_user"].(string) + "'"); got != "0" {
		t.Error("the replication user is still there")
	}
	if got := a.fails("detach_replica", ""); got != "cannot detach: this instance is no replica" {
		t.Error(got)
	}
	if got := b.fails("get_txn_count", ""); got != "The 'get_txn_count' operation is not supported for the 'mariadb' datastore." {
		t.Error(got)
	}
}

func number64(t *testing.T, s string) int64 {
	t.Helper()
	var n int64
	if err := json.Unmarshal([]byte(s), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// backups returns the arguments of all update_backup events since its last call, and drops the other events.
func (i *instance) backups() (list []map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range i.events {
		if e.tag == "trove/conductor/update_backup" {
			list = append(list, e.data)
		}
	}
	i.events = nil
	return list
}

// backUp makes a full backup and an incremental one on top of it, and calls change after each. It returns the
// location and the checksum of the second, in the form in which an instance to restore receives them.
func (i *instance) backUp(change func()) (at string) {
	i.t.Helper()
	parent := ""
	for _, id := range []string{"full", "inc"} {
		i.must("create_backup", fmt.Sprintf(`{"backup_info": {"id": "%s", "datastore": "x", "datastore_version": "1"%s}}`, id, parent))
		updates := i.backups()
		last := updates[len(updates)-1]
		at = `"location": ` + quoteJSON(last["location"]) + `, "checksum": ` + quoteJSON(last["checksum"])
		parent = `, "parent": {` + at + `}`
		change()
	}
	return at
}

// TestTroveBackup makes a full and two incremental backups and restores the last onto an empty instance; a damaged
// backup is refused.
func TestTroveBackup(t *testing.T) {
	a := newInstance(t, nil)
	a.prepare(`, "root_password": "rootsecret1", "databases": [{"_name": "web"}],` +
		`"users": [{"_name": "ada", "_password": "adasecret1", "_databases": [{"_name": "web"}]}]`)
	a.query("CREATE TABLE web.t (i INT PRIMARY KEY); INSERT INTO web.t VALUES (1)")
	a.seen()
	var parents []string
	parent := ""
	for n, id := range []string{"full", "inc1", "inc2"} {
		a.must("create_backup", `{"backup_info": {"id": "`+id+`", "datastore": "mariadb", "datastore_version": "10.11"`+parent+`}}`)
		updates := a.backups()
		if len(updates) != 2 {
			t.Fatalf("%s: %v", id, updates)
		}
		first, last := updates[0], updates[1]
		kind := map[bool]string{true: "full", false: "incremental"}[n == 0]
		if first["state"] != "BUILDING" || first["backup_id"] != id || first["backup_type"] != kind || first["instance_id"] != "inst-1" ||
			last["state"] != "COMPLETED" || last["sent"].(float64) <= first["sent"].(float64) || len(last["checksum"].(string)) != 32 {
			t.Errorf("%s: %v, %v", id, first, last)
		}
		at := `{"location": ` + quoteJSON(last["location"]) + `, "checksum": ` + quoteJSON(last["checksum"])
		parents = append(parents, at+`, "id": "`+id+`"}`)
		parent = `, "parent": ` + at + `}`
		a.query("INSERT INTO web.t SELECT MAX(i)+1 FROM web.t")
	}

	store := a.opts["trove"].(map[string]any)["store"]
	b := newInstance(t, map[string]any{"store": store})
	b.prepare(`, "backup_info": ` + parents[2])
	if got := b.query("SELECT GROUP_CONCAT(i ORDER BY i) FROM web.t"); got != "1,2,3" {
		t.Errorf("restored: %q", got)
	}
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat building", "trove/conductor/report_root <nil>",
		"salt/beacon/inst-1/trove/heartbeat healthy"}, b.seen()); diff != "" {
		t.Error(diff)
	}
	if got := b.loginAs("ada", "adasecret1"); got != "ada@%" {
		t.Errorf("ada: %q", got)
	}

	// Flip one bit.
	file := filepath.Join(store.(map[string]any)["path"].(string), "database_backups/full.xbstream.gz")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-5] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newInstance(t, map[string]any{"store": store})
	_, err = c.run("prepare", c.args(`{"memory_mb": 1, "packages": [], "databases": [], "users": [], "config_contents": `+quoteJSON(c.config())+
		`, "backup_info": `+parents[0]+`}`))
	if err == nil || !strings.Contains(err.Error(), "the checksum of full.xbstream.gz is") {
		t.Errorf("a damaged backup: %v", err)
	}
	if got := c.seen(); len(got) != 2 || got[1] != "salt/beacon/inst-1/trove/heartbeat failed to spawn" {
		t.Errorf("events of the failure: %q", got)
	}
	if entries, err := os.ReadDir(c.dir + "/data"); err != nil || len(entries) != 0 {
		t.Errorf("the data directory has %v, %v", entries, err)
	}
	if got := c.fails("create_backup", `{"backup_info": {"id": "x1"}}`); !strings.HasPrefix(got, "Failed to create backup x1, error: ") {
		t.Error(got)
	}
	if updates := c.backups(); len(updates) != 2 || updates[1]["state"] != "FAILED" || updates[1]["success"] != false {
		t.Errorf("a backup that fails: %v", updates)
	}
	if left, err := filepath.Glob(filepath.Join(store.(map[string]any)["path"].(string), "database_backups/x1*")); err != nil || len(left) != 0 {
		t.Errorf("a backup that failed left %v, %v", left, err)
	}
}

// TestTroveLogs enables, publishes, rotates, discards and disables the general log.
func TestTroveLogs(t *testing.T) {
	i := newInstance(t, map[string]any{"guest_log_limit": int64(200)})
	i.prepare("")
	show := func(name, kind, status, published, pending, container, prefix string) string {
		return `{"container":"` + container + `","metafile":"inst-1/mariadb-` + name + `_metafile","name":"` + name + `","pending":` + pending +
			`,"prefix":"` + prefix + `","published":` + published + `,"status":"` + status + `","type":"` + kind + `"}`
	}
	i.equal("guest_log_list", "", "["+show("general", "USER", "Disabled", "0", "0", "None", "None")+","+
		show("slow_query", "USER", "Disabled", "0", "0", "None", "None")+"]")
	if n := len(i.must("guest_log_list", `{"context": {"is_admin": true}}`).([]any)); n != 4 {
		t.Errorf("an administrator sees %d logs", n)
	}
	action := func(log, enable, disable, publish, discard string) string {
		return `{"log_name": "` + log + `", "enable": ` + enable + `, "disable": ` + disable + `, "publish": ` + publish + `, "discard": ` + discard + `}`
	}
	i.must("guest_log_action", action("general", "true", "false", "false", "false"))
	i.query("SELECT 'a canary of the log'")
	got := i.must("guest_log_action", action("general", "false", "false", "true", "false")).(map[string]any)
	if got["status"] != "Published" && got["status"] != "Partial" || got["published"].(int64) < 200 {
		t.Errorf("published: %v", got)
	}
	parts, err := filepath.Glob(i.dir + "/store/database_logs/inst-1/mariadb-general/log-*[0-9]")
	if err != nil || len(parts) < 2 {
		t.Fatalf("the parts are %v, %v", parts, err)
	}
	var all []byte
	for _, p := range parts {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	log, err := os.ReadFile(i.dir + "/data/mariadb-general.log")
	if err != nil || !bytes.HasPrefix(log, all) || !bytes.Contains(all, []byte("a canary of the log")) {
		t.Errorf("the parts have %d bytes, the log %d: %v", len(all), len(log), err)
	}
	i.must("guest_log_action", action("general", "false", "true", "false", "true"))
	i.equal("guest_log_action", action("slow_query", "false", "false", "false", "false"), show("slow_query", "USER", "Disabled", "0", "0", "None", "None"))
	if left, err := filepath.Glob(i.dir + "/store/database_logs/inst-1/*/*"); err != nil || len(left) != 0 {
		t.Errorf("discarded, but there are %v, %v", left, err)
	}
	if got := i.query("SELECT @@general_log"); got != "0" {
		t.Errorf("general_log is %q", got)
	}
	for _, c := range [][2]string{
		{action("general", "true", "true", "false", "false"), "Cannot enable and disable log 'general'."},
		{action("audit", "true", "false", "false", "false"), "Log 'audit' is not defined."},
		{action("error", "true", "false", "false", "false"), "Cannot enable a SYSTEM log ('error')."},
		{action("error", "false", "false", "true", "false"), "You must be admin to show log 'error'."},
	} {
		if got := i.fails("guest_log_action", c[0]); got != c[1] {
			t.Errorf("%s: %q, not %q", c[0], got, c[1])
		}
	}
}
