package trove

// mariaContainerSteps are a life in containers. Its upgrade is to another image of the same server.
var mariaContainerSteps = []replayStep{
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "first", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"}],` +
		`"users": [{"_name": "zoe", "_password": "zoesecret", "_databases": [{"_name": "first"}]}], "overrides": {"max_connections": 42}, "ds_version": "10.11"}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@max_connections"},
	{fun: stepSQL, kwargs: "SELECT User, Host FROM mysql.user WHERE User NOT IN ('mariadb.sys', 'mysql') ORDER BY 1, 2"},
	{fun: "list_databases"},
	{fun: "list_users"},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "one", "_character_set": "utf8mb4", "_collate": "utf8mb4_bin"},` +
		`{"_name": "two", "_character_set": "latin1"}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_host": "%", "_password": "adasecret", "_databases": [{"_name": "one"}]}]}`},
	{fun: "update_attributes", kwargs: `{"username": "ada", "hostname": "%", "user_attrs": {"name": "augusta", "host": "10.0.0.%", "password": "adasecret2"}}`},
	{fun: "get_user", kwargs: `{"username": "augusta", "hostname": "10.0.0.%"}`},
	{fun: "grant_access", kwargs: `{"username": "augusta", "hostname": "10.0.0.%", "databases": ["two"]}`},
	{fun: "list_access", kwargs: `{"username": "augusta", "hostname": "10.0.0.%"}`},
	{fun: "list_users", kwargs: `{"limit": 1}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "zoe", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "first"}}`},
	{fun: "enable_root_with_password", kwargs: `{"root_password": "rootsecret"}`},
	{fun: "is_root_enabled"},
	{fun: "update_overrides", kwargs: `{"overrides": {"max_connections": 51}}`},
	{fun: "apply_overrides", kwargs: `{"overrides": {"max_connections": 53}}`},
	{fun: stepSQL, kwargs: "SELECT @@max_connections"},
	{fun: "restart"},
	{fun: stepSQL, kwargs: "SELECT @@max_connections"},

	// Start and stop.
	{fun: "stop_db"},
	{fun: "list_users"},
	{fun: "stop_db"},
	{fun: "start_db_with_conf_changes", kwargs: `{"config_contents": $MORECONFIG, "ds_version": "10.11"}`},
	{fun: stepSQL, kwargs: "SELECT @@max_connections, @@max_heap_table_size"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": true, "disable": false, "publish": false, "discard": false}`, hide: "pending"},
	{fun: stepSQL, kwargs: "SELECT @@general_log, @@general_log_file"},
	{fun: "guest_log_action", kwargs: `{"log_name": "general", "enable": false, "disable": true, "publish": false, "discard": true}`, hide: "pending"},

	// Backups, and an instance made from one.
	{fun: stepSQL, kwargs: "CREATE TABLE one.t (i INT PRIMARY KEY); INSERT INTO one.t VALUES (1), (2)"},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "full", "datastore": "mariadb", "datastore_version": "10.11"}}`},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "ds_version": "10.11", "backup_info": $backup{, "id": "full"}}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT i FROM one.t ORDER BY 1"},
	{on: 1, fun: stepSQL, kwargs: "SELECT User, Host FROM mysql.user WHERE User NOT IN ('mariadb.sys', 'mysql') ORDER BY 1, 2"},
	{on: 1, fun: "list_users"},
	{on: 1, fun: "list_databases"},
	{on: 1, fun: "is_root_enabled"},
	{on: 1, fun: stepDump},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "more", "datastore": "mariadb", "datastore_version": "10.11", "parent": $backup{}}}`},

	// Another image with the same data.
	{fun: "pre_upgrade"},
	{fun: "upgrade", kwargs: `{"upgrade_info": {"datastore_version": "10.11"}}`},
	{fun: "upgrade", kwargs: `{"upgrade_info": {"datastore_version": "10.12"}}`},
	{fun: "post_upgrade", kwargs: `{"upgrade_info": {}}`},
	{fun: stepSQL, kwargs: "SELECT i FROM one.t ORDER BY 1"},
	{fun: "list_users"},
	{fun: "list_databases"},
	{fun: "create_user", kwargs: `{"users": [{"_name": "eve", "_password": "evesecret"}]}`},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "after", "datastore": "mariadb", "datastore_version": "10.12"}}`},
	{fun: "stop_db"},
	{fun: stepForget},
	{fun: "rebuild", kwargs: `{"ds_version": "10.12", "config_contents": $CONFIG, "config_overrides": {"max_connections": 43}}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT @@max_connections, i FROM one.t ORDER BY 2"},
	{fun: "list_users"},
	{fun: stepDump},
}

// postgresContainerSteps are a life in containers. Trove's manager of PostgreSQL has no upgrade.
var postgresContainerSteps = []replayStep{
	{fun: "prepare", kwargs: prepareArgs + `"databases": [{"_name": "first", "_character_set": null, "_collate": null}],` +
		`"users": [{"_name": "zoe", "_password": "zoesecret", "_databases": [{"_name": "first"}]}], "overrides": {"work_mem": "5MB"}, "ds_version": "15"}`},
	{fun: stepConfig},
	{fun: stepSQL, kwargs: "SELECT current_setting('work_mem')"},
	{fun: "list_databases"},
	{fun: "list_users"},
	{fun: "create_database", kwargs: `{"databases": [{"_name": "one", "_character_set": null, "_collate": null}]}`},
	{fun: "create_user", kwargs: `{"users": [{"_name": "ada", "_password": "adasecret", "_databases": [{"_name": "one"}]}]}`},
	{fun: "update_attributes", kwargs: `{"username": "ada", "hostname": "%", "user_attrs": {"name": "augusta", "password": "adasecret2"}}`},
	{fun: "get_user", kwargs: `{"username": "augusta", "hostname": "%"}`},
	{fun: "grant_access", kwargs: `{"username": "zoe", "hostname": "%", "databases": ["one"]}`},
	{fun: "list_access", kwargs: `{"username": "zoe", "hostname": "%"}`},
	{fun: "list_users", kwargs: `{"limit": 1}`},
	{fun: "revoke_access", kwargs: `{"username": "zoe", "hostname": "%", "database": "one"}`},
	{fun: "delete_user", kwargs: `{"user": {"_name": "zoe", "_host": "%"}}`},
	{fun: "delete_database", kwargs: `{"database": {"_name": "first"}}`},
	{fun: stepDump},
	{fun: "update_overrides", kwargs: `{"overrides": {"work_mem": "6MB"}, "remove": false}`},
	{fun: "restart"},
	{fun: stepSQL, kwargs: "SELECT current_setting('work_mem')"},

	// Start and stop.
	{fun: "stop_db"},
	{fun: "list_users"},
	{fun: "stop_db"},
	{fun: "start_db_with_conf_changes", kwargs: `{"config_contents": $CONFIG, "ds_version": "15"}`},
	{fun: stepSQL, kwargs: "SHOW max_connections"},

	// Backups, and an instance made from one.
	{fun: stepSQL, kwargs: "CREATE TABLE t AS SELECT 1 AS i"},
	{fun: "create_backup", kwargs: `{"backup_info": {"id": "full", "datastore": "postgresql", "datastore_version": "15"}}`},
	{on: 1, fun: "prepare", kwargs: prepareArgs + `"databases": [], "users": [], "ds_version": "15", "backup_info": $backup{, "id": "full"}}`},
	{on: 1, fun: stepSQL, kwargs: "SELECT pg_sleep(1), i FROM t"},
	{on: 1, fun: "list_users"},
	{on: 1, fun: "list_databases"},
	{on: 1, fun: stepDump},
}
