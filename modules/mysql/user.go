package mysql

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func userList(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), []any{}, "SELECT User,Host FROM mysql.user", nil, dicts)
}

const ofUser = " WHERE User = %(user)s AND Host = %(host)s"

func userInfo(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), false, "SELECT * FROM mysql.user"+ofUser, account{c.Value("user"), c.Value("host")}.values(), func(r *rows) (any, error) {
		if len(r.data) == 0 {
			return nil, nil
		}
		return r.dict(r.data[0]), nil
	})
}

// account is a user at a host.
type account struct{ user, host any }

func (u account) values() map[string]any { return map[string]any{"user": u.user, "host": u.host} }

// login is how a user proves to be one.
type login struct {
	account
	password, hash, column any
	none, socket           bool
	plugin                 string
}

// knownVersion returns the server's version. If no other log-in works, it tries the user's own new password, and
// returns the arguments that worked. ok is false if none did.
func knownVersion(ctx context.Context, c *modules.Call, a args, password any) (version string, with args, ok bool, err error) {
	if version, err = serverVersion(ctx, c, a); err != nil || version != "" || !pytext.Truth(password) {
		return version, a, true, err
	}
	c.Context().Set("mysql.error", nil)
	a = maps.Clone(a)
	if a == nil {
		a = args{}
	}
	a["connection_pass"] = password
	version, err = serverVersion(ctx, c, a)
	return version, a, version != "", err
}

// passwordColumn returns the column in which the server stores passwords.
func passwordColumn(ctx context.Context, c *modules.Call, a args) (string, error) {
	const key = "mysql.password_column"
	if v, ok := c.Context().Get(key); ok && v != nil {
		return pytext.Str(v), nil
	}
	v, err := on(ctx, c, a, "Password", func(n *conn) (any, error) {
		r, err := n.execute(ctx, "SELECT column_name from information_schema.COLUMNS WHERE table_schema=%(schema)s and table_name=%(table)s and column_name=%(column)s",
			map[string]any{"schema": "mysql", "table": "user", "column": "Password"})
		if err != nil {
			return nil, through(err)
		}
		column := "authentication_string"
		if len(r.data) > 0 {
			column = "Password"
		}
		c.Context().Set(key, column)
		return column, nil
	})
	return pytext.Str(v), err
}

// authPlugin returns the authentication plugin of a user.
func authPlugin(ctx context.Context, c *modules.Call, a args, u account) (string, error) {
	const native = "mysql_native_password"
	v, err := ask(ctx, c, a, native, "SELECT plugin FROM mysql.user WHERE User=%(user)s and Host=%(host)s", u.values(), func(r *rows) (any, error) {
		if len(r.data) == 0 {
			return native, nil
		}
		return r.data[0][0], nil
	})
	if s, ok := v.(string); ok {
		return s, err
	}
	return native, err
}

// hashNative returns a password in the form in which mysql_native_password stores it.
func hashNative(password string) string {
	sum := sha1.Sum([]byte(password))
	sum = sha1.Sum(sum[:])
	return "*" + strings.ToUpper(hex.EncodeToString(sum[:]))
}

// isUser reports whether the server has the user, with this password if there is one.
func isUser(ctx context.Context, c *modules.Call, a args, l login) (bool, error) {
	version, a, ok, err := knownVersion(ctx, c, a, l.password)
	if err != nil || !ok {
		return false, err
	}
	n, err := connect(ctx, c, a)
	if err != nil {
		return false, err
	}
	if last, _ := c.Context().Get("mysql.error"); n == nil && pytext.Truth(l.password) &&
		strings.HasPrefix(pytext.Str(last), "MySQL Error 1045: Access denied for user '"+pytext.Str(l.user)+"'@") {
		c.Context().Set("mysql.error", nil)
		a = maps.Clone(a)
		if a == nil {
			a = args{}
		}
		a["connection_pass"] = l.password
		if n, err = connect(ctx, c, a); err != nil {
			return false, err
		}
	}
	if n == nil {
		return false, nil
	}
	defer n.close()
	column := pytext.Str(l.column)
	if !pytext.Truth(l.column) {
		if column, err = passwordColumn(ctx, c, a); err != nil {
			return false, err
		}
	}
	plugin, err := authPlugin(ctx, c, a, l.account)
	if err != nil {
		return false, err
	}
	maria := strings.Contains(version, "MariaDB")
	query, values := "SELECT User,Host FROM mysql.user"+ofUser, l.values()
	switch {
	case l.none && l.socket:
		query += " AND plugin=%(unix_socket)s"
		values["unix_socket"] = "auth_socket"
		if maria {
			values["unix_socket"] = "unix_socket"
		}
	case l.none:
		query += " AND " + column + " = ''"
	case pytext.Truth(l.password) && (maria || !atLeast(version, "8.0.11")):
		query += " AND " + column + " = PASSWORD(%(password)s)"
		values["password"] = pytext.Str(l.password)
	case pytext.Truth(l.password) && plugin == "mysql_native_password":
		query += " AND " + column + " = %(password)s"
		values["password"] = hashNative(pytext.Str(l.password))
	case pytext.Truth(l.password):
		c.Context().Set("mysql.error", "Unable to verify password.")
	case pytext.Truth(l.hash):
		query += " AND " + column + " = %(password)s"
		values["password"] = l.hash
	}
	r, err := n.execute(ctx, query, values)
	if err != nil {
		_, err = caught(c, err, false)
		return false, err
	}
	return len(r.data) == 1, nil
}

