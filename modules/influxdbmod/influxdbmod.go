// Package influxdbmod is Salt's execution module "influxdb": databases, users and policies of an InfluxDB 1 server, over its HTTP
// interface.
//
// Salt's source: salt/modules/influxdbmod.py; errors are those of the Python client influxdb.
package influxdbmod

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	showDatabases = "SHOW DATABASES"
	showUsers     = "SHOW USERS"
	showPolicies  = `SHOW RETENTION POLICIES ON "database"`
)

// fill puts arguments into a statement: "name" as an identifier, 'name' as a text, {name} as it is.
func fill(c *modules.Call, statement string) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexAny(statement, `"'{`)
		if i < 0 {
			return b.String() + statement, nil
		}
		mark := statement[i]
		b.WriteString(statement[:i])
		end := mark
		if mark == '{' {
			end = '}'
		}
		name, rest, _ := strings.Cut(statement[i+1:], string(end))
		v := c.Value(name)
		text, ok := v.(string)
		switch {
		case mark == '{':
			text = pytext.Str(v)
		case !ok:
			return "", modules.NoAttribute(v, "replace")
		default:
			text = strings.ReplaceAll(text, `\`, `\\`)
			text = strings.ReplaceAll(text, string(mark), `\`+string(mark))
			if mark == '"' {
				text = strings.ReplaceAll(text, "\n", `\n`)
			}
			text = string(mark) + text + string(mark)
		}
		b.WriteString(text)
		statement = rest
	}
}

// points returns the rows of a statement, filled in with the arguments of the call.
func points(ctx context.Context, c *modules.Call, statement string) ([]any, error) {
	text, err := fill(c, statement)
	if err != nil {
		return nil, err
	}
	results, err := ask(ctx, c, text, c.Keywords["database"])
	rows := []any{}
	for _, r := range results {
		for _, s := range r {
			rows = append(rows, s.points...)
		}
	}
	return rows, err
}

// do runs a statement with the arguments of the call.
func do(ctx context.Context, c *modules.Call, statement string) (any, error) {
	if _, err := points(ctx, c, statement); err != nil {
		return nil, err
	}
	return true, nil
}

// doIf runs a statement if the object that the argument name names exists, or if it does not, as there says.
func doIf(ctx context.Context, c *modules.Call, there bool, list, key, statement string) (any, error) {
	found, err := find(ctx, c, list, key)
	if err != nil || (found != nil) != there {
		return false, err
	}
	return do(ctx, c, statement)
}

// find returns the row of a list that the argument name names, or nil.
func find(ctx context.Context, c *modules.Call, list, key string) (*pyobj.Dict, error) {
	rows, err := points(ctx, c, list)
	return pick(c, rows, key), err
}

func pick(c *modules.Call, rows []any, key string) *pyobj.Dict {
	for _, r := range rows {
		if d := r.(*pyobj.Dict); pyobj.Equal(d.Value(key), c.Value("name")) {
			return d
		}
	}
	return nil
}

// or returns a row, or the value none if there is no row.
func or(d *pyobj.Dict, none any, err error) (any, error) {
	if err != nil || d == nil {
		return none, err
	}
	return d, nil
}

// list returns all rows of a statement.
func list(ctx context.Context, c *modules.Call, statement string) (any, error) {
	rows, err := points(ctx, c, statement)
	return pyobj.NewList(rows...), err
}

func listDBs(ctx context.Context, c *modules.Call) (any, error) { return list(ctx, c, showDatabases) }

func listUsers(ctx context.Context, c *modules.Call) (any, error) { return list(ctx, c, showUsers) }

func databaseExists(ctx context.Context, c *modules.Call) (any, error) {
	d, err := find(ctx, c, showDatabases, "name")
	return d != nil, err
}

func createDB(ctx context.Context, c *modules.Call) (any, error) {
	return doIf(ctx, c, false, showDatabases, "name", `CREATE DATABASE "name"`)
}

func dropDB(ctx context.Context, c *modules.Call) (any, error) {
	return doIf(ctx, c, true, showDatabases, "name", `DROP DATABASE "name"`)
}

func userInfo(ctx context.Context, c *modules.Call) (any, error) {
	d, err := find(ctx, c, showUsers, "user")
	return or(d, nil, err)
}

func userExists(ctx context.Context, c *modules.Call) (any, error) {
	d, err := find(ctx, c, showUsers, "user")
	return d != nil, err
}

func createUser(ctx context.Context, c *modules.Call) (any, error) {
	statement := `CREATE USER "name" WITH PASSWORD 'passwd'`
	if c.Bool("admin") {
		statement += " WITH ALL PRIVILEGES"
	}
	return doIf(ctx, c, false, showUsers, "user", statement)
}

func setPassword(ctx context.Context, c *modules.Call) (any, error) {
	return doIf(ctx, c, true, showUsers, "user", `SET PASSWORD FOR "name" = 'passwd'`)
}

func removeUser(ctx context.Context, c *modules.Call) (any, error) {
	return doIf(ctx, c, true, showUsers, "user", `DROP USER "name"`)
}

func grantAdmin(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `GRANT ALL PRIVILEGES TO "name"`)
}

func revokeAdmin(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `REVOKE ALL PRIVILEGES FROM "name"`)
}

func grant(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `GRANT {privilege} ON "database" TO "username"`)
}

func revoke(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `REVOKE {privilege} ON "database" FROM "username"`)
}

func listPrivileges(ctx context.Context, c *modules.Call) (any, error) {
	rows, err := points(ctx, c, `SHOW GRANTS FOR "name"`)
	if err != nil {
		return nil, err
	}
	out := &pyobj.Dict{}
	for _, r := range rows {
		d := r.(*pyobj.Dict)
		word, _, _ := strings.Cut(pytext.Str(d.Value("privilege")), " ")
		_ = out.Set(d.Value("database"), strings.ToLower(word)) // a text
	}
	return out, nil
}

func getPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("database") {
		return nil, clientError("get_list_retention_policies() requires a database as a parameter or the client to be using a database")
	}
	d, err := find(ctx, c, showPolicies, "name")
	return or(d, map[string]any{}, err)
}

func policyExists(ctx context.Context, c *modules.Call) (any, error) {
	d, err := getPolicy(ctx, c)
	return pyobj.Truth(d), err
}

func dropPolicy(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `DROP RETENTION POLICY "name" ON "database"`)
}

func createPolicy(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, `CREATE RETENTION POLICY "name" ON "database" DURATION {duration} REPLICATION {replication} SHARD DURATION 0s`+asDefault(c))
}

func alterPolicy(ctx context.Context, c *modules.Call) (any, error) {
	statement := `ALTER RETENTION POLICY "name" ON "database"`
	if c.Bool("duration") {
		statement += " DURATION {duration}"
	}
	if c.Bool("replication") {
		statement += " REPLICATION {replication}"
	}
	return do(ctx, c, statement+asDefault(c))
}

func asDefault(c *modules.Call) string {
	if c.Value("default") == true {
		return " DEFAULT"
	}
	return ""
}

func getQuery(ctx context.Context, c *modules.Call) (any, error) {
	results, err := ask(ctx, c, "SHOW CONTINUOUS QUERIES", c.Keywords["database"])
	for _, r := range results {
		for _, s := range r {
			if s.name == c.Value("database") {
				return or(pick(c, s.points, "name"), map[string]any{}, nil)
			}
		}
	}
	return map[string]any{}, err
}

func queryExists(ctx context.Context, c *modules.Call) (any, error) {
	d, err := getQuery(ctx, c)
	return pyobj.Truth(d), err
}

func createQuery(ctx context.Context, c *modules.Call) (any, error) {
	statement := "CREATE CONTINUOUS QUERY {name} ON {database}"
	if c.Bool("resample_time") {
		statement += " RESAMPLE EVERY {resample_time}"
	}
	if c.Bool("coverage_period") {
		statement += " FOR {coverage_period}"
	}
	return do(ctx, c, statement+" BEGIN {query} END")
}

func dropQuery(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "DROP CONTINUOUS QUERY {name} ON {database}")
}

func runQuery(ctx context.Context, c *modules.Call) (any, error) {
	results, err := ask(ctx, c, c.Str("query"), c.Value("database"))
	if err != nil {
		return nil, err
	}
	out := pyobj.NewList()
	for _, r := range results {
		if len(r) == 0 && len(results) > 1 {
			continue
		}
		sorting.Stable(r, func(a, b series) int { return strings.Compare(a.name, b.name) })
		by := &pyobj.Dict{}
		for _, s := range r {
			if s.tags == nil || s.tags.Len() == 0 {
				_ = by.Set(s.name, pyobj.NewList(s.points...)) // a text, as all keys here
				continue
			}
			groups, _ := by.Value(s.name).(*pyobj.Dict)
			if groups == nil {
				groups = &pyobj.Dict{}
				_ = by.Set(s.name, groups)
			}
			tags, err := pyjson.Format(s.tags, pyjson.Options{Indent: -1})
			if err != nil {
				return nil, err
			}
			_ = groups.Set(tags, pyobj.NewList(s.points...))
		}
		out.Items = append(out.Items, by)
	}
	return out, nil
}
