package conf

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// applyMinion computes the effective options from the settings of the files (salt.config.apply_minion_config).
func (l *loader) applyMinion(files map[string]any) error {
	l.start(files, "minion")
	o := l.Opts
	if _, ok := o["grains"].(map[string]any); !ok {
		o["grains"] = map[string]any{}
	}
	l.environment()
	l.backends()
	if err := l.refuseSDB(); err != nil {
		return err
	}
	byAddress, err := l.identify()
	if err != nil {
		return err
	}
	if !byAddress {
		l.appendDomain()
	}
	l.appendIDToDirs()
	l.shortenSockDir()
	o["open_mode"] = o["open_mode"] == true
	o["file_roots"] = l.roots("file_roots", "file_roots", filepath.Join(PlatformDirs().Srv, "salt"))
	o["pillar_roots"] = l.roots("pillar_roots", "pillar_roots", filepath.Join(PlatformDirs().Srv, "pillar"))
	l.extensionDirs()
	l.prependRootDir("pki_dir", "cachedir", "sock_dir", "extension_modules", "pidfile", "log_file", "key_logfile")
	if _, ok := o["beacons"]; !ok {
		o["beacons"] = map[string]any{}
	}
	l.finish(files)
	if err := l.tls(); err != nil {
		return err
	}
	if err := l.discovery(true); err != nil {
		return err
	}
	if err := l.algorithm("encryption_algorithm", "The encryption algorithm", encryptionAlgorithms); err != nil {
		return err
	}
	// The misspelling is Salt's.
	return l.algorithm("signing_algorithm", "The signging algorithm", signingAlgorithms)
}

// applyMaster is like applyMinion for the master (salt.config.apply_master_config).
func (l *loader) applyMaster(files map[string]any) error {
	l.start(files, "master")
	o := l.Opts
	o["__fs_update"] = true
	if auth := textMap(o["external_auth"]); auth != nil {
		if _, ok := auth["rest"]; ok {
			if o["keep_acl_in_token"] == false {
				l.note(slog.LevelWarn, "The 'rest' external_auth backend requires 'keep_acl_in_token' to be True. Setting 'keep_acl_in_token' to True.")
			}
			o["keep_acl_in_token"] = true
		}
	}
	l.environment()
	l.backends()
	if err := l.refuseSDB(); err != nil {
		return err
	}
	l.shortenSockDir()
	cachedir := l.String("cachedir")
	o["token_dir"] = filepath.Join(cachedir, "tokens")
	o["syndic_dir"] = filepath.Join(cachedir, "syndics")
	l.extensionDirs()
	given := pytext.Truth(o["id"])
	byAddress, err := l.identify()
	if err != nil {
		return err
	}
	if !byAddress {
		l.appendDomain()
	}
	if !given {
		o["id"] = l.String("id") + "_master"
	}
	l.prependRootDir("pki_dir", "cachedir", "pidfile", "sock_dir", "extension_modules", "autosign_file", "autoreject_file",
		"token_dir", "syndic_dir", "sqlite_queue_dir", "autosign_grains_dir", "log_file", "key_logfile", "ssh_log_file")
	l.cluster()
	o["open_mode"] = o["open_mode"] == true
	o["auto_accept"] = o["auto_accept"] == true
	srv := filepath.Join(PlatformDirs().Srv, "salt")
	o["file_roots"] = l.roots("file_roots", "file_roots", srv)
	// Salt uses the rule for file_roots for both.
	o["pillar_roots"] = l.roots("pillar_roots", "file_roots", srv)
	l.ignorePatterns()
	if n, ok := pyNumber(o["worker_threads"]); ok && n < 3 && pytext.Truth(o["peer"]) {
		l.note(slog.LevelWarn, "The 'worker_threads' setting in '%s' cannot be lower than 3. Resetting it to the default value of 3.", l.String("conf_file"))
		o["worker_threads"] = int64(3)
	}
	l.finish(files)
	if err := l.tls(); err != nil {
		return err
	}
	if err := l.discovery(false); err != nil {
		return err
	}
	if err := l.algorithm("publish_signing_algorithm", "The  publish signging algorithm", signingAlgorithms); err != nil {
		return err
	}
	l.sshMinionOpts()
	return nil
}

