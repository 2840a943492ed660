package trove

// A replayStep is a call that Trove's own manager and ours get alike. In its arguments, $name is an answer that was saved under the
// name; $CONFIG and $MORECONFIG are the instance's configuration, without and with one more option, and $DIR its directory. $backup{ is
// location and checksum of the last backup of all instances, as an object that the text goes on with, like $name{ of any other answer.
type replayStep struct {
	on     int    // the instance of the scenario
	fun    string // a function, or one of the steps below
	kwargs string // JSON, or a statement
	save   string // the name to save the answer under
	hide   string // keys whose values are chance: only their form is compared
	admin  bool   // an administrator calls
}

// Steps that are not calls.
const (
	stepSQL       = "(sql)"       // compares the answer of a statement
	stepConfig    = "(config)"    // compares the files of the configuration
	stepPublished = "(published)" // compares what was published of a log, by its canaries
	stepForget    = "(forget)"    // the instance is built again: its volume stays
)

// A replayScenario is a life of instances.
type replayScenario struct {
	datastore string
	instances int
	volume    bool // the instance is a volume without a server
	container bool // both agents run the server as a container of a real Docker
	steps     []replayStep

	store string // directory of the backups of Trove's own managers in containers
}

// replayScenarios are all that is replayed beside Trove's own managers. TestReplayCounts keeps their counts in the documentation.
var replayScenarios = map[string]replayScenario{
	"MariaDB":                  {datastore: managerMaria, instances: 2, steps: mariaSteps},
	"MariaDB replication":      {datastore: managerMaria, instances: 2, steps: mariaReplicationSteps},
	"MariaDB volumes":          {datastore: managerMaria, instances: 1, volume: true, steps: volumeSteps},
	"MariaDB in containers":    {datastore: managerMaria, instances: 2, container: true, steps: mariaContainerSteps},
	"PostgreSQL in containers": {datastore: managerPostgres, instances: 2, container: true, steps: postgresContainerSteps},
	"PostgreSQL":               {datastore: managerPostgres, instances: 2, steps: postgresSteps},
	"PostgreSQL replication":   {datastore: managerPostgres, instances: 2, steps: postgresReplicationSteps},
	"PostgreSQL volumes":       {datastore: managerPostgres, instances: 1, volume: true, steps: volumeSteps},
}

const prepareArgs = `{"memory_mb": 512, "packages": [], "device_path": null, "mount_point": "$DIR", "config_contents": $CONFIG, `

