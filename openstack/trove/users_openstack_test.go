//go:build openstack

package trove

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// TestTrovePrepare sets up an instance with databases, users and root, and restarts, stops and starts it.
func TestTrovePrepare(t *testing.T) {
	i := newInstance(t, nil)
	i.prepare(`, "databases": [{"_name": "web", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"}], "root_password": "rootsecret1",` +
		`"users": [{"_name": "ada", "_host": "%", "_password": "adasecret1", "_databases": [{"_name": "web"}]}],` +
		`"overrides": {"max_connections": 42, "slow-query-log": null}`)
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat building", "salt/beacon/inst-1/trove/heartbeat healthy"},
		i.seen()); diff != "" {
		t.Error(diff)
	}
	i.equal("is_root_enabled", "", "true")
	i.equal("list_databases", "", `[[{"_character_set":"utf8mb4","_collate":"utf8mb4_bin","_name":"web"}],"web"]`)
	i.equal("list_users", "", `[[{"_databases":[{"_character_set":null,"_collate":null,"_name":"web"}],"_host":"%","_is_root":false,`+
		`"_name":"ada","_password":null}],"ada@%"]`)
	if got := i.query("SELECT @@max_connections, @@slow_query_log, @@datadir"); got != "42\t1\t"+i.dir+"/data/" {
		t.Errorf("the server has %q", got)
	}
	if got := i.query("SELECT CURRENT_USER()"); got != "os_admin@localhost" {
		t.Errorf("the administrator is %q", got)
	}

	i.must("stop_db", "")
	if got := i.fails("list_users", ""); !strings.HasPrefix(got, "cannot connect to the datastore as os_admin") {
		t.Error(got)
	}
	i.must("start_db_with_conf_changes", `{"config_contents": `+quoteJSON(i.config()+"max_heap_table_size=1M\n")+`, "ds_version": "10.11"}`)
	i.must("restart", "")
	if got := i.query("SELECT @@max_heap_table_size"); got != "1048576" {
		t.Errorf("max_heap_table_size is %q", got)
	}
	if diff := cmp.Diff([]string{"salt/beacon/inst-1/trove/heartbeat healthy", "salt/beacon/inst-1/trove/heartbeat healthy"},
		i.seen()); diff != "" {
		t.Error(diff)
	}
	i.must("rebuild", `{"ds_version": "10.11", "config_contents": `+quoteJSON(i.config())+`, "config_overrides": {"max_connections": 43}}`)
	if got := i.query("SELECT @@max_connections"); got != "43" {
		t.Errorf("max_connections is %q after the rebuild", got)
	}
	if got := i.fails("upgrade", `{"upgrade_info": {"datastore_version": "11.4"}}`); !strings.Contains(got, "cannot upgrade mariadb") {
		t.Error(got)
	}
}

