package trove

import (
	"context"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/modules"
)

// The rest of this file is trove.guestagent.strategies.replication.postgresql.

// replicator is the user as which all replicas log in. Its password is in the data directory, so a replica has a
// copy.
const (
	replicator   = "replicator"
	passwordFile = ".replpass"
)

// isReplica reports whether the server is replaying the log of another server or of a backup.
func (p *postgresServer) isReplica(ctx context.Context) (bool, error) {
	v, err := p.first(ctx, "SELECT pg_is_in_recovery()")
	return v == "true", err
}

func (p *postgresServer) port(context.Context) (int64, error) { return p.postgresPort, nil }

// replicationUser returns the user of replicas, and creates it if the user or its password is missing. pg_rewind
// needs a superuser.
func (p *postgresServer) replicationUser(ctx context.Context) (map[string]any, error) {
	file := path.Join(p.dataDir, passwordFile)
	found, err := p.findUser(ctx, replicator)
	if err != nil {
		return nil, err
	}
	if found != nil {
		b, err := os.ReadFile(p.c.Path(file))
		if err == nil {
			return map[string]any{"name": replicator, "password": string(b)}, nil
		}
		if !missing(err) {
			return nil, modules.Errorf("cannot read %s: %v", file, err)
		}
		if err := p.dropUser(ctx, replicator); err != nil {
			return nil, err
		}
	}
	password, err := randomPassword(passwordLength)
	if err != nil {
		return nil, err
	}
	if err := p.writeFile(file, []byte(password), 0o600); err != nil {
		return nil, err
	}
	err = p.createUser(ctx, dbUser{name: replicator, password: password}, "REPLICATION", "SUPERUSER", "LOGIN")
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": replicator, "password": password}, nil
}

// enableAsMaster allows replicas to log in. As in Trove, it ignores the configuration of a source.
func (p *postgresServer) enableAsMaster(ctx context.Context, _ any) error {
	if _, err := p.replicationUser(ctx); err != nil {
		return err
	}
	const rule = "host replication " + replicator + " 0.0.0.0/0 md5\n"
	b, err := os.ReadFile(p.c.Path(p.accessFile()))
	if err != nil {
		return modules.Errorf("cannot read %s: %v", p.accessFile(), err)
	}
	if !strings.Contains(string(b), rule) {
		if err := p.writeFile(p.accessFile(), append(b, rule...), 0o600); err != nil {
			return err
		}
	}
	return p.guest.restart(ctx)
}

func (p *postgresServer) replicaContext(ctx context.Context) (any, error) {
	user, err := p.replicationUser(ctx)
	if err != nil {
		return nil, err
	}
	master, err := p.masterRef(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"log_position": map[string]any{}, "master": master,
		"replica_conf": map[string]any{"replication_user": user}}, nil
}

// attach makes the server a standby at its next start. It restarts now only if Trove asks for that, because a former
// source needs pg_rewind first.
func (p *postgresServer) attach(ctx context.Context, from source, _ any) error {
	if err := p.signal("standby.signal"); err != nil {
		return err
	}
	info := conninfo("host", from.host, "port", strconv.FormatInt(from.port, 10), "dbname", superUser, "user", from.user,
		"password", from.password)
	if err := p.applyOverride(systemAfter, commonChange, map[string]any{"primary_conninfo": info}); err != nil {
		return err
	}
	if !p.c.Bool("restart") {
		return nil
	}
	return p.guest.restart(ctx)
}

// conninfo returns a libpq connection string. It quotes only the values that need quotes.
func conninfo(pairs ...string) string {
	out := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		if v == "" || strings.ContainsAny(v, ` '\`) {
			v = "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(v) + "'"
		}
		out = append(out, pairs[i]+"="+v)
	}
	return strings.Join(out, " ")
}

// cutPassword removes the password from a connection string made by conninfo.
func cutPassword(info string) (rest, password string) {
	rest, password, _ = strings.Cut(info, " password=")
	if n := len(password); n > 1 && password[0] == '\'' {
		password = strings.NewReplacer(`\\`, `\`, `\'`, "'").Replace(password[1 : n-1])
	}
	return rest, password
}

