package mysql

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// privileges are the privileges that can be granted. The list is Salt's, in alphabetical order.
const privileges = "|ALL PRIVILEGES|ALTER|ALTER ROUTINE|BACKUP_ADMIN|BINLOG_ADMIN|BINLOG ADMIN|BINLOG MONITOR|BINLOG REPLAY|CONNECTION_ADMIN|CONNECTION ADMIN|" +
	"CREATE|CREATE ROLE|CREATE ROUTINE|CREATE TABLESPACE|CREATE TEMPORARY TABLES|CREATE USER|CREATE VIEW|DELETE|DELETE HISTORY|DROP|DROP ROLE|" +
	"ENCRYPTION_KEY_ADMIN|EVENT|EXECUTE|FEDERATED ADMIN|FILE|GRANT OPTION|GROUP_REPLICATION_ADMIN|INDEX|INSERT|LOCK TABLES|PERSIST_RO_VARIABLES_ADMIN|" +
	"PROCESS|READ_ONLY ADMIN|REFERENCES|RELOAD|REPLICA MONITOR|REPLICATION CLIENT|REPLICATION MASTER ADMIN|REPLICATION REPLICA|REPLICATION SLAVE|" +
	"REPLICATION_SLAVE_ADMIN|REPLICATION SLAVE ADMIN|RESOURCE_GROUP_ADMIN|RESOURCE_GROUP_USER|ROLE_ADMIN|SELECT|SET USER|SET_USER_ID|" +
	"SERVICE_CONNECTION_ADMIN|SHOW DATABASES|SHOW VIEW|SHUTDOWN|SLAVE MONITOR|SUPER|SYSTEM_VARIABLES_ADMIN|TRIGGER|UPDATE|USAGE|XA_RECOVER_ADMIN|"

// notServerWide are those that ALL PRIVILEGES of MySQL 8 is not made of.
const notServerWide = "|ALL PRIVILEGES|BINLOG ADMIN|BINLOG MONITOR|BINLOG REPLAY|CONNECTION ADMIN|DELETE HISTORY|FEDERATED ADMIN|GRANT OPTION|READ_ONLY ADMIN|" +
	"REPLICA MONITOR|REPLICATION MASTER ADMIN|REPLICATION REPLICA|REPLICATION SLAVE ADMIN|SET USER|SERVICE_CONNECTION_ADMIN|SLAVE MONITOR|USAGE|"

func in(list, word string) bool { return strings.Contains(list, "|"+word+"|") }

// grant is the content of a GRANT statement.
type grant struct {
	user, host, database string
	list                 []string
}

// lex splits SQL as Python's shlex does in its old way, with ' and ` as quotes, which stay.
func lex(s string) ([]string, error) {
	var tokens []string
	word := func(c byte) bool {
		return c == '_' || c == '"' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(s); {
		start := i
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case c == '\'' || c == '`':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return nil, &modules.PythonError{Type: "ValueError", Msg: "No closing quotation"}
			}
			i += end + 2
		case word(c):
			for i < len(s) && (word(s[i]) || s[i] == '\'' || s[i] == '`') {
				i++
			}
		default:
			i++
			for i < len(s) && s[i]&0xc0 == 0x80 { // the rest of a letter that is none of ASCII
				i++
			}
		}
		tokens = append(tokens, s[start:i])
	}
	return tokens, nil
}