// TestTroveUsers calls every function of databases, users, grants and root, and compares its values.
func TestTroveUsers(t *testing.T) {
	i := newInstance(t, nil)
	i.prepare("")
	i.equal("rpc_ping", "", "true")
	i.must("create_database", `{"databases": [{"_name": "one"}, {"_name": "three", "_character_set": "latin1"}, {"_name": "two-b"},`+
		`{"_name": "four", "_collate": "latin2_general_ci"}]}`)
	i.must("create_database", `{"databases": [{"_name": "one"}]}`) // it exists already
	one := func(name, charset, collate string) string {
		return `{"_character_set":"` + charset + `","_collate":"` + collate + `","_name":"` + name + `"}`
	}
	four, first := one("four", "latin2", "latin2_general_ci"), one("one", "utf8mb3", "utf8mb3_general_ci")
	three, two := one("three", "latin1", "latin1_swedish_ci"), one("two-b", "utf8mb3", "utf8mb3_general_ci")
	i.equal("list_databases", `{"limit": 2}`, "[["+four+","+first+`],"one"]`)
	i.equal("list_databases", `{"limit": 2, "marker": "one"}`, "[["+three+","+two+`],null]`)
	i.equal("list_databases", `{"limit": 1, "marker": "one", "include_marker": true}`, "[["+first+`],"one"]`)
	i.equal("list_databases", `{"limit": 4}`, "[["+four+","+first+","+three+","+two+"],null]")
	for kwargs, want := range map[string]string{
		`[{"_name": "a"}]`:                          "'a' is not a valid schema name.",
		`[{"_name": ""}]`:                           "Schema name empty.",
		`[{"_name": "mysql"}]`:                      `Cannot create database: Database name "mysql" is on the reserved list: ['mysql', 'information_schema', 'performance_schema', 'sys'].`,
		`[{"_name": "xx", "_character_set": "no"}]`: "'no' not a valid character set.",
		`[{"_name": "xx", "_collate": "no"}]`:       "'no' not a valid collation.",
		`[{"_name": "xx", "_character_set": "latin1", "_collate": "utf8_bin"}]`: "utf8_bin not a valid collation for charset latin1.",
		`["x"]`: "databases must be a list of dictionaries, item 0 is str",
	} {
		if got := i.fails("create_database", `{"databases": `+kwargs+`}`); got != want {
			t.Errorf("%s: %q, not %q", kwargs, got, want)
		}
	}
	i.must("delete_database", `{"database": {"_name": "four"}}`)

	i.must("create_user", `{"users": [{"_name": "ada", "_host": "%", "_password": "p%a:ss word", "_databases": [{"_name": "one"}, {"_name": "three"}]},`+
		`{"_name": "bob", "_host": "10.0.0.%", "_password": "secret-b"}, {"_name": "eve", "_password": "secret-e"}]}`)
	db := func(name string) string { return `{"_character_set":null,"_collate":null,"_name":"` + name + `"}` }
	usr := func(name, host string, databases ...string) string {
		return `{"_databases":[` + strings.Join(databases, ",") + `],"_host":"` + host + `","_is_root":false,"_name":"` + name + `","_password":null}`
	}
	ada, bob, eve := usr("ada", "%", db("one"), db("three")), usr("bob", "10.0.0.%"), usr("eve", "%")
	i.equal("list_users", `{"limit": 2}`, "[["+ada+","+bob+`],"bob@10.0.0.%"]`)
	i.equal("list_users", `{"limit": 2, "marker": "bob@10.0.0.%"}`, "[["+eve+"],null]")
	i.equal("list_users", `{"limit": 2, "marker": "bob@10.0.0.%", "include_marker": true}`, "[["+bob+","+eve+"],null]")
	i.equal("get_user", `{"username": "ada", "hostname": "%"}`, ada)
	i.equal("get_user", `{"username": "ada", "hostname": "10.0.0.1"}`, "null")
	i.equal("list_access", `{"username": "ada", "hostname": "%"}`, "["+db("one")+","+db("three")+"]")
	i.must("grant_access", `{"username": "bob", "hostname": "10.0.0.%", "databases": ["two-b", "one"]}`)
	i.must("revoke_access", `{"username": "bob", "hostname": "10.0.0.%", "database": "one"}`)
	i.equal("list_access", `{"username": "bob", "hostname": "10.0.0.%"}`, "["+db("two-b")+"]")
	for _, c := range [][3]string{
		{"create_user", `{"users": [{"_name": "root", "_password": "x1"}]}`, `Cannot create user: User name "root" is on the reserved list: ['os_admin', 'root'].`},
		{"create_user", `{"users": [{"_name": "averyverylongname", "_password": "x1"}]}`, "User name 'averyverylongname' is too long. Max length = 16."},
		{"create_user", `{"users": [{"_name": "o'no", "_password": "x1"}]}`, "'o'no' is not a valid user name."},
		{"create_user", `{"users": [{"_name": "mal", "_password": "x'1"}]}`, "The password is not a valid password."},
		{"create_user", `{"users": [{"_name": "mal", "_host": "a host", "_password": "x1"}]}`, "'a host' is not a valid hostname."},
		{"create_user", `{"users": [{"_name": "ada", "_password": "x1"}]}`, `(1396, "Operation CREATE USER failed for 'ada'@'%'")`},
		{"get_user", `{"username": "os_admin", "hostname": "%"}`, `Username os_admin is not valid: User name "os_admin" is on the reserved list: ['os_admin', 'root'].`},
		{"list_access", `{"username": "nobody", "hostname": "%"}`, "User nobody@% cannot be found on the instance."},
		{"grant_access", `{"username": "ada", "hostname": "%", "databases": ["mysql"]}`, "Grant access to mysql is not allowed"},
		{"delete_user", `{"user": {"_name": "os_admin"}}`, `Cannot delete user: User name "os_admin" is on the reserved list: ['os_admin', 'root'].`},
	} {
		if got := i.fails(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %q, not %q", c[0], got, c[2])
		}
	}

	login := func(name, password, want string) {
		t.Helper()
		if got := i.loginAs(name, password); got != want {
			t.Errorf("%s with %s: %q, not %q", name, password, got, want)
		}
	}
	login("ada", "p%a:ss word", "ada@%")
	i.must("change_passwords", `{"users": [{"name": "ada", "host": "%", "password": "another1"}]}`)
	login("ada", "another1", "ada@%")
	i.must("update_attributes", `{"username": "ada", "hostname": "%", "user_attrs": {"name": "lovelace", "host": "127.0.0.%", "password": "third3"}}`)
	login("lovelace", "third3", "lovelace@127.0.0.%")
	i.equal("list_access", `{"username": "lovelace", "hostname": "127.0.0.%"}`, "["+db("one")+","+db("three")+"]")
	i.must("delete_user", `{"user": {"_name": "lovelace", "_host": "127.0.0.%"}}`)
	i.equal("list_users", "", "[["+usr("bob", "10.0.0.%", db("two-b"))+","+eve+`],"eve@%"]`)

	i.equal("is_root_enabled", "", "false")
	root := i.must("enable_root", "").(map[string]any)
	password := root["_password"].(string)
	if root["_name"] != "root" || root["_host"] != "%" || root["_is_root"] != true || len(password) != 36 {
		t.Errorf("root is %v", root)
	}
	login("root", password, "root@%")
	i.equal("enable_root_with_password", `{"root_password": "mine-alone"}`,
		`{"_databases":[],"_host":"%","_is_root":true,"_name":"root","_password":"mine-alone"}`)
	login("root", "mine-alone", "root@%")
	i.must("disable_root", "")
	if got := i.loginAs("root", "mine-alone"); !strings.Contains(got, "Access denied") {
		t.Errorf("root may still log in: %q", got)
	}
	i.equal("is_root_enabled", "", "true") // as in Trove, the user remains
	if got := i.fails("get_root_password", ""); got != "The 'get_root_password' operation is not supported for the 'mariadb' datastore." {
		t.Error(got)
	}

	i.must("apply_overrides", `{"overrides": {"max_connections": 51, "max_allowed_packet": "2M", "no_such_thing": 1, "log_queries_not_using_indexes": true}}`)
	if got := i.query("SELECT @@max_connections, @@max_allowed_packet, @@log_queries_not_using_indexes"); got != "51\t2097152\t1" {
		t.Errorf("the server has %q", got)
	}
	i.must("update_overrides", `{"overrides": {"max_connections": 52}}`)
	i.must("restart", "")
	if got := i.query("SELECT @@max_connections"); got != "52" {
		t.Errorf("max_connections is %q", got)
	}
	i.must("update_overrides", `{"overrides": {}, "remove": true}`)
	i.must("reset_configuration", `{"configuration": {"config_contents": `+quoteJSON(i.config()+"max_connections=53\n")+`}}`)
	i.must("restart", "")
	if got := i.query("SELECT @@max_connections"); got != "53" {
		t.Errorf("max_connections is %q", got)
	}
	i.must("make_read_only", `{"read_only": true}`)
	if got := i.query("SELECT @@read_only"); got != "1" {
		t.Errorf("read_only is %q", got)
	}
	i.must("make_read_only", `{"read_only": false}`)
}

// TestTroveCancel: a call that is cancelled while its statement waits for a lock changes nothing after the lock is
// released.
func TestTroveCancel(t *testing.T) {
	i := newInstance(t, nil)
	i.prepare(`, "databases": [{"_name": "one"}], "users": [{"_name": "ada", "_password": "adasecret"}]`)
	lock := &mysqlServer{guest: i.guest()}
	defer lock.close()
	if err := lock.exec(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
		t.Fatal(err)
	}
	waiting := func() string {
		return i.query("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'GRANT%'")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- i.reg.Run(ctx, i.env, modules.Request{Fun: "trove.grant_access",
			Kwargs: i.args(`{"username": "ada", "hostname": "%", "databases": ["one"]}`)}).Err
	}()
	for waiting() == "0" {
		select {
		case err := <-done:
			t.Fatalf("the call does not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the call succeeds")
	}
	for end := time.Now().Add(20 * time.Second); waiting() != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the statement still waits")
		}
	}
	if err := lock.exec(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	i.equal("list_access", `{"username": "ada", "hostname": "%"}`, "[]")
}
