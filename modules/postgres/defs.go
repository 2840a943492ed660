package postgres

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "postgres".
var Module = &modules.Module{Name: "postgres", Doc: "Users, databases and privileges of PostgreSQL, through psql.", Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "available_extensions",
		Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: availableExtensions},
	{Name: "cluster_create", Params: []modules.Param{
		{Name: "version"}, {Name: "name", Default: "main"}, portParam, {Name: "locale", Optional: true},
		{Name: "encoding", Optional: true}, {Name: "datadir", Optional: true}, {Name: "allow_group_access", Optional: true},
		{Name: "data_checksums", Optional: true}, {Name: "wal_segsize", Optional: true},
	}, Run: clusterCreate},
	{Name: "cluster_exists", Params: []modules.Param{{Name: "version"}, {Name: "name", Default: "main"}}, Run: clusterExists},
	{Name: "cluster_list", Params: []modules.Param{{Name: "verbose", Default: false}}, Run: clusterList},
	{Name: "cluster_remove",
		Params: []modules.Param{{Name: "version"}, {Name: "name", Default: "main"}, {Name: "stop", Default: false}}, Run: clusterRemove},
	{Name: "create_extension", Params: []modules.Param{
		{Name: "name"}, {Name: "if_not_exists", Optional: true}, {Name: "schema", Optional: true},
		{Name: "ext_version", Optional: true}, {Name: "from_version", Optional: true}, userParam, hostParam, portParam,
		maintenanceDBParam, passwordParam, runasParam,
	}, Run: createExtension},
	{Name: "create_metadata", Params: []modules.Param{
		{Name: "name"}, {Name: "ext_version", Optional: true}, {Name: "schema", Optional: true}, userParam, hostParam, portParam,
		maintenanceDBParam, passwordParam, runasParam,
	}, Run: createMetadata},
	{Name: "datadir_exists", Params: []modules.Param{{Name: "name"}}, Run: datadirExists},
	{Name: "datadir_init", Params: []modules.Param{
		{Name: "name"}, {Name: "auth", Default: "password"}, userParam, passwordParam, {Name: "encoding", Default: "UTF8"},
		{Name: "locale", Optional: true}, {Name: "waldir", Optional: true}, {Name: "checksums", Default: false}, runasParam,
	}, Run: datadirInit},
	{Name: "db_alter", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "tablespace", Optional: true},
		ownerParam, {Name: "owner_recurse", Default: false}, runasParam,
	}, Run: dbAlter},
	{Name: "db_create", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "tablespace", Optional: true},
		{Name: "encoding", Optional: true}, {Name: "lc_collate", Optional: true}, {Name: "lc_ctype", Optional: true}, ownerParam,
		{Name: "template", Optional: true}, runasParam,
	}, Run: dbCreate},
	{Name: "db_exists", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: dbExists},
	{Name: "db_list",
		Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: dbList},
	{Name: "db_page", Params: []modules.Param{
		pageLimitParam, markerParam, includeMarkerParam, ignoreParam, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: dbPage},
	{Name: "db_remove", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: dbRemove},
	{Name: "drop_extension", Params: []modules.Param{
		{Name: "name"}, {Name: "if_exists", Optional: true}, {Name: "restrict", Optional: true}, {Name: "cascade", Optional: true},
		userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: dropExtension},
	{Name: "get_available_extension", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: getAvailableExtension},
	{Name: "get_installed_extension", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: getInstalledExtension},
	{Name: "group_create", Params: []modules.Param{
		{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
		encryptedParam, loginParam, inheritParam, superuserParam, replicationParam, rolepasswordParam, groupsParam, runasParam,
	}, Run: groupCreate},
	{Name: "group_remove", Params: []modules.Param{
		{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: groupRemove},
	{Name: "group_update", Params: []modules.Param{
		{Name: "groupname"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
		encryptedParam, inheritParam, loginParam, superuserParam, replicationParam, rolepasswordParam, groupsParam, runasParam,
	}, Run: groupUpdate},
	{Name: "has_privileges", Params: []modules.Param{
		{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
		{Name: "grant_option", Optional: true}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
		portParam, passwordParam, runasParam,
	}, Run: hasPrivileges},
	{Name: "installed_extensions",
		Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: installedExtensions},
	{Name: "is_available_extension", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: isAvailableExtension},
	{Name: "is_installed_extension", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: isInstalledExtension},
	{Name: "language_create", Params: []modules.Param{
		{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
	}, Run: languageCreate},
	{Name: "language_exists", Params: []modules.Param{
		{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
	}, Run: languageExists},
	{Name: "language_list",
		Params: []modules.Param{{Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam}, Run: languageList},
	{Name: "language_remove", Params: []modules.Param{
		{Name: "name"}, {Name: "maintenance_db"}, userParam, hostParam, portParam, passwordParam, runasParam,
	}, Run: languageRemove},
	{Name: "owner_to", Params: []modules.Param{
		{Name: "dbname"}, {Name: "ownername"}, userParam, hostParam, portParam, passwordParam, runasParam,
	}, Run: ownerTo},
	{Name: "privileges_grant", Params: []modules.Param{
		{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
		{Name: "grant_option", Optional: true}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
		portParam, passwordParam, runasParam,
	}, Run: privilegesGrant},
	{Name: "privileges_list", Params: []modules.Param{
		{Name: "name"}, {Name: "object_type"}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam,
		portParam, passwordParam, runasParam,
	}, Run: privilegesList},
	{Name: "privileges_revoke", Params: []modules.Param{
		{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
		{Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, hostParam, portParam, passwordParam, runasParam,
	}, Run: privilegesRevoke},
	{Name: "psql_query", Params: []modules.Param{
		{Name: "query"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		{Name: "write", Default: false},
	}, Run: psqlQuery},
	{Name: "role_get", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		{Name: "return_password", Default: false, Secret: true},
	}, Run: roleGet},
	{Name: "schema_create", Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, ownerParam, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: schemaCreate},
	{Name: "schema_exists", Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: schemaExists},
	{Name: "schema_get", Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: schemaGet},
	{Name: "schema_list",
		Params: []modules.Param{{Name: "dbname"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam}, Run: schemaList},
	{Name: "schema_remove", Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: schemaRemove},
	{Name: "tablespace_alter", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, {Name: "new_name", Optional: true},
		{Name: "new_owner", Optional: true}, {Name: "set_option", Optional: true}, {Name: "reset_option", Optional: true}, runasParam,
	}, Run: tablespaceAlter},
	{Name: "tablespace_create", Params: []modules.Param{
		{Name: "name"}, {Name: "location"}, {Name: "options", Optional: true}, ownerParam, userParam, hostParam, portParam,
		maintenanceDBParam, passwordParam, runasParam,
	}, Run: tablespaceCreate},
	{Name: "tablespace_exists", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: tablespaceExists},
	{Name: "tablespace_list",
		Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: tablespaceList},
	{Name: "tablespace_remove", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: tablespaceRemove},
	{Name: "user_create", Params: []modules.Param{
		{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
		inheritParam, loginParam, {Name: "connlimit", Optional: true}, encryptedParam, superuserParam, replicationParam,
		rolepasswordParam, {Name: "valid_until", Optional: true}, groupsParam, runasParam,
	}, Run: userCreate},
	{Name: "user_exists", Params: []modules.Param{
		{Name: "name"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: userExists},
	{Name: "user_list", Params: []modules.Param{
		userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
		{Name: "return_password", Default: false, Secret: true},
	}, Run: userList},
	{Name: "user_page", Params: []modules.Param{
		pageLimitParam, markerParam, includeMarkerParam, ignoreParam, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: userPage},
	{Name: "user_remove", Params: []modules.Param{
		{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam,
	}, Run: userRemove},
	{Name: "user_update", Params: []modules.Param{
		{Name: "username"}, userParam, hostParam, portParam, maintenanceDBParam, passwordParam, createdbParam, createrolesParam,
		encryptedParam, superuserParam, inheritParam, loginParam, {Name: "connlimit", Optional: true}, replicationParam,
		rolepasswordParam, {Name: "valid_until", Optional: true}, groupsParam, runasParam,
	}, Run: userUpdate},
	{Name: "version",
		Params: []modules.Param{userParam, hostParam, portParam, maintenanceDBParam, passwordParam, runasParam}, Run: version},
}}

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
