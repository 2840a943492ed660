package mysql

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() {
	states.Register(Database)
	states.Register(Grants)
	states.Register(Query)
	states.Register(User)
}

// Database is Salt's "mysql_database".
var Database = &states.Module{Name: "mysql_database", Doc: "Databases of MySQL and MariaDB.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such database.

name
    the database
`, Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: databaseAbsent},
	{Name: "present", Doc: `Have a database with this character set and collation.

name
    the database
character_set
    its character set
collate
    its collation
`, Params: []modules.Param{{Name: "name"}, {Name: "character_set", Optional: true}, {Name: "collate", Optional: true}}, Kwargs: "connection_args", Run: databasePresent},
}}

// Grants is Salt's "mysql_grants".
var Grants = &states.Module{Name: "mysql_grants", Doc: "Grants of MySQL and MariaDB.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have a user without privileges.

name
    a name for the grant
grant
    the privileges, with commas
database
    what they are on, as database.table
user
    the user
host
    the host that the user comes from
grant_option
    whether the user may pass them on
escape
    whether to quote the names
`, Params: []modules.Param{
		{Name: "name"}, {Name: "grant", Optional: true}, {Name: "database", Optional: true}, {Name: "user", Optional: true},
		{Name: "host", Default: "localhost"}, {Name: "grant_option", Default: false}, {Name: "escape", Default: true},
	}, Kwargs: "connection_args", Run: grantsAbsent},
	{Name: "present", Doc: `Have a user with privileges.

name
    a name for the grant
grant
    the privileges, with commas
database
    what they are on, as database.table
user
    the user
host
    the host that the user comes from
grant_option
    whether the user may pass them on
escape
    whether to quote the names
revoke_first
    take away what the user has on it before
ssl_option
    a list of what the connection must have
`, Params: []modules.Param{
		{Name: "name"}, {Name: "grant", Optional: true}, {Name: "database", Optional: true}, {Name: "user", Optional: true},
		{Name: "host", Default: "localhost"}, {Name: "grant_option", Default: false}, {Name: "escape", Default: true},
		{Name: "revoke_first", Default: false}, {Name: "ssl_option", Default: false},
	}, Kwargs: "connection_args", Run: grantsPresent},
}}

// Query is Salt's "mysql_query".
var Query = &states.Module{Name: "mysql_query", Doc: "Statements for MySQL and MariaDB.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "run", Doc: `Run a statement, and keep what comes of it.

name
    a name for the state
database
    the database
query
    the statement
output
    grain, or the file for the result
grain
    the grain for the result
key
    the key in the grain
overwrite
    whether to run if there is a result
check_db_exists
    whether to look for the database first
client_flags
    a list of flags of the connection
`, Params: []modules.Param{
		{Name: "name"}, {Name: "database"}, {Name: "query"}, {Name: "output", Optional: true}, {Name: "grain", Optional: true},
		{Name: "key", Optional: true}, {Name: "overwrite", Default: true}, {Name: "check_db_exists", Default: true},
		{Name: "client_flags", Optional: true},
	}, Kwargs: "connection_args", Run: queryRun},
	{Name: "run_file", Doc: `Run the statements of a file, and keep what comes of them.

name
    a name for the state
database
    the database
query_file
    the file, which may be one of the master
output
    grain, or the file for the result
grain
    the grain for the result
key
    the key in the grain
overwrite
    whether to run if there is a result
saltenv
    the environment of the file
check_db_exists
    whether to look for the database first
client_flags
    a list of flags of the connection
`, Params: []modules.Param{
		{Name: "name"}, {Name: "database"}, {Name: "query_file", Optional: true}, {Name: "output", Optional: true},
		{Name: "grain", Optional: true}, {Name: "key", Optional: true}, {Name: "overwrite", Default: true},
		{Name: "saltenv", Optional: true}, {Name: "check_db_exists", Default: true}, {Name: "client_flags", Optional: true},
	}, Kwargs: "connection_args", Run: queryRunFile},
}}

// User is Salt's "mysql_user".
var User = &states.Module{Name: "mysql_user", Doc: "Users of MySQL and MariaDB.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such user.

name
    the user
host
    the host that the user comes from
`, Params: []modules.Param{{Name: "name"}, {Name: "host", Default: "localhost"}}, Kwargs: "connection_args", Run: userAbsent},
	{Name: "present", Doc: `Have a user with this password.

name
    the user
host
    the host that the user comes from
password
    the password
password_hash
    the password as the server keeps it
allow_passwordless
    whether there may be no password
unix_socket
    let the user of the host of that name in
password_column
    where the server keeps passwords
auth_plugin
    how the user logs in
`, Params: []modules.Param{
		{Name: "name"}, {Name: "host", Default: "localhost"}, {Name: "password", Optional: true, Secret: true},
		{Name: "password_hash", Optional: true, Secret: true}, {Name: "allow_passwordless", Default: false, Secret: true},
		{Name: "unix_socket", Default: false}, {Name: "password_column", Optional: true, Secret: true},
		{Name: "auth_plugin", Default: "mysql_native_password"},
	}, Kwargs: "connection_args", Run: userPresent},
}}
