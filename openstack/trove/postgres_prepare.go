package trove

import (
	"context"
	"os"
	"path"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/modules"
)

// setUp is do_prepare of Trove's PostgreSQL manager.
func (p *postgresServer) setUp(ctx context.Context) error {
	if err := p.stopIfRunning(ctx); err != nil {
		return err
	}
	if err := p.ensureDirs(); err != nil {
		return err
	}
	if err := p.configure(); err != nil {
		return err
	}
	backup, err := p.c.Map("backup_info")
	if err != nil {
		return err
	}
	snapshot, err := p.c.Map("snapshot")
	if err != nil {
		return err
	}
	if len(backup) > 0 {
		if err := p.restoreBackup(ctx, backup); err != nil {
			return err
		}
		if len(snapshot) == 0 {
			// The server replays its log to the end, then accepts writes.
			if err := p.signal("recovery.signal"); err != nil {
				return err
			}
		}
	} else if err := p.initData(ctx); err != nil {
		return err
	}
	if len(snapshot) > 0 {
		if err := p.attachReplica(ctx, snapshot, snapshot["config"]); err != nil {
			return err
		}
	}
	if err := p.start(ctx, false); err != nil {
		return err
	}
	if len(backup) == 0 || len(snapshot) > 0 {
		return nil
	}
	if err := p.awaitRecovery(ctx); err != nil {
		return err
	}
	enabled, err := p.isRootEnabled(ctx)
	if err == nil && enabled {
		p.conductor(ctx, "report_root", map[string]any{})
	}
	return err
}

func (p *postgresServer) serverArgs() []string {
	return []string{"-c", "config_file=" + p.c.Path(p.configFile)}
}

// serverOptions returns the options of the container. SIGINT ends the server at once; SIGTERM would wait for its
// clients to disconnect.
func (p *postgresServer) serverOptions() []string {
	return []string{"--env=PGDATA=" + p.c.Path(p.dataDir), "--stop-signal=SIGINT"}
}

// ensureDirs creates the directories for data and archived log. PostgreSQL refuses a data directory that other users
// can read.
func (p *postgresServer) ensureDirs() error {
	if err := p.ensureDir(path.Dir(p.dataDir), 0o755); err != nil {
		return err
	}
	for _, dir := range p.dataDirs() {
		if err := p.ensureDir(dir, 0o700); err != nil {
			return err
		}
		if err := atomicfile.Own(p.c.Path(dir), -1, -1, 0o700); err != nil {
			return modules.Errorf("cannot close the directory %s: %v", dir, err)
		}
	}
	return nil
}

// configure writes the configuration: the base, the configuration group, and the paths of data and access rules.
func (p *postgresServer) configure() error {
	if v := p.c.Value("config_contents"); v != nil {
		if err := p.resetConfiguration(v); err != nil {
			return err
		}
	}
	if err := p.ensureDir(p.includeDir, 0o755); err != nil {
		return err
	}
	if err := p.userOverrides(p.c.Value("overrides")); err != nil {
		return err
	}
	if err := p.writeFile(p.accessFile(), []byte(accessRules), 0o400); err != nil {
		return err
	}
	// Without ident_file the server also requires the data directory in its environment, as in Trove's containers.
	return p.applyOverride(systemAfter, commonChange, map[string]any{"data_directory": p.c.Path(p.dataDir),
		"hba_file": p.c.Path(p.accessFile()), "ident_file": p.c.Path(path.Join(p.dataDir, "pg_ident.conf"))})
}

// accessFile returns the path of the file with the rules for who may log in from where.
func (p *postgresServer) accessFile() string { return path.Join(path.Dir(p.configFile), "pg_hba.conf") }

// accessRules are Trove's: the superuser may log in from this host only; all other users need a password. The first
// matching rule applies.
const accessRules = "local all postgres trust\r\n" +
	"local replication postgres trust\r\n" +
	"local all all md5\r\n" +
	"host all postgres 127.0.0.1/32 trust\r\n" +
	"host all postgres ::1/128 trust\r\n" +
	"host all postgres localhost trust\r\n" +
	"host all postgres 0.0.0.0/0 reject\r\n" +
	"host all postgres ::/0 reject\r\n" +
	"host all all 0.0.0.0/0 md5\r\n" +
	"host all all ::/0 md5\r\n"

// initData creates the system tables in an empty data directory.
func (p *postgresServer) initData(ctx context.Context) error {
	if _, err := os.Stat(p.c.Path(path.Join(p.dataDir, "PG_VERSION"))); err == nil {
		return nil
	}
	// The access rules of the data directory are not used; if they ever were, they would refuse every log-in.
	return p.asOwner(ctx, nil, "initdb", "-D", p.c.Path(p.dataDir), "-U", superUser, "--encoding=UTF8", "--locale="+p.locale,
		"--auth=reject")
}

// signal creates a file that controls the server's next start.
func (p *postgresServer) signal(name string) error {
	return p.writeFile(path.Join(p.dataDir, name), nil, 0o600)
}

func (p *postgresServer) rebuild(context.Context) error { return notSupported("rebuild", p.manager) }

// applyOverrides reloads the configuration. As in Trove, settings that need a restart take effect at the next one.
func (p *postgresServer) applyOverrides(ctx context.Context) error { return p.reload(ctx) }

func (p *postgresServer) reload(ctx context.Context) error {
	return p.exec(ctx, "SELECT pg_reload_conf()")
}

// makeReadOnly does nothing, as in Trove, because PostgreSQL has no such mode.
func (p *postgresServer) makeReadOnly(context.Context) error { return nil }

// logs returns the general log. The values of Trove's manager log every statement, including passwords.
func (p *postgresServer) logs() ([]*guestLog, error) {
	file := path.Join(p.dataDir, p.manager+"-general.log")
	value, err := p.configured("logging_collector")
	if err != nil {
		return nil, err
	}
	return []*guestLog{{name: "general", file: file, enabled: strings.EqualFold(value, "true") || value == "on",
		on: map[string]any{"logging_collector": true, "log_destination": "stderr", "log_directory": p.c.Path(p.dataDir),
			"log_filename": path.Base(file), "log_statement": "all", "debug_print_plan": true,
			"log_min_duration_statement": int64(p.longQueryTime)},
		off: map[string]any{"logging_collector": false}}}, nil
}

// switchLog reports that the server must be restarted, because the log collector needs a restart.
func (p *postgresServer) switchLog(ctx context.Context, _ map[string]any) error {
	p.report(ctx, statusRestartRequired, false)
	return nil
}
