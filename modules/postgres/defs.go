package postgres

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// connection documents the parameters of functions that connect to a server.
const connection = userDoc + hostDoc + portDoc + maintenanceDBDoc + passwordDoc + runasDoc

// Module is Salt's "postgres".
var Module = &modules.Module{Name: "postgres", Doc: "Users, databases and privileges of PostgreSQL, through psql.", Available: available, Funcs: []modules.Def{
	{Name: "available_extensions", Doc: `Return the extensions that the server could install.

` + connection,
		Example: "salt '*' postgres.available_extensions", Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: availableExtensions},
	{Name: "cluster_create", Doc: `Make a cluster with Debian's tools.

` + portDoc,
		Example: "salt '*' postgres.cluster_create 15 main", Params: []modules.Param{
			{Name: "version"}, {Name: "name", Default: "main"}, portParam, {Name: "locale", Optional: true},
			{Name: "encoding", Optional: true}, {Name: "datadir", Optional: true}, {Name: "allow_group_access", Optional: true},
			{Name: "data_checksums", Optional: true}, {Name: "wal_segsize", Optional: true},
		}, Run: clusterCreate},
	{Name: "cluster_exists", Doc: "Tell whether Debian's tools know a cluster.", Example: "salt '*' postgres.cluster_exists 15 main", Params: []modules.Param{{Name: "version"}, {Name: "name", Default: "main"}}, Run: clusterExists},
	{Name: "cluster_list", Doc: "List the clusters that Debian's tools know.", Example: "salt '*' postgres.cluster_list verbose=True", Params: []modules.Param{{Name: "verbose", Default: false}}, Run: clusterList},
	{Name: "cluster_remove", Doc: `Remove a cluster with Debian's tools.

stop
    Stop the server of the cluster first.`,
		Example: "salt '*' postgres.cluster_remove 15 main", Params: []modules.Param{{Name: "version"}, {Name: "name", Default: "main"}, {Name: "stop", Default: false}}, Run: clusterRemove},
	{Name: "create_extension", Doc: `Install an extension, or bring it to a version or schema.

` + connection,
		Example: "salt '*' postgres.create_extension hstore", Params: []modules.Param{
			{Name: "name"}, {Name: "if_not_exists", Optional: true}, {Name: "schema", Optional: true},
			{Name: "ext_version", Optional: true}, {Name: "from_version", Optional: true}, userParam, hostParam, portParam,
			maintenanceDBParam, passwordParam, runasParam,
		}, Run: createExtension},
	{Name: "create_metadata", Doc: `Return what an extension is: installed, to be upgraded, to be moved.

` + connection,
		Example: "salt '*' postgres.create_metadata hstore", Params: []modules.Param{
			{Name: "name"}, {Name: "ext_version", Optional: true}, {Name: "schema", Optional: true}, userParam, hostParam, portParam,
			maintenanceDBParam, passwordParam, runasParam,
		}, Run: createMetadata},
	{Name: "datadir_exists", Doc: "Tell whether a directory holds the data of a server.", Example: "salt '*' postgres.datadir_exists /var/lib/pgsql/data", Params: []modules.Param{{Name: "name"}}, Run: datadirExists},
	{Name: "datadir_init", Doc: `Prepare a directory for the data of a server with initdb.

auth
    How users of the host prove who they are.
waldir
    Another directory for the write-ahead log.
checksums
    Keep checksums of the pages.

` + userDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.datadir_init /var/lib/pgsql/data", Params: []modules.Param{
			{Name: "name"}, {Name: "auth", Default: "password"}, userParam, passwordParam, {Name: "encoding", Default: "UTF8"},
			{Name: "locale", Optional: true}, {Name: "waldir", Optional: true}, {Name: "checksums", Default: false}, runasParam,
		}, Run: datadirInit},
	{Name: "db_alter", Doc: `Give a database another owner or tablespace.

owner_recurse
    Change the owner of everything in it as well.

` + connection,
		Example: "salt '*' postgres.db_alter web owner=ada", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "tablespace", Optional: true},
			ownerParam, {Name: "owner_recurse", Default: false}, runasParam,
		}, Run: dbAlter},
	{Name: "db_create", Doc: `Make a database.

` + connection,
		Example: "salt '*' postgres.db_create web owner=ada", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "tablespace", Optional: true},
			{Name: "encoding", Optional: true}, {Name: "lc_collate", Optional: true}, {Name: "lc_ctype", Optional: true}, ownerParam,
			{Name: "template", Optional: true}, runasParam,
		}, Run: dbCreate},
	{Name: "db_exists", Doc: `Tell whether a database exists.

` + connection,
		Example: "salt '*' postgres.db_exists web", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: dbExists},
	{Name: "db_list", Doc: `Return the databases with their properties.

` + connection,
		Example: "salt '*' postgres.db_list", Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: dbList},
	{Name: "db_remove", Doc: `Remove a database after ending its connections.

` + connection,
		Example: "salt '*' postgres.db_remove web", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: dbRemove},
	{Name: "drop_extension", Doc: `Remove an extension.

` + connection,
		Example: "salt '*' postgres.drop_extension hstore", Params: []modules.Param{
			{Name: "name"}, {Name: "if_exists", Optional: true}, {Name: "restrict", Optional: true}, {Name: "cascade", Optional: true},
			userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: dropExtension},
	{Name: "get_available_extension", Doc: `Return an extension that the server could install.

` + connection,
		Example: "salt '*' postgres.get_available_extension hstore", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: getAvailableExtension},
	{Name: "get_installed_extension", Doc: `Return an installed extension.

` + connection,
		Example: "salt '*' postgres.get_installed_extension hstore", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: getInstalledExtension},
	{Name: "group_create", Doc: `Make a group.

` + connection,
		Example: "salt '*' postgres.group_create staff", Params: []modules.Param{
			{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
			encryptedParam, loginParam, inheritParam, superuserParam, replicationParam, rolepasswordParam, groupsParam, runasParam,
		}, Run: groupCreate},
	{Name: "group_remove", Doc: `Remove a group.

` + connection,
		Example: "salt '*' postgres.group_remove staff", Params: []modules.Param{
			{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: groupRemove},
	{Name: "group_update", Doc: `Change a group.

` + connection,
		Example: "salt '*' postgres.group_update staff createdb=True", Params: []modules.Param{
			{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
			encryptedParam, inheritParam, loginParam, superuserParam, replicationParam, rolepasswordParam, groupsParam, runasParam,
		}, Run: groupUpdate},
	{Name: "has_privileges", Doc: `Tell whether a role has privileges on an object.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.has_privileges ada books table SELECT,INSERT", Params: []modules.Param{
			{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
			{Name: "grant_option", Optional: true}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
			portParam, passwordParam, runasParam,
		}, Run: hasPrivileges},
	{Name: "installed_extensions", Doc: `Return the installed extensions.

` + connection,
		Example: "salt '*' postgres.installed_extensions", Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: installedExtensions},
	{Name: "is_available_extension", Doc: `Tell whether the server could install an extension.

` + connection,
		Example: "salt '*' postgres.is_available_extension hstore", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: isAvailableExtension},
	{Name: "is_installed_extension", Doc: `Tell whether an extension is installed.

` + connection,
		Example: "salt '*' postgres.is_installed_extension hstore", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: isInstalledExtension},
	{Name: "language_create", Doc: `Install a language in a database.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.language_create plperl web", Params: []modules.Param{
			{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
		}, Run: languageCreate},
	{Name: "language_exists", Doc: `Tell whether a database has a language.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.language_exists plpgsql web", Params: []modules.Param{
			{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
		}, Run: languageExists},
	{Name: "language_list", Doc: `Return the languages of a database.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.language_list web", Params: []modules.Param{{Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam}, Run: languageList},
	{Name: "language_remove", Doc: `Remove a language from a database.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.language_remove plperl web", Params: []modules.Param{
			{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
		}, Run: languageRemove},
	{Name: "owner_to", Doc: `Give everything in a database to a role.

` + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.owner_to web ada", Params: []modules.Param{
			{Name: "dbname"}, {Name: "ownername"}, userParam, hostParam, portParam, passwordParam, runasParam,
		}, Run: ownerTo},
	{Name: "privileges_grant", Doc: `Grant privileges on an object to a role.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.privileges_grant ada books table SELECT,INSERT", Params: []modules.Param{
			{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
			{Name: "grant_option", Optional: true}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
			portParam, passwordParam, runasParam,
		}, Run: privilegesGrant},
	{Name: "privileges_list", Doc: `Return the privileges on an object by role.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.privileges_list books table", Params: []modules.Param{
			{Name: "name"}, {Name: "object_type"}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
			portParam, passwordParam, runasParam,
		}, Run: privilegesList},
	{Name: "privileges_revoke", Doc: `Take privileges on an object from a role.

` + maintenanceDBDoc + userDoc + hostDoc + portDoc + passwordDoc + runasDoc,
		Example: "salt '*' postgres.privileges_revoke ada books table INSERT", Params: []modules.Param{
			{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
			{Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam, portParam, passwordParam, runasParam,
		}, Run: privilegesRevoke},
	{Name: "psql_query", Doc: `Run a query and return its rows.

write
    The query changes data.

` + connection,
		Example: "salt '*' postgres.psql_query 'select * from pg_stat_activity'", Params: []modules.Param{
			{Name: "query"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
			{Name: "write", Default: false},
		}, Run: psqlQuery},
	{Name: "role_get", Doc: `Return what is known of a role.

` + connection,
		Example: "salt '*' postgres.role_get ada", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
			{Name: "return_password", Default: false, Secret: true},
		}, Run: roleGet},
	{Name: "schema_create", Doc: `Make a schema in a database.

` + userDoc + dbUserDoc + dbPasswordDoc + dbHostDoc + dbPortDoc,
		Example: "salt '*' postgres.schema_create web blog owner=ada", Params: []modules.Param{
			{Name: "dbname"}, {Name: "name"}, ownerParam, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
		}, Run: schemaCreate},
	{Name: "schema_exists", Doc: `Tell whether a database has a schema.

` + userDoc + dbUserDoc + dbPasswordDoc + dbHostDoc + dbPortDoc,
		Example: "salt '*' postgres.schema_exists web blog", Params: []modules.Param{
			{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
		}, Run: schemaExists},
	{Name: "schema_get", Doc: `Return what is known of a schema.

` + userDoc + dbUserDoc + dbPasswordDoc + dbHostDoc + dbPortDoc,
		Example: "salt '*' postgres.schema_get web blog", Params: []modules.Param{
			{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
		}, Run: schemaGet},
	{Name: "schema_list", Doc: `Return the schemas of a database.

` + userDoc + dbUserDoc + dbPasswordDoc + dbHostDoc + dbPortDoc,
		Example: "salt '*' postgres.schema_list web", Params: []modules.Param{{Name: "dbname"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam}, Run: schemaList},
	{Name: "schema_remove", Doc: `Remove a schema from a database.

` + userDoc + dbUserDoc + dbPasswordDoc + dbHostDoc + dbPortDoc,
		Example: "salt '*' postgres.schema_remove web blog", Params: []modules.Param{
			{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
		}, Run: schemaRemove},
	{Name: "tablespace_alter", Doc: `Change a tablespace.

` + connection,
		Example: "salt '*' postgres.tablespace_alter fast new_owner=ada", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "new_name", Optional: true},
			{Name: "new_owner", Optional: true}, {Name: "set_option", Optional: true}, {Name: "reset_option", Optional: true}, runasParam,
		}, Run: tablespaceAlter},
	{Name: "tablespace_create", Doc: `Make a tablespace.

` + connection,
		Example: "salt '*' postgres.tablespace_create fast /srv/fast", Params: []modules.Param{
			{Name: "name"}, {Name: "location"}, {Name: "options", Optional: true}, ownerParam, userParam, hostParam, portParam,
			maintenanceDBParam, passwordParam, runasParam,
		}, Run: tablespaceCreate},
	{Name: "tablespace_exists", Doc: `Tell whether a tablespace exists.

` + connection,
		Example: "salt '*' postgres.tablespace_exists fast", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: tablespaceExists},
	{Name: "tablespace_list", Doc: `Return the tablespaces.

` + connection,
		Example: "salt '*' postgres.tablespace_list", Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: tablespaceList},
	{Name: "tablespace_remove", Doc: `Remove a tablespace.

` + connection,
		Example: "salt '*' postgres.tablespace_remove fast", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: tablespaceRemove},
	{Name: "user_create", Doc: `Make a user.

` + connection,
		Example: "salt '*' postgres.user_create ada rolepassword=secret", Params: []modules.Param{
			{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
			inheritParam, loginParam, {Name: "connlimit", Optional: true}, encryptedParam, superuserParam, replicationParam,
			rolepasswordParam, {Name: "valid_until", Optional: true}, groupsParam, runasParam,
		}, Run: userCreate},
	{Name: "user_exists", Doc: `Tell whether a user exists.

` + connection,
		Example: "salt '*' postgres.user_exists ada", Params: []modules.Param{
			{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: userExists},
	{Name: "user_list", Doc: `Return the users and groups.

return_password
    With their passwords as the server keeps them.

` + connection,
		Example: "salt '*' postgres.user_list", Params: []modules.Param{
			userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
			{Name: "return_password", Default: false, Secret: true},
		}, Run: userList},
	{Name: "user_remove", Doc: `Remove a user.

` + connection,
		Example: "salt '*' postgres.user_remove ada", Params: []modules.Param{
			{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		}, Run: userRemove},
	{Name: "user_update", Doc: `Change a user.

` + connection,
		Example: "salt '*' postgres.user_update ada createdb=True", Params: []modules.Param{
			{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
			encryptedParam, superuserParam, inheritParam, loginParam, {Name: "connlimit", Optional: true}, replicationParam,
			rolepasswordParam, {Name: "valid_until", Optional: true}, groupsParam, runasParam,
		}, Run: userUpdate},
	{Name: "version", Doc: `Return the version of the server.

` + connection,
		Example: "salt '*' postgres.version", Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: version},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	dbHostDoc = `db_host
    The server; the option postgres.host without it, or the socket of this host.
`
	dbPasswordDoc = `db_password
    The password of the user; the option postgres.pass without it.
`
	dbPortDoc = `db_port
    Its port; the option postgres.port without it.
`
	dbUserDoc = `db_user
    The user of the database to work as; the option postgres.user without it.
`
	hostDoc = `host
    The server; the option postgres.host without it, or the socket of this host.
`
	maintenanceDBDoc = `maintenance_db
    The database to connect to; the option postgres.maintenance_db without it, or postgres.
`
	passwordDoc = `password
    The password of the user; the option postgres.pass without it.
`
	portDoc = `port
    Its port; the option postgres.port without it.
`
	runasDoc = `runas
    The user of the system to run psql as: postgres without it, on this host's socket.
`
	userDoc = `user
    The user of the database to work as; the option postgres.user without it.
`
)

var (
	createdbParam      = modules.Param{Name: "createdb", Optional: true}
	createrolesParam   = modules.Param{Name: "createroles", Optional: true}
	dbHostParam        = modules.Param{Name: "db_host", Optional: true}
	dbPasswordParam    = modules.Param{Name: "db_password", Optional: true, Secret: true}
	dbPortParam        = modules.Param{Name: "db_port", Optional: true}
	dbUserParam        = modules.Param{Name: "db_user", Optional: true}
	encryptedParam     = modules.Param{Name: "encrypted", Optional: true}
	groupsParam        = modules.Param{Name: "groups", Optional: true}
	hostParam          = modules.Param{Name: "host", Optional: true}
	inheritParam       = modules.Param{Name: "inherit", Optional: true}
	loginParam         = modules.Param{Name: "login", Optional: true}
	maintenanceDBParam = modules.Param{Name: "maintenance_db", Optional: true}
	ownerParam         = modules.Param{Name: "owner", Optional: true}
	passwordParam      = modules.Param{Name: "password", Optional: true, Secret: true}
	portParam          = modules.Param{Name: "port", Optional: true}
	replicationParam   = modules.Param{Name: "replication", Optional: true}
	rolepasswordParam  = modules.Param{Name: "rolepassword", Optional: true, Secret: true}
	runasParam         = modules.Param{Name: "runas", Optional: true}
	superuserParam     = modules.Param{Name: "superuser", Optional: true}
	userParam          = modules.Param{Name: "user", Optional: true}
)