// detachReplica turns a replica into an independent server.
func (p *postgresServer) detachReplica(ctx context.Context) (any, error) {
	if err := p.exec(ctx, "SELECT pg_promote()"); err != nil {
		return nil, err
	}
	return nil, p.awaitRecovery(ctx)
}

// cleanupSource has nothing to do: all replicas share one user. Trove's strategy does nothing either.
func (p *postgresServer) cleanupSource(context.Context) error { return nil }

// demoteMaster removes the changes that this server has and its new source lacks. attach has already configured the
// new source.
func (p *postgresServer) demoteMaster(ctx context.Context) error {
	info, err := p.configured("primary_conninfo")
	if err != nil {
		return err
	}
	if info == "" {
		return modules.Errorf("cannot demote: this instance is not attached to another source")
	}
	if err := p.stop(ctx, false); err != nil {
		return err
	}
	rest, password := cutPassword(info)
	args := []string{"--target-pgdata=" + p.c.Path(p.dataDir), "--source-server=" + rest}
	major, err := os.ReadFile(p.c.Path(path.Join(p.dataDir, "PG_VERSION")))
	if err != nil {
		return modules.Errorf("cannot read the version of the data: %v", err)
	}
	if !olderThan(strings.TrimSpace(string(major)), "15") {
		// The archive holds the log that the server has removed. Versions before 15 need it in the data directory
		// (wal_keep_size).
		args = append(args, "--restore-target-wal", "--config-file="+p.c.Path(p.configFile))
	}
	// The password is not on the command line, which all users can read.
	if err := p.asOwner(ctx, []string{"PGPASSWORD=" + password}, "pg_rewind", args...); err != nil {
		return err
	}
	if err := p.signal("standby.signal"); err != nil {
		return err
	}
	return p.guest.restart(ctx)
}

// latestTransaction returns the position in the log up to which this server has written, or replayed if it is a
// replica.
func (p *postgresServer) latestTransaction(ctx context.Context) (any, error) {
	replica, err := p.isReplica(ctx)
	if err != nil {
		return nil, err
	}
	if replica {
		return p.first(ctx, "SELECT pg_last_wal_replay_lsn()")
	}
	return p.first(ctx, "SELECT pg_current_wal_lsn()")
}

// lastTransaction returns what Trove needs to choose among replicas, which its own manager for PostgreSQL lacks: the
// id of the database cluster, which a source and its replicas share, and the position as a number.
func (p *postgresServer) lastTransaction(ctx context.Context) (any, error) {
	rows, err := p.query(ctx, "SELECT system_identifier::text, (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "+
		"ELSE pg_current_wal_lsn() END - '0/0')::bigint FROM pg_control_system()")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, modules.Errorf("cannot tell the position in the log")
	}
	n, err := strconv.ParseInt(rows[0].text(1), 10, 64)
	if err != nil {
		return nil, modules.Errorf("cannot read the position %q", rows[0].text(1))
	}
	return []any{rows[0].text(0), n}, nil
}

// waitForTransaction waits until this replica has replayed the log up to a position.
func (p *postgresServer) waitForTransaction(ctx context.Context) error {
	want, ok := parseLSN(p.c.Str("txn"))
	if !ok {
		return modules.Usagef("txn must be a position in the log as 0/3000148, not %q", p.c.Str("txn"))
	}
	replica, err := p.isReplica(ctx)
	if err != nil {
		return err
	}
	if !replica {
		return modules.Errorf("Attempting to wait for a txn on a non-replica server")
	}
	ctx, cancel := context.WithTimeout(ctx, recoveryWait)
	defer cancel()
	for {
		at, err := p.first(ctx, "SELECT pg_last_wal_replay_lsn()")
		if err != nil && ctx.Err() == nil {
			return err
		}
		// Compare numbers: compared as texts, as Trove does, "0/A000000" is after "0/10000000".
		if now, ok := parseLSN(at); ok && now >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return modules.Errorf("Timeout occurred waiting for wal offset to change to %s", p.c.Str("txn"))
		case <-time.After(p.poll):
		}
	}
}

// parseLSN parses a position such as "16/B374D848".
func parseLSN(s string) (uint64, bool) {
	high, low, found := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	return h<<32 | l, found && err1 == nil && err2 == nil
}
