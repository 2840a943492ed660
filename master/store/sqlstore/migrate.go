package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Version is the version of the schema that this package writes: that of the dialect plus one for every migration.
const Version = 3

// leastVersion is the name of the row in brine_counter with the oldest Version that can use the tables. No migration
// writes it so far, since all of them only add. The first one that does more must write it.
const leastVersion = "least_version"

// lockTime is how long to wait for another master that is changing the schema.
const lockTime = 2 * time.Minute

// migrations lead from one version of the schema to the next; the first one leads to version 2. They only add:
// masters of the previous version continue beside them, so that masters can be replaced one after the other. Each
// dialect replaces the words in braces by its types.
func migrations() [][]string {
	return [][]string{{
		`CREATE TABLE IF NOT EXISTS brine_key (id {text} NOT NULL PRIMARY KEY,
			accepted {blob}, pending {blob}, rejected {blob}, denied {blob},
			states {int} NOT NULL, changed {int} NOT NULL, epoch {int} NOT NULL,
			generation {int} NOT NULL{end}`,
		`CREATE INDEX brine_key_states ON brine_key (states, id)`,
		`CREATE TABLE IF NOT EXISTS brine_secret (name {text} NOT NULL, version {int} NOT NULL,
			created {int} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (name, version){end}`,
		`CREATE TABLE IF NOT EXISTS brine_lease (name {text} NOT NULL PRIMARY KEY,
			owner {text} NOT NULL, until_at {int} NOT NULL{end}`,
		`CREATE TABLE IF NOT EXISTS brine_counter (name {text} NOT NULL PRIMARY KEY,
			n {int} NOT NULL{end}`,
		`{insert} INTO brine_counter (name, n) VALUES ('keys', 0), ('relay', 0) {ignore}`,
		`CREATE TABLE IF NOT EXISTS brine_relay (seq {int} NOT NULL PRIMARY KEY,
			made {int} NOT NULL, sender {text} NOT NULL, receiver {text} NOT NULL,
			kind {text} NOT NULL, body {blob} NOT NULL{end}`,
		`CREATE TABLE IF NOT EXISTS brine_seen (scope {text} NOT NULL, mark {mark} NOT NULL,
			seen {int} NOT NULL, PRIMARY KEY (scope, mark){end}`,
		`CREATE INDEX brine_seen_at ON brine_seen (seen)`,
		`CREATE TABLE IF NOT EXISTS brine_data (kind {text} NOT NULL, id {text} NOT NULL,
			epoch {int} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (kind, id){end}`,
	}, {
		`CREATE TABLE IF NOT EXISTS brine_piece (content {text} NOT NULL, n {int} NOT NULL,
			made {int} NOT NULL, size {int} NOT NULL, body {blob} NOT NULL,
			PRIMARY KEY (content, n){end}`,
		`CREATE INDEX brine_piece_made ON brine_piece (made)`,
		`CREATE TABLE IF NOT EXISTS brine_order_content (jid {text} NOT NULL PRIMARY KEY,
			content {text} NOT NULL{end}`,
		`CREATE TABLE IF NOT EXISTS brine_label (mark {mark} NOT NULL, jid {text} NOT NULL,
			PRIMARY KEY (mark, jid){end}`,
		`CREATE INDEX brine_label_jid ON brine_label (jid)`,
	}}
}

// migrateSchema brings the schema up to Version, one master at a time.
func migrateSchema(db *sql.DB, d *Dialect) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, d.Lock); err != nil {
		return err
	}
	err = migrateLocked(ctx, conn, d)
	unlock := d.Unlock
	if err != nil && d.Abandon != "" {
		unlock = d.Abandon
	}
	if _, e := conn.ExecContext(context.WithoutCancel(ctx), unlock); err == nil {
		err = e
	}
	return err
}

func migrateLocked(ctx context.Context, conn *sql.Conn, d *Dialect) error {
	version, err := d.Version(ctx, conn)
	if err != nil {
		return err
	}
	if version > Version {
		return checkNewer(ctx, conn, version)
	}
	if version < 2 {
		for _, statement := range d.Schema {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		version = 1
	}
	words := strings.NewReplacer(append(d.Types, "{insert}", d.Insert, "{ignore}", d.Ignore)...)
	for ; version < Version; version++ {
		for _, statement := range migrations()[version-1] {
			_, err := conn.ExecContext(ctx, words.Replace(statement))
			if err != nil && (d.There == nil || !d.There(err)) {
				return fmt.Errorf("cannot bring it to version %d: %w", version+1, err)
			}
		}
		if err := d.SetVersion(ctx, conn, version+1); err != nil {
			return err
		}
	}
	return nil
}

// checkNewer returns an error if this package cannot use the tables of a newer version. If it can, masters are rolled
// back one after the other, like they were upgraded.
func checkNewer(ctx context.Context, conn *sql.Conn, version int) error {
	var least int
	row := conn.QueryRowContext(ctx, "SELECT n FROM brine_counter WHERE name = '"+leastVersion+"'")
	err := row.Scan(&least)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("its version is %d, newer than %d: %w", version, Version, err)
	}
	if least > Version {
		return fmt.Errorf("its version is %d, newer than %d, and only brine of version %d "+
			"or later can use it",
			version, Version, least)
	}
	return nil
}
