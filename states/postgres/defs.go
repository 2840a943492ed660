package postgres

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() {
	states.Register(Cluster)
	states.Register(Database)
	states.Register(Extension)
	states.Register(Group)
	states.Register(Initdb)
	states.Register(Language)
	states.Register(Privileges)
	states.Register(Schema)
	states.Register(Tablespace)
	states.Register(User)
}

// login documents the parameters of states that connect to a server.
const login = `db_user
    the user of the database to work as
db_password
    the password of that user
db_host
    the server, without it the socket of this host
db_port
    its port
`

// Cluster is Salt's "postgres_cluster".
var Cluster = &states.Module{Name: "postgres_cluster", Doc: "Clusters of PostgreSQL, with Debian's tools.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such cluster.

version
    the version of PostgreSQL
name
    the cluster
`, Params: []modules.Param{{Name: "version"}, {Name: "name"}}, Run: clusterAbsent},
	{Name: "present", Doc: `Have a cluster of a version of PostgreSQL.

version
    the version of PostgreSQL
name
    the cluster
port
    the port of its server
encoding
    the encoding of its databases
locale
    the locale of its databases
datadir
    the directory of its data
allow_group_access
    let the group read the data
data_checksums
    keep checksums of the pages
wal_segsize
    the size of the files of the write-ahead log, in megabytes
`, Params: []modules.Param{
		{Name: "version"}, {Name: "name"}, {Name: "port", Optional: true}, {Name: "encoding", Optional: true},
		{Name: "locale", Optional: true}, {Name: "datadir", Optional: true}, {Name: "allow_group_access", Optional: true},
		{Name: "data_checksums", Optional: true}, {Name: "wal_segsize", Optional: true},
	}, Run: clusterPresent},
}}

// Database is Salt's "postgres_database".
var Database = &states.Module{Name: "postgres_database", Doc: "Databases of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such database.

name
    the database
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, userParam, maintenanceDBParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: databaseAbsent},
	{Name: "present", Doc: `Have a database with these properties.

name
    the database
tablespace
    its tablespace
encoding
    its encoding
lc_collate
    its order of texts
lc_ctype
    its kinds of characters
owner
    its owner
owner_recurse
    change the owner of everything in it as well
template
    the database it is copied from
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "tablespace", Optional: true}, {Name: "encoding", Optional: true}, {Name: "lc_collate", Optional: true},
		{Name: "lc_ctype", Optional: true}, {Name: "owner", Optional: true}, {Name: "owner_recurse", Default: false},
		{Name: "template", Optional: true}, userParam, maintenanceDBParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: databasePresent},
}}

// Extension is Salt's "postgres_extension".
var Extension = &states.Module{Name: "postgres_extension", Doc: "Extensions of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such extension in a database.

name
    the extension
if_exists
    whether to say IF EXISTS
restrict
    refuse if something depends on it
cascade
    remove what depends on it
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "if_exists", Optional: true}, {Name: "restrict", Optional: true}, {Name: "cascade", Optional: true},
		userParam, maintenanceDBParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: extensionAbsent},
	{Name: "present", Doc: `Have an extension in a database.

name
    the extension
if_not_exists
    whether to say IF NOT EXISTS
schema
    the schema of its objects
ext_version
    the version to have
from_version
    the version that is there without being an extension
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "if_not_exists", Optional: true}, {Name: "schema", Optional: true},
		{Name: "ext_version", Optional: true}, {Name: "from_version", Optional: true}, userParam, maintenanceDBParam, dbUserParam,
		dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: extensionPresent},
}}

// Group is Salt's "postgres_group".
var Group = &states.Module{Name: "postgres_group", Doc: "Groups of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such group.

name
    the group
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, userParam, maintenanceDBParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: groupAbsent},
	{Name: "present", Doc: `Have a group with these properties.

name
    the group
createdb
    whether its members may make databases
createroles
    whether they may make roles
encrypted
    how the password is kept: md5, scram-sha-256, False for as it is
superuser
    whether they may do everything
inherit
    whether members have its privileges without asking
login
    whether it may connect
replication
    whether it may replicate
password
    its password
refresh_password
    set the password without looking whether it is the right one
groups
    the groups that it is in
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "createdb", Optional: true}, {Name: "createroles", Optional: true}, {Name: "encrypted", Optional: true},
		{Name: "superuser", Optional: true}, {Name: "inherit", Optional: true}, {Name: "login", Optional: true},
		{Name: "replication", Optional: true}, {Name: "password", Optional: true, Secret: true},
		{Name: "refresh_password", Optional: true, Secret: true}, {Name: "groups", Optional: true}, userParam, maintenanceDBParam,
		dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: groupPresent},
}}

