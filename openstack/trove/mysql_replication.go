package trove

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// isMaria reports whether the server is MariaDB, whose replication differs from MySQL's.
func (m *mysqlServer) isMaria() bool { return m.manager == managerMaria }

// systemOverride writes a change of the configuration that Trove sends as a text or as a mapping of sections.
func (m *mysqlServer) systemOverride(change string, v any) error {
	values := map[string]any{}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		for _, s := range parseINI(v) {
			if s.name != serverSection {
				continue
			}
			for _, k := range s.keys {
				values[k.name] = any(k.value)
				if !k.has {
					values[k.name] = nil
				}
			}
		}
	case map[string]any:
		section, ok := v[serverSection].(map[string]any)
		if !ok {
			return modules.Errorf("the configuration of replication has no section %s", serverSection)
		}
		values = section
	default:
		return modules.Usagef("the configuration of replication must be a text or a dictionary, not %s", modules.TypeName(v))
	}
	return m.applyOverride(systemAfter, change, values)
}

func (m *mysqlServer) enableAsMaster(ctx context.Context, config any) error {
	found, err := m.findOverride(systemAfter, masterChange)
	if err != nil || found != nil {
		return err
	}
	if err := m.systemOverride(masterChange, config); err != nil {
		return err
	}
	return m.restart(ctx)
}

func (m *mysqlServer) demoteMaster(ctx context.Context) error {
	if err := m.removeOverride(systemAfter, masterChange); err != nil {
		return err
	}
	return m.restart(ctx)
}

// replicationPasswordLength is the length that Trove uses for replication users.
const replicationPasswordLength = 16

// replicationUser creates a user for the log-in of replicas.
func (m *mysqlServer) replicationUser(ctx context.Context) (map[string]any, error) {
	password, err := randomPassword(replicationPasswordLength)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		return nil, modules.Errorf("cannot make a replication user: %v", err)
	}
	name := "slave_" + hex.EncodeToString(b)
	err = m.exec(ctx, "CREATE USER "+account(name, "%")+" IDENTIFIED BY "+quote(password),
		"GRANT REPLICATION SLAVE ON *.* TO "+account(name, "%"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": name, "password": password}, nil
}

func (m *mysqlServer) port(ctx context.Context) (int64, error) {
	port, err := m.first(ctx, "SELECT @@port")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(port, 10, 64)
	if err != nil {
		return 0, modules.Errorf("cannot tell the server's port: it is %q", port)
	}
	return n, nil
}

func (m *mysqlServer) attach(ctx context.Context, from source, config any) error {
	if err := m.systemOverride(replicaChange, config); err != nil {
		return err
	}
	if err := m.guest.restart(ctx); err != nil {
		return err
	}
	return m.connectToSource(ctx, from)
}

func (m *mysqlServer) replicaContext(ctx context.Context) (any, error) {
	user, err := m.replicationUser(ctx)
	if err != nil {
		return nil, err
	}
	master, err := m.masterRef(ctx)
	if err != nil {
		return nil, err
	}
	position := map[string]any{}
	if m.isMaria() {
		at, err := m.first(ctx, "SELECT @@global.gtid_binlog_pos")
		if err != nil {
			return nil, err
		}
		position["gtid_pos"] = at
	}
	return map[string]any{"master": master,
		"replica_conf": map[string]any{"log_position": position, "replication_user": user}}, nil
}

// connectToSource starts GTID replication from the end of the copied data.
func (m *mysqlServer) connectToSource(ctx context.Context, s source) error {
	if s.fresh {
		at, err := m.lastSourceGTID()
		if err != nil {
			return err
		}
		switch {
		case m.isMaria():
			err = m.exec(ctx, "SET GLOBAL gtid_slave_pos = "+quote(at))
		case strings.Contains(at, "-"):
			err = m.exec(ctx, "RESET MASTER", "SET GLOBAL gtid_purged = "+quote(at))
		}
		if err != nil {
			return err
		}
	}
	mode := "MASTER_AUTO_POSITION=1"
	if m.isMaria() {
		mode = "MASTER_USE_GTID=slave_pos"
	}
	err := m.exec(ctx, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST=%s, MASTER_PORT=%d, MASTER_USER=%s, MASTER_PASSWORD=%s, "+
		"MASTER_CONNECT_RETRY=15, %s", quote(s.host), s.port, quote(s.user), quote(s.password), mode), "START SLAVE")
	if err != nil {
		return err
	}
	return m.awaitReplication(ctx, true)
}

// binlogInfo are the files in which the backup program stores the source's position.
var binlogInfo = [...]string{"xtrabackup_binlog_info", "mariadb_backup_binlog_info"}

