package conf

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// refuseSDB handles sdb:// values, which Salt replaces by values from a database. brine has no such database, and the
// literal text must never be used as a secret. It returns an error for an option that decides whom the minion trusts.
// Other options fall back to their defaults, and a value inside a collection becomes nil.
func (l *loader) refuseSDB() error {
	for key, v := range l.Opts {
		s, whole := v.(string)
		whole = whole && strings.HasPrefix(s, "sdb://")
		if path, ref := findSDB(key, v); ref != "" && decisive(key) {
			return &Error{Msg: "Config option '" + path + "' refers to " + ref + ", and sdb is not supported"}
		}
		if !whole {
			l.Opts[key] = l.withoutSDB(key, v)
			continue
		}
		instead := "nothing"
		if _, known := l.defaults[key]; known {
			instead = "the default"
		}
		l.note(slog.LevelError, "Config option '%s' refers to %s, and sdb is not supported: using %s", key, s, instead)
		l.Opts[key] = l.defaults[key]
	}
	return nil
}

// findSDB returns the first sdb:// value in v, and where it is.
func findSDB(path string, v any) (at, ref string) {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "sdb://") {
			return path, v
		}
	case []any:
		for _, e := range v {
			if at, ref = findSDB(path, e); ref != "" {
				return at, ref
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if at, ref = findSDB(path+":"+k, v[k]); ref != "" {
				return at, ref
			}
		}
	case map[any]any:
		for k, e := range v {
			if at, ref = findSDB(path+":"+pytext.Str(k), e); ref != "" {
				return at, ref
			}
		}
	}
	return "", ""
}

func (l *loader) withoutSDB(path string, v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "sdb://") {
			l.note(slog.LevelError, "Config option '%s' refers to %s, and sdb is not supported: using nothing", path, v)
			return nil
		}
	case []any:
		for i, e := range v {
			v[i] = l.withoutSDB(path, e)
		}
	case map[string]any:
		for k, e := range v {
			v[k] = l.withoutSDB(path+":"+k, e)
		}
	case map[any]any:
		for k, e := range v {
			v[k] = l.withoutSDB(path+":"+pytext.Str(k), e)
		}
	}
	return v
}

// decisive reports whether, without this option, a minion or master would be another one, trust another one, or
// permit more.
func decisive(key string) bool {
	switch key {
	case "id", "master", "master_type", "master_port", "publish_port", "ret_port", "interface", "user", "root_dir", "pki_dir", "cachedir",
		"sock_dir", "transport", "key_pass", "signing_key_pass", "encryption_algorithm", "hash_type", "append_domain":
		return true
	}
	return slices.Contains(HonouredLocks(), key)
}
