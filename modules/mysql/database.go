package mysql

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func dbList(ctx context.Context, c *modules.Call) (any, error) {
	return ask(ctx, c, given(c), []any{}, "SHOW DATABASES", nil, firsts)
}

func database(ctx context.Context, c *modules.Call, name any) (any, error) {
	return ask(ctx, c, given(c), []any{}, "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME=%(dbname)s;",
		map[string]any{"dbname": name}, func(r *rows) (any, error) {
			if len(r.data) == 0 {
				return map[string]any{}, nil
			}
			return map[string]any{"character_set": r.data[0][0], "collate": r.data[0][1]}, nil
		})
}

func dbGet(ctx context.Context, c *modules.Call) (any, error) {
	return database(ctx, c, c.Value("name"))
}

func alterDb(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, given(c), []any{}, func(n *conn) (any, error) {
		v, err := database(ctx, c, c.Value("name"))
		if err != nil {
			return nil, err
		}
		have, _ := v.(map[string]any)
		charset, collate := c.Value("character_set"), c.Value("collate")
		if !pytext.Truth(charset) {
			charset = have["character_set"]
		}
		if !pytext.Truth(collate) {
			collate = have["collate"]
		}
		r, err := n.execute(ctx, "ALTER DATABASE `"+c.Str("name")+"` CHARACTER SET "+pytext.Str(charset)+" COLLATE "+pytext.Str(collate)+";", nil)
		if err != nil {
			return caught(c, err, false)
		}
		return r.affected != 0, nil
	})
}

func hasDatabase(ctx context.Context, c *modules.Call, name any) (bool, error) {
	v, err := ask(ctx, c, given(c), false, "SHOW DATABASES LIKE %(dbname)s;", map[string]any{"dbname": name}, func(r *rows) (any, error) {
		return len(r.data) == 1, nil
	})
	return v == true, err
}

func dbExists(ctx context.Context, c *modules.Call) (any, error) {
	return hasDatabase(ctx, c, c.Value("name"))
}

func dbTables(ctx context.Context, c *modules.Call) (any, error) {
	if ok, err := hasDatabase(ctx, c, c.Value("name")); err != nil || !ok {
		return false, err
	}
	return ask(ctx, c, given(c), []any{}, "SHOW TABLES IN "+quote(c.Str("name"), false), nil, firsts)
}

func dbCreate(ctx context.Context, c *modules.Call) (any, error) {
	if ok, err := hasDatabase(ctx, c, c.Value("name")); err != nil || ok {
		return false, err
	}
	query, values := "CREATE DATABASE IF NOT EXISTS "+quote(c.Str("name"), false), map[string]any{}
	if v := c.Value("character_set"); v != nil {
		query += " CHARACTER SET %(character_set)s"
		values["character_set"] = v
	}
	if v := c.Value("collate"); v != nil {
		query += " COLLATE %(collate)s"
		values["collate"] = v
	}
	return ask(ctx, c, given(c), false, query+";", values, func(r *rows) (any, error) { return r.affected != 0, nil })
}

func dbRemove(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	if ok, err := hasDatabase(ctx, c, c.Value("name")); err != nil || !ok || name == "mysql" || name == "information_schema" {
		return false, err
	}
	return ask(ctx, c, given(c), false, "DROP DATABASE "+quote(name, false)+";", nil, func(*rows) (any, error) {
		there, err := hasDatabase(ctx, c, c.Value("name"))
		return !there, err
	})
}

// maintain runs a statement about tables on one table, or on each of the database.
func maintain(ctx context.Context, c *modules.Call, verb string) (any, error) {
	one := func(table any) (any, error) {
		return on(ctx, c, given(c), map[string]any{}, func(n *conn) (any, error) {
			r, err := n.execute(ctx, verb+" TABLE "+quote(c.Str("name"), false)+"."+quote(pytext.Str(table), false), nil)
			if err != nil {
				return nil, through(err)
			}
			return dicts(r)
		})
	}
	if table := c.Value("table"); table != nil {
		return one(table)
	}
	v, err := dbTables(ctx, c)
	if err != nil {
		return nil, err
	}
	tables, ok := v.([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "'bool' object is not iterable"}
	}
	out := []any{}
	for _, table := range tables {
		got, err := one(table)
		if err != nil {
			return nil, err
		}
		out = append(out, got)
	}
	return out, nil
}

