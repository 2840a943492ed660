package mysql

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/internal/modkit/dbpage"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The functions here are not in stock. They raise an error where stock's functions return False.

// must is [on] for these functions: a server that cannot be reached is an error.
func must(ctx context.Context, c *modules.Call, use func(*conn) (any, error)) (any, error) {
	n, err := connect(ctx, c, given(c))
	if err != nil {
		return nil, err
	}
	if n == nil {
		why, _ := c.Context().Get("mysql.error")
		return nil, modules.Errorf("%s", pytext.Str(why))
	}
	defer n.close()
	if _, err := n.execute(ctx, "SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION'", nil); err != nil { // for QuoteMySQL
		return nil, raise(err)
	}
	v, err := use(n)
	return v, raise(err)
}

// raise returns an error of the server as an error of the function.
func raise(err error) error {
	var e *sqlError
	if errors.As(err, &e) {
		return modules.Errorf("%s", e.Error())
	}
	return err
}

// next returns the marker of the next page, or nil.
func next(more bool, last string) any {
	if more {
		return last
	}
	return nil
}

func dbPage(ctx context.Context, c *modules.Call) (any, error) {
	p, err := dbpage.Read(c)
	if err != nil {
		return nil, err
	}
	return must(ctx, c, func(n *conn) (any, error) {
		r, err := n.run(ctx, dbpage.MySQLDatabases(p, c.Strings("ignore")), true)
		if err != nil {
			return nil, err
		}
		rows, more := dbpage.Cut(p, r.data)
		list, last := []any{}, ""
		for _, row := range rows {
			last = pytext.Str(row[0])
			list = append(list, map[string]any{"name": row[0], "character_set": row[1], "collate": row[2]})
		}
		return map[string]any{"databases": list, "next": next(more, last)}, nil
	})
}

func userPage(ctx context.Context, c *modules.Call) (any, error) {
	p, err := dbpage.Read(c)
	if err != nil {
		return nil, err
	}
	return must(ctx, c, func(n *conn) (any, error) {
		users, err := n.run(ctx, dbpage.MySQLUsers(p, c.Strings("ignore"), c.Strings("ignore_hosts")), true)
		if err != nil {
			return nil, err
		}
		grants, err := n.run(ctx, dbpage.MySQLGrants(""), true)
		if err != nil {
			return nil, err
		}
		databases := map[string][]any{}
		for _, row := range grants.data {
			who := pytext.Str(row[0])
			databases[who] = append(databases[who], row[1])
		}
		rows, more := dbpage.Cut(p, users.data)
		list, last := []any{}, ""
		for _, row := range rows {
			last = pytext.Str(row[2])
			of := databases[dbpage.Grantee(pytext.Str(row[0]), pytext.Str(row[1]))]
			if of == nil {
				of = []any{}
			}
			list = append(list, map[string]any{"User": row[0], "Host": row[1], "databases": of})
		}
		return map[string]any{"users": list, "next": next(more, last)}, nil
	})
}

func userRename(ctx context.Context, c *modules.Call) (any, error) {
	host := c.Str("host")
	newHost := host
	if v := c.Value("new_host"); v != nil {
		newHost = pytext.Str(v)
	}
	return must(ctx, c, func(n *conn) (any, error) {
		_, err := n.run(ctx, dbpage.RenameMySQLUser(c.Str("user"), host, c.Str("new_user"), newHost), false)
		return err == nil, err
	})
}
