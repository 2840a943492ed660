package trove

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/internal/modkit/dbpage"
	"github.com/brine-salt/brine/modules"
)

// mysqlServer is the instance's MySQL or MariaDB, reached through its socket. A call opens at most one connection.
type mysqlServer struct {
	*guest
	conn driver.Conn
	user string // the current user
	id   string // the server's id of the connection
}

const (
	// adminUser is the user of Trove's agent.
	adminUser      = "os_admin"
	connectTimeout = 10 * time.Second
)

// credentials returns the user and password: os_admin's or, before os_admin exists, root's. Before root has a saved
// password it is root without a password, which the socket accepts.
func (m *mysqlServer) credentials() (user, password string, err error) {
	for _, user := range [...]string{adminUser, "root"} {
		password, ok, err := m.savedPassword(user)
		if err != nil || ok {
			return user, password, err
		}
	}
	return "root", "", nil
}

// savedPassword reads the option file of a user. It is on the volume, so that a rebuilt instance finds it.
func (m *mysqlServer) savedPassword(user string) (password string, ok bool, err error) {
	name := path.Join(m.confDir(), user+".cnf")
	b, err := os.ReadFile(m.c.Path(name))
	if missing(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, modules.Errorf("cannot read %s: %v", name, err)
	}
	return parseINI(string(b)).get("client", "password"), true, nil
}

// savePassword writes the option file of a user, which only root can read.
func (m *mysqlServer) savePassword(user, password string) error {
	if err := os.MkdirAll(m.c.Path(m.confDir()), 0o755); err != nil {
		return modules.Errorf("cannot make the directory %s: %v", m.confDir(), err)
	}
	f := iniFile{{name: "client", keys: []iniKey{{"user", user, true}, {"password", password, true}, {"host", "localhost", true}}}}
	name := path.Join(m.confDir(), user+".cnf")
	return m.writeRoots(name, f.String())
}

func (m *mysqlServer) ping(ctx context.Context) error {
	_, err := m.query(ctx, "SELECT 1")
	return err
}

// connect logs in as the administrator.
func (m *mysqlServer) connect(ctx context.Context) error {
	if m.conn != nil {
		return nil
	}
	user, password, err := m.credentials()
	if err != nil {
		return err
	}
	return m.connectAs(ctx, user, password)
}

func (m *mysqlServer) connectAs(ctx context.Context, user, password string) error {
	m.close()
	conf := mysql.NewConfig()
	conf.User, conf.Passwd, conf.Net, conf.Addr = user, password, "unix", m.c.Path(m.socket)
	conf.Timeout, conf.AllowFallbackToPlaintext, conf.Logger = connectTimeout, true, silent{}
	if err := conf.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return modules.Errorf("cannot connect to the datastore: %v", err)
	}
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return modules.Errorf("cannot connect to the datastore: %v", err)
	}
	if m.conn, err = connector.Connect(ctx); err != nil {
		m.conn = nil
		return fmt.Errorf("cannot connect to the datastore as %s at %s: %w", user, m.socket, serverError(err))
	}
	m.user = user
	// Quoting must not depend on the server's mode.
	if _, err = m.query(ctx, "SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION'"); err == nil {
		m.id, err = m.first(ctx, "SELECT CONNECTION_ID()")
	}
	return err
}

// silent prevents the driver from writing to standard error.
type silent struct{}

func (silent) Print(...any) {}

func (m *mysqlServer) maintain() error { return nil }

func (m *mysqlServer) close() {
	if m.conn != nil {
		_ = m.conn.Close()
		m.conn, m.id = nil, ""
	}
}

// serverError converts an error of the driver to a *sqlError if the server sent it.
func serverError(err error) error {
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return &sqlError{code: said.Number, text: said.Message}
	}
	return err
}

// exec runs statements one after the other.
func (m *mysqlServer) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := m.query(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// query runs a statement and returns its rows.
func (m *mysqlServer) query(ctx context.Context, statement string) ([]row, error) {
	_, rows, err := m.table(ctx, statement)
	return rows, err
}

// first returns the first column of the first row, or "" if it is missing.
func (m *mysqlServer) first(ctx context.Context, statement string) (string, error) {
	rows, err := m.query(ctx, statement)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].text(0), nil
}

// named returns the first row by the names of its columns, or nil if it is missing.
func (m *mysqlServer) named(ctx context.Context, statement string) (map[string]string, error) {
	names, rows, err := m.table(ctx, statement)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	out := make(map[string]string, len(names))
	for i, name := range names {
		out[name] = rows[0].text(i)
	}
	return out, nil
}

func (m *mysqlServer) table(ctx context.Context, statement string) (names []string, rows []row, err error) {
	if err := m.connect(ctx); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.Join(err, m.kill(ctx))
		}
	}()
	return readTable(ctx, m.conn, statement, serverError)
}

// quote quotes a text for a statement. With the session's sql_mode, a backslash is an escape character.
func quote(s string) string { return dbpage.QuoteMySQL(s) }

// ident quotes a name for a statement.
func ident(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// account returns user@host for a statement.
func account(name, host string) string { return quote(name) + "@" + quote(host) }
