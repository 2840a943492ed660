package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// conn is a connection to a server. It is used by one goroutine.
type conn struct{ c driver.Conn }

func (n *conn) close() error { return n.c.Close() }

// rows is the result of a statement: its rows, or the number of changed rows.
type rows struct {
	columns, types []string
	data           [][]any
	affected       int64
}

func (r *rows) dict(row []any) map[string]any {
	m := make(map[string]any, len(row))
	for i, name := range r.columns {
		m[name] = row[i]
	}
	return m
}

const (
	connectTimeout = 10 * time.Second
	// maxRows bounds what a statement may give.
	maxRows = 1 << 20
)

// settings returns the connection settings: from the call, otherwise from the configuration, otherwise from the
// option file that the call names.
func settings(ctx context.Context, c *modules.Call, a args) (map[string]any, error) {
	out := map[string]any{}
	file, named := a["connection_default_file"]
	for _, name := range [...]string{"host", "user", "pass", "port", "db", "unix_socket", "default_file", "default_group", "charset"} {
		v, ok := a["connection_"+name]
		if !ok && (!named || name == "charset") {
			var err error
			if v, err = c.Exec(ctx, "config.option", "mysql."+name, nil); err != nil {
				return nil, err
			}
		}
		if pytext.Truth(v) {
			out[name] = v
		}
	}
	if !named {
		file = out["default_file"]
	}
	if !pytext.Truth(file) {
		return out, nil
	}
	group := "client"
	if v := out["default_group"]; v != nil {
		group = pytext.Str(v)
	}
	for key, v := range optionFile(c, pytext.Str(file), group) {
		if name := map[string]string{"password": "pass", "database": "db", "socket": "unix_socket", "default-character-set": "charset"}[key]; name != "" {
			key = name
		}
		if out[key] == nil {
			out[key] = v
		}
	}
	return out, nil
}

// optionFile returns a group of one of MySQL's option files. A file that cannot be read counts as empty.
func optionFile(c *modules.Call, path, group string) map[string]string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir()
		path = home + "/" + rest
	}
	out := map[string]string{}
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return out
	}
	in := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			in = strings.Trim(line, "[]") == group
		case in:
			key, value, _ := strings.Cut(line, "=")
			value = strings.TrimSpace(value)
			if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
				value = value[1 : n-1]
			}
			out[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(key)), "_", "-")] = value
		}
	}
	return out
}

// connect connects to the server. A server that does not let us in is nil, with the reason left for the states.
func connect(ctx context.Context, c *modules.Call, a args) (*conn, error) {
	s, err := settings(ctx, c, a)
	if err != nil {
		return nil, err
	}
	get := func(name, def string) string {
		if v, ok := s[name]; ok {
			return pytext.Str(v)
		}
		return def
	}
	conf := mysql.NewConfig()
	conf.User, conf.Passwd, conf.DBName = get("user", "root"), get("pass", ""), get("db", "")
	host := get("host", "localhost")
	port := int64(3306)
	if v, ok := s["port"]; ok {
		if port, err = modules.ToInt(v); err != nil {
			return nil, err
		}
	}
	conf.Net, conf.Addr = "tcp", net.JoinHostPort(host, strconv.FormatInt(port, 10))
	if path := get("unix_socket", ""); path != "" {
		conf.Net, conf.Addr = "unix", c.Path(path)
	}
	conf.Timeout, conf.AllowFallbackToPlaintext = connectTimeout, true
	for _, flag := range flags(a["client_flags"]) {
		switch flag {
		case "multi_statements":
			conf.MultiStatements = true
		case "found_rows":
			conf.ClientFoundRows = true
		}
	}
	if err := conf.Apply(mysql.Charset(get("charset", "utf8mb4"), "")); err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, modules.Errorf("cannot connect to MySQL: %v", err)
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		err = failure(err, host)
		var e *sqlError
		if errors.As(err, &e) && (e.class == "OperationalError" || e.class == "InternalError") {
			c.Context().Set("mysql.error", e.Error())
			return nil, nil
		}
		return nil, through(err)
	}
	return &conn{dc}, nil
}

func flags(v any) (list []string) {
	items, _ := v.([]any)
	for _, x := range items {
		list = append(list, pytext.Str(x))
	}
	return list
}