// named returns the user that the arguments name.
func named(c *modules.Call) login {
	return login{account: account{c.Value("user"), c.Value("host")}}
}

// proof is like [named], and includes the arguments about the password.
func proof(c *modules.Call) login {
	l := named(c)
	l.password, l.hash, l.column = c.Value("password"), c.Value("password_hash"), c.Value("password_column")
	l.socket = pytext.IsTrue(c.Value("unix_socket"))
	return l
}

func userExists(ctx context.Context, c *modules.Call) (any, error) {
	l := proof(c)
	l.none = pytext.IsTrue(c.Value("passwordless"))
	return isUser(ctx, c, given(c), l)
}

// socketPlugin reports whether users of the host can be let in by their name. Else the reason is left for the states.
func socketPlugin(ctx context.Context, c *modules.Call, a args, name string) (bool, error) {
	v, err := stateOfPlugin(ctx, c, a, name)
	if err == nil && !pytext.Truth(v) {
		c.Context().Set("mysql.error", "The "+name+" plugin is not enabled.")
	}
	return pytext.Truth(v), err
}

func userCreate(ctx context.Context, c *modules.Call) (any, error) {
	l := proof(c)
	version, a, ok, err := knownVersion(ctx, c, given(c), l.password)
	if err != nil || !ok {
		return false, err
	}
	if there, err := isUser(ctx, c, a, named(c)); err != nil || there {
		return false, err
	}
	return on(ctx, c, a, false, func(n *conn) (any, error) {
		query, values, err := creation(ctx, c, a, version, l)
		if err != nil || query == "" {
			return false, err
		}
		if _, err := n.execute(ctx, query, values); err != nil {
			return caught(c, err, false)
		}
		return isUser(ctx, c, a, login{account: l.account, password: l.password, hash: l.hash, column: l.column})
	})
}

// creation returns the statement that creates a user, or "" if the arguments do not allow one.
func creation(ctx context.Context, c *modules.Call, a args, version string, l login) (string, map[string]any, error) {
	query, values := "CREATE USER %(user)s@%(host)s", l.values()
	maria := strings.Contains(version, "MariaDB")
	with := ""
	if !maria && atLeast(version, "8.0.11") {
		with = "WITH %(auth_plugin)s "
	}
	switch {
	case c.Bool("unix_socket"):
		plugin, how := "auth_socket", " IDENTIFIED WITH auth_socket"
		if maria {
			plugin, how = "unix_socket", " IDENTIFIED VIA unix_socket"
		}
		ok, err := socketPlugin(ctx, c, a, plugin)
		if err != nil || !ok {
			return "", nil, err
		}
		if l.host != "localhost" {
			return "", nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'err' where it is not associated with a value"}
		}
		return query + how, values, nil
	case pytext.IsTrue(c.Value("allow_passwordless")):
		return query, values, nil
	case l.password != nil:
		query += " IDENTIFIED " + with + "BY %(password)s"
		values["password"] = pytext.Str(l.password)
	case l.hash != nil && with != "":
		query += " IDENTIFIED " + with + "AS %(password)s"
		values["password"] = l.hash
	case l.hash != nil:
		query += " IDENTIFIED BY PASSWORD %(password)s"
		values["password"] = l.hash
	default:
		return "", nil, nil
	}
	if with != "" {
		values["auth_plugin"] = c.Value("auth_plugin")
	}
	return query, values, nil
}