// start merges the settings of the files into the defaults.
func (l *loader) start(files map[string]any, role string) {
	if dir, ok := files["log_dir"].(string); ok && dir != "" {
		name, _ := files["log_file"].(string)
		switch {
		case name == "":
			files["log_file"] = filepath.Join(dir, filepath.Base(l.defaults["log_file"].(string)))
		case !filepath.IsAbs(name):
			files["log_file"] = filepath.Join(dir, name)
		}
	}
	l.Opts = make(map[string]any, len(l.defaults)+len(files)+8)
	for k, v := range l.defaults {
		l.Opts[k] = v
	}
	l.Opts["__role"] = role
	for k, v := range files {
		l.Opts[k] = v
	}
	l.Opts["__cli"] = l.CLI
}

func (l *loader) environment() {
	o := l.Opts
	env, ok := o["environment"]
	if !ok {
		return
	}
	if o["saltenv"] != nil {
		l.note(slog.LevelWarn, "The 'saltenv' and 'environment' %s config options cannot both be used. Ignoring 'environment' in favor of 'saltenv'.", l.name)
		o["environment"] = o["saltenv"]
		return
	}
	l.note(slog.LevelWarn, "The 'environment' %s config option has been renamed to 'saltenv'. Using %s as the 'saltenv' config value.", l.name, pytext.Str(env))
	o["saltenv"] = env
}

func (l *loader) backends() {
	list, _ := l.Opts["fileserver_backend"].([]any)
	for i, v := range list {
		switch v {
		case "git", "hg", "svn", "minion":
			list[i] = v.(string) + "fs"
		}
	}
}

func (l *loader) appendDomain() {
	domain, ok := l.Opts["append_domain"].(string)
	if !ok {
		return
	}
	id := l.String("id")
	// A final dot marks a complete name, which is not changed.
	if !strings.HasSuffix(id, domain) && !strings.HasSuffix(id, ".") {
		l.Opts["id"] = id + "." + domain
	}
}

func (l *loader) appendIDToDirs() {
	o, id := l.Opts, l.String("id")
	for _, which := range l.List("append_minionid_config_dirs") {
		switch which {
		case "pki_dir", "cachedir", "extension_modules":
			o[which.(string)] = join(l.String(which.(string)), id)
		case "default_include":
			if inc, ok := o["default_include"].(string); ok {
				dir, base := filepath.Split(inc)
				o["default_include"] = join(strings.TrimSuffix(dir, "/"), id, base)
			}
		}
	}
	for _, which := range l.List("append_minionid_config_dirs") {
		if which == "pidfile" {
			dir, base := filepath.Split(l.String("pidfile"))
			o["pidfile"] = join(strings.TrimSuffix(dir, "/"), "salt", id, base)
			return
		}
	}
}

// join implements Python's os.path.join: an absolute part replaces the earlier ones, and the result is not cleaned.
func join(parts ...string) string {
	out := ""
	for _, p := range parts {
		switch {
		case filepath.IsAbs(p) || out == "":
			out = p
		case strings.HasSuffix(out, "/"):
			out += p
		default:
			out += "/" + p
		}
	}
	return out
}

func (l *loader) shortenSockDir() {
	if len([]rune(l.String("sock_dir"))) > len([]rune(l.String("cachedir")))+10 {
		l.Opts["sock_dir"] = join(l.String("cachedir"), ".salt-unix")
	}
}

// roots turns every environment into a list of directories, with globs expanded and sorted
// (salt.config._validate_file_roots). name is the option's name in warnings.
func (l *loader) roots(key, name, def string) map[string]any {
	m := textMap(l.Opts[key])
	if m == nil {
		l.note(slog.LevelWarn, "The %s parameter is not properly formatted, using defaults", name)
		return map[string]any{"base": []any{def}}
	}
	out := make(map[string]any, len(m))
	for env, dirs := range m {
		list, _ := dirs.([]any)
		expanded := make([]any, 0, len(list))
		for _, d := range list {
			path, ok := d.(string)
			if !ok || !strings.ContainsAny(path, "*?[") {
				expanded = append(expanded, d)
				continue
			}
			for _, match := range glob(path) {
				expanded = append(expanded, match)
			}
		}
		out[env] = expanded
	}
	return out
}

func (l *loader) extensionDirs() {
	o := l.Opts
	if !pytext.Truth(o["extension_modules"]) {
		o["extension_modules"] = join(l.String("cachedir"), "extmods")
	}
	if !pytext.Truth(o["utils_dirs"]) {
		o["utils_dirs"] = []any{join(l.String("extension_modules"), "utils")}
	}
}

