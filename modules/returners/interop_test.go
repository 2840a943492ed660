//go:build interop && linux

package returners_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	_ "github.com/lib/pq"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners/mysql"
	"github.com/brine-salt/brine/modules/returners/postgres"
	"github.com/brine-salt/brine/modules/returners/redis"
	"github.com/brine-salt/brine/modules/returners/sqlite3"
)

// The differential test of the returners that keep returns in a server: a real one, on loopback and with its data in a temporary
// directory, is filled by stock Salt and by ours, and what is in it is compared. BRINE_SALT_3007 names stock's virtual
// environment, which has the client libraries.

type question struct {
	Returner string         `json:"returner"`
	Opts     map[string]any `json:"opts"`
	Calls    [][2]any       `json:"calls"`
}

// stock asks stock Salt.
func (q question) stock(t *testing.T) []map[string]any {
	t.Helper()
	var out struct {
		Missing string
		Answers []map[string]any
	}
	testsalt.Ask(t, q, &out, "testdata/stock.py")
	if out.Missing != "" {
		t.Fatalf("stock Salt cannot: %s", out.Missing)
	}
	return out.Answers
}

// ours does the same with our returner.
func (q question) ours(t *testing.T, m *modules.Module) []map[string]any {
	t.Helper()
	e := &modules.Env{ID: "web1", Opts: func() map[string]any { return q.Opts }}
	r := modules.NewRegistry(m)
	var out []map[string]any
	for _, c := range q.Calls {
		res := r.Run(t.Context(), e, modules.Request{Fun: q.Returner + "." + c[0].(string), Args: c[1].([]any)})
		if res.Err != nil {
			t.Errorf("%s: %v", c[0], res.Err)
		}
		out = append(out, map[string]any{"value": throughJSON(t, res.Return)})
	}
	return out
}

