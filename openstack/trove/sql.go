package trove

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/brine-salt/brine/modules"
)

// sqlError is an error of the server.
type sqlError struct {
	code  uint16 // MySQL's number
	state string // PostgreSQL's SQLSTATE
	text  string
}

func (e *sqlError) Error() string {
	if e.state != "" {
		return e.text + " (" + e.state + ")"
	}
	return fmt.Sprintf("(%d, %q)", e.code, e.text)
}

// isCode reports whether err is an error of the server with one of these numbers.
func isCode(err error, codes ...uint16) bool {
	var e *sqlError
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.code == code {
			return true
		}
	}
	return false
}

// row is a row of texts; NULL is nil.
type row []*string

func (r row) text(i int) string {
	if r[i] == nil {
		return ""
	}
	return *r[i]
}

// maxRows limits the rows of an answer.
const maxRows = 1 << 20

// readTable runs a statement and returns the names of its columns and its rows; told converts an error of the driver.
func readTable(ctx context.Context, conn driver.Conn, statement string, told func(error) error) (names []string, rows []row, err error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, nil, modules.Errorf("cannot query: the driver of the datastore does not know how")
	}
	r, err := q.QueryContext(ctx, statement, nil)
	if err != nil {
		return nil, nil, told(err)
	}
	defer r.Close()
	names = r.Columns()
	if len(names) == 0 {
		return nil, nil, nil
	}
	values := make([]driver.Value, len(names))
	for {
		switch err := r.Next(values); {
		case errors.Is(err, io.EOF):
			return names, rows, nil
		case err != nil:
			return nil, nil, told(err)
		case len(rows) == maxRows:
			return nil, nil, modules.Errorf("the answer has more than %d rows", maxRows)
		}
		line := make(row, len(values))
		for i, v := range values {
			line[i] = asText(v)
		}
		rows = append(rows, line)
	}
}

func asText(v driver.Value) *string {
	var s string
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		s = string(v)
	case string:
		s = v
	case int64:
		s = strconv.FormatInt(v, 10)
	case uint64:
		s = strconv.FormatUint(v, 10)
	case float32:
		s = strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		s = fmt.Sprint(v)
	}
	return &s
}
