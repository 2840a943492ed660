package trove

import (
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// settings are the values of the minion's option trove, with Trove's own defaults.
type settings struct {
	manager, version, way string
	dockerSocket          string // where the container daemon listens
	dockerImage           string // of the datastore, without a tag
	service               string // the datastore's name in the service manager
	socket                string
	configFile            string
	includeDir            string
	mountPoint            string // of the volume with the data
	dataDir               string
	archiveDir            string // of PostgreSQL's log; empty for other datastores
	owner                 string // the owner of the datastore's files
	stateDir              string // for the marker files of prepare
	modulesDir            string // for Trove's modules that were applied
	address               string // of this instance, for its replicas; empty means detect it
	fsType, mountOptions  string
	strategy              string // the replication strategy
	ignoreUsers, ignoreDB []string
	rootGrant             []string
	rootGrantOption       bool
	wait, poll            time.Duration // for a change of the server's status
	exposedLogs           []string
	errorLog              string
	longQueryTime         float64 // milliseconds; -1 disables the log
	logLimit              int64   // the largest part of a log to publish, in bytes
	logContainer          string
	store                 map[string]any // of backups and logs
	backupContainer       string
	backupKey             string // encrypts backups; empty disables encryption
	postgresPort          int64
	postgresBin           string // the directory of PostgreSQL's programs; empty means search for it
	locale                string // of PostgreSQL's databases

	// The following fields depend on the datastore.
	syntax                     syntax
	overrideMode               os.FileMode
	startFailed, restartFailed string // Trove's words
}

// option is one key of the option trove.
type option struct {
	name string
	set  func(s *settings, v any) error
}

func text(field func(*settings) *string) func(*settings, any) error {
	return func(s *settings, v any) error {
		t, ok := v.(string)
		if !ok {
			t = pytext.Str(v)
		}
		*field(s) = t
		return nil
	}
}

func list(field func(*settings) *[]string) func(*settings, any) error {
	return func(s *settings, v any) error {
		words := []string{}
		switch v := v.(type) {
		case string:
			words = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		case []any:
			for _, x := range v {
				words = append(words, pytext.Str(x))
			}
		default:
			return modules.Errorf("it must be a list, not %s", pytext.Repr(v))
		}
		*field(s) = words
		return nil
	}
}

func seconds(field func(*settings) *time.Duration) func(*settings, any) error {
	return func(s *settings, v any) error {
		var f float64
		if err := number(&f, v); err != nil {
			return err
		}
		*field(s) = time.Duration(f * float64(time.Second))
		return nil
	}
}

func number(into *float64, v any) error {
	switch v := v.(type) {
	case float64:
		*into = v
	case int64:
		*into = float64(v)
	case int:
		*into = float64(v)
	default:
		return modules.Errorf("it must be a number, not %s", pytext.Repr(v))
	}
	if *into < 0 || *into > 1e9 {
		return modules.Errorf("it is out of range: %s", pytext.Repr(v))
	}
	return nil
}

// options returns the keys that the option trove may have.
func options() []option {
	return []option{
		{"address", text(func(s *settings) *string { return &s.address })},
		{"backup_aes_cbc_key", text(func(s *settings) *string { return &s.backupKey })},
		{"backup_container", text(func(s *settings) *string { return &s.backupContainer })},
		{"config_file", text(func(s *settings) *string { return &s.configFile })},
		{"data_dir", text(func(s *settings) *string { return &s.dataDir })},
		{"database_service_uid", text(func(s *settings) *string { return &s.owner })},
		{"datastore_manager", text(func(s *settings) *string { return &s.manager })},
		{"datastore_version", text(func(s *settings) *string { return &s.version })},
		{"docker_image", text(func(s *settings) *string { return &s.dockerImage })},
		{"docker_socket", text(func(s *settings) *string { return &s.dockerSocket })},
		{"error_log", text(func(s *settings) *string { return &s.errorLog })},
		{"guest_log_container_name", text(func(s *settings) *string { return &s.logContainer })},
		{"guest_log_exposed_logs", list(func(s *settings) *[]string { return &s.exposedLogs })},
		{"guest_log_limit", func(s *settings, v any) error {
			var f float64
			err := number(&f, v)
			s.logLimit = int64(f)
			return err
		}},
		{"guest_log_long_query_time", func(s *settings, v any) error {
			if n, err := modules.ToInt(v); err == nil && n == -1 {
				s.longQueryTime = -1
				return nil
			}
			return number(&s.longQueryTime, v)
		}},
		{"ignore_dbs", list(func(s *settings) *[]string { return &s.ignoreDB })},
		{"ignore_users", list(func(s *settings) *[]string { return &s.ignoreUsers })},
		{"include_dir", text(func(s *settings) *string { return &s.includeDir })},
		{"locale", text(func(s *settings) *string { return &s.locale })},
		{"modules_dir", text(func(s *settings) *string { return &s.modulesDir })},
		{"mount_options", text(func(s *settings) *string { return &s.mountOptions })},
		{"mount_point", text(func(s *settings) *string { return &s.mountPoint })},
		{"postgresql_bin", text(func(s *settings) *string { return &s.postgresBin })},
		{"postgresql_port", func(s *settings, v any) error {
			n, err := modules.ToInt(v)
			if err != nil || n < 1 || n > 65535 {
				return modules.Errorf("it must be a port, not %s", pytext.Repr(v))
			}
			s.postgresPort = n
			return nil
		}},
		{"replication_strategy", text(func(s *settings) *string { return &s.strategy })},
		{"root_grant", list(func(s *settings) *[]string { return &s.rootGrant })},
		{"root_grant_option", func(s *settings, v any) error {
			s.rootGrantOption = pytext.Truth(v)
			return nil
		}},
		{"service", text(func(s *settings) *string { return &s.service })},
		{"socket", text(func(s *settings) *string { return &s.socket })},
		{"state_change_poll_time", seconds(func(s *settings) *time.Duration { return &s.poll })},
		{"state_change_wait_time", seconds(func(s *settings) *time.Duration { return &s.wait })},
		{"state_dir", text(func(s *settings) *string { return &s.stateDir })},
		{"store", func(s *settings, v any) error {
			m, ok := v.(map[string]any)
			if !ok {
				return modules.Errorf("it must be a mapping, not %s", pytext.Repr(v))
			}
			s.store = m
			return nil
		}},
		{"volume_fstype", text(func(s *settings) *string { return &s.fsType })},
		{"wal_archive_dir", text(func(s *settings) *string { return &s.archiveDir })},
		{"way", text(func(s *settings) *string { return &s.way })},
	}
}

// readSettings reads the option trove.
func readSettings(v any) (*settings, error) {
	s := &settings{way: wayPackages, dockerSocket: "/var/run/docker.sock", stateDir: "/opt/trove-guestagent", modulesDir: "/root/modules",
		fsType: "ext3", mountOptions: "defaults,noatime", rootGrant: []string{"ALL"}, rootGrantOption: true,
		wait: 180 * time.Second, poll: 3 * time.Second, longQueryTime: unset,
		postgresPort: 5432, locale: "C.UTF-8", logLimit: 1000000, logContainer: "database_logs", backupContainer: "database_backups"}
	given, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, modules.Errorf("cannot use the option trove: it must be a mapping, not %s", pytext.Repr(v))
	}
	all := options()
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(all, func(o option) bool { return o.name == key })
		if i < 0 {
			return nil, modules.Errorf("cannot use the option trove: there is no %s", key)
		}
		if err := all[i].set(s, given[key]); err != nil {
			return nil, modules.Errorf("cannot use the option trove: %s: %v", key, err)
		}
	}
	return s, s.fill()
}

