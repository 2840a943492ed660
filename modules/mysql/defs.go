package mysql

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "mysql".
var Module = &modules.Module{Name: "mysql", Doc: "Databases, users and grants of MySQL and MariaDB.", Funcs: []modules.Def{
	{Name: "alter_db", Doc: "Give a database another character set or collation.", Example: "salt '*' mysql.alter_db web utf8mb4 utf8mb4_general_ci", Params: []modules.Param{{Name: "name"}, {Name: "character_set", Optional: true}, {Name: "collate", Optional: true}}, Kwargs: "connection_args", Run: alterDb},
	{Name: "db_check", Doc: "Check the tables of a database, or one of them.", Example: "salt '*' mysql.db_check web", Params: []modules.Param{{Name: "name"}, {Name: "table", Optional: true}}, Kwargs: "connection_args", Run: dbCheck},
	{Name: "db_create", Doc: "Make a database.", Example: "salt '*' mysql.db_create web utf8mb4", Params: []modules.Param{{Name: "name"}, {Name: "character_set", Optional: true}, {Name: "collate", Optional: true}}, Kwargs: "connection_args", Run: dbCreate},
	{Name: "db_exists", Doc: "Tell whether a database exists.", Example: "salt '*' mysql.db_exists web", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: dbExists},
	{Name: "db_get", Doc: "Return the character set and the collation of a database.", Example: "salt '*' mysql.db_get web", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: dbGet},
	{Name: "db_list", Doc: "Return the names of the databases.", Example: "salt '*' mysql.db_list", Kwargs: "connection_args", Run: dbList},
	{Name: "db_optimize", Doc: "Optimize the tables of a database, or one of them.", Example: "salt '*' mysql.db_optimize web", Params: []modules.Param{{Name: "name"}, {Name: "table", Optional: true}}, Kwargs: "connection_args", Run: dbOptimize},
	{Name: "db_page", Doc: `Return a page of the databases by name, with their character sets and collations, and the marker of the next page.

limit
    How many databases a page has; all without it.
marker
    The marker of the page: the last name of the page before.
include_marker : False
    Begin the page with the database that the marker names.
ignore
    Names of databases to leave out.`,
		Example: "salt '*' mysql.db_page limit=20 marker=web ignore=[mysql,sys]", Params: []modules.Param{{Name: "limit", Optional: true}, {Name: "marker", Optional: true}, {Name: "include_marker", Default: false}, {Name: "ignore", Optional: true}}, Kwargs: "connection_args", Run: dbPage},
	{Name: "db_remove", Doc: "Remove a database.", Example: "salt '*' mysql.db_remove web", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: dbRemove},
	{Name: "db_repair", Doc: "Repair the tables of a database, or one of them.", Example: "salt '*' mysql.db_repair web", Params: []modules.Param{{Name: "name"}, {Name: "table", Optional: true}}, Kwargs: "connection_args", Run: dbRepair},
	{Name: "db_tables", Doc: "Return the names of the tables of a database.", Example: "salt '*' mysql.db_tables web", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: dbTables},
	{Name: "file_query", Doc: "Run the statements of a file, which may be one of the master's.", Example: "salt '*' mysql.file_query web /root/dump.sql", Params: []modules.Param{{Name: "database"}, {Name: "file_name"}}, Kwargs: "connection_args", Run: fileQuery},
	{Name: "free_slave", Doc: "Make a replica the master.", Example: "salt '*' mysql.free_slave", Kwargs: "connection_args", Run: freeSlave},
	{Name: "get_master_status", Doc: "Return the state of the server as a master.", Example: "salt '*' mysql.get_master_status", Kwargs: "connection_args", Run: getMasterStatus},
	{Name: "get_slave_status", Doc: "Return the state of the server as a replica.", Example: "salt '*' mysql.get_slave_status", Kwargs: "connection_args", Run: getSlaveStatus},
	{Name: "grant_add", Doc: "Grant privileges to a user.", Example: "salt '*' mysql.grant_add SELECT,INSERT,UPDATE 'web.*' ada localhost", Params: []modules.Param{
		{Name: "grant"}, {Name: "database"}, {Name: "user"}, {Name: "host", Default: "localhost"},
		{Name: "grant_option", Default: false}, {Name: "escape", Default: true}, {Name: "ssl_option", Default: false},
	}, Kwargs: "connection_args", Run: grantAdd},
	{Name: "grant_exists", Doc: "Tell whether a user has privileges.", Example: "salt '*' mysql.grant_exists SELECT,INSERT,UPDATE 'web.*' ada localhost", Params: []modules.Param{
		{Name: "grant"}, {Name: "database"}, {Name: "user"}, {Name: "host", Default: "localhost"},
		{Name: "grant_option", Default: false}, {Name: "escape", Default: true},
	}, Kwargs: "connection_args", Run: grantExists},
	{Name: "grant_revoke", Doc: "Take privileges from a user.", Example: "salt '*' mysql.grant_revoke SELECT,INSERT,UPDATE 'web.*' ada localhost", Params: []modules.Param{
		{Name: "grant"}, {Name: "database"}, {Name: "user"}, {Name: "host", Default: "localhost"},
		{Name: "grant_option", Default: false}, {Name: "escape", Default: true},
	}, Kwargs: "connection_args", Run: grantRevoke},
	{Name: "plugin_add", Doc: "Load a plugin.", Example: "salt '*' mysql.plugin_add auth_socket", Params: []modules.Param{{Name: "name"}, {Name: "soname", Optional: true}}, Kwargs: "connection_args", Run: pluginAdd},
	{Name: "plugin_remove", Doc: "Unload a plugin.", Example: "salt '*' mysql.plugin_remove auth_socket", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: pluginRemove},
	{Name: "plugin_status", Doc: "Return the state of a plugin.", Example: "salt '*' mysql.plugin_status auth_socket", Params: []modules.Param{{Name: "name"}}, Kwargs: "connection_args", Run: pluginStatus},
	{Name: "plugins_list", Doc: "Return the plugins with their states.", Example: "salt '*' mysql.plugins_list", Kwargs: "connection_args", Run: pluginsList},
	{Name: "processlist", Doc: "Return what the server is doing.", Example: "salt '*' mysql.processlist", Kwargs: "connection_args", Run: processlist},
	{Name: "query", Doc: "Run a statement in a database and return what comes of it.", Example: "salt '*' mysql.query web 'SELECT id, name FROM users'", Params: []modules.Param{{Name: "database"}, {Name: "query"}}, Kwargs: "connection_args", Run: query},
	{Name: "quote_identifier", Doc: "Return a name in the quotes that MySQL wants.", Example: `salt '*' mysql.quote_identifier 'foo"bar'`, Params: []modules.Param{{Name: "identifier"}, {Name: "for_grants", Default: false}}, Run: quoteIdentifier},
	{Name: "showglobal", Doc: "Return the global variables of the server.", Example: "salt '*' mysql.showglobal", Kwargs: "connection_args", Run: showglobal},
	{Name: "showvariables", Doc: "Return the variables of the connection.", Example: "salt '*' mysql.showvariables", Kwargs: "connection_args", Run: showvariables},
	{Name: "slave_lag", Doc: `Return how many seconds the replica is behind its master.

It is -1 where the server is no replica, -2 where replication has stopped and -3 where the server cannot be reached.`,
		Example: "salt '*' mysql.slave_lag", Kwargs: "connection_args", Run: slaveLag},
	{Name: "status", Doc: "Return the counters of the server.", Example: "salt '*' mysql.status", Kwargs: "connection_args", Run: status},
	{Name: "tokenize_grant", Doc: "Return the parts of a statement that grants.", Example: `salt '*' mysql.tokenize_grant "GRANT SELECT ON web.* TO 'ada'@'localhost'"`, Params: []modules.Param{{Name: "grant"}}, Run: tokenizeGrant},
	{Name: "user_chpass", Doc: "Change the password of a user.", Example: "salt '*' mysql.user_chpass ada localhost password=secret", Params: []modules.Param{
		{Name: "user"}, {Name: "host", Default: "localhost"}, {Name: "password", Optional: true, Secret: true},
		{Name: "password_hash", Optional: true, Secret: true}, {Name: "allow_passwordless", Default: false, Secret: true},
		{Name: "unix_socket", Optional: true}, {Name: "password_column", Optional: true, Secret: true},
	}, Kwargs: "connection_args", Run: userChpass},
	{Name: "user_create", Doc: "Make a user.", Example: "salt '*' mysql.user_create ada localhost password=secret", Params: []modules.Param{
		{Name: "user"}, {Name: "host", Default: "localhost"}, {Name: "password", Optional: true, Secret: true},
		{Name: "password_hash", Optional: true, Secret: true}, {Name: "allow_passwordless", Default: false, Secret: true},
		{Name: "unix_socket", Default: false}, {Name: "password_column", Optional: true, Secret: true},
		{Name: "auth_plugin", Default: "mysql_native_password"},
	}, Kwargs: "connection_args", Run: userCreate},
	{Name: "user_exists", Doc: "Tell whether a user exists, with this password if one is given.", Example: "salt '*' mysql.user_exists ada localhost", Params: []modules.Param{
		{Name: "user"}, {Name: "host", Default: "localhost"}, {Name: "password", Optional: true, Secret: true},
		{Name: "password_hash", Optional: true, Secret: true}, {Name: "passwordless", Default: false, Secret: true},
		{Name: "unix_socket", Default: false}, {Name: "password_column", Optional: true, Secret: true},
	}, Kwargs: "connection_args", Run: userExists},
	{Name: "user_grants", Doc: "Return the grants of a user.", Example: "salt '*' mysql.user_grants ada localhost", Params: []modules.Param{{Name: "user"}, {Name: "host", Default: "localhost"}}, Kwargs: "connection_args", Run: userGrants},
	{Name: "user_info", Doc: "Return what the server knows of a user.", Example: "salt '*' mysql.user_info ada localhost", Params: []modules.Param{{Name: "user"}, {Name: "host", Default: "localhost"}}, Kwargs: "connection_args", Run: userInfo},
	{Name: "user_list", Doc: "Return the users.", Example: "salt '*' mysql.user_list", Kwargs: "connection_args", Run: userList},
	{Name: "user_page", Doc: `Return a page of the users by name and host, with the databases on which each has privileges, and the marker of the next page. MariaDB's roles are listed too, with an empty host, as mysql.user_list does.

limit
    How many users a page has; all without it.
marker
    The marker of the page: the last user@host of the page before.
include_marker : False
    Begin the page with the user that the marker names.
ignore
    Names of users to leave out.
ignore_hosts
    Hosts whose users are left out.`,
		Example: "salt '*' mysql.user_page limit=20 marker='ada@%' ignore_hosts=[localhost]", Params: []modules.Param{{Name: "limit", Optional: true}, {Name: "marker", Optional: true}, {Name: "include_marker", Default: false}, {Name: "ignore", Optional: true}, {Name: "ignore_hosts", Optional: true}}, Kwargs: "connection_args", Run: userPage},
	{Name: "user_remove", Doc: "Remove a user.", Example: "salt '*' mysql.user_remove ada localhost", Params: []modules.Param{{Name: "user"}, {Name: "host", Default: "localhost"}}, Kwargs: "connection_args", Run: userRemove},
	{Name: "user_rename", Doc: `Rename a user, or give it another host. It keeps password and privileges.

new_host
    The new host, by default the same one.`,
		Example: "salt '*' mysql.user_rename ada augusta localhost new_host='%'", Params: []modules.Param{
			{Name: "user"}, {Name: "new_user"}, {Name: "host", Default: "localhost"}, {Name: "new_host", Optional: true},
		}, Kwargs: "connection_args", Run: userRename},
	{Name: "verify_login", Doc: "Tell whether a user can log in.", Example: "salt '*' mysql.verify_login root password=secret", Params: []modules.Param{{Name: "user"}, {Name: "password", Optional: true, Secret: true}}, Kwargs: "connection_args", Run: verifyLogin},
	{Name: "version", Doc: "Return the version of the server.", Example: "salt '*' mysql.version", Kwargs: "connection_args", Run: version},
}}
