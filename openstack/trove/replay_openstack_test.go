//go:build openstack

package trove

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// replayed is one call, as Trove's manager makes it of its administrator and as ours gets it. The arguments are the
// same but for a few names.
type replayed struct{ fun, kwargs, method string }

var replayedMariaDB = []replayed{
	{"create_database", `{"databases": [{"_name": "one", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"}, {"_name": "two", "_character_set": "latin1"},` +
		`{"_name": "three-3", "_character_set": null, "_collate": "latin2_general_ci"}]}`, "create_databases"},
	{"create_database", `{"databases": [{"_name": "x"}]}`, "create_databases"},
	{"create_database", `{"databases": [{"_name": ""}]}`, "create_databases"},
	{"create_database", `{"databases": [{"_name": "sys"}]}`, "create_databases"},
	{"create_database", `{"databases": [{"_name": "nn", "_character_set": "none"}]}`, "create_databases"},
	{"create_database", `{"databases": [{"_name": "nn", "_character_set": null, "_collate": "none"}]}`, "create_databases"},
	{"list_databases", `{}`, "list_databases"},
	{"list_databases", `{"limit": 2}`, "list_databases"},
	{"list_databases", `{"limit": 2, "marker": "three-3"}`, "list_databases"},
	{"list_databases", `{"limit": 1, "marker": "three-3", "include_marker": true}`, "list_databases"},
	{"list_databases", `{"limit": 3}`, "list_databases"},
	{"list_databases", `{"limit": 0}`, "list_databases"},
	{"list_users", `{}`, "list_users"},
	{"create_user", `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret", "_databases": [{"_name": "one"}, {"_name": "two"}]},` +
		`{"_name": "bob", "_host": "10.0.0.%", "_password": "bobsecret"}, {"_name": "eve", "_password": "evesecret"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "root", "_password": "secret1"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "a very long name x", "_password": "secret1"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "se;mi", "_password": "secret1"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "mal", "_password": "secret1", "_host": "a.example"}]}`, "create_users"},
	{"create_user", `{"users": [{"_name": "mal", "_password": "secret1", "_databases": [{"_name": "n"}]}]}`, "create_users"},
	{"list_users", `{}`, "list_users"},
	{"list_users", `{"limit": 2}`, "list_users"},
	{"list_users", `{"limit": 2, "marker": "bob@10.0.0.%"}`, "list_users"},
	{"list_users", `{"limit": 1, "marker": "bob@10.0.0.%", "include_marker": true}`, "list_users"},
	{"get_user", `{"username": "ada", "hostname": "%"}`, "get_user"},
	{"get_user", `{"username": "ada", "hostname": "10.0.0.1"}`, "get_user"},
	{"get_user", `{"username": "os_admin", "hostname": "%"}`, "get_user"},
	{"get_user", `{"username": "se;mi", "hostname": "%"}`, "get_user"},
	{"grant_access", `{"username": "eve", "hostname": "%", "databases": ["two", "three-3"]}`, "grant_access"},
	{"grant_access", `{"username": "eve", "hostname": "%", "databases": ["mysql"]}`, "grant_access"},
	{"revoke_access", `{"username": "eve", "hostname": "%", "database": "two"}`, "revoke_access"},
	{"revoke_access", `{"username": "eve", "hostname": "%", "database": "one"}`, "revoke_access"},
	{"list_access", `{"username": "eve", "hostname": "%"}`, "list_access"},
	{"change_passwords", `{"users": [{"name": "eve", "host": "%", "password": "evesecret2"}]}`, "change_passwords"},
	{"change_passwords", `{"users": [{"name": "nobody", "host": "%", "password": "secret1"}]}`, "change_passwords"},
	{"update_attributes", `{"username": "bob", "hostname": "10.0.0.%", "user_attrs": {"name": "bobby", "password": "bobsecret2"}}`, "update_attributes"},
	{"update_attributes", `{"username": "bobby", "hostname": "10.0.0.%", "user_attrs": {"host": "%"}}`, "update_attributes"},
	{"is_root_enabled", `{}`, "is_root_enabled"},
	{"enable_root_with_password", `{"root_password": "rootsecret"}`, "enable_root"},
	{"is_root_enabled", `{}`, "is_root_enabled"},
	{"delete_user", `{"user": {"_name": "ada", "_host": "%"}}`, "delete_user"},
	{"delete_user", `{"user": {"_name": "ada", "_host": "%"}}`, "delete_user"},
	{"delete_user", `{"user": {"_name": "root", "_host": "%"}}`, "delete_user"},
	{"delete_database", `{"database": {"_name": "two"}}`, "delete_database"},
	{"delete_database", `{"database": {"_name": "two"}}`, "delete_database"},
	{"delete_database", `{"database": {"_name": "mysql"}}`, "delete_database"},
	{"list_users", `{}`, "list_users"},
	{"list_databases", `{}`, "list_databases"},
}

// TestTroveT2Replay makes the same calls of Trove's own administrator and of ours, on two servers, and compares the
// answers and the servers.
func TestTroveT2Replay(t *testing.T) {
	ours, theirs := newInstance(t, nil), newInstance(t, nil)
	ours.prepare("")
	theirs.prepare("")
	password, _, err := (&mysqlServer{guest: theirs.guest()}).savedPassword(adminUser)
	if err != nil {
		t.Fatal(err)
	}
	replay(t, ours, replayedMariaDB, "mariadb", theirs.dir+"/s", password)
	for _, statement := range []string{
		"SELECT User, Host, plugin, authentication_string FROM mysql.user WHERE User NOT IN ('os_admin', 'root', 'mariadb.sys', 'mysql') ORDER BY 1, 2",
		"SELECT * FROM information_schema.schemata ORDER BY 2",
		"SELECT * FROM information_schema.schema_privileges ORDER BY 1, 2, 3, 4",
		"SELECT * FROM information_schema.user_privileges WHERE grantee NOT LIKE '%os_admin%' ORDER BY 1, 2, 3",
	} {
		if diff := cmp.Diff(strings.Split(theirs.query(statement), "\n"), strings.Split(ours.query(statement), "\n")); diff != "" {
			t.Errorf("%s (-Trove's +ours):\n%s", statement, diff)
		}
	}
}

// replay makes the calls of ours and of Trove's administrator, which works on its own server, and compares the
// answers.
func replay(t *testing.T, ours *instance, calls []replayed, server ...string) {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import trove").Run(); err != nil {
		prereq.Missing(t, "Trove for /usr/bin/python3 (Debian: python3-trove)")
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"testdata/replay.py"}, server...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	refused := 0
	for _, c := range calls {
		if _, err := in.Write([]byte("[" + quoteJSON(c.method) + ", " + c.kwargs + "]\n")); err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		want := map[string]any{}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		v, failure := ours.run(c.fun, ours.args(c.kwargs))
		if failure != nil {
			refused++
			got["error"] = failure.Error()
			if isServerError(failure) {
				got["error"] = nil
			}
		} else if err := json.Unmarshal([]byte(quoteJSON(v)), &v); err != nil {
			t.Fatal(err)
		} else {
			got["return"] = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-Trove's +ours):\n%s", c.fun, c.kwargs, diff)
		}
	}
	t.Logf("%d calls, %d of them refused, are equal", len(calls), refused)
}

// guest returns the agent in the instance, outside of a call.
func (i *instance) guest() *guest {
	i.t.Helper()
	s, err := readSettings(i.opts["trove"])
	if err != nil {
		i.t.Fatal(err)
	}
	return &guest{settings: s, c: i.reg.NewCall(i.env, "trove.rpc_ping", "", nil)}
}
