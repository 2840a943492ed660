package trove

// Method is a method that Trove calls in a guest agent.
type Method struct {
	// Name is the method's name in Trove's protocol and the function's name in the module.
	Name string
	// Cast marks a method for which Trove does not wait.
	Cast bool
	// Timeout is how long Trove waits for the result of a call.
	Timeout Timeout
	// Version is the version of the guest interface that has the method in this form.
	Version string
	// Since is the first release of Trove with the method: 2013 for the first sources of Icehouse, otherwise the
	// number of the release. Methods of the releases between these have 18.
	Since int
}

// Timeout is a class of timeouts. Trove's options set the seconds.
type Timeout uint8

// The classes of timeouts.
const (
	NoTimeout Timeout = iota // casts
	Low                      // agent_call_low_timeout
	High                     // agent_call_high_timeout
	Snapshot                 // agent_replication_snapshot_timeout
)

// Seconds returns the default of Trove's option.
func (t Timeout) Seconds() int {
	switch t {
	case Low:
		return 15
	case High:
		return 180
	case Snapshot:
		return 1800
	}
	return 0
}

// Methods returns the methods that Trove calls in a guest agent, sorted by name. Callers must not change it.
func Methods() []Method { return methods[:] }

var methods = [...]Method{
	{"apply_overrides", false, High, "1.0", 18},
	{"attach_replica", false, High, "1.0", 18},
	{"attach_replication_slave", true, NoTimeout, "1.0", 18},
	{"backup_required_for_replication", false, Low, "1.0", 18},
	{"change_passwords", true, NoTimeout, "1.0", 2013},
	{"cleanup_source_on_replica_detach", false, High, "1.0", 18},
	{"create_backup", true, NoTimeout, "1.0", 2013},
	{"create_database", true, NoTimeout, "1.0", 2013},
	{"create_user", true, NoTimeout, "1.0", 2013},
	{"delete_database", true, NoTimeout, "1.0", 2013},
	{"delete_user", true, NoTimeout, "1.0", 2013},
	{"demote_replication_master", false, High, "1.0", 18},
	{"detach_replica", false, High, "1.0", 18},
	{"disable_root", false, Low, "1.0", 2013},
	{"enable_as_master", false, High, "1.0", 18},
	{"enable_root", false, High, "1.0", 2013},
	{"enable_root_with_password", false, High, "1.0", 18},
	{"get_diagnostics", false, Low, "1.0", 2013},
	{"get_filesystem_stats", false, Low, "1.0", 2013},
	{"get_hwinfo", false, Low, "1.0", 2013},
	{"get_last_txn", false, High, "1.0", 18},
	{"get_latest_txn_id", false, High, "1.0", 18},
	{"get_replica_context", false, High, "1.0", 18},
	{"get_replication_snapshot", false, Snapshot, "1.0", 18},
	{"get_root_password", false, High, "1.0", 18},
	{"get_txn_count", false, High, "1.0", 18},
	{"get_user", false, Low, "1.0", 2013},
	{"grant_access", false, Low, "1.0", 2013},
	{"guest_log_action", false, High, "1.0", 18},
	{"guest_log_list", false, High, "1.0", 18},
	{"is_root_enabled", false, Low, "1.0", 2013},
	{"list_access", false, Low, "1.0", 2013},
	{"list_databases", false, Low, "1.0", 2013},
	{"list_users", false, High, "1.0", 2013},
	{"make_read_only", false, High, "1.0", 18},
	{"module_apply", false, High, "1.0", 18},
	{"module_list", false, High, "1.0", 18},
	{"module_remove", false, High, "1.0", 18},
	{"mount_volume", false, Low, "1.0", 18},
	{"post_create_backup", false, High, "1.2", 26},
	{"post_upgrade", false, High, "1.0", 18},
	{"pre_create_backup", false, High, "1.2", 26},
	{"pre_upgrade", false, High, "1.0", 18},
	{"prepare", true, NoTimeout, "1.1", 2013},
	{"rebuild", true, NoTimeout, "1.0", 18},
	{"reset_configuration", false, High, "1.0", 2013},
	{"resize_fs", false, High, "1.1", 18},
	{"restart", false, High, "1.0", 2013},
	{"revoke_access", false, Low, "1.0", 2013},
	{"rpc_ping", false, Low, "1.0", 18},
	{"ssl_action", false, High, "1.3", 26},
	{"ssl_rollback", false, High, "1.3", 26},
	{"ssl_show", false, High, "1.3", 26},
	{"start_db_with_conf_changes", false, High, "1.1", 2013},
	{"stop_db", false, Low, "1.1", 2013},
	{"unmount_volume", false, Low, "1.0", 18},
	{"update_attributes", true, NoTimeout, "1.0", 2013},
	{"update_guest", false, High, "1.0", 2013},
	{"update_overrides", false, High, "1.0", 18},
	{"upgrade", true, NoTimeout, "1.0", 2013},
	{"wait_for_txn", false, High, "1.0", 18},
}