// lastSourceGTID returns the position at the end of the copied data: file, position and GTID, separated by tabs.
func (m *mysqlServer) lastSourceGTID() (string, error) {
	for _, name := range binlogInfo {
		b, err := os.ReadFile(m.c.Path(path.Join(m.dataDir, name)))
		if missing(err) {
			continue
		}
		if err != nil {
			return "", modules.Errorf("cannot read %s: %v", name, err)
		}
		if f := strings.Split(strings.TrimSpace(string(b)), "\t"); len(f) == 3 {
			return f[2], nil
		}
		return "", nil
	}
	return "", modules.Errorf("Unable to determine last GTID executed on master (from file %s).", path.Join(m.dataDir, binlogInfo[0]))
}

// replicates reports whether both replication threads are running.
func (m *mysqlServer) replicates(ctx context.Context) (running bool, fault string, err error) {
	s, err := m.named(ctx, "SHOW SLAVE STATUS")
	if err != nil || s == nil {
		return false, "", err
	}
	fault = strings.TrimSpace(s["Last_IO_Error"] + " " + s["Last_SQL_Error"])
	return s["Slave_IO_Running"] == "Yes" && s["Slave_SQL_Running"] == "Yes", fault, nil
}

// awaitReplication waits until replication is running or, if want is false, has stopped.
func (m *mysqlServer) awaitReplication(ctx context.Context, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	for {
		running, fault, err := m.replicates(ctx)
		if err == nil && running == want {
			return nil
		}
		select {
		case <-ctx.Done():
			state := map[bool]string{true: "on", false: "off"}[want]
			if err != nil {
				fault = err.Error()
			}
			return modules.Errorf("Replication is not %s after %d seconds. %s", state, int(m.wait.Seconds()), fault)
		case <-time.After(m.poll):
		}
	}
}

// detachReplica ends the replication. It returns the replication user, which the source removes.
func (m *mysqlServer) detachReplica(ctx context.Context) (any, error) {
	s, err := m.named(ctx, "SHOW SLAVE STATUS")
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, modules.Errorf("cannot detach: this instance is no replica")
	}
	user := s["Master_User"]
	if err := m.exec(ctx, "STOP SLAVE", "RESET SLAVE ALL"); err != nil {
		return nil, err
	}
	if err := m.awaitReplication(ctx, false); err != nil {
		return nil, err
	}
	if !m.c.Bool("for_failover") {
		if err := m.exec(ctx, "DROP USER IF EXISTS "+account(user, "%")); err != nil {
			return nil, err
		}
	}
	if err := m.removeOverride(systemAfter, replicaChange); err != nil {
		return nil, err
	}
	return map[string]any{"replication_user": user}, m.restart(ctx)
}

// cleanupSource removes the user of a former replica, as Trove's replication strategy does. No manager of Trove calls
// it.
func (m *mysqlServer) cleanupSource(ctx context.Context) error {
	info, err := m.c.Map("replica_info")
	if err != nil {
		return err
	}
	name := textOf(info, "replication_user")
	if !strings.HasPrefix(name, "slave_") {
		return modules.Errorf("cannot remove the replication user %s: this is not the name of one", pytext.Repr(name))
	}
	return m.exec(ctx, "DROP USER IF EXISTS "+account(name, "%"))
}

// latestTransaction returns the position of the last transaction in this server's log.
func (m *mysqlServer) latestTransaction(ctx context.Context) (any, error) {
	variable := "gtid_executed"
	if m.isMaria() {
		variable = "gtid_binlog_pos"
	}
	return m.first(ctx, "SELECT @@global."+variable)
}

// lastTransaction returns the source's id, and the number of the source's last transaction that was applied here.
func (m *mysqlServer) lastTransaction(ctx context.Context) (any, error) {
	s, err := m.named(ctx, "SHOW SLAVE STATUS")
	if err != nil {
		return nil, err
	}
	key, variable, apart := "Master_UUID", "gtid_executed", ":"
	if m.isMaria() {
		key, variable, apart = "Master_Server_Id", "gtid_slave_pos", "-"
	}
	at, err := m.first(ctx, "SELECT @@global."+variable)
	if err != nil {
		return nil, err
	}
	id := s[key]
	last := int64(0)
	for _, set := range strings.Split(at, ",") {
		parts := strings.Split(strings.TrimSpace(set), apart)
		of := parts[0]
		if m.isMaria() && len(parts) == 3 {
			of = parts[1]
		}
		if s != nil && of == id {
			n := parts[len(parts)-1]
			n = n[strings.LastIndexByte(n, '-')+1:]
			if last, err = strconv.ParseInt(n, 10, 64); err != nil {
				return nil, modules.Errorf("cannot read the position %q", at)
			}
			break
		}
	}
	if !m.isMaria() {
		return []any{orNone(id), last}, nil
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n == 0 {
		return []any{nil, last}, nil
	}
	return []any{n, last}, nil
}

// waitForTransaction waits until this replica has applied a transaction, or the job ends.
func (m *mysqlServer) waitForTransaction(ctx context.Context) error {
	function := "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS"
	if m.isMaria() {
		function = "MASTER_GTID_WAIT"
	}
	return m.exec(ctx, "SELECT "+function+"("+quote(m.c.Str("txn"))+")")
}
