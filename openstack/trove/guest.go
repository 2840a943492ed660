package trove

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// guest is one call of a function in this instance.
type guest struct {
	*settings
	c   *modules.Call
	db  datastore
	req map[string]any // Trove's request context
}

// run runs a function of the module.
func run(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Fun[strings.LastIndexByte(c.Fun, '.')+1:]
	// These functions work before the instance has a datastore.
	switch name {
	case "rpc_ping":
		return true, nil
	case "get_hwinfo":
		return hardware(c)
	case "get_diagnostics":
		return c.Exec(ctx, "agent.diagnostics")
	case "update_guest":
		return nil, modules.Errorf("cannot update the agent: its package is updated by the host's package manager")
	case "attach_replication_slave":
		return nil, modules.Errorf("no manager of Trove has attach_replication_slave; the function is attach_replica")
	case "pre_upgrade":
		return map[string]any{}, nil
	case "post_upgrade":
		return nil, nil
	}
	s, err := readSettings(c.Opt("trove"))
	if err != nil {
		return nil, err
	}
	g := &guest{settings: s, c: c}
	if g.req, err = c.Map("context"); err != nil {
		return nil, err
	}
	g.openDatastore()
	defer g.db.close()
	return g.call(ctx, name)
}

// call calls the method for a function.
func (g *guest) call(ctx context.Context, name string) (any, error) {
	c := g.c
	switch name {
	case "get_filesystem_stats":
		return g.filesystemStats()
	case "mount_volume":
		return nil, g.mountVolume(ctx)
	case "unmount_volume":
		return nil, g.unmountVolume(ctx)
	case "resize_fs":
		return nil, g.resizeFS(ctx)
	case "pre_create_backup":
		return g.freeze(ctx)
	case "post_create_backup":
		return g.thaw(ctx)

	case "create_database":
		return nil, g.db.createDatabases(ctx, c.Value("databases"))
	case "delete_database":
		return nil, g.db.deleteDatabase(ctx, c.Value("database"))
	case "list_databases":
		return g.db.listDatabases(ctx)
	case "create_user":
		return nil, g.db.createUsers(ctx, c.Value("users"))
	case "delete_user":
		return nil, g.db.deleteUser(ctx, c.Value("user"))
	case "get_user":
		return g.db.getUser(ctx)
	case "list_users":
		return g.db.listUsers(ctx)
	case "change_passwords":
		return nil, g.db.changePasswords(ctx, c.Value("users"))
	case "update_attributes":
		return nil, g.db.updateAttributes(ctx)
	case "list_access":
		return g.db.listAccess(ctx)
	case "grant_access":
		return nil, g.db.grantAccess(ctx)
	case "revoke_access":
		return nil, g.db.revokeAccess(ctx)
	case "is_root_enabled":
		return g.db.isRootEnabled(ctx)
	case "enable_root":
		return g.db.enableRoot(ctx, nil)
	case "enable_root_with_password":
		return g.db.enableRoot(ctx, c.Value("root_password"))
	case "disable_root":
		_, err := g.db.enableRoot(ctx, nil)
		return nil, err

	case "prepare":
		return nil, g.prepare(ctx)
	case "rebuild":
		return nil, g.db.rebuild(ctx)
	case "restart":
		return nil, g.restart(ctx)
	case "stop_db":
		return nil, g.stop(ctx, false)
	case "start_db_with_conf_changes":
		return nil, g.startWithConfiguration(ctx)
	case "reset_configuration":
		return nil, g.resetConfigurationCall()
	case "update_overrides":
		return nil, g.updateOverrides()
	case "apply_overrides":
		return nil, g.db.applyOverrides(ctx)
	case "make_read_only":
		return nil, g.db.makeReadOnly(ctx)
	case "upgrade":
		return nil, g.upgrade(ctx)

	case "backup_required_for_replication":
		return true, nil
	case "enable_as_master":
		return nil, g.db.enableAsMaster(ctx, c.Value("replica_source_config"))
	case "demote_replication_master":
		return nil, g.db.demoteMaster(ctx)
	case "get_replica_context":
		return g.db.replicaContext(ctx)
	case "attach_replica":
		return nil, g.attachReplica(ctx, c.Value("replica_info"), c.Value("slave_config"))
	case "detach_replica":
		return g.db.detachReplica(ctx)
	case "cleanup_source_on_replica_detach":
		return nil, g.db.cleanupSource(ctx)
	case "get_latest_txn_id":
		return g.db.latestTransaction(ctx)
	case "get_last_txn":
		return g.db.lastTransaction(ctx)
	case "wait_for_txn":
		return nil, g.db.waitForTransaction(ctx)

	case "create_backup":
		return nil, g.createBackup(ctx, c.Value("backup_info"))
	case "get_replication_snapshot":
		return g.replicationSnapshot(ctx)
	case "guest_log_list":
		return g.logList(ctx)
	case "guest_log_action":
		return g.logAction(ctx)
	case "module_apply":
		return g.applyModules(ctx, c.Value("modules"))
	case "module_list":
		return g.listModules()
	case "module_remove":
		return nil, g.removeModule()
	case "ssl_show":
		return map[string]any{"status": "not implemented"}, nil
	case "ssl_action":
		return g.sslAction()
	case "ssl_rollback":
		return nil, modules.Errorf("cannot roll back: ssl_action has changed nothing")
	case "get_root_password", "get_txn_count":
		return nil, notSupported(name, g.manager)
	}
	return nil, modules.Errorf("cannot run %s: it is not a function of Trove's guest", name)
}

