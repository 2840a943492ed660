package postgres

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The texts of create_metadata about an extension.
const (
	notInstalled = "EXTENSION NOT INSTALLED"
	installed    = "EXTENSION INSTALLED"
	toUpgrade    = "EXTENSION TO UPGRADE"
	toMove       = "EXTENSION TO MOVE"
)

func (p conn) available(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, "select * from pg_available_extensions();", false)
	return byName(rows, "name", false), err
}

func (p conn) installed(ctx context.Context, c *modules.Call) (map[string]any, error) {
	rows, err := p.rows(ctx, c, "select a.*, b.nspname as schema_name from pg_extension a,  pg_namespace b where a.extnamespace = b.oid;", false)
	return byName(rows, "extname", false), err
}

func availableExtensions(ctx context.Context, c *modules.Call) (any, error) {
	return given(c).available(ctx, c)
}

func installedExtensions(ctx context.Context, c *modules.Call) (any, error) {
	return given(c).installed(ctx, c)
}

func getAvailableExtension(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).available(ctx, c)
	return all[c.Str("name")], err
}

func getInstalledExtension(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).installed(ctx, c)
	return all[c.Str("name")], err
}

func isAvailableExtension(ctx context.Context, c *modules.Call) (any, error) {
	all, err := given(c).available(ctx, c)
	for name := range all {
		if strings.EqualFold(name, c.Str("name")) {
			return true, err
		}
	}
	return false, err
}

func isInstalledExtension(ctx context.Context, c *modules.Call) (any, error) {
	v, err := getInstalledExtension(ctx, c)
	return v != nil, err
}

// metadata compares an extension with the arguments ext_version and schema, and returns what differs.
func metadata(ctx context.Context, c *modules.Call) ([]any, error) {
	all, err := given(c).installed(ctx, c)
	have, ok := all[c.Str("name")].(map[string]any)
	if err != nil || !ok {
		return []any{notInstalled}, err
	}
	out := []any{installed}
	if v := c.Value("ext_version"); v != nil && !atLeast(text(have, "extversion"), pytext.Str(v)) {
		out = append(out, toUpgrade)
	}
	if v := c.Value("schema"); v != nil && have["extrelocatable"] == "t" && text(have, "schema_name") != pytext.Str(v) {
		out = append(out, toMove)
	}
	return out, nil
}

func createMetadata(ctx context.Context, c *modules.Call) (any, error) { return metadata(ctx, c) }

func dropExtension(ctx context.Context, c *modules.Call) (any, error) {
	sql := "DROP EXTENSION"
	if c.Bool("if_exists") {
		sql += " IF EXISTS"
	}
	sql += " " + c.Str("name")
	if c.Value("cascade") == nil || c.Bool("cascade") {
		sql += " CASCADE"
	}
	if c.Bool("restrict") {
		sql += " RESTRICT"
	}
	there, err := isInstalledExtension(ctx, c)
	if err != nil {
		return nil, err
	}
	if there == true {
		if _, err := given(c).statement(ctx, c, sql+" ;"); err != nil {
			return nil, err
		}
	}
	there, err = isInstalledExtension(ctx, c)
	return there == false, err
}

func createExtension(ctx context.Context, c *modules.Call) (any, error) {
	have, err := metadata(ctx, c)
	if err != nil {
		return nil, err
	}
	can, err := isAvailableExtension(ctx, c)
	if err != nil {
		return nil, err
	}
	name, schema, version := `"`+c.Str("name")+`"`, c.Str("schema"), c.Str("ext_version")
	var words []string
	switch {
	case can != true:
	case slices.Contains(have, any(notInstalled)):
		words = append(words, "CREATE EXTENSION")
		if c.Value("if_not_exists") == nil || c.Bool("if_not_exists") {
			words = append(words, "IF NOT EXISTS")
		}
		words = append(words, name)
		var with []string
		if schema != "" {
			with = append(with, `SCHEMA "`+schema+`"`)
		}
		if version != "" {
			with = append(with, "VERSION "+version)
		}
		if c.Bool("from_version") {
			with = append(with, "FROM "+c.Str("from_version"))
		}
		if len(with) > 0 {
			words = append(append(words, "WITH"), with...)
		}
		words = append(words, ";")
	default:
		if schema != "" && slices.Contains(have, any(toMove)) {
			words = append(words, "ALTER EXTENSION "+name+` SET SCHEMA "`+schema+`";`)
		}
		if version != "" && slices.Contains(have, any(toUpgrade)) {
			words = append(words, "ALTER EXTENSION "+name+" UPDATE TO "+version+";")
		}
	}
	if len(words) > 0 {
		if _, err := given(c).statement(ctx, c, strings.Join(words, " ")); err != nil {
			return nil, err
		}
	}
	have, err = metadata(ctx, c)
	return len(have) == 1 && have[0] == installed, err
}

func datadirExists(_ context.Context, c *modules.Call) (any, error) { return isDatadir(c), nil }

