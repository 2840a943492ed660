package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// openDatabase opens the database that several masters share (shared_database), nil where there is none.
func openDatabase(c *conf.Config) (store.Shared, error) {
	dsn := c.String("shared_database")
	var s store.Store
	var err error
	switch {
	case dsn == "":
		return nil, nil
	case strings.HasPrefix(dsn, "postgres:"), strings.HasPrefix(dsn, "postgresql:"):
		s, err = postgres.Open(dsn)
	case strings.HasPrefix(dsn, "mysql:"):
		s, err = mysql.Open(strings.TrimPrefix(dsn, "mysql:"))
	case filepath.IsAbs(dsn):
		s, err = sqlite.Open(dsn)
	default:
		// It may have a password in it, so it is not shown.
		return nil, errors.New("shared_database must be postgres://…, " +
			"mysql:user:password@tcp(host:port)/name or the path of a file")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open shared_database: %w; does the database server run, "+
			"and does it let this host and user in?", err)
	}
	db, ok := s.(store.Shared)
	if !ok {
		s.Close()
		return nil, errors.New("shared_database cannot be shared")
	}
	return db, nil
}

// sharedOptions reads how masters over one database are one (shared_key_file, shared_former_key_files, shared_name).
func sharedOptions(c *conf.Config) (*master.Shared, error) {
	o := &master.Shared{KeyFile: c.String("shared_key_file"), Name: c.String("shared_name")}
	if o.KeyFile == "" {
		return nil, errors.New("shared_database needs a shared_key_file, the same at all masters")
	}
	for _, path := range c.Strings("shared_former_key_files") {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read former sealing key: %w", err)
		}
		o.Former = append(o.Former, []byte(strings.TrimSpace(string(b))))
	}
	return o, nil
}

// openKeys opens the minions' keys where a master with this configuration has them, for a program that is not the
// master. The closer ends what was opened.
func openKeys(c *conf.Config, program string) (k *keys.Store, db store.Shared, closer func() error,
	err error) {
	if db, err = openDatabase(c); err != nil {
		return nil, nil, nil, err
	}
	if db == nil {
		if k, err = keys.Open(keys.Options{Dir: c.String("pki_dir")}); err != nil {
			return nil, nil, nil, err
		}
		return k, nil, k.Close, nil
	}
	k, err = keys.Open(keys.Options{Shared: db, Name: fmt.Sprintf("%s/%d", program, os.Getpid())})
	if err != nil {
		db.Close()
		return nil, nil, nil, err
	}
	return k, db, func() error { return errors.Join(k.Close(), db.Close()) }, nil
}