// Initdb is Salt's "postgres_initdb".
var Initdb = &states.Module{Name: "postgres_initdb", Doc: "Directories for the data of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "present", Doc: `Have a directory for the data of a server.

name
    the directory
user
    the first user of the database
password
    the password of that user
auth
    how users of the host prove who they are
encoding
    the encoding of databases
locale
    the locale of databases
runas
    the user of the system that owns the data
waldir
    another directory for the write-ahead log
checksums
    keep checksums of the pages
`, Params: []modules.Param{
		{Name: "name"}, userParam, {Name: "password", Optional: true, Secret: true}, {Name: "auth", Default: "password"},
		{Name: "encoding", Default: "UTF8"}, {Name: "locale", Optional: true}, {Name: "runas", Optional: true},
		{Name: "waldir", Optional: true}, {Name: "checksums", Default: false},
	}, Run: initdbPresent},
}}

// Language is Salt's "postgres_language".
var Language = &states.Module{Name: "postgres_language", Doc: "Languages in databases of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such language in a database.

name
    the language
` + maintenanceDBDoc + userDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "maintenance_db"}, userParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: languageAbsent},
	{Name: "present", Doc: `Have a language in a database.

name
    the language
` + maintenanceDBDoc + userDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "maintenance_db"}, userParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: languagePresent},
}}

// Privileges is Salt's "postgres_privileges".
var Privileges = &states.Module{Name: "postgres_privileges", Doc: "Privileges in PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have a role without privileges on an object.

name
    the role
object_name
    the object
object_type
    what it is: schema, tablespace, language, sequence, table, group, database, function
privileges
    a list of privileges
prepend
    the schema of the object
` + maintenanceDBDoc + userDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
		{Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: privilegesAbsent},
	{Name: "present", Doc: `Have a role with privileges on an object.

name
    the role
object_name
    the object
object_type
    what it is: schema, tablespace, language, sequence, table, group, database, function
privileges
    a list of privileges
grant_option
    whether the role may pass them on
prepend
    the schema of the object
` + maintenanceDBDoc + userDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "object_name"}, {Name: "object_type"}, {Name: "privileges", Optional: true},
		{Name: "grant_option", Optional: true}, {Name: "prepend", Default: "public"}, maintenanceDBParam, userParam, dbPasswordParam,
		dbHostParam, dbPortParam, dbUserParam,
	}, Run: privilegesPresent},
}}

// Schema is Salt's "postgres_schema".
var Schema = &states.Module{Name: "postgres_schema", Doc: "Schemas in databases of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such schema in a database.

dbname
    the database
name
    the schema
` + userDoc + login, Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, userParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: schemaAbsent},
	{Name: "present", Doc: `Have a schema in a database.

dbname
    the database
name
    the schema
owner
    its owner
` + userDoc + login, Params: []modules.Param{
		{Name: "dbname"}, {Name: "name"}, {Name: "owner", Optional: true}, userParam, dbUserParam, dbPasswordParam, dbHostParam,
		dbPortParam,
	}, Run: schemaPresent},
}}

// Tablespace is Salt's "postgres_tablespace".
var Tablespace = &states.Module{Name: "postgres_tablespace", Doc: "Tablespaces of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such tablespace.

name
    the tablespace
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, userParam, maintenanceDBParam, dbUserParam, dbPasswordParam, dbHostParam, dbPortParam,
	}, Run: tablespaceAbsent},
	{Name: "present", Doc: `Have a tablespace with these properties.

name
    the tablespace
directory
    its directory
options
    its options
owner
    its owner
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "directory"}, {Name: "options", Optional: true}, {Name: "owner", Optional: true}, userParam,
		maintenanceDBParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: tablespacePresent},
}}

// User is Salt's "postgres_user".
var User = &states.Module{Name: "postgres_user", Doc: "Users of PostgreSQL.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such user.

name
    the user
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, userParam, maintenanceDBParam, dbPasswordParam, dbHostParam, dbPortParam, dbUserParam,
	}, Run: userAbsent},
	{Name: "present", Doc: `Have a user with these properties.

name
    the user
createdb
    whether the user may make databases
createroles
    whether the user may make roles
encrypted
    how the password is kept: md5, scram-sha-256, False for as it is
superuser
    whether the user may do everything
replication
    whether the user may replicate
inherit
    whether the privileges of groups hold without asking
login
    whether the user may connect
password
    the password
default_password
    the password of a user who is new
refresh_password
    set the password without looking whether it is the right one
valid_until
    when the password ends
groups
    the groups of the user
` + userDoc + maintenanceDBDoc + login, Params: []modules.Param{
		{Name: "name"}, {Name: "createdb", Optional: true}, {Name: "createroles", Optional: true}, {Name: "encrypted", Optional: true},
		{Name: "superuser", Optional: true}, {Name: "replication", Optional: true}, {Name: "inherit", Optional: true},
		{Name: "login", Optional: true}, {Name: "password", Optional: true, Secret: true},
		{Name: "default_password", Optional: true, Secret: true}, {Name: "refresh_password", Optional: true, Secret: true},
		{Name: "valid_until", Optional: true}, {Name: "groups", Optional: true}, userParam, maintenanceDBParam, dbPasswordParam,
		dbHostParam, dbPortParam, dbUserParam,
	}, Run: userPresent},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	maintenanceDBDoc = `maintenance_db
    the database to connect to
`
	userDoc = `user
    the user of the system to run psql as
`
)

var (
	dbHostParam        = modules.Param{Name: "db_host", Optional: true}
	dbPasswordParam    = modules.Param{Name: "db_password", Optional: true, Secret: true}
	dbPortParam        = modules.Param{Name: "db_port", Optional: true}
	dbUserParam        = modules.Param{Name: "db_user", Optional: true}
	maintenanceDBParam = modules.Param{Name: "maintenance_db", Optional: true}
	userParam          = modules.Param{Name: "user", Optional: true}
)