// prependRootDir puts root_dir before relative paths, and replaces the default root by it
// (salt.config.prepend_root_dir). Log files that are addresses are not changed.
func (l *loader) prependRootDir(keys ...string) {
	root, err := filepath.Abs(l.String("root_dir"))
	if err != nil {
		return
	}
	defRoot := strings.TrimRight(PlatformDirs().Root, string(os.PathSeparator))
	below := func(path, dir string) (string, bool) {
		if path == dir || strings.HasPrefix(path, dir+string(os.PathSeparator)) {
			rest := path[len(dir):]
			return rest, rest != ""
		}
		return "", false
	}
	for _, key := range keys {
		path, ok := l.Opts[key].(string)
		if !ok || strings.HasSuffix(key, "log_file") && hasScheme(path) || key == "key_logfile" && hasScheme(path) {
			continue
		}
		underDef, inDef := below(path, defRoot)
		underRoot, inRoot := below(path, root)
		switch {
		case inDef && !inRoot:
			path = underDef
		case inRoot && !inDef:
			path = underRoot
		case inDef && inRoot && strings.Contains(root, defRoot):
			path = underRoot
		case inDef && inRoot:
			path = underDef
		case filepath.IsAbs(path):
			continue
		}
		l.Opts[key] = saltJoin(root, path)
	}
}

// saltJoin implements salt.utils.path.join: later parts are never absolute, and the result is cleaned.
func saltJoin(root, path string) string {
	return filepath.Join(root, path)
}

// hasScheme reports whether urllib.parse.urlparse finds a scheme.
func hasScheme(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	if !ok || scheme == "" {
		return false
	}
	for i, c := range scheme {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return true
}

// finish does the last steps, which are the same for both roles.
func (l *loader) finish(files map[string]any) {
	o := l.Opts
	switch v, given := files["ipc_write_buffer"]; {
	case !given:
		o["ipc_write_buffer"] = int64(0)
	case v == "dynamic":
		o["ipc_write_buffer"] = ipcBuffer()
	}
	o["hash_type"] = strings.ToLower(l.String("hash_type"))
	if list, ok := o["return"].([]any); ok {
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = pytext.Str(v)
		}
		o["return"] = strings.Join(parts, ",")
	}
}

// ipcBuffer returns half of the larger of 5 % of the memory and 10 MiB, in bytes.
func ipcBuffer() int64 {
	space := float64(10 << 20)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 && f[0] == "MemTotal:" {
			if kb, err := strconv.ParseFloat(f[1], 64); err == nil {
				space = max(space, kb*1024*0.05)
			}
		}
	}
	return int64(space * 0.5)
}

func (l *loader) tls() error {
	o := l.Opts
	switch v := o["ssl"].(type) {
	case nil:
		return nil
	case bool:
		if v {
			o["ssl"] = map[string]any{}
		} else {
			o["ssl"] = nil
		}
		return nil
	case map[string]any:
		for _, opt := range []struct {
			key     string
			allowed []string
		}{
			{"cert_reqs", []string{"CERT_NONE", "CERT_OPTIONAL", "CERT_REQUIRED"}},
			{"ssl_version", []string{"PROTOCOL_SSLv23", "PROTOCOL_TLS", "PROTOCOL_TLS_CLIENT", "PROTOCOL_TLS_SERVER",
				"PROTOCOL_TLSv1", "PROTOCOL_TLSv1_1", "PROTOCOL_TLSv1_2"}},
		} {
			if v[opt.key] != nil && !contains(opt.allowed, v[opt.key]) {
				return &Error{Msg: "SSL option '" + opt.key + "' must be set to one of the following values: '" +
					strings.Join(opt.allowed, "', '") + "'."}
			}
		}
		return nil
	}
	return &Error{Msg: "Config option 'ssl' with value " + pytext.Repr(o["ssl"]) + " must be a mapping or a boolean"}
}

func contains(list []string, v any) bool {
	for _, s := range list {
		if s == v {
			return true
		}
	}
	return false
}

func (l *loader) discovery(minion bool) error {
	v := l.Opts["discovery"]
	if v == nil || v == false {
		return nil
	}
	full := map[string]any{"port": int64(4520), "mapping": map[string]any{}}
	known := []string{"attempts", "pause", "port", "match", "mapping"}
	if minion {
		full["attempts"], full["pause"], full["match"] = int64(3), int64(5), "any"
	}
	given := textMap(v)
	if given == nil && v != true {
		return &Error{Msg: "Config option 'discovery' with value " + pytext.Repr(v) + " must be a mapping or a boolean"}
	}
	for k := range given {
		if !contains(known, k) {
			return &Error{Msg: "Unknown discovery option: " + k}
		}
	}
	mergeInto(full, given)
	l.Opts["discovery"] = full
	return nil
}

