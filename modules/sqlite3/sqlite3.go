// Package sqlite3 is Salt's execution module "sqlite3": statements on SQLite files. Salt's source: salt/modules/sqlite3.py.
package sqlite3

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"modernc.org/sqlite"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// sqlite3.version differs: it is the version of the driver, which is another than Python's.

// sqlite3.fetch differs: the driver reads text in columns that are declared DATE, DATETIME or TIMESTAMP as times if it can; they are shown
// as SQLite writes times, so that text with a T or a zone comes out in that form.

// maxRows bounds the rows of an answer.
const maxRows = 1 << 20

// query runs one statement and gives its rows if they are wanted.
func query(ctx context.Context, c *modules.Call, file string, statement any, wanted bool) ([]any, error) {
	text, ok := statement.(string)
	if !ok {
		name := modules.TypeName(statement)
		if statement == nil {
			name = "None"
		}
		return nil, &modules.TypeError{Msg: "execute() argument 1 must be str, not " + name}
	}
	if several(text) {
		return nil, &modules.PythonError{Type: "sqlite3.ProgrammingError", Msg: "You can only execute one statement at a time."}
	}
	source := file
	if file != ":memory:" && file != "" {
		source = (&url.URL{Scheme: "file", Path: c.Path(file)}).String() + "?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, pythonError(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, pythonError(err)
	}
	defer rows.Close()
	out := []any{}
	if !wanted {
		rows.Next() // a statement that fails says so at its first row
		return nil, pythonError(rows.Err())
	}
	columns, err := rows.Columns()
	if err != nil {
		return nil, pythonError(err)
	}
	for rows.Next() {
		if len(out) == maxRows {
			return nil, modules.Errorf("cannot take more than %d rows", maxRows)
		}
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, pythonError(err)
		}
		for i, v := range row {
			if t, ok := v.(time.Time); ok {
				row[i] = moment(t)
			}
			if s, ok := v.(string); ok && !utf8.ValidString(s) {
				return nil, &modules.PythonError{Type: "sqlite3.OperationalError",
					Msg: "Could not decode to UTF-8 column '" + columns[i] + "' with text '" + strings.ToValidUTF8(s, "\ufffd") + "'"}
			}
		}
		out = append(out, row)
	}
	return out, pythonError(rows.Err())
}

// moment returns a time in SQLite's notation, as a bare date if it is midnight.
func moment(t time.Time) string {
	if h, m, s := t.Clock(); h+m+s+t.Nanosecond() == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04:05.999999999")
}

// several reports whether a text has more than one statement. The statements in a trigger's body do not count.
func several(text string) bool {
	words := strings.Fields(strings.ToUpper(text))
	if len(words) > 2 && words[0] == "CREATE" && (words[1] == "TRIGGER" || words[2] == "TRIGGER") {
		return false
	}
	ended := false
	for i := 0; i < len(text); {
		skip := func(n int, end string) {
			j := strings.Index(text[i+n:], end)
			if j < 0 {
				i = len(text)
			} else {
				i += n + j + len(end)
			}
		}
		switch b := text[i]; {
		case strings.HasPrefix(text[i:], "--"):
			skip(2, "\n")
		case strings.HasPrefix(text[i:], "/*"):
			skip(2, "*/")
		case b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f':
			i++
		case b == ';':
			ended = true
			i++
		case ended:
			return true
		case b == '\'' || b == '"' || b == '`':
			skip(1, string(b))
		case b == '[':
			skip(1, "]")
		default:
			i++
		}
	}
	return false
}

// pythonError converts an error to that of Python's library.
func pythonError(err error) error {
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	kind := "DatabaseError"
	switch e.Code() & 0xff {
	case 1, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17:
		kind = "OperationalError"
	case 2, 12:
		kind = "InternalError"
	case 18:
		kind = "DataError"
	case 19, 20:
		kind = "IntegrityError"
	case 21:
		kind = "InterfaceError"
	}
	text := strings.TrimSuffix(e.Error(), " (SQLITE_BUSY)")
	if i := strings.LastIndex(text, " ("); i >= 0 {
		text = text[:i]
	}
	for _, general := range [...]string{"SQL logic error: ", "constraint failed: ", "datatype mismatch: ", "unable to open database file: "} {
		text = strings.TrimPrefix(text, general)
	}
	return &modules.PythonError{Type: "sqlite3." + kind, Msg: text}
}

// on runs a statement on the file of the call; without one the answer is False.
func on(ctx context.Context, c *modules.Call, statement any) (any, error) {
	if c.Value("db") == nil {
		return false, nil
	}
	return modules.Answer(query(ctx, c, c.Str("db"), statement, true))
}

func fetch(ctx context.Context, c *modules.Call) (any, error) { return on(ctx, c, c.Value("sql")) }

func modify(ctx context.Context, c *modules.Call) (any, error) {
	if c.Value("db") == nil {
		return false, nil
	}
	if _, err := query(ctx, c, c.Str("db"), c.Value("sql"), false); err != nil {
		return nil, err
	}
	return true, nil
}

func tables(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name;")
}

func indices(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, "SELECT name FROM sqlite_master WHERE type='index' ORDER BY name;")
}

func sqliteVersion(ctx context.Context, c *modules.Call) (any, error) {
	rows, err := query(ctx, c, ":memory:", "select sqlite_version()", true)
	if err != nil {
		return nil, err
	}
	return pytext.Str(rows[0].([]any)[0]), nil
}

// version returns the version of the SQLite driver.
func version(context.Context, *modules.Call) (any, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "modernc.org/sqlite" {
				return strings.TrimPrefix(m.Version, "v"), nil
			}
		}
	}
	return "", nil
}
