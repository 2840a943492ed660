package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/target"
)

// openDatabase opens the database that several masters share (option shared_database). It returns nil if the
// option is not set.
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
		// Do not show the value: it may contain a password.
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
		return nil, errors.New("shared_database: several masters cannot share this kind of database")
	}
	return db, nil
}

// sharedOptions returns how masters with a shared database act as one master (shared_key_file,
// shared_former_key_files, shared_name).
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

// openKeys opens the minions' keys of a master with this configuration, for another program than the master. closer
// closes what was opened.
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

// sharedMinions provides the minions in a database that masters share, to a program that is not one of these masters.
// It opens the database on first use.
type sharedMinions struct {
	open func() (*sharedKnown, error)
	// opened is the database that Close closes. It is nil if the database was not used, or belongs to the caller.
	opened *sharedKnown
}

var _ client.Minions = (*sharedMinions)(nil)

// sharedKnown is an open database.
type sharedKnown struct {
	keys  *keys.Store
	cache *cache.Cache
	close func() error
}

func newSharedMinions(c *conf.Config) *sharedMinions {
	s := &sharedMinions{}
	s.open = sync.OnceValues(func() (*sharedKnown, error) {
		k, db, closer, err := openKeys(c, "salt")
		if err != nil {
			return nil, err
		}
		s.opened = &sharedKnown{k, cache.OpenShared(db), closer}
		return s.opened, nil
	})
	return s
}

// openedMinions returns the minions of an open database, which the caller closes.
func openedMinions(k *keys.Store, c *cache.Cache) *sharedMinions {
	return &sharedMinions{open: func() (*sharedKnown, error) {
		return &sharedKnown{keys: k, cache: c}, nil
	}}
}

// Accepted implements client.Minions.
func (s *sharedMinions) Accepted() ([]string, error) {
	k, err := s.open()
	if err != nil {
		return nil, err
	}
	return k.keys.List(keys.Accepted)
}

// Known implements client.Minions.
func (s *sharedMinions) Known(ids []string, needs target.Needs) (
	cached func(string) (grains, pillar map[string]any), failed func() error) {
	k, err := s.open()
	if err != nil {
		return func(string) (grains, pillar map[string]any) { return nil, nil },
			func() error { return err }
	}
	r := k.cache.Parts(ids, needs)
	return func(id string) (grains, pillar map[string]any) {
		d, _ := r.Data(id)
		return d.Grains, d.Pillar
	}, r.Err
}

// Close implements client.Minions.
func (s *sharedMinions) Close() error {
	if s.opened == nil {
		return nil
	}
	return s.opened.close()
}
