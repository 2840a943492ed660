package trove

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// applyOverrides sets variables of the running server. As in Trove, a variable that the server refuses is only
// logged.
func (m *mysqlServer) applyOverrides(ctx context.Context) error {
	values, err := m.c.Map("overrides")
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !isVariable(key) {
			return modules.Errorf("cannot set the variable %s: this is not a variable's name", pytext.Repr(key))
		}
		err := m.exec(ctx, "SET GLOBAL "+key+variable(values[key]))
		var refused *sqlError
		if err != nil && !as(err, &refused) {
			return err
		}
		if err != nil {
			m.c.Logger().Error("Unable to set a variable of the server", "variable", key, "err", err)
		}
	}
	return nil
}

func isVariable(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' {
			return false
		}
	}
	return name != ""
}

// variable returns "=value" for a statement. Numbers with K, M or G are converted to bytes
// (trove.guestagent.common.guestagent_utils.to_bytes).
func variable(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "=1"
		}
		return "=0"
	case string:
		if n := len(v); n > 1 {
			if factor := map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[v[n-1]]; factor != 0 {
				if x, err := strconv.ParseInt(v[:n-1], 10, 64); err == nil && x >= 0 && x < 1<<32 {
					return "=" + strconv.FormatInt(x*factor, 10)
				}
			}
		}
		return "=" + quote(v)
	case int64, float64, int:
		return "=" + pytext.Str(v)
	}
	return "=" + quote(pytext.Str(v))
}

func (m *mysqlServer) makeReadOnly(ctx context.Context) error {
	value := "0"
	if m.c.Bool("read_only") {
		value = "1"
	}
	return m.exec(ctx, "SET GLOBAL read_only = "+value)
}