// tokens reads a GRANT statement. whose, if not nil, is the user it is about, which is then not read.
func tokens(sql string, whose *account) (grant, error) {
	g := grant{}
	if whose != nil {
		g.user, g.host = pytext.Str(whose.user), pytext.Str(whose.host)
	}
	all, err := lex(sql)
	if err != nil || len(all) == 0 {
		return g, err
	}
	var (
		words   []string
		current string
		column  bool
	)
	phrase := "grants"
	short := modules.IndexError()
loop:
	for i, token := range all[1:] {
		next, more := "", i+2 < len(all)
		if more {
			next = all[i+2]
		}
		switch {
		case phrase == "grants" && token == ",":
		case phrase == "grants" && token == "(":
			column = true
		case phrase == "grants" && token == ")":
			column = false
		case phrase == "grants" && token == "ON":
			phrase = "db"
		case phrase == "tables" && token == "TO":
			phrase = "user"
		case phrase == "pre-host" && token == "@":
			phrase = "host"
		case phrase == "grants" && !more:
			return g, short
		case phrase == "grants" && next != "," && next != "ON" && next != "(" && next != ")":
			words = append(words, token)
		case phrase == "grants" && words != nil:
			g.list = append(g.list, strings.Join(append(words, token), " "))
			words = nil
		case phrase == "grants" && column:
			g.list = append(g.list, current+"."+token)
		case phrase == "grants":
			current = token
			g.list = append(g.list, token)
		case phrase == "db":
			g.database += token
			if !more {
				break loop
			}
			if next == "." {
				phrase = "tables"
			}
		case phrase == "tables":
			g.database += token
		case phrase == "user":
			if whose != nil {
				break loop
			}
			g.user += token
			if !more {
				return g, short
			}
			if next == "@" {
				phrase = "pre-host"
			}
		case phrase == "host":
			g.host = token
			break loop
		}
	}
	if whose == nil {
		g.user, g.host = strings.Trim(g.user, "'"), strings.Trim(g.host, "'")
	}
	return g, nil
}

func (g grant) plain() map[string]any {
	list := []any{}
	for _, s := range g.list {
		list = append(list, s)
	}
	return map[string]any{"user": g.user, "host": g.host, "grant": list, "database": g.database}
}

func tokenizeGrant(_ context.Context, c *modules.Call) (any, error) {
	g, err := tokens(c.Str("grant"), nil)
	if err != nil {
		return nil, err
	}
	return g.plain(), nil
}

// normal normalizes a list of privileges: ALL becomes ALL PRIVILEGES. An unknown privilege is an error.
func normal(s string) (string, error) {
	if strings.EqualFold(strings.TrimSpace(s), "ALL") {
		s = "ALL PRIVILEGES"
	}
	for _, name := range splitGrant(s) {
		if !in(privileges, strings.ToUpper(strings.TrimSpace(name))) {
			return "", &modules.PythonError{Type: "Exception", Msg: "Invalid grant : '" + name + "'"}
		}
	}
	return s, nil
}

// splitGrant returns the names of the privileges in a list, without the columns in parentheses.
func splitGrant(s string) (names []string) {
	word := func(r rune) bool {
		return r == '_' || r == ' ' || r == '\t' || r == '\n' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	for s != "" {
		at := strings.IndexFunc(s, word)
		if at < 0 {
			return names
		}
		s = s[at:]
		end := strings.IndexFunc(s, func(r rune) bool { return !word(r) })
		if end < 0 {
			end = len(s)
		}
		names, s = append(names, s[:end]), s[end:]
		if strings.HasPrefix(s, "(") {
			if end := strings.IndexAny(s[1:], "()"); end >= 0 && s[1+end] == ')' {
				s = strings.TrimLeft(s[end+2:], " \t\n")
			}
		}
		s = strings.TrimPrefix(s, ",")
	}
	return names
}

// spaced gives a list one space behind each comma.
func spaced(s string) string {
	parts := strings.Split(s, ",")
	for i := range parts {
		if i > 0 {
			parts[i] = strings.TrimLeft(parts[i], " \t\n\r\f\v")
		}
		if i < len(parts)-1 {
			parts[i] = strings.TrimRight(parts[i], " \t\n\r\f\v")
		}
	}
	return strings.Join(parts, ", ")
}

// target splits a database and table at the last dot and quotes both.
func target(name string, escape bool) (db, table string) {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		db, table = name[:at], name[at+1:]
	} else {
		table = name
	}
	all := table == "*"
	if escape && db != "*" {
		db = quote(db, all)
	}
	if escape && !all {
		table = quote(table, false)
	}
	return db, table
}

