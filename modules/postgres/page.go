package postgres

import (
	"context"

	"github.com/brine-salt/brine/internal/modkit/dbpage"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The parameters of listings in pages, which stock does not have.
var (
	pageLimitParam     = modules.Param{Name: "limit", Optional: true}
	markerParam        = modules.Param{Name: "marker", Optional: true}
	includeMarkerParam = modules.Param{Name: "include_marker", Default: false}
	ignoreParam        = modules.Param{Name: "ignore", Optional: true}
)

// must returns the rows of a query. Where stock's functions return nothing, it returns an error with what psql says.
func (p conn) must(ctx context.Context, c *modules.Call, query string) ([]map[string]any, error) {
	ret, err := p.psql(ctx, c, "--command", copied(query))
	if err == nil && retcode(ret) > 0 {
		err = modules.Errorf("%s", pytext.Strip(pytext.Str(ret["stderr"])))
	}
	if err != nil {
		return nil, err
	}
	return rowsOf(ret)
}

// next returns the marker of the next page, or nil.
func next(more bool, list []any) any {
	if !more {
		return nil
	}
	return list[len(list)-1].(map[string]any)["name"]
}

func dbPage(ctx context.Context, c *modules.Call) (any, error) {
	p, err := dbpage.Read(c)
	if err != nil {
		return nil, err
	}
	rows, err := given(c).must(ctx, c, dbpage.PostgresDatabases(p, c.Strings("ignore")))
	if err != nil {
		return nil, err
	}
	rows, more := dbpage.Cut(p, rows)
	list := []any{}
	for _, row := range rows {
		list = append(list, row)
	}
	return map[string]any{"databases": list, "next": next(more, list)}, nil
}

func userPage(ctx context.Context, c *modules.Call) (any, error) {
	p, err := dbpage.Read(c)
	if err != nil {
		return nil, err
	}
	rows, err := given(c).must(ctx, c, dbpage.PostgresUsers(p, c.Strings("ignore")))
	if err != nil {
		return nil, err
	}
	var users []any
	for _, row := range rows {
		n := len(users)
		if n == 0 || users[n-1].(map[string]any)["name"] != row["user"] {
			users = append(users, map[string]any{"name": row["user"], "databases": []any{}})
			n++
		}
		if text(row, "name") != "" {
			u := users[n-1].(map[string]any)
			u["databases"] = append(u["databases"].([]any), row["name"])
		}
	}
	list, more := dbpage.Cut(p, users)
	if list == nil {
		list = []any{}
	}
	return map[string]any{"users": list, "next": next(more, list)}, nil
}