// sslAction returns the errors of trove.guestagent.datastore.ssl.SSLManager in Trove 26 for a datastore without TLS.
// Trove 18 does not have the method.
func (g *guest) sslAction() (any, error) {
	enable, disable := pytext.Truth(g.c.Value("enable")), pytext.Truth(g.c.Value("disable"))
	switch {
	case enable && disable:
		return nil, badRequest("Cannot enable and disable ssl")
	case enable:
		return nil, modules.Errorf("ssl enable not implemented")
	case disable:
		return nil, modules.Errorf("ssl disable not implemented")
	}
	return map[string]any{}, nil
}

// notSupported returns Trove's DatastoreOperationNotSupported.
func notSupported(operation, datastore string) error {
	return modules.Errorf("The '%s' operation is not supported for the '%s' datastore.", operation, datastore)
}

// badRequest returns Trove's BadRequest or NotFound, of which only the text is sent.
func badRequest(format string, args ...any) error { return modules.Errorf(format, args...) }

// maps1 returns the elements of a list argument, which must be maps.
func maps1(v any, what string) ([]map[string]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, modules.Usagef("%s must be a list, not %s", what, modules.TypeName(v))
	}
	out := make([]map[string]any, len(list))
	for i, x := range list {
		if out[i], ok = x.(map[string]any); !ok {
			return nil, modules.Usagef("%s must be a list of dictionaries, item %d is %s", what, i, modules.TypeName(x))
		}
	}
	return out, nil
}

// textOf returns a value of a map as text, or "" if it is None or missing.
func textOf(m map[string]any, key string) string {
	if v := m[key]; v != nil {
		return pytext.Str(v)
	}
	return ""
}

// ownerIDs returns the user and group ids for the datastore's files. ok is false if this process cannot change
// owners.
func (g *guest) ownerIDs() (uid, gid int, ok bool, err error) {
	if os.Geteuid() != 0 {
		return 0, 0, false, nil
	}
	if uid, err = strconv.Atoi(g.owner); err == nil {
		return uid, uid, true, nil
	}
	u, err := user.Lookup(g.owner)
	if err != nil {
		return 0, 0, false, modules.Errorf("cannot find the user %s, to whom the datastore's files belong: %v", g.owner, err)
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, true, nil
}

// ensureDir creates a directory that belongs to the datastore's user.
func (g *guest) ensureDir(dir string, mode os.FileMode) error {
	p := g.c.Path(dir)
	if err := os.MkdirAll(p, mode); err != nil {
		return modules.Errorf("cannot make the directory %s: %v", dir, err)
	}
	return g.giveAway(dir)
}

// giveAway makes the datastore's user the owner of a file or directory.
func (g *guest) giveAway(name string) error {
	uid, gid, ok, err := g.ownerIDs()
	if err != nil || !ok {
		return err
	}
	if err := os.Lchown(g.c.Path(name), uid, gid); err != nil {
		return modules.Errorf("cannot give %s to %s: %v", name, g.owner, err)
	}
	return nil
}

// writeFile writes a file of the datastore.
func (g *guest) writeFile(name string, data []byte, mode os.FileMode) error {
	if err := atomicfile.WriteFile(g.c.Path(name), data, mode); err != nil {
		return modules.Errorf("cannot write %s: %v", name, err)
	}
	return g.giveAway(name)
}

// Marker files, the same as in Trove's agent.
const (
	prepareStart = ".guestagent.prepare.start"
	prepareEnd   = ".guestagent.prepare.end"
)

// mark creates an empty marker file.
func (g *guest) mark(name string) error { return g.markWith(name, "") }

func (g *guest) markWith(name, text string) error {
	if err := os.MkdirAll(g.c.Path(g.stateDir), 0o755); err != nil {
		return modules.Errorf("cannot make the directory %s: %v", g.stateDir, err)
	}
	if err := atomicfile.WriteFile(g.c.Path(path.Join(g.stateDir, name)), []byte(text), 0o644); err != nil {
		return modules.Errorf("cannot write the marker file %s: %v", name, err)
	}
	return nil
}

// isPrepared reports whether prepare has succeeded. Before that, the state of the database has no meaning.
func isPrepared(e *modules.Env, s *settings) bool {
	_, err := os.Stat(e.Path(filepath.Join(s.stateDir, prepareEnd)))
	return err == nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
