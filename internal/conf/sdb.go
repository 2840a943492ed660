package conf

import (
	"log/slog"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
)

// refuseSDB looks for sdb:// values, which Salt replaces by what a database answers. There is no such database here,
// and the literal text must never be used in place of a secret: an option that decides whom the minion trusts is an
// error, every other falls back to its default, and values inside of collections become nil.
func (l *loader) refuseSDB() error {
	for key, v := range l.Opts {
		s, ok := v.(string)
		if !ok {
			l.Opts[key] = l.withoutSDB(key, v)
			continue
		}
		if !strings.HasPrefix(s, "sdb://") {
			continue
		}
		if decisive(key) {
			return &Error{Msg: "Config option '" + key + "' refers to " + s + ", and sdb is not supported"}
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

// decisive names the options without which a minion or master is another one, or trusts another one.
func decisive(key string) bool {
	switch key {
	case "id", "master", "master_type", "master_finger", "master_port", "publish_port", "ret_port", "interface", "user",
		"root_dir", "pki_dir", "cachedir", "sock_dir", "transport", "ssl", "master_sign_key_name", "verify_master_pubkey_sign",
		"always_verify_signature", "sign_pub_messages", "open_mode", "auto_accept", "autosign_file", "key_pass",
		"signing_key_pass", "encryption_algorithm", "signing_algorithm", "hash_type", "append_domain",
		"cmd_whitelist_glob", "cmd_blacklist_glob", "disable_modules", "whitelist_modules":
		return true
	}
	return false
}
