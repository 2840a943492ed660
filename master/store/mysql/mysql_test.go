//go:build interop && linux

package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/brine-salt/brine/internal/testserver"
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