// sslRequirement returns the part of the statement that requires encryption.
func sslRequirement(v any) (string, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return "", nil
	}
	var parts []string
	for _, x := range list {
		m, _ := x.(map[string]any)
		for key, value := range m {
			switch name := strings.ToUpper(strings.TrimSpace(key)); name {
			case "CIPHER", "ISSUER", "SUBJECT":
				parts = append(parts, name+" '"+strings.ReplaceAll(pytext.Str(value), "'", "")+"'")
			case "SSL", "X509":
				if pytext.Truth(value) {
					parts = append(parts, name)
				}
			default:
				return "", &modules.PythonError{Type: "Exception", Msg: "Invalid SSL option : '" + key + "'"}
			}
		}
	}
	return " REQUIRE " + strings.Join(parts, " AND "), nil
}

// generate returns the GRANT statement.
func generate(c *modules.Call, list string, ssl any) (string, error) {
	list, err := normal(strings.ToUpper(spaced(list)))
	if err != nil {
		return "", err
	}
	db, table := target(c.Str("database"), c.Bool("escape"))
	require, err := sslRequirement(ssl)
	if err != nil {
		return "", err
	}
	sql := "GRANT " + list + " ON " + db + "." + table + " TO %(user)s@%(host)s" + require
	if pytext.IsTrue(c.Value("grant_option")) {
		sql += " WITH GRANT OPTION"
	}
	return sql, nil
}

func grantsOf(ctx context.Context, c *modules.Call, a args, u account) (any, error) {
	if there, err := isUser(ctx, c, a, login{account: u}); err != nil || !there {
		return false, err
	}
	return ask(ctx, c, a, false, "SHOW GRANTS FOR %(user)s@%(host)s", u.values(), func(r *rows) (any, error) {
		list := []any{}
		for _, row := range r.data {
			text := pytext.Str(row[0])
			short, _, _ := strings.Cut(text, " IDENTIFIED BY")
			if strings.Contains(text, "WITH GRANT OPTION") && !strings.Contains(short, "WITH GRANT OPTION") {
				short += " WITH GRANT OPTION"
			}
			list = append(list, short)
		}
		return list, nil
	})
}

func userGrants(ctx context.Context, c *modules.Call) (any, error) {
	return grantsOf(ctx, c, given(c), account{c.Value("user"), c.Value("host")})
}

// aliases gives privileges the names that MariaDB shows them by.
func aliases(list []string, version string) []string {
	if !strings.Contains(version, "MariaDB") {
		return list
	}
	list = slices.Clone(list)
	for i, s := range list {
		switch {
		case s == "REPLICATION REPLICA" && atLeast(version, "10.5.1"):
			list[i] = "REPLICATION SLAVE"
		case s == "REPLICATION CLIENT" && atLeast(version, "10.5.2"):
			list[i] = "BINLOG MONITOR"
		case s == "REPLICA MONITOR" && atLeast(version, "10.5.9"):
			list[i] = "SLAVE MONITOR"
		}
	}
	return list
}

// serverPrivileges returns the privileges that ALL PRIVILEGES includes on a MySQL server.
func serverPrivileges(ctx context.Context, c *modules.Call, a args) []string {
	var list []string
	if n, err := connect(ctx, c, a); err == nil && n != nil {
		defer n.close()
		if r, err := n.execute(ctx, "SHOW PRIVILEGES", nil); err == nil {
			for _, row := range r.data {
				if name := strings.ToUpper(strings.TrimSpace(pytext.Str(row[0]))); !in("|USAGE|GRANT OPTION|PROXY|", name) {
					list = append(list, name)
				}
			}
		}
	}
	if list != nil {
		return list
	}
	for name := range strings.SplitSeq(strings.Trim(privileges, "|"), "|") {
		if !in(notServerWide, name) {
			list = append(list, name)
		}
	}
	return list
}