// failure converts an error to the form of PyMySQL.
func failure(err error, host string) error {
	var (
		said  *mysql.MySQLError
		errno syscall.Errno
		dns   *net.DNSError
	)
	switch {
	case errors.As(err, &said):
		return &sqlError{classOf(int(said.Number)), int(said.Number), said.Message}
	case errors.As(err, &dns):
		return &sqlError{"OperationalError", 2003, fmt.Sprintf("Can't connect to MySQL server on %s ([Errno -2] Name or service not known)", pytext.Repr(host))}
	case errors.As(err, &errno):
		text, _ := modules.OSErrorText(errno)
		return &sqlError{"OperationalError", 2003, fmt.Sprintf("Can't connect to MySQL server on %s (%s)", pytext.Repr(host), text)}
	case errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn):
		return &sqlError{"OperationalError", 2013, "Lost connection to MySQL server during query"}
	}
	return &sqlError{"OperationalError", 2003, err.Error()}
}

// literal returns a value as a literal of a statement.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		if v {
			return "1"
		}
		return "0"
	case int64, int, float64:
		return pytext.Str(v)
	}
	return "'" + strings.NewReplacer("\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`, `"`, `\"`, "'", `\'`, `\`, `\\`).Replace(pytext.Str(v)) + "'"
}

// format puts values into a statement, at %(name)s. "%%" is "%".
func format(query string, values map[string]any) string {
	pairs := []string{"%%", "%"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, "%("+name+")s", literal(values[name]))
	}
	return strings.NewReplacer(pairs...).Replace(query)
}

// execute runs a statement.
func (n *conn) execute(ctx context.Context, query string, values map[string]any) (*rows, error) {
	return n.run(ctx, format(query, values), false)
}

// run runs a statement as it is; texts makes texts of all values.
func (n *conn) run(ctx context.Context, query string, texts bool) (*rows, error) {
	r, err := n.read(ctx, query, texts)
	if err != nil {
		return nil, err
	}
	if len(r.columns) > 0 {
		r.affected = int64(len(r.data))
		return r, nil
	}
	count, err := n.read(ctx, "SELECT ROW_COUNT()", false)
	if err != nil {
		return nil, err
	}
	if len(count.data) == 1 {
		r.affected, _ = count.data[0][0].(int64)
	}
	return r, nil
}

func (n *conn) read(ctx context.Context, query string, texts bool) (*rows, error) {
	q, ok := n.c.(driver.QueryerContext)
	if !ok {
		return nil, modules.Errorf("the driver for MySQL cannot query")
	}
	dr, err := q.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, failure(err, "")
	}
	defer dr.Close()
	r := &rows{columns: dr.Columns()}
	typed, _ := dr.(driver.RowsColumnTypeDatabaseTypeName)
	for i := range r.columns {
		r.types = append(r.types, typed.ColumnTypeDatabaseTypeName(i))
	}
	values := make([]driver.Value, len(r.columns))
	for {
		switch err := dr.Next(values); {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return nil, failure(err, "")
		case len(r.columns) == 0:
			return r, nil
		case len(r.data) == maxRows:
			return nil, modules.Errorf("the answer has more than %d rows", maxRows)
		}
		row := make([]any, len(values))
		for i, v := range values {
			row[i] = value(v, r.types[i], texts)
		}
		r.data = append(r.data, row)
	}
}

// value converts a value of a row to the type that Python's library returns for it, or to text.
func value(v driver.Value, kind string, text bool) any {
	switch x := v.(type) {
	case nil:
		return nil
	case []byte:
		binary := strings.HasSuffix(kind, "BLOB") || strings.HasSuffix(kind, "BINARY") || kind == "GEOMETRY" || kind == "BIT"
		switch {
		case binary && text:
			return pytext.Repr(append([]byte(nil), x...))
		case binary:
			return append([]byte(nil), x...)
		case text:
			return string(x)
		}
		return fromText(string(x), kind)
	case uint64:
		if text || x > math.MaxInt64 {
			return strconv.FormatUint(x, 10)
		}
		return int64(x)
	case int64, float64:
		if text {
			return pytext.Str(x)
		}
		return x
	case float32:
		if text {
			return strconv.FormatFloat(float64(x), 'g', -1, 32)
		}
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
		return f
	}
	return pytext.Str(v)
}

func fromText(s, kind string) any {
	switch strings.TrimPrefix(kind, "UNSIGNED ") {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR":
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	case "FLOAT", "DOUBLE", "DECIMAL":
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case "DATETIME", "TIMESTAMP":
		if t, err := time.Parse("2006-01-02 15:04:05", s); err == nil {
			return t
		}
	}
	return s
}
