package trove

import "context"

// datastore is the database of this instance: [mysqlServer] or [postgresServer]. Its methods are functions of Trove's
// interface; their other arguments are in the call. guest contains the common code of the datastores:
//
//	guest ─ prepare, start, stop ──▶ datastore.setUp, ping
//	      ─ backup, restore ───────▶ datastore.planBackup, extract   ◀─▶ store
//	      ─ overrides ─────────────▶ syntax
//	      ─ attach, snapshot ──────▶ datastore.attach, replicationUser
//	      ─ logs ──────────────────▶ datastore.logs, switchLog
type datastore interface {
	// ping checks that the server responds. A *sqlError comes from the server: it is running but refuses the log-in.
	ping(ctx context.Context) error
	// close closes the connection. The next statement opens another one.
	close()

	createDatabases(ctx context.Context, databases any) error
	deleteDatabase(ctx context.Context, database any) error
	listDatabases(ctx context.Context) (any, error)
	createUsers(ctx context.Context, users any) error
	deleteUser(ctx context.Context, user any) error
	getUser(ctx context.Context) (any, error)
	listUsers(ctx context.Context) (any, error)
	changePasswords(ctx context.Context, users any) error
	updateAttributes(ctx context.Context) error
	listAccess(ctx context.Context) (any, error)
	grantAccess(ctx context.Context) error
	revokeAccess(ctx context.Context) error
	isRootEnabled(ctx context.Context) (bool, error)
	// enableRoot sets root's password, or a new one if password is not set, and returns the user.
	enableRoot(ctx context.Context, password any) (any, error)

	// serverArgs returns the arguments of the server in a container, serverOptions docker's options for it.
	serverArgs() []string
	serverOptions() []string
	// setUp starts a server with an empty volume or from a backup.
	setUp(ctx context.Context) error
	// rebuild sets up the service with the data of a rebuilt instance.
	rebuild(ctx context.Context) error
	// applyOverrides applies the values of a configuration group to the running server.
	applyOverrides(ctx context.Context) error
	makeReadOnly(ctx context.Context) error
	// maintain performs periodic maintenance. The beacon calls it.
	maintain() error
	// logs returns the logs that the datastore writes.
	logs() ([]*guestLog, error)
	// switchLog applies the values that enable or disable a log to the running server. The configuration contains them
	// already.
	switchLog(ctx context.Context, values map[string]any) error

	// planBackup returns how to create a backup. parent is the metadata of the backup that it is based on, or nil for
	// a full backup.
	planBackup(ctx context.Context, id string, parent map[string]string) (*backupPlan, error)
	// extract adds a backup to the data directory, which already contains the backups that it is based on. unpack runs
	// a program whose standard input is the backup.
	extract(ctx context.Context, incremental bool, unpack func(args ...string) error) error

	enableAsMaster(ctx context.Context, config any) error
	demoteMaster(ctx context.Context) error
	// replicationUser returns the user, with its password, for the log-in of a new replica.
	replicationUser(ctx context.Context) (map[string]any, error)
	// port returns the port for replicas.
	port(ctx context.Context) (int64, error)
	replicaContext(ctx context.Context) (any, error)
	// attach makes this instance a replica of a source that was checked to be compatible.
	attach(ctx context.Context, from source, config any) error
	detachReplica(ctx context.Context) (any, error)
	cleanupSource(ctx context.Context) error
	latestTransaction(ctx context.Context) (any, error)
	lastTransaction(ctx context.Context) (any, error)
	waitForTransaction(ctx context.Context) error
}

// openDatastore sets the datastore of a call.
func (g *guest) openDatastore() {
	if g.manager == managerPostgres {
		g.db = &postgresServer{guest: g}
		return
	}
	g.db = &mysqlServer{guest: g}
}

// Names of datastore managers.
const (
	managerMySQL    = "mysql"
	managerMaria    = "mariadb"
	managerPostgres = "postgresql"
)