func throughJSON(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func someReturn(id, jid string, ret any) map[string]any {
	return map[string]any{"id": id, "jid": jid, "fun": "test.echo", "fun_args": []any{"x"}, "return": ret, "retcode": 0, "success": true}
}

// calls are what both sides are asked, in this order.
func calls(q question) question {
	load := map[string]any{"jid": "20261121100000000001", "fun": "test.echo", "arg": []any{"x"}, "tgt": "*", "tgt_type": "glob", "user": "root"}
	q.Calls = [][2]any{
		{"save_load", []any{"20261121100000000001", load}},
		{"returner", []any{someReturn("web1", "20261121100000000001", map[string]any{"a": []any{1, "ü", nil, 1.5, true}})}},
		{"returner", []any{someReturn("web2", "20261121100000000001", "text 'quoted' \\ \n")}},
		{"get_load", []any{"20261121100000000001"}}, {"get_load", []any{"20200101000000000000"}},
		{"get_jid", []any{"20261121100000000001"}}, {"get_jid", []any{"20200101000000000000"}},
		{"get_fun", []any{"test.echo"}}, {"get_fun", []any{"test.nosuch"}}, {"get_jids", []any{}}, {"get_minions", []any{}},
		{"prep_jid", []any{false, "20261121100000000002"}},
	}
	return q
}

// same compares answers, with lists of minions in any order. differs names functions of stock that are broken.
func same(t *testing.T, q question, theirs, ours []map[string]any, differs ...string) {
	t.Helper()
	for i, c := range q.Calls {
		name := c[0].(string)
		if slices.Contains(differs, name) {
			continue
		}
		a, b := theirs[i], ours[i]
		if name == "get_minions" {
			a, b = sorted(a), sorted(b)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s%v: stock (-) and ours (+):\n%s", name, c[1], diff)
		}
	}
}

func sorted(m map[string]any) map[string]any {
	list, _ := m["value"].([]any)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return m
}

// compare fills a database from both sides and compares it after each, JSON by its meaning.
func compare(t *testing.T, q question, m *modules.Module, clear func(), dump func() []string, differs ...string) {
	t.Helper()
	theirs := q.stock(t)
	stored := dump()
	clear()
	ours := q.ours(t, m)
	if len(dump()) == 0 {
		t.Error("nothing is stored")
	}
	if diff := cmp.Diff(stored, dump()); diff != "" {
		t.Errorf("the database, filled by stock (-) and ours (+):\n%s", diff)
	}
	same(t, q, theirs, ours, differs...)
}

// canonical gives a text that is JSON one spelling.
func canonical(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// rows are the rows of a query, each as one text.
func rows(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	r, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := r.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, v := range values {
			parts = append(parts, canonical(v.String))
		}
		out = append(out, strings.Join(parts, " | "))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func exec1(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestRedis(t *testing.T) {
	port := testserver.Redis(t, "--requirepass", "secret")
	cli := func(args ...string) (string, error) {
		args = append([]string{"-p", port, "-a", "secret", "--no-auth-warning"}, args...)
		b, err := exec.Command(testserver.Program(t, "redis-cli"), args...).Output()
		return strings.TrimSpace(string(b)), err
	}
	dump := func() []string {
		var out []string
		keys, _ := cli("keys", "*")
		for key := range strings.FieldsSeq(keys) {
			kind, _ := cli("type", key)
			value, _ := cli(map[string][]string{"string": {"get", key}, "hash": {"hgetall", key}, "set": {"smembers", key}}[kind]...)
			lines := strings.Split(value, "\n")
			for i := range lines {
				lines[i] = canonical(lines[i])
			}
			slices.Sort(lines)
			ttl, _ := cli("ttl", key)
			out = append(out, fmt.Sprint(key, " ", kind, " ", lines, " expires ", ttl != "-1"))
		}
		slices.Sort(out)
		return out
	}
	q := calls(question{Returner: "redis", Opts: map[string]any{"redis.host": "127.0.0.1", "redis.port": port, "redis.password": "secret", "redis.db": "0"}})
	q.Calls = append(q.Calls, [2]any{"clean_old_jobs", []any{}}, [2]any{"get_jid", []any{"20261121100000000001"}})
	compare(t, q, redis.Module(), func() {
		if _, err := cli("flushall"); err != nil {
			t.Fatal(err)
		}
	}, dump)
}

func TestMySQL(t *testing.T) {
	socket, port := testserver.MariaDB(t)
	db, err := sql.Open("mysql", "root@unix("+socket+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, "mariadb", db.PingContext)
	exec1(t, db, "CREATE DATABASE salt CHARACTER SET utf8mb4", "CREATE USER salt@'127.0.0.1' IDENTIFIED BY 'p''w'", "GRANT ALL ON salt.* TO salt@'127.0.0.1'",
		"CREATE TABLE salt.jids (jid varchar(255) NOT NULL, `load` mediumtext NOT NULL, UNIQUE KEY jid (jid)) ENGINE=InnoDB",
		"CREATE TABLE salt.salt_returns (fun varchar(50) NOT NULL, jid varchar(255) NOT NULL, `return` mediumtext NOT NULL, id varchar(255) NOT NULL, "+
			"success varchar(10) NOT NULL, full_ret mediumtext NOT NULL, alter_time TIMESTAMP DEFAULT CURRENT_TIMESTAMP, KEY id (id)) ENGINE=InnoDB")
	number, _ := strconv.Atoi(port)
	q := calls(question{Returner: "mysql", Opts: map[string]any{"mysql.host": "127.0.0.1", "mysql.port": number, "mysql.pass": "p'w"}})
	compare(t, q, mysql.Module(), func() { exec1(t, db, "DELETE FROM salt.jids", "DELETE FROM salt.salt_returns") }, func() []string {
		return append(rows(t, db, "SELECT fun, jid, `return`, id, success, full_ret FROM salt.salt_returns"), rows(t, db, "SELECT jid, `load` FROM salt.jids")...)
	})
	exec1(t, db, "DELETE FROM salt.jids", "DELETE FROM salt.salt_returns")
	alone := question{Returner: "mysql", Opts: q.Opts, Calls: [][2]any{{"returner", []any{someReturn("web1", "req", 1)}}}}
	alone.ours(t, mysql.Module())
	if got := rows(t, db, "SELECT LENGTH(r.jid), j.jid = r.jid FROM salt.salt_returns r JOIN salt.jids j"); !cmp.Equal(got, []string{"20 | 1"}) {
		t.Errorf("a return without job: %v", got)
	}
}

func TestPostgres(t *testing.T) {
	port := testserver.Postgres(t)
	for _, kind := range []string{"postgres", "pgjsonb"} {
		t.Run(kind, func(t *testing.T) {
			open := func(name string) *sql.DB {
				db, err := sql.Open("postgres", "host=127.0.0.1 user=postgres sslmode=disable port="+port+" dbname="+name)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
			admin := open("postgres")
			testserver.Until(t, "postgres", admin.PingContext)
			exec1(t, admin, "CREATE DATABASE salt_"+kind)
			db := open("salt_" + kind)
			column, m, password := "text", postgres.Module(), "passwd"
			differs := []string{"get_fun"} // stock's statement has the quotes of MySQL
			if kind == "pgjsonb" {
				column, m, password, differs = "jsonb", postgres.JSONB(), "pass", nil
			}
			exec1(t, db, "CREATE TABLE jids (jid varchar(255) PRIMARY KEY, load "+column+" NOT NULL)",
				"CREATE TABLE salt_returns (fun varchar(50) NOT NULL, jid varchar(255) NOT NULL, return "+column+" NOT NULL, full_ret "+column+", id varchar(255) NOT NULL, "+
					"success varchar(10) NOT NULL, alter_time TIMESTAMP WITH TIME ZONE DEFAULT now())")
			p := "returner." + kind + "."
			q := calls(question{Returner: kind, Opts: map[string]any{p + "host": "127.0.0.1", p + "port": port, p + "user": "postgres", p + password: "any", p + "db": "salt_" + kind}})
			compare(t, q, m, func() { exec1(t, db, "DELETE FROM jids", "DELETE FROM salt_returns") }, func() []string {
				return append(rows(t, db, "SELECT fun, jid, return, id, success, full_ret FROM salt_returns"), rows(t, db, "SELECT jid, load FROM jids")...)
			}, differs...)
		})
	}
}

func TestSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt ü.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec1(t, db, "CREATE TABLE jids (jid TEXT PRIMARY KEY, load TEXT NOT NULL)",
		"CREATE TABLE salt_returns (fun TEXT KEY, jid TEXT KEY, id TEXT KEY, fun_args TEXT, date TEXT NOT NULL, full_ret TEXT NOT NULL, success TEXT NOT NULL)")
	q := calls(question{Returner: "sqlite3", Opts: map[string]any{"sqlite3.database": path, "sqlite3.timeout": 5}})
	compare(t, q, sqlite3.Module(), func() { exec1(t, db, "DELETE FROM jids", "DELETE FROM salt_returns") }, func() []string {
		return append(rows(t, db, "SELECT fun, jid, id, fun_args, length(date), full_ret, success FROM salt_returns"), rows(t, db, "SELECT jid, load FROM jids")...)
	}, "get_jid", "get_fun") // stock shows one minion only and fails on more
}
