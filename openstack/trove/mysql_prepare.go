package trove

import (
	"context"
	"errors"
	"os"
	"path"

	"github.com/brine-salt/brine/modules"
)

// setUp implements do_prepare of Trove's MySQL manager.
func (m *mysqlServer) setUp(ctx context.Context) error {
	if err := m.installConfiguration(ctx, "overrides"); err != nil {
		return err
	}
	backup, err := m.c.Map("backup_info")
	if err != nil {
		return err
	}
	if len(backup) > 0 {
		if err := m.restoreBackup(ctx, backup); err != nil {
			return err
		}
		if err := m.resetRootPassword(ctx); err != nil {
			return err
		}
	} else if err := m.installData(ctx); err != nil {
		return err
	}
	if err := m.start(ctx, false); err != nil {
		return err
	}
	if err := m.secure(ctx); err != nil {
		return err
	}
	enabled := false
	if len(backup) > 0 {
		if enabled, err = m.isRootEnabled(ctx); err != nil {
			return err
		}
	}
	if enabled {
		m.conductor(ctx, "report_root", map[string]any{})
	} else if err := m.secureRoot(ctx); err != nil {
		return err
	}
	snapshot, err := m.c.Map("snapshot")
	if err != nil || len(snapshot) == 0 {
		return err
	}
	return m.attachReplica(ctx, snapshot, snapshot["config"])
}

// installConfiguration stops the server and writes the directories and configuration files.
func (m *mysqlServer) installConfiguration(ctx context.Context, overrides string) error {
	if err := m.stopIfRunning(ctx); err != nil {
		return err
	}
	if err := m.ensureDir(m.dataDir, 0o750); err != nil {
		return err
	}
	if v := m.c.Value("config_contents"); v != nil {
		if err := m.resetConfiguration(v); err != nil {
			return err
		}
	}
	if err := m.applyOverride(systemAfter, commonChange, map[string]any{"datadir": m.dataDir}); err != nil {
		return err
	}
	return m.userOverrides(m.c.Value(overrides))
}

func (m *mysqlServer) rebuild(ctx context.Context) error {
	return m.rebuildWith(ctx, func(ctx context.Context) error {
		if err := m.installConfiguration(ctx, "config_overrides"); err != nil {
			return err
		}
		return m.start(ctx, false)
	})
}

// mysqlConfig is the server's default configuration file.
const mysqlConfig = "/etc/mysql/my.cnf"

func (m *mysqlServer) serverArgs() []string {
	if file := m.c.Path(m.configFile); file != mysqlConfig {
		return []string{"--defaults-file=" + file}
	}
	return nil
}

func (m *mysqlServer) serverOptions() []string { return nil }

// installData creates the system tables in an empty data directory.
func (m *mysqlServer) installData(ctx context.Context) error {
	if _, err := os.Stat(m.c.Path(path.Join(m.dataDir, "mysql"))); err == nil {
		return nil
	}
	args := []string{"mariadb-install-db", "--no-defaults", "--skip-test-db"}
	if !m.isMaria() {
		args = []string{"mysqld", "--no-defaults", "--initialize-insecure"}
	}
	args = append(args, "--datadir="+m.c.Path(m.dataDir))
	switch {
	case m.inContainer() && m.isMaria():
		args = append(args, "--auth-root-socket-user=mysql") // the default is the current user, which has another name
	case !m.inContainer() && os.Geteuid() == 0:
		args = append(args, "--user="+m.owner)
	}
	if err := m.pipeAs(ctx, modules.Command{Args: args, Dir: "/"}, m.ownerInside()); err != nil {
		return err
	}
	if m.isMaria() {
		return nil // root can only log in through the socket
	}
	return m.resetRootPassword(ctx)
}

// resetChange is the change in the configuration that resets root's password at the next start.
const resetChange = "reset-root"

// resetRootPassword sets a new password for root before the server accepts connections: the password in a restored
// database is unknown.
func (m *mysqlServer) resetRootPassword(ctx context.Context) error {
	password, err := randomPassword(passwordLength)
	if err != nil {
		return err
	}
	identified := "BY " + quote(password)
	if m.isMaria() {
		identified = "VIA unix_socket OR mysql_native_password USING PASSWORD(" + quote(password) + ")"
	}
	file := path.Join(path.Dir(m.dataDir), ".reset-root.sql")
	defer os.Remove(m.c.Path(file))
	if err := m.writeFile(file, []byte("ALTER USER 'root'@'localhost' IDENTIFIED "+identified+";\n"), 0o600); err != nil {
		return err
	}
	// Save the password before the server sets it. After a crash between the two, the next prepare repairs it.
	if err := m.savePassword("root", password); err != nil {
		return err
	}
	if err := os.Remove(m.c.Path(path.Join(m.confDir(), adminUser+".cnf"))); err != nil && !missing(err) {
		return modules.Errorf("cannot forget the administrator of before: %v", err)
	}
	if err := m.applyOverride(systemAfter, resetChange, map[string]any{"init_file": m.c.Path(file)}); err != nil {
		return err
	}
	err = m.start(ctx, false)
	return errors.Join(err, m.removeOverride(systemAfter, resetChange))
}