// unset marks a number that the configuration does not set.
const unset = -2

// dataDirs returns the directories that a restore fills.
func (s *settings) dataDirs() []string {
	if s.archiveDir == "" {
		return []string{s.dataDir}
	}
	return []string{s.dataDir, s.archiveDir}
}

// fill sets the defaults that depend on the datastore.
func (s *settings) fill() error {
	orElse := func(field *string, v string) {
		if *field == "" {
			*field = v
		}
	}
	orList := func(field *[]string, v ...string) {
		if *field == nil {
			*field = v
		}
	}
	orTime := func(v float64) {
		if s.longQueryTime == unset {
			s.longQueryTime = v
		}
	}
	orOwner := func(v string) {
		if s.inContainer() {
			v = "1001" // as in Trove; the host has no name for it
		}
		orElse(&s.owner, v)
	}
	switch s.manager {
	case managerMySQL, managerMaria:
		orElse(&s.service, s.manager)
		orElse(&s.socket, "/var/run/mysqld/mysqld.sock")
		orElse(&s.configFile, mysqlConfig)
		orElse(&s.includeDir, "/etc/mysql/conf.d")
		orElse(&s.mountPoint, "/var/lib/mysql")
		orElse(&s.dataDir, path.Join(s.mountPoint, "data"))
		orElse(&s.errorLog, "/var/log/mysqld.log")
		orOwner("mysql")
		orElse(&s.dockerImage, s.manager)
		orElse(&s.strategy, map[string]string{managerMySQL: "MysqlGTIDReplication", managerMaria: "MariaDBGTIDReplication"}[s.manager])
		orList(&s.ignoreUsers, "os_admin", "root")
		orList(&s.ignoreDB, "mysql", "information_schema", "performance_schema", "sys")
		orList(&s.exposedLogs, "general", "slow_query")
		orTime(1000)
		s.syntax, s.overrideMode = optionFile{}, 0o644
		s.startFailed, s.restartFailed = "Failed to start mysql", "Failed to restart mysql"
	case managerPostgres:
		orElse(&s.service, s.manager)
		orElse(&s.socket, "/var/run/postgresql")
		orElse(&s.configFile, "/etc/postgresql/postgresql.conf")
		orElse(&s.includeDir, "/etc/postgresql/conf.d")
		orElse(&s.mountPoint, "/var/lib/postgresql")
		orElse(&s.dataDir, path.Join(s.mountPoint, "data/pgdata"))
		orElse(&s.archiveDir, path.Join(s.mountPoint, "data/wal_archive"))
		orOwner("postgres")
		orElse(&s.dockerImage, "postgres")
		orElse(&s.strategy, "PostgresqlReplicationStreaming")
		orList(&s.ignoreUsers, "os_admin", "postgres")
		orList(&s.ignoreDB, "os_admin", "postgres")
		orList(&s.exposedLogs, "general")
		orTime(0)
		// The overrides hold the password of the source.
		s.syntax, s.overrideMode = settingFile{}, 0o640
		s.startFailed, s.restartFailed = "Failed to start database service", "Failed to restart database"
	case "":
		return modules.Errorf("cannot work on a datastore: the option trove has no datastore_manager (mysql, mariadb or postgresql)")
	default:
		return modules.Errorf("cannot work on the datastore %s: this agent knows mysql, mariadb and postgresql", s.manager)
	}
	switch _, err := strconv.ParseUint(s.owner, 10, 31); {
	case s.way != wayPackages && s.way != wayContainer:
		return modules.Errorf("cannot work in the way %s: this agent knows packages and container", s.way)
	case s.inContainer() && err != nil:
		return modules.Errorf("cannot work in the way container: database_service_uid must be a number, not %s", s.owner)
	}
	return nil
}

// confDir returns the directory for files that must survive a rebuild of the instance; it is on the volume.
func (s *settings) confDir() string { return path.Join(s.mountPoint, "conf.d") }
