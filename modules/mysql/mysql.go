// Package mysql is Salt's execution module "mysql", for MySQL and MariaDB. It is in a build with the tag modules.mysql, since it
// brings a database driver. Salt's source: salt/modules/mysql.py; texts of errors are those of PyMySQL.
package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// mysql.user_info, mysql.processlist differ: decimal fractions are floats. Stock has objects that do not go to a master.
// mysql.db_page, mysql.user_page are added: stock has no listings in pages.
// mysql.user_rename is added: stock has no function that renames a user.

// sqlError is an error of the server or of the way to it, as PyMySQL tells them apart.
type sqlError struct {
	class string
	code  int
	text  string
}

func (e *sqlError) Error() string { return fmt.Sprintf("MySQL Error %d: %s", e.code, e.text) }

// raised returns the error as the exception that reaches the caller.
func (e *sqlError) raised() error {
	return &modules.PythonError{Type: "pymysql.err." + e.class, Msg: fmt.Sprintf("(%d, %s)", e.code, pytext.Repr(e.text))}
}

// classOf returns PyMySQL's class of an error number.
func classOf(code int) string {
	switch code {
	case 1007, 1149, 1064, 1146, 1102, 1103, 1110, 1111, 1112, 1113, 1179, 1166:
		return "ProgrammingError"
	case 1265, 1263, 1264, 1230, 1171, 1406, 1441, 1366, 1367:
		return "DataError"
	case 1062, 1216, 1452, 1217, 1451, 1215, 1048:
		return "IntegrityError"
	case 1196, 1235, 1289, 1286:
		return "NotSupportedError"
	}
	if code < 1000 {
		return "InternalError"
	}
	return "OperationalError"
}

// remember leaves an error where states look for it, if stock would: ok is false for one that goes through.
func remember(c *modules.Call, err error) (ok bool) {
	var e *sqlError
	if !errors.As(err, &e) || e.class != "OperationalError" {
		return false
	}
	c.Context().Set("mysql.error", e.Error())
	return true
}

// through converts a database error to the exception that reaches the caller. Other errors are unchanged.
func through(err error) error {
	var e *sqlError
	if errors.As(err, &e) {
		return e.raised()
	}
	return err
}

// args are the keyword arguments that say how to connect.
type args map[string]any

func given(c *modules.Call) args { return c.Keywords }

// caught returns failure as the result if stock catches the error. Other errors are returned.
func caught(c *modules.Call, err error, failure any) (any, error) {
	if remember(c, err) {
		return failure, nil
	}
	return nil, through(err)
}

// on connects, unless that fails, for which the value failure stands, and uses the connection.
func on(ctx context.Context, c *modules.Call, a args, failure any, use func(*conn) (any, error)) (any, error) {
	n, err := connect(ctx, c, a)
	if err != nil || n == nil {
		return failure, err
	}
	defer n.close()
	return use(n)
}

// ask runs one query and makes something of its rows; failure stands for an error.
func ask(ctx context.Context, c *modules.Call, a args, failure any, query string, values map[string]any, use func(*rows) (any, error)) (any, error) {
	return on(ctx, c, a, failure, func(n *conn) (any, error) {
		r, err := n.execute(ctx, query, values)
		if err != nil {
			return caught(c, err, failure)
		}
		return use(r)
	})
}

func atLeast(version, least string) bool {
	n, ok := pkgversion.Loose(version, least)
	return ok && n >= 0
}

func serverVersion(ctx context.Context, c *modules.Call, a args) (string, error) {
	if v, ok := c.Context().Get("mysql.version"); ok && v != nil {
		return pytext.Str(v), nil
	}
	v, err := ask(ctx, c, a, "", "SELECT VERSION()", nil, func(r *rows) (any, error) {
		if len(r.data) == 0 {
			return "", nil
		}
		c.Context().Set("mysql.version", r.data[0][0])
		return r.data[0][0], nil
	})
	return pytext.Str(v), err
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	return serverVersion(ctx, c, given(c))
}

func quote(name string, forGrants bool) string {
	name = strings.ReplaceAll(name, "`", "``")
	if forGrants {
		name = strings.ReplaceAll(name, "_", `\_`)
	}
	return "`" + strings.ReplaceAll(name, "%", "%%") + "`"
}

func quoteIdentifier(_ context.Context, c *modules.Call) (any, error) {
	name, ok := c.Value("identifier").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("identifier"), "replace")
	}
	return quote(name, c.Bool("for_grants")), nil
}

// firsts returns the first column of all rows.
func firsts(r *rows) (any, error) {
	list := []any{}
	for _, row := range r.data {
		list = append(list, row[0])
	}
	return list, nil
}

// dicts returns all rows with the names of their columns.
func dicts(r *rows) (any, error) {
	list := []any{}
	for _, row := range r.data {
		list = append(list, r.dict(row))
	}
	return list, nil
}

func status(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), map[string]any{}, "SHOW STATUS", nil, func(r *rows) (any, error) {
		out := map[string]any{}
		for _, row := range r.data {
			out[pytext.Str(row[0])] = row[1]
		}
		return out, nil
	})
}

