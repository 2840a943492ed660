package trove

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/brine-salt/brine/modules"
)

// postgresServer is the instance's PostgreSQL, reached over its socket. A call opens at most one connection.
type postgresServer struct {
	*guest
	conn driver.Conn
}

// superUser is the user as which Trove's agent works. The access rules allow it to log in only from this host,
// without a password.
const superUser = "postgres"

func (p *postgresServer) ping(ctx context.Context) error {
	_, err := p.query(ctx, "SELECT 1")
	return err
}

// connect logs in as the superuser. It ignores the environment of this process.
func (p *postgresServer) connect(ctx context.Context) error {
	if p.conn != nil {
		return nil
	}
	c, err := pq.NewConnectorConfig(pq.Config{Host: p.c.Path(p.socket), Port: uint16(p.postgresPort), User: superUser,
		Database: superUser, SSLMode: pq.SSLModeDisable, ConnectTimeout: connectTimeout})
	if err != nil {
		return modules.Errorf("cannot connect to the datastore: %v", err)
	}
	if p.conn, err = c.Connect(ctx); err != nil {
		p.conn = nil
		return fmt.Errorf("cannot connect to the datastore as %s at %s: %w", superUser, p.socket, postgresError(err))
	}
	return nil
}

func (p *postgresServer) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

// postgresError converts an error of the driver into a sqlError.
func postgresError(err error) error {
	var said *pq.Error
	if errors.As(err, &said) {
		return &sqlError{state: string(said.Code), text: said.Message}
	}
	return err
}

// query runs a statement and returns its rows. Statements have no arguments, so each is a simple query that commits
// by itself.
func (p *postgresServer) query(ctx context.Context, statement string) ([]row, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	_, rows, err := readTable(ctx, p.conn, statement, postgresError)
	return rows, err
}

// first returns the first column of the first row, or "" if it is missing.
func (p *postgresServer) first(ctx context.Context, statement string) (string, error) {
	rows, err := p.query(ctx, statement)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].text(0), nil
}

func (p *postgresServer) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := p.query(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// pgText quotes a text for a statement.
func pgText(s string) string { return pq.QuoteLiteral(s) }

// pgName quotes a name for a statement. The server refuses a name with a zero byte; the driver's function would cut
// the name there.
func pgName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// program returns the path of one of PostgreSQL's programs. It searches the configured directory, Debian's directory
// for the version, the newest installed version, and PATH, in this order.
func (p *postgresServer) program(name string) (string, error) {
	if p.inContainer() {
		return name, nil // the image has it in PATH
	}
	if p.postgresBin != "" {
		return path.Join(p.postgresBin, name), nil
	}
	major, _, _ := strings.Cut(p.version, ".")
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	version := func(file string) string { return filepath.Base(filepath.Dir(filepath.Dir(file))) }
	if i := slices.IndexFunc(found, func(file string) bool { return version(file) == major }); i >= 0 {
		return found[i], nil
	}
	if major == "" && len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int {
			if olderThan(version(a), version(b)) {
				return -1
			}
			return 1
		}), nil
	}
	if file := p.c.Which(name); file != "" {
		return file, nil
	}
	return "", modules.Errorf("cannot find PostgreSQL's program %s of version %q (set postgresql_bin in the option trove)",
		name, p.version)
}

// asOwner runs one of PostgreSQL's programs as the owner of the data, because the programs refuse to run as root.
func (p *postgresServer) asOwner(ctx context.Context, env []string, name string, args ...string) error {
	file, err := p.program(name)
	if err != nil {
		return err
	}
	cmd := modules.Command{Args: append([]string{file}, args...), Dir: "/", Env: env}
	if os.Geteuid() == 0 {
		cmd.RunAs = p.owner
	}
	return p.pipeAs(ctx, cmd, p.ownerInside())
}
