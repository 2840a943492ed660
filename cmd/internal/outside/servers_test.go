//go:build interop && linux

package outside

import (
	"context"
	"database/sql"
	"errors"
	"syscall"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	_ "github.com/brine-salt/brine/master/store/postgres" // the driver
)

func init() {
	withServers = func(add func(name string, make func(s *site), rows ...row), run func(line string, code int, texts string) row,
		web func(func(s *site)) func(s *site)) {
		lost := func(s *site) {
			s.t.Helper()
			server := testserver.PostgresServer(s.t)
			s.write("sealing", "0123456789abcdef0123456789abcdef")
			s.option("master", "shared_key_file: "+s.path("sealing"))
			dsn := "postgres://postgres@127.0.0.1:" + server.Port + "/postgres?sslmode=disable"
			s.option("master", "shared_database: "+dsn)
			db, err := sql.Open("postgres", dsn)
			if err != nil {
				s.t.Fatal(err)
			}
			testserver.Until(s.t, "postgres", db.PingContext)
			if err := db.Close(); err != nil {
				s.t.Fatal(err)
			}
			s.serve()
			if err := syscall.Kill(server.PID(), syscall.SIGINT); err != nil {
				s.t.Fatal(err)
			}
			testserver.Until(s.t, "the end of postgres", func(ctx context.Context) error {
				if testserver.Reach(ctx, server.Port) == nil {
					return errAlive
				}
				return nil
			})
		}
		const cannot = "connection refused"
		add("database is lost", lost,
			run("salt m test.ping", 1, cannot).unlike(0), run("salt --async m test.ping", 1, cannot), run("salt --static m test.ping", 1, cannot),
			run("salt-key -L", 1, cannot), run("salt-key -y -d m", 1, cannot), run("salt-run jobs.list_jobs", 1, cannot),
			run("salt-run manage.up", 1, cannot), run("salt-call test.ping", 1, "Is master at 127.0.0.1 responding?"))
		// A client of the HTTP interface does not get the database's address. The master's log has the cause.
		add("HTTP: database is lost", web(lost),
			run("http /run client=local&tgt=m&fun=test.ping&eauth=file&username=ann&password=right", 503,
				"the database server cannot be reached"),
			run("http /login eauth=file&username=ann&password=right", 200, "token"))
	}
}

var errAlive = errors.New("it still runs")
