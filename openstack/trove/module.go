package trove

import "github.com/brine-salt/brine/modules"

func init() {
	modules.Register(Module)
	modules.RegisterOptions("trove")
}

// Module is the execution module "trove". Its functions have the names and arguments that Trove sends to a guest
// agent, and return what Trove's own manager returns. Each also has the argument context: Trove's request context as
// a dictionary, of which is_admin is used.
var Module = &modules.Module{
	Name:  "trove",
	Doc:   "The guest's side of OpenStack Trove: what its services call in an instance.",
	Funcs: functions[:],
}

var functions = [...]modules.Def{
	{Name: "apply_overrides", Doc: "Set variables of the running server to the values of a configuration group.", Example: "salt '*' trove.apply_overrides",
		Params: []modules.Param{
			{Name: "overrides", Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "attach_replica", Doc: "Make this instance replicate from a source.", Example: "salt '*' trove.attach_replica",
		Params: []modules.Param{
			{Name: "replica_info", Secret: true}, {Name: "slave_config", Secret: true},
			{Name: "restart", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "attach_replication_slave", Doc: "Refuse: no manager of Trove has this method; Trove calls attach_replica.", Example: "salt '*' trove.attach_replication_slave",
		Params: []modules.Param{
			{Name: "snapshot", Secret: true}, {Name: "slave_config", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "backup_required_for_replication", Doc: "Report whether a replica begins with a backup of its source.", Example: "salt '*' trove.backup_required_for_replication",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "change_passwords", Doc: "Change the passwords of users: a list of name, host and password.", Example: "salt '*' trove.change_passwords",
		Params: []modules.Param{
			{Name: "users", Type: modules.List, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "cleanup_source_on_replica_detach", Doc: "Remove the user of a replica that was detached from this source.", Example: "salt '*' trove.cleanup_source_on_replica_detach",
		Params: []modules.Param{
			{Name: "replica_info", Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "create_backup", Doc: "Make a backup and put it into the store of backups; events report its state.", Example: "salt '*' trove.create_backup",
		Params: []modules.Param{
			{Name: "backup_info", Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "create_database", Doc: "Create databases: a list of _name, _character_set and _collate.", Example: "salt '*' trove.create_database databases='[{_name: web}]'",
		Params: []modules.Param{
			{Name: "databases", Type: modules.List},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "create_user", Doc: "Create users: a list of _name, _host, _password and _databases.", Example: "salt '*' trove.create_user",
		Params: []modules.Param{
			{Name: "users", Type: modules.List, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "delete_database", Doc: "Delete a database.", Example: "salt '*' trove.delete_database",
		Params: []modules.Param{
			{Name: "database"}, {Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "delete_user", Doc: "Delete a user.", Example: "salt '*' trove.delete_user",
		Params: []modules.Param{
			{Name: "user"}, {Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "demote_replication_master", Doc: "Make this instance an ordinary one: it is no source of replicas any more.", Example: "salt '*' trove.demote_replication_master",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "detach_replica", Doc: "Detach this replica from its source and return what it was attached by.", Example: "salt '*' trove.detach_replica",
		Params: []modules.Param{
			{Name: "for_failover", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "disable_root", Doc: "Give the root user that may log in from anywhere a password that nobody knows.", Example: "salt '*' trove.disable_root",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "enable_as_master", Doc: "Make this instance a source of replicas.", Example: "salt '*' trove.enable_as_master",
		Params: []modules.Param{
			{Name: "replica_source_config", Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "enable_root", Doc: "Let root log in from anywhere, and return it with a new password.", Example: "salt '*' trove.enable_root",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "enable_root_with_password", Doc: "Let root log in from anywhere with this password, and return it.", Example: "salt '*' trove.enable_root_with_password",
		Params: []modules.Param{
			{Name: "root_password", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_diagnostics", Doc: "Return version, descriptors, threads and memory of the agent's process.", Example: "salt '*' trove.get_diagnostics",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_filesystem_stats", Doc: "Return blocks, size and usage of the volume with the data. The path is not used, as in Trove.", Example: "salt '*' trove.get_filesystem_stats",
		Params: []modules.Param{
			{Name: "fs_path"}, {Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_hwinfo", Doc: "Return memory in MiB and number of processors.", Example: "salt '*' trove.get_hwinfo",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_last_txn", Doc: "Return the source's id and the number of the last transaction that this replica applied.", Example: "salt '*' trove.get_last_txn",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_latest_txn_id", Doc: "Return the position of the last transaction.", Example: "salt '*' trove.get_latest_txn_id",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_replica_context", Doc: "Return what a replica needs to attach to this source.", Example: "salt '*' trove.get_replica_context",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_replication_snapshot", Doc: "Make this instance a source, back it up, and return what a new replica needs.", Example: "salt '*' trove.get_replication_snapshot",
		Params: []modules.Param{
			{Name: "snapshot_info", Secret: true},
			{Name: "replica_source_config", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_root_password", Doc: "Refuse: no datastore supports it.", Example: "salt '*' trove.get_root_password",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_txn_count", Doc: "Refuse: no datastore supports it.", Example: "salt '*' trove.get_txn_count",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "get_user", Doc: "Return a user, None if there is none.", Example: "salt '*' trove.get_user username=ada hostname=%",
		Params: []modules.Param{
			{Name: "hostname", Type: modules.String}, {Name: "username", Type: modules.String},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "grant_access", Doc: "Grant a user all privileges on databases.", Example: "salt '*' trove.grant_access",
		Params: []modules.Param{
			{Name: "databases", Type: modules.List}, {Name: "hostname", Type: modules.String},
			{Name: "username", Type: modules.String},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "guest_log_action", Doc: "Enable, disable, publish or discard a log, and return its details.", Example: "salt '*' trove.guest_log_action",
		Params: []modules.Param{
			{Name: "disable", Type: modules.Bool}, {Name: "discard", Type: modules.Bool},
			{Name: "enable", Type: modules.Bool}, {Name: "log_name"},
			{Name: "publish", Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "guest_log_list", Doc: "Return the logs that may be published.", Example: "salt '*' trove.guest_log_list",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "is_root_enabled", Doc: "Report whether root may log in from elsewhere than this host.", Example: "salt '*' trove.is_root_enabled",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "list_access", Doc: "Return the databases that a user has privileges on.", Example: "salt '*' trove.list_access",
		Params: []modules.Param{
			{Name: "hostname", Type: modules.String}, {Name: "username", Type: modules.String},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "list_databases", Doc: "Return databases by name, and the marker of the next page.", Example: "salt '*' trove.list_databases",
		Params: []modules.Param{
			{Name: "include_marker", Default: false, Type: modules.Bool},
			{Name: "limit", Optional: true}, {Name: "marker", Optional: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "list_users", Doc: "Return users by name and host, and the marker of the next page.", Example: "salt '*' trove.list_users limit=20",
		Params: []modules.Param{
			{Name: "include_marker", Default: false, Type: modules.Bool},
			{Name: "limit", Optional: true}, {Name: "marker", Optional: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "make_read_only", Doc: "Let the server refuse writes, or take them again.", Example: "salt '*' trove.make_read_only",
		Params: []modules.Param{
			{Name: "read_only", Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "module_apply", Doc: "Apply modules of Trove, and return a result for each.", Example: "salt '*' trove.module_apply",
		Params: []modules.Param{
			{Name: "modules", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "module_list", Doc: "Return the modules that are applied.", Example: "salt '*' trove.module_list",
		Params: []modules.Param{
			{Name: "include_contents", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "module_remove", Doc: "Remove a module.", Example: "salt '*' trove.module_remove",
		Params: []modules.Param{
			{Name: "module", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "mount_volume", Doc: "Mount a volume.", Example: "salt '*' trove.mount_volume",
		Params: []modules.Param{
			{Name: "device_path", Optional: true}, {Name: "mount_point", Optional: true},
			{Name: "write_to_fstab", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "post_create_backup", Doc: "Thaw the volume with the data, after a snapshot of it.", Example: "salt '*' trove.post_create_backup",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Kwargs: "kwargs", Run: run},
	{Name: "post_upgrade", Doc: "Do what is left after an upgrade of the instance's image: nothing, as in Trove.", Example: "salt '*' trove.post_upgrade",
		Params: []modules.Param{
			{Name: "upgrade_info"},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "pre_create_backup", Doc: "Write everything to the volume with the data and freeze it, for a snapshot of it.", Example: "salt '*' trove.pre_create_backup",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Kwargs: "kwargs", Run: run},
	{Name: "pre_upgrade", Doc: "Return what post_upgrade needs: nothing, as in Trove.", Example: "salt '*' trove.pre_upgrade",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "prepare", Doc: "Set up the datastore of a new instance, or restore it from a backup; events report the state.", Example: "salt '*' trove.prepare memory_mb=512 packages='[]' databases='[]' users='[]' mount_point=/var/lib/mysql",
		Params: []modules.Param{
			{Name: "databases", Type: modules.List}, {Name: "memory_mb", Type: modules.Int},
			{Name: "packages", Type: modules.List},
			{Name: "users", Type: modules.List, Secret: true},
			{Name: "backup_info", Optional: true, Secret: true},
			{Name: "cluster_config", Optional: true, Secret: true},
			{Name: "config_contents", Optional: true, Secret: true},
			{Name: "device_path", Optional: true}, {Name: "ds_version", Optional: true},
			{Name: "modules", Optional: true, Secret: true}, {Name: "mount_point", Optional: true},
			{Name: "overrides", Optional: true, Secret: true},
			{Name: "root_password", Optional: true, Secret: true},
			{Name: "snapshot", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "rebuild", Doc: "Set up the service after the instance was built anew around its volume.", Example: "salt '*' trove.rebuild",
		Params: []modules.Param{
			{Name: "ds_version"}, {Name: "config_contents", Optional: true, Secret: true},
			{Name: "config_overrides", Optional: true, Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "reset_configuration", Doc: "Write the server's configuration file anew.", Example: "salt '*' trove.reset_configuration",
		Params: []modules.Param{
			{Name: "configuration", Secret: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "resize_fs", Doc: "Make the file system fill its volume.", Example: "salt '*' trove.resize_fs",
		Params: []modules.Param{
			{Name: "device_path", Optional: true}, {Name: "mount_point", Optional: true},
			{Name: "online", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "restart", Doc: "Restart the server and wait until it answers.", Example: "salt '*' trove.restart",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "revoke_access", Doc: "Revoke a user's privileges on a database.", Example: "salt '*' trove.revoke_access",
		Params: []modules.Param{
			{Name: "database"}, {Name: "hostname", Type: modules.String},
			{Name: "username", Type: modules.String},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "rpc_ping", Doc: "Report that the agent is there.", Example: "salt '*' trove.rpc_ping",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "ssl_action", Doc: "Enable or disable TLS of the datastore.", Example: "salt '*' trove.ssl_action",
		Params: []modules.Param{
			{Name: "container", Secret: true}, {Name: "disable"}, {Name: "enable"}, {Name: "mode"},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "ssl_rollback", Doc: "Undo the last change of the datastore's TLS.", Example: "salt '*' trove.ssl_rollback",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "ssl_show", Doc: "Return how the datastore's TLS is set up.", Example: "salt '*' trove.ssl_show",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "start_db_with_conf_changes", Doc: "Start the server with a new configuration, after the instance was resized.", Example: "salt '*' trove.start_db_with_conf_changes",
		Params: []modules.Param{
			{Name: "config_contents", Secret: true}, {Name: "ds_version", Optional: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "stop_db", Doc: "Stop the server and wait until it is down.", Example: "salt '*' trove.stop_db",
		Params: []modules.Param{
			{Name: "do_not_start_on_reboot", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "unmount_volume", Doc: "Unmount a volume.", Example: "salt '*' trove.unmount_volume",
		Params: []modules.Param{
			{Name: "device_path", Optional: true}, {Name: "mount_point", Optional: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "update_attributes", Doc: "Change name, host or password of a user.", Example: "salt '*' trove.update_attributes",
		Params: []modules.Param{
			{Name: "hostname", Type: modules.String}, {Name: "user_attrs", Secret: true},
			{Name: "username", Type: modules.String},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "update_guest", Doc: "Refuse: the agent is updated by its package.", Example: "salt '*' trove.update_guest",
		Params: []modules.Param{
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "update_overrides", Doc: "Write or remove the configuration group's part of the configuration.", Example: "salt '*' trove.update_overrides",
		Params: []modules.Param{
			{Name: "overrides", Secret: true}, {Name: "remove", Default: false, Type: modules.Bool},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "upgrade", Doc: "Move the datastore to another version.", Example: "salt '*' trove.upgrade",
		Params: []modules.Param{
			{Name: "upgrade_info", Optional: true},
			{Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
	{Name: "wait_for_txn", Doc: "Wait until this replica has applied a transaction.", Example: "salt '*' trove.wait_for_txn",
		Params: []modules.Param{
			{Name: "txn"}, {Name: "context", Optional: true, KeywordOnly: true, Secret: true},
		}, Run: run},
}
