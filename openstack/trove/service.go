package trove

import (
	"context"
	"errors"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// as is errors.As.
func as[T error](err error, target *T) bool { return errors.As(err, target) }

// healthyAnswers is the number of consecutive answers after which the server counts as up.
const healthyAnswers = 3

// databaseStatus returns the status of the database in the words of trove.instance.service_status.
func (g *guest) databaseStatus(ctx context.Context) string {
	g.db.close() // an old connection does not show the current status
	err := g.db.ping(ctx)
	switch {
	case err == nil:
		return statusHealthy
	case isServerError(err):
		return statusRunning // the server runs, but refuses the log-in
	}
	return statusShutdown
}

func isServerError(err error) bool {
	var said *sqlError
	return errors.As(err, &said)
}

// awaitStatus waits until the database has the wanted status, and reports it if report is set.
func (g *guest) awaitStatus(ctx context.Context, want string, report bool) error {
	ctx, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	for answers := 0; ; {
		got := g.databaseStatus(ctx)
		if got == want {
			answers++
			if want != statusHealthy || answers >= healthyAnswers {
				if report {
					g.report(ctx, want, false)
				}
				return nil
			}
		} else {
			answers = 0
		}
		select {
		case <-ctx.Done():
			return modules.Errorf("the database is %s, not %s, after %s", got, want, g.wait)
		case <-time.After(g.poll):
		}
	}
}

// control starts, stops or restarts the server; fun is the name of a function of the module service.
func (g *guest) control(ctx context.Context, fun string) error {
	if g.inContainer() {
		return g.controlContainer(ctx, fun)
	}
	v, err := g.c.Exec(ctx, "service."+fun, g.service)
	if err != nil {
		return modules.Errorf("cannot %s the service %s: %v", fun, g.service, err)
	}
	if !pytext.Truth(v) {
		return modules.Errorf("cannot %s the service %s", fun, g.service)
	}
	return nil
}

// start starts the server and waits until it answers.
func (g *guest) start(ctx context.Context, report bool) error {
	err := g.control(ctx, "start")
	if err == nil {
		err = g.awaitStatus(ctx, statusHealthy, report)
	}
	if err != nil {
		return modules.Errorf("%s: %v", g.startFailed, err)
	}
	return nil
}

// stop stops the server and waits until it is down.
func (g *guest) stop(ctx context.Context, report bool) error {
	err := g.control(ctx, "stop")
	if err == nil {
		err = g.awaitStatus(ctx, statusShutdown, report)
	}
	if err != nil {
		return modules.Errorf("Failed to stop database: %v", err)
	}
	return nil
}

// restart restarts the server and waits until it answers.
func (g *guest) restart(ctx context.Context) error {
	err := g.control(ctx, "restart")
	if err == nil {
		err = g.awaitStatus(ctx, statusHealthy, true)
	}
	if err != nil {
		return modules.Errorf("%s: %v", g.restartFailed, err)
	}
	return nil
}

// startWithConfiguration starts the server with another configuration, and stops it first if it is running.
func (g *guest) startWithConfiguration(ctx context.Context) error {
	if err := g.checkVersion(g.c.Value("ds_version")); err != nil {
		return err
	}
	if err := g.stopIfRunning(ctx); err != nil {
		return err
	}
	if err := g.resetConfiguration(g.c.Value("config_contents")); err != nil {
		return err
	}
	return g.start(ctx, true)
}

// checkVersion sets the version of the datastore to the one in the call. With packages, which come from the image, it
// refuses any version but the instance's.
func (g *guest) checkVersion(v any) error {
	if g.inContainer() {
		if pytext.Truth(v) {
			g.version = pytext.Str(v)
		}
		return nil
	}
	if want := pytext.Str(v); pytext.Truth(v) && g.version != "" && want != g.version {
		return modules.Errorf("cannot run version %s of %s: the instance has %s", want, g.manager, g.version)
	}
	return nil
}

// upgrade replaces the server with another version; only containers can do this. As in Trove, an upgrade to the same
// version does nothing.
func (g *guest) upgrade(ctx context.Context) error {
	m, err := g.c.Map("upgrade_info")
	if err != nil {
		return err
	}
	version := textOf(m, "datastore_version")
	if version == "" || version == g.version {
		return nil
	}
	if g.inContainer() {
		return g.upgradeContainer(ctx, version)
	}
	return modules.Errorf("cannot upgrade %s from %q to %s: in the way packages the version is that of the instance's image", g.manager,
		g.version, version)
}

// prepare sets up the datastore of a new instance (trove.guestagent.datastore.manager.Manager._prepare).
func (g *guest) prepare(ctx context.Context) (err error) {
	if err := g.mark(prepareStart); err != nil {
		return err
	}
	g.report(ctx, statusBuilding, true)
	cluster := pytext.Truth(g.c.Value("cluster_config"))
	if err = g.checkVersion(g.c.Value("ds_version")); err == nil {
		err = g.db.setUp(ctx)
	}
	if err := g.endInstall(ctx, err, cluster); err != nil {
		return err
	}
	// The instance exists now. As in Trove, later failures are only logged.
	complain := func(what string, err error) {
		if err != nil {
			g.c.Logger().Error("After prepare: cannot "+what, "err", err)
		}
	}
	if v := g.c.Value("modules"); pytext.Truth(v) {
		_, err := g.applyModules(ctx, v)
		complain("apply modules", err)
	}
	if cluster {
		return nil
	}
	if v := g.c.Value("databases"); pytext.Truth(v) {
		complain("create databases", g.db.createDatabases(ctx, v))
	}
	if v := g.c.Value("users"); pytext.Truth(v) {
		complain("create users", g.db.createUsers(ctx, v))
	}
	if v := g.c.Value("root_password"); pytext.Truth(v) && !pytext.Truth(g.c.Value("backup_info")) {
		_, err := g.db.enableRoot(ctx, v)
		complain("enable root", err)
	}
	return nil
}

// endInstall marks and reports the end of prepare, and returns the reason if it failed.
func (g *guest) endInstall(ctx context.Context, failure error, cluster bool) error {
	ctx = context.WithoutCancel(ctx)
	if failure == nil && !cluster {
		failure = g.mark(prepareEnd)
	}
	switch {
	case failure != nil:
		g.report(ctx, statusFailed, true)
	case cluster:
		g.report(ctx, statusInstanceReady, true)
	default:
		g.report(ctx, g.databaseStatus(ctx), true)
	}
	return failure
}

// rebuildWith marks and reports a rebuild of the instance, in which setUp sets up the service on the existing data.
func (g *guest) rebuildWith(ctx context.Context, setUp func(context.Context) error) error {
	if err := g.mark(prepareStart); err != nil {
		return err
	}
	g.report(ctx, statusBuilding, true)
	err := g.checkVersion(g.c.Value("ds_version"))
	if err == nil {
		err = setUp(ctx)
	}
	return g.endInstall(ctx, err, false)
}

// stopIfRunning stops the server unless it is down.
func (g *guest) stopIfRunning(ctx context.Context) error {
	if g.databaseStatus(ctx) == statusShutdown {
		return nil
	}
	return g.stop(ctx, false)
}