func isDatadir(c *modules.Call) bool {
	for _, name := range [...]string{"PG_VERSION", "postgresql.conf"} {
		if info, err := os.Stat(filepath.Join(c.Path(c.Str("name")), name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

func datadirInit(ctx context.Context, c *modules.Call) (any, error) {
	if isDatadir(c) {
		return false, nil
	}
	runas := c.Value("runas")
	if runas == nil {
		runas = account(c)
	}
	user := c.Value("user")
	if user == nil {
		user = runas
	}
	program, err := binary(ctx, c, "initdb")
	if err != nil {
		return nil, err
	}
	if program == "" {
		return nil, modules.Errorf("initdb executable not found.")
	}
	cmd := []any{program, "--pgdata=" + c.Str("name"), "--username=" + pytext.Str(user), "--auth=" + pytext.Str(c.Value("auth")),
		"--encoding=" + pytext.Str(c.Value("encoding"))}
	if v := c.Value("locale"); v != nil {
		cmd = append(cmd, "--locale="+pytext.Str(v))
	}
	if v := c.Value("waldir"); v != nil {
		cmd = append(cmd, "-X", pytext.Str(v))
	}
	if c.Bool("checksums") {
		cmd = append(cmd, "--data-checksums")
	}
	if v := c.Value("password"); v != nil {
		path, err := secretFile(ctx, c, pytext.Str(v), runas)
		if err != nil {
			return nil, err
		}
		defer os.Remove(c.Path(path))
		cmd = append(cmd, "--pwfile="+path)
	}
	timeout, err := c.ExecKw(ctx, "config.option", []any{"postgres.timeout"}, map[string]any{"default": int64(0)})
	if err != nil {
		return nil, err
	}
	ret, err := runAll(ctx, c, cmd, map[string]any{"runas": runas, "clean_env": true, "timeout": timeout, "python_shell": false})
	return retcode(ret) == 0, err
}

// debian returns the path of one of Debian's tools for clusters. Without these tools the functions are not available,
// as in stock.
func debian(c *modules.Call, program string) (string, error) {
	if c.Which("pg_createcluster") == "" {
		return "", &modules.NotAvailableError{Fun: c.Fun}
	}
	return c.Which(program), nil
}

func clusters(ctx context.Context, c *modules.Call) (map[string]any, error) {
	program, err := debian(c, "pg_lsclusters")
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.All(ctx, c, program, "--no-header")
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, line := range out.Lines() {
		f := strings.Fields(line)
		if len(f) != 7 {
			few := "not enough values to unpack (expected 7, got " + strconv.Itoa(len(f)) + ")"
			if len(f) > 7 {
				few = "too many values to unpack (expected 7)"
			}
			return nil, &modules.PythonError{Type: "ValueError", Msg: few}
		}
		port, err := modules.ToInt(f[2])
		if err != nil {
			return nil, err
		}
		all[f[0]+"/"+f[1]] = map[string]any{"port": port, "status": f[3], "user": f[4], "datadir": f[5], "log": f[6]}
	}
	return all, nil
}

func clusterList(ctx context.Context, c *modules.Call) (any, error) {
	all, err := clusters(ctx, c)
	if err != nil || c.Bool("verbose") {
		return all, err
	}
	names := []any{}
	for _, name := range sorted(all) {
		names = append(names, name)
	}
	return names, nil
}

func clusterExists(ctx context.Context, c *modules.Call) (any, error) {
	all, err := clusters(ctx, c)
	return has(all, pytext.Str(c.Value("version"))+"/"+c.Str("name")), err
}

func clusterCreate(ctx context.Context, c *modules.Call) (any, error) {
	program, err := debian(c, "pg_createcluster")
	if err != nil {
		return nil, err
	}
	cmd := []string{program}
	for _, name := range [...]string{"port", "locale", "encoding", "datadir"} {
		if c.Bool(name) {
			cmd = append(cmd, "--"+name, c.Str(name))
		}
	}
	cmd = append(cmd, pytext.Str(c.Value("version")), c.Str("name"))
	if c.Bool("allow_group_access") || c.Bool("data_checksums") || c.Bool("wal_segsize") {
		cmd = append(cmd, "--")
	}
	if c.Value("allow_group_access") == true {
		cmd = append(cmd, "--allow-group-access")
	}
	if c.Value("data_checksums") == true {
		cmd = append(cmd, "--data-checksums")
	}
	if c.Bool("wal_segsize") {
		cmd = append(cmd, "--wal-segsize", c.Str("wal_segsize"))
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd})
	if err != nil || out.Retcode != 0 {
		return false, err
	}
	return out.Map(), nil
}

func clusterRemove(ctx context.Context, c *modules.Call) (any, error) {
	program, err := debian(c, "pg_dropcluster")
	if err != nil {
		return nil, err
	}
	cmd := []string{program}
	if c.Bool("stop") {
		cmd = append(cmd, "--stop")
	}
	version := pytext.Str(c.Value("version"))
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(cmd, version, c.Str("name"))})
	if err != nil {
		return nil, err
	}
	ret := out.Map()
	if out.Retcode == 0 {
		ret["changes"] = "Successfully removed cluster " + version + "/" + c.Str("name")
	}
	return ret, nil
}