func userChpass(ctx context.Context, c *modules.Call) (any, error) {
	l := proof(c)
	version, a, ok, err := knownVersion(ctx, c, given(c), l.password)
	if err != nil || !ok {
		return false, err
	}
	if there, err := isUser(ctx, c, a, named(c)); err != nil || !there {
		return false, err
	}
	return on(ctx, c, a, false, func(n *conn) (any, error) {
		column := pytext.Str(l.column)
		if !pytext.Truth(l.column) {
			if column, err = passwordColumn(ctx, c, a); err != nil {
				return nil, err
			}
		}
		if l.plugin, err = authPlugin(ctx, c, a, l.account); err != nil {
			return nil, err
		}
		query, values, err := change(ctx, c, a, version, column, l)
		if err != nil || query == "" {
			return false, err
		}
		r, err := n.execute(ctx, query, values)
		if err != nil {
			return caught(c, err, false)
		}
		least := "8.0.11"
		if strings.Contains(version, "MariaDB") {
			least = "10.4.0"
		}
		if !atLeast(version, least) && r.affected == 0 {
			return false, nil
		}
		if _, err := n.execute(ctx, "FLUSH PRIVILEGES;", nil); err != nil {
			return nil, through(err)
		}
		return true, nil
	})
}

// change returns the statement that changes a user's password, or "" if the arguments do not allow one.
func change(ctx context.Context, c *modules.Call, a args, version, column string, l login) (string, map[string]any, error) {
	maria := strings.Contains(version, "MariaDB")
	modern := maria && atLeast(version, "10.4") || !maria && atLeast(version, "8.0.11")
	passwordless := pytext.IsTrue(c.Value("allow_passwordless"))
	values := map[string]any{}
	text := "''"
	switch {
	case l.password != nil:
		text = "PASSWORD(%(password)s)"
		if modern && !maria {
			text = "%(password)s"
		}
		values["password"] = l.password
	case l.hash != nil:
		text = "%(password)s"
		values["password"] = l.hash
	case !passwordless:
		return "", nil, &modules.TypeError{Msg: "cannot unpack non-iterable bool object"}
	}
	values["user"], values["host"] = l.user, l.host
	const which = " WHERE User=%(user)s AND Host = %(host)s;"
	query := "UPDATE mysql.user SET " + column + "=" + text + which
	switch {
	case modern && maria:
		values["auth_plugin"] = l.plugin
		query = "ALTER USER %(user)s@%(host)s IDENTIFIED VIA %(auth_plugin)s USING " + text
	case modern:
		values["auth_plugin"] = l.plugin
		query = "ALTER USER %(user)s@%(host)s IDENTIFIED WITH %(auth_plugin)s "
		if l.password != nil {
			query += "BY %(password)s;"
		} else if l.hash != nil {
			query += "AS %(password)s;"
		}
	}
	if passwordless && l.socket && l.host == "localhost" {
		plugin := "auth_socket"
		if maria {
			plugin = "unix_socket"
		}
		ok, err := socketPlugin(ctx, c, a, plugin)
		if err != nil {
			return "", nil, err
		}
		if !ok {
			return "", nil, modules.NoAttribute(true, "replace")
		}
		values["unix_socket"] = plugin
		query = "UPDATE mysql.user SET " + column + "=" + text + ", plugin=%(unix_socket)s" + which
		if modern && !maria {
			query = "ALTER USER %(user)s@%(host)s IDENTIFIED WITH %(unix_socket)s AS %(user)s;"
		}
	}
	return query, values, nil
}

func userRemove(ctx context.Context, c *modules.Call) (any, error) {
	l := named(c)
	there, err := isUser(ctx, c, given(c), l)
	if err != nil {
		return nil, err
	}
	if !there {
		c.Context().Set("mysql.error", []any{"User '%s'@'%s' does not exists", l.user, l.host})
		return false, nil
	}
	return ask(ctx, c, given(c), false, "DROP USER %(user)s@%(host)s", l.values(), func(*rows) (any, error) {
		there, err := isUser(ctx, c, given(c), l)
		return !there, err
	})
}
