//go:build interop && linux

package mysql_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/storetest"
)

func TestServer(t *testing.T) {
	socket, _ := testserver.MariaDB(t)
	dsn := func(name string) string { return "root@unix(" + socket + ")/" + name }
	db, err := sql.Open("mysql", dsn(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, "mysql", db.PingContext)
	storetest.RunServer(t, db, func(name string) (store.Shared, error) { return mysql.Open(dsn(name)) },
		func(name string) (*sql.DB, error) { return sql.Open("mysql", dsn(name)) })
}

// TestLargeReturn stores a return that is larger than the server accepts. It is stored as a failure that explains
// this.
func TestLargeReturn(t *testing.T) {
	socket, _ := testserver.MariaDB(t)
	dsn := func(name string) string { return "root@unix(" + socket + ")/" + name }
	db, err := sql.Open("mysql", dsn(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testserver.Until(t, "mysql", db.PingContext)
	for _, statement := range []string{"CREATE DATABASE large", "SET GLOBAL max_allowed_packet = 1048576"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s, err := mysql.Open(dsn("large"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const jid = "20260101000000000000"
	load := func(n int) map[string]any {
		return map[string]any{"return": strings.Repeat("x", n), "retcode": int64(0), "success": true, "fun": "cmd.run"}
	}
	for id, n := range map[string]int{"small": 1 << 10, "large": 3 << 20} {
		if first, err := s.SaveReturn(t.Context(), store.Return{JID: jid, ID: id, Load: load(n), Received: time.Now()}); err != nil || !first {
			t.Fatal(id, first, err)
		}
	}
	list, err := s.ReturnsOf(t.Context(), jid, []string{"large", "small"})
	if err != nil || len(list) != 2 {
		t.Fatal(len(list), err)
	}
	for _, r := range list {
		if r.ID == "small" && cmp.Diff(load(1<<10), r.Load) != "" {
			t.Errorf("small: %v", r.Load)
		}
		text, _ := r.Load["return"].(string)
		if r.ID == "large" && (r.Load["success"] != false || cmp.Diff(int64(1), r.Load["retcode"]) != "" || !strings.Contains(text, store.ErrTooLarge.Error())) {
			t.Errorf("large: %.200v", r.Load)
		}
	}
}
