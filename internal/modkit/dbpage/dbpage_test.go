package dbpage

import (
	"strings"
	"testing"
)

// TestMySQLStatements: without names to leave out there is no NOT IN, which would hide the users without a name.
func TestMySQLStatements(t *testing.T) {
	const users = "SELECT User, Host, Marker FROM (SELECT User, Host, CONCAT(User, '@', Host) AS Marker FROM mysql.user) AS innerquery"
	const databases = "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata"
	const order = " ORDER BY schema_name ASC, BINARY schema_name ASC"
	for _, c := range []struct{ got, want string }{
		{MySQLUsers(Page{}, nil, nil), users + " ORDER BY Marker"},
		{MySQLUsers(Page{Marker: "a@b", Limit: 1}, nil, nil), users + " WHERE Marker > 'a@b' ORDER BY Marker LIMIT 2"},
		{MySQLUsers(Page{}, []string{"root"}, nil), users + " WHERE User NOT IN ('root') ORDER BY Marker"},
		{MySQLUsers(Page{Marker: "a@b", Include: true}, []string{"x", "y"}, []string{"h"}),
			users + " WHERE Host NOT IN ('h') AND User NOT IN ('x', 'y') AND Marker >= 'a@b' ORDER BY Marker"},
		{MySQLDatabases(Page{}, nil), databases + order},
		{MySQLDatabases(Page{Limit: 2, Marker: "web"}, []string{"sys"}), databases + " WHERE BINARY schema_name NOT IN ('sys')" +
			" AND (schema_name > 'web' OR schema_name = 'web' AND BINARY schema_name > 'web')" + order + " LIMIT 3"},
		{MySQLDatabases(Page{Marker: "web", Include: true}, nil), databases +
			" WHERE (schema_name > 'web' OR schema_name = 'web' AND BINARY schema_name >= 'web')" + order},
	} {
		if c.got != c.want {
			t.Errorf("%s\nnot %s", c.got, c.want)
		}
	}
	if s := PostgresDatabases(Page{Marker: "a"}, nil); !strings.Contains(s, " WHERE datistemplate = false AND datname NOT IN ('') AND datname > 'a' ORDER BY") {
		t.Error(s)
	}
}