func processlist(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, given(c), []any{}, func(n *conn) (any, error) {
		r, err := n.execute(ctx, "SHOW FULL PROCESSLIST", nil)
		if err != nil {
			return nil, through(err)
		}
		return dicts(r)
	})
}

// show runs a query. An error counts as a result without rows.
func show(ctx context.Context, c *modules.Call, query string, firstOnly bool) (any, error) {
	return on(ctx, c, given(c), []any{}, func(n *conn) (any, error) {
		v := any([]any{})
		if r, err := n.execute(ctx, query, nil); err == nil {
			v, _ = dicts(r)
		}
		list := v.([]any)
		if len(list) == 0 {
			list = append(list, []any{})
		}
		if firstOnly {
			return list[0], nil
		}
		return list, nil
	})
}

func getMasterStatus(ctx context.Context, c *modules.Call) (any, error) {
	return show(ctx, c, "SHOW MASTER STATUS", true)
}
func getSlaveStatus(ctx context.Context, c *modules.Call) (any, error) {
	return show(ctx, c, "SHOW SLAVE STATUS", true)
}
func showvariables(ctx context.Context, c *modules.Call) (any, error) {
	return show(ctx, c, "SHOW VARIABLES", false)
}
func showglobal(ctx context.Context, c *modules.Call) (any, error) {
	return show(ctx, c, "SHOW GLOBAL VARIABLES", false)
}

func slaveLag(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), int64(-3), "show slave status", nil, func(r *rows) (any, error) {
		if len(r.data) == 0 {
			return int64(-1), nil
		}
		if row := r.dict(r.data[0]); row["Slave_IO_Running"] == "Yes" {
			return row["Seconds_Behind_Master"], nil
		}
		return int64(-2), nil
	})
}

func freeSlave(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, given(c), "", func(n *conn) (any, error) {
		r, err := n.execute(ctx, "show slave status", nil)
		if err != nil {
			return nil, through(err)
		}
		if len(r.data) == 0 {
			return nil, &modules.TypeError{Msg: "'NoneType' object is not subscriptable"}
		}
		// The old master may be gone; stock does not mind.
		if master, err := connect(ctx, c, args{"host": r.dict(r.data[0])["Master_Host"]}); err != nil {
			return nil, err
		} else if master == nil {
			return "", nil
		} else if _, err = master.execute(ctx, "flush logs", nil); master.close() != nil || err != nil && !remember(c, err) {
			return nil, through(err)
		}
		for _, q := range [...]string{"stop slave", "reset master", "change master to MASTER_HOST=''"} {
			if _, err := n.execute(ctx, q, nil); err != nil {
				return nil, through(err)
			}
		}
		if r, err = n.execute(ctx, "show slave status", nil); err != nil {
			return nil, through(err)
		}
		if len(r.data) == 0 {
			return "promoted", nil
		}
		return "failed", nil
	})
}

func verifyLogin(ctx context.Context, c *modules.Call) (any, error) {
	a := args{}
	for k, v := range given(c) {
		a[k] = v
	}
	a["connection_user"], a["connection_pass"] = c.Value("user"), c.Value("password")
	n, err := connect(ctx, c, a)
	if err != nil {
		return nil, err
	}
	if n == nil {
		c.Context().Set("mysql.error", nil)
		return false, nil
	}
	return true, n.close()
}

func pluginsList(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), []any{}, "SHOW PLUGINS", nil, func(r *rows) (any, error) {
		list := []any{}
		for _, row := range r.data {
			list = append(list, map[string]any{"name": row[0], "status": row[1]})
		}
		return list, nil
	})
}

func stateOfPlugin(ctx context.Context, c *modules.Call, a args, name any) (any, error) {
	if !pytext.Truth(name) {
		return false, nil
	}
	return ask(ctx, c, a, "", "SELECT PLUGIN_STATUS FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = %(name)s", map[string]any{"name": name},
		func(r *rows) (any, error) {
			if len(r.data) == 0 {
				return "", nil
			}
			return r.data[0][0], nil
		})
}

func pluginStatus(ctx context.Context, c *modules.Call) (any, error) {
	return stateOfPlugin(ctx, c, given(c), c.Value("name"))
}

// changePlugin loads or unloads a plugin if that is to do.
func changePlugin(ctx context.Context, c *modules.Call, there bool, query string) (any, error) {
	if !c.Bool("name") {
		return false, nil
	}
	if v, err := stateOfPlugin(ctx, c, given(c), c.Value("name")); err != nil || pytext.Truth(v) == there {
		return true, err
	}
	return ask(ctx, c, given(c), false, query, nil, func(*rows) (any, error) { return true, nil })
}

func pluginAdd(ctx context.Context, c *modules.Call) (any, error) {
	library := c.Str("name") + ".so"
	if c.Bool("soname") {
		library = c.Str("soname")
	}
	return changePlugin(ctx, c, true, "INSTALL PLUGIN "+c.Str("name")+` SONAME "`+library+`"`)
}

func pluginRemove(ctx context.Context, c *modules.Call) (any, error) {
	return changePlugin(ctx, c, false, "UNINSTALL PLUGIN "+c.Str("name"))
}

func isFile(c *modules.Call, path string) bool {
	_, err := os.Stat(c.Path(path))
	return err == nil
}
