package trove

import "context"

// datastore is the database of this instance: [mysqlServer] or [postgresServer]. Its methods are functions of Trove's
// interface, whose other arguments are in the call. What the datastores share is in guest:
//
//	guest ─ prepare, start, stop ──▶ datastore.setUp, ping
//	      ─ backup, restore ───────▶ datastore.planBackup, extract   ◀─▶ store
//	      ─ overrides ─────────────▶ syntax
//	      ─ attach, snapshot ──────▶ datastore.attach, replicationUser
//	      ─ logs ──────────────────▶ datastore.logs, switchLog
type datastore interface {
	// ping asks the server for an answer. A *sqlError is the server's: it is up, but does not let us in.
	ping(ctx context.Context) error
	// close ends the connection. The next statement opens another one.
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
	// enableRoot sets root's password, a new one if none is given, and returns the user.
	enableRoot(ctx context.Context, password any) (any, error)

	// serverArgs are the arguments of the server in a container, serverOptions what docker is told of it.
	serverArgs() []string
	serverOptions() []string
	// setUp makes a running server of an empty volume or of a backup.
	setUp(ctx context.Context) error
	// rebuild sets up the service on the data of an instance that was built again.
	rebuild(ctx context.Context) error
	// applyOverrides brings the values of a configuration group to the running server.
	applyOverrides(ctx context.Context) error
	makeReadOnly(ctx context.Context) error
	// maintain does what must be done now and then. The beacon calls it.
	maintain() error
	// logs are the logs that the datastore writes.
	logs() ([]*guestLog, error)
	// switchLog brings the values that enable or disable a log, which are in the configuration already, to the server.
	switchLog(ctx context.Context, values map[string]any) error

	// planBackup decides how a backup is made; parent is the metadata of the one that it builds upon, nil for a full
	// backup.
	planBackup(ctx context.Context, id string, parent map[string]string) (*backupPlan, error)
	// extract puts a backup into the data directory, in which the backups that it builds upon are already. unpack runs
	// a program whose standard input is the backup.
	extract(ctx context.Context, incremental bool, unpack func(args ...string) error) error

	enableAsMaster(ctx context.Context, config any) error
	demoteMaster(ctx context.Context) error
	// replicationUser is the user that a new replica logs in as, with its password.
	replicationUser(ctx context.Context) (map[string]any, error)
	// port is where replicas connect.
	port(ctx context.Context) (int64, error)
	replicaContext(ctx context.Context) (any, error)
	// attach makes this instance a replica of a source that is known to fit.
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

// The names of datastore managers.
const (
	managerMySQL    = "mysql"
	managerMaria    = "mariadb"
	managerPostgres = "postgresql"
)
