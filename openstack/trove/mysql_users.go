package trove

import (
	"context"
	"crypto/rand"
	"math/big"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/dbpage"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// reserved returns Trove's error for a reserved name, or nil if the name is not in the list.
func reserved(what, kind, name string, list []string) error {
	if !slices.Contains(list, name) {
		return nil
	}
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	if what != "" {
		what += ": "
	}
	return modules.Errorf("%s%s name \"%s\" is on the reserved list: %s.", what, kind, name, pytext.Repr(values))
}

func (m *mysqlServer) createDatabases(ctx context.Context, v any) error {
	list, err := maps1(v, "databases")
	if err != nil {
		return err
	}
	for _, x := range list {
		s, err := mysqlNames.readSchema(x)
		if err == nil {
			err = reserved("Cannot create database", "Database", s.name, m.ignoreDB)
		}
		if err == nil {
			err = m.createDatabase(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createDatabase creates a database unless it exists. As in Trove, the defaults are utf8 and utf8_general_ci.
func (m *mysqlServer) createDatabase(ctx context.Context, s schema) error {
	statement := "CREATE DATABASE IF NOT EXISTS " + ident(s.name)
	if s.charset == "" && s.collate == "" {
		s.charset, s.collate = "utf8", "utf8_general_ci"
	}
	if s.charset != "" {
		statement += " CHARACTER SET = " + quote(s.charset)
	}
	if s.collate != "" {
		statement += " COLLATE = " + quote(s.collate)
	}
	err := m.exec(ctx, statement)
	switch {
	case isCode(err, 1115):
		return modules.Errorf("'%s' not a valid character set.", s.charset)
	case isCode(err, 1273):
		return modules.Errorf("'%s' not a valid collation.", s.collate)
	case isCode(err, 1253):
		return modules.Errorf("%s not a valid collation for charset %s.", s.collate, s.charset)
	}
	return err
}

func (m *mysqlServer) deleteDatabase(ctx context.Context, v any) error {
	x, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("database must be a dictionary, not %s", modules.TypeName(v))
	}
	s, err := mysqlNames.readSchema(x)
	if err == nil {
		err = reserved("Cannot delete database", "Database", s.name, m.ignoreDB)
	}
	if err != nil {
		return err
	}
	return m.exec(ctx, "DROP DATABASE "+ident(s.name))
}

// page is the page that a listing asks for. limited means that there is a limit, which may be 0.
type page struct {
	dbpage.Page
	limited bool
}

// readPage reads limit, marker and include_marker.
func (g *guest) readPage() (p page, err error) {
	if g.c.Value("limit") != nil {
		p.limited = true
		if p.Limit, err = g.c.Int("limit"); err != nil {
			return p, err
		}
	}
	p.Marker, p.Include = g.c.Str("marker"), g.c.Bool("include_marker")
	return p, nil
}

// cut removes the row after the page. As in Trove, the marker of a listing without a limit is the name of the last
// row; the last page of a listing with a limit has no marker.
func cut[T any](p page, rows []T, marker func(T) string) ([]T, any) {
	n := len(rows)
	if p.limited {
		rows = rows[:min(n, int(max(p.Limit, 0)))]
	}
	if len(rows) == 0 || p.limited && int64(n) <= p.Limit {
		return rows, nil
	}
	return rows, marker(rows[len(rows)-1])
}

func (m *mysqlServer) listDatabases(ctx context.Context) (any, error) {
	p, err := m.readPage()
	if err != nil {
		return nil, err
	}
	rows, err := m.query(ctx, dbpage.MySQLDatabases(p.Page, m.ignoreDB))
	if err != nil {
		return nil, err
	}
	rows, next := cut(p, rows, func(r row) string { return r.text(0) })
	list := []any{}
	for _, r := range rows {
		list = append(list, schema{r.text(0), r.text(2), r.text(1)}.serialize())
	}
	return []any{list, next}, nil
}

func (m *mysqlServer) createUsers(ctx context.Context, v any) error {
	list, err := maps1(v, "users")
	if err != nil {
		return err
	}
	for _, x := range list {
		u, databases, err := mysqlNames.readUser(x)
		if err == nil && !u.isRoot {
			err = reserved("Cannot create user", "User", u.name, m.ignoreUsers)
		}
		if err != nil {
			return err
		}
		statement := "CREATE USER " + account(u.name, u.host)
		if u.password != nil {
			statement += " IDENTIFIED BY " + quote(pytext.Str(u.password))
		}
		if err := m.exec(ctx, statement); err != nil {
			return err
		}
		for _, s := range databases {
			if err := m.exec(ctx, "GRANT ALL PRIVILEGES ON "+ident(s.name)+".* TO "+account(u.name, u.host)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mysqlServer) deleteUser(ctx context.Context, v any) error {
	x, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("user must be a dictionary, not %s", modules.TypeName(v))
	}
	u, _, err := mysqlNames.readUser(x)
	if err == nil && !u.isRoot {
		err = reserved("Cannot delete user", "User", u.name, m.ignoreUsers)
	}
	if err != nil {
		return err
	}
	return m.exec(ctx, "DROP USER "+account(u.name, u.host))
}

// findUser returns the user with the username and hostname of the call, or nil if it is missing.
func (m *mysqlServer) findUser(ctx context.Context) (*dbUser, error) {
	name, host := m.c.Str("username"), m.c.Str("hostname")
	err := mysqlNames.checkUserName(m.c.Value("username"))
	if err == nil {
		err = reserved("", "User", name, m.ignoreUsers)
	}
	if err != nil {
		return nil, badRequest("Username %s is not valid: %v", name, err)
	}
	rows, err := m.query(ctx, "SELECT User, Host FROM mysql.user WHERE Host != 'localhost' AND User = "+quote(name)+
		" AND Host = "+quote(host))
	if err != nil || len(rows) != 1 {
		return nil, err
	}
	u := dbUser{name: name, host: rows[0].text(1)}
	by, err := m.databasesByUser(ctx, &u)
	u.databases = by[grantee(u)]
	return &u, err
}

// mustFindUser is findUser, but a missing user is an error. Trove continues without the user.
func (m *mysqlServer) mustFindUser(ctx context.Context) (*dbUser, error) {
	u, err := m.findUser(ctx)
	if err == nil && u == nil {
		err = modules.Errorf("User %s cannot be found on the instance.", m.c.Str("username")+"@"+m.c.Str("hostname"))
	}
	return u, err
}

// grantee returns the name of a user as information_schema writes it.
func grantee(u dbUser) string { return dbpage.Grantee(u.name, u.host) }

// databasesByUser returns, for one user or for all, the databases on which the user has more privileges than USAGE.
func (m *mysqlServer) databasesByUser(ctx context.Context, one *dbUser) (map[string][]any, error) {
	who := ""
	if one != nil {
		who = grantee(*one)
	}
	rows, err := m.query(ctx, dbpage.MySQLGrants(who))
	if err != nil {
		return nil, err
	}
	by := make(map[string][]any)
	for _, r := range rows {
		by[r.text(0)] = append(by[r.text(0)], schema{name: r.text(1)}.serialize())
	}
	return by, nil
}

func (m *mysqlServer) getUser(ctx context.Context) (any, error) {
	u, err := m.findUser(ctx)
	if err != nil || u == nil {
		return nil, err
	}
	return u.serialize(), nil
}

func (m *mysqlServer) listUsers(ctx context.Context) (any, error) {
	p, err := m.readPage()
	if err != nil {
		return nil, err
	}
	rows, err := m.query(ctx, dbpage.MySQLUsers(p.Page, m.ignoreUsers, []string{"localhost"}))
	if err != nil {
		return nil, err
	}
	rows, next := cut(p, rows, func(r row) string { return r.text(2) })
	by, err := m.databasesByUser(ctx, nil)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, r := range rows {
		u := dbUser{name: r.text(0), host: r.text(1)}
		u.databases = by[grantee(u)]
		list = append(list, u.serialize())
	}
	return []any{list, next}, nil
}

func (m *mysqlServer) changePasswords(ctx context.Context, v any) error {
	list, err := maps1(v, "users")
	if err != nil {
		return err
	}
	for _, x := range list {
		u, _, err := mysqlNames.readUser(map[string]any{"_name": x["name"], "_host": x["host"], "_password": x["password"]})
		if err == nil {
			err = m.setPassword(ctx, u.name, u.host, textOf(x, "password"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setPassword changes a password. On MySQL 8 and newer the server chooses the authentication plugin, because
// mysql_native_password is going away there.
func (m *mysqlServer) setPassword(ctx context.Context, name, host, password string) error {
	who, secret := account(name, host), quote(password)
	switch {
	case m.manager == "mariadb":
		return m.exec(ctx, "ALTER USER "+who+" IDENTIFIED VIA mysql_native_password USING PASSWORD("+secret+")")
	case !olderThan(m.version, "5.7.6"):
		return m.exec(ctx, "ALTER USER "+who+" IDENTIFIED BY "+secret)
	}
	return m.exec(ctx, "SET PASSWORD FOR "+who+" = PASSWORD("+secret+")")
}

// olderThan reports whether version is older than another one. An unknown version is not older.
func olderThan(version, than string) bool {
	n, ok := pkgversion.Loose(version, than)
	return version != "" && ok && n < 0
}

func (m *mysqlServer) updateAttributes(ctx context.Context) error {
	attrs, err := m.c.Map("user_attrs")
	if err != nil {
		return err
	}
	u, err := m.mustFindUser(ctx)
	if err != nil {
		return err
	}
	name, host := u.name, u.host
	if v := attrs["name"]; pytext.Truth(v) {
		if err := mysqlNames.checkUserName(v); err != nil {
			return err
		}
		name = textOf(attrs, "name")
		if err := reserved("", "User", name, m.ignoreUsers); err != nil {
			return err
		}
	}
	if v := attrs["host"]; pytext.Truth(v) {
		if err := mysqlNames.checkHost(v); err != nil {
			return err
		}
		host = textOf(attrs, "host")
	}
	if v := attrs["password"]; pytext.Truth(v) {
		if err := mysqlNames.checkPassword(v); err != nil {
			return err
		}
		if err := m.setPassword(ctx, u.name, u.host, textOf(attrs, "password")); err != nil {
			return err
		}
	}
	if name == u.name && host == u.host {
		return nil
	}
	return m.exec(ctx, dbpage.RenameMySQLUser(u.name, u.host, name, host))
}

func (m *mysqlServer) listAccess(ctx context.Context) (any, error) {
	u, err := m.mustFindUser(ctx)
	if err != nil {
		return nil, err
	}
	return u.serialize()["_databases"], nil
}

func (m *mysqlServer) grantAccess(ctx context.Context) error {
	u, err := m.mustFindUser(ctx)
	if err != nil {
		return err
	}
	databases, ok := m.c.Value("databases").([]any)
	if !ok {
		return modules.Usagef("databases must be a list, not %s", modules.TypeName(m.c.Value("databases")))
	}
	for _, v := range databases {
		name := pytext.Str(v)
		if mysqlNames.checkSchemaName(v) != nil || slices.Contains(m.ignoreDB, name) {
			return badRequest("Grant access to %s is not allowed", name)
		}
		if err := m.exec(ctx, "GRANT ALL PRIVILEGES ON "+ident(name)+".* TO "+account(u.name, u.host)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mysqlServer) revokeAccess(ctx context.Context) error {
	u, err := m.mustFindUser(ctx)
	if err != nil {
		return err
	}
	return m.exec(ctx, "REVOKE ALL ON "+ident(m.c.Str("database"))+".* FROM "+account(u.name, u.host))
}

func (m *mysqlServer) isRootEnabled(ctx context.Context) (bool, error) {
	n, err := m.first(ctx, "SELECT COUNT(*) FROM mysql.user WHERE User = 'root' AND Host != 'localhost'")
	return n != "0", err
}

// enableRoot allows root to log in from anywhere, with a new password if none is given.
func (m *mysqlServer) enableRoot(ctx context.Context, password any) (any, error) {
	u := dbUser{name: "root", host: "%", password: password, isRoot: true}
	if !pytext.Truth(password) {
		word, err := randomPassword(passwordLength)
		if err != nil {
			return nil, err
		}
		u.password = word
	} else if err := mysqlNames.checkPassword(password); err != nil {
		return nil, err
	}
	if err := m.exec(ctx, "CREATE USER IF NOT EXISTS "+account(u.name, u.host)); err != nil {
		return nil, err
	}
	if err := m.setPassword(ctx, u.name, u.host, pytext.Str(u.password)); err != nil {
		return nil, err
	}
	grant := "GRANT " + permissions(m.rootGrant) + " ON *.* TO " + account(u.name, u.host)
	if m.rootGrantOption {
		grant += " WITH GRANT OPTION"
	}
	if err := m.exec(ctx, grant); err != nil {
		return nil, err
	}
	return u.serialize(), nil
}

// permissions returns the privileges of a GRANT statement, in Trove's order.
func permissions(list []string) string {
	if slices.Contains(list, "ALL") || slices.Contains(list, "ALL PRIVILEGES") {
		return "ALL PRIVILEGES"
	}
	var known []string
	for _, p := range list {
		if p != "" && !strings.ContainsFunc(p, func(r rune) bool { return (r < 'A' || r > 'Z') && r != ' ' }) {
			known = append(known, p)
		}
	}
	if len(known) == 0 {
		return "USAGE"
	}
	slices.Sort(known)
	return strings.Join(slices.Compact(known), ", ")
}

// passwordLength is Trove's default_password_length.
const passwordLength = 36

// randomPassword makes a password of letters and digits.
func randomPassword(length int) (string, error) {
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	b := make([]byte, length)
	for i := range b {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", modules.Errorf("cannot make a password: %v", err)
		}
		b[i] = letters[n.Int64()]
	}
	return string(b), nil
}

// secure creates the administrator and removes anonymous users.
func (m *mysqlServer) secure(ctx context.Context) error {
	password, err := randomPassword(passwordLength)
	if err != nil {
		return err
	}
	// Log in as root: a restored backup may have an os_admin with another password.
	root, _, err := m.savedPassword("root")
	if err != nil {
		return err
	}
	if err := m.connectAs(ctx, "root", root); err != nil {
		return err
	}
	who := account(adminUser, "localhost")
	if err := m.exec(ctx, "CREATE USER IF NOT EXISTS "+who); err != nil {
		return err
	}
	if err := m.setPassword(ctx, adminUser, "localhost", password); err != nil {
		return err
	}
	if err := m.exec(ctx, "GRANT ALL PRIVILEGES ON *.* TO "+who+" WITH GRANT OPTION"); err != nil {
		return err
	}
	if err := m.savePassword(adminUser, password); err != nil {
		return err
	}
	if err := m.connectAs(ctx, adminUser, password); err != nil {
		return err
	}
	return m.dropUsers(ctx, "User = ''")
}

// secureRoot removes the accounts of root on other hosts.
func (m *mysqlServer) secureRoot(ctx context.Context) error {
	return m.dropUsers(ctx, "User = 'root' AND Host != 'localhost'")
}

func (m *mysqlServer) dropUsers(ctx context.Context, which string) error {
	rows, err := m.query(ctx, "SELECT User, Host FROM mysql.user WHERE "+which)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := m.exec(ctx, "DROP USER "+account(r.text(0), r.text(1))); err != nil {
			return err
		}
	}
	return nil
}
