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
	"github.com/brine-salt/brine/interop/oracle"
)

// The differential test of the returners that keep returns in a server: a real one, on loopback and with its data in a temporary
// directory, is filled by stock Salt and by ours, and what is in it is compared. BRINE_SALT_3007 names stock's virtual
// environment, which has the client libraries.

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

// compare fills a database from both sides and compares it after each, JSON by its meaning.
func compare(t *testing.T, q question, clear func(), dump func() []string) {
	t.Helper()
	theirs := q.stock(t)
	stored := dump()
	clear()
	servers, names := &testserver.Servers{T: t}, strings.NewReplacer()
	q.lend(servers)
	ours := q.ours(t)
	if len(dump()) == 0 {
		t.Error("nothing is stored")
	}
	if diff := cmp.Diff(stored, dump()); diff != "" {
		t.Errorf("the database, filled by stock (-) and ours (+):\n%s", diff)
	}
	same(t, q, theirs, ours)
	book := oracle.OpenBook(t, answers)
	for _, q := range questions(0, "") {
		book.Know("databases", oracle.Key(q.Returner))
	}
	kept := oracle.Kept{Key: oracle.Key(q.Returner), Case: q.Returner}
	if (&oracle.Recorder{Servers: servers, Names: names}).Take(&kept, "") {
		list := make([]any, len(theirs))
		for i := range theirs {
			list[i] = theirs[i]
		}
		kept.Stock = oracle.Pack(list, names)
	}
	book.Keep(t, "databases", kept)
	book.Save(t)
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

// questionFor is the question for one of the returners.
func questionFor(returner string, port int, file string) question {
	list := questions(port, file)
	return list[slices.IndexFunc(list, func(q question) bool { return q.Returner == returner })]
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
	number, _ := strconv.Atoi(port)
	compare(t, questionFor("redis", number, ""), func() {
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
	q := questionFor("mysql", number, "")
	compare(t, q, func() { exec1(t, db, "DELETE FROM salt.jids", "DELETE FROM salt.salt_returns") }, func() []string {
		return append(rows(t, db, "SELECT fun, jid, `return`, id, success, full_ret FROM salt.salt_returns"), rows(t, db, "SELECT jid, `load` FROM salt.jids")...)
	})
	exec1(t, db, "DELETE FROM salt.jids", "DELETE FROM salt.salt_returns")
	q.Calls = [][2]any{{"returner", []any{someReturn("web1", "req", 1)}}}
	q.ours(t)
	if got := rows(t, db, "SELECT LENGTH(r.jid), j.jid = r.jid FROM salt.salt_returns r JOIN salt.jids j"); !cmp.Equal(got, []string{"20 | 1"}) {
		t.Errorf("a return without job: %v", got)
	}
}

func TestPostgres(t *testing.T) {
	port := testserver.Postgres(t)
	number, _ := strconv.Atoi(port)
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
			column := "text"
			if kind == "pgjsonb" {
				column = "jsonb"
			}
			exec1(t, db, "CREATE TABLE jids (jid varchar(255) PRIMARY KEY, load "+column+" NOT NULL)",
				"CREATE TABLE salt_returns (fun varchar(50) NOT NULL, jid varchar(255) NOT NULL, return "+column+" NOT NULL, full_ret "+column+", id varchar(255) NOT NULL, "+
					"success varchar(10) NOT NULL, alter_time TIMESTAMP WITH TIME ZONE DEFAULT now())")
			compare(t, questionFor(kind, number, ""), func() { exec1(t, db, "DELETE FROM jids", "DELETE FROM salt_returns") }, func() []string {
				return append(rows(t, db, "SELECT fun, jid, return, id, success, full_ret FROM salt_returns"), rows(t, db, "SELECT jid, load FROM jids")...)
			})
		})
	}
}

func TestSQLite(t *testing.T) {
	q := questionFor("sqlite3", 0, filepath.Join(t.TempDir(), "salt ü.db"))
	db := createSQLite(t, q)
	compare(t, q, func() { exec1(t, db, "DELETE FROM jids", "DELETE FROM salt_returns") }, func() []string {
		return append(rows(t, db, "SELECT fun, jid, id, fun_args, length(date), full_ret, success FROM salt_returns"), rows(t, db, "SELECT jid, load FROM jids")...)
	})
}