func encryptionAlgorithms() []string { return []string{"OAEP-SHA1", "OAEP-SHA224"} }
func signingAlgorithms() []string    { return []string{"PKCS1v15-SHA1", "PKCS1v15-SHA224"} }

func (l *loader) algorithm(key, what string, valid func() []string) error {
	if contains(valid(), l.Opts[key]) {
		return nil
	}
	return &Error{Msg: what + " '" + pytext.Str(l.Opts[key]) + "' is not valid. Please specify one of " + strings.Join(valid(), ",") + "."}
}

func (l *loader) cluster() {
	o := l.Opts
	if o["cluster_id"] != nil {
		if !pytext.Truth(o["cluster_peers"]) {
			l.note(slog.LevelWarn, "Cluster id defined without defining cluster peers")
			o["cluster_peers"] = []any{}
		}
		if !pytext.Truth(o["cluster_pki_dir"]) {
			l.note(slog.LevelWarn, "Cluster id defined without defining cluster pki, falling back to pki_dir")
			o["cluster_pki_dir"] = o["pki_dir"]
		}
		return
	}
	o["cluster_id"] = nil
	if pytext.Truth(o["cluster_peers"]) {
		l.note(slog.LevelWarn, "Cluster peers defined without a cluster_id, ignoring.")
		o["cluster_peers"] = []any{}
	}
	if pytext.Truth(o["cluster_pki_dir"]) {
		l.note(slog.LevelWarn, "Cluster pki dir defined without a cluster_id, ignoring.")
		o["cluster_pki_dir"] = nil
	}
}

func (l *loader) ignorePatterns() {
	o := l.Opts
	if pytext.Truth(o["file_ignore_regex"]) {
		kept := []any{}
		for _, v := range l.List("file_ignore_regex") {
			s, ok := v.(string)
			if _, err := regexp.Compile(s); !ok || err != nil && !perlOnly(err) {
				l.note(slog.LevelWarn, "Unable to parse file_ignore_regex. Skipping: %s", pytext.Str(v))
				continue
			}
			kept = append(kept, s)
		}
		o["file_ignore_regex"] = kept
	}
	if s, ok := o["file_ignore_glob"].(string); ok && s != "" {
		o["file_ignore_glob"] = []any{s}
	}
}

// perlOnly reports whether err is about syntax that Python has and Go does not: look-around, back references.
func perlOnly(err error) bool {
	return strings.Contains(err.Error(), "invalid or unsupported Perl syntax") || strings.Contains(err.Error(), "invalid escape sequence")
}

// sshMinionOpts removes options that ssh_minion_opts must not set (salt.config._validate_ssh_minion_opts).
func (l *loader) sshMinionOpts() {
	v, ok := l.Opts["ssh_minion_opts"]
	if !ok {
		return
	}
	m := textMap(v)
	if m == nil {
		l.note(slog.LevelError, "Invalidly-formatted ssh_minion_opts")
		delete(l.Opts, "ssh_minion_opts")
		return
	}
	for name := range m {
		prefix, _, isFS := strings.Cut(strings.ToLower(name), "fs_")
		isFS = isFS && prefix != "" && strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
		if isFS || strings.Contains(name, "pillar") && name != "ssh_merge_pillar" || name == "fileserver_backend" {
			l.note(slog.LevelWarn, "'%s' is not a valid ssh_minion_opts parameter, ignoring", name)
			delete(m, name)
		}
	}
	l.Opts["ssh_minion_opts"] = m
}

// nodegroups converts the option nodegroups, which may be a list of mappings with one group each, to one mapping.
func (l *loader) nodegroups() {
	switch v := l.Opts["nodegroups"].(type) {
	case nil:
		l.Opts["nodegroups"] = map[string]any{}
	case []any:
		all := map[string]any{}
		for _, e := range v {
			m := textMap(e)
			if m == nil || len(m) != 1 {
				return
			}
			for k, g := range m {
				all[k] = g
			}
		}
		if len(v) > 0 {
			l.Opts["nodegroups"] = all
		}
	}
}
