// Package dbpage has the statements by which databases and users of a server are listed in pages. The modules mysql and postgres use
// them, and OpenStack Trove's agent.
package dbpage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// A Page is a part of a listing that is sorted by name.
type Page struct {
	Limit   int64  // rows of the page; 0 means no limit
	Marker  string // the last name of the page before, or ""
	Include bool   // the page begins with the marker
}

// Read reads the arguments of a page: limit, marker and include_marker.
func Read(c *modules.Call) (p Page, err error) {
	if c.Value("limit") != nil {
		if p.Limit, err = c.Int("limit"); err != nil {
			return p, err
		}
		if p.Limit < 1 {
			return p, modules.Usagef("limit must be at least 1, not %d", p.Limit)
		}
	}
	if v := c.Value("marker"); v != nil {
		p.Marker = pytext.Str(v)
	}
	p.Include = c.Bool("include_marker")
	return p, nil
}

// after returns the condition that skips the pages before.
func (p Page) after(column string, quote func(string) string) string {
	switch {
	case p.Marker == "":
		return ""
	case p.Include:
		return column + " >= " + quote(p.Marker)
	}
	return column + " > " + quote(p.Marker)
}

// clause requests one more row than the page has; that row shows whether there is another page.
func (p Page) clause() string {
	if p.Limit <= 0 {
		return ""
	}
	return " LIMIT " + strconv.FormatInt(p.Limit+1, 10)
}

// Cut removes the row after the page. more reports whether there was one: then the page's last name is the marker of the next page.
func Cut[T any](p Page, rows []T) (page []T, more bool) {
	if p.Limit > 0 && int64(len(rows)) > p.Limit {
		return rows[:p.Limit], true
	}
	return rows, false
}

// where returns a clause of those conditions that are not empty.
func where(conditions ...string) string {
	conditions = slices.DeleteFunc(conditions, func(s string) bool { return s == "" })
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// and returns a further condition of a clause, if it is not empty.
func and(condition string) string {
	if condition == "" {
		return ""
	}
	return " AND " + condition
}

// notIn returns the condition that leaves texts out. It is empty if there are no texts: an empty list is a syntax error, and a
// list of an empty text would leave out MySQL's users without a name.
func notIn(column string, texts []string, quote func(string) string) string {
	if len(texts) == 0 {
		return ""
	}
	return column + " NOT IN (" + list(texts, quote) + ")"
}

// list returns quoted texts for IN. Without texts it has an empty one, which leaves nothing out in PostgreSQL, where each name has a letter.
func list(texts []string, quote func(string) string) string {
	if len(texts) == 0 {
		return "''"
	}
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = quote(s)
	}
	return strings.Join(out, ", ")
}

// QuoteMySQL quotes a text for a statement to MySQL or MariaDB, where a backslash is an escape character.
func QuoteMySQL(s string) string {
	return "'" + strings.NewReplacer("\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`, "'", `\'`, `\`, `\\`).Replace(s) + "'"
}

// MySQLDatabases selects name, character set and collation of databases. The names are sorted without regard to case. Several may differ in
// case only, so these are sorted by their bytes, and those to leave out are compared by their bytes.
func MySQLDatabases(p Page, without []string) string {
	skip := ""
	if p.Marker != "" {
		marker := QuoteMySQL(p.Marker)
		skip = "(schema_name > " + marker + " OR schema_name = " + marker + " AND " + p.after("BINARY schema_name", QuoteMySQL) + ")"
	}
	return "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata" +
		where(notIn("BINARY schema_name", without, QuoteMySQL), skip) + " ORDER BY schema_name ASC, BINARY schema_name ASC" + p.clause()
}

// MySQLUsers selects name, host and name@host of users, by which they are sorted.
func MySQLUsers(p Page, without, withoutHosts []string) string {
	return "SELECT User, Host, Marker FROM (SELECT User, Host, CONCAT(User, '@', Host) AS Marker FROM mysql.user) AS innerquery" +
		where(notIn("Host", withoutHosts, QuoteMySQL), notIn("User", without, QuoteMySQL), p.after("Marker", QuoteMySQL)) +
		" ORDER BY Marker" + p.clause()
}

// MySQLGrants selects the users with the databases on which they have more privileges than USAGE. The user is written as 'name'@'host';
// one restricts the listing to a user, unless it is empty.
func MySQLGrants(one string) string {
	where := ""
	if one != "" {
		where = " AND grantee = " + QuoteMySQL(one)
	}
	return "SELECT grantee, table_schema FROM information_schema.SCHEMA_PRIVILEGES WHERE privilege_type != 'USAGE'" +
		where + " GROUP BY grantee, table_schema ORDER BY grantee, table_schema"
}

// Grantee returns a user of MySQL as information_schema writes it.
func Grantee(user, host string) string { return "'" + user + "'@'" + host + "'" }

// RenameMySQLUser returns the statement that changes name and host of a user.
func RenameMySQLUser(user, host, newUser, newHost string) string {
	return "RENAME USER " + QuoteMySQL(user) + "@" + QuoteMySQL(host) + " TO " + QuoteMySQL(newUser) + "@" + QuoteMySQL(newHost)
}

// QuotePostgres quotes a text for a statement to PostgreSQL, whatever standard_conforming_strings is.
func QuotePostgres(s string) string {
	s = strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return ` E'` + strings.ReplaceAll(s, `\`, `\\`) + "'"
	}
	return "'" + s + "'"
}

// PostgresDatabases selects name, encoding and collation of databases.
func PostgresDatabases(p Page, without []string) string {
	return `SELECT datname AS "name", pg_encoding_to_char(encoding) AS "encoding", datcollate AS "collate" FROM pg_database WHERE datistemplate = false` +
		" AND datname NOT IN (" + list(without, QuotePostgres) + ")" + and(p.after("datname", QuotePostgres)) + " ORDER BY datname" + p.clause()
}

// PostgresGrants selects users with the databases on which a superuser has granted them all privileges: name, and name, encoding and
// collation of the database. The caller adds a condition and the order.
const PostgresGrants = `SELECT u.usename AS "user", d.datname AS "name", d.encoding AS "encoding", d.datcollate AS "collate" FROM pg_catalog.pg_user u LEFT JOIN (` +
	"SELECT datname, pg_encoding_to_char(encoding) AS encoding, datcollate, a.grantee FROM pg_catalog.pg_database, aclexplode(datacl) a " +
	"WHERE datistemplate = false AND a.grantor IN (SELECT oid FROM pg_catalog.pg_roles WHERE rolsuper) AND NOT a.is_grantable " +
	"GROUP BY datname, pg_database.encoding, datcollate, a.grantee HAVING count(*) = 3) d ON d.grantee = u.usesysid "

// PostgresUsers selects as PostgresGrants does, sorted by user and database. The page's limit is of users.
func PostgresUsers(p Page, without []string) string {
	return PostgresGrants + "WHERE u.usename IN (SELECT usename FROM pg_catalog.pg_user WHERE usename NOT IN (" + list(without, QuotePostgres) + ")" +
		and(p.after("usename", QuotePostgres)) + " ORDER BY usename" + p.clause() + ") ORDER BY u.usename, d.datname"
}
