package conf

import (
	"log/slog"
	"sort"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// validateTypes notes options whose values Salt would warn about (salt.config._validate_opts). The values are not
// changed.
func (l *loader) validateTypes() {
	keys := make([]string, 0, len(l.Opts))
	for k := range l.Opts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	all := validTypesOfAll()
	for _, key := range keys {
		types := all[key]
		if types == "" || validType(l.Opts[key], strings.Fields(types)) {
			continue
		}
		names := strings.Fields(types)
		want := names[0]
		if len(names) > 1 {
			want = strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
		}
		v := l.Opts[key]
		l.note(slog.LevelWarn, "Config option '%s' with value %s has an invalid type of %s, a %s is required for this option",
			key, pytext.Str(v), pyType(v), want)
		l.Notes[len(l.Notes)-1].Option = key
	}
}

// levels lists Salt's names of log levels (salt/_logging/impl.py, LOG_LEVELS).
const levels = "all, garbage, trace, debug, profile, info, warning, error, critical, quiet"

// validateValues reports options of the right type with invalid values. Stock does not report them: it fails
// later, or silently uses the default. The values are not changed.
func (l *loader) validateValues() {
	bad := func(key, want, instead string) {
		l.note(slog.LevelWarn, "Config option '%s' with value %s must be %s; %s is used", key,
			pytext.Str(l.Opts[key]), want, instead)
		l.Notes[len(l.Notes)-1].Option = key
	}
	for _, key := range []string{"master_port", "publish_port", "ret_port", "source_publish_port", "source_ret_port",
		"tcp_pub_port", "tcp_pull_port", "tcp_master_pub_port", "tcp_master_pull_port"} {
		v, set := l.Opts[key]
		if !set || v == nil || !l.Given[key] {
			continue
		}
		if types := validTypes(key); types != "" && !validType(v, strings.Fields(types)) {
			continue // validateTypes reports it
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(pytext.Str(v)), 10, 16); err != nil || n == 0 && l.defaults[key] != int64(0) {
			bad(key, "the number of a port", "the default")
		}
	}
	for _, key := range []string{"log_level", "log_level_logfile"} {
		if v, ok := l.Opts[key].(string); ok && l.Given[key] &&
			!strings.Contains(", "+levels+", ", ", "+strings.ToLower(v)+", ") {
			bad(key, "one of "+levels, "error")
		}
	}
	switch v := l.Opts["beacons"].(type) {
	case nil, map[string]any:
	default:
		if l.name == "minion" {
			l.note(slog.LevelWarn, "Config option 'beacons' with value %s has an invalid type of %s, a dict is required for this option",
				pytext.Str(v), pyType(v))
			l.Notes[len(l.Notes)-1].Option = "beacons"
		}
	}
}

func validType(v any, types []string) bool {
	name := pyType(v)
	single := len(types) == 1
	for _, t := range types {
		if t == name && !(name == "NoneType" && single) || t == "tuple" && name == "list" && !single {
			return true
		}
		// In Python bool is an int, but a boolean is valid only for the type bool.
	}
	if name == "bool" {
		return !single
	}
	for _, t := range types {
		if converts(v, name, t) {
			return true
		}
	}
	return false
}

// converts reports whether the Python type t accepts the value without changing its meaning.
func converts(v any, name, t string) bool {
	switch t {
	case "str":
		return name != "list" && name != "dict"
	case "float":
		_, ok := number(v)
		return ok && name != "bool"
	case "int":
		switch v := v.(type) {
		case int64, int, uint64:
			return true
		case string:
			_, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return err == nil
		}
	}
	return false
}
