// Package trove makes a minion the guest agent of OpenStack Trove. The execution module "trove" has the functions
// that Trove's services call in a guest agent, with the names and arguments of Trove's own protocol. A Salt master
// replaces the message broker:
//
//	Trove's API and task manager ─▶ Salt master ─▶ job "trove.create_user" ─▶ [Module] ─▶ datastore (MySQL, MariaDB, PostgreSQL)
//	                                                                                └▶ files, services, volumes of the host
//	Trove's conductor            ◀─ Salt master ◀─ event salt/beacon/<id>/trove/heartbeat      (the state of the database)
//	                                            ◀─ event trove/conductor/<method>              (backups, root, notifications)
//
// [Methods] is the contract with Trove: name, call or cast, timeout, first release. A test compares it with Trove's
// classes. The options are the mapping "trove" in the minion's configuration, see docs/openstack/trove-guest.md.
//
// Trove's sources: trove/guestagent/api.py, trove/guestagent/datastore, trove/common/db, trove/conductor/api.py of
// Trove 18.
package trove