// isGranted reports whether a user has the privileges on the database that the call is about.
func isGranted(ctx context.Context, c *modules.Call, list string) (bool, error) {
	a := given(c)
	version, err := serverVersion(ctx, c, a)
	if err != nil || version == "" {
		return false, err
	}
	u := account{c.Value("user"), c.Value("host")}
	want := grant{user: pytext.Str(u.user), host: pytext.Str(u.host), database: c.Str("database")}
	all := strings.Contains(strings.ToUpper(list), "ALL")
	if all && atLeast(version, "8.0") && !strings.Contains(version, "MariaDB") && want.database == "*.*" {
		want.list = serverPrivileges(ctx, c, a)
	} else {
		if all {
			list = "ALL PRIVILEGES"
		}
		sql, err := generate(c, list, nil)
		if err != nil {
			return false, nil // stock logs it
		}
		if want, err = tokens(strings.ReplaceAll(sql, "%%", "%"), &u); err != nil {
			return false, err
		}
	}
	v, err := grantsOf(ctx, c, a, u)
	texts, ok := v.([]any)
	if err != nil || !ok {
		return false, err
	}
	var have []grant
	for _, text := range texts {
		g, err := tokens(pytext.Str(text), nil)
		if err != nil {
			return false, err
		}
		g.list = aliases(g.list, version)
		if at := slices.IndexFunc(have, func(h grant) bool { return h.database == g.database }); at >= 0 {
			have[at].list = append(have[at].list, g.list...)
		} else {
			have = append(have, g)
		}
	}
	bare := strings.NewReplacer(`"`, "", `\`, "", "`", "").Replace
	for _, g := range have {
		if bare(g.user) == bare(want.user) && bare(g.database) == bare(want.database) && bare(g.host) == bare(want.host) &&
			!slices.ContainsFunc(aliases(want.list, version), func(s string) bool { return !slices.Contains(g.list, s) }) {
			return true, nil
		}
	}
	return false, nil
}

func grantExists(ctx context.Context, c *modules.Call) (any, error) {
	version, err := serverVersion(ctx, c, given(c))
	if err != nil || version == "" {
		return false, err
	}
	list, err := modules.Text(c.Value("grant"), "upper")
	if err != nil {
		return nil, err
	}
	return isGranted(ctx, c, list)
}

func grantAdd(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, given(c), false, func(n *conn) (any, error) {
		list, err := modules.Text(c.Value("grant"), "strip")
		if err != nil {
			return nil, err
		}
		list = strings.TrimSpace(list)
		sql, err := generate(c, list, c.Value("ssl_option"))
		if err != nil {
			return false, nil // stock logs it
		}
		if _, err := n.execute(ctx, sql, account{c.Value("user"), c.Value("host")}.values()); err != nil {
			e, ok := err.(*sqlError)
			if !ok || e.class != "OperationalError" && e.class != "ProgrammingError" {
				return nil, through(err)
			}
			c.Context().Set("mysql.error", e.Error())
			return false, nil
		}
		return isGranted(ctx, c, list)
	})
}

func grantRevoke(ctx context.Context, c *modules.Call) (any, error) {
	return on(ctx, c, given(c), false, func(n *conn) (any, error) {
		list, err := modules.Text(c.Value("grant"), "strip")
		if err != nil {
			return nil, err
		}
		if list, err = normal(list); err != nil {
			return nil, err
		}
		if pytext.IsTrue(c.Value("grant_option")) {
			list += ", GRANT OPTION"
		}
		db, table := target(c.Str("database"), true)
		_, err = n.execute(ctx, "REVOKE "+list+" ON "+db+"."+table+" FROM %(user)s@%(host)s;", account{c.Value("user"), c.Value("host")}.values())
		if err != nil {
			return caught(c, err, false)
		}
		has, err := isGranted(ctx, c, list)
		return !has, err
	})
}