var mariaSteps = []replayStep{
	{fun: "rpc_ping"},
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "first", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"}],` +
		`"users": [{"_name": "zoe", "_password": "zoesecret", "_databases": [{"_name": "first"}]}], "overrides": {"max_connections": 42}, "ds_version": "10.11"}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@max_connections"},
	{fun: stepSQL, kwargs: "SELECT User, Host FROM mysql.user WHERE User NOT IN ('mariadb.sys', 'mysql') ORDER BY 1, 2"},
	{fun: "is_root_enabled"},
	{fun: "list_databases"},
	{fun: "list_users"},
	{fun: "delete_user", kwargs: `{"user": {"_name": "zoe", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "first"}}`},

	// Databases.
	{fun: "create_database", kwargs: `{"databases": [{"_name": "one", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"},` +
		`{"_name": "two", "_character_set": "latin1"}, {"_name": "three-3", "_character_set": null, "_collate": "latin2_general_ci"}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "x"}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": ""}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "sys"}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "nn", "_character_set": "none"}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "nn", "_character_set": null, "_collate": "none"}]}`},
	{fun: "list_databases"},
	{fun: "list_databases", kwargs: `{"limit": 2}`},
	{fun: "list_databases", kwargs: `{"limit": 2, "marker": "three-3"}`},
	{fun: "list_databases", kwargs: `{"limit": 1, "marker": "three-3", "include_marker": true}`},
	{fun: "list_databases", kwargs: `{"limit": 3}`},
	{fun: "list_databases", kwargs: `{"limit": 0}`},

	// Users.
	{fun: "list_users"},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret", "_databases": [{"_name": "one"}, {"_name": "two"}]},` +
		`{"_name": "bob", "_host": "10.0.0.%", "_password": "bobsecret"}, {"_name": "eve", "_password": "evesecret"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "root", "_password": "secret1"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "a very long name x", "_password": "secret1"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "se;mi", "_password": "secret1"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "mal", "_password": "secret1", "_host": "a.example"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "mal", "_password": "secret1", "_databases": [{"_name": "n"}]}]}`},
	{fun: "list_users"},
	{fun: "list_users", kwargs: `{"limit": 2}`},
	{fun: "list_users", kwargs: `{"limit": 2, "marker": "bob@10.0.0.%"}`},
	{fun: "list_users", kwargs: `{"limit": 1, "marker": "bob@10.0.0.%", "include_marker": true}`},
	{fun: "get_user", kwargs: `{"username": "ada", "hostname": "%"}`},
	{fun: "get_user", kwargs: `{"username": "ada", "hostname": "10.0.0.1"}`},
	{fun: "get_user", kwargs: `{"username": "os_admin", "hostname": "%"}`},
	{fun: "get_user", kwargs: `{"username": "se;mi", "hostname": "%"}`},
	{fun: "grant_access", kwargs: `{"username": "eve", "hostname": "%", "databases": ["two", "three-3"]}`},
	{fun: "grant_access", kwargs: `{"username": "eve", "hostname": "%", "databases": ["mysql"]}`},
	{fun: "revoke_access", kwargs: `{"username": "eve", "hostname": "%", "database": "two"}`},
	{fun: "revoke_access", kwargs: `{"username": "eve", "hostname": "%", "database": "one"}`},
	{fun: "list_access", kwargs: `{"username": "eve", "hostname": "%"}`},
	{fun: "change_passwords", kwargs: `{"users": [{"name": "eve", "host": "%", "password": "evesecret2"}]}`},
	{fun: "change_passwords", kwargs: `{"users": [{"name": "nobody", "host": "%", "password": "secret1"}]}`},
	{fun: "update_attributes", kwargs: `{"username": "bob", "hostname": "10.0.0.%", "user_attrs": {"name": "bobby", "password": "bobsecret2"}}`},
	{fun: "update_attributes", kwargs: `{"username": "bobby", "hostname": "10.0.0.%", "user_attrs": {"host": "%"}}`},
	{fun: "is_root_enabled"},
	{fun: "enable_root", hide: "_password"},
	{fun: "is_root_enabled"},
	{fun: "enable_root_with_password", kwargs: `{"root_password": "rootsecret"}`},
	{fun: stepSQL, kwargs: "SELECT authentication_string FROM mysql.user WHERE User = 'root' AND Host = '%'"},
	{fun: stepSQL, kwargs: "SHOW GRANTS FOR 'root'@'%'"},
	{fun: "disable_root"},
	{fun: "is_root_enabled"},
	{fun: "get_root_password"},
	{fun: "delete_user", kwargs: `{"user": {"_name": "ada", "_host": "%"}}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "ada", "_host": "%"}}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "root", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "two"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "two"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "mysql"}}`},
	{fun: "list_users"},
	{fun: "list_databases"},
	{fun: stepSQL, kwargs: "SELECT User, Host, plugin, authentication_string FROM mysql.user WHERE User NOT IN ('os_admin', 'root', 'mariadb.sys', 'mysql') ORDER BY 1, 2"},
	{fun: stepSQL, kwargs: "SELECT * FROM information_schema.schemata ORDER BY 2"},
	{fun: stepSQL, kwargs: "SELECT * FROM information_schema.schema_privileges ORDER BY 1, 2, 3, 4"},
	{fun: stepSQL, kwargs: "SELECT * FROM information_schema.user_privileges WHERE grantee NOT LIKE '%os_admin%' AND grantee NOT LIKE '%mysql%' ORDER BY 1, 2, 3"},
	{fun: stepDump},

	// The configuration.
	{fun: "update_overrides", kwargs: `{"overrides": {"max_connections": 51, "slow_query_log": null, "log_bin_trust_function_creators": true}}`},
	{fun: stepConfig},
	{fun: "apply_overrides", kwargs: `{"overrides": {"max_connections": 53, "max_allowed_packet": "2M", "long_query_time": 1.5,` +
		`"log_queries_not_using_indexes": true, "init_connect": "SET @x = 1", "no_such_thing": 1}}`},
	{fun: stepSQL, kwargs: "SELECT @@max_connections, @@global.max_allowed_packet, @@global.long_query_time, @@global.log_queries_not_using_indexes, @@init_connect"},
	{fun: "restart"},
	{fun: stepSQL, kwargs: "SELECT @@max_connections, @@slow_query_log, @@log_bin_trust_function_creators"},
	{fun: "update_overrides", kwargs: `{"overrides": {}, "remove": true}`},
	{fun: stepConfig},
	{fun: "reset_configuration", kwargs: `{"configuration": {"config_contents": $MORECONFIG}}`},
	{fun: stepConfig},
	{fun: "make_read_only", kwargs: `{"read_only": true}`},
	{fun: stepSQL, kwargs: "SELECT @@read_only"},
	{fun: "make_read_only", kwargs: `{"read_only": false}`},
	{fun: stepSQL, kwargs: "SELECT @@read_only"},

	// Start and stop.
	{fun: "stop_db"},
	{fun: "list_users"},
	{fun: "stop_db"},
	{fun: "start_db_with_conf_changes", kwargs: `{"config_contents": $MORECONFIG, "ds_version": "10.11"}`},
	{fun: stepSQL, kwargs: "SELECT @@max_connections, @@max_heap_table_size"},
	{fun: "pre_upgrade"},
	{fun: "upgrade", kwargs: `{"upgrade_info": {"datastore_version": "10.11"}}`},
	{fun: "post_upgrade", kwargs: `{"upgrade_info": {}}`},
	{fun: "stop_db"},
	{fun: stepForget},
	{fun: "rebuild", kwargs: `{"ds_version": "10.11", "config_contents": $CONFIG, "config_overrides": {"max_connections": 43}}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@max_connections"},
	{fun: "list_users"},

	// Logs.
	{fun: "guest_log_list"},
	{fun: "guest_log_list", admin: true, hide: "pending"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": true, "disable": false, "publish": false, "discard": false}`, hide: "pending"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT 'a canary of the log', @@general_log, @@log_output, @@general_log_file"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": false, "publish": true, "discard": false}`, hide: "published"},
	{fun: stepPublished, kwargs: `{"prefix": "inst-1/mariadb-general/"}`},
	{fun: stepSQL, kwargs: "SELECT 'another canary'"},
	{fun: "guest_log_list", hide: "pending published"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": false, "publish": true, "discard": false}`, hide: "published"},
	{fun: stepPublished, kwargs: `{"prefix": "inst-1/mariadb-general/"}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": true, "publish": false, "discard": true}`, hide: "pending"},
	{fun: stepPublished, kwargs: `{"prefix": "inst-1/mariadb-general"}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@general_log"},
	{fun: "guest_log_action", kwargs: `{"log_name": "slow_query", "enable": false, "disable": false, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "slow_query", "enable": true, "disable": false, "publish": false, "discard": false}`, hide: "pending"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@slow_query_log, @@slow_query_log_file, @@global.long_query_time"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": true, "disable": true, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "audit", "enable": true, "disable": false, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": true, "disable": false, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": false, "disable": true, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": false, "disable": false, "publish": true, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": false, "disable": false, "publish": false, "discard": true}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": false, "disable": false, "publish": false, "discard": false}`},

	// Backups, and an instance made from one.
	{fun: "enable_root_with_password", kwargs: `{"root_password": "rootsecret"}`},
	{fun: stepSQL, kwargs: "CREATE TABLE one.t (i INT PRIMARY KEY); INSERT INTO one.t VALUES (1), (2)"},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "full", "datastore": "mariadb", "datastore_version": "10.11"}}`},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "ds_version": "10.11", "backup_info": $backup{, "id": "full"}}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT i FROM one.t ORDER BY 1"},
	{on: 1, fun: stepDump},
	{on: 1, fun: stepSQL, kwargs: "SELECT User, Host FROM mysql.user WHERE User NOT IN ('mariadb.sys', 'mysql') ORDER BY 1, 2"},
	{on: 1, fun: "list_users"},
	{on: 1, fun: "is_root_enabled"},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "more", "datastore": "mariadb", "datastore_version": "10.11", "parent": $backup{}}}`},
	{fun: "get_latest_txn_id"},
	{fun: "wait_for_txn", kwargs: `{"txn": ""}`},
	{fun: "get_txn_count"},
	{fun: "backup_required_for_replication"},

	// Modules.
	{fun: "module_list"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "2", "type": "ping", "name": "second", "contents": "eD15", "md5": "x",` +
		`"auto_apply": false, "visible": true, "tenant": "t1", "datastore": "mariadb", "apply_order": 5, "priority_apply": false}},` +
		`{"module": {"id": "1", "type": "ping", "name": "first", "contents": "bWVzc2FnZT1IZWxsbw==", "md5": "y", "auto_apply": false,` +
		`"visible": false, "apply_order": 7, "priority_apply": true}}]}`},
	{fun: stepSQL, kwargs: "SELECT SLEEP(0.1)"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "3", "type": "ping", "name": "third", "contents": "TUVTU0FHRT0nYSBiJwo=", "md5": "z"}}]}`},
	{fun: stepSQL, kwargs: "SELECT SLEEP(0.1)"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "3", "type": "ping", "name": "third", "contents": "bWVzc2FnZSA9IGMK", "md5": "z"}}]}`},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "5", "type": "ping", "name": "fifth", "contents": "IyBubyBsaW5lCm1lc3NhZ2UgIyBubyA9IHNpZ24K", "md5": "z"}}]}`},
	{fun: stepSQL, kwargs: "SELECT SLEEP(0.1)"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "6", "type": "ping", "name": "sixth", "contents": "bWVzc2FnZT1UcnVlCk1lc3NhZ2U9eApub25lCg==", "md5": "z"}}]}`},
	{fun: stepSQL, kwargs: "SELECT SLEEP(0.1)"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "7", "type": "ping", "name": "seventh", "contents": "bWVzc2FnZT1UcnVlCk1lc3NhZ2U9eAo=", "md5": "z"}}]}`},
	{fun: stepSQL, kwargs: "SELECT SLEEP(0.1)"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "8", "type": "ping", "name": "eighth", "contents": "bWVzc2FnZT1hICMgYgptZXNzYWdlPWMK", "md5": "z"}}]}`},
	{fun: "module_list", kwargs: `{"include_contents": true}`},
	{fun: "module_remove", kwargs: `{"module": {"module": {"id": "3", "type": "ping", "name": "third"}}}`},
	{fun: "module_list", kwargs: `{"include_contents": false}`},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "4", "type": "x", "name": "n", "contents": "eD15"}}]}`},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "4", "type": "ping", "contents": "eD15"}}]}`},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "4", "type": "ping", "name": "n"}}]}`},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "4", "type": "ping", "name": "n", "contents": "eD15", "datastore": "redis"}}]}`},
	{fun: "module_remove", kwargs: `{"module": {"module": {"id": "9", "type": "ping", "name": "n"}}}`},
	{fun: "module_remove", kwargs: `{"module": {"module": {"id": "9", "type": "x", "name": "n"}}}`},
}

// sourceConfig is what Trove's templates send for a source.
const sourceConfig = `"[mysqld]\nlog_bin = binlog\nbinlog_format = ROW\ngtid_strict_mode = 1\n"`

// replicaConfig is what Trove's templates send for a replica.
const replicaConfig = `"[mysqld]\nread_only = 1\n"`

var mariaReplicationSteps = []replayStep{
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "web"}], "users": []}`},
	{fun: stepSQL, kwargs: "CREATE TABLE web.t (i INT PRIMARY KEY); INSERT INTO web.t VALUES (1)"},
	{fun: "get_replication_snapshot", kwargs: `{"snapshot_info": {"id": "snap", "datastore": "mariadb", "datastore_version": "10.11"},` +
		`"replica_source_config": ` + sourceConfig + `}`, save: "snapshot", hide: "name password dataset_size volume_size"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@log_bin, @@binlog_format, @@gtid_strict_mode"},
	{fun: stepSQL, kwargs: "SELECT privilege_type FROM information_schema.user_privileges WHERE grantee LIKE '%slave\\_%'"},
	{fun: stepSQL, kwargs: "INSERT INTO web.t VALUES (2)"},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "backup_info": $backup{, "id": "snap"},` +
		`"snapshot": $snapshot{, "config": ` + replicaConfig + `}}`},
	{on: 1, fun: stepConfig},
	{fun: "get_latest_txn_id", save: "at", hide: "*"},
	{on: 1, fun: "wait_for_txn", kwargs: `{"txn": $at}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT i, @@read_only FROM web.t ORDER BY i"},
	{on: 1, fun: "get_last_txn", hide: "*"},
	{on: 1, fun: "get_latest_txn_id"},

	// Fail over, in the order of Trove's task manager.
	{fun: "make_read_only", kwargs: `{"read_only": true}`},
	{on: 1, fun: "detach_replica", kwargs: `{"for_failover": true}`, hide: "replication_user"},
	{on: 1, fun: stepConfig},
	{on: 1, fun: "enable_as_master", kwargs: `{"replica_source_config": ` + sourceConfig + `}`},
	{on: 1, fun: "enable_as_master", kwargs: `{"replica_source_config": ` + sourceConfig + `}`},
	{on: 1, fun: "make_read_only", kwargs: `{"read_only": false}`},
	{on: 1, fun: stepSQL, kwargs: "INSERT INTO web.t VALUES (3)"},
	{on: 1, fun: "get_replica_context", save: "context", hide: "name password gtid_pos"},
	{fun: "demote_replication_master"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SET GLOBAL gtid_slave_pos = $at"},
	{fun: "attach_replica", kwargs: `{"replica_info": $context, "slave_config": ` + replicaConfig + `}`},
	{on: 1, fun: "get_latest_txn_id", save: "at", hide: "*"},
	{fun: "wait_for_txn", kwargs: `{"txn": $at}`},
	{fun: stepSQL, kwargs: "SELECT i, @@read_only FROM web.t ORDER BY i"},
	{fun: "detach_replica", hide: "replication_user"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SHOW SLAVE STATUS"},
	{fun: stepSQL, kwargs: "INSERT INTO web.t VALUES (4)"},
}

// Each mount point is empty at first, and the device has a file system that is smaller than it.
var volumeSteps = []replayStep{
	{fun: "get_filesystem_stats", kwargs: `{"fs_path": "/"}`, hide: "block_size total_blocks free_blocks free used total"},
	{fun: "mount_volume", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR"}`},
	{fun: "get_filesystem_stats", kwargs: `{"fs_path": "/"}`},
	{fun: "mount_volume", kwargs: `{"device_path": "$DEVICE-none", "mount_point": "$DIR"}`},
	{fun: "resize_fs", kwargs: `{"device_path": "$DEVICE-none", "mount_point": "$DIR", "online": true}`},
	{fun: "resize_fs", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR", "online": true}`},
	{fun: "get_filesystem_stats", kwargs: `{"fs_path": null}`},
	{fun: "unmount_volume", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR"}`},
	{fun: "unmount_volume", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR"}`},
	{fun: "resize_fs", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR", "online": false}`},
	{fun: "mount_volume", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR"}`},
	{fun: "get_filesystem_stats", kwargs: `{"fs_path": null}`},
	{fun: "resize_fs", kwargs: `{"device_path": "$DEVICE", "mount_point": "$DIR"}`},
	{fun: "get_filesystem_stats", kwargs: `{"fs_path": null}`, hide: "block_size total_blocks free_blocks free used total"},
}

var postgresSteps = []replayStep{
	{fun: "rpc_ping"},
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "first", "_character_set": null, "_collate": null}],` +
		`"users": [{"_name": "zoe", "_password": "zoesecret", "_databases": [{"_name": "first"}]}], "overrides": {"work_mem": "5MB", "autovacuum": false,` +
		`"log_line_prefix": "%m "}, "ds_version": "15"}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT current_setting('work_mem'), current_setting('autovacuum'), current_setting('log_line_prefix')"},
	{fun: "list_databases"},
	{fun: "list_users"},
	{fun: "delete_user", kwargs: `{"user": {"_name": "zoe", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "first"}}`},

	// Databases.
	{fun: "create_database", kwargs: `{"databases": [{"_name": "one", "_character_set": "UTF8", "_collate": "C.UTF-8"},` +
		`{"_name": "two", "_character_set": null, "_collate": null}, {"_name": "three-3 ü", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "x", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "ab ", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "one", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "postgres", "_character_set": null, "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "nn", "_character_set": "none", "_collate": null}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "nn", "_character_set": "LATIN1", "_collate": "none"}]}`},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "` + sixtyFour + `", "_character_set": null, "_collate": null}]}`},
	{fun: "list_databases"},
	{fun: "list_databases", kwargs: `{"limit": 2}`},
	{fun: "list_databases", kwargs: `{"limit": 2, "marker": "three-3 ü"}`},
	{fun: "list_databases", kwargs: `{"limit": 1, "marker": "three-3 ü", "include_marker": true}`},
	{fun: "list_databases", kwargs: `{"limit": 3}`},
	{fun: "list_databases", kwargs: `{"limit": 0}`},

	// Users.
	{fun: "list_users"},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret", "_databases": [{"_name": "one"}, {"_name": "two"}]},` +
		`{"_name": "bob", "_host": "10.0.0.%", "_password": "bob secret"}, {"_name": "eve"}, {"_name": "Zoë"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "postgres", "_password": "secret1"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": ""}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "mal", "_password": "secret1", "_databases": [{"_name": "n"}]}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "mal", "_password": "secret1", "_databases": [{"_name": "nothing"}]}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "` + sixtyFour + `"}]}`},
	{fun: "list_users"},
	{fun: "list_users", kwargs: `{"limit": 2}`},
	{fun: "list_users", kwargs: `{"limit": 2, "marker": "ada"}`},
	{fun: "list_users", kwargs: `{"limit": 1, "marker": "bob", "include_marker": true}`},
	{fun: "get_user", kwargs: `{"username": "ada", "hostname": "%"}`},
	{fun: "get_user", kwargs: `{"username": "nobody", "hostname": "%"}`},
	{fun: "get_user", kwargs: `{"username": "postgres", "hostname": "%"}`},
	{fun: "grant_access", kwargs: `{"username": "eve", "hostname": "%", "databases": ["one", "two"]}`},
	{fun: "grant_access", kwargs: `{"username": "eve", "hostname": "%", "databases": ["nothing"]}`},
	{fun: "grant_access", kwargs: `{"username": "nobody", "hostname": "%", "databases": ["one"]}`},
	{fun: "list_access", kwargs: `{"username": "eve", "hostname": "%"}`},
	{fun: "list_access", kwargs: `{"username": "nobody", "hostname": "%"}`},
	{fun: "revoke_access", kwargs: `{"username": "eve", "hostname": "%", "database": "two"}`},
	{fun: "revoke_access", kwargs: `{"username": "eve", "hostname": "%", "database": "nothing"}`},
	{fun: "list_access", kwargs: `{"username": "eve", "hostname": "%"}`},
	{fun: "change_passwords", kwargs: `{"users": [{"_name": "eve", "_host": "%", "_password": "evesecret2"}]}`},
	{fun: "change_passwords", kwargs: `{"users": [{"_name": "nobody", "_host": "%", "_password": "secret1"}]}`},
	{fun: "update_attributes", kwargs: `{"username": "bob", "hostname": "%", "user_attrs": {"name": "bobby", "password": "bobsecret2"}}`},
	{fun: "update_attributes", kwargs: `{"username": "bobby", "hostname": "%", "user_attrs": {"name": "ada"}}`},
	{fun: "update_attributes", kwargs: `{"username": "nobody", "hostname": "%", "user_attrs": {"password": "x"}}`},
	{fun: "update_attributes", kwargs: `{"username": "bobby", "hostname": "%", "user_attrs": {}}`},
	{fun: "enable_root", hide: "_password"},
	{fun: "disable_root"},
	{fun: "enable_root_with_password", kwargs: `{"root_password": "rootsecret"}`},
	{fun: "enable_root_with_password", kwargs: `{"root_password": "rootsecret2"}`},
	{fun: "get_root_password"},
	{fun: "delete_user", kwargs: `{"user": {"_name": "ada", "_host": "%"}}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "ada", "_host": "%"}}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "postgres", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "two"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "two"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "postgres"}}`},
	{fun: "list_users"},
	{fun: "list_databases"},
	{fun: stepDump},

	// The configuration.
	{fun: "update_overrides", kwargs: `{"overrides": {"work_mem": "6MB", "random_page_cost": "1.5"}, "remove": false}`},
	{fun: stepConfig},
	{fun: "apply_overrides", kwargs: `{"overrides": {"work_mem": "6MB"}}`},
	{fun: stepSQL, kwargs: "SELECT pg_sleep(0.2), current_setting('work_mem'), current_setting('random_page_cost'), current_setting('autovacuum')"},
	{fun: "update_overrides", kwargs: `{"overrides": {}, "remove": true}`},
	{fun: stepConfig},
	{fun: "apply_overrides", kwargs: `{"overrides": {}}`},
	{fun: stepSQL, kwargs: "SELECT pg_sleep(0.2), current_setting('work_mem')"},
	{fun: "reset_configuration", kwargs: `{"configuration": {"config_contents": $MORECONFIG}}`},
	{fun: stepConfig},
	{fun: "restart"},
	{fun: stepSQL, kwargs: "SHOW max_connections"},
	{fun: "make_read_only", kwargs: `{"read_only": true}`},

	// Start and stop.
	{fun: "stop_db"},
	{fun: "list_users"},
	{fun: "stop_db"},
	{fun: "start_db_with_conf_changes", kwargs: `{"config_contents": $CONFIG, "ds_version": "15"}`},
	{fun: stepSQL, kwargs: "SHOW max_connections"},
	{fun: "pre_upgrade"},
	{fun: "post_upgrade", kwargs: `{"upgrade_info": {}}`},
	{fun: "rebuild", kwargs: `{"ds_version": "15", "config_contents": $CONFIG}`},
	{fun: "get_txn_count"},
	{fun: "backup_required_for_replication"},
	{fun: "wait_for_txn", kwargs: `{"txn": "0/1"}`},
	{fun: "get_latest_txn_id", hide: "*"},

	// Logs.
	{fun: "guest_log_list"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": true, "disable": false, "publish": false, "discard": false}`},
	{fun: stepConfig},
	{fun: "restart"},
	{fun: stepSQL, kwargs: "SELECT 'a canary of the log', current_setting('logging_collector')"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": false, "publish": true, "discard": false}`, hide: "published"},
	{fun: stepPublished, kwargs: `{"prefix": "inst-1/postgresql-general/"}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": true, "publish": false, "discard": true}`, hide: "pending"},
	{fun: stepConfig},
	{fun: "restart"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": true, "disable": true, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "error", "enable": true, "disable": false, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "guest", "enable": true, "disable": false, "publish": false, "discard": false}`},
	{fun: "guest_log_action", kwargs: `{"log_name": "guest", "enable": false, "disable": false, "publish": true, "discard": false}`},

	// Backups, and an instance made from one. Of root, Trove's manager reports nothing.
	{fun: stepSQL, kwargs: "CREATE TABLE t AS SELECT 1 AS i"},
	{fun: "delete_user", kwargs: `{"user": {"_name": "root", "_host": "%"}}`},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "full", "datastore": "postgresql", "datastore_version": "15"}}`},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "ds_version": "15", "backup_info": $backup{, "id": "full"}}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT pg_sleep(1), i FROM t"},
	{on: 1, fun: "list_users"},
	{on: 1, fun: "list_databases"},
	{on: 1, fun: stepDump},

	// Modules.
	{fun: "module_list"},
	{fun: "module_apply", kwargs: `{"modules": [{"module": {"id": "1", "type": "ping", "name": "first", "contents": "bWVzc2FnZT1IZWxsbw==", "md5": "y"}}]}`},
	{fun: "module_list", kwargs: `{"include_contents": true}`, admin: true},
	{fun: "module_remove", kwargs: `{"module": {"module": {"id": "1", "type": "ping", "name": "first"}}}`},
	{fun: "module_list", admin: true},
}

// sixtyFour is a name that is too long.
const sixtyFour = "0123456789012345678901234567890123456789012345678901234567890123"

// stepDump compares dumps of the servers.
const stepDump = "(dump)"

var postgresReplicationSteps = []replayStep{
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "web", "_character_set": null, "_collate": null}], "users": []}`},
	{fun: stepSQL, kwargs: "CREATE TABLE t AS SELECT 1 AS i"},
	{fun: "get_replication_snapshot", kwargs: `{"snapshot_info": {"id": "snap", "datastore": "postgresql", "datastore_version": "15"}, "replica_source_config": ""}`,
		save: "snapshot", hide: "password dataset_size volume_size"},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT rolname, rolsuper, rolreplication, rolcanlogin FROM pg_roles WHERE rolname NOT LIKE 'pg%' ORDER BY 1"},
	{fun: stepSQL, kwargs: "INSERT INTO t VALUES (2)"},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "backup_info": $backup{, "id": "snap"}, "snapshot": $snapshot{, "config": ""}}`},
	{on: 1, fun: stepConfig},
	{fun: "get_latest_txn_id", save: "at", hide: "*"},
	{on: 1, fun: "wait_for_txn", kwargs: `{"txn": $at}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT i, pg_is_in_recovery() FROM t ORDER BY 1"},
	{on: 1, fun: "get_latest_txn_id", hide: "*"},

	// Fail over, in the order of Trove's task manager.
	{fun: "make_read_only", kwargs: `{"read_only": true}`},
	{on: 1, fun: "detach_replica", kwargs: `{"for_failover": true}`},
	{on: 1, fun: "enable_as_master", kwargs: `{"replica_source_config": ""}`},
	{on: 1, fun: stepConfig},
	{on: 1, fun: "make_read_only", kwargs: `{"read_only": false}`},
	{on: 1, fun: stepSQL, kwargs: "INSERT INTO t VALUES (3)"},
	{fun: stepSQL, kwargs: "INSERT INTO t VALUES (-1)"},
	{on: 1, fun: "get_replica_context", save: "context", hide: "password"},
	{fun: "attach_replica", kwargs: `{"replica_info": $context, "slave_config": "", "restart": false}`},
	{fun: stepConfig},
	{fun: "demote_replication_master"},
	{on: 1, fun: "get_latest_txn_id", save: "at", hide: "*"},
	{fun: "wait_for_txn", kwargs: `{"txn": $at}`},
	{fun: stepSQL, kwargs: "SELECT i, pg_is_in_recovery() FROM t ORDER BY 1"},
	{fun: "attach_replica", kwargs: `{"replica_info": $context, "slave_config": "", "restart": true}`},
	{fun: "detach_replica"},
	{fun: stepSQL, kwargs: "INSERT INTO t VALUES (4)"},
}
