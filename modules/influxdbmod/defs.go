package influxdbmod

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// influxdb.list_dbs differs: with ssl the server's certificate is checked unless verify_ssl is False, and a server that cannot be
// reached is asked once. Further arguments of the Python client than ssl, verify_ssl, timeout, path and database are refused.
// influxdb.query differs: a floating number without a fraction is an integer.

func init() { modules.Register(Module) }

var (
	named      = []modules.Param{{Name: "name"}}
	inDatabase = []modules.Param{{Name: "database"}, {Name: "name"}}
	policy     = []modules.Param{
		{Name: "database"}, {Name: "name"}, {Name: "duration"}, {Name: "replication"}, {Name: "default", Default: false},
	}
	privilege = []modules.Param{{Name: "database"}, {Name: "privilege"}, {Name: "username"}}
)

// Module is Salt's "influxdb".
var Module = &modules.Module{Name: "influxdbmod", Virtual: "influxdb", Doc: "Databases, users and policies of an InfluxDB 1 server.", Funcs: []modules.Def{
	{Name: "alter_retention_policy", Kwargs: "client_args", Doc: "Change a retention policy.", Example: "salt '*' influxdb.alter_retention_policy metrics default 1d 1", Params: policy, Run: alterPolicy},
	{Name: "continuous_query_exists", Kwargs: "client_args", Doc: "Report whether a database has a continuous query.", Example: "salt '*' influxdb.continuous_query_exists metrics default", Params: inDatabase, Run: queryExists},
	{Name: "create_continuous_query", Kwargs: "client_args", Doc: `Create a continuous query.

resample_time
    How often it runs.
coverage_period
    The time that a run covers.`,
		Example: "salt '*' influxdb.create_continuous_query mydb cq 'SELECT mean(*) INTO a FROM b GROUP BY time(5m)'", Params: []modules.Param{
			{Name: "database"}, {Name: "name"}, {Name: "query"}, {Name: "resample_time", Optional: true}, {Name: "coverage_period", Optional: true},
		}, Run: createQuery},
	{Name: "create_db", Kwargs: "client_args", Doc: "Create a database, false if it exists.", Example: "salt '*' influxdb.create_db metrics", Params: named, Run: createDB},
	{Name: "create_retention_policy", Kwargs: "client_args", Doc: `Create a retention policy.

duration
    How long data is kept: 1h, 7d, 4w, INF.
replication
    How many copies a cluster keeps.
default
    Make it the policy of the database.`,
		Example: "salt '*' influxdb.create_retention_policy metrics default 1d 1", Params: policy, Run: createPolicy},
	{Name: "create_user", Kwargs: "client_args", Doc: "Create a user, false if it exists.", Example: "salt '*' influxdb.create_user eve secret admin=True", Params: []modules.Param{{Name: "name"}, {Name: "passwd", Secret: true}, {Name: "admin", Default: false}}, Run: createUser},
	{Name: "db_exists", Kwargs: "client_args", Doc: "Report whether a database exists.", Example: "salt '*' influxdb.db_exists metrics", Params: named, Run: databaseExists},
	{Name: "drop_continuous_query", Kwargs: "client_args", Doc: "Remove a continuous query.", Example: "salt '*' influxdb.drop_continuous_query mydb cq", Params: inDatabase, Run: dropQuery},
	{Name: "drop_db", Kwargs: "client_args", Doc: "Remove a database, false if there is none.", Example: "salt '*' influxdb.drop_db metrics", Params: named, Run: dropDB},
	{Name: "drop_retention_policy", Kwargs: "client_args", Doc: "Remove a retention policy.", Example: "salt '*' influxdb.drop_retention_policy metrics default", Params: inDatabase, Run: dropPolicy},
	{Name: "get_continuous_query", Kwargs: "client_args", Doc: "Return a continuous query, empty if there is none.", Example: "salt '*' influxdb.get_continuous_query mydb cq", Params: inDatabase, Run: getQuery},
	{Name: "get_retention_policy", Kwargs: "client_args", Doc: "Return a retention policy, empty if there is none.", Example: "salt '*' influxdb.get_retention_policy metrics default", Params: inDatabase, Run: getPolicy},
	{Name: "grant_admin_privileges", Kwargs: "client_args", Doc: "Give a user all privileges.", Example: "salt '*' influxdb.grant_admin_privileges eve", Params: named, Run: grantAdmin},
	{Name: "grant_privilege", Kwargs: "client_args", Doc: "Give a user a privilege on a database: read, write or all.", Example: "salt '*' influxdb.grant_privilege metrics read eve", Params: privilege, Run: grant},
	{Name: "list_dbs", Kwargs: "client_args", Doc: `Return all databases.

client_args
    influxdb_host, influxdb_port, influxdb_user and influxdb_password, which go before the options influxdb.host and so on, and
    ssl, verify_ssl, timeout, path and database. All functions take them.`,
		Example: "salt '*' influxdb.list_dbs influxdb_host=db1", Run: listDBs},
	{Name: "list_privileges", Kwargs: "client_args", Doc: "Return the privileges of a user by database.", Example: "salt '*' influxdb.list_privileges eve", Params: named, Run: listPrivileges},
	{Name: "list_users", Kwargs: "client_args", Doc: "Return all users.", Example: "salt '*' influxdb.list_users", Run: listUsers},
	{Name: "query", Kwargs: "client_args", Doc: "Return what each statement of a query gives, by series and tags.", Example: "salt '*' influxdb.query metrics 'SELECT * FROM cpu'", Params: []modules.Param{{Name: "database"}, {Name: "query"}}, Run: runQuery},
	{Name: "remove_user", Kwargs: "client_args", Doc: "Remove a user, false if there is none.", Example: "salt '*' influxdb.remove_user eve", Params: named, Run: removeUser},
	{Name: "retention_policy_exists", Kwargs: "client_args", Doc: "Report whether a database has a retention policy.", Example: "salt '*' influxdb.retention_policy_exists metrics default", Params: inDatabase, Run: policyExists},
	{Name: "revoke_admin_privileges", Kwargs: "client_args", Doc: "Take the administrator's privileges from a user.", Example: "salt '*' influxdb.revoke_admin_privileges eve", Params: named, Run: revokeAdmin},
	{Name: "revoke_privilege", Kwargs: "client_args", Doc: "Take a privilege on a database from a user.", Example: "salt '*' influxdb.revoke_privilege metrics read eve", Params: privilege, Run: revoke},
	{Name: "set_user_password", Kwargs: "client_args", Doc: "Set the password of a user, false if there is none.", Example: "salt '*' influxdb.set_user_password eve secret", Params: []modules.Param{{Name: "name"}, {Name: "passwd", Secret: true}}, Run: setPassword},
	{Name: "user_exists", Kwargs: "client_args", Doc: "Report whether a user exists.", Example: "salt '*' influxdb.user_exists eve", Params: named, Run: userExists},
	{Name: "user_info", Kwargs: "client_args", Doc: "Return a user, None if there is none.", Example: "salt '*' influxdb.user_info eve", Params: named, Run: userInfo},
}}