func dbCheck(ctx context.Context, c *modules.Call) (any, error)  { return maintain(ctx, c, "CHECK") }
func dbRepair(ctx context.Context, c *modules.Call) (any, error) { return maintain(ctx, c, "REPAIR") }
func dbOptimize(ctx context.Context, c *modules.Call) (any, error) {
	return maintain(ctx, c, "OPTIMIZE")
}

// selects reports whether stock takes a statement for one with rows.
func selects(query string) bool {
	query = strings.ToUpper(pytext.Strip(query))
	return strings.HasPrefix(query, "SELECT") || strings.HasPrefix(query, "SHOW") || strings.HasPrefix(query, "DESC")
}

func statement(ctx context.Context, c *modules.Call, db any, sql string) (any, error) {
	a := args{}
	for k, v := range given(c) {
		a[k] = v
	}
	a["connection_db"] = db
	return on(ctx, c, a, map[string]any{}, func(n *conn) (any, error) {
		start := time.Now()
		r, err := n.run(ctx, strings.ReplaceAll(sql, "%%", "%"), true)
		if err != nil {
			return caught(c, err, false)
		}
		took := time.Since(start).Seconds()
		human := pytext.Float(pytext.Round(took*1000, 1)) + "ms"
		if took >= 0.2 {
			human = pytext.Float(pytext.Round(took, 2)) + "s"
		}
		out := map[string]any{"query time": map[string]any{"human": human, "raw": pytext.Float(pytext.Round(took, 5))}}
		if !selects(sql) {
			out["rows affected"] = r.affected
			return out, nil
		}
		columns, results := make([]any, len(r.columns)), make([]any, len(r.data))
		for i, name := range r.columns {
			columns[i] = name
		}
		for i, row := range r.data {
			results[i] = row
		}
		out["rows returned"], out["columns"], out["results"] = r.affected, columns, results
		return out, nil
	})
}

func query(ctx context.Context, c *modules.Call) (any, error) {
	return statement(ctx, c, c.Value("database"), c.Str("query"))
}

func fileQuery(ctx context.Context, c *modules.Call) (any, error) {
	path := c.Str("file_name")
	for _, proto := range [...]string{"salt://", "http://", "https://", "swift://", "s3://"} {
		if strings.HasPrefix(path, proto) {
			v, err := c.Exec(ctx, "cp.cache_file", path)
			if err != nil {
				return nil, err
			}
			path = pytext.Str(v)
			break
		}
	}
	if !isFile(c, path) {
		return false, nil
	}
	b, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	var (
		pending             string
		returned, affected  int64
		columns, results    []any
		seconds             float64
		withRows, withCount bool
	)
	for _, line := range pytext.SplitLines(withoutComments(string(b)), false) {
		pending += line
		if !complete(line) {
			continue
		}
		v, err := statement(ctx, c, c.Value("database"), pending)
		if err != nil {
			return nil, err
		}
		pending = ""
		got, ok := v.(map[string]any)
		if !ok {
			return false, nil
		}
		if took, ok := got["query time"].(map[string]any); ok {
			f, _ := strconv.ParseFloat(pytext.Str(took["raw"]), 64)
			seconds += f
		}
		if n, ok := got["rows returned"].(int64); ok {
			withRows = true
			returned += n
			columns, results = append(columns, got["columns"]), append(results, got["results"])
		}
		if n, ok := got["rows affected"].(int64); ok {
			withCount = true
			affected += n
		}
	}
	out := map[string]any{"query time": map[string]any{"human": pytext.Float(pytext.Round(seconds, 2)) + "s", "raw": pytext.Round(seconds, 5)}}
	if withRows {
		out["columns"], out["results"] = columns, results
		if returned != 0 {
			out["rows returned"] = returned
		}
	}
	if withCount && affected != 0 {
		out["rows affected"] = affected
	}
	return out, nil
}

// complete reports whether a line ends a statement: it has a semicolon behind something else.
func complete(line string) bool {
	for i := 1; i < len(line); i++ {
		if line[i] == ';' && line[i-1] != ';' && line[i-1] != '-' {
			return true
		}
	}
	return false
}

// withoutComments takes the comments out of SQL.
func withoutComments(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
			end := quoted(rest)
			b.WriteString(rest[:end])
			i += end
		case rest[0] == '#' || strings.HasPrefix(rest, "-- ") || strings.HasPrefix(rest, "--\n") || rest == "--":
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			i += end
		case strings.HasPrefix(rest, "/*") && !strings.HasPrefix(rest, "/*+") && !strings.HasPrefix(rest, "/*!"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return b.String()
			}
			b.WriteByte(' ')
			i += end + 4
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String()
}

// quoted returns the length of the quoted text at the beginning of s.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}
