package returners_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners/mysql"
	"github.com/brine-salt/brine/modules/returners/postgres"
	"github.com/brine-salt/brine/modules/returners/redis"
	"github.com/brine-salt/brine/modules/returners/sqlite3"
)

// answers is where stock's answers are kept, with what ours said to the servers then.
const answers = "testdata/stock/answers"

// question is what both sides are asked: calls of the functions of a returner, in this order.
type question struct {
	Returner string         `json:"returner"`
	Opts     map[string]any `json:"opts"`
	Calls    [][2]any       `json:"calls"`

	module  *modules.Module
	port    string   // the option that has the server's port, "" without a server
	differs []string // functions of stock that are broken
}

// questions are those for all returners that keep returns in a database, which is at this port, or in this file.
func questions(port int, file string) []question {
	list := []question{
		{Returner: "redis", module: redis.Module(), port: "redis.port",
			Opts: map[string]any{"redis.host": "127.0.0.1", "redis.port": port, "redis.password": "secret", "redis.db": "0"}},
		{Returner: "mysql", module: mysql.Module(), port: "mysql.port",
			Opts: map[string]any{"mysql.host": "127.0.0.1", "mysql.port": port, "mysql.pass": "p'w"}},
		{Returner: "postgres", module: postgres.Module(), port: "returner.postgres.port",
			Opts:    postgresOptions("postgres", "passwd", port),
			differs: []string{"get_fun"}}, // stock's statement has the quotes of MySQL
		{Returner: "pgjsonb", module: postgres.JSONB(), port: "returner.pgjsonb.port",
			Opts: postgresOptions("pgjsonb", "pass", port)},
		{Returner: "sqlite3", module: sqlite3.Module(),
			Opts:    map[string]any{"sqlite3.database": file, "sqlite3.timeout": 5},
			differs: []string{"get_jid", "get_fun"}}, // stock shows one minion only and fails on more
	}
	for i := range list {
		list[i].Calls = calls()
	}
	list[0].Calls = append(list[0].Calls, [2]any{"clean_old_jobs", []any{}}, [2]any{"get_jid", []any{"20261121100000000001"}})
	return list
}

func postgresOptions(kind, password string, port int) map[string]any {
	p := "returner." + kind + "."
	return map[string]any{p + "host": "127.0.0.1", p + "port": strconv.Itoa(port), p + "user": "postgres",
		p + password: "any", p + "db": "salt_" + kind}
}

// TestReplay asks ours what stock was asked, with the servers' answers of then.
func TestReplay(t *testing.T) {
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, q := range questions(0, filepath.Join(t.TempDir(), "salt ü.db")) {
		key := oracle.Key(q.Returner)
		book.Know("databases", key)
		kept, ok := book.Find("databases", key)
		if !match.MatchString(q.Returner) || !tally.Count(t, q.Returner, kept, ok) {
			continue
		}
		passed := t.Run(q.Returner, func(t *testing.T) {
			servers := &testserver.Servers{T: t, Replay: true}
			q.lend(servers)
			names := oracle.ReplayNames(t, "")
			(&oracle.Replayer{Names: names, Servers: servers}).Give(t, kept)
			if q.Returner == "sqlite3" {
				createSQLite(t, q)
			}
			var theirs []map[string]any
			for _, a := range oracle.Unpack(kept.Stock, names).([]any) {
				theirs = append(theirs, throughJSON(t, a).(map[string]any))
			}
			same(t, q, theirs, q.ours(t))
		})
		if !passed {
			book.Suspect("databases", kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}

// lend puts a tape in front of the server of the question.
func (q *question) lend(servers *testserver.Servers) {
	if q.port == "" {
		return
	}
	q.Opts = maps.Clone(q.Opts)
	address := servers.Lend("@"+strings.ToUpper(q.Returner)+"@", "tcp", fmt.Sprint(q.Opts[q.port]))
	if _, isText := q.Opts[q.port].(string); isText {
		q.Opts[q.port] = address
	} else {
		q.Opts[q.port], _ = strconv.Atoi(address)
	}
}

// createSQLite makes the tables in the file of the question.
func createSQLite(t *testing.T, q question) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", q.Opts["sqlite3.database"].(string))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec1(t, db, "CREATE TABLE jids (jid TEXT PRIMARY KEY, load TEXT NOT NULL)",
		"CREATE TABLE salt_returns (fun TEXT KEY, jid TEXT KEY, id TEXT KEY, fun_args TEXT, date TEXT NOT NULL, full_ret TEXT NOT NULL, success TEXT NOT NULL)")
	return db
}

// ours does the same with our returner.
func (q question) ours(t *testing.T) []map[string]any {
	t.Helper()
	e := &modules.Env{ID: "web1", Opts: func() map[string]any { return q.Opts }}
	r := modules.NewRegistry(q.module)
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
func calls() [][2]any {
	load := map[string]any{"jid": "20261121100000000001", "fun": "test.echo", "arg": []any{"x"}, "tgt": "*", "tgt_type": "glob", "user": "root"}
	return [][2]any{
		{"save_load", []any{"20261121100000000001", load}},
		{"returner", []any{someReturn("web1", "20261121100000000001", map[string]any{"a": []any{1, "ü", nil, 1.5, true}})}},
		{"returner", []any{someReturn("web2", "20261121100000000001", "text 'quoted' \\ \n")}},
		{"get_load", []any{"20261121100000000001"}}, {"get_load", []any{"20200101000000000000"}},
		{"get_jid", []any{"20261121100000000001"}}, {"get_jid", []any{"20200101000000000000"}},
		{"get_fun", []any{"test.echo"}}, {"get_fun", []any{"test.nosuch"}}, {"get_jids", []any{}}, {"get_minions", []any{}},
		{"prep_jid", []any{false, "20261121100000000002"}},
	}
}

// same compares answers, with lists of minions in any order.
func same(t *testing.T, q question, theirs, ours []map[string]any) {
	t.Helper()
	for i, c := range q.Calls {
		name := c[0].(string)
		if slices.Contains(q.differs, name) {
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

func exec1(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
